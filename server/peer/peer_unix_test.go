//go:build unix

package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// runtimeDir is an environment whose XDG_RUNTIME_DIR is dir.
func runtimeDir(dir string) func(string) string {
	return func(name string) string {
		if name == "XDG_RUNTIME_DIR" {
			return dir
		}
		return ""
	}
}

func TestAFolderThatIsNotOursAloneHasNoSocket(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, run string) error{
		"open to others": func(_ *testing.T, run string) error { return os.Chmod(run+"/roost", 0o755) },
		"a link": func(_ *testing.T, run string) error {
			return errors.Join(os.Mkdir(run+"/real", 0o700), os.Remove(run+"/roost"), os.Symlink("real", run+"/roost"))
		},
		"a file": func(_ *testing.T, run string) error {
			return errors.Join(os.Remove(run+"/roost"), os.WriteFile(run+"/roost", nil, 0o700))
		},
		"in a folder that others change": func(_ *testing.T, run string) error { return os.Chmod(run, 0o777) },
		"another user's": func(t *testing.T, run string) error {
			if os.Geteuid() != 0 {
				t.Skip("only the superuser gives folders away")
			}
			return os.Chown(run+"/roost", 12345, -1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := fixture.ShortDir(t)
			if err := errors.Join(os.Mkdir(run+"/roost", 0o700), spoil(t, run)); err != nil {
				t.Fatal(err)
			}
			if l := listenIn(run + "/roost"); l != nil {
				t.Errorf("got a socket at %s, want none", l.path)
				_ = l.Close()
			}
		})
	}
	long := filepath.Join(fixture.ShortDir(t), strings.Repeat("long", 25))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	if l := listenIn(filepath.Join(long, "roost")); l != nil {
		t.Errorf("got a socket at %s, want none", l.path)
		_ = l.Close()
	}
}

func TestWithoutARuntimeFolderTheSocketIsInTheTemporaryOne(t *testing.T) {
	temp := fixture.ShortDir(t)
	t.Setenv("TMPDIR", temp)
	for _, env := range []func(string) string{runtimeDir(""), runtimeDir("relative"), runtimeDir("/nowhere/at/all")} {
		l := Listen(env)
		if l == nil {
			t.Fatal("got no socket, want one")
		}
		if at, want := l.Address(), fmt.Sprintf("unix:%s/roost-%d/%d-", temp, os.Geteuid(), os.Getpid()); !strings.HasPrefix(at, want) {
			t.Errorf("got the address %s, want one in %s", at, want)
		}
		if err := errors.Join(l.Remove(), l.Close()); err != nil {
			t.Error(err)
		}
	}
	t.Setenv("TMPDIR", "/nowhere/at/all")
	if l := Listen(runtimeDir("")); l != nil {
		t.Errorf("without any folder: got %s, want no socket", l.Address())
	}
}

// What killed processes left goes; what belongs to somebody who lives stays.
func TestSocketsOfDeadProcessesAreRemoved(t *testing.T) {
	t.Parallel()
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dead, run := gone.Process.Pid, fixture.ShortDir(t)
	dir := filepath.Join(run, "roost")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name string, living bool) string {
		path := filepath.Join(dir, name)
		if !living { // never listened at: a child that another test is starting would keep a listener open for a moment
			fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
			if err == nil {
				err = errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Close(fd))
			}
			if err != nil {
				t.Fatal(err)
			}
			return path
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		t.Cleanup(func() { _ = l.Close() })
		return path
	}
	removed := []string{
		put(fmt.Sprintf("%d-0123456789ab.sock", dead), false),
		put(fmt.Sprintf("%d-0123456789ab.new", dead), false),
	}
	again := put(fmt.Sprintf("%d-0123456789ad.sock", os.Getpid()), false) // somebody else has its number now
	kept := []string{
		put(fmt.Sprintf("%d-0123456789ac.sock", dead), true),        // of another container, with numbers of its own
		put(fmt.Sprintf("%d-0123456789ad.new", os.Getpid()), false), // about to listen
		put("agent.sock", false),
		put(fmt.Sprintf("%d-short.sock", dead), false),
	}
	if refusalIsDeath {
		removed = append(removed, again)
	} else {
		kept = append(kept, again)
	}
	file := filepath.Join(dir, fmt.Sprintf("%d-0123456789ae.sock", dead))
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := Listen(runtimeDir(run))
	if l == nil {
		t.Fatal("got no socket, want one")
	}
	defer l.Close()
	l.Sweep()
	for _, path := range removed {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there", path)
		}
	}
	for _, path := range append(kept, file) {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s is gone", path)
		}
	}
}

func TestAnAddressIsTrustedOnlyWhenASocketOfOursCanStandThere(t *testing.T) {
	t.Parallel()
	l := Listen(runtimeDir(fixture.ShortDir(t)))
	if l == nil {
		t.Fatal("got no socket, want one")
	}
	path := l.path
	web := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})} // it is healthy
	served := make(chan error, 1)
	go func() { served <- web.Serve(l) }()
	t.Cleanup(func() {
		_ = web.Close()
		<-served
	})
	conn, err := Dial(t.Context(), "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	dir, name := filepath.Split(path)
	aside := filepath.Join(fixture.ShortDir(t), "agent") // private, and of another program
	if err := errors.Join(os.Mkdir(aside, 0o700), os.Link(path, filepath.Join(aside, name))); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "1-0123456789ab.sock")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{
		"", path, "unix:" + name, "unix:" + dir + "./" + name, "unix://" + path, "http://127.0.0.1:1", "unix:" + filepath.Join(aside, name), "unix:" + other,
		"unix:" + filepath.Join(dir, "2-0123456789ab.sock"), "unix:" + strings.TrimSuffix(path, socketEnd) + socketTemp,
	} {
		if conn, err := Dial(t.Context(), address); err == nil {
			t.Errorf("%q was connected to", address)
			_ = conn.Close()
		}
	}
	for mode, file := range map[fs.FileMode]string{0o666: path, 0o750: filepath.Clean(dir)} {
		before, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if conn, err := Dial(t.Context(), "unix:"+path); err == nil {
			t.Errorf("%s with the mode %o was trusted", file, mode)
			_ = conn.Close()
		}
		if err := os.Chmod(file, before.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}
