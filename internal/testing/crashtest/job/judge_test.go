package job_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/crashtest/job"
)

// Each thing that is judged can be wrong, and is then told.
func TestJudge(t *testing.T) {
	command := job.Step{Calls: []job.Call{{
		Tool: "execute_command", Input: map[string]any{"command": "echo $ID >> ../effects.log; echo said", "cwd": nil, "timeout": nil}, Want: "said",
	}}}
	r, err := job.NewRide(program, shortDir(t), "anthropic", small(0, command), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if ended, err := r.Once(t.Context(), ""); err != nil || !ended {
		t.Fatalf("ended %t, %v", ended, err)
	}
	if err := r.JudgeTasks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Judge(t.Context()); err == nil || !strings.Contains(err.Error(), "never calls") {
		t.Errorf("the job calls one tool: %v", err)
	}
	effects := filepath.Join(r.Bench.Dir, "effects.log")
	history := filepath.Join(r.Looks[r.Main].Ref.Dir, "ui_messages.json")
	left := filepath.Join(r.Bench.Dir, "tmp", "roost-spool-1")
	// The processes had their sockets: what is judged is what a user has.
	socket := filepath.Join(r.Bench.Dir, "tmp", "roost-"+strconv.Itoa(os.Geteuid()), "1-0123456789ab.sock")
	for _, c := range []struct {
		name   string
		path   string
		change func(was string) string
		want   string
	}{
		{"a command that ran twice", effects, func(was string) string { return was + was }, "main-1-0-1 was begun 1 times and acted 2 times"},
		{"a command that did nothing", effects, func(string) string { return "" }, "has a result and acted 0 times"},
		{"a command of nobody", effects, func(was string) string { return was + "main-9-0-1\n" }, "is in no reply"},
		{"a history that is another one", history, func(was string) string { return strings.Replace(was, "Follow the plan", "Do not follow the plan", 1) }, "in the journal"},
		{"output that is left", left, func(string) string { return "x" }, left + "] are left"},
		{"a socket that is left", socket, func(string) string { return "" }, socket + "] are left"},
	} {
		was, err := os.ReadFile(c.path)
		missing := err != nil
		if err := os.WriteFile(c.path, []byte(c.change(string(was))), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.JudgeTasks(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, wanted %q", c.name, err, c.want)
		}
		if missing {
			err = os.Remove(c.path)
		} else {
			err = os.WriteFile(c.path, was, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := r.JudgeTasks(t.Context()); err != nil {
		t.Errorf("all is as it was: %v", err)
	}
}

// What the job has no answer to, and a run that fails, end the ride and say why.
func TestRidesThatFail(t *testing.T) {
	ask := job.Step{Calls: []job.Call{{Tool: "ask_followup_question", Input: map[string]any{"question": "Who?", "follow_up": []any{}}}}}
	wrong := job.Step{Calls: []job.Call{{Tool: "list_files", Input: map[string]any{"path": ".", "recursive": true}, Want: "no such file"}}}
	for _, c := range []struct {
		name string
		job  job.Job
		want string
	}{
		{"a question without an answer", small(0, ask), `asks "Who?"`},
		{"a request that is always too long", small(1000), "ended with 13"},
	} {
		r, err := job.NewRide(program, shortDir(t), "anthropic", c.job, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context(), 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, wanted %q", c.name, err, c.want)
		}
		r.Close()
	}
	r, err := job.NewRide(program, shortDir(t), "google", small(0, wrong), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Run(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := r.JudgeTasks(t.Context()); err == nil || !strings.Contains(err.Error(), `without "no such file"`) {
		t.Errorf("a model that was told otherwise: %v", err)
	}
}

func TestTree(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree := func() string {
		t.Helper()
		text, err := job.Tree(dir)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	write("b/c", "two\n")
	write("a", "one\n")
	first := tree()
	if want := "== a -rw------- 4 bytes\none\n== b/c -rw------- 4 bytes\ntwo\n"; first != want {
		t.Errorf("%q, wanted %q", first, want)
	}
	write("a", "0ne\n")
	if tree() == first {
		t.Error("another byte is not seen")
	}
	write("a", "one\n")
	if err := os.Chmod(filepath.Join(dir, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if tree() == first {
		t.Error("another mode is not seen")
	}
	write("big", strings.Repeat("x", 5000))
	before := tree()
	write("big", strings.Repeat("x", 4999)+"y")
	if tree() == before {
		t.Error("another byte of a large file is not seen")
	}
}
