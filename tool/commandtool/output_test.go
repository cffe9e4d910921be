//go:build linux

package commandtool

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/shell"
)

// What programs write for a terminal, and what the model reads of it.
func TestOutputIsReadable(t *testing.T) {
	env := setup(t)
	for _, tt := range []struct{ name, line, want string }{
		{"stderr between stdout", `echo 1; echo 2 >&2; echo 3; echo 4 >&2`, "1\n2\n3\n4\n"},
		{"progress bar", `printf ' 1%%\r'; printf '50%%\r' >&2; printf '100%% done\n'`, "100% done\n"},
		{"spinner", `for c in / - '|'; do printf "\b$c"; done; echo`, "|\n"},
		{"shorter over longer", `printf 'downloading\rdone\n'`, "doneloading\n"},
		{"windows line ends", `printf 'a\r\nb\r\n'`, "a\nb\n"},
		{"colours and links", `printf '\033[1;31mred\033[0m \033]8;;http://x\033\\link\033]8;;\033\\\n'`, "red link\n"},
		{"a title", `printf '\033]0;title\007text\n'`, "text\n"},
		{"a sequence cut off", `printf 'text\033[3'`, "text"},
		{"control characters", `printf 'a\001b\177c\n'`, "abc\n"},
		{"not UTF-8", `printf 'caf\351\n'`, "caf\ufffd\n"},
		{"half a character at the end", `printf 'x\303'`, "x\ufffd"},
		{"a surrogate written as bytes", `printf 'x\355\240\200y'`, "x\ufffdy"},
		{"UTF-16", `printf '\377\376a\000b\000'`, "\ufffdab"},
		{"no line end", `printf end`, "end"},
		{"only blank lines", `printf '\n\n'`, "\n\n"},
		{"nothing", `true`, ""},
		{"repeats", `i=0; while [ $i -lt 100 ]; do echo waiting for the lock; i=$((i+1)); done; echo got it`, "waiting for the lock\n<previous line repeated 99 additional times>\ngot it\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := do(t, env, &output{}, map[string]any{"command": tt.line})
			_, got, ok := strings.Cut(res.Text, "Output:\n")
			if !ok || got != tt.want || !utf8.ValidString(res.Text) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOutcomeInWords(t *testing.T) {
	env := setup(t)
	for _, tt := range []struct{ name, line, want string }{
		{"not found", "no-such-program-here", "Exit code: 127\nThe command did not succeed"},
		{"not executable", "/etc/passwd", "Exit code: 126\nThe command did not succeed"},
		{"a shell's mistake", "if then", "Exit code: 2\nThe command did not succeed"},
		{"crash", "kill -SEGV $$", "A signal (SIGSEGV) ended it. Exit code: 139\nThe command did not succeed"},
		{"many left behind", "for i in 1 2 3 4 5 6 7; do sleep 300 & done", "they were ended: sleep ("},
		{"a daemon", "(setsid sleep 300 >/dev/null 2>&1 &); sleep 0.1", "they were ended: sleep ("},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := do(t, env, &output{}, map[string]any{"command": tt.line})
			if !strings.Contains(res.Text, tt.want) || res.IsError {
				t.Errorf("got %q", res.Text)
			}
			if tt.name == "many left behind" && !strings.Contains(res.Text, ", 2 more.") {
				t.Errorf("not all are counted: %q", res.Text)
			}
		})
	}
}

func TestNotesOfWhatIsStillThere(t *testing.T) {
	p := &plan{}
	for _, tt := range []struct {
		ran  shell.Result
		want string
	}{
		{shell.Result{Survivors: []shell.Member{{PID: 7, Name: "stuck"}}}, "These would not end and are still there: stuck (7)."},
		{shell.Result{PipeHeld: true}, "A process outside the command still holds its output"},
		{shell.Result{Exit: -1}, "Exit code: -1\nThe command did not succeed"},
	} {
		if got := p.text(tt.ran, &capture{limit: 10}, nil); !strings.Contains(got, tt.want) {
			t.Errorf("%+v gives %q", tt.ran, got)
		}
	}
}

var omitted = regexp.MustCompile(`(?s)Output \(.*\) persisted\..*?\nOutput:\n(.*)\n\[\.\.\.(\d+) bytes omitted\.\.\.\]\n(.*)$`)

// Head, what is said to be missing and tail are all of the output, whatever it is.
func TestShownAndOmittedAddUp(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.IntRange(16, 200).Draw(r, "limit")
		piece := rapid.SampledFrom([]string{"a", "bb", "line of text\n", "é", "😀", "\n", strings.Repeat("x", 90)})
		all := strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(r, "pieces"), "")
		c := &capture{dir: dir, limit: limit}
		for rest := []byte(all); len(rest) > 0; {
			n := min(rapid.IntRange(1, 70).Draw(r, "chunk"), len(rest))
			if _, err := c.Write(rest[:n]); err != nil {
				r.Fatal(err)
			}
			rest = rest[n:]
		}
		head, tail := c.parts()
		if !strings.HasPrefix(all, string(head)) || !strings.HasSuffix(all, string(tail)) {
			r.Fatalf("%q and %q are not the ends of %q", head, tail, all)
		}
		if !utf8.Valid(head) || !utf8.Valid(tail) {
			r.Fatalf("half a character in %q or %q", head, tail)
		}
		whole := len(all) <= limit
		if whole != (string(head) == all && tail == nil) || !whole && len(head)+len(tail) > limit {
			r.Fatalf("%d bytes, %d may be kept, %d and %d are", len(all), limit, len(head), len(tail))
		}
		full, err := c.close(false)
		if err != nil {
			r.Fatal(err)
		}
		if whole {
			return
		}
		defer os.Remove(full.Path)
		if kept, err := os.ReadFile(full.Path); err != nil || string(kept) != all || full.Size != int64(len(all)) {
			r.Fatalf("kept %q of %q, %v", kept, all, err)
		}
		text := (&plan{env: tool.Env{}}).text(shell.Result{}, c, full)
		m := omitted.FindStringSubmatch(text)
		if m == nil {
			r.Fatalf("no sum in %q", text)
		}
		if n, _ := strconv.Atoi(m[2]); n != len(all)-len(head)-len(tail) {
			r.Fatalf("%d bytes are said to be missing of %d, %d and %d are shown", n, len(all), len(head), len(tail))
		}
	})
}

// A long output is cut at line ends: half a line may be half a secret.
func TestLongOutputIsCutAtLines(t *testing.T) {
	env := setup(t)
	res := do(t, env, &output{}, map[string]any{"command": `i=0; while [ $i -lt 4000 ]; do echo "line $i"; i=$((i+1)); done`})
	m := omitted.FindStringSubmatch(res.Text)
	if m == nil {
		t.Fatalf("%.300q", res.Text)
	}
	whole := regexp.MustCompile(`^line \d+$`)
	for _, part := range []string{m[1], strings.TrimSuffix(m[3], "\nThe rest can be read with read_command_output and this artifact id.")} {
		for _, l := range strings.Split(strings.TrimSuffix(part, "\n"), "\n") {
			if !whole.MatchString(l) {
				t.Errorf("%q is no whole line", l)
			}
		}
	}
}

// An output that fails (a full disk under the journal) ends the command, and what
// was spooled does not stay.
type refusing struct{ output }

func (*refusing) Write([]byte) (int, error) { return 0, fmt.Errorf("no space left") }

func TestOutputThatCannotBeShownEndsTheCommand(t *testing.T) {
	env := setup(t)
	p, err := New().Plan(t.Context(), env, input(t, map[string]any{"command": "yes"}))
	if err != nil {
		t.Fatal(err)
	}
	out := &refusing{}
	if _, err := p.Run(t.Context(), out); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("Run: %v", err)
	}
	if shell.Find(out.process) {
		t.Error("the command goes on")
	}
	if left, _ := os.ReadDir(env.SpoolDir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestTheMarkReachesTheCommand(t *testing.T) {
	env := setup(t)
	env.Mark = shell.NewMark()
	found := 0
	out := &output{}
	out.cancel = func() { found = len(shell.FindMarked(env.Mark)) }
	do(t, env, out, map[string]any{"command": "echo x; sleep 0.2"})
	if out.process.Mark != env.Mark || found == 0 {
		t.Errorf("%+v, %d processes were found by the mark", out.process, found)
	}
}

func TestTheArtifactIsNamedOnceAndOnlyWhenNeeded(t *testing.T) {
	env := setup(t)
	asked := 0
	env.ArtifactID = func() string { asked++; return "cmd-1.txt" }
	do(t, env, &output{}, map[string]any{"command": "echo short"})
	if asked != 0 {
		t.Error("asked for a name that nothing needs")
	}
	res := do(t, env, &output{}, map[string]any{"command": "head -c 50000 /dev/zero | tr '\\0' x"})
	if asked != 1 || !strings.Contains(res.Text, "Artifact ID: cmd-1.txt\n") {
		t.Errorf("asked %d times: %.200q", asked, res.Text)
	}
	data, err := os.ReadFile(res.Full.Path)
	if err != nil || !bytes.Equal(data, bytes.Repeat([]byte("x"), 50000)) || filepath.Dir(res.Full.Path) != env.SpoolDir {
		t.Errorf("got %+v: %v, want no error and bytes.Equal(data, bytes.Repeat([]byte(\"x\"), 50000)) and filepath.Dir(res.Full.Path) = env.SpoolDir",
			res.Full, err)
	}
}
