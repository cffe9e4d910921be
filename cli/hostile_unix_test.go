//go:build unix

package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/tasks"
	"github.com/roost-dev/roost/esjson"
)

// Limits of one command on hostile folders. A race-instrumented program takes
// several times as much of both.
const (
	hostileTime = 60 * time.Second
	hostileRSS  = 400 << 20
)

// evil is a task folder that somebody made to do harm.
type evil struct {
	name    string
	build   func(t *testing.T, dir string)
	damaged string // a part of what the list says is wrong; "" = it is whole
	empty   bool
}

func file(name, text string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
}

func all(list ...func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		for _, f := range list {
			f(t, dir)
		}
	}
}

func link(name, to string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { must(t, os.Symlink(to, filepath.Join(dir, name))) }
}

const (
	uiFile  = "ui_messages.json"
	apiFile = "api_conversation_history.json"
)

func row(ts, text string) string {
	return `{"ts":` + ts + `,"type":"say","say":"text","text":` + text + `}`
}

// evils are bad folders, by what is bad about them.
func evils() []evil {
	const ts = "1776200000000"
	plain := file(uiFile, "["+row(ts, `"needle"`)+"]")
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	keys := 100_000
	if large() {
		keys = 300_000
	}
	bomb := `{"k":"` + strings.Repeat(`a","k":"`, keys) + `a"}`
	list := []evil{
		{name: "new\nline", build: plain},
		{name: "esc\x1b[31mred\x1b]0;x\x07", build: plain},
		{name: "bad\xff\xfeutf8", build: plain},
		{name: "a..b", build: plain},
		{name: "-rf", build: plain},
		{name: "roost:x", build: plain},
		{name: "per%2Fcent %s\\", build: plain},
		{name: "nil\u202etxt", build: plain},
		{name: strings.Repeat("n", 255), build: plain},
		{name: "loop-inside", build: all(plain, link("self", "."), link("up", "../.."), link("round", "round"))},
		{name: "loop-file", build: link(uiFile, uiFile), damaged: "can not be read"},
		{name: "link-out", build: link(uiFile, "/etc/passwd"), damaged: "can not be read"},
		{name: "link-zero", build: link(uiFile, "/dev/zero"), damaged: "can not be read"},
		{name: "fifo", build: func(t *testing.T, dir string) { must(t, syscall.Mkfifo(filepath.Join(dir, uiFile), 0o600)) }, damaged: "not a regular file"},
		{name: "fifo-beside", build: all(plain, func(t *testing.T, dir string) {
			for _, name := range []string{"history_item.json", "journal.jsonl", "task_metadata.json"} {
				must(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
			}
		}), damaged: "not a regular file"},
		{name: "folder-as-file", build: func(t *testing.T, dir string) { must(t, os.Mkdir(filepath.Join(dir, apiFile), 0o700)) }, damaged: "regular file"},
		{name: "socket", build: all(plain, socket)},
		{name: "long-line", build: all(file(uiFile, "["+row(ts, `"needle `+strings.Repeat("x", 13<<20)+`"`)+"]"),
			file(apiFile, `[{"role":"user","content":"needle `+strings.Repeat("y", 13<<20)+`"}]`))},
		{name: "deep-file", build: all(file(uiFile, deep), file(apiFile, "["+row(ts, `"needle"`)+","+deep+"]"))},
		{name: "deep-message", build: file(uiFile, "["+row(ts, `"needle"`)+`,{"ts":`+ts+`,"type":"say","say":"tool","text":"{}","x":`+deep+`}]`)},
		{name: "deep-content", build: file(apiFile, `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":`+deep+`}]},{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"x","input":`+deep+`}]}]`)},
		{name: "deep-unclosed", build: file(uiFile, "["+row(ts, `"needle"`)+","+strings.Repeat(`{"a":[`, 200_000)), damaged: "cut at byte"},
		{name: "bomb", build: all(file(uiFile, "["+row(ts, `"needle"`)+","+bomb+"]"), file("history_item.json", bomb), file("task_metadata.json", bomb))},
		{name: "nul", build: file(uiFile, strings.Repeat("\x00", 1<<20)), damaged: "no text in its"},
		{name: "random", build: file(uiFile, "[\x80\xff{\"ts\":"), damaged: "damaged at byte"},
		{name: "empty", build: func(*testing.T, string) {}, empty: true},
		{name: "many-files", build: func(t *testing.T, dir string) {
			plain(t, dir)
			n := 2_000 // the limits of time and memory would not notice a square of 10,000 either
			if large() {
				n = 100_000
			}
			for i := range n {
				f, err := os.Create(filepath.Join(dir, fmt.Sprintf("f%06d", i)))
				must(t, err)
				must(t, f.Close())
			}
		}},
	}
	for i, ts := range []string{"0", "1", "-1", "9223372036854775807", "-9223372036854775808", "1776200000000.75", `"1776200000000"`, "1e999", "-1e999", "null", "true", "{}", "9007199254740993", "1e300"} {
		list = append(list, evil{name: fmt.Sprintf("clock-%d", i), build: all(
			file(uiFile, "["+row(ts, `"needle"`)+","+row(ts, `"{\"cost\":1e308,\"tokensIn\":1e308}"`)+"]"),
			file(apiFile, `[{"role":"user","content":"needle","ts":`+ts+`}]`),
			file("history_item.json", `{"id":"x","number":1,"ts":`+ts+`,"task":"needle","tokensIn":`+ts+`,"totalCost":`+ts+`}`),
		)})
	}
	return list
}

// large asks for what takes minutes and gigabytes.
func large() bool { return os.Getenv("ROOST_TEST_LARGE") != "" }

// socket makes one; its path must be short, so it is made beside and moved.
func socket(t *testing.T, dir string) {
	short, err := os.MkdirTemp("", "s")
	must(t, err)
	defer os.RemoveAll(short)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short, "s"), Net: "unix"})
	must(t, err)
	l.SetUnlinkOnClose(false)
	must(t, l.Close())
	must(t, os.Rename(filepath.Join(short, "s"), filepath.Join(dir, "socket")))
}

// bounded runs roost with little time and memory.
func (s *sandbox) bounded(args ...string) result {
	s.t.Helper()
	limit, most := hostileTime, int64(hostileRSS)
	if large() {
		limit, most = 5*limit, 2*most
	}
	if raced {
		limit *= 5
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	plain := s.command(args...)
	cmd := exec.CommandContext(ctx, plain.Path, args...)
	memory := filepath.Join(s.t.TempDir(), "status")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = plain.Dir, append(plain.Env, peakVar+"="+memory, "GOGC="), plain.SysProcAttr
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("roost %.200q: %v %v\n%.2000s", args, err, ctx.Err(), errs.String())
	}
	rss := peak(s.t, memory)
	for try := 0; try < 2 && rss > most && !raced; try++ {
		// Where the collector gets no processor, garbage stays longer: the least of three is what the command needs.
		again := exec.CommandContext(ctx, plain.Path, args...)
		again.Dir, again.Env, again.SysProcAttr = cmd.Dir, cmd.Env, cmd.SysProcAttr
		_ = again.Run() // the first one's result is judged
		rss = min(rss, peak(s.t, memory))
	}
	if rss > most && !raced {
		s.t.Errorf("roost %.100q: got %d MB of memory, want at most %d", args, rss>>20, most>>20)
	}
	r := result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	if r.code < 0 || strings.Contains(r.err, "panic:") || strings.Contains(r.err, "goroutine ") {
		s.t.Fatalf("roost %.200q: exit %d\n%.3000s", args, r.code, r.err)
	}
	return r
}

// exitsWith checks a command's exit code.
func (s *sandbox) exitsWith(codes []int, args ...string) result {
	s.t.Helper()
	r := s.bounded(args...)
	if !slices.Contains(codes, r.code) {
		s.t.Errorf("roost %.200q: exit %d, want %v\n%.1500s", args, r.code, codes, r.err)
	}
	return r
}

// harmless checks that a person's terminal obeys nothing of what was printed.
func harmless(t *testing.T, what string, r result) {
	t.Helper()
	for _, text := range []string{r.out, r.err} {
		if i := strings.IndexAny(text, "\x1b\a\u009b\u202e\r"); i >= 0 || !utf8.ValidString(text) {
			t.Errorf("%s: something that a terminal obeys got out: %q", what, text[max(0, i-40):min(len(text), max(0, i)+40)])
		}
	}
}

// hash is what a folder holds, whatever that is.
func hash(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v %d %d\n", path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		return nil
	}))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// hostileStore is a storage with one good task among bad ones.
func hostileStore(t *testing.T) (*sandbox, []evil) {
	s := newSandbox(t)
	s.foreign("good", "the needle of a good task", 1776300000000)
	list := evils()
	for _, e := range list {
		dir := filepath.Join(s.store, "tasks", e.name)
		must(t, os.MkdirAll(dir, 0o700))
		e.build(t, dir)
	}
	must(t, os.Symlink("round-and-round", filepath.Join(s.store, "tasks", "round-and-round")))
	must(t, os.Symlink("..", filepath.Join(s.store, "tasks", "up-and-down")))
	return s, list
}

// inJSON is what a name is to whoever reads JSON: bytes that are no text are replaced.
func inJSON(name string) string {
	return string([]rune(name)) // each byte for itself
}

// lists checks the commands that read all folders: they say something harmless, and show the good task.
func (s *sandbox) lists(t *testing.T) {
	for _, args := range [][]string{
		{"list", "--empty"},
		{"list", "--damaged"},
		{"search", "needle"},
		{"usage"},
		{"usage", "--by", "task"},
		{"sources"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			r := s.of(t).exitsWith([]int{failure.ExitDone}, args...)
			harmless(t, strings.Join(args, " "), r)
			if args[0] != "sources" && args[len(args)-1] != "--damaged" && args[0] != "usage" && !strings.Contains(r.out, "good") {
				t.Errorf("roost %v: the good task is missing\n%.2000s", args, r.out)
			}
		})
	}
}

// Each bad folder gets a clear word, the good one is always there, nothing is
// changed, and time and memory are bounded.
func TestHostileFolders(t *testing.T) {
	if raced && testing.Short() {
		t.Skip("each folder alone costs the race detector minutes, and one process at a time has no races")
	}
	t.Parallel()
	s, list := hostileStore(t)
	before := hash(t, s.store)
	var got struct{ Items []api.Summary }
	unmarshal(t, []byte(s.exitsWith([]int{failure.ExitDone}, "list", "--empty", "--json").out), &got)
	if want := len(list) + 3; len(got.Items) != want {
		t.Errorf("%d of %d folders are listed", len(got.Items), want)
	}
	at := map[string]api.Summary{}
	for _, sum := range got.Items {
		at[filepath.Base(sum.Path)] = sum
	}
	for _, e := range list {
		sum, ok := at[inJSON(e.name)]
		if !ok {
			t.Errorf("%q is not listed", e.name)
			continue
		}
		said, err := json.Marshal(sum.Damaged)
		must(t, err)
		if e.damaged == "" && len(sum.Damaged) > 0 || !strings.Contains(string(said), e.damaged) || sum.Empty != e.empty {
			t.Errorf("%q: damaged %s, empty %v; want %q", e.name, said, sum.Empty, e.damaged)
		}
	}
	source := at["good"].Source
	t.Run("read", func(t *testing.T) { // a command mostly waits for the disk, and these change nothing
		s.lists(t)
		t.Run("doctor", func(t *testing.T) {
			t.Parallel()
			s := s.of(t)
			harmless(t, "doctor", s.exitsWith([]int{failure.ExitDamaged}, "doctor"))
		})
		t.Run("doctor --json", func(t *testing.T) {
			t.Parallel()
			s := s.of(t)
			var report api.Checkup
			unmarshal(t, []byte(s.exitsWith([]int{failure.ExitDamaged}, "doctor", "--json").out), &report)
			for _, e := range list {
				found := slices.ContainsFunc(report.Damaged, func(f api.Finding) bool {
					return filepath.Base(f.Path) == inJSON(e.name)
				})
				if !found && e.damaged != "" {
					t.Errorf("doctor says nothing about %q", e.name)
				}
			}
		})
		for i, e := range list {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				s := s.of(t)
				id := source + ":" + e.name
				codes := []int{failure.ExitDone}
				if e.damaged != "" || e.empty {
					codes = append(codes, failure.ExitDamaged)
				}
				harmless(t, fmt.Sprintf("show %q", e.name), s.exitsWith([]int{failure.ExitDone}, "show", id))
				for _, view := range []string{"--ui", "--api"} {
					if r := s.exitsWith([]int{failure.ExitDone}, "show", id, view, "--json"); !esjson.Valid([]byte(r.out)) {
						t.Errorf("show %q %s: no JSON: %.200s", e.name, view, r.out)
					}
				}
				forms := tasks.ExportFormats
				if strings.HasPrefix(e.name, "clock") { // there are many
					forms = tasks.ExportFormats[i%len(tasks.ExportFormats):][:1]
				}
				for _, form := range forms {
					to := filepath.Join(s.dir, "out", form, fmt.Sprint(i))
					must(t, os.MkdirAll(to, 0o700))
					allowed := append(slices.Clone(codes), failure.ExitDamaged) // links and devices are left out, and that is said
					harmless(t, fmt.Sprintf("export %q as %s", e.name, form), s.exitsWith(allowed, "export", id, "--format", form, "-o", to+string(filepath.Separator)))
				}
			})
		}
	})
	harmless(t, "import", s.exitsWith([]int{failure.ExitDone, failure.ExitFailed}, "import", "--dry-run", s.store))
	var imported api.Import
	unmarshal(t, []byte(s.exitsWith([]int{failure.ExitDone, failure.ExitFailed}, "import", s.store, "--json").out), &imported)
	for _, item := range imported.Items {
		// What is left out of messages that are none is said as the list says it: damage, not emptiness.
		unread := strings.Contains(item.Problem, "its messages are missing") && len(at[item.Name].Damaged) > 0
		if item.Problem != "" && !unread && item.Name != "round-and-round" && item.Name != "up-and-down" {
			t.Errorf("import of %q: %s", item.Name, item.Problem)
		}
	}
	if d := cmp.Diff(before, hash(t, s.store)); d != "" {
		t.Error("something in the storage changed")
	}
}
