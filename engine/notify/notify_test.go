//go:build unix

package notify

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

func event(typ string, data any) events.Event {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return events.Event{Type: typ, Task: "T", Run: "R", At: 1_700_000_000_000, Data: raw}
}

var asked = event("question.opened", api.QuestionOpened{Question: "q1", Kind: "approval", Text: "secret words", Command: "rm x"})

// caller is a notifier whose questions are open unless answered elsewhere, with the failures that it reports.
func caller(t *testing.T, c Config, open bool) (*Notifier, chan string) {
	t.Helper()
	failed := make(chan string, 16)
	n := New(Options{
		Settings: func() Config { return c }, Base: "https://192.168.1.5:7879",
		Look:   func(context.Context, string, string) (string, bool, error) { return "paint the fence", open, nil },
		Mask:   func(s string) string { return strings.ReplaceAll(s, "secret", "***") },
		Failed: func(why string) { failed <- why },
	})
	t.Cleanup(n.Close)
	return n, failed
}

// receiver is a webhook that answers with these codes, then with 204, and passes on what it got.
func receiver(t *testing.T, codes ...int) (url string, got chan Document) {
	t.Helper()
	got = make(chan Document, 16)
	calls := make(chan int, 16)
	for _, c := range codes {
		calls <- c
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var d Document
		if err := json.Unmarshal(body, &d); err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s %s with %s, %v, want a POST of JSON", r.Method, r.Header.Get("Content-Type"), body, err)
		}
		got <- d
		select {
		case code := <-calls:
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(code)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(web.Close)
	return web.URL, got
}

func next[T any](t *testing.T, what string, c chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("never came: %s", what)
	}
	return v
}

func TestAQuestionThatWaitsCalls(t *testing.T) {
	for text, want := range map[bool]string{false: "", true: "*** words\nrm x"} {
		url, got := receiver(t)
		n, _ := caller(t, Config{Webhook: url, After: time.Millisecond, Text: text}, true)
		n.Observe(asked)
		d := next(t, "the call", got)
		if wanted := (Document{
			Event: "question", Task: "T", Title: "paint the fence", Run: "R", At: api.Stamp(1_700_000_000_000), Question: "T.q1", Kind: "approval",
			Link: "https://192.168.1.5:7879/tasks/T#questions", Text: want,
		}); d != wanted {
			t.Errorf("with text %v: got %+v, want %+v", text, d, wanted)
		}
	}
}

// The notifier makes no call for a question that was answered in time, in any process, or whose run was ended.
func TestAnAnsweredQuestionCallsNobody(t *testing.T) {
	for name, c := range map[string]struct {
		then events.Event
		open bool
		wait time.Duration
	}{
		"answered here":      {event("question.closed", map[string]string{"question": "q1"}), true, time.Hour},
		"the run was ended":  {event("run.ended", map[string]string{"outcome": "cancelled"}), true, time.Hour},
		"answered elsewhere": {event("turn.ended", nil), false, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			url, got := receiver(t)
			n, _ := caller(t, Config{Webhook: url, After: c.wait}, c.open)
			n.Observe(asked)
			n.Observe(c.then)
			n.Close()
			if len(got) != 0 {
				t.Errorf("got %+v, want no call", <-got)
			}
		})
	}
}

// A process that ends calls at once for what its runs left open.
func TestTheEndOfAProcessCallsAtOnce(t *testing.T) {
	url, got := receiver(t)
	n, _ := caller(t, Config{Webhook: url, After: time.Hour}, true)
	n.Observe(asked)
	n.Observe(event("run.waiting", map[string]string{"question": "q1"}))
	n.Close()
	if len(got) != 1 {
		t.Errorf("got %d calls, want 1", len(got))
	}
}

func TestEndsOfRuns(t *testing.T) {
	for ends, want := range map[string][]string{"": nil, NoEnds: nil, FailedEnds: {"failed"}, AllEnds: {"completed", "failed", "cancelled"}} {
		url, got := receiver(t)
		n, _ := caller(t, Config{Webhook: url, Ends: ends}, true)
		for _, outcome := range []string{"completed", "failed", "cancelled"} {
			n.Observe(event("run.ended", map[string]string{"outcome": outcome, "reason": "secret reason"}))
		}
		n.Close()
		seen := map[string]bool{}
		for len(got) > 0 {
			d := <-got
			seen[d.Outcome] = true
			if d.Event != "run_end" || d.Text != "" || d.Link != "https://192.168.1.5:7879/tasks/T" {
				t.Errorf("got %+v, want the end of a run without words", d)
			}
		}
		for _, outcome := range want {
			if !seen[outcome] {
				t.Errorf("notify_on %q: no call for %s", ends, outcome)
			}
		}
		if len(seen) != len(want) {
			t.Errorf("notify_on %q: got %v, want %v", ends, seen, want)
		}
	}
}

// A failure that may pass is tried again; another one, and a redirect, is not. It is counted, and named without the address.
func TestFailuresOfAWebhook(t *testing.T) {
	before := waits
	waits = []time.Duration{time.Millisecond, time.Millisecond}
	defer func() { waits = before }()
	for name, c := range map[string]struct {
		codes []int
		calls int
		why   string
	}{
		"it passes":  {[]int{503, 429}, 3, ""},
		"it stays":   {[]int{500, 500, 500}, 3, "500"},
		"refused":    {[]int{403}, 1, "403"},
		"a redirect": {[]int{307}, 1, "a redirect is not followed"},
	} {
		t.Run(name, func(t *testing.T) {
			url, got := receiver(t, c.codes...)
			n, failed := caller(t, Config{Webhook: url + "/token", After: time.Millisecond}, true)
			n.Observe(asked)
			for range c.calls {
				next(t, "a try", got)
			}
			if c.why != "" {
				why := next(t, "the failure", failed)
				if s := n.State(); !strings.Contains(why, c.why) || strings.Contains(why, "token") || s.Failed != 1 || s.Problem != why {
					t.Errorf("got %q and %+v, want %q counted, without the address", why, s, c.why)
				}
			}
			n.Close()
			if s := n.State(); c.why == "" && (s.Sent != 1 || s.Failed != 0) || len(got) != 0 {
				t.Errorf("got %+v and %d more tries, want one notification", s, len(got))
			}
		})
	}
	n, failed := caller(t, Config{Webhook: "http://127.0.0.1:1/token", After: time.Millisecond}, true)
	n.Observe(asked)
	if why := next(t, "the failure", failed); strings.Contains(why, "token") || !strings.Contains(why, "refused") {
		t.Errorf("nobody listens: got %q, want a refused connection without the address", why)
	}
}

// A webhook that does not answer keeps neither a run nor the end of the process waiting for long.
func TestAWebhookThatHangs(t *testing.T) {
	hang := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer web.Close()
	defer close(hang)
	n, _ := caller(t, Config{Webhook: web.URL, After: time.Millisecond}, true)
	begun := time.Now()
	n.Observe(asked)
	if took := time.Since(begun); took > time.Second {
		t.Errorf("the run waited %s", took)
	}
	n.Close()
	if took := time.Since(begun); took > 2*closeWithin {
		t.Errorf("the process waited %s, want at most %s", took, closeWithin)
	}
}

func TestACommandIsCalled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "got.json")
	n, failed := caller(t, Config{Command: "cat > '" + file + "'; echo 'no secret bell' >&2; exit 3", After: time.Millisecond}, true)
	n.Observe(asked)
	if why := next(t, "the failure", failed); !strings.Contains(why, "exit code 3: no *** bell") {
		t.Errorf("got %q, want the exit code and what it complained about, masked", why)
	}
	var d Document
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	if err != nil || d.Task != "T" || d.Text != "" {
		t.Errorf("got %s, %v, want the document without words", data, err)
	}
}

func TestAddressesOfWebhooks(t *testing.T) {
	for text, want := range map[string]bool{
		"https://example.com/x": true, "http://127.0.0.1:8080/x": true, "http://[::1]/x": true, "http://localhost/x": true,
		"http://example.com": false, "http://192.168.1.5": false, "ftp://example.com": false, "example.com": false, "": false, "https://": false,
		"http://127.0.0.1.example.com": false,
	} {
		if err := CheckWebhook(text); (err == nil) != want {
			t.Errorf("%q: got %v, want it to be taken: %v", text, err, want)
		}
	}
}

func TestNothingToCallWith(t *testing.T) {
	n, _ := caller(t, Config{After: -1, Text: true}, true)
	n.Observe(asked)
	n.Close()
	if got := n.State(); got != nil {
		t.Errorf("got %+v, want no state", got)
	}
}

// A change of the settings holds for the next question.
func TestSettingsChange(t *testing.T) {
	url, got := receiver(t)
	var c atomic.Pointer[Config]
	c.Store(&Config{})
	n := New(Options{
		Settings: func() Config { return *c.Load() },
		Look:     func(context.Context, string, string) (string, bool, error) { return "paint the fence", true, nil },
		Mask:     func(s string) string { return s },
	})
	t.Cleanup(n.Close)
	n.Observe(asked)
	c.Store(&Config{Webhook: url, After: -1})
	second := event("question.opened", api.QuestionOpened{Question: "q2", Kind: "approval"})
	n.Observe(second)
	if d := next(t, "call", got); d.Question != "T.q2" {
		t.Errorf("got a call for %q, want T.q2", d.Question)
	}
}
