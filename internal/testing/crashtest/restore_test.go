package crashtest_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/crashtest"
)

// The rows of checkpoints: killed while one is taken, and what can be put back in the
// end; killed while files are put back, and who finishes that.

var writesTwice = []crashtest.Turn{
	{Calls: []crashtest.Call{{Name: "write_to_file", Input: map[string]any{"path": "a.txt", "content": "tool\n"}}}},
	{Calls: []crashtest.Call{{Name: "execute_command", Input: map[string]any{"command": "echo more >> a.txt; echo b > b.txt; rm c.txt; seq 1 4000", "cwd": nil, "timeout": nil}}}},
	crashtest.Complete("All is done."),
	crashtest.Complete("All is done again."),
}

func furnish(t *testing.T, b *crashtest.Bench) {
	t.Helper()
	for name, text := range map[string]string{"a.txt": "zero\n", "c.txt": "c\n", "mine.txt": "mine\n"} {
		if err := os.WriteFile(filepath.Join(b.Workspace, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// standing are the files of the workspace.
func standing(t *testing.T, b *crashtest.Bench) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(b.Workspace, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(b.Workspace, path)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func stands(t *testing.T, b *crashtest.Bench, what string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, standing(t, b)); diff != "" {
		t.Errorf("%s: got %s, want diff = \"\"", what, diff)
	}
}

// Wherever a run is killed around its checkpoints: what is there before the task's first
// change can be put back, contents that an event names are kept, and no event names
// others.
func TestKilledAroundACheckpoint(t *testing.T) {
	before := map[string]string{"a.txt": "zero\n", "c.txt": "c\n", "mine.txt": "mine\n"}
	for _, tt := range []struct {
		name, fail string
	}{
		{"kept, not committed", "checkpoint.kept:1"},
		{"committed, not written", "tool.started:1"},
		{"before the rename of the write", "tool.write.before"},
		{"after the rename of the write", "tool.write.after"},
		{"the turn's kept, not committed", "checkpoint.kept:2"},
		{"before the command", "tool.started:2"},
		{"inside the command", "tool.output"},
		{"after the command, not looked", "tool.ran:2"},
		{"after the command, kept, not committed", "checkpoint.kept:3"},
		{"after the command, committed", "tool.finished:2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			b := newBench(t, "script", writesTwice)
			furnish(t, b)
			first := start(ctx, t, b, tt.fail, append([]string{"run", "--yes", "-C", b.Workspace, "the words"}, b.Model...)...)
			if !first.Killed {
				t.Fatalf("not killed: %d: %s", first.Code, first.Errors)
			}
			ids, err := b.Tasks()
			if err != nil || len(ids) != 1 {
				t.Fatalf("tasks %v, %v", ids, err)
			}
			left := look(ctx, t, b, ids[0])
			last := start(ctx, t, b, "", "resume", ids[0], "--yes")
			if last.Code != 0 {
				t.Fatalf("resume: %d: %s", last.Code, last.Errors)
			}
			after := look(ctx, t, b, ids[0])
			numbers(t, after)
			for _, err := range []error{crashtest.CheckPrefix(left, after), crashtest.CheckHistories(after), after.CheckFiles()} {
				if err != nil {
					t.Error(err)
				}
			}
			done := standing(t, b)
			back := start(ctx, t, b, "", "checkpoint", "restore", ids[0], "0", "--on-conflict", "overwrite", "--yes")
			if back.Code != 0 {
				t.Fatalf("restore: %d: %s", back.Code, back.Errors)
			}
			stands(t, b, "restored", before)
			if undo := start(ctx, t, b, "", "undo", ids[0]); undo.Code != 0 {
				t.Fatalf("undo: %d: %s", undo.Code, undo.Errors)
			}
			stands(t, b, "undone", done)
			doctor(ctx, t, b)
		})
	}
}

// numbers tells whether the checkpoints of a log are counted without gap.
func numbers(t *testing.T, l crashtest.Look) {
	t.Helper()
	for i, e := range l.Events("checkpoint.saved") {
		if n, _ := esjson.GetInt(e, "checkpoint"); int(n) != i+1 {
			t.Errorf("checkpoint %d has the number %d", i+1, n)
		}
		if commit, _ := esjson.GetString(e, "commit"); len(commit) != 64 {
			t.Errorf("checkpoint %d has the commit %q", i+1, commit)
		}
	}
}

// Killed while files are put back, with the histories or without: who works on the task
// next finishes it, and it can be undone as one.
func TestKilledWhilePuttingBack(t *testing.T) {
	done := map[string]string{"a.txt": "tool\nmore\n", "b.txt": "b\n", "mine.txt": "mine\n"}
	before := map[string]string{"a.txt": "zero\n", "c.txt": "c\n", "mine.txt": "mine\n"}
	restore := []string{"checkpoint", "restore", "ID", "0", "--yes"}
	rewind := []string{"rewind", "ID", "--to", "#2", "--files"}
	nexts := []string{"resume", "again", "undo"}
	for w, what := range [][]string{restore, rewind} {
		for f, tt := range []struct {
			fail  string
			begun bool // the intent was durable
			over  bool // and so was the outcome
		}{
			{"restore.before", false, false},
			{"restore.begun", true, false},
			{"restore.applied-one:1", true, false},
			{"restore.applied-one:2", true, false},
			{"restore.applied-all", true, false},
			{"restore.applied", true, false},
			{"restore.ended", true, true},
		} {
			for n, next := range nexts {
				if n != (w+f)%len(nexts) && os.Getenv("ROOST_CRASH_ALL") == "" {
					continue // each of both, and each next step, often enough
				}
				t.Run(what[0]+" "+tt.fail+" "+next, func(t *testing.T) {
					t.Parallel()
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					b := newBench(t, "script", writesTwice)
					furnish(t, b)
					ran := start(ctx, t, b, "", append([]string{"run", "--yes", "-C", b.Workspace, "the words"}, b.Model...)...)
					ids, err := b.Tasks()
					if ran.Code != 0 || err != nil || len(ids) != 1 {
						t.Fatalf("run: %d: %s; %v", ran.Code, ran.Errors, err)
					}
					stands(t, b, "after the run", done)
					args := append([]string{}, what...)
					args[strings.Count(what[0], "checkpoint")+1] = ids[0]
					first := start(ctx, t, b, tt.fail, args...)
					if !first.Killed {
						t.Fatalf("not killed: %d: %s", first.Code, first.Errors)
					}
					left := look(ctx, t, b, ids[0])
					if restoring := left.Status == "restoring"; restoring != (tt.begun && !tt.over) {
						t.Errorf("the status is %s", left.Status)
					}
					doctor(ctx, t, b)
					switch next {
					case "again":
						again := start(ctx, t, b, "", append([]string{"checkpoint", "restore", ids[0], "0"}, "--yes")...)
						if again.Code != 0 {
							t.Fatalf("again: %d: %s", again.Code, again.Errors)
						}
						stands(t, b, "restored again", before)
						return
					case "undo":
						if !tt.begun {
							return // the deed before it is another one's matter
						}
						if undo := start(ctx, t, b, "", "undo", ids[0]); undo.Code != 0 {
							t.Fatalf("undo: %d: %s", undo.Code, undo.Errors)
						}
						stands(t, b, "undone", done)
						if l := look(ctx, t, b, ids[0]); l.Status == "restoring" || len(l.API) < 6 {
							t.Errorf("after undo: %s, %d messages", l.Status, len(l.API))
						}
						return
					}
					words := []string{"resume", ids[0], "and now rest"}
					last := start(ctx, t, b, "", append(words, "--approve", "read")...)
					after := look(ctx, t, b, ids[0])
					if after.Status == "restoring" {
						t.Fatalf("resume %d left it restoring: %s", last.Code, last.Errors)
					}
					if err := crashtest.CheckPrefix(left, after); err != nil {
						t.Error(err)
					}
					want := done
					if tt.begun {
						want = before
					}
					stands(t, b, "finished", want)
					ends := len(after.Events("checkpoint.restored"))
					if (ends == 1) != tt.begun {
						t.Errorf("%d restores ended", ends)
					}
					moved := len(after.Events("history.rewound"))
					if (moved == 1) != (tt.begun && what[0] == "rewind") {
						t.Errorf("the histories moved %d times", moved)
					}
					doctor(ctx, t, b)
				})
			}
		}
	}
}
