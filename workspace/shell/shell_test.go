//go:build linux

package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs a line and fails when anything of it is left, whatever the test is about.
func run(t *testing.T, ctx context.Context, c Command) (Result, string) {
	t.Helper()
	var out bytes.Buffer
	if c.Output == nil {
		c.Output = &out
	}
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	var p Process
	user := c.Started
	c.Started = func(got Process) {
		p = got
		if user != nil {
			user(got)
		}
	}
	res, err := Run(ctx, c)
	if err != nil {
		t.Fatalf("Run(%q): %v", c.Line, err)
	}
	if p.PGID <= 1 || p.Started == 0 || p.Boot == "" || p.Mark == "" {
		t.Fatalf("incomplete identity: %+v", p)
	}
	if left := members(p); len(left) != 0 {
		t.Fatalf("%q left %v behind", c.Line, left)
	}
	if Find(p) {
		t.Fatalf("%q is said to be alive", c.Line)
	}
	return res, out.String()
}

func TestRunEnds(t *testing.T) {
	tests := []struct {
		name, line, out, signal string
		exit                    int
		ended                   bool
	}{
		{name: "success", line: "echo a; echo b >&2; echo c", out: "a\nb\nc\n"},
		{name: "exit code", line: "exit 7", exit: 7},
		{name: "not found", line: "no-such-program-here 2>/dev/null", exit: 127},
		{name: "signal", line: "kill -9 $$", exit: 137, signal: "SIGKILL"},
		{name: "stdin is closed", line: "cat; echo done", out: "done\n"},
		{name: "no terminal", line: "(: </dev/tty) 2>/dev/null || echo none", out: "none\n"},
		{name: "dumb", line: "echo $TERM $PAGER $GIT_PAGER", out: "dumb cat cat\n"},
		{name: "background child is ended", line: "sleep 300 & echo x", out: "x\n", ended: true},
		{name: "background child without the pipe", line: "sleep 300 >/dev/null 2>&1 & echo x", out: "x\n", ended: true},
		{name: "own session", line: "setsid sleep 300 & sleep 0.1; echo x", out: "x\n", ended: true},
		{name: "daemon", line: "(setsid sh -c 'sleep 300 & sleep 300' >/dev/null 2>&1 &); sleep 0.1; echo x", out: "x\n", ended: true},
		{name: "background child that ends by itself", line: "(sleep 0.05; echo late) & echo x", out: "x\nlate\n"},
		{name: "child that ignores SIGTERM", line: "(trap '' TERM; sleep 300) & sleep 0.1; echo x", out: "x\n", ended: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			res, out := run(t, t.Context(), Command{Line: tt.line})
			if out != tt.out || res.Exit != tt.exit || res.Signal != tt.signal || (len(res.Ended) > 0) != tt.ended {
				t.Errorf("got %q %+v, want %q exit %d signal %q ended %v", out, res, tt.out, tt.exit, tt.signal, tt.ended)
			}
			if res.TimedOut || res.Cancelled || res.PipeHeld || len(res.Survivors) > 0 {
				t.Errorf("unexpected end: %+v", res)
			}
			if d := time.Since(start); d > 2*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

func TestCancelEndsEverythingWithinTwoSeconds(t *testing.T) {
	for _, line := range []string{
		"sleep 300",
		"sleep 300 | sleep 300",
		"trap '' TERM; while :; do sleep 1; done",
		"(trap '' TERM; sleep 300) & wait",
		"setsid sleep 300 & wait",
		"kill -STOP $$",
		"yes",
		"while :; do sleep 0.01 & done",
		"exec 3>&1; (setsid sleep 300 >&3 &); sleep 300",
	} {
		t.Run(line, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var at time.Time
			timer := time.AfterFunc(150*time.Millisecond, func() { at = time.Now(); cancel() })
			defer timer.Stop()
			res, _ := run(t, ctx, Command{Line: line})
			if d := time.Since(at); d > 2*time.Second {
				t.Errorf("ended %v after the cancel", d)
			}
			if !res.Cancelled || res.TimedOut || res.Exit == 0 {
				t.Errorf("got %+v", res)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	res, out := run(t, t.Context(), Command{Line: "echo before; sleep 300", Timeout: 100 * time.Millisecond})
	if !res.TimedOut || res.Cancelled || out != "before\n" || res.Signal != "SIGTERM" {
		t.Errorf("got %+v %q", res, out)
	}
}

func TestCancelledBeforeStartRunsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	res, err := Run(ctx, Command{Line: "touch f", Dir: dir})
	if err != nil || !res.Cancelled {
		t.Fatalf("got %+v, %v", res, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "f")); err == nil {
		t.Error("the command ran")
	}
}

func TestMissingDirectory(t *testing.T) {
	if _, err := Run(t.Context(), Command{Line: "true", Dir: filepath.Join(t.TempDir(), "gone")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
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
	if c.n != 100_000_000 || res.Exit != 0 {
		t.Errorf("got %d bytes, %+v", c.n, res)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("allocated %d bytes for 100 MB of output", grown)
	} else {
		t.Logf("100 MB in %v, %d KB allocated in all", time.Since(start), grown>>10)
	}
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	f.after -= len(p)
	if f.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestFailingOutputEndsTheCommand(t *testing.T) {
	start := time.Now()
	_, err := Run(t.Context(), Command{Line: "yes", Dir: t.TempDir(), Output: &failing{1 << 20}})
	if err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got %v", err)
	}
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestKeysOfProvidersDoNotReachCommands(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "secret-1")
	t.Setenv("ROOST_ROOT", "secret-2")
	t.Setenv("GITHUB_TOKEN", "kept")
	_, out := run(t, t.Context(), Command{Line: "env"})
	if strings.Contains(out, "secret-") || !strings.Contains(out, "GITHUB_TOKEN=kept") {
		t.Errorf("environment:\n%s", out)
	}
}

// TestFindAndEndAfterTheEngineDied kills a process that runs a command, and then
// finds and ends the command from here, as a resume does.
func TestFindAndEndAfterTheEngineDied(t *testing.T) {
	if os.Getenv("SHELL_TEST_ENGINE") == "1" {
		_, _ = Run(context.Background(), Command{Line: os.Getenv("SHELL_TEST_LINE"), Dir: "/", Started: func(p Process) {
			fmt.Printf("%d %d %s %s\n", p.PGID, p.Started, p.Boot, p.Mark)
		}})
		return
	}
	for _, line := range []string{"sleep 300", "setsid sleep 300 & exec sleep 0.1", "sleep 300 & trap '' TERM; while :; do sleep 1; done"} {
		t.Run(line, func(t *testing.T) {
			engine := exec.Command(os.Args[0], "-test.run=^TestFindAndEndAfterTheEngineDied$")
			engine.Env = append(os.Environ(), "SHELL_TEST_ENGINE=1", "SHELL_TEST_LINE="+line)
			out, err := engine.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := engine.Start(); err != nil {
				t.Fatal(err)
			}
			var p Process
			if _, err := fmt.Fscan(out, &p.PGID, &p.Started, &p.Boot, &p.Mark); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Millisecond) // let it fork
			_ = engine.Process.Kill()
			_ = engine.Wait()
			time.Sleep(200 * time.Millisecond)
			if !Find(p) {
				t.Fatal("the command that lives on was not found")
			}
			wrong := []Process{p, p, p}
			wrong[0].Started, wrong[0].Mark = p.Started+1, "x"
			wrong[1].Boot = "another"
			wrong[2].PGID, wrong[2].Mark = os.Getpid(), "x"
			for _, w := range wrong {
				if Find(w) {
					t.Errorf("Find(%+v) took another process for the command", w)
				}
			}
			if err := End(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if Find(p) || len(members(p)) > 0 {
				t.Error("still there after End")
			}
			if err := End(t.Context(), p); err != nil {
				t.Errorf("second End: %v", err)
			}
		})
	}
}

func TestParseStatTakesAnyName(t *testing.T) {
	line := "12 (a) R 1 (b) S 1 34 56 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0"
	s, ok := parseStat([]byte(line))
	if !ok || s.name != "a) R 1 (b" || s.state != 'S' || s.group != 34 || s.session != 56 || s.started != 777 {
		t.Errorf("got %+v %v", s, ok)
	}
	for _, bad := range []string{"", "12", "12 (a)", "12 )a( S", "12 (a) S x y z"} {
		if _, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q was taken", bad)
		}
	}
	if s, ok := readStat(os.Getpid()); !ok || s.started == 0 {
		t.Errorf("own stat: %+v %v", s, ok)
	}
}

func TestEnvironIsIndependentOfItsInput(t *testing.T) {
	base := []string{"A=1", "OPENAI_API_KEY=k", "roost_x=2", "PAGER=less", "B=" + strconv.Itoa(2)}
	got := Environ(base)
	if base[3] != "PAGER=less" {
		t.Error("the input was changed")
	}
	joined := strings.Join(got, "\n")
	for _, bad := range []string{"OPENAI", "roost_x", "less"} {
		if strings.Contains(joined, bad) {
			t.Errorf("%s is in %q", bad, joined)
		}
	}
}

func ExampleRun() {
	res, err := Run(context.Background(), Command{Line: "echo hello; exit 3", Dir: "/", Output: os.Stdout})
	fmt.Println(res.Exit, err)
	// Output:
	// hello
	// 3 <nil>
}
