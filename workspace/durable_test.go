//go:build unix

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// disk is what a power cut would leave for certain: of each folder the names it had when
// it was synced last, of each file the content and the mode.
type disk struct {
	t      *testing.T
	root   string
	mu     sync.Mutex
	names  map[string]map[string]string // of a folder: name, and what it leads to
	files  map[uint64]string
	syncs  int
	refuse int    // the sync that fails, from 1; 0 = none
	at     func() // is told of each sync
}

// onDisk takes what stands there for durable, and looks at all syncs from then on.
func onDisk(t *testing.T, root string) *disk {
	t.Helper()
	d := &disk{t: t, root: root, names: map[string]map[string]string{}, files: map[uint64]string{}}
	for _, path := range d.all() {
		d.note(path)
	}
	real := syncFile
	syncFile = func(f *os.File) error { return d.sync(f) }
	t.Cleanup(func() { syncFile = real })
	return d
}

// all are the folders and files there are now.
func (d *disk) all() (out []string) {
	err := filepath.WalkDir(d.root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && (e.IsDir() || e.Type().IsRegular()) && !tempName().MatchString(e.Name()) {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		d.t.Error(err)
	}
	return out
}

func inode(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

// live is what a folder or file holds now.
func (d *disk) live(path string) (names map[string]string, ino uint64, file string) {
	info, err := os.Lstat(path)
	if err != nil {
		d.t.Error(err)
		return nil, 0, ""
	}
	if !info.IsDir() {
		data, err := os.ReadFile(path)
		if err != nil {
			d.t.Error(err)
		}
		return nil, inode(info), fmt.Sprintf("%v %s", info.Mode(), data)
	}
	names = map[string]string{}
	list, err := os.ReadDir(path)
	if err != nil {
		d.t.Error(err)
	}
	for _, e := range list {
		if tempName().MatchString(e.Name()) {
			continue
		}
		at := filepath.Join(path, e.Name())
		if to, err := os.Readlink(at); err == nil {
			names[e.Name()] = "link to " + to
		} else if info, err := os.Lstat(at); err == nil && info.IsDir() {
			names[e.Name()] = "folder"
		} else if err == nil {
			names[e.Name()] = fmt.Sprint("file ", inode(info))
		}
	}
	return names, 0, ""
}

func (d *disk) note(path string) {
	names, ino, file := d.live(path)
	if names != nil {
		d.names[path] = names
	} else {
		d.files[ino] = file
	}
}

func (d *disk) sync(f *os.File) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.syncs++; d.syncs == d.refuse {
		return errRefused
	}
	d.note(filepath.Clean(f.Name()))
	if d.at != nil {
		d.at()
	}
	return nil
}

var errRefused = errors.New("the disk refuses")

// has reports whether a power cut would leave a file at a path.
func (d *disk) has(rel string) bool {
	at, what := d.root, ""
	for part := range strings.SplitSeq(rel, "/") {
		what = d.names[at][part]
		at = filepath.Join(at, part)
	}
	var ino uint64
	_, err := fmt.Sscanf(what, "file %d", &ino)
	return err == nil && d.files[ino] != ""
}

// durable fails unless all that stands there would stand there after a power cut.
func (d *disk) durable(when string) {
	d.t.Helper()
	for _, path := range d.all() {
		names, ino, file := d.live(path)
		if names != nil && !maps.Equal(names, d.names[path]) {
			d.t.Errorf("%s: of %s the disk has %v, not %v", when, path, d.names[path], names)
		}
		if names == nil && d.files[ino] != file {
			d.t.Errorf("%s: of %s the disk has %q, not %q", when, path, d.files[ino], file)
		}
	}
}

// A set that was applied is on the disk, and at no moment a power cut takes a file that is
// only moved: its new place is on the disk before the old one is emptied.
func TestAppliedSetsAreDurable(t *testing.T) {
	set := func(t *testing.T) (*Workspace, string, []Change) {
		w, root := plant(t, "a", "old a", "d/e/gone", "x", "moved/f", "m")
		return w, root, []Change{to(t, w, "moved/f", "-"), to(t, w, "a", "new a"), to(t, w, "d/e/gone", "-"), to(t, w, "new/deep/f", "m"), to(t, w, "d/fresh", "y")}
	}
	w, root, changes := set(t)
	d := onDisk(t, root)
	d.at = func() {
		_, err := os.Lstat(filepath.Join(root, "moved/f"))
		if err != nil && !d.has("new/deep/f") {
			t.Errorf("at sync %d the moved file may be nowhere", d.syncs)
		}
	}
	if _, err := w.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	d.durable("applied")
	for n := 1; n <= d.syncs; n++ {
		w, root, changes := set(t)
		bad := onDisk(t, root)
		bad.refuse = n
		before := tree(t, root)
		if _, err := w.Apply(t.Context(), changes); !errors.Is(err, errRefused) || errors.Is(err, ErrPartly) {
			t.Errorf("sync %d of %d is refused: %v", n, d.syncs, err)
		}
		if diff := cmp.Diff(before, tree(t, root)); diff != "" {
			t.Errorf("sync %d of %d is refused, and not all is taken back: %s", n, d.syncs, diff)
		}
		for _, rel := range []string{"a", "d/e/gone", "moved/f"} {
			if !bad.has(rel) {
				t.Errorf("sync %d of %d is refused, and a power cut may take %s", n, d.syncs, rel)
			}
		}
	}
}

// A file that was written is on the disk, and so are the folders that were made for it.
func TestWrittenFilesAreDurable(t *testing.T) {
	w, root := plant(t, "a", "old")
	d := onDisk(t, root)
	for path, expect := range map[string]string{"a": HashOf([]byte("old")), "n/e/w": "", "n/b": ""} {
		if _, err := w.Write(t.Context(), resolve(t, w, path), []byte("new"), expect); err != nil {
			t.Fatal(err)
		}
		d.durable(path)
	}
}

// What was put back is on the disk: contents, modes, links, folders that came and folders
// that went. A disk that refuses is told of.
func TestWhatIsPutBackIsDurable(t *testing.T) {
	orders := func(t *testing.T) (*Workspace, string, []RestoreStep) {
		w, root := open(t)
		mk(root, "a", "old", 0o600)
		mk(root, "mode", "m", 0o600)
		mk(root, "g/o/n/e", "x", 0o644)
		mk(root, "half/gone/f", "x", 0o644)
		mk(root, "half/stays", "x", 0o644)
		mk(root, "tolink", "x", 0o644)
		fixture.Link(t, "b", filepath.Join(root, "l"))
		list := []RestoreStep{
			{Path: "a", From: fileOf("old", 0o600), To: fileOf("new", 0o755)},
			{Path: "mode", From: fileOf("m", 0o600), To: fileOf("m", 0o640)},
			{Path: "n/e/w/f", From: absent(3), To: fileOf("new", 0o644)},
			{Path: "n/l", From: absent(0), To: linkOf("new")},
			{Path: "tolink", From: fileOf("x", 0o644), To: linkOf("new")},
			{Path: "l", From: linkOf("b"), To: absent(0)},
			{Path: "g/o/n/e", From: fileOf("x", 0o644), To: absent(3)},
			{Path: "half/gone/f", From: fileOf("x", 0o644), To: absent(2)},
		}
		for i := range list {
			list[i].Data = func() ([]byte, error) { return []byte("new"), nil }
		}
		return w, root, list
	}
	run := func(t *testing.T, w *Workspace, list []RestoreStep) error {
		b := w.NewRestorer()
		err := b.RestoreAll(t.Context(), list, func(i int, put RestoreResult) {
			if put != Restored {
				t.Errorf("%s: got %v, want put = Restored", list[i].Path, put)
			}
		})
		if err == nil {
			err = b.Sync()
		}
		return err
	}
	w, root, list := orders(t)
	d := onDisk(t, root)
	if err := run(t, w, list); err != nil {
		t.Fatal(err)
	}
	d.durable("put back")
	if got, want := things(t, root), "a=755 new half/stays=644 x mode=640 m n/e/w/f=644 new n/l>new tolink>new"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	for n := 1; n <= d.syncs; n++ {
		w, root, list := orders(t)
		onDisk(t, root).refuse = n
		if err := run(t, w, list); !errors.Is(err, errRefused) {
			t.Errorf("sync %d of %d is refused: %v", n, d.syncs, err)
		}
	}
}
