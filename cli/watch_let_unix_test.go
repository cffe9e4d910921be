//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
)

// Who answers without a terminal is told what is asked next, and the task waits, saved:
// whether it asks itself, or a subtask of it, or the task that an answered subtask wakes.
// Nothing waits for somebody who cannot come.
func TestWhatIsAskedBehindAnAnswerIsLetGo(t *testing.T) {
	t.Parallel()
	asks := func(words string) string {
		return call("ask_followup_question", `{question: "`+words+`", follow_up: []}`)
	}
	part := call("new_task", `{mode: code, message: "do part ONE", todos: null}`)
	for name, c := range map[string]struct{ script, second string }{
		"the subtask": {asks("first?") + part + finish("All is done.") + "- task: part ONE\n" + asks("second?") + finish("One is done."), "second?"},
		"the subtask of the subtask": {asks("first?") + part + finish("All is done.") + "- task: part ONE\n" + call("new_task", `{mode: code, message: "do part TWO", todos: null}`) + finish("One is done.") +
			"- task: part TWO\n" + asks("second?") + finish("Two is done."), "second?"},
		"the task that it wakes": {part + asks("second?") + finish("All is done.") + "- task: part ONE\n" + asks("first?") + finish("One is done."), "second?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.slow()
			if r := s.bounded("run", "--provider", "script", "--model", s.script(c.script), "--yes", "go"); r.code != failure.ExitInput || !strings.Contains(r.err, "first?") {
				t.Fatalf("run: exit %d\n%s", r.code, r.err)
			}
			var asked string
			for _, item := range s.list() {
				if item.OpenQuestions > 0 {
					asked = item.ID
				}
			}
			if r := s.bounded("answer", asked, "left"); r.code != failure.ExitInput || !strings.Contains(r.err, c.second) {
				t.Fatalf("answer: exit %d\n%s\n%+v", r.code, r.err, s.list())
			}
			asked = ""
			for _, item := range s.list() {
				if item.OpenQuestions > 0 {
					asked = item.ID
				}
			}
			if r := s.bounded("answer", asked, "right"); r.code != failure.ExitDone {
				t.Fatalf("the last answer: exit %d\n%s", r.code, r.err)
			}
			for _, item := range s.list() {
				if item.Status != "completed" {
					t.Errorf("task %s is %s", item.Title, item.Status)
				}
			}
		})
	}
}
