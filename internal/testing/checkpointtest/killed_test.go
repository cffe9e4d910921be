package checkpointtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli"
	"github.com/roost-dev/roost/internal/failpoint"
)

// childVar makes this test's program roost itself, so that it can be killed.
const childVar = "ROOST_CHECKPOINT_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		os.Exit(cli.Main())
	}
	os.Exit(m.Run())
}

// child runs one command line in a process that is killed at a place, if it gets there.
func (w *world) child(point string, args ...string) (killed bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"--no-input"}, args...)...)
	cmd.Dir = w.ws
	cmd.Env = []string{childVar + "=1", failpoint.Env + "=" + point}
	for k, v := range w.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, is := exit.Sys().(syscall.WaitStatus)
		killed = is && status.Signaled() && status.Signal() == syscall.SIGKILL && ctx.Err() == nil
	}
	w.note("roost %s  killed at %s: %t", strings.Join(args, " "), point, killed)
	if err != nil && !killed {
		w.fatalf("%v: %s", err, out)
	}
	return killed
}

// killed lets a restore, or a rewind with files, be killed anywhere on its way. A person
// goes on working meanwhile, also on a file that is being put back. Who works on the task
// next finishes it; and all of it can be taken back. back tells stands whether histories
// went back too.
func (w *world) killed(r *rand.Rand, j *job, args []string, before Tree, want Plan, stands func(what string, want Tree, back bool)) {
	w.t.Helper()
	n := 1 + r.IntN(len(want.Changed))
	point := pick(r, []string{
		"restore.before", "restore.begun", fmt.Sprint("restore.placing:", n), fmt.Sprint("restore.applied-one:", n), fmt.Sprint("restore.applied-one:", n),
		"restore.applied-all", "restore.applied", "restore.ended",
	})
	killed := w.child(point, args...)
	begun := point != "restore.before"
	if got := w.restoring(); got != (killed && begun && point != "restore.ended") {
		w.fatalf("killed at %s, and restoring is %t", point, got)
	}
	now, after := before.Clone(), want.After.Clone()
	theirs := func(path string) {
		w.note("the user writes %q", path)
		text := file(w.text())
		w.put(path, text)
		now[path], after[path] = text, text
	}
	theirs("mine/meanwhile.txt")
	changed := slices.Clone(want.Changed)
	if at := r.IntN(len(changed)); killed && begun && point != "restore.ended" && r.IntN(2) == 0 && plain(now[changed[at]]) && plain(after[changed[at]]) {
		theirs(changed[at])
		changed = slices.Delete(changed, at, at+1)
		w.did.left++
	}
	w.did.killed++
	if !begun {
		stands("a kill before anything", now, false)
		return
	}
	moves := []moved{{want.Changed, changed, before, after}}
	if r.IntN(2) == 0 {
		w.must(nil, "checkpoint", "save", j.id, "--json")
		stands("a kill, and its end", after, true)
		w.took(j, moves...)
		moves = nil
	}
	w.must(nil, "undo", j.id, "--json")
	stands("a kill, its end and undo", now, false)
	w.took(j, append(moves, moved{changed, changed, after, now})...)
	w.settled()
}

func plain(n Node) bool { return n != Node{} && !n.Link }

// restoring reports whether some task is between the intent of a restore and its outcome.
func (w *world) restoring() bool {
	w.t.Helper()
	return strings.Contains(w.must(nil, "list", "--json").out, `"restoring"`)
}

func (w *world) settled() {
	w.t.Helper()
	if w.restoring() {
		w.fatalf("a task is still restoring")
	}
}
