//go:build unix

package hook

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/workspace/shell"
)

func plain(s string) string { return s }

// set makes the hooks of a run of shell lines.
func set(t *testing.T, hooks ...Hook) *Set {
	t.Helper()
	return &Set{Hooks: hooks, TaskID: "T", RunID: "R", Workspace: t.TempDir(), Spool: t.TempDir(), Mark: shell.NewMark()}
}

func before(line string) Hook { return Hook{Name: "guard", On: BeforeTool, Command: line} }

func run(t *testing.T, s *Set, in Input) Answer {
	t.Helper()
	a, err := s.Run(t.Context(), in, plain)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// How a hook ends decides. No end of it permits anything.
func TestAnswers(t *testing.T) {
	t.Parallel()
	call := Input{Event: BeforeTool, Tool: "execute_command", Kind: "command"}
	deny := func(reason string) Answer { return Answer{Decision: Deny, Hook: "guard", Reason: reason} }
	warn := func(why string) Answer { return Answer{Warnings: []string{"the hook guard failed: " + why}} }
	for name, c := range map[string]struct {
		line string
		want Answer
	}{
		"silent":              {"true", Answer{}},
		"words":               {"echo fine; echo noise >&2", Answer{}},
		"code 2":              {"echo out; echo 'not on a Friday' >&2; exit 2", deny("not on a Friday")},
		"code 2 in silence":   {"exit 2", deny("it gave no reason")},
		"JSON deny":           {`echo '{"decision":"deny","reason":"no"}'`, deny("no")},
		"JSON ask":            {`echo '{"decision":"ask","reason":"sure?"}'`, Answer{Decision: Ask, Hook: "guard", Reason: "sure?"}},
		"JSON without one":    {`echo '{"note":1}'`, Answer{}},
		"JSON allow":          {`echo '{"decision":"allow"}'`, warn(`its decision "allow" means nothing here; a hook denies, asks about a call, and permits nothing`)},
		"broken JSON":         {`echo '{"decision":'`, warn("its answer is no JSON: unexpected end of JSON input")},
		"JSON behind words":   {`echo checking; echo '{"decision":"deny"}'`, warn("its answer is no JSON: invalid character 'c' looking for beginning of value")},
		"another code":        {"echo oops >&2; exit 1", warn("exit code 1: oops")},
		"no such program":     {"exec /no/such/program 2>/dev/null", warn("exit code 127: it gave no reason")},
		"code 2 without JSON": {`echo '{"decision":"ask"}'; echo hard >&2; exit 2`, deny("hard")},
	} {
		if d := cmp.Diff(c.want, run(t, set(t, before(c.line)), call)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	long := run(t, set(t, before("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 2")), call)
	if len(long.Reason) > reasonLimit+3 {
		t.Errorf("got a reason of %d bytes, want it cut", len(long.Reason))
	}
	// Of several hooks the strictest answer counts, and a denial ends the row.
	s := set(t, before(`echo '{"decision":"ask","reason":"1"}'`), before("echo 2 >&2; exit 2"), before("touch third"))
	if d := cmp.Diff(deny("2"), run(t, s, call)); d != "" {
		t.Error(d)
	}
	if _, err := os.Stat(filepath.Join(s.Workspace, "third")); err == nil {
		t.Error("a hook ran after a denial")
	}
}

func TestWhatAFailureDoes(t *testing.T) {
	t.Parallel()
	for failure, want := range map[string]string{"": "", Warn: "", Ask: Ask, Deny: Deny} {
		h := before("exit 7")
		h.Failure = failure
		if a := run(t, set(t, h), Input{Event: BeforeTool, Tool: "x"}); a.Decision != want || len(a.Warnings) != 1 {
			t.Errorf("on_failure %q: got %+v, want the decision %q and a warning", failure, a, want)
		}
	}
}

// After a call, 2 is for the model; at the end of a run nothing is decided any more.
func TestOtherEvents(t *testing.T) {
	t.Parallel()
	text, failed := "done", false
	after := set(t, Hook{Name: "lint", On: AfterTool, Command: "echo 'a.go:1: unused' >&2; exit 2"})
	if d := cmp.Diff(Answer{Feedback: []string{"[The user's hook lint: a.go:1: unused]"}}, run(t, after, Input{Event: AfterTool, Tool: "x", Result: &text, IsError: &failed})); d != "" {
		t.Error(d)
	}
	start := set(t, Hook{Name: "gate", On: RunStart, Command: "echo closed >&2; exit 2"})
	if d := cmp.Diff(Answer{Decision: Deny, Hook: "gate", Reason: "closed"}, run(t, start, Input{Event: RunStart})); d != "" {
		t.Error(d)
	}
	end := set(t, Hook{Name: "bell", On: RunEnd, Command: "exit 2"})
	if d := cmp.Diff(Answer{Warnings: []string{"the hook bell failed: exit code 2: it gave no reason"}}, run(t, end, Input{Event: RunEnd})); d != "" {
		t.Error(d)
	}
}

func TestWhatAHookReads(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-secret")
	s := set(t, Hook{Name: "log", On: AfterTool, Command: `cat > seen.json; echo "$ANTHROPIC_API_KEY$ROOST_ROOT" > env; pwd > dir`})
	text, failed := "made", true
	run(t, s, Input{Event: AfterTool, Tool: "write_to_file", Kind: "write", Call: "c1", Input: json.RawMessage(`{"path":"a"}`), Result: &text, IsError: &failed})
	got, err := os.ReadFile(filepath.Join(s.Workspace, "seen.json"))
	want := `{"event":"after_tool","hook":"log","task_id":"T","run_id":"R","workspace":"` + s.Workspace + `","tool":"write_to_file",` +
		`"kind":"write","call_id":"c1","input":{"path":"a"},"result":"made","is_error":true}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("got %s %v, want %s", got, err, want)
	}
	if env, _ := os.ReadFile(filepath.Join(s.Workspace, "env")); string(env) != "\n" {
		t.Errorf("got the environment %q, want no key of a provider", env)
	}
	if left, _ := os.ReadDir(s.Spool); len(left) > 0 {
		t.Errorf("got %d files left, want none", len(left))
	}
	// A hook that does not read a long document does not block the call.
	huge := strings.Repeat("x", 4<<20)
	s.Hooks[0].Command = "true"
	run(t, s, Input{Event: AfterTool, Tool: "x", Result: &huge, IsError: &failed})
}

// A hook that takes too long is ended with all it started, and so is one whose run is cancelled.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	slow := before("sleep 1000 & echo $! > child; sleep 1000")
	slow.Timeout = 300 * time.Millisecond
	s := set(t, slow)
	if a := run(t, s, Input{Event: BeforeTool}); len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], "it was ended after 300ms, its time limit") {
		t.Errorf("got %+v, want a warning about the time limit", a)
	}
	if left := shell.FindMarked(s.Mark); len(left) > 0 {
		t.Errorf("got %v, want no process left", left)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	watched := before("echo > begun; sleep 1000")
	s = set(t, watched)
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(s.Workspace, "begun")); err == nil {
				cancel(enough)
			}
		}
	}()
	if _, err := s.Run(ctx, Input{Event: BeforeTool}, plain); !errors.Is(err, enough) {
		t.Errorf("got %v, want the context's cause", err)
	}
	if left := shell.FindMarked(s.Mark); len(left) > 0 {
		t.Errorf("got %v, want no process left", left)
	}
	// The end of a cancelled run still has its hooks.
	s = set(t, Hook{Name: "bell", On: RunEnd, Command: "touch rung"})
	if _, err := s.Run(ctx, Input{Event: RunEnd}, plain); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(s.Workspace, "rung")); err != nil {
		t.Error("the hook of a cancelled run did not run")
	}
}

func TestSecretsOfAHookAreMasked(t *testing.T) {
	t.Parallel()
	s := set(t, before("echo the key is hunter2 >&2; exit 2"))
	a, err := s.Run(t.Context(), Input{Event: BeforeTool}, func(text string) string { return strings.ReplaceAll(text, "hunter2", "[key]") })
	if err != nil || a.Reason != "the key is [key]" {
		t.Errorf("got %+v %v, want a masked reason", a, err)
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for pattern, tools := range map[string]map[string]bool{
		"":                                  {"read_file/read": true, "mcp--a--b/mcp": true},
		"*":                                 {"read_file/read": true},
		"execute_command":                   {"execute_command/command": true, "read_file/read": false},
		"write | command":                   {"execute_command/command": true, "apply_diff/write": true, "read_file/read": false},
		"mcp--github--*|web_*":              {"mcp--github--push/mcp": true, "mcp--gitlab--push/mcp": false, "web_fetch/web": true},
		"execute_command|mcp--[a-c]--write": {"mcp--b--write/mcp": true, "mcp--d--write/mcp": false},
	} {
		for which, want := range tools {
			name, kind, _ := strings.Cut(which, "/")
			s := &Set{Hooks: []Hook{{On: BeforeTool, Tool: pattern, Command: "x"}}}
			if got := s.Covers(Input{Event: BeforeTool, Tool: name, Kind: kind}); got != want {
				t.Errorf("%q covers %s: got %v, want %v", pattern, which, got, want)
			}
			if s.Covers(Input{Event: AfterTool, Tool: name, Kind: kind}) {
				t.Errorf("%q covers another event", pattern)
			}
		}
	}
	var none *Set
	if none.Covers(Input{Event: RunStart}) {
		t.Error("no set covers an event")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := Hook{Name: "a", On: BeforeTool, Command: "true"}
	for problem, change := range map[string]func(*Hook){
		"":                                    func(h *Hook) { h.Tool, h.Failure, h.Timeout = "read_file|mcp--*", Deny, MaxTimeout },
		"it has no command":                   func(h *Hook) { h.Command = " " },
		"its on must be one of":               func(h *Hook) { h.On = "PreToolUse" },
		"its on_failure must be one of":       func(h *Hook) { h.Failure = "stop" },
		"its on_failure deny does not fit":    func(h *Hook) { h.On, h.Failure = AfterTool, Deny },
		"its on_failure ask does not fit":     func(h *Hook) { h.On, h.Failure = RunStart, Ask },
		"its timeout must be at most 10m0s":   func(h *Hook) { h.Timeout = time.Hour },
		`its tool "read_file|" is no pattern`: func(h *Hook) { h.Tool = "read_file|" },
		`its tool "mcp--[" is no pattern`:     func(h *Hook) { h.Tool = "mcp--[" },
	} {
		h := good
		change(&h)
		if got := h.Check(); !strings.HasPrefix(got, problem) || (got == "") != (problem == "") {
			t.Errorf("%+v: got %q, want %q", h, got, problem)
		}
	}
}
