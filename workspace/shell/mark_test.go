//go:build linux

package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// TestKilledBeforeTheRecord is the gap between a command's start and the note of
// its number: all that is known afterwards is the mark.
func TestKilledBeforeTheRecord(t *testing.T) {
	for _, line := range []string{
		"sleep 300",
		"setsid sleep 300 & exec sleep 0.05",
		"(setsid sh -c '(setsid sleep 300 &); sleep 300' &); sleep 300",
		"trap '' TERM; while :; do sleep 1; done",
		"env -i sleep 300 & sleep 300",
		"kill -STOP $$",
		"while :; do sleep 0.01 & done",
	} {
		t.Run(line, func(t *testing.T) {
			mark := NewMark()
			engine(t, line, mark, true)
			fixture.Eventually(t, "the survivor is found", func() bool { return len(FindMarked(mark)) > 0 })
			found, err := EndMarked(t.Context(), mark)
			if err != nil || len(found) == 0 || found[0].PID <= 1 || found[0].Name == "" {
				t.Errorf("EndMarked: %+v, %v", found, err)
			}
			if left := FindMarked(mark); len(left) > 0 {
				t.Errorf("still there: %+v", left)
			}
			if found, err := EndMarked(t.Context(), mark); found != nil || err != nil {
				t.Errorf("the second time: %+v, %v", found, err)
			}
		})
	}
}

// start runs a program with exactly this environment until the test ends.
func start(t *testing.T, env []string, name string, args ...string) int {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

func TestOnlyTheWholeMarkInItsOwnVariableCounts(t *testing.T) {
	mark := NewMark()
	for name, env := range map[string]string{
		"another mark":       markVar + "=" + NewMark(),
		"longer":             markVar + "=" + mark + "X",
		"another variable":   "OTHER=" + mark,
		"a variable's tail":  "X" + markVar + "=" + mark,
		"inside a value":     "OTHER=" + markVar + "=" + mark,
		"an element's tail":  markVar + "=x" + mark + ",y",
		"blanks in the list": markVar + "=x, " + mark,
	} {
		pid := start(t, []string{env}, "/bin/sleep", "300", "0."+fmt.Sprint(len(name)))
		if found := FindMarked(mark); found != nil {
			t.Errorf("%s: %d is taken for %+v", name, pid, found)
		}
	}
	pid := start(t, []string{"A=b", markVar + "=outer," + mark + ",inner", "C=d"}, "/bin/sleep", "300")
	if found := FindMarked(mark); len(found) != 1 || found[0].PID != pid || found[0].Name != "sleep" {
		t.Errorf("found %+v, want %d", found, pid)
	}
	for _, bad := range []string{"", ",", mark + ",", "a=b", strings.Repeat("m", 200), "a\x00b"} {
		if found := FindMarked(bad); found != nil {
			t.Errorf("%.10q finds %+v", bad, found)
		}
	}
}

// A session whose leader is not ours stays, though something of ours runs in it:
// somebody started our program there.
func TestSessionOfAStranger(t *testing.T) {
	mark := NewMark()
	shell := start(t, []string{"PATH=" + os.Getenv("PATH")}, "/bin/sh", "-c", markVar+"="+mark+" sleep 300 & sleep 301 & wait")
	fixture.Eventually(t, "the marked child runs", func() bool { return len(FindMarked(mark)) == 1 })
	if found, err := EndMarked(t.Context(), mark); err != nil || len(found) != 1 {
		t.Errorf("EndMarked: %+v, %v", found, err)
	}
	if s, ok := readStat(shell); !ok || s.dead() {
		t.Error("the stranger's shell was ended")
	}
}

func TestCommandInsideACommandBelongsToBoth(t *testing.T) {
	outer, inner := NewMark(), NewMark()
	t.Setenv(markVar, outer)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	looked := false
	res, err := Run(ctx, Command{Line: "echo go; exec sleep 300", Dir: "/", Mark: inner, Output: &trigger{word: "go", call: func() {
		looked = true
		for _, mark := range []string{outer, inner} {
			if found := FindMarked(mark); len(found) != 1 {
				t.Errorf("by %s: %+v", mark, found)
			}
		}
		cancel()
	}}})
	if err != nil || !res.Cancelled || !looked {
		t.Errorf("got %+v, %v, want no error and res.Cancelled and looked", res, err)
	}
}

const insideMark = "SHELL_TEST_INSIDE"

// lookFromInside is a Roost that was itself started by a marked command: it must
// not end itself, nor the shell it lives in, but what stands beside it.
func lookFromInside() {
	found, err := EndMarked(context.Background(), os.Getenv(insideMark))
	for _, m := range found {
		fmt.Printf("%s ", m.Name)
	}
	fmt.Println(err)
}

// spared allows a child that is still a shell: it becomes what it is to run a moment later.
var spared = regexp.MustCompile(`^(sleep|\w*sh) <nil>\nalive\n$`)

func TestEndMarkedSparesItself(t *testing.T) {
	mark := NewMark()
	var out bytes.Buffer
	// The variable is set by hand: Environ lets none of ours through.
	line := fmt.Sprintf("sleep 300 & %s=%s %s; echo alive", insideMark, mark, os.Args[0])
	res, err := Run(t.Context(), Command{Line: line, Dir: "/", Mark: mark, Output: &out})
	if err != nil || !spared.MatchString(out.String()) || res.Exit != 0 {
		t.Errorf("printed %q, %+v, %v", out.String(), res, err)
	}
}

func TestEndMarkedAndACallerWhoGivesUp(t *testing.T) {
	mark := NewMark()
	engine(t, "sleep 300", mark, true)
	fixture.Eventually(t, "the survivor is found", func() bool { return len(FindMarked(mark)) > 0 })
	why := errors.New("no more time")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if found, err := EndMarked(ctx, mark); !errors.Is(err, why) || len(found) == 0 {
		t.Errorf("got %+v, %v, want errors.Is(err, why) and len(found) != 0", found, err)
	}
	if left := FindMarked(mark); len(left) > 0 {
		t.Errorf("what was begun was not finished: %+v", left)
	}
}

func ExampleEndMarked() {
	mark := NewMark()
	// Recorded here, before the start. Then the engine dies, and a later one asks:
	found, err := EndMarked(context.Background(), mark)
	fmt.Println(len(found), err)
	// Output: 0 <nil>
}

func TestNewMarksAreUsableAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		mark := NewMark()
		if !usableMark(mark) || seen[mark] || !marked(markVar+"=x,"+mark, mark) {
			t.Fatalf("%q cannot be told apart", mark)
		}
		seen[mark] = true
	}
}
