package engine_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/notify"
	"github.com/roost-dev/roost/engine/setup"
)

// The engine calls the user for a question without an answer, and leaves out the question's words. It makes no call when
// another engine of the root took an answer. The run never waits for the call.
func TestAQuestionOfARunCallsTheUser(t *testing.T) {
	for name, answered := range map[string]bool{"nobody answers": false, "another engine takes the answer": true} {
		t.Run(name, func(t *testing.T) {
			got := make(chan notify.Document, 4)
			web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				var d notify.Document
				if err := json.Unmarshal(body, &d); err != nil || strings.Contains(string(body), "Which one") {
					t.Errorf("got %s, %v, want a document without the words of the question", body, err)
				}
				got <- d
			}))
			defer web.Close()
			b := newBench(t)
			c := setup.Config{Keys: map[string]string{}, Notify: notify.Config{Webhook: web.URL, After: time.Hour}}
			b.engine = engine.New(b.store, engine.Options{Config: c, Page: "https://192.168.1.5:7879"})
			run, out, _ := b.run(engine.Request{Text: "paint the fence", Choice: setup.Choice{Provider: "script", Model: b.script(`
- tools: [{name: ask_followup_question, input: {question: "Which one?", follow_up: [{text: "this", mode: null}]}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`)}})
			if out.State != "waiting" {
				t.Fatalf("got %+v, want a run that waits for the user", out)
			}
			if answered {
				other := engine.New(b.store, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
				open, err := other.Questions(t.Context(), run.TaskID)
				if err != nil || len(open) != 1 {
					t.Fatalf("got %+v, %v, want one question", open, err)
				}
				if _, err := other.Reply(t.Context(), open[0].ID, engine.Reply{Choice: 1}); err != nil {
					t.Fatal(err)
				}
				if err := other.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.engine.Close(t.Context()); err != nil { // it calls at once
				t.Fatal(err)
			}
			if answered != (len(got) == 0) {
				t.Fatalf("got %d calls, want one only if nobody answers", len(got))
			}
			if !answered {
				d := <-got
				if d.Task != run.TaskID || d.Title != "paint the fence" || d.Kind != "followup" || d.Link != "https://192.168.1.5:7879/tasks/"+run.TaskID+"#questions" {
					t.Errorf("got %+v, want the task, its title, the kind and a link", d)
				}
			}
		})
	}
}
