//go:build unix

package filelog_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// lockFS tells of the lock file when it has been opened, and before it is locked.
type lockFS struct {
	filelog.FS
	opened func(filelog.File)
}

func (l *lockFS) OpenFile(name string, flag int, perm fs.FileMode) (filelog.File, error) {
	f, err := l.FS.OpenFile(name, flag, perm)
	if opened := l.opened; err == nil && filepath.Base(name) == "journal.lock" && opened != nil {
		l.opened = nil
		opened(f)
	}
	return f, err
}

// A folder may go into the trash, and another of its name may come, between our opening
// its lock and taking it. That lock keeps nobody from the new folder's log.
func TestALockOfAFolderThatMovedAway(t *testing.T) {
	own := func(t *testing.T, dir string, existing bool, meanwhile func()) (journal.Owner, error) {
		t.Helper()
		trash := dir + "-trash"
		o, err := filelog.Own(t.Context(), dir, filelog.Options{Existing: existing, FS: &lockFS{filelog.OS, func(filelog.File) {
			if err := os.Rename(dir, trash); err != nil {
				t.Fatal(err)
			}
			meanwhile()
		}}})
		if head := checkLog(t, trash); head != 4 {
			t.Errorf("what was moved away goes to %d now", head)
		}
		return o, err
	}
	t.Run("another stands there and is owned", func(t *testing.T) {
		dir, _ := made(t, 4)
		var busy *journal.BusyError
		if o, err := own(t, dir, false, func() { mustOwn(t, dir, filelog.Options{}) }); !errors.As(err, &busy) {
			t.Errorf("a second owner: %v, %v", o, err)
		}
	})
	t.Run("another stands there and is free", func(t *testing.T) {
		dir, _ := made(t, 4)
		o, err := own(t, dir, true, func() { mustOwn(t, dir, filelog.Options{}).Close() })
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		var busy *journal.BusyError
		if _, err := filelog.Own(t.Context(), dir, filelog.Options{}); !errors.As(err, &busy) {
			t.Errorf("a second owner: %v", err)
		}
	})
	t.Run("none stands there", func(t *testing.T) {
		dir, _ := made(t, 4)
		if o, err := own(t, dir, true, func() {}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v, %v, want errors.Is(err, fs.ErrNotExist)", o, err)
		}
	})
}

// A command that this process is starting has all its files open until its exec. An owner
// that lets go meanwhile has let go.
func TestALockIsFreeAtOnce(t *testing.T) {
	dir := t.TempDir()
	child := -1
	o := mustOwn(t, dir, filelog.Options{FS: &lockFS{filelog.OS, func(f filelog.File) {
		var err error
		if child, err = syscall.Dup(int(f.Fd())); err != nil {
			t.Fatal(err)
		}
	}}})
	defer syscall.Close(child) //nolint:errcheck // it was not written
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if who, held := filelog.Holder(dir); held {
		t.Errorf("held by %+v", who)
	}
	mustOwn(t, dir, filelog.Options{})
}

// What a killed owner was just starting has the lock until its exec, long on a busy
// machine. That is nobody who works on the log: who wants it waits until it is free.
func TestALockThatADeadOwnersChildHolds(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("here nobody is known to be dead")
	}
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	dead := journal.OwnerInfo{PID: cmd.Process.Pid, Program: "killed", Address: "unix:/of/a/dead/process"}
	dir, _ := made(t, 2)
	child := mustOwn(t, dir, filelog.Options{Owner: dead})
	if who, held := filelog.Holder(dir); !held || who != (journal.OwnerInfo{}) {
		t.Errorf("held %t by %+v", held, who)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		o, err := filelog.Own(ctx, dir, filelog.Options{})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it was not waited for: %v, %v", o, err)
		}
		var busy *journal.BusyError
		if o, err = filelog.Own(t.Context(), dir, filelog.Options{}); !errors.As(err, &busy) || busy.Holder.PID != 0 {
			t.Errorf("it was waited for in vain: %v, %v", o, err)
		}
	})
	if err := child.Close(); err != nil {
		t.Fatal(err)
	}
	mustOwn(t, dir, filelog.Options{})
	// Of another boot, or in another container, the same number says nothing.
	dead.Boot = "another"
	other, _ := made(t, 2)
	mustOwn(t, other, filelog.Options{Owner: dead})
	if who, held := filelog.Holder(other); !held || who.Program != "killed" {
		t.Errorf("held %t by %+v", held, who)
	}
	var busy *journal.BusyError
	if _, err := filelog.Own(t.Context(), other, filelog.Options{}); !errors.As(err, &busy) || busy.Holder.Program != "killed" {
		t.Errorf("refused with %v", err)
	}
}

// slowStart is a file system on which whatever comes behind taking the lock takes a while.
type slowStart struct {
	filelog.FS
	come, goOn chan struct{}
}

func (s slowStart) OpenFile(name string, flag int, perm fs.FileMode) (filelog.File, error) {
	if filepath.Base(name) == "journal.jsonl" {
		s.come <- struct{}{}
		<-s.goOn
	}
	return s.FS.OpenFile(name, flag, perm)
}

// Who is refused is told by whom, however early he comes.
func TestRefusedByAnOwnerThatHasJustCome(t *testing.T) {
	dir, _ := made(t, 2)
	disk := slowStart{filelog.OS, make(chan struct{}, 9), make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		o, err := filelog.Own(t.Context(), dir, filelog.Options{FS: disk, Owner: journal.OwnerInfo{Program: "first"}})
		if err == nil {
			err = o.Close()
		}
		ended <- err
	}()
	<-disk.come
	var busy *journal.BusyError
	if _, err := filelog.Own(t.Context(), dir, filelog.Options{}); !errors.As(err, &busy) || busy.Holder.Program != "first" {
		t.Errorf("refused with %v", err)
	}
	if who, held := filelog.Holder(dir); !held || who.Program != "first" {
		t.Errorf("held %v by %+v", held, who)
	}
	close(disk.goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Between taking the lock and signing it a process may sleep for a while.
func TestRefusedByAnOwnerWithoutAName(t *testing.T) {
	dir, _ := made(t, 2)
	path := filepath.Join(dir, "journal.lock")
	mustOwn(t, dir, filelog.Options{Owner: journal.OwnerInfo{Program: "first"}})
	signed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(bytes.IndexByte(signed, '\n') + 1) // behind the record
	if err := os.Truncate(path, at); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		go func() {
			time.Sleep(time.Second)
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt(signed[at:], at)
			}
			if err = errors.Join(err, f.Close()); err != nil {
				t.Error(err)
			}
		}()
		var busy *journal.BusyError
		if _, err := filelog.Own(t.Context(), dir, filelog.Options{}); !errors.As(err, &busy) || busy.Holder.Program != "first" {
			t.Errorf("refused with %v", err)
		}
	})
	if now, err := os.Stat(path); err != nil || now.Size() != info.Size() {
		t.Error("the test did not do what it says")
	}
}
