package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

func TestFailuresAreThreeLines(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		f    failure.Failure
		want string
	}{
		{"what, why, what to do", failure.Failure{What: "find the task", Why: "there is none", Try: "roost list"},
			"roost: find the task\n  there is none\n  try: roost list\n"},
		{"nothing can be done", failure.Failure{What: "a", Why: "b"}, "roost: a\n  b\n"},
		{"one suggestion stands in the last line already", failure.Failure{What: "a", Why: "b", Try: "roost list", Suggestions: []string{"roost list"}},
			"roost: a\n  b\n  try: roost list\n"},
		{"several are listed", failure.Failure{What: "a", Why: "b", Try: "roost show x:1", Suggestions: []string{"x:1", "y:1"}},
			"roost: a\n  b\n  try: roost show x:1\n    x:1\n    y:1\n"},
		{"a reason over lines is one", failure.Failure{What: "a", Why: "b\n\n  c", Try: "d"}, "roost: a\n  b c\n  try: d\n"},
		{"hostile texts", failure.Failure{What: "a\x1b[2J", Why: "b\x1b]0;x\ac", Try: "d\x1b[1m", Suggestions: []string{"e\x9b1m", "f\x07"}},
			"roost: a\n  bc\n  try: d\n    e\n    f\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, out, errs := clitest.New(t)
			a.Tell(&tt.f)
			got := errs.String()
			if strings.ContainsAny(got, "\x1b\x07\u009b") {
				t.Errorf("an escape got through: %q", got)
			}
			if tt.name != "hostile texts" && got != tt.want || out.Len() > 0 {
				t.Errorf("stderr %q, want %q; stdout %q", got, tt.want, out)
			}
		})
	}
}

func TestFailuresAsProblems(t *testing.T) {
	t.Parallel()
	a, _, errs := clitest.New(t)
	a.Flags.JSON = true
	a.Tell(&failure.Failure{Exit: 14, Code: "task_busy", Status: 409, What: "own <it>", Why: "line\nbreak \x1b[2J", Try: "roost show", Task: "id", Suggestions: []string{"x"}, Retryable: true})
	want := api.Problem{Type: "about:blank#task_busy", Title: "own <it>", Status: 409, Code: "task_busy", Detail: "line\nbreak \x1b[2J", Task: "id",
		Suggestions: []string{"roost show", "x"}, Retryable: true}
	var got api.Problem
	if err := json.Unmarshal(errs.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || strings.Count(errs.String(), "\n") != 1 || strings.Contains(errs.String(), "\x1b") {
		t.Errorf(`%q: got %s, want diff = "" and strings.Count(errs.String(), "\n") = 1 and not strings.Contains(errs.String(), "\x1b")`,
			errs, diff)
	}
	errs.Reset()
	a.Tell(&failure.Failure{Code: "x"})
	if !strings.Contains(errs.String(), `"suggestions":[]`) {
		t.Errorf("no suggestions are an empty list: %s", errs)
	}
}

// Whatever words somebody types, the end is an exit code of the table, stdout
// holds no error, and an error is said in the form that was asked for.
func TestAnyCommandLineEndsOrderly(t *testing.T) {
	t.Parallel()
	known := map[int]bool{}
	for _, c := range failure.Codes {
		known[c.Code] = true
	}
	words := []string{
		"list", "show", "doctor", "resume", "continue", "run", "config", "get", "set", "help", "version", "approvals", "test", "completion", "bash",
		"--json", "--tail", "-1", "0", "x", "--sort", "cost", "--limit", "--before", "#3", "--ui", "--api", "--journal", "--", "-q", "-v", "--yes",
		"--status", "idle", "--since", "7d", "--max-turns", "--image", "-C", "/nonexistent", "--approve", "ask", "--task", "--nosuch", "", "-", "~1", "a:b",
	}
	root := t.TempDir()
	// Not with rapid: each of the thousands of processes that the tests here start would pay for its initialization.
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		args := make([]string, random.IntN(7))
		for i := range args {
			args[i] = words[random.IntN(len(words))]
		}
		a, out, errs := clitest.New(t, "ROOST_ROOT="+root)
		code := Run(context.Background(), a, args)
		if !known[code] {
			t.Fatalf("%q: exit code %d", args, code)
		}
		if code == failure.ExitDone {
			continue
		}
		if strings.Contains(out.String(), "roost: ") {
			t.Fatalf("%q: an error on stdout: %s", args, out)
		}
		if a.Flags.JSON {
			lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
			var p api.Problem
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &p); err != nil || p.Code == "" || p.Title == "" {
				t.Fatalf("%q: no problem object: %s", args, errs)
			}
			continue
		}
		if lines := strings.Split(errs.String(), "\n"); !strings.Contains(errs.String(), "roost: ") || len(lines) < 3 {
			t.Fatalf("%q: exit %d without three lines: %q", args, code, errs)
		}
		if code == failure.ExitFailed {
			t.Fatalf("%q: it only failed: %s", args, errs)
		}
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("a mistake wrote into the root: %v, %v", left, err)
	}
}

func TestReaderGone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("print: %w", &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}), true},
		{io.ErrClosedPipe, true}, {syscall.ENOSPC, false}, {errors.New("x"), false}, {nil, false},
	} {
		if got := app.ReaderGone(tt.err); got != tt.want {
			t.Errorf("%v: got %v, want got = %v", tt.err, got, tt.want)
		}
	}
}

// An id, a title and a folder that attack the terminal lose their teeth in every
// place where a person reads them.
func TestHostileNamesAreHarmless(t *testing.T) {
	t.Parallel()
	const evil = "x\x1b[2J\x1b]0;owned\a\u009b31m\u202etxt"
	a, out, errs := clitest.New(t)
	items := []api.Summary{{
		ID: evil, Source: "s", Path: "/p", Title: evil, Workspace: "/" + evil, Status: "idle", TS: 1,
		Damaged: []api.Damage{{File: evil, Problem: evil, Recovered: evil}}, Provider: evil, Mode: evil,
	}}
	names := map[string]string{"s:" + evil: evil}
	a.Table(items, []int{0}, names, nil)
	a.SumUp(api.Found{Sources: []api.SourceState{{Name: evil, Path: evil}}}, 0)
	a.Warn(evil)
	for name, text := range map[string]string{"stdout": out.String(), "stderr": errs.String()} {
		if strings.ContainsAny(text, "\x1b\a\u009b\u202e") {
			t.Errorf("%s: got %q, want not strings.ContainsAny(text, \"\\x1b\\a\\u009b\\u202e\")", name, text)
		}
	}
}
