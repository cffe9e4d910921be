//go:build linux

package shell

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

func TestCancelEndsEverythingWithinTwoSeconds(t *testing.T) {
	for _, line := range []string{
		"echo go; sleep 300",
		"echo go; sleep 300 | sleep 300",
		"trap '' TERM; echo go; while :; do sleep 1; done",
		"trap 'echo not yet' TERM INT HUP; echo go; while :; do sleep 1; done",
		"(trap '' TERM; echo go; sleep 300) & wait",
		"setsid sleep 300 & echo go; wait",
		"(setsid sh -c '(setsid sleep 300 &) ; sleep 300' &); echo go; sleep 300",
		"echo go; kill -STOP $$",
		"echo go; exec yes",
		"echo go; while :; do sleep 0.01 & done",
		"exec 3>&1; (setsid sleep 300 >&3 &); echo go; sleep 300",
		"echo go; exec >/dev/null 2>&1; sleep 300",
	} {
		t.Run(line, func(t *testing.T) {
			within(t, 2*time.Second, func() time.Duration {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var at time.Time
				out := &trigger{word: "go\n", call: func() { at = time.Now(); cancel() }}
				res, _ := run(t, ctx, Command{Line: line, Output: out})
				took := time.Since(at)
				// A shell that waits for what is ended before it may leave in its own way.
				own := res.Exit == 0 && strings.HasSuffix(line, "wait")
				if !res.Cancelled || res.TimedOut || res.Exit == 0 && !own || len(res.Survivors) > 0 {
					t.Errorf("got %+v", res)
				}
				return took
			})
		})
	}
}

func TestTimeout(t *testing.T) {
	dir := t.TempDir()
	ready := func(Process) { // the clock runs from here
		fixture.Eventually(t, "the command is under way", func() bool { return os.Remove(filepath.Join(dir, "ready")) == nil })
	}
	res, out := run(t, t.Context(), Command{Line: "echo before; : >ready; exec sleep 300", Dir: dir, Timeout: 10 * time.Millisecond, Started: ready})
	if !res.TimedOut || res.Cancelled || out != "before\n" || res.Signal != "SIGTERM" || res.Exit != 143 {
		t.Errorf("got %+v %q", res, out)
	}
	res, _ = run(t, t.Context(), Command{Line: "trap 'exit 9' TERM; sleep 300 & : >ready; wait", Dir: dir, Timeout: 10 * time.Millisecond, Started: ready})
	if !res.TimedOut || res.Exit != 9 {
		t.Errorf("a command that ends in its own way: %+v", res)
	}
	if res, _ = run(t, t.Context(), Command{Line: "true", Timeout: time.Minute}); res.TimedOut {
		t.Errorf("a command within its time: %+v", res)
	}
}

func TestCancelledBeforeStartRunsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	res, err := Run(ctx, Command{Line: "touch f", Dir: dir, Started: func(Process) { t.Error("started") }})
	if err != nil || !res.Cancelled {
		t.Fatalf("got %+v, %v", res, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "f")); err == nil {
		t.Error("the command ran")
	}
}

// A cancel that comes while what the shell left behind is being waited for.
func TestCancelWhileSettling(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &trigger{word: "go\n", call: cancel}
	res, _ := run(t, ctx, Command{Line: "sleep 300 & echo go", Output: out})
	if len(res.Survivors) > 0 || !res.Cancelled && len(res.Ended) == 0 {
		t.Errorf("got %+v", res)
	}
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }

func TestFloodIsStreamedInBoundedMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var c counter
	start := time.Now()
	res, _ := run(t, t.Context(), Command{Line: "head -c 100000000 /dev/zero", Output: &c})
	runtime.ReadMemStats(&after)
	if c.n != 100_000_000 || res.Exit != 0 || res.PipeHeld {
		t.Errorf("got %d bytes, %+v", c.n, res)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("allocated %d bytes for 100 MB of output", grown)
	} else {
		t.Logf("100 MB in %v, %d KB allocated in all", time.Since(start), grown>>10)
	}
}

// The last bytes lie in the pipe when the shell is gone; a slow reader gets them.
func TestSlowReaderGetsTheEnd(t *testing.T) {
	var c counter
	slow := writerFunc(func(p []byte) (int, error) {
		time.Sleep(20 * time.Millisecond)
		return c.Write(p)
	})
	res, _ := run(t, t.Context(), Command{Line: "i=0; while [ $i -lt 40 ]; do head -c 1500 /dev/zero; i=$((i+1)); done", Output: slow})
	if c.n != 60_000 || res.PipeHeld {
		t.Errorf("got %d of 60000 bytes, %+v", c.n, res)
	}
}

func TestFailingOutputEndsTheCommand(t *testing.T) {
	full := errors.New("disk full")
	within(t, 2*time.Second, func() time.Duration {
		room := 1 << 20
		out := writerFunc(func(p []byte) (int, error) {
			if room -= len(p); room < 0 {
				return 0, full
			}
			return len(p), nil
		})
		start := time.Now()
		var p Process
		_, err := Run(t.Context(), Command{Line: "yes", Dir: t.TempDir(), Output: out, Started: func(got Process) { p = got }})
		took := time.Since(start)
		if !errors.Is(err, full) {
			t.Errorf("got %v", err)
		}
		if Find(p) {
			t.Error("it goes on")
		}
		return took
	})
}

// A process out of our reach (own session, empty environment) that keeps the pipe
// must not keep us, whether it is silent, writes now and then, or floods.
func TestStrangerWithThePipe(t *testing.T) {
	for name, does := range map[string]string{
		"silent":  "exec sleep 300",
		"trickle": "while :; do echo x; sleep 0.02; done",
		"flood":   "exec yes",
	} {
		t.Run(name, func(t *testing.T) {
			within(t, 3*time.Second, func() time.Duration {
				dir := t.TempDir()
				t.Cleanup(func() { endStranger(t, filepath.Join(dir, "pid")) })
				start := time.Now()
				line := "env -i PATH=$PATH setsid sh -c 'echo $$ >tmp; mv tmp pid; " + does + "' & while ! [ -e pid ]; do sleep 0.01; done; echo out"
				res, err := Run(t.Context(), Command{Line: line, Dir: dir})
				took := time.Since(start)
				if err != nil || res.Exit != 0 || !res.PipeHeld {
					t.Errorf("got %+v, %v", res, err)
				}
				return took
			})
		})
	}
}

func endStranger(t *testing.T, pidFile string) {
	data, err := os.ReadFile(pidFile)
	if err != nil {
		t.Errorf("the stranger left no number: %v", err)
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 {
		t.Fatalf("%q is no process", data)
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}
