package crashtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/crashtest"
)

// moved is a task whose head moves, and what it was before and in between.
type moved struct {
	b           *crashtest.Bench
	id          string
	whole, back crashtest.Look // as it ran; as it was after the rewind, when there was one
}

// movedBack runs a task of four steps and, for what follows a rewind, takes it back.
func movedBack(ctx context.Context, t *testing.T, steps ...string) *moved {
	t.Helper()
	var turns []crashtest.Turn
	for i := range 4 {
		turns = append(turns, crashtest.Turn{Text: fmt.Sprintf("Step %d.", i), Calls: []crashtest.Call{{Name: "list_files", Input: map[string]any{"path": ".", "recursive": false}}}})
	}
	for range 4 {
		turns = append(turns, crashtest.Turn{Text: "The end of it.", Calls: crashtest.Complete("done").Calls})
	}
	m := &moved{b: newBench(t, "script", turns)}
	m.must(ctx, t, append(append([]string{"run"}, m.b.Model...), "--yes", "-C", m.b.Workspace, "the words")...)
	ids, err := m.b.Tasks()
	if err != nil || len(ids) != 1 {
		t.Fatalf("tasks %v, %v", ids, err)
	}
	m.id = ids[0]
	m.whole = look(ctx, t, m.b, m.id)
	for _, step := range steps {
		m.must(ctx, t, step, m.id)
		if step == "rewind" {
			m.back = look(ctx, t, m.b, m.id)
		}
	}
	return m
}

func (m *moved) must(ctx context.Context, t *testing.T, args ...string) {
	t.Helper()
	if c := start(ctx, t, m.b, "", args...); c.Code != 0 {
		t.Fatalf("%v: got %d: %s, want c.Code = 0", args, c.Code, c.Errors)
	}
}

// alike reports whether two histories are the same bytes.
func alike(a, b crashtest.Look) bool {
	equal := func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
	return slices.EqualFunc(a.UI, b.UI, equal) && slices.EqualFunc(a.API, b.API, equal)
}

// A kill while the head moves - before its commit, behind it, between the renames of the
// two histories' files - leaves the task as it was or as it should
// become. The next command finds that, and can take it back, do it again and go on.
func TestKilledWhileTheHeadMoves(t *testing.T) {
	for _, row := range []struct {
		do     string
		args   []string
		before []string // what was done
		what   string   // begins the names of its failpoints
	}{
		{"rewind", []string{"--to", "~2"}, nil, "rewind"},
		{"rewind", []string{"--to", "~2", "--edit", "other words"}, nil, "rewind"},
		{"undo", nil, []string{"rewind"}, "undo"},
		{"redo", nil, []string{"rewind", "undo"}, "undo"},
	} {
		name := row.do
		if slices.Contains(row.args, "--edit") {
			name = "edit"
		}
		for fail, moves := range map[string]bool{row.what + ".before": false, row.what + ".synced": true, "project.renamed": true} {
			t.Run(name+" at "+fail, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
				defer cancel()
				m := movedBack(ctx, t, row.before...)
				before := look(ctx, t, m.b, m.id)
				args := append([]string{row.do, m.id}, row.args...)
				if c := start(ctx, t, m.b, fail, args...); !c.Killed {
					t.Fatalf("it ended by itself: %d: %s", c.Code, c.Errors)
				}
				cut := look(ctx, t, m.b, m.id)
				if err := crashtest.CheckPrefix(before, cut); err != nil {
					t.Error(err)
				}
				did := !alike(before, cut)
				if did != moves {
					t.Errorf("it moved: %v", did)
				}
				if !did {
					m.must(ctx, t, args...)
				}
				m.judge(ctx, t, name, before)
			})
		}
	}
}

// judge looks at what should have become, takes it back and forth, and goes on.
func (m *moved) judge(ctx context.Context, t *testing.T, name string, before crashtest.Look) {
	t.Helper()
	after := look(ctx, t, m.b, m.id)
	wholly := func(what string, l, want crashtest.Look) {
		t.Helper()
		if !alike(l, want) {
			t.Errorf("%s: %d and %d messages, want %d and %d", what, len(l.UI), len(l.API), len(want.UI), len(want.API))
		}
	}
	there, again := "undo", "redo"
	switch name {
	case "rewind", "edit":
		if n := len(after.API); n >= len(before.API) || !bytes.Equal(after.API[n-1], before.API[n-1]) {
			t.Errorf("%d messages of %d", n, len(before.API))
		}
		if shown := fmt.Sprintf("%s", after.UI); strings.Contains(shown, "Step 3.") || strings.Contains(shown, "other words") != (name == "edit") {
			t.Errorf("shown: %s", shown)
		}
	case "undo":
		wholly("undo", after, m.whole)
		there, again = "redo", "undo"
	case "redo":
		wholly("redo", after, m.back)
	}
	m.must(ctx, t, there, m.id)
	last := look(ctx, t, m.b, m.id)
	wholly(there, last, before)
	if err := last.CheckFiles(); err != nil {
		t.Errorf("after %s: %v", there, err)
	}
	m.must(ctx, t, again, m.id)
	wholly(again, look(ctx, t, m.b, m.id), after)
	m.must(ctx, t, "resume", m.id, "and now rest")
	end := look(ctx, t, m.b, m.id)
	for _, err := range []error{crashtest.CheckPrefix(after, end), crashtest.CheckHistories(end), end.CheckFiles()} {
		if err != nil {
			t.Error(err)
		}
	}
	sent := fmt.Sprintf("%s", end.API)
	if !strings.Contains(sent, "and now rest") || strings.Contains(sent, "other words") != (name == "edit") || end.Status != "completed" {
		t.Errorf("%s; sent: %.600s", end.Status, sent)
	}
	doctor(ctx, t, m.b)
}

// A kill while a fork is made leaves no fork or a whole one, and never touches the task
// that it is made of.
func TestKilledWhileItForks(t *testing.T) {
	for fail, made := range map[string]bool{
		"fork.before": false, "fork.written": false, "fork.made": true, "project.renamed": true,
	} {
		t.Run(fail, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			m := movedBack(ctx, t)
			if c := start(ctx, t, m.b, fail, "fork", m.id, "--at", "~2"); !c.Killed {
				t.Fatalf("it ended by itself: %d: %s", c.Code, c.Errors)
			}
			doctor(ctx, t, m.b)
			if !alike(look(ctx, t, m.b, m.id), m.whole) {
				t.Error("the task that was forked changed")
			}
			if n := len(m.forks(t)); n > 1 || n == 1 != made {
				t.Fatalf("%d forks", n)
			}
			if !made {
				m.must(ctx, t, "fork", m.id, "--at", "~2")
			}
			fork := m.forks(t)[0]
			begun := look(ctx, t, m.b, fork)
			if n := len(begun.API); n == 0 || n >= len(m.whole.API) || !bytes.Equal(begun.API[n-1], m.whole.API[n-1]) || strings.Contains(fmt.Sprintf("%s", begun.API), "Step 3.") {
				t.Errorf("the fork holds %s", begun.API)
			}
			for _, id := range []string{fork, m.id} {
				m.must(ctx, t, "resume", id, "and now rest")
				end := look(ctx, t, m.b, id)
				for _, err := range []error{crashtest.CheckHistories(end), end.CheckFiles()} {
					if err != nil {
						t.Errorf("%s: got %v, want no error", id, err)
					}
				}
			}
			doctor(ctx, t, m.b)
		})
	}
}

func (m *moved) forks(t *testing.T) []string {
	t.Helper()
	ids, err := m.b.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(ids, func(id string) bool { return id == m.id })
}
