package crashtest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/testing/crashtest"
	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/internal/testing/mcptest"
)

var program string

func TestMain(m *testing.M) {
	mcptest.Main()
	dir, err := os.MkdirTemp("", "roost-crashtest-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "roost")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, "github.com/roost-dev/roost/cmd/roost")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build roost: %v\n%s", err, out)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// shortDir is a scratch folder whose name leaves room for the processes' sockets, as that
// of a user's has: the name of a test does not decide whether there are any.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "roost-bench-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

var marks atomic.Int64

// row is one line of the table in docs/crash-safety.md.
type row struct {
	name    string
	fail    string   // where the first child dies; "" = it ends by itself
	run     []string // further flags of the first child
	code    int      // how the first child ends when nothing kills it
	resume  []string // words and flags; nil = --yes
	sleeps  bool     // the command leaves a process behind
	fresh   bool     // nothing was acknowledged: start again instead of resuming
	lines   [2]int   // how often the command may have acted in the end: from, to
	runs    int      // how often its body was begun in all
	unknown string   // the tool whose outcome must be told as unknown
	want    string   // must stand in the model's history in the end
	before  func(t *testing.T, l crashtest.Look)
	again   string   // where the second child dies too
	third   []string // words and flags of the child that follows it
	anytime bool     // the failpoint lies outside the run's order: the command may be cut or not
}

var rows = []row{
	{name: "before the first commit", fail: "journal.written", fresh: true},
	{name: "first commit synced, no input yet", fail: "journal.synced:2", fresh: true},
	{name: "input acknowledged", fail: "input.saved", lines: once, runs: 1, before: hasWords},
	{name: "during the request", fail: "turn.requested", lines: once, runs: 1, before: hasWords},
	{name: "during a later request", fail: "turn.requested:3", lines: once, runs: 1},
	{name: "in the middle of a streamed reply", fail: "reply.streaming:3", lines: once, runs: 1},
	{name: "in a later streamed reply", fail: "reply.streaming:4", lines: once, runs: 1},
	{name: "between the reply and a write", fail: "reply.committed", lines: once, runs: 1},
	{name: "between the reply and a read", fail: "reply.committed:2", lines: once, runs: 1},
	{name: "between the reply and a command", fail: "reply.committed:3", lines: once, runs: 1},
	{name: "inside a read-only tool", fail: "tool.started:2", lines: once, runs: 1},
	{name: "inside a write, not begun", fail: "tool.started:1", lines: once, runs: 1},
	{name: "inside a write, before the rename", fail: "tool.write.before", lines: once, runs: 1},
	{name: "inside a write, after the rename", fail: "tool.write.after", lines: once, runs: 1, want: "it was not made again"},
	{name: "inside a command, not begun", fail: "tool.started:3", lines: never, runs: 1, unknown: "execute_command"},
	{name: "inside a command, started and not recorded", fail: "tool.spawned", lines: atMostOnce, runs: 1, unknown: "execute_command", sleeps: true},
	{name: "inside a command, begun", fail: "tool.process", lines: atMostOnce, runs: 1, unknown: "execute_command", sleeps: true},
	{name: "inside a command, has printed", fail: "tool.output", lines: once, runs: 1, unknown: "execute_command", sleeps: true},
	{name: "after a write, no result", fail: "tool.ran:1", lines: once, runs: 1, want: "it was not made again"},
	{name: "after a read, no result", fail: "tool.ran:2", lines: once, runs: 1},
	{name: "after a command, no result", fail: "tool.ran:3", lines: once, runs: 1, unknown: "execute_command"},
	{name: "result committed, not on the disk", fail: "tool.finished:3", lines: once, runs: 1, unknown: "execute_command"},
	{name: "asks, and ends as waiting", run: ask, code: 11, resume: []string{"yes"}, lines: once, runs: 1, before: waits},
	{name: "killed while it waits for an answer", run: ask, fail: "question.opened", resume: []string{"yes"}, lines: once, runs: 1, before: waits},
	{name: "answered, its call not begun", run: ask, code: 11, resume: []string{"yes"}, again: "question.closed", third: []string{"and now rest"}, lines: once, runs: 1, before: waits, want: "and now rest"},
	{name: "words taken, not yet sent", fail: "reply.committed:3", resume: []string{"and now rest"}, again: "input.saved", lines: once, runs: 1, want: "and now rest"},
	{name: "projection, before the rename", fail: "project.temp", anytime: true, resume: []string{"and now rest"}, want: "and now rest"},
	{name: "projection, after one rename", fail: "project.renamed", anytime: true, resume: []string{"and now rest"}, want: "and now rest"},
	{name: "completed, not projected", fail: "run.ended", lines: once, runs: 1, resume: []string{"and now rest"}, want: "and now rest"},
	{name: "after completion", resume: []string{"and now rest"}, lines: once, runs: 1, want: "and now rest"},
}

var (
	never      = [2]int{0, 0}
	once       = [2]int{1, 1}
	atMostOnce = [2]int{0, 1}
	ask        = []string{"--approve", "edits"}
)

func hasWords(t *testing.T, l crashtest.Look) {
	if len(l.UI) == 0 || len(l.API) != 1 || !strings.Contains(string(l.UI[0]), "the words") || !strings.Contains(string(l.API[0]), "the words") {
		t.Errorf("the input is not in both histories: %s %s", l.UI, l.API)
	}
}

func waits(t *testing.T, l crashtest.Look) {
	if len(l.Open) != 1 || l.Started("execute_command") != 0 {
		t.Errorf("open questions %v, commands begun %d", l.Open, l.Started("execute_command"))
	}
}

func TestKilledDuring(t *testing.T) {
	for _, r := range rows {
		for _, provider := range []string{"script", "anthropic", "openai", "openai-compatible", "google"} {
			t.Run(r.name+"/"+provider, func(t *testing.T) {
				t.Parallel()
				r.check(t, provider)
			})
		}
	}
}

func (r row) turns(mark string) []crashtest.Turn {
	line := "echo once >> lines.txt; echo printed"
	if r.sleeps {
		// Much output: what could be the start of a secret is held back until more comes.
		line += "; seq 1 4000; sleep 61." + mark
	}
	return []crashtest.Turn{
		{Text: "First I write the note.", Calls: []crashtest.Call{{Name: "write_to_file", Input: map[string]any{"path": "note.txt", "content": "new\n"}}}},
		{Text: "Then I read the note.", Calls: []crashtest.Call{{Name: "read_file", Input: map[string]any{"path": "note.txt"}}}},
		{Text: "Then the command.", Calls: []crashtest.Call{{Name: "execute_command", Input: map[string]any{"command": line, "cwd": nil, "timeout": nil}}}},
		crashtest.Complete("All is done."),
		crashtest.Complete("All is done again."),
	}
}

func newBench(t *testing.T, provider string, turns []crashtest.Turn) *crashtest.Bench {
	t.Helper()
	b, err := crashtest.NewBench(program, shortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	if provider == "script" {
		err = b.UseScript(turns)
	} else {
		s := llmtest.New(t)
		s.Answer(crashtest.Answer(turns))
		b.UseServer(provider, s.URL)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (r row) check(t *testing.T, provider string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	mark := fmt.Sprintf("%d%06d", os.Getpid(), marks.Add(1))
	b := newBench(t, provider, r.turns(mark))
	w := crashtest.Watch(filepath.Join(b.Root(), "tasks"))
	defer func() {
		if _, err := w.Stop(); err != nil {
			t.Error(err)
		}
	}()

	policy := r.run
	if policy == nil {
		policy = []string{"--yes"}
	}
	args := append(append([]string{"run"}, b.Model...), policy...)
	first := start(ctx, t, b, r.fail, append(args, "-C", b.Workspace, "the words")...)
	if first.Killed != (r.fail != "") || !first.Killed && first.Code != r.code {
		t.Fatalf("the first child: killed %t, code %d: %s", first.Killed, first.Code, first.Errors)
	}
	ids, err := b.Tasks()
	if err != nil || len(ids) > 1 || len(ids) == 0 && !r.fresh {
		t.Fatalf("tasks %v, %v", ids, err)
	}
	doctor(ctx, t, b)
	if r.fresh {
		if len(first.Lines) > 0 {
			t.Errorf("something was acknowledged: %s", first.Lines)
		}
		again := start(ctx, t, b, "", append(args, "-C", b.Workspace, "the words")...)
		if again.Code != 0 {
			t.Fatalf("starting again: %d: %s", again.Code, again.Errors)
		}
		if len(ids) > 0 { // and what was left of the first can be used as well
			left := start(ctx, t, b, "", append([]string{"resume", ids[0], "the words", "--yes"}, append(b.Model, "-C", b.Workspace)...)...)
			if left.Code != 0 {
				t.Errorf("resuming what was left: %d: %s", left.Code, left.Errors)
			}
		}
		doctor(ctx, t, b)
		return
	}

	before := look(ctx, t, b, ids[0])
	if _, err := crashtest.CheckPrinted(first.Lines, before); err != nil {
		t.Error(err)
	}
	if r.before != nil {
		r.before(t, before)
	}
	words := r.resume
	if words == nil {
		words = []string{"--yes"}
	}
	if r.again != "" {
		second := start(ctx, t, b, r.again, append([]string{"resume", ids[0]}, words...)...)
		if !second.Killed {
			t.Fatalf("the second child ended by itself: %d: %s", second.Code, second.Errors)
		}
		middle := look(ctx, t, b, ids[0])
		_, printed := crashtest.CheckPrinted(second.Lines, middle)
		for _, err := range []error{printed, crashtest.CheckPrefix(before, middle)} {
			if err != nil {
				t.Error(err)
			}
		}
		before, words = middle, r.third
		if words == nil {
			words = []string{"--yes"}
		}
	}
	last := start(ctx, t, b, "", append([]string{"resume", ids[0]}, words...)...)
	if last.Code != 0 {
		t.Fatalf("resume: %d: %s", last.Code, last.Errors)
	}
	after := look(ctx, t, b, ids[0])
	_, printed := crashtest.CheckPrinted(last.Lines, after)
	for _, err := range []error{crashtest.CheckPrefix(before, after), crashtest.CheckHistories(after), after.CheckFiles(), printed} {
		if err != nil {
			t.Error(err)
		}
	}
	doctor(ctx, t, b)
	r.judge(t, b, after, mark)
}

// cut tells what a failpoint outside the run's order did to the command: its own
// outcome says whether it may have acted.
func (r row) cut(l crashtest.Look) row {
	r.lines, r.runs = once, 1
	for _, c := range l.Calls {
		if c.Name == "execute_command" && c.Finished != nil && c.Finished.Outcome == "unknown" {
			r.lines, r.unknown = atMostOnce, c.Name
		}
	}
	return r
}

// judge is about what the task did and what the model was told.
func (r row) judge(t *testing.T, b *crashtest.Bench, after crashtest.Look, mark string) {
	if r.anytime {
		r = r.cut(after)
	}
	if after.Status != "completed" || len(after.Open) > 0 {
		t.Errorf("status %s, open questions %v", after.Status, after.Open)
	}
	data, _ := os.ReadFile(filepath.Join(b.Workspace, "lines.txt"))
	if n := strings.Count(string(data), "once"); n < r.lines[0] || n > r.lines[1] {
		t.Errorf("the command acted %d times, wanted %v", n, r.lines)
	}
	if n := after.Started("execute_command"); n != r.runs {
		t.Errorf("the command was begun %d times, wanted %d", n, r.runs)
	}
	if note, err := os.ReadFile(filepath.Join(b.Workspace, "note.txt")); err != nil || string(note) != "new\n" {
		t.Errorf("note %q, %v", note, err)
	}
	for _, c := range after.Calls {
		want := "ok"
		if c.Name == r.unknown {
			want = "unknown"
		}
		if c.Name != "attempt_completion" && (c.Finished == nil || c.Finished.Outcome != want) {
			t.Errorf("call %s of %s: %s, wanted %s", c.ID, c.Name, c.Result, want)
		}
	}
	api := fmt.Sprintf("%s", after.API)
	if !strings.Contains(api, r.want) || r.unknown != "" && !strings.Contains(api, "It was not run again") {
		t.Errorf("the model was not told %q: %s", r.want, api)
	}
	if left := b.Gone(30 * time.Second); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if left, err := b.Left(); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

func start(ctx context.Context, t *testing.T, b *crashtest.Bench, fail string, args ...string) crashtest.Child {
	t.Helper()
	c, err := b.Run(ctx, fail, 0, args...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func look(ctx context.Context, t *testing.T, b *crashtest.Bench, id string) crashtest.Look {
	t.Helper()
	l, err := b.Look(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Damaged) > 0 {
		t.Errorf("damaged: %v", l.Damaged)
	}
	return l
}

func doctor(ctx context.Context, t *testing.T, b *crashtest.Bench) {
	t.Helper()
	if err := b.Doctor(ctx); err != nil {
		t.Error(err)
	}
}
