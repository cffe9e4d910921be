//go:build unix

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shortDir is a scratch folder whose name leaves room for a socket's.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "rt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// runtimeDir is an environment whose XDG_RUNTIME_DIR is dir.
func runtimeDir(dir string) func(string) string {
	return func(name string) string {
		if name == "XDG_RUNTIME_DIR" {
			return dir
		}
		return ""
	}
}

// socket opens one for the ground's server, and gives its path.
func (g *ground) socket(change ...func(*Socket)) (*Socket, string) {
	g.Helper()
	s := NewSocket(runtimeDir(shortDir(g)), func() (*Server, error) { return g.srv, nil })
	for _, f := range change {
		f(s)
	}
	g.Cleanup(func() {
		if err := s.Close(); err != nil {
			g.Error(err)
		}
	})
	path, ok := strings.CutPrefix(s.Address(), "unix:")
	if !ok {
		g.Fatalf("the socket has the address %q", s.Address())
	}
	return s, path
}

// through asks what listens at a socket.
func through(t testing.TB, path, what string) (int, string, error) {
	t.Helper()
	c := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	resp, err := c.Get("http://any.name" + what)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

func TestTheSameUserNeedsNoTokenAtTheSocket(t *testing.T) {
	t.Parallel()
	if !PeersKnown {
		t.Skip("this system does not say who is at the other end")
	}
	g := newGround(t)
	s, path := g.socket()
	for file, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Lstat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want the mode %o", file, info.Mode(), err, want)
		}
	}
	status, body, err := through(t, path, "/v1/tasks/"+g.id)
	if err != nil || status != http.StatusOK || !strings.Contains(body, g.id) {
		t.Errorf("%d %v %s", status, err, body)
	}
	if again := s.Address(); again != "unix:"+path {
		t.Errorf("its address is now %s", again)
	}
	// It does not open the other door.
	if r, err := http.Get(g.url + "/v1/tasks"); err != nil || r.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the token over the network: %v %v", r, err)
	} else {
		_ = r.Body.Close()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after its end the socket is still there: %v", err)
	}
}

func TestAnotherUserIsTurnedAwayAtTheSocket(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	for name, who := range map[string]func(*net.UnixConn) (int, bool, error){
		"another user":       func(*net.UnixConn) (int, bool, error) { return os.Geteuid() + 1, true, nil },
		"the superuser":      func(*net.UnixConn) (int, bool, error) { return (os.Geteuid() + 1) * 7, true, nil },
		"one nobody can ask": func(*net.UnixConn) (int, bool, error) { return 0, false, errors.New("refused") },
	} {
		_, path := g.socket(func(s *Socket) { s.who = who })
		if status, body, err := through(t, path, "/v1/tasks"); err == nil {
			t.Errorf("%s got %d %s", name, status, body)
		}
	}
	// Where the system does not say, the token says it.
	_, path := g.socket(func(s *Socket) { s.who = func(*net.UnixConn) (int, bool, error) { return 0, false, nil } })
	if status, body, err := through(t, path, "/v1/tasks"); err != nil || status == http.StatusOK {
		t.Errorf("without a name and without a token: %d %s %v", status, body, err)
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
			run := shortDir(t)
			if err := errors.Join(os.Mkdir(run+"/roost", 0o700), spoil(t, run)); err != nil {
				t.Fatal(err)
			}
			if path, l := listenIn(run + "/roost"); l != nil {
				t.Errorf("it listens at %s", path)
				_ = l.Close()
			}
		})
	}
	long := filepath.Join(shortDir(t), strings.Repeat("long", 25))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	if path, l := listenIn(filepath.Join(long, "roost")); l != nil {
		t.Errorf("it listens at %s", path)
		_ = l.Close()
	}
}

func TestWithoutARuntimeFolderTheSocketLiesInTheTemporaryOne(t *testing.T) {
	temp := shortDir(t)
	t.Setenv("TMPDIR", temp)
	for _, env := range []func(string) string{runtimeDir(""), runtimeDir("relative"), runtimeDir("/nowhere/at/all")} {
		s := NewSocket(env, nil)
		if at, want := s.Address(), fmt.Sprintf("unix:%s/roost-%d/%d-", temp, os.Geteuid(), os.Getpid()); !strings.HasPrefix(at, want) {
			t.Errorf("its address is %s, want one in %s", at, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Setenv("TMPDIR", "/nowhere/at/all")
	s := NewSocket(runtimeDir(""), nil)
	if at := s.Address(); at != "" {
		t.Errorf("without any folder: %s", at)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	// One that was closed is not opened any more.
	late := NewSocket(runtimeDir(shortDir(t)), nil)
	if err := late.Close(); err != nil || late.Address() != "" {
		t.Errorf("after its end: %q, %v", late.Address(), err)
	}
}

// What killed processes left goes; what belongs to somebody who lives stays.
func TestSocketsOfDeadProcessesAreRemoved(t *testing.T) {
	t.Parallel()
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dead, run := gone.Process.Pid, shortDir(t)
	dir := filepath.Join(run, "roost")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name string, living bool) string {
		path := filepath.Join(dir, name)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if living {
			t.Cleanup(func() { _ = l.Close() })
		} else if err := l.Close(); err != nil {
			t.Fatal(err)
		}
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
	s := NewSocket(runtimeDir(run), nil)
	if s.Address() == "" {
		t.Fatal("there is no socket")
	}
	if err := s.Close(); err != nil { // it waits for the sweep
		t.Fatal(err)
	}
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
	g := newGround(t)
	_, path := g.socket()
	conn, err := DialPeer(t.Context(), "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	dir, name := filepath.Split(path)
	aside := filepath.Join(shortDir(t), "agent") // private, and of another program
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
		if conn, err := DialPeer(t.Context(), address); err == nil {
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
		if conn, err := DialPeer(t.Context(), "unix:"+path); err == nil {
			t.Errorf("%s with the mode %o was trusted", file, mode)
			_ = conn.Close()
		}
		if err := os.Chmod(file, before.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}

// A process that ends does not wait for who follows it.
func TestTheSocketEndsWithFollowers(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	s, path := g.socket()
	ended := make(chan string, 1)
	conn, err := DialPeer(t.Context(), "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET /v1/tasks/%s/events HTTP/1.1\r\nHost: x\r\n\r\n", g.id); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	if _, err := conn.Read(buf); err != nil {
		t.Fatal(err)
	}
	go func() {
		rest, _ := io.ReadAll(conn)
		ended <- string(rest)
	}()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	select {
	case rest := <-ended:
		if !strings.Contains(rest, "server_stopping") {
			t.Errorf("the follower was told %q", rest)
		}
	case <-time.After(patience):
		t.Error("the follower's stream never ended")
	}
}
