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
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/server/peer"
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

// socket opens one for the bench's server, and gives its path.
func (g *bench) socket(change ...func(*Socket)) (*Socket, string) {
	g.Helper()
	s := NewSocket(runtimeDir(fixture.ShortDir(g)), func() (*Server, error) { return g.srv, nil })
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
	if !peer.Known {
		t.Skip("this system does not say who is at the other end")
	}
	g := newBench(t)
	s, path := g.socket()
	for file, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Lstat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want the mode %o", file, info.Mode(), err, want)
		}
	}
	status, body, err := through(t, path, "/v1/tasks/"+g.id)
	if err != nil || status != http.StatusOK || !strings.Contains(body, g.id) {
		t.Errorf("got %d %v %s, want no error and status = http.StatusOK and strings.Contains(body, g.id)",
			status, err, body)
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

// as makes a socket take every connection for one of that user.
func as(user func(*net.UnixConn) (int, bool, error)) func(*Socket) {
	return func(s *Socket) {
		s.listen = func(env func(string) string) *peer.Listener {
			l := peer.Listen(env)
			if l != nil {
				l.User = user
			}
			return l
		}
	}
}

func TestAnotherUserIsTurnedAwayAtTheSocket(t *testing.T) {
	t.Parallel()
	g := newBench(t)
	for name, who := range map[string]func(*net.UnixConn) (int, bool, error){
		"another user":       func(*net.UnixConn) (int, bool, error) { return os.Geteuid() + 1, true, nil },
		"the superuser":      func(*net.UnixConn) (int, bool, error) { return (os.Geteuid() + 1) * 7, true, nil },
		"one nobody can ask": func(*net.UnixConn) (int, bool, error) { return 0, false, errors.New("refused") },
	} {
		_, path := g.socket(as(who))
		if status, body, err := through(t, path, "/v1/tasks"); err == nil {
			t.Errorf("%s got %d %s", name, status, body)
		}
	}
	// Where the system does not say, the token says it.
	_, path := g.socket(as(func(*net.UnixConn) (int, bool, error) { return 0, false, nil }))
	if status, body, err := through(t, path, "/v1/tasks"); err != nil || status == http.StatusOK {
		t.Errorf("without a name and without a token: %d %s %v", status, body, err)
	}
}

// A process that ends does not wait for who follows it.
func TestTheSocketEndsWithFollowers(t *testing.T) {
	t.Parallel()
	g := newBench(t)
	s, path := g.socket()
	ended := make(chan string, 1)
	conn, err := peer.Dial(t.Context(), "unix:"+path)
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

func TestAClosedSocketDoesNotOpen(t *testing.T) {
	t.Parallel()
	late := NewSocket(runtimeDir(fixture.ShortDir(t)), nil)
	if err := late.Close(); err != nil || late.Address() != "" {
		t.Errorf("got the address %q and the error %v, want neither", late.Address(), err)
	}
}
