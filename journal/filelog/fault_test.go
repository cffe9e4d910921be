package filelog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/faultfs"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

func add(t testing.TB, o journal.Owner, n int) {
	t.Helper()
	for i := range n {
		if _, err := o.Append(context.Background(), journal.Draft{By: "t", Events: []journal.Event{fmt.Appendf(nil, `{"n":%d}`, i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Barrier(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// made returns a closed folder with n commits, and its log's bytes.
func made(t testing.TB, n int) (dir string, log []byte) {
	t.Helper()
	dir = t.TempDir()
	o := mustOwn(t, dir, filelog.Options{})
	add(t, o, n-1)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return dir, log
}

func put(t testing.TB, dir, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// found reads the whole log: the commits and the lost sequences.
func found(t testing.TB, dir string) (seqs, lost []uint64) {
	t.Helper()
	r, err := filelog.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for c, err := range r.Read(context.Background(), 1) {
		var d *journal.DamageError
		switch {
		case errors.As(err, &d):
			lost = append(lost, d.Seq)
		case err != nil:
			t.Fatal(err)
		default:
			seqs = append(seqs, c.Seq)
		}
	}
	return seqs, lost
}

func TestTornAtEveryByte(t *testing.T) {
	dir, log := made(t, 4)
	last := bytes.LastIndexByte(log[:len(log)-1], '\n') + 1
	for cut := last; cut < len(log); cut++ {
		for _, acked := range []bool{false, true} {
			d := t.TempDir()
			put(t, d, "journal.jsonl", log[:cut])
			if acked { // the record in the lock file knows that the line was synced
				if err := os.CopyFS(filepath.Join(d, "x"), os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				d = filepath.Join(d, "x")
				o := mustOwn(t, d, filelog.Options{}) // binds the record to this inode
				o.Close()
				all, _ := os.ReadFile(filepath.Join(d, "journal.jsonl"))
				tail := bytes.LastIndexByte(all[:len(all)-1], '\n') + 1
				os.Truncate(filepath.Join(d, "journal.jsonl"), int64(min(tail+cut-last, len(all)-1)))
			}
			seqs, lost := found(t, d)
			if acked && (len(seqs) != 4 || len(lost) != 1 || lost[0] != 5) || !acked && (len(seqs) != 3 || len(lost) != 0) {
				t.Fatalf("cut %d acked %v: %v lost %v", cut, acked, seqs, lost)
			}
			o := mustOwn(t, d, filelog.Options{Clock: func() int64 { return 77 }})
			add(t, o, 1)
			o.Close()
			torn, err := os.ReadFile(filepath.Join(d, "journal.torn-77"))
			if want := cut > last; (err == nil) != want || !acked && want && !bytes.Equal(torn, log[last:cut]) {
				t.Fatalf("cut %d: set aside %q, %v", cut, torn, err)
			}
			seqs, lost2 := found(t, d)
			if seqs[len(seqs)-1] != uint64(len(seqs)+len(lost)) || len(lost2) != len(lost) {
				t.Fatalf("cut %d acked %v: then %v lost %v", cut, acked, seqs, lost2)
			}
		}
	}
}

func TestFlippedBytes(t *testing.T) {
	dir, log := made(t, 5)
	lines := bytes.SplitAfter(log, []byte("\n"))
	first, end := len(lines[0])+len(lines[1]), len(lines[0])+len(lines[1])+len(lines[2])
	for at := first; at < end; at++ {
		for _, mask := range []byte{1, 0x20, 0xff, log[at] ^ '\n'} {
			if mask == 0 {
				continue
			}
			bad := bytes.Clone(log)
			bad[at] ^= mask
			f, _ := os.OpenFile(filepath.Join(dir, "journal.jsonl"), os.O_WRONLY, 0)
			f.WriteAt(bad, 0)
			f.Close()
			seqs, lost := found(t, dir)
			want, wantLost := "[1 2 4 5]", "[3]"
			if at == end-1 { // without its newline the line swallows the next
				want, wantLost = "[1 2 5]", "[3 4]"
			}
			if fmt.Sprint(seqs) != want || fmt.Sprint(lost) != wantLost {
				t.Fatalf("byte %d mask %x: %v lost %v", at, mask, seqs, lost)
			}
		}
	}
}

func TestFilesThatAreNoLog(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		torn    bool
	}{
		"empty": {"", false}, "text": {"hello", true}, "zeros": {strings.Repeat("\x00", 5000), true},
		"zero lines": {strings.Repeat("\x00", 50) + "\nx\n", true},
	} {
		d := t.TempDir()
		put(t, d, "journal.jsonl", []byte(c.content))
		if s, l := found(t, d); len(s)+len(l) > 0 {
			t.Fatalf("%s: got %v %v, want len(s)+len(l) <= 0", name, s, l)
		}
		r, _ := filelog.OpenReader(d)
		h, err := r.Health(t.Context())
		r.Close()
		if err != nil || (h.TornTail != nil) != c.torn || !h.OK() {
			t.Fatalf("%s: got %+v %v, want no error and (h.TornTail != nil) = c.torn and h.OK()", name, h, err)
		}
		if list, _ := os.ReadDir(d); len(list) != 1 {
			t.Fatalf("%s: reading wrote something: %v", name, list)
		}
		o := mustOwn(t, d, filelog.Options{})
		add(t, o, 1)
		o.Close()
		checkLog(t, d)
	}
}

func TestOlderEpochIsSetAside(t *testing.T) {
	dir, log := made(t, 3)
	mustOwn(t, dir, filelog.Options{}).Close()
	stale, _ := journal.EncodeCommit(journal.Commit{Seq: 5, Epoch: 1, Events: []journal.Event{[]byte(`{"stale":1}`)}})
	all, _ := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	put(t, dir, "journal.jsonl", append(all, stale...))
	o := mustOwn(t, dir, filelog.Options{})
	h, err := o.Health(t.Context())
	if err != nil || h.Head != 5 || h.Epoch != 3 || len(h.SetAside) != 1 || !h.OK() || len(log) == 0 {
		t.Fatalf("got %+v %v, want no error and h.Head = 5 and h.Epoch = 3 and len(h.SetAside) = 1 and h.OK() and len(log) != 0",
			h, err)
	}
}

func TestIndexDamagedAtAnyByteChangesNothing(t *testing.T) {
	dir, _ := made(t, 400)
	o := mustOwn(t, dir, filelog.Options{})
	if err := o.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 300, Data: []byte("snap")}); err != nil {
		t.Fatal(err)
	}
	o.Close()
	idx, _ := os.ReadFile(filepath.Join(dir, "journal.idx"))
	for at := -1; at < len(idx); at++ {
		for _, cut := range []bool{true, false} {
			bad := bytes.Clone(idx)
			if cut {
				bad = bad[:max(at, 0)]
			} else if at >= 0 {
				bad[at] ^= 0x41
			}
			put(t, dir, "journal.idx", bad)
			r, err := filelog.OpenReader(dir)
			if err != nil {
				t.Fatal(err)
			}
			head, err := r.Head(t.Context())
			for c, err := range r.Read(t.Context(), 390) {
				if err != nil || c.Seq != 390 {
					t.Fatalf("byte %d: %d %v", at, c.Seq, err)
				}
				break
			}
			s, serr := r.Snapshot(t.Context())
			r.Close()
			intact := !cut && at < 0
			if err != nil || head != 401 || (serr == nil) != intact || intact && string(s.Data) != "snap" {
				t.Fatalf("byte %d cut %v: head %d %v, snapshot %q %v", at, cut, head, err, s.Data, serr)
			}
		}
	}
}

func TestDiskRefuses(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EIO, syscall.EDQUOT, syscall.EROFS} {
		for _, ops := range []string{"write", "sync", "write truncate", "sync open", "write open truncate"} {
			t.Run(ops+"/"+cause.Error(), func(t *testing.T) {
				dir := t.TempDir()
				ffs := faultfs.New()
				o := mustOwn(t, dir, filelog.Options{FS: ffs, MaxUnsaved: 4096})
				add(t, o, 2)
				good, _ := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
				ffs.Fail(faultfs.Ops(ops, "journal.jsonl", cause))
				seq, err := o.Append(t.Context(), journal.Draft{Events: []journal.Event{[]byte(`{"x":1}`)}})
				if err != nil {
					t.Fatal(err)
				}
				for range 3 {
					err = o.Barrier(t.Context())
					if !errors.Is(err, journal.ErrNotSaved) || !strings.Contains(err.Error(), "journal.jsonl") {
						t.Fatalf("barrier: %v", err)
					}
				}
				if o.Unsaved() == nil {
					t.Fatal("Unsaved says nothing")
				}
				if s, l := found(t, dir); len(s) != 3 || len(l) > 0 {
					t.Fatalf("shown %v %v", s, l)
				}
				if !strings.Contains(ops, "truncate") && !strings.Contains(ops, "open") {
					if now, _ := os.ReadFile(filepath.Join(dir, "journal.jsonl")); !bytes.Equal(now, good) {
						t.Fatal("something half was left behind")
					}
				}
				var full error
				for range 200 {
					if _, full = o.Append(t.Context(), journal.Draft{Events: []journal.Event{[]byte(`{"more":"` + strings.Repeat("x", 100) + `"}`)}}); full != nil {
						break
					}
					seq++
				}
				if !errors.Is(full, journal.ErrNotSaved) {
					t.Fatalf("memory is not bounded: %v", full)
				}
				ffs.Fail(nil)
				// By itself, without a Barrier.
				for start := time.Now(); o.Unsaved() != nil; time.Sleep(5 * time.Millisecond) {
					if time.Since(start) > time.Minute {
						t.Fatal("saving does not go on")
					}
				}
				add(t, o, 1)
				if head := checkLog(t, dir); head != seq+1 {
					t.Fatalf("head %d, want %d", head, seq+1)
				}
			})
		}
	}
}

func TestOwnWhileTheDiskRefuses(t *testing.T) {
	for _, op := range []string{"open", "write", "sync", "mkdir", "syncdir"} {
		dir := filepath.Join(t.TempDir(), "a", "b")
		ffs := faultfs.New()
		ffs.Fail(faultfs.Ops(op, "", syscall.ENOSPC))
		_, err := filelog.Own(t.Context(), dir, filelog.Options{FS: ffs})
		if !errors.Is(err, journal.ErrNotSaved) || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%s: got %v, want errors.Is(err, journal.ErrNotSaved) and errors.Is(err, syscall.ENOSPC)", op, err)
		}
		ffs.Fail(nil)
		o := mustOwn(t, dir, filelog.Options{FS: ffs})
		o.Close()
		checkLog(t, dir)
	}
}

func TestBlobFaults(t *testing.T) {
	dir := t.TempDir()
	ffs := faultfs.New()
	o := mustOwn(t, dir, filelog.Options{FS: ffs})
	for _, op := range []string{"open", "write", "sync", "rename", "mkdir"} {
		ffs.Fail(faultfs.Ops(op, "", syscall.EDQUOT))
		if _, err := o.PutBlob(t.Context(), []byte("blob "+op)); !errors.Is(err, journal.ErrNotSaved) {
			t.Fatalf("%s: got %v, want errors.Is(err, journal.ErrNotSaved)", op, err)
		}
		ffs.Fail(nil)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "blobs", "tmp-*")); len(left) > 0 {
		t.Fatal("temporary files stay behind", left)
	}
	a, _ := o.PutBlob(t.Context(), []byte("one"))
	b, _ := o.PutBlob(t.Context(), []byte("two"))
	if _, err := o.Append(t.Context(), journal.Draft{Blobs: []journal.Hash{a, b}, Events: []journal.Event{[]byte(`{}`)}}); err != nil {
		t.Fatal(err)
	}
	add(t, o, 1)
	os.Remove(filepath.Join(dir, "blobs", string(a[:2]), string(a)))
	put(t, filepath.Join(dir, "blobs", string(b[:2])), string(b), []byte("tww"))
	if _, err := o.Blob(t.Context(), a); !errors.Is(err, journal.ErrBlobMissing) {
		t.Fatal(err)
	}
	bl, err := o.Blob(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer bl.Close()
	if _, err := bl.ReadAll(); !errors.Is(err, journal.ErrBlobDamaged) {
		t.Fatal(err)
	}
	h, err := o.Health(t.Context())
	if err != nil || len(h.MissingBlobs) != 1 || len(h.DamagedBlobs) != 1 || h.OK() {
		t.Fatalf("got %+v %v, want no error and len(h.MissingBlobs) = 1 and len(h.DamagedBlobs) = 1 and not h.OK()",
			h, err)
	}
}

func TestFenced(t *testing.T) {
	for name, do := range map[string]func(path string) error{
		"grown": func(p string) error {
			f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteString("{}\n")
				f.Close()
			}
			return err
		},
		"cut":     func(p string) error { return os.Truncate(p, 10) },
		"deleted": os.Remove,
	} {
		dir := t.TempDir()
		o := mustOwn(t, dir, filelog.Options{})
		if err := do(filepath.Join(dir, "journal.jsonl")); err != nil {
			t.Fatal(err)
		}
		o.Append(t.Context(), journal.Draft{Events: []journal.Event{[]byte(`{}`)}})
		if err := o.Barrier(t.Context()); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("%s: got %v, want errors.Is(err, journal.ErrFenced)", name, err)
		}
		if _, err := o.Append(t.Context(), journal.Draft{Events: []journal.Event{[]byte(`{}`)}}); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("%s: append: %v", name, err)
		}
		o.Close()
	}
}

type nfs struct{ filelog.FS }

func (nfs) LocksTrusted(string) (string, bool, error) { return "NFS", false, nil }

func TestUntrustedLocks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if _, err := filelog.Own(t.Context(), dir, filelog.Options{FS: nfs{filelog.OS}}); !errors.Is(err, journal.ErrUntrustedLocks) {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("it was created all the same")
	}
}

// mountTiny mounts a small tmpfs, or skips.
func mountTiny(t *testing.T, opt string) string {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("mounting needs root on Linux")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", opt, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return dir
}

func TestRealFullDiskAndReadOnly(t *testing.T) {
	disk := mountTiny(t, "size=256k")
	dir := filepath.Join(disk, "task")
	o := mustOwn(t, dir, filelog.Options{})
	put(t, disk, "ballast", make([]byte, 100<<10))
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		if _, err = o.Append(t.Context(), journal.Draft{Events: []journal.Event{[]byte(`{"x":"` + strings.Repeat("y", 3000) + `"}`)}}); err == nil {
			err = o.Barrier(t.Context())
		}
	}
	if !errors.Is(err, journal.ErrNotSaved) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "full") {
		t.Fatalf("after %d: %v", n, err)
	}
	t.Log(err)
	if head := checkLog(t, dir); head != uint64(n) {
		t.Fatalf("head %d, appended %d", head, n)
	}
	os.Remove(filepath.Join(disk, "ballast"))
	add(t, o, 1)
	if head := checkLog(t, dir); head != uint64(n+2) {
		t.Fatalf("head %d, appended %d", head, n)
	}
	o.Close()
	if out, err := exec.Command("mount", "-o", "remount,ro", disk).CombinedOutput(); err != nil {
		t.Skipf("cannot remount: %v %s", err, out)
	}
	checkLog(t, dir)
	if _, err := filelog.Own(t.Context(), dir, filelog.Options{}); !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "read-only") {
		t.Fatal(err)
	}
}
