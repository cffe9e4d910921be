package filelock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/filelock"
)

// holderEnv makes this test program a child that holds the lock of a file: "MODE PATH".
const holderEnv = "FILELOCK_TEST_HOLD"

func TestMain(m *testing.M) {
	var mode filelock.Mode
	var path string
	if n, _ := fmt.Sscan(os.Getenv(holderEnv), &mode, &path); n == 2 {
		f, err := filelock.TryOpen(path, mode)
		if err != nil || f == nil {
			fmt.Println("refused", err)
			os.Exit(1)
		}
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes it
		if err := filelock.Release(f); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type child struct {
	cmd *exec.Cmd
	in  io.Closer
}

// hold starts a process that holds a lock; ok is false when it was refused.
func hold(t *testing.T, path string, m filelock.Mode) (c child, ok bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", holderEnv, m, path))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return child{cmd, in}, line == "held\n"
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// try fails the test when Try does not give what is wanted.
func try(t *testing.T, f *os.File, m filelock.Mode, want bool) {
	t.Helper()
	if got, err := filelock.Try(f, m); got != want || err != nil {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestTwoProcessesExcludeEachOther(t *testing.T) {
	const shared, exclusive, first = filelock.Shared, filelock.Exclusive, filelock.FirstByte
	for _, tt := range []struct {
		theirs, ours filelock.Mode
		want         bool
	}{
		{exclusive, exclusive, false},
		{exclusive, shared, false},
		{shared, exclusive, false},
		{shared, shared, true},
		{exclusive | first, exclusive | first, false},
		{exclusive | first, shared | first, false},
		{shared | first, shared | first, true},
	} {
		t.Run(fmt.Sprint(tt.theirs, tt.ours), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			c, ok := hold(t, path, tt.theirs)
			if !ok {
				t.Fatal("the child did not get a free lock")
			}
			f := open(t, path)
			try(t, f, tt.ours, tt.want)
			if err := c.in.Close(); err != nil {
				t.Fatal(err)
			}
			if err := c.cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			try(t, f, tt.ours, true)
			if again, ok := hold(t, path, exclusive|tt.theirs); ok {
				t.Errorf("another process got the lock that this one holds: %v", again)
			}
		})
	}
}

func TestAKilledProcessLosesItsLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	c, ok := hold(t, path, filelock.Exclusive)
	if !ok {
		t.Fatal("the child did not get a free lock")
	}
	f := open(t, path)
	try(t, f, filelock.Exclusive, false)
	got := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		got <- filelock.Wait(ctx, f, filelock.Exclusive, time.Millisecond)
	}()
	select {
	case err := <-got:
		t.Fatalf("the wait ended while the lock was held: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestAContextEndsAWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	try(t, open(t, path), filelock.Exclusive, true)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := filelock.Wait(ctx, open(t, path), filelock.Shared, time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestALockBelongsToTheOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	a, b := open(t, path), open(t, path)
	try(t, a, filelock.Exclusive, true)
	try(t, b, filelock.Exclusive, false)
	try(t, b, filelock.Shared, false)
	if err := open(t, path).Close(); err != nil { // it ends no lock
		t.Fatal(err)
	}
	try(t, b, filelock.Exclusive, false)
	if err := filelock.Unlock(a); err != nil {
		t.Fatal(err)
	}
	try(t, b, filelock.Exclusive, true)
	if err := filelock.Unlock(a); err != nil {
		t.Errorf("unlock a file without a lock: %v", err)
	}
	try(t, a, filelock.Exclusive, false)
	if err := filelock.Release(b); err != nil {
		t.Fatal(err)
	}
	try(t, a, filelock.Exclusive, true)
	if _, err := filelock.Try(b, filelock.Exclusive); err == nil {
		t.Error("a closed file was locked")
	}
}

// Readers of a file must not notice the lock on it.
func TestALockedFileIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(path, []byte("who"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := hold(t, path, filelock.Exclusive); !ok {
		t.Fatal("the child did not get a free lock")
	}
	if got, err := os.ReadFile(path); string(got) != "who" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestTryOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	a, err := filelock.TryOpen(path, filelock.Exclusive)
	if a == nil || err != nil {
		t.Fatal(a, err)
	}
	if b, err := filelock.TryOpen(path, filelock.Exclusive); b != nil || err != nil {
		t.Errorf("got %v, %v, want nothing while the lock is held", b, err)
	}
	if err := filelock.Release(a); err != nil {
		t.Fatal(err)
	}
	b, err := filelock.TryOpen(path, filelock.Exclusive)
	if b == nil || err != nil {
		t.Fatal(b, err)
	}
	if err := filelock.Release(b); err != nil {
		t.Error(err)
	}
	if f, err := filelock.TryOpen(filepath.Join(path, "x"), filelock.Exclusive); err == nil {
		t.Errorf("got %v, want an error", f)
	}
}

func TestHold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := filelock.Hold(t.Context(), path, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := filelock.Hold(ctx, path, time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error while the lock is held", err)
	}
	type held struct {
		release func() error
		err     error
	}
	next := make(chan held)
	go func() {
		release, err := filelock.Hold(t.Context(), path, time.Millisecond)
		next <- held{release, err}
	}()
	if err := release(); err != nil {
		t.Error(err)
	}
	h := <-next
	if h.err != nil {
		t.Fatal(h.err)
	}
	if err := h.release(); err != nil {
		t.Error(err)
	}
	if _, err := filelock.Hold(t.Context(), filepath.Join(path, "x"), time.Millisecond); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want an error of the path", err)
	}
}

func TestSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f := open(t, path)
	if !filelock.Same(f, path) {
		t.Error("the file has its name")
	}
	if err := os.Rename(path, path+"2"); err != nil {
		t.Skip(err) // not while it is open
	}
	if filelock.Same(f, path) {
		t.Error("the name belongs to no file")
	}
	open(t, path)
	if filelock.Same(f, path) {
		t.Error("the name belongs to another file")
	}
}

// A file that its holder removes before it releases the lock is never held by two.
func TestOneHoldsAFileThatIsRemovedEachTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var inside, times atomic.Int32
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for n := 0; n < 50; {
				f, err := filelock.TryOpen(path, filelock.Exclusive)
				if err != nil {
					t.Error(err)
					return
				}
				if f == nil {
					continue
				}
				if inside.Add(1) != 1 {
					t.Error("two hold the lock")
				}
				times.Add(1)
				inside.Add(-1)      // before the removal, which lets the next one make the file again
				_ = os.Remove(path) // Windows keeps it
				if err := filelock.Release(f); err != nil {
					t.Error(err)
				}
				n++
			}
		})
	}
	wait.Wait()
	if got := times.Load(); got != 200 {
		t.Errorf("got %d turns, want 200", got)
	}
}
