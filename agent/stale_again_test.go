package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
)

// By the setting a file that changed is given as read_file would show it, and counts as
// read; what is too much, no text or not to be shown unasked is told like any change.
func TestReadAgain(t *testing.T) {
	long := strings.Repeat("a line of some length, of which there are many\n", 1500)
	for _, tt := range []struct {
		name, was, now string
		told           string // how it begins, behind the name
		read           bool
	}{
		{"small", "1\n2\n", "1\n3\n", "\nRead again. File: f\n1 | 1\n2 | 3\n", true},
		{"empty", "1\n", "", "\nRead again. File: f\n", true},
		{"more lines than read_file shows", "1\n", strings.Repeat("x\n", 2500), "\nRead again. File: f\n   1 | x\n", true},
		{"too large", "1\n", long, "", false},
		{"no text", "1\n", "a\x00b", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newFileBench(t, turn{calls: []call{read("r", "f")}}, turn{calls: []call{use("l", "look", "x")}}, turn{calls: []call{use("m", "look", "x")}})
			g.agent.Task.Settings.Stale = api.StaleRead
			g.put("f", tt.was)
			g.at(2, func() { g.put("f", tt.now) })
			want(t, g.run("go"), "completed", "")
			got, ok := strings.CutPrefix(g.news(2), "f\n")
			if got = strings.ReplaceAll(got, "    ", " "); !ok && g.news(2) != "f" {
				t.Errorf("told %q", g.news(2))
			}
			if !strings.HasPrefix(strings.ReplaceAll(got, " ", ""), strings.ReplaceAll(tt.told, " ", "")) {
				t.Errorf("told %.200q, want %q", got, tt.told)
			}
			if strings.Contains(got, "of 2501 lines. Read the others") != strings.Contains(tt.name, "more lines") {
				t.Errorf("what is left out: %q", got[max(len(got)-200, 0):])
			}
			if g.news(3) != "" {
				t.Error("told again")
			}
			reads := strings.Count(strings.Join(g.changes(), ","), "f read_tool")
			if (reads == 2) != tt.read {
				t.Errorf("recorded as read %d times", reads)
			}
		})
	}
}

// What is read again in one turn is bounded; the rest is told.
func TestReadAgainIsBounded(t *testing.T) {
	const files = 12
	var calls []call
	for i := range files {
		calls = append(calls, read(fmt.Sprint("r", i), fmt.Sprint("f", i)))
	}
	g := newFileBench(t, turn{calls: calls}, turn{calls: []call{use("l", "look", "x")}})
	g.agent.Task.Settings.Stale = api.StaleRead
	text := strings.Repeat("a line of some length\n", 700)
	for i := range files {
		g.put(fmt.Sprint("f", i), text)
	}
	g.at(2, func() {
		for i := range files {
			g.put(fmt.Sprint("f", i), text+"more\n")
		}
	})
	want(t, g.run("go"), "completed", "")
	got := g.news(2)
	if n := strings.Count(got, "Read again."); n < 2 || n > files/2 || strings.Count(got, "What changed in") != files-n || len(got) > 128<<10 {
		t.Errorf("%d of %d read again, %d told, %d bytes", n, files, strings.Count(got, "What changed in"), len(got))
	}
}

// Which other task changed a file is asked once, of what nobody else is known to have
// done, and told to both.
func TestAnotherTaskIsNamed(t *testing.T) {
	g := newFileBench(t, turn{calls: []call{read("r1", "a"), read("r2", "b"), read("r3", "c")}}, turn{calls: []call{use("l", "look", "x")}})
	for _, name := range []string{"a", "b", "c"} {
		g.put(name, "1\n")
	}
	g.at(2, func() {
		g.put("a", "2\n")
		g.put("b", "2\n")
		g.must(os.Remove(filepath.Join(g.dir, "c")))
	})
	asked := 0
	g.agent.Host.OtherTasks = func(_ context.Context, since int64, files map[string]string) map[string]string {
		asked++
		if hash, there := files["c"]; len(files) != 3 || !there || hash != "" || files["a"] == "" || since == 0 {
			t.Errorf("asked of %v since %d", files, since)
		}
		return map[string]string{"a": "task-2", "c": "task-3"}
	}
	want(t, g.run("go"), "completed", "")
	lines := strings.SplitN(g.news(2), "\n", 4)
	if asked != 1 || strings.Join(lines[:3], "|") != "a (changed by another task, task-2)|b|c (deleted by another task, task-3)" {
		t.Errorf("asked %d times, told %q", asked, lines)
	}
	if all := strings.Join(g.notices, "\n"); !strings.Contains(all, "a changed by another task, task-2, b changed, c deleted by another task, task-3") {
		t.Error(all)
	}
}

// A change while the person is asked is told at once, by a notice that says when the model
// is told, and not a second time; the model is told as ever.
func TestAChangeWhileThePersonIsAsked(t *testing.T) {
	g := newFileBench(t, turn{calls: []call{read("r", "f")}}, turn{calls: []call{{"q", "ask_followup_question", `{"question":"which?","follow_up":[{"text":"this"}]}`}}})
	g.put("f", "1\n")
	told := make(chan string, 8)
	g.shown.notice = func(s string) { told <- s }
	g.agent.User.Asker = asks(func(ctx context.Context, _ api.QuestionOpened) (agent.Answer, error) {
		// In one step: a file that is emptied and then written is two changes to
		// whoever looks between them.
		g.put("new", "2\n")
		g.must(os.Rename(filepath.Join(g.dir, "new"), filepath.Join(g.dir, "f")))
		select {
		case s := <-told:
			if s != "f: changed while you are asked; the model gets to know it in its next turn" {
				t.Error(s)
			}
		case <-time.After(time.Minute):
			t.Error("nothing was said")
		}
		return agent.Answer{Text: "this"}, nil
	})
	want(t, g.run("go"), "completed", "")
	close(told)
	for s := range told {
		t.Errorf("also said: %s", s)
	}
	if name, _, _ := strings.Cut(g.news(2), "\n"); name != "f" {
		t.Errorf("the model was told %q", g.news(2))
	}
	if got := strings.Join(g.changes(), ", "); got != "f read_tool, f user_edited other, f read_tool" {
		t.Error(got)
	}
}

// A change that is taken back before the model's turn was none.
func TestAChangeThatIsTakenBackWhileThePersonIsAsked(t *testing.T) {
	g := newFileBench(t, turn{calls: []call{read("r", "f")}}, turn{calls: []call{{"q", "ask_followup_question", `{"question":"which?","follow_up":[{"text":"this"}]}`}}})
	g.put("f", "1\n")
	told := make(chan string, 8)
	g.shown.notice = func(s string) { told <- s }
	g.agent.User.Asker = asks(func(context.Context, api.QuestionOpened) (agent.Answer, error) {
		g.put("f", "2\n")
		<-told
		g.put("f", "1\n")
		return agent.Answer{Text: "this"}, nil
	})
	want(t, g.run("go"), "completed", "")
	if g.news(2) != "" || strings.Contains(strings.Join(g.changes(), ","), "user_edited") {
		t.Errorf("told %q, recorded %v", g.news(2), g.changes())
	}
}
