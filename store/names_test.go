package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store/overlay"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/task"
)

// recorder writes down which folders were made, and whose names were synced.
type recorder struct {
	filelog.FS
	mu     sync.Mutex
	made   []string // not synced yet
	synced []string
}

func (r *recorder) Mkdir(name string, perm fs.FileMode) error {
	err := r.FS.Mkdir(name, perm)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.made = append(r.made, name)
	}
	return err
}

func (r *recorder) SyncDir(name string) error {
	err := r.FS.SyncDir(name)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.synced = append(r.synced, name)
		r.made = slices.DeleteFunc(r.made, func(made string) bool { return filepath.Dir(made) == name })
	}
	return err
}

// take gives what was synced since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.synced
	r.synced = nil
	return out
}

// Before the first commit is acknowledged, every name that leads to it is durable: also one
// that a process made which was killed before it synced it.
func TestNamesOfANewRootAreSynced(t *testing.T) {
	for _, left := range []string{"", "above", "above/root", "above/root/tasks", "above/root/tasks/t-1", "above/root/overlay"} {
		t.Run("left "+left, func(t *testing.T) {
			home := t.TempDir()
			root := filepath.Join(home, "above", "root")
			fixture.NoError(t, os.MkdirAll(filepath.Join(home, left), 0o700))
			disk := &recorder{FS: filelog.OS}
			s := fixture.Must[*Store](t)(Open(Options{Root: root, FS: disk}))
			task1 := fixture.Must[*Task](t)(s.Create(t.Context(), task.Created{Task: "t-1"}))
			if len(disk.made) > 0 {
				t.Errorf("made and not synced: %v", disk.made)
			}
			synced := disk.take()
			if left != "" {
				if parent := filepath.Dir(filepath.Join(home, left)); left != "above/root/overlay" && !slices.Contains(synced, parent) {
					t.Errorf("%s was left unsynced, and is; synced were %v", left, synced)
				}
			}
			for range 3 {
				fixture.NoError(t, task1.Commit(t.Context(), task.Changed{Title: new("x")}))
				fixture.NoError(t, task1.Barrier(t.Context()))
			}
			if more := disk.take(); len(more) > 0 {
				t.Errorf("a commit costs syncs of names: %v", more)
			}
			fixture.NoError(t, task1.Close(t.Context()))
			disk.take()
			again := fixture.Must[*Owned](t)(s.Own(t.Context(), s.OwnRef("t-1"))).Task
			if more := disk.take(); !slices.Equal(more, []string{filepath.Join(root, "tasks", "t-1")}) {
				t.Errorf("the next owner syncs %v", more)
			}
			fixture.NoError(t, again.Close(t.Context()))
			fixture.NoError(t, s.ChangeOverlay(t.Context(), func(overlay.Table, overlay.Append) error { return nil }))
			if synced := disk.take(); len(disk.made) > 0 || !slices.Contains(synced, root) {
				t.Errorf("the overlay: made %v, synced %v", disk.made, synced)
			}
			if _, err := Rooms.Delete(t.Context(), s, s.OwnRef("t-1")); err != nil {
				t.Fatal(err)
			}
			if synced := disk.take(); len(disk.made) > 0 || !slices.Contains(synced, root) {
				t.Errorf("the trash: made %v, synced %v", disk.made, synced)
			}
		})
	}
}

// A name that cannot be synced is not acknowledged: that is trouble, and no broken root.
func TestANameThatCannotBeSynced(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	s := fixture.Must[*Store](t)(Open(Options{Root: root, FS: noSync{filelog.OS}}))
	_, err := s.Create(t.Context(), task.Created{Task: "t-1"})
	var bad *RootError
	if !errors.Is(err, journal.ErrNotSaved) || errors.As(err, &bad) {
		t.Error(err)
	}
}

type noSync struct{ filelog.FS }

func (noSync) SyncDir(string) error { return errors.New("input/output error") }
