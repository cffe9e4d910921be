package filelog_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/faultfs"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

// Every error a disk has is told in words that help, with what was attempted, on
// what, and what to do; and it is the cause for programs.
func TestRefusalsAreExplained(t *testing.T) {
	for cause, words := range map[error]string{
		syscall.ENOSPC: "make room", syscall.EDQUOT: "quota", syscall.EROFS: "read-only", syscall.EIO: "input/output error",
		syscall.EACCES: "permission denied", syscall.EPERM: "permission denied", syscall.EFBIG: "ulimit -f",
		syscall.EMFILE: "ulimit -n", syscall.ENFILE: "ulimit -n", syscall.EBUSY: "the disk refused",
	} {
		dir := t.TempDir()
		disk := faultfs.New()
		o := mustOwn(t, dir, filelog.Options{FS: disk})
		disk.Fail(faultfs.Ops("write", "journal.jsonl", cause))
		if _, err := o.Append(t.Context(), small); err != nil {
			t.Fatal(err)
		}
		err := o.Barrier(t.Context())
		path := filepath.Join(dir, "journal.jsonl")
		if !errors.Is(err, cause) || !errors.Is(err, journal.ErrNotSaved) {
			t.Fatalf("%v: got %v, want errors.Is(err, cause) and errors.Is(err, journal.ErrNotSaved)", cause, err)
		}
		for _, part := range []string{"not saved: write " + path, words} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in %q", part, err)
			}
		}
		if text := err.Error(); strings.Contains(text, "by itself") || strings.Contains(text, "again") {
			t.Errorf("who says this may end, and promises to go on: %s", text)
		}
		if unsaved := o.Unsaved(); !errors.Is(unsaved, cause) {
			t.Errorf("Unsaved: %v", unsaved)
		}
		disk.Fail(nil)
		if err := o.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if head := checkLog(t, dir); head != 2 {
			t.Errorf("saved by Close: head %d", head)
		}
	}
}

// An owner that ends while the disk still refuses says that something was not
// saved; what was is whole, and the next owner goes on.
func TestCloseWhileTheDiskRefuses(t *testing.T) {
	dir := t.TempDir()
	disk := faultfs.New()
	o := mustOwn(t, dir, filelog.Options{FS: disk})
	add(t, o, 1)
	disk.Fail(faultfs.Ops("sync", "journal.jsonl", syscall.EIO))
	if _, err := o.Append(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); !errors.Is(err, journal.ErrNotSaved) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("close: %v", err)
	}
	disk.Fail(nil)
	next := mustOwn(t, dir, filelog.Options{})
	add(t, next, 1)
	if head := checkLog(t, dir); head != 4 {
		t.Fatalf("head %d", head)
	}
}

// refusedMain is the program of a child that may not write the folder.
func refusedMain() {
	dir := os.Getenv(childEnv + "_REFUSED")
	if dir == "" {
		return
	}
	ctx := context.Background()
	_, err := filelog.Own(ctx, dir, filelog.Options{})
	fmt.Println(errors.Is(err, journal.ErrNotSaved), errors.Is(err, syscall.EACCES), err)
	r, err := filelog.OpenReader(dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(0)
	}
	head, err := r.Head(ctx)
	h, herr := r.Health(ctx)
	fmt.Println(head, err, h.OK(), herr)
	os.Exit(0)
}

// Somebody who may only read a folder can read all of it, and is told in plain
// words that the task cannot be taken; nothing changes.
func TestFolderThatMayOnlyBeRead(t *testing.T) {
	dir, _ := made(t, 5)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"_REFUSED="+dir, quickExit)
	if err := asNobody(cmd, dir); err != nil {
		t.Skip(err)
	}
	before := listing(t, dir)
	out, err := cmd.Output()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, os.ErrPermission) {
		t.Skipf("this root may not become another user: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	lines.Scan()
	if got := lines.Text(); !strings.HasPrefix(got, "true true ") || !strings.Contains(got, "permission denied; make the folder writable") {
		t.Errorf("own: %s", got)
	}
	lines.Scan()
	if got := lines.Text(); got != "5 <nil> true <nil>" {
		t.Errorf("read: %s", got)
	}
	if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
		t.Errorf("something changed:\n%s", diff)
	}
}

// listing is every file of a folder with its size and time.
func listing(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			out = append(out, fmt.Sprint(path, info.Size(), info.Mode(), info.ModTime()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Whatever stands empty where a file of the journal should be, there is a named
// behaviour, and an owner goes on from it.
func TestZeroLengthFiles(t *testing.T) {
	for _, c := range []struct {
		file     string
		seqs     string // what a reader finds
		then     string // and after an owner that added one
		recorded bool   // the loss is known
	}{
		{"journal.jsonl", "[] [1 2 3 4]", "[5 6] [1 2 3 4]", true},
		{"journal.lock", "[1 2 3 4] []", "[1 2 3 4 5 6] []", false},
		{"journal.idx", "[1 2 3 4] []", "[1 2 3 4 5 6] []", false},
	} {
		t.Run(c.file, func(t *testing.T) {
			dir, _ := made(t, 4)
			o := mustOwn(t, dir, filelog.Options{})
			o.Close()
			dir, _ = made(t, 4)
			put(t, dir, "journal.idx", nil)
			if err := os.Truncate(filepath.Join(dir, c.file), 0); err != nil {
				t.Fatal(err)
			}
			seqs, lost := found(t, dir)
			if got := fmt.Sprint(seqs, lost); got != c.seqs {
				t.Fatalf("found %s, want %s", got, c.seqs)
			}
			r := reader(t, dir)
			h, err := r.Health(t.Context())
			if err != nil || h.OK() == c.recorded {
				t.Fatalf("health %+v %v", h, err)
			}
			next := mustOwn(t, dir, filelog.Options{})
			add(t, next, 1)
			next.Close()
			seqs, lost = found(t, dir)
			if got := fmt.Sprint(seqs, lost); got != c.then {
				t.Fatalf("then %s, want %s", got, c.then)
			}
		})
	}
}

// An empty file under a blob's name is a damaged blob, unless it is the empty
// blob; storing the payload again mends it.
func TestZeroLengthBlob(t *testing.T) {
	dir := t.TempDir()
	o := mustOwn(t, dir, filelog.Options{})
	h, err := o.PutBlob(t.Context(), []byte("payload"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "blobs", string(h[:2]), string(h))
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	b, err := o.Blob(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.ReadAll(); !errors.Is(err, journal.ErrBlobDamaged) {
		t.Fatal(err)
	}
	b.Close()
	if again, err := o.PutBlob(t.Context(), []byte("payload")); err != nil || again != h {
		t.Fatal(again, err)
	}
	if b, err = o.Blob(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if data, err := b.ReadAll(); err != nil || string(data) != "payload" {
		t.Fatalf("got %q %v, want no error and string(data) = \"payload\"", data, err)
	}
}

// The index is a cache. When it cannot be written, that costs speed, the file that
// was there stays whole, and no half one is left behind.
func TestIndexThatCannotBeSaved(t *testing.T) {
	for _, op := range []string{"open", "write", "rename"} {
		t.Run(op, func(t *testing.T) {
			dir := t.TempDir()
			disk := faultfs.New()
			o := mustOwn(t, dir, filelog.Options{FS: disk})
			add(t, o, 600)
			if err := o.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 10, Data: []byte("old")}); err != nil {
				t.Fatal(err)
			}
			disk.Fail(faultfs.Ops(op, "journal.idx", syscall.ENOSPC))
			err := o.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 500, Data: []byte("new")})
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("save: %v", err)
			}
			disk.Fail(nil)
			s, err := o.Snapshot(t.Context())
			disk.Fail(faultfs.Ops(op, "journal.idx", syscall.ENOSPC))
			if err != nil || s.Seq != 10 || string(s.Data) != "old" {
				t.Fatalf("got %+v %v, want no error and s.Seq = 10 and string(s.Data) = \"old\"", s, err)
			}
			add(t, o, 300)
			if err := o.Close(); err != nil {
				t.Fatalf("close: %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			disk.Fail(nil)
			if head := checkLog(t, dir); head != 901 {
				t.Fatalf("head %d", head)
			}
		})
	}
}

// What a killed owner left half written goes with the next one; what is not ours
// stays.
func TestLeftoversAreSwept(t *testing.T) {
	dir, _ := made(t, 2)
	if err := os.MkdirAll(filepath.Join(dir, "blobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"journal.idx.tmp123", "blobs/tmp-abc", "notes.txt", "journal.torn-5", "blobs/readme"} {
		put(t, dir, name, []byte("x"))
	}
	mustOwn(t, dir, filelog.Options{}).Close()
	var left []string
	for _, pattern := range []string{"*", "blobs/*"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			rel, err := filepath.Rel(dir, name)
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, filepath.ToSlash(rel))
		}
	}
	slices.Sort(left)
	want := []string{"blobs", "blobs/readme", "journal.jsonl", "journal.lock", "journal.torn-5", "notes.txt"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Fatal(diff)
	}
}

// A second torn end in the same millisecond gets a name of its own.
func TestTornEndsDoNotOverwriteEachOther(t *testing.T) {
	dir, _ := made(t, 2)
	clock := func() int64 { return 1000 }
	for i := range 3 {
		f, err := os.OpenFile(filepath.Join(dir, "journal.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(f, "torn %d", i)
		f.Close()
		mustOwn(t, dir, filelog.Options{Clock: clock}).Close()
	}
	for i := range 3 {
		got, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("journal.torn-%d", 1000+i)))
		if err != nil || string(got) != fmt.Sprintf("torn %d", i) {
			t.Errorf("%d: got %q %v, want no error and string(got) = fmt.Sprintf(\"torn %%d\", i)", i, got, err)
		}
	}
}

// When the torn end cannot be set aside, nothing is cut: the task is not taken.
func TestTornEndThatCannotBeKept(t *testing.T) {
	for _, op := range []string{"open", "write", "sync"} {
		dir, log := made(t, 2)
		put(t, dir, "journal.jsonl", append(log, "torn"...))
		disk := faultfs.New()
		disk.Fail(faultfs.Ops(op, "journal.torn-", syscall.ENOSPC))
		if _, err := filelog.Own(t.Context(), dir, filelog.Options{FS: disk}); !errors.Is(err, journal.ErrNotSaved) {
			t.Fatalf("%s: got %v, want errors.Is(err, journal.ErrNotSaved)", op, err)
		}
		got, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
		if err != nil || string(got) != string(log)+"torn" {
			t.Fatalf("%s: the log was touched: %q %v", op, got, err)
		}
		if torn, _ := filepath.Glob(filepath.Join(dir, "journal.torn-*")); len(torn) > 0 {
			t.Fatalf("%s: half a copy stays: %v", op, torn)
		}
	}
}

// A folder that must be there is not made: what was moved away stays away. One that
// is there is taken as ever.
func TestOwnExisting(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "task")
	_, err := filelog.Own(t.Context(), dir, filelog.Options{Existing: true})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a folder that is not there: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !os.IsNotExist(err) {
		t.Errorf("something was made: %v", err)
	}
	if err := mustOwn(t, dir, filelog.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	if got := mustOwn(t, dir, filelog.Options{Existing: true}).Epoch(); got != 2 {
		t.Errorf("epoch %d", got)
	}
}
