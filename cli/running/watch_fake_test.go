package running

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/internal/testing/clitest"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// stage is a server that says what a test wants, when the test wants it, without a network.
type stage struct {
	mu    sync.Mutex
	docs  map[string]string // by path
	lines map[string]*io.PipeWriter
	asked []string // streams that were begun, as path?query
}

// hangs is the document of a server that takes a request and never answers.
const hangs = "hangs"

func newStage(docs map[string]string) *stage {
	return &stage{docs: docs, lines: map[string]*io.PipeWriter{}}
}

func (s *stage) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
	name, _ := strings.CutPrefix(r.URL.Path, "/v1/")
	if !strings.HasSuffix(name, "/events") {
		resp.Header.Set("Content-Type", "application/json")
		doc, ok := s.docs[name]
		if doc == hangs {
			s.mu.Unlock()
			<-r.Context().Done()
			s.mu.Lock()
			return nil, r.Context().Err()
		}
		if !ok {
			resp.StatusCode, doc = http.StatusNotFound, `{"status":404,"code":"not_found","title":"Nothing is there","detail":""}`
			resp.Header.Set("Content-Type", "application/problem+json")
		}
		resp.Body = io.NopCloser(strings.NewReader(doc))
		return resp, nil
	}
	if r.Method == http.MethodHead {
		resp.Header.Set("Roost-Event-Id", "1.9-0")
		resp.Header.Set("Content-Type", "text/event-stream")
		resp.Body = http.NoBody
		return resp, nil
	}
	s.asked = append(s.asked, name+"?"+r.URL.RawQuery+r.Header.Get("Last-Event-Id"))
	out, in := io.Pipe()
	context.AfterFunc(r.Context(), func() { in.CloseWithError(r.Context().Err()) })
	s.lines[name] = in
	resp.Header.Set("Content-Type", "text/event-stream")
	resp.Body = out
	return resp, nil
}

func (s *stage) has(name, doc string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.docs[name] = doc
}

// line is the stream of a task that is open now.
func (s *stage) line(task string) *io.PipeWriter {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines["tasks/"+task+"/events"]
}

// says lets an event happen in a task that is followed. Without an id it is in no log.
func (s *stage) says(t *testing.T, task, id, typ, members string) {
	t.Helper()
	text := fmt.Sprintf("event: %s\ndata: {\"type\":%q,\"at\":\"2026-04-20T12:00:00.000Z\",%s}\n\n", typ, typ, members)
	if id != "" {
		text = "id: " + id + "\n" + text
	}
	if _, err := io.WriteString(s.line(task), text); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// watching is an App that follows run r1 of task top at a stage, behind the event 1.1-0.
type watching struct {
	*stage
	*testing.T
	typed *io.PipeWriter
	shown *safeText
	ended chan engine.Outcome
	err   error // why it was not followed to its end, once ended has something
	stop  *app.Stopper
}

type safeText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeText) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeText) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newWatching(t *testing.T) *watching {
	t.Helper()
	w := &watching{stage: newStage(map[string]string{
		"tasks/top": `{"id":"top","child_ids":[]}`, "tasks/top/runs": `{"items":[{"id":"r1","task_id":"top","state":"running"}]}`,
		"runs/r1": `{"id":"r1","task_id":"top","state":"running"}`, "questions": `{"items":[]}`,
	}), T: t, shown: &safeText{}, ended: make(chan engine.Outcome, 1)}
	a, _, _ := clitest.New(t)
	var keys *io.PipeReader
	keys, w.typed = io.Pipe()
	a.In, a.Err = keys, w.shown
	c, err := client.New("http://stage.test", client.Options{HTTP: &http.Client{Transport: w.stage}, Lost: a.Lost})
	fixture.NoError(t, err)
	w.stop = app.NewStopper(t.Context(), func() {})
	go func() {
		_, out, err := (&commands{App: a}).watchUntil(t.Context(), c, watched{task: "top", run: "r1", after: "1.1-0", ask: true}, w.stop, nil)
		w.err = err
		w.ended <- out
	}()
	return w
}

// over ends the run, and waits until nobody follows it any more.
func (w *watching) over() {
	w.Helper()
	w.says(w.T, "top", "1.90-0", "run.ended", `"run_id":"r1","outcome":"completed"`)
	if out := <-w.ended; out.State != "completed" || w.err != nil {
		w.Errorf("it ended as %+v, %v", out, w.err)
	}
	_ = w.typed.Close()
}

const stagedQuestion = `"question":"q1","kind":"followup","text":"which?","choices":["this","that"]`

// asks lets the run ask, and waits for the prompt.
func (w *watching) asks() {
	w.Helper()
	w.has("questions", `{"items":[{"id":"top.q1","question":"q1","task_id":"top"}]}`)
	w.says(w.T, "top", "1.2-0", "question.opened", stagedQuestion)
	w.want("? which?\n", "that\n"+stagedPrompt)
}

const stagedPrompt = "  a number or your own words (q alone stops) > "

// want looks for texts, one behind the other, the last one at the end of the screen.
func (w *watching) want(texts ...string) {
	w.Helper()
	synctest.Wait()
	rest := w.shown.String()
	for _, text := range texts {
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			w.Fatalf("it lacks %q:\n%s", text, w.shown)
		}
		rest = after
	}
	if last := texts[len(texts)-1]; !strings.HasSuffix(w.shown.String(), last) {
		w.Fatalf("it does not end with %q:\n%s", last, w.shown)
	}
}

// A notice, or a connection that is lost, does not leave a question without its prompt.
func TestAPromptIsDrawnAgainBehindWhatComesMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatching(t)
		w.asks()
		w.says(t, "top", "", "notice", `"text":"main.go changed"`)
		w.want("> \n! main.go changed\n" + stagedPrompt)
		fixture.NoError(t, w.line("top").CloseWithError(io.ErrUnexpectedEOF))
		w.want("> \nthe connection to the server is lost (", "again in 1.0s\n"+stagedPrompt)
		time.Sleep(2 * time.Second)
		w.has("questions/top.q1/answer", `{"question":"top.q1","task_id":"top","run_id":"r1"}`)
		_, err := io.WriteString(w.typed, "2\n")
		fixture.NoError(t, err)
		w.says(t, "top", "1.3-0", "question.closed", `"question":"q1","by":"client"`)
		w.over()
		if strings.Contains(w.shown.String(), "elsewhere") {
			t.Errorf("the answer is told as another's:\n%s", w.shown)
		}
	})
}

// Who sends words follows what comes from then on. A subtask that is begun then is shown from its
// start also when its run was long in coming, as on a machine that has much to do.
func TestASubtaskWhoseRunComesLateIsShownFromItsStart(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]time.Duration{"at once": 0, "soon": time.Second, "late": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWatching(t)
				w.has("tasks/kid/runs", `{"items":[]}`)
				runs := `{"items":[{"id":"r2","task_id":"kid","state":"running"}]}`
				if late == 0 {
					w.has("tasks/kid/runs", runs)
				}
				w.has("tasks/top", `{"id":"top","child_ids":["kid"]}`)
				w.says(t, "top", "1.2-0", "subtask.started", `"child":"kid","title":"a part"`)
				time.Sleep(late)
				w.has("tasks/kid/runs", runs)
				time.Sleep(10 * time.Second)
				w.says(t, "kid", "1.1-0", "message.added", `"history":"ui","message":3,"content":{"type":"say","say":"text","text":"first words"}`)
				w.says(t, "kid", "1.2-0", "run.ended", `"run_id":"r2","outcome":"completed"`)
				w.over()
				if asked := w.asked[1]; asked != "tasks/kid/events?after=0" || len(w.asked) != 2 {
					t.Errorf("the streams are %q", w.asked)
				}
				if !strings.Contains(w.shown.String(), "│ first words") {
					t.Errorf("it shows:\n%s", w.shown)
				}
			})
		})
	}
}

// A process that once does not answer is followed on: only when it is silent twice in a row, and
// nothing happens in the task, nobody follows its run any more.
func TestWhoFollowsIsPatientWithAQuietProcess(t *testing.T) {
	t.Parallel()
	const lives, silent = `{"id":"r1","task_id":"top","state":"running"}`, `{"id":"r1","task_id":"top","state":"running","silent":"roost run (pid 7)"}`
	synctest.Test(t, func(t *testing.T) {
		w := newWatching(t)
		time.Sleep(quiet / 2) // between two looks
		for range 5 {
			for _, doc := range []string{lives, silent} {
				time.Sleep(quiet)
				w.has("runs/r1", doc)
			}
		}
		for i := range 5 {
			w.says(t, "top", fmt.Sprintf("1.%d-0", i+2), "message.added", `"history":"ui","message":3,"content":{"type":"say","say":"text","text":"words"}`)
			time.Sleep(2 * quiet)
		}
		w.has("runs/r1", lives)
		w.over()
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWatching(t)
		w.has("runs/r1", silent)
		<-w.ended
		var f *failure.Failure
		if !errors.As(w.err, &f) || f.Exit != failure.ExitBusy || !strings.Contains(f.Why, "roost run (pid 7)") || !strings.Contains(f.Try, "roost attach top") {
			t.Errorf(`got %+v, want errors.As(w.err, &f) and f.Exit = failure.ExitBusy and strings.Contains(f.Why, "roost run (pid 7)") and strings.Contains(f.Try, "roost attach top")`,
				w.err)
		}
		_ = w.typed.Close()
	})
}

// Ctrl-C ends following also while a server that is stopped owes an answer.
func TestWhoLeavesDoesNotWaitForAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatching(t)
		w.has("runs/r1", hangs)
		time.Sleep(5 * quiet)
		w.stop.Stop()
		synctest.Wait()
		select {
		case <-w.ended:
			if !errors.Is(w.err, errDetached) {
				t.Error(w.err)
			}
		default:
			t.Error("it is followed still")
			w.has("runs/r1", "")
		}
		_ = w.typed.Close()
	})
}
