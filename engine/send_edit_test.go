package engine_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
)

// Words are changed again and again while the run that they wait for takes them, or ends just
// then and is followed by one that does: each change is either acknowledged, and the newest
// of those is what the model gets, once; or it is told that the words do not wait any more.
func TestWordsAreChangedUntilTheyAreTaken(t *testing.T) {
	for name, script := range map[string]string{
		"by the run's next turn": waitsForGo,
		"by the run behind it": `
- tools:
  - {name: execute_command, input: {command: "touch here; while [ ! -e go ] && [ -e here ]; do sleep 0.01; done"}}
  - {name: attempt_completion, input: {result: first}}
- tools: [{name: attempt_completion, input: {result: second}}]
`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newLimitedBench(t, engine.Options{})
			for range 3 {
				r := b.ask(script)
				ticket := b.submit(r)
				id := ticket.Ref.ID
				waitForFile(t, filepath.Join(r.Workspace, "here"))
				b.send(id, engine.Message{ID: "m", Text: "words 0.", By: "test", Request: engine.Request{Interactive: true}})
				touch(t, r.Workspace, "go")
				newest := 0
				for end := time.Now().Add(time.Minute); ; {
					text := fmt.Sprintf("words %d.", newest+1)
					err := b.engine.EditInput(t.Context(), id, "m", &text)
					if errors.Is(err, engine.ErrInput) {
						break
					}
					if err != nil || time.Now().After(end) {
						t.Fatalf("change %d: %v", newest+1, err)
					}
					newest++
				}
				b.waitForState(ticket.ID, "completed")
				runs, err := b.engine.RunsOf(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				b.waitForState(runs[0].ID, "completed")
				s := b.state(id)
				got := []string{}
				for _, m := range s.UI() {
					if m.Kind() == "say:user_feedback" {
						got = append(got, m.Text())
					}
				}
				if want := fmt.Sprintf("words %d.", newest); len(s.Queue) != 0 || strings.Join(got, "|") != want {
					t.Errorf("%d wait, the person is shown %q, acknowledged was %q", len(s.Queue), got, want)
				}
				checkHistory(t, s, true)
			}
		})
	}
}
