package filelog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/journal"
)

// Who wants to know is told of each sync once it is one, and at the end before anybody
// else can own the log.
func TestSyncedIsTold(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	var told []string
	opt := Options{Synced: func(epoch, head uint64, last bool) {
		_, held := Holder(dir)
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprint(epoch, head, last, held))
	}}
	o, err := Own(t.Context(), dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		for range i { // of nothing new nobody is told
			if _, err := o.Append(t.Context(), journal.Draft{At: 1, Events: []journal.Event{json.RawMessage(`{"type":"x"}`)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil { // again
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"1 1 false true", "1 2 false true", "1 4 false true", "1 4 true true"}, told); diff != "" {
		t.Error(diff)
	}
}

// A sync that other processes cannot be shown is told with the next one.
func TestASyncThatCannotBeShownIsNotToldYet(t *testing.T) {
	disk := &blind{FS: OS}
	var mu sync.Mutex
	var told []uint64
	o, err := Own(t.Context(), t.TempDir(), Options{FS: disk, Synced: func(_, head uint64, last bool) {
		mu.Lock()
		defer mu.Unlock()
		if !last {
			told = append(told, head)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []uint64{1} // that it is owned
	for i, shown := range []bool{true, false, false, true} {
		disk.off.Store(!shown)
		c, err := o.Append(t.Context(), journal.Draft{At: 1, Events: []journal.Event{json.RawMessage(`{"type":"x"}`)}})
		if err == nil {
			err = o.Barrier(t.Context())
		}
		if err != nil {
			t.Fatalf("%d: got %v, want no error", i, err)
		}
		if shown {
			want = append(want, c)
		}
	}
	if err := o.Close(); err != nil { // it is told behind the barrier
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

// blind is a file system in which nothing can be written in the middle of a file.
type blind struct {
	FS
	off atomic.Bool
}

func (b *blind) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := b.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &blindFile{f, b}, nil
}

type blindFile struct {
	File
	of *blind
}

func (f *blindFile) WriteAt(b []byte, off int64) (int, error) {
	if f.of.off.Load() {
		return 0, errors.New("nothing can be written here")
	}
	return f.File.WriteAt(b, off)
}

// handing is a file system that calls a function once a lock is free.
type handing struct {
	FS
	free func()
}

func (h handing) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := h.FS.OpenFile(name, flag, perm)
	if err != nil || filepath.Base(name) != lockName {
		return f, err
	}
	return handingFile{f, h.free}, nil
}

type handingFile struct {
	File
	free func()
}

func (f handingFile) Close() error { // of an owner: it has unlocked the file
	err := f.File.Close()
	f.free()
	return err
}

// An owner that ends does not take the next one's followers from it.
func TestTheNextOwnerNotifiesFollowers(t *testing.T) {
	dir := t.TempDir()
	var next journal.Owner
	first, err := Own(t.Context(), dir, Options{FS: handing{OS, func() {
		if next == nil {
			next, _ = Own(t.Context(), dir, Options{}) // it is refused while a reader of the first one closes the file
		}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil || next == nil {
		t.Fatalf("got the next owner %v, %v; want one", next, err)
	}
	defer next.Close()
	if !theHub.owned(dirKey(dir)) {
		t.Error("followers are not notified by the log's owner, want that they are")
	}
}

// leaving is a file system in which a folder moves away just before a file in it is opened.
type leaving struct {
	FS
	dir string
}

func (l leaving) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if err := os.Rename(l.dir, l.dir+".moved"); err != nil {
		return nil, err
	}
	return l.FS.OpenFile(name, flag, perm)
}

// A journal that moves into the trash while a reader opens it is not found: that is no fault of the disk.
func TestAJournalThatMovesAwayIsNotFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	log, err := Own(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := openReader(leaving{OS, dir}, dir, 0); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("got %v, want %v", err, journal.ErrNotFound)
	}
}
