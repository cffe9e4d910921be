package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// listensAndDies names the socket at which a process of the tests listens before it ends, and
// leaves it to a child.
const listensAndDies = "ROOST_TEST_LISTENS_AND_DIES"

func init() {
	if path := os.Getenv(listensAndDies); path != "" {
		if err := listenAndDie(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

func listenAndDie(path string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	if err != nil {
		return err
	}
	child := exec.Command("sleep", "600")
	child.ExtraFiles = []*os.File{f}
	if err := child.Start(); err != nil {
		return err
	}
	fmt.Println(child.Process.Pid)
	return os.Chmod(path, 0o600)
}

// A dead process whose socket a child still has is not there: nobody is led to it, and its
// socket goes.
func TestWhoIsDeadDoesNotListen(t *testing.T) {
	t.Parallel()
	run := fixture.ShortDir(t)
	dir := filepath.Join(run, "roost")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "1-0123456789ab.sock") // whoever has that number lives
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), listensAndDies+"="+path)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	if conn, err := net.Dial("unix", path); err != nil {
		t.Fatalf("nobody listens: %v", err)
	} else {
		_ = conn.Close()
	}
	if conn, err := Dial(t.Context(), "unix:"+path); err == nil {
		t.Error("a dead process was connected to")
		_ = conn.Close()
	} else if !strings.Contains(err.Error(), "is dead") {
		t.Error(err)
	}
	l := Listen(runtimeDir(run))
	if l == nil {
		t.Fatal("got no socket, want one")
	}
	defer l.Close()
	l.Sweep()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its socket is still there: %v", err)
	}
}

// A folder takes the sockets of all processes or of none, whatever their numbers.
func TestAFolderTakesTheSocketsOfAllProcesses(t *testing.T) {
	t.Parallel()
	for _, more := range []int{0, 1} {
		dir := fixture.ShortDir(t)
		dir = filepath.Join(dir, strings.Repeat("d", longestPath-len(longestName)-len(dir)-2+more))
		l := listenIn(dir)
		if (l != nil) != (more == 0) {
			t.Errorf("a folder of %d bytes: got a socket %v, want %v", len(dir), l != nil, more == 0)
		}
		if l != nil {
			_ = l.Close()
		}
	}
}
