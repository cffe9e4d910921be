package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Whatever changes a file is told, with its name and without that of others, and once.
func TestChangesAreTold(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(f *field)
		told []string
	}{
		{"nothing", func(*field) {}, nil},
		{"written", func(f *field) { f.put("d/a", "2") }, []string{"d/a"}},
		{"another file written", func(f *field) { f.put("d/other", "2"); f.put("new", "1") }, nil},
		{"a folder beside it filled", func(f *field) { f.put("e/a", "2") }, nil},
		{"cut", func(f *field) { f.must(os.Truncate(f.path("d/a"), 0)) }, []string{"d/a"}},
		{"touched", func(f *field) { f.must(os.Chmod(f.path("d/a"), 0o600)) }, []string{"d/a"}},
		{"removed", func(f *field) { f.must(os.Remove(f.path("d/a"))) }, []string{"d/a"}},
		{"made", func(f *field) { f.put("d/absent", "1") }, []string{"d/absent"}},
		{"saved by an editor", func(f *field) { f.put("d/.a.swp", "2"); f.move("d/a", "d/a~"); f.move("d/.a.swp", "d/a") }, []string{"d/a"}},
		{"one moved over the other", func(f *field) { f.move("top", "d/a") }, []string{"d/a", "top"}},
		{"in other letters", func(f *field) { f.put("d/A", "2") }, []string{"d/a"}},
		{"mapped", func(f *field) {
			file, err := os.OpenFile(f.path("d/a"), os.O_RDWR, 0)
			f.must(err)
			m, err := syscall.Mmap(int(file.Fd()), 0, 1, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
			f.must(err)
			m[0] = 'x'
			f.must(syscall.Munmap(m))
			f.must(file.Close())
		}, []string{"d/a"}},
		{"its folder moved away", func(f *field) { f.move("d", "was") }, []string{"d/a", "d/absent", "d/deep/b"}},
		{"a folder above it moved and put back", func(f *field) { f.move("d", "was"); f.move("was", "d") }, []string{"d/a", "d/absent", "d/deep/b"}},
		{"its folder swapped for a link", func(f *field) { f.move("d", "was"); f.must(os.Symlink("was", f.path("d"))) }, []string{"d/a", "d/absent", "d/deep/b"}},
		{"its folder removed", func(f *field) { f.must(os.RemoveAll(f.path("d/deep"))) }, []string{"d/deep/b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newField(t)
			f.put("d/a", "1")
			f.put("d/deep/b", "1")
			f.put("top", "1")
			f.watch("d/a", "d/absent", "d/deep/b", "top")
			f.told()
			tt.do(f)
			f.told(tt.told...)
			f.told()
		})
	}
}

// The workspace itself may be moved.
func TestTheWorkspaceIsMoved(t *testing.T) {
	f := newField(t)
	f.put("ws/a", "1")
	f.w.root = f.path("ws")
	f.watch("ws/a")
	f.move("ws", "moved")
	f.told("ws/a")
	if f.w.Watch(f.path("ws/a")) {
		t.Error("a file in a folder that is not there is covered")
	}
}

// After its folder was swapped, a file is covered where it stands then.
func TestWatchedAgainAfterAMove(t *testing.T) {
	f := newField(t)
	f.put("d/a", "1")
	f.put("e/a", "2")
	f.watch("d/a")
	f.move("d", "was")
	f.move("e", "d")
	f.told("d/a")
	f.watch("d/a")
	f.put("was/a", "no news any more")
	f.told()
	f.put("d/a", "3")
	f.told("d/a")
}

// A folder that is swapped while a new file below it is being watched costs the files that
// were watched before nothing.
func TestAFolderSwappedUnseen(t *testing.T) {
	f := newField(t)
	f.put("d/deep/b", "1")
	f.watch("d/deep/b") // d is on the way
	f.move("d", "was")
	f.put("d/a", "1")
	f.watch("d/a") // before anybody took what was told of d
	f.told("d/deep/b")
}

// A link on the way is not followed: what it leads to may change without its moving.
func TestALinkOnTheWayIsNotCovered(t *testing.T) {
	f := newField(t)
	f.put("real/a", "1")
	f.must(os.Symlink("real", f.path("link")))
	if f.w.Watch(f.path("link/a")) {
		t.Error("covered")
	}
	f.watch("real/a")
}

// Watchers share the system's handle and do not hear of each other's files.
func TestWatchersShareAHandle(t *testing.T) {
	f := newField(t)
	f.put("d/a", "1")
	f.put("d/b", "1")
	other := newWatcher(f.w.hub, f.dir)
	f.watch("d/a")
	if !other.Watch(f.path("d/b")) {
		t.Fatal("not covered")
	}
	f.put("d/b", "2")
	f.told()
	if got, _ := other.Take(); len(got) != 1 || got[0] != f.path("d/b") {
		t.Errorf("told %q", got)
	}
	other.Close()
	if other.Watch(f.path("d/b")) {
		t.Error("a closed watcher covers")
	}
	f.put("d/a", "2")
	f.told("d/a")
}

// A workspace of any size costs one handle and a bounded number of folders; what lies
// beyond is not covered.
func TestHandlesAreBounded(t *testing.T) {
	f := newField(t)
	count := func() (n int) {
		entries, err := os.ReadDir("/proc/self/fd")
		f.must(err)
		return len(entries)
	}
	before := count()
	covered := 0
	for i := range 300 {
		f.put(fmt.Sprintf("d%03d/a", i), "1")
		for j := range 10 {
			if f.w.Watch(f.path(fmt.Sprintf("d%03d/f%d", i, j))) {
				covered++
			}
		}
	}
	if n := len(f.w.folders); n > Limit || n < Limit-10 {
		t.Errorf("%d folders are watched", n)
	}
	if covered != 10*(Limit-len(wayTo(f.dir))) {
		t.Errorf("%d files are covered", covered)
	}
	if after := count(); after != before+1 {
		t.Errorf("%d handles, %d before", after, before)
	}
}

// When the system throws events away everything is in doubt once, and then covered again.
func TestOverflow(t *testing.T) {
	f := newField(t)
	f.put("a", "1")
	f.put("b", "1")
	f.watch("a", "b")
	limit := 16384
	if text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events"); err == nil {
		_, _ = fmt.Sscan(string(text), &limit)
	}
	if limit > 1<<17 {
		t.Skip("this system keeps too many events")
	}
	x, y := f.path("x"), f.path("y") // the same event again and again would be kept once
	f.put("x", "")
	for range limit/2 + 10 {
		f.must(os.Rename(x, y))
		f.must(os.Rename(y, x))
	}
	if _, all := f.w.Take(); !all {
		t.Fatal("nobody was told that something may have been missed")
	}
	f.watch("a", "b")
	f.told()
	f.put("b", "2")
	f.told("b")
}

// What the system refuses is not covered.
func TestRefused(t *testing.T) {
	f := newField(t)
	f.put("d/a", "1")
	f.w.hub.sys = &refusing{left: 0}
	if f.w.Watch(f.path("d/a")) {
		t.Error("covered without a handle")
	}
	f.w.hub.sys = &refusing{left: 1}
	if f.w.Watch(f.path("d/a")) {
		t.Error("covered without a mark")
	}
	f.w.hub.sys = &refusing{left: 1000}
	f.watch("d/a")
	f.w.hub.sys.(*refusing).broken = true
	if _, all := f.w.Take(); !all {
		t.Error("nobody was told that it is over")
	}
}

// refusing lets only so many calls succeed.
type refusing struct {
	inotify
	left   int
	broken bool
}

func (r *refusing) read(each func(event)) error {
	if r.broken {
		return syscall.EIO
	}
	return r.inotify.read(each)
}

func (r *refusing) open() error {
	if r.left--; r.left < 0 {
		return syscall.EMFILE
	}
	return r.inotify.open()
}

func (r *refusing) add(dir string, whole bool) (int32, error) {
	if r.left--; r.left < 0 {
		return 0, syscall.ENOSPC
	}
	return r.inotify.add(dir, whole)
}

// Whatever a kernel may write is taken apart without reading beyond it.
func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 'a', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{255, 255, 255, 255, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		n, names := 0, 0
		err := parse(data, func(e event) { n, names = n+1, names+len(e.name) })
		if n*16+names > len(data) || err == nil && n == 0 && len(data) > 0 {
			t.Errorf("%d events with %d bytes of names in %d bytes (%v)", n, names, len(data), err)
		}
	})
}

// A folder that may not be read, above the workspace, is no hindrance.
func TestAFolderAboveMayBeClosed(t *testing.T) {
	f := newField(t)
	f.put("home/ws/a", "1")
	f.w.root = f.path("home/ws")
	f.must(os.Chmod(f.path("home"), 0o100))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(f.dir, "home"), 0o700) })
	f.watch("home/ws/a")
	f.put("home/ws/a", "2")
	f.told("home/ws/a")
}
