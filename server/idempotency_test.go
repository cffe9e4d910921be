package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/journal"
)

// records are the files of keys.
func (g *ground) records() []string {
	g.Helper()
	return fixture.Must[[]string](g)(filepath.Glob(filepath.Join(g.store.Root(), "server", "idempotency", "*")))
}

// 19.21.10: the same key fifty times at once is one effect, and one answer.
func TestOneKeyIsOneEffect(t *testing.T) {
	g := newWork(t)
	before := g.count()
	body := g.task(sayDone, "go")
	key := keyHeader + ": the-key"
	answers := make([]string, 50)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() {
			resp := g.send("POST", "/v1/tasks", body, key)
			data, err := io.ReadAll(resp.Body)
			answers[i] = fmt.Sprint(resp.StatusCode, resp.Header.Get("Location"), resp.Header.Get("Roost-Run-Id"), string(data), err)
		})
	}
	wait.Wait()
	for _, a := range answers {
		if a != answers[0] || !strings.HasPrefix(a, "201") {
			t.Fatalf("%s\n%s", answers[0], a)
		}
	}
	if n := g.count() - before; n != 1 {
		t.Errorf("%d tasks were made", n)
	}
	var r made
	head := g.did(201, &r, "POST", "/v1/tasks", body, key)
	if head.Get("Idempotent-Replayed") != "true" {
		t.Error("the repeat does not say that it is one")
	}
	g.state(r.ID, "completed")
	var page api.Page[api.Run]
	g.did(200, &page, "GET", "/v1/tasks/"+r.Task+"/runs", "")
	if len(page.Items) != 1 {
		t.Errorf("%d runs", len(page.Items))
	}
	// A run and words of one key are said once, too.
	for _, c := range []struct{ path, body string }{{"/runs", `{"message":{"text":"once more"}}`}, {"/messages", `{"text":"and this"}`}} {
		key := keyHeader + ": key-of-" + c.path[1:]
		for range 20 {
			wait.Go(func() {
				resp := g.send("POST", "/v1/tasks/"+r.Task+c.path, c.body, key)
				if resp.StatusCode != 202 {
					t.Errorf("%s: %s", c.path, resp.Status)
				}
			})
		}
		wait.Wait()
		g.idle(r.Task)
	}
	said := map[string]int{}
	for _, f := range journalOf(t, g.store, r.Task) {
		for _, words := range []string{"once more", "and this"} {
			if f.Type == "message.added" && strings.Contains(f.Data, `"user_feedback"`) && strings.Contains(f.Data, words) {
				said[words]++
			}
		}
	}
	if said["once more"] != 1 || said["and this"] != 1 {
		t.Errorf("%v", said)
	}
}

// A key belongs to one request: another one with it is refused, and one that failed leaves
// it free.
func TestAKeyIsOfOneRequest(t *testing.T) {
	g := newWork(t)
	key := keyHeader + ": k1"
	g.denied(422, "validation_failed", "POST", "/v1/tasks", `{"workspace":"relative"}`, key)
	body := g.task(sayDone, "go")
	var r made
	g.did(201, &r, "POST", "/v1/tasks", body, key)
	for _, c := range [][2]string{{"/v1/tasks", g.task(sayDone, "other")}, {"/v1/tasks/" + r.Task + "/runs", body}, {"/v1/tasks/" + r.Task + "/cancel", ""}} {
		p := g.denied(422, "idempotency_mismatch", "POST", c[0], c[1], key)
		if p.Errors[0].Parameter != keyHeader {
			t.Errorf("%+v", p)
		}
	}
	for _, bad := range []string{"a b", "é", strings.Repeat("k", 256)} {
		g.denied(400, "bad_header", "POST", "/v1/tasks", body, keyHeader+": "+bad)
	}
	g.did(201, nil, "POST", "/v1/tasks", g.task(sayDone, ""), keyHeader+": "+strings.Repeat("~", 255))
	for _, file := range g.records() {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		if data, _ := os.ReadFile(file); strings.Contains(string(data), g.token) || strings.Contains(string(data), "k1") {
			t.Errorf("a record holds the token or the key: %s", data)
		}
	}
}

// The repeat of a stream is the stream of the same run.
func TestARepeatedStreamIsOfTheSameRun(t *testing.T) {
	g := newWork(t)
	body := g.task(sayDone, "go")
	read := func() (id string, events []frame) {
		resp := g.send("POST", "/v1/tasks", body, keyHeader+": s", "Accept: "+streamMedia)
		if resp.StatusCode/100 != 2 || resp.Header.Get("Content-Type") != streamMedia {
			t.Fatal(resp.Status, resp.Header)
		}
		s := &stream{t, resp, bufio.NewReader(resp.Body)}
		for f, ok := s.next(); ok; f, ok = s.next() {
			if f.ID != "" {
				events = append(events, f)
			}
		}
		return resp.Header.Get("Roost-Run-Id"), events
	}
	first, events := read()
	second, again := read()
	if first == "" || first != second {
		t.Fatalf("%q and %q", first, second)
	}
	if diff := firstDifference(events, again); diff != "" {
		t.Error(diff)
	}
	if len(events) < 5 || events[len(events)-1].Type != "run.ended" {
		t.Errorf("%d events", len(events))
	}
}

// What a kill leaves of a key's file is an intent, or an answer that was given to nobody:
// the repeat does what is left to do, and an answer is kept for a day.
func TestWhatAKeysFileHolds(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d := &keyedRequests{dir: filepath.Join(t.TempDir(), "keys"), now: func() time.Time { return now }}
	begin := func(print string) (*keyedRequest, *outcome, error) {
		return d.begin(t.Context(), "k", "POST /x", print)
	}
	one, done, err := begin("a")
	if err != nil || done != nil || one.again {
		t.Fatal(one, done, err)
	}
	file := one.file.Name()
	if err := one.leave(); err != nil { // as a kill does
		t.Fatal(err)
	}
	if _, _, err := begin("b"); !errors.Is(err, errOther) {
		t.Errorf("another request under the key of an intent: %v", err)
	}
	if one, done, err = begin("a"); err != nil || done != nil || !one.again {
		t.Fatal(one, done, err)
	}
	want := outcome{Status: 201, Head: map[string]string{"Location": "/x/1"}, Body: "{\"a\":\"é\\n\"}\n", Follow: &followed{"t", "r", "1.2-3"}}
	if err := one.finish(want); err != nil {
		t.Fatal(err)
	}
	whole := fixture.Must[[]byte](t)(os.ReadFile(file))
	intentEnd := strings.IndexByte(string(whole), '\n') + 1
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(file, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		one, done, err := begin("a")
		switch {
		case err != nil:
			t.Fatalf("cut at %d: %v", cut, err)
		case cut == len(whole):
			if got := fixture.Must[[]byte](t)(json.Marshal(done)); string(got) != string(fixture.Must[[]byte](t)(json.Marshal(want))) {
				t.Fatalf("%s", got)
			}
		case done != nil || one.again != (cut >= intentEnd):
			t.Fatalf("cut at %d: %+v %+v", cut, one, done)
		}
		if one != nil {
			if err := one.finish(outcome{Status: 200}); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A line that says nothing is no answer.
	if err := os.WriteFile(file, append(whole[:intentEnd:intentEnd], "{}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if one, done, err = begin("a"); err != nil || done != nil || !one.again {
		t.Fatal(one, done, err)
	}
	if err := one.leave(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(keptFor + time.Second)
	if one, done, err = begin("b"); err != nil || done != nil || one.again {
		t.Errorf("behind a day: %+v %+v %v", one, done, err)
	}
	if err := one.forget(); err != nil {
		t.Fatal(err)
	}
	if one, done, err = begin("c"); err != nil || done != nil || one.again {
		t.Errorf("a forgotten one: %+v %+v %v", one, done, err)
	}
	if err := one.leave(); err != nil {
		t.Fatal(err)
	}
	old := now.Add(-keptFor - time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	now = now.Add(cleanedEvery + time.Second)
	if one, _, err = d.begin(t.Context(), "other", "POST /x", "a"); err != nil {
		t.Fatal(err)
	}
	defer one.leave()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file of a key from long ago stays: %v", err)
	}
}

// A repeat waits for the first, and is told to come back when that takes too long.
func TestARepeatWaitsForTheFirst(t *testing.T) {
	g := newWork(t)
	d := g.srv.keyed
	body := g.task(sayDone, "go")
	a := &asked{Request: g.send("POST", "/v1/nothing", "").Request, body: []byte(body)}
	a.URL.Path = "/v1/tasks"
	one, _, err := d.begin(t.Context(), "busy", "POST /v1/tasks", fingerprintOf(a))
	if err != nil {
		t.Fatal(err)
	}
	p := g.denied(409, "idempotency_in_flight", "POST", "/v1/tasks", body, keyHeader+": busy")
	if !p.Retryable {
		t.Error("it is not said to be worth another try")
	}
	answered := make(chan int)
	go func() { answered <- g.send("POST", "/v1/tasks", body, keyHeader+": busy").StatusCode }()
	if err := one.finish(outcome{Status: 418, Body: "{}\n"}); err != nil {
		t.Fatal(err)
	}
	if status := <-answered; status != 418 {
		t.Errorf("the repeat was answered with %d", status)
	}
}

// A record that another place's root signed, or nobody, is no answer of this one.
func TestAKeysFileOfAnotherRootIsNoAnswer(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dir := filepath.Join(t.TempDir(), "keys")
	sealed := func(key string) func() *journal.Seal {
		k := journal.Key{ID: key, Secret: []byte("secret of " + key)}
		return func() *journal.Seal {
			return &journal.Seal{Log: "root/idempotency", Sign: &k, Verify: []journal.Key{k}}
		}
	}
	answer := func(seal func() *journal.Seal) *outcome {
		t.Helper()
		d := &keyedRequests{dir: dir, now: func() time.Time { return now }, seal: seal}
		one, done, err := d.begin(t.Context(), "k", "POST /x", "a")
		if err != nil {
			t.Fatal(err)
		}
		if one != nil {
			if err := one.finish(outcome{Status: 201, Body: "{}\n"}); err != nil {
				t.Fatal(err)
			}
		}
		return done
	}
	for _, c := range []struct {
		name string
		seal func() *journal.Seal
		want bool // it is answered by what is there
	}{
		{"nothing there", nil, false},
		{"nobody signed it", sealed("00000001"), false},
		{"its own", sealed("00000001"), true},
		{"another root's", sealed("00000002"), false},
	} {
		if got := answer(c.seal) != nil; got != c.want {
			t.Errorf("%s: answered %v, want %v", c.name, got, c.want)
		}
	}
}
