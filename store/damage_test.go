package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/payload"
	"github.com/roost-dev/roost/task"
)

// ill is a store with a task of ours of ours that the tests spoil, and its folder.
func ill(t *testing.T) (s *Store, dir string) {
	root := t.TempDir()
	s = open(t, root)
	k := create(t, s, "ill")
	commit(t, k, task.UI, uiRow(2, strings.Repeat("big", payload.MaxInline)))
	commit(t, k, task.API, apiRow(3, "user", "hello"))
	commit(t, k, task.UI, uiRow(4, "last"))
	closeTask(t, k)
	return s, filepath.Join(root, "tasks", "ill")
}

// A task whose journal was hit says so to whoever takes it over.
func TestOwnersAreToldOfDamage(t *testing.T) {
	s, dir := ill(t)
	fixture.NoError(t, os.Remove(filepath.Join(dir, "journal.idx")))
	lines := strings.SplitAfter(read(t, dir, "journal.jsonl"), "\n")
	lines[2] = strings.Replace(lines[2], `"seq":3`, `"seq":4`, 1)
	write(t, dir, "journal.jsonl", strings.Join(lines, ""))
	for range 2 { // it does not wear off
		k := own(t, s, "ill").Task
		problems := k.State().Problems
		if len(problems) == 0 || problems[0].Seq != 3 {
			t.Errorf("got %+v, want len(problems) != 0 and problems[0].Seq = 3", problems)
		}
		closeTask(t, k)
	}
}

// Messages that a damaged journal lost come back from the files that show them;
// they are not wiped out by a projection of what is left.
func TestLostMessagesComeBackFromTheFiles(t *testing.T) {
	for name, c := range map[string]struct {
		line  int // of the journal, from 0
		added int
		chang int
	}{
		"a row": {3, 1, 0}, "a turn": {2, 1, 0}, "the newest row": {5, 1, 0}, "a change": {4, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			s := open(t, root)
			k := create(t, s, "hit") // lines 0 and 1: the epoch, the task
			commit(t, k, task.API, apiRow(2, "user", "two"))
			commit(t, k, task.UI, uiRow(3, "three"))
			fixture.NoError(t, k.Commit(context.Background(), task.MessageChanged{Message: 1, Body: task.Body{Raw: []byte(uiRow(1, "other words"))}}))
			fixture.NoError(t, k.Barrier(context.Background()))
			commit(t, k, task.UI, uiRow(5, "five"))
			want := rows(k.State())
			closeTask(t, k)
			dir := filepath.Join(root, "tasks", "hit")
			files := map[string]string{roofmt.UIName: read(t, dir, roofmt.UIName), roofmt.APIName: read(t, dir, roofmt.APIName)}
			lines := strings.SplitAfter(read(t, dir, "journal.jsonl"), "\n")
			lines[c.line] = strings.Replace(lines[c.line], `"at":1`, `"at":2`, 1)
			write(t, dir, "journal.jsonl", strings.Join(lines, ""))
			for round := range 2 {
				o := own(t, s, "hit")
				if got := rows(o.Task.State()); got != want {
					t.Errorf("round %d: %s\nwant %s", round, got, want)
				}
				if len(o.Task.State().Problems) == 0 {
					t.Errorf("round %d: nobody is told of the damage", round)
				}
				in := o.Task.Intakes()
				if round == 0 && (len(in) != 1 || !in[0].Restored || in[0].Added != c.added || in[0].Changed != c.chang) || round == 1 && len(in) != 0 {
					t.Errorf("round %d: %+v", round, in)
				}
				closeTask(t, o.Task)
				for name, text := range files {
					if got := read(t, dir, name); got != text {
						t.Errorf("round %d: %s is %s", round, name, got)
					}
				}
			}
		})
	}
}

// A task that disappears between being found and being locked is not made again.
func TestATaskThatIsGoneIsNotTaken(t *testing.T) {
	s, dir := ill(t)
	ref := fixture.Must[Ref](t)(s.Find(t.Context(), "ill"))
	fixture.NoError(t, os.RemoveAll(dir))
	if _, err := s.takeWith(t.Context(), ref, true, false); !errors.Is(err, ErrNotFound) || exists(dir, "") {
		t.Errorf("got %v, want ErrNotFound and no folder", err)
	}
}
