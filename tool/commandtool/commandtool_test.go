//go:build linux

package commandtool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/shell"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type output struct {
	bytes.Buffer
	n       int64
	process tool.Process
	cancel  func()
}

func (o *output) Started(p tool.Process) { o.process = p }
func (o *output) Write(p []byte) (int, error) {
	o.n += int64(len(p))
	if o.cancel != nil {
		o.cancel()
	}
	if o.Len() < 1<<20 {
		return o.Buffer.Write(p)
	}
	return len(p), nil
}

func setup(t *testing.T) tool.Env {
	t.Helper()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return tool.Env{Workspace: ws, SpoolDir: t.TempDir(), ArtifactID: func() string { return "cmd-17.txt" }}
}

func input(t *testing.T, v map[string]any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func do(t *testing.T, env tool.Env, out *output, v map[string]any) tool.Result {
	t.Helper()
	p, err := New().Plan(t.Context(), env, input(t, v))
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Run(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestText(t *testing.T) {
	env := setup(t)
	root := env.Workspace.Root()
	if err := os.Mkdir(filepath.Join(root, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	begin := func(dir string) string {
		return "Command executed in terminal within working directory '" + dir + "'. "
	}
	tests := []struct {
		name string
		in   map[string]any
		want string
		exit int
	}{
		{"success", map[string]any{"command": "echo a", "cwd": nil, "timeout": nil}, begin(root) + "Exit code: 0\nOutput:\na\n", 0},
		{"missing keys", map[string]any{"command": "echo a"}, begin(root) + "Exit code: 0\nOutput:\na\n", 0},
		{"failure", map[string]any{"command": "echo a; exit 3"}, begin(root) + "Exit code: 3\nThe command did not succeed: find out why before you continue.\nOutput:\na\n", 3},
		{"folder", map[string]any{"command": "pwd", "cwd": "sub"}, begin(root+"/sub") + "Exit code: 0\nOutput:\n" + root + "/sub\n", 0},
		{"cleaned", map[string]any{"command": `printf '\033[31mred\033[0m 1%%\r2%%\nab\bc\0\n'`}, begin(root) + "Exit code: 0\nOutput:\n2%d 1%\nac\n", 0},
		{"bad bytes", map[string]any{"command": `printf 'a\377b'`}, begin(root) + "Exit code: 0\nOutput:\na\ufffdb", 0},
		{"repeats", map[string]any{"command": `for i in 1 2 3 4 5; do echo waiting for the server; done`}, begin(root) + "Exit code: 0\nOutput:\nwaiting for the server\n<previous line repeated 4 additional times>\n", 0},
		{"signal", map[string]any{"command": `kill -9 $$`}, begin(root) + "A signal (SIGKILL) ended it. Exit code: 137\nThe command did not succeed: find out why before you continue.\nOutput:\n", 137},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out output
			res := do(t, env, &out, tt.in)
			if res.Text != tt.want || res.Exit == nil || *res.Exit != tt.exit || res.Full != nil || res.IsError {
				t.Errorf("got %+v\nwant %q", res, tt.want)
			}
			if out.process.PGID == 0 || shell.Find(out.process) {
				t.Errorf("process %+v", out.process)
			}
		})
	}
	if left, _ := os.ReadDir(env.SpoolDir); len(left) != 0 {
		t.Errorf("short outputs left files: %v", left)
	}
}

func TestTimeout(t *testing.T) {
	start := time.Now()
	res := do(t, setup(t), &output{}, map[string]any{"command": "echo a; sleep 300", "timeout": 0.2})
	if !res.TimedOut || !strings.Contains(res.Text, "ended after") || !strings.HasSuffix(res.Text, "Output:\na\n") ||
		time.Since(start) > 30*time.Second {
		t.Errorf("%+v after %v", res, time.Since(start))
	}
}

func TestBackgroundIsEndedAndSaid(t *testing.T) {
	res := do(t, setup(t), &output{}, map[string]any{"command": "sleep 300 & echo started"})
	// A child is a shell until it becomes what it is to run.
	if !regexp.MustCompile(`they were ended: (sleep|\w*sh) \(`).MatchString(res.Text) {
		t.Error(res.Text)
	}
}

func TestCancelGivesResultAndError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopped by hand")
	out := &output{cancel: func() { cancel(why) }}
	p, err := New().Plan(ctx, setup(t), input(t, map[string]any{"command": "echo a; sleep 300"}))
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Run(ctx, out)
	if !errors.Is(err, why) || !strings.Contains(res.Text, "cancelled") || !strings.HasSuffix(res.Text, "\na\n") {
		t.Errorf("got %+v, %v", res, err)
	}
	if shell.Find(out.process) {
		t.Error("it lives")
	}
}

func TestLongOutputIsSpooledAndShownInPart(t *testing.T) {
	env := setup(t)
	out := &output{}
	res := do(t, env, out, map[string]any{"command": `i=0; while [ $i -lt 3000 ]; do echo "line $i é"; i=$((i+1)); done; printf '\033[1mend\n'`})
	if res.Full == nil || res.Full.Size != out.n || filepath.Dir(res.Full.Path) != env.SpoolDir {
		t.Fatalf("spool %+v for %d bytes", res.Full, out.n)
	}
	data, err := os.ReadFile(res.Full.Path)
	if err != nil || !bytes.Equal(data, out.Bytes()) {
		t.Fatalf("spool differs from the output: %d bytes, %v", len(data), err)
	}
	if fi, _ := os.Stat(res.Full.Path); fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", fi.Mode())
	}
	for _, want := range []string{"Output (37.0KB) persisted. Artifact ID: cmd-17.txt\n", "\nline 0 é\n", "bytes omitted...]\nline ", "line 2999 é\nend\n"} {
		if !strings.Contains(res.Text, want) {
			t.Errorf("%q is missing in\n%s", want, res.Text)
		}
	}
	if len(res.Text) > maxPreview+600 || !utf8.ValidString(res.Text) {
		t.Errorf("%d bytes of text", len(res.Text))
	}
	env.ArtifactID = nil
	res = do(t, env, &output{}, map[string]any{"command": "head -c 50000 /dev/zero | tr '\\0' é"})
	if strings.Contains(res.Text, "Artifact") || res.Full == nil || !utf8.ValidString(res.Text) {
		t.Errorf("without an artifact: %.300s", res.Text)
	}
}

func TestFloodInBoundedMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	res := do(t, setup(t), &output{}, map[string]any{"command": "yes 'some line of output' | head -c 100000000"})
	runtime.ReadMemStats(&after)
	if res.Full == nil || res.Full.Size != 100_000_000 {
		t.Fatalf("got %+v, want res.Full != nil and res.Full.Size = 100_000_000", res.Full)
	}
	grown := after.TotalAlloc - before.TotalAlloc
	if grown > 16<<20 {
		t.Errorf("%d bytes allocated", grown)
	}
	t.Logf("100 MB kept in %v, %d KB allocated in all", time.Since(start), grown>>10)
}

func TestAskAndMistakes(t *testing.T) {
	env := setup(t)
	outside := t.TempDir()
	for cwd, want := range map[string]bool{".": false, "": false, outside: true, "..": true} {
		p, err := New().Plan(t.Context(), env, input(t, map[string]any{"command": "ls\nls", "cwd": cwd}))
		if err != nil {
			t.Fatal(err)
		}
		title := "execute_command\n    ls\n    ls"
		if want {
			title = strings.Replace(title, "\n", " «in "+p.Ask().Dir+"»\n", 1)
		}
		if a := p.Ask(); a.Outside != want || a.Kind != "command" || a.Text != "ls\nls" || a.Command != a.Text || a.Title != title || !filepath.IsAbs(a.Dir) {
			t.Errorf(`%q: got %+v, want a.Outside = %v and a.Kind = "command" and a.Text = "ls\nls" and a.Command = a.Text and a.Title = title and filepath.IsAbs(a.Dir)`,
				cwd, a, want)
		}
	}
	for _, in := range []string{``, `[]`, `{}`, `{"command":" "}`, `{"command":1}`, `{"command":"a\u0000b"}`, `{"command":"a","cwd":1}`, `{"command":"a","timeout":"1"}`, `{"command":"a","timeout":-1}`, `{"command":"a","cwd":"a\u0000"}`} {
		_, err := New().Plan(t.Context(), env, json.RawMessage(in))
		var wrong *tool.InputError
		if !errors.As(err, &wrong) || wrong.Reason == "" {
			t.Errorf("%s: got %v, want errors.As(err, &wrong) and wrong.Reason != \"\"", in, err)
		}
	}
	if s := New().Spec(); s.Replay != tool.Never || s.Class != tool.Command || !esjson.Valid(s.Schema) {
		t.Errorf("got %+v, want s.Replay = tool.Never and s.Class = tool.Command and esjson.Valid(s.Schema)", s)
	}
}

// printer tells the test of the process before the engine dies.
type printer struct{ output }

func (*printer) Started(p tool.Process) {
	b, _ := json.Marshal(p)
	fmt.Println(string(b))
}

func TestKilledEngineLeavesAFindableCommand(t *testing.T) {
	if os.Getenv(failpoint.Env) != "" {
		p, err := New().Plan(t.Context(), setup(t), input(t, map[string]any{"command": "sleep 300"}))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = p.Run(t.Context(), &printer{})
		t.Fatal("not killed")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), failpoint.Env+"=tool.command.started")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the engine ended with %v: %s", err, out)
	}
	var p tool.Process
	line, _, _ := strings.Cut(string(out), "\n")
	if err := json.Unmarshal([]byte(line), &p); err != nil {
		t.Fatal(err)
	}
	if !shell.Find(p) {
		t.Fatal("the command was not found")
	}
	if err := shell.End(t.Context(), p); err != nil || shell.Find(p) {
		t.Fatalf("End: %v", err)
	}
}

func TestCaptureKeepsHeadAndTail(t *testing.T) {
	for size := range 40 {
		for chunk := 1; chunk < 30; chunk++ {
			c := &capture{dir: t.TempDir(), limit: 13}
			all := []byte("0123456789abcdefghijklmnopqrstuvwxyzABCD")[:size]
			for rest := all; len(rest) > 0; {
				n := min(chunk, len(rest))
				if _, err := c.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			head, tail := c.parts()
			spool, err := c.close(false)
			if err != nil {
				t.Fatal(err)
			}
			if size <= 13 {
				if string(head) != string(all) || tail != nil || spool != nil {
					t.Fatalf("size %d chunk %d: %q %q %v", size, chunk, head, tail, spool)
				}
				continue
			}
			if string(head) != string(all[:6]) || string(tail) != string(all[size-7:]) || spool.Size != int64(size) {
				t.Fatalf("size %d chunk %d: %q %q %v", size, chunk, head, tail, spool)
			}
			if kept, _ := os.ReadFile(spool.Path); !bytes.Equal(kept, all) {
				t.Fatalf("size %d chunk %d: kept %q", size, chunk, kept)
			}
		}
	}
}

func TestFullDiskIsAnError(t *testing.T) {
	env := setup(t)
	env.SpoolDir = filepath.Join(env.SpoolDir, "missing")
	p, err := New().Plan(t.Context(), env, input(t, map[string]any{"command": "head -c 100000 /dev/zero"}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(t.Context(), &output{}); err == nil {
		t.Error("an output that could not be kept was reported as whole")
	}
}
