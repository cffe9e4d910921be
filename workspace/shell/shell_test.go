//go:build linux

package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Environment of a test process that plays an engine: it runs one line, and tells
// of the process or dies at once.
const (
	engineLine = "SHELL_TEST_LINE"
	engineMark = "SHELL_TEST_MARK"
	engineDies = "SHELL_TEST_DIES"
)

func TestMain(m *testing.M) {
	if os.Getenv(engineLine) != "" {
		playEngine()
		return
	}
	if os.Getenv(insideMark) != "" {
		lookFromInside()
		return
	}
	if os.Getenv(headless) != "" {
		endFirstThread()
		return
	}
	goleak.VerifyTestMain(m)
}

func playEngine() {
	_, _ = Run(context.Background(), Command{Line: os.Getenv(engineLine), Dir: "/", Mark: os.Getenv(engineMark), Started: func(p Process) {
		if os.Getenv(engineDies) != "" {
			me, _ := os.FindProcess(os.Getpid())
			_ = me.Kill()
			select {}
		}
		fmt.Printf("%d %d %s %s\n", p.PGID, p.Started, p.Boot, p.Mark)
	}})
}

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
	if Find(p) || len(FindMarked(p.Mark)) > 0 {
		t.Fatalf("%q is said to be alive", c.Line)
	}
	return res, out.String()
}

// within does something that must be over in a time. That a busy machine was late is no
// finding; to be late each time, begun anew, is one.
func within(t *testing.T, bar time.Duration, once func() time.Duration) {
	t.Helper()
	var took []time.Duration
	for len(took) < 8 && !t.Failed() {
		d := once()
		if took = append(took, d); d <= bar {
			return
		}
	}
	t.Errorf("it took %v, allowed are %v", took, bar)
}

// trigger calls a function when a word has been printed.
type trigger struct {
	word string
	call func()

	mu   sync.Mutex
	seen strings.Builder
	done bool
}

func (w *trigger) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done {
		w.seen.Write(p)
		if strings.Contains(w.seen.String(), w.word) {
			w.done = true
			w.call()
		}
	}
	return len(p), nil
}

func TestRunEnds(t *testing.T) {
	tests := []struct {
		name, line, out, signal string
		exit                    int
		ended                   bool
	}{
		{name: "success", line: "echo a; echo b >&2; echo c", out: "a\nb\nc\n"},
		{name: "exit code", line: "exit 7", exit: 7},
		{name: "largest exit code", line: "exit 255", exit: 255},
		{name: "not found", line: "no-such-program-here 2>/dev/null", exit: 127},
		{name: "not executable", line: "/etc/passwd 2>/dev/null", exit: 126},
		{name: "syntax error", line: "if then 2>/dev/null", out: "*", exit: 2},
		{name: "killed", line: "kill -9 $$", exit: 137, signal: "SIGKILL"},
		{name: "crashed", line: "kill -SEGV $$", exit: 139, signal: "SIGSEGV"},
		{name: "ended itself", line: "kill -TERM $$", exit: 143, signal: "SIGTERM"},
		{name: "a child was killed", line: "sh -c 'kill -9 $$'", out: "*", exit: 137, signal: "*"},
		{name: "stdin is closed", line: "cat; read x || echo done", out: "done\n"},
		{name: "no terminal", line: "(: </dev/tty) 2>/dev/null || echo none", out: "none\n"},
		{name: "several lines", line: "a=1\n# a remark\necho $a\n", out: "1\n"},
		{name: "nothing to do", line: "# nothing"},
		{name: "background child is ended", line: "sleep 300 & echo x", out: "x\n", ended: true},
		{name: "background child without the pipe", line: "sleep 300 >/dev/null 2>&1 & echo x", out: "x\n", ended: true},
		{name: "own session", line: "setsid sleep 300 & sleep 0.1; echo x", out: "x\n", ended: true},
		{name: "daemon that forked twice", line: "(setsid sh -c 'sleep 300 & sleep 300' >/dev/null 2>&1 &); sleep 0.1; echo x", out: "x\n", ended: true},
		{name: "cleared environment", line: "env -i sleep 300 & echo x", out: "x\n", ended: true},
		{name: "no hang-up", line: "nohup sleep 300 >/dev/null 2>&1 & echo x", out: "x\n", ended: true},
		{name: "child that ignores SIGTERM", line: "(trap '' TERM; echo set; sleep 300) & echo x", out: "*", ended: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			within(t, 2*time.Second, func() time.Duration {
				start := time.Now()
				res, out := run(t, t.Context(), Command{Line: tt.line})
				took := time.Since(start)
				if tt.out != "*" && out != tt.out || res.Exit != tt.exit || tt.signal != "*" && res.Signal != tt.signal || (len(res.Ended) > 0) != tt.ended {
					t.Errorf("got %q %+v, want %q exit %d signal %q ended %v", out, res, tt.out, tt.exit, tt.signal, tt.ended)
				}
				if res.TimedOut || res.Cancelled || res.PipeHeld || len(res.Survivors) > 0 {
					t.Errorf("unexpected end: %+v", res)
				}
				if res.Duration > took {
					t.Errorf("took %v, and says %v", took, res.Duration)
				}
				return took
			})
		})
	}
}

// A child that is about to end gets the chance, and then nothing is said of it.
// How long that may take is a matter of load, so it may be ended, too, even between its
// last word and its end; but what was cut is told.
func TestShortBackgroundWorkIsNotCut(t *testing.T) {
	res, out := run(t, t.Context(), Command{Line: "(sleep 0.01; echo late) & echo x"})
	if complete := strings.Contains(out, "late\n"); !complete && len(res.Ended) == 0 {
		t.Errorf("printed %q and reports %+v", out, res)
	}
}

func TestOutputKeepsItsOrder(t *testing.T) {
	_, out := run(t, t.Context(), Command{Line: "i=0; while [ $i -lt 200 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done"})
	var want strings.Builder
	for i := range 200 {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
	}
	if out != want.String() {
		t.Errorf("stdout and stderr are mixed up: %.200q", out)
	}
}

func TestStartedComesBeforeOutput(t *testing.T) {
	var order []string
	record := writerFunc(func(p []byte) (int, error) {
		order = append(order, "output")
		return len(p), nil
	})
	dir := t.TempDir()
	run(t, t.Context(), Command{Line: "while ! [ -e told ]; do sleep 0.01; done; echo x", Dir: dir, Output: record, Started: func(p Process) {
		if !Find(p) {
			t.Error("what was started is not there")
		}
		order = append(order, "started")
		if err := os.WriteFile(filepath.Join(dir, "told"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}})
	if len(order) < 2 || order[0] != "started" {
		t.Errorf("order %v", order)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestWhereItRuns(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(dir, "a b'\"$x\n;é")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	_, out := run(t, t.Context(), Command{Line: `pwd; printf '%s\n' "$PWD"`, Dir: odd})
	if out != odd+"\n"+odd+"\n" {
		t.Errorf("ran in %q", out)
	}
}

func TestWhatCannotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, why string
		c         Command
	}{
		{"missing folder", "no such file", Command{Line: "true", Dir: file + "-gone"}},
		{"a file for a folder", "not a directory", Command{Line: "true", Dir: file}},
		{"below a file", "not a directory", Command{Line: "true", Dir: file + "/x"}},
		{"a line over the kernel's limit", "argument list too long", Command{Line: ": " + strings.Repeat("x", 200_000), Dir: "/"}},
		{"a mark that is two", "cannot be found again", Command{Line: "true", Dir: "/", Mark: "a,b"}},
	} {
		tt.c.Started = func(Process) { t.Errorf("%s: started", tt.name) }
		res, err := Run(t.Context(), tt.c)
		if err == nil || !strings.Contains(err.Error(), tt.why) || res.Exit != -1 {
			t.Errorf("%s: got %+v, %v, want an error and strings.Contains(err.Error(), tt.why) and res.Exit = -1",
				tt.name, res, err)
		}
	}
}

func TestCommandsSideBySideEndOnlyTheirOwn(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var out bytes.Buffer
			line := fmt.Sprintf("setsid sleep 300 >/dev/null 2>&1 & (sleep 0.%d; echo mine) & wait %%2; echo end", i+1)
			res, err := Run(t.Context(), Command{Line: line, Dir: "/", Output: &out})
			if err != nil || res.Exit != 0 || out.String() != "mine\nend\n" || len(res.Ended) == 0 {
				t.Errorf("%q: got %+v, %v, want no error and res.Exit = 0 and out.String() = \"mine\\nend\\n\" and len(res.Ended) != 0",
					out.String(), res, err)
			}
		}()
	}
	wg.Wait()
}

func ExampleRun() {
	res, err := Run(context.Background(), Command{Line: "echo hello; exit 3", Dir: "/", Output: os.Stdout})
	fmt.Println(res.Exit, err)
	// Output:
	// hello
	// 3 <nil>
}

// engine starts a test process that runs line under mark, and gives what it says
// of the process. The engine is dead when this returns.
func engine(t *testing.T, line, mark string, dies bool) Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), engineLine+"="+line, engineMark+"="+mark)
	if dies {
		cmd.Env = append(cmd.Env, engineDies+"=1")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var p Process
	if dies {
		_, _ = io.Copy(io.Discard, out)
	} else if _, err := fmt.Fscan(out, &p.PGID, &p.Started, &p.Boot, &p.Mark); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return p
}
