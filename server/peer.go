package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Socket is where other processes of this user reach this one, while it works on
// tasks: a unix socket of mode 0600 in a folder of mode 0700, which answers as any
// server does. Who comes through it as the same user needs no token; anybody else is
// turned away. It is named in the lock files of the tasks that the process holds.
//
// It costs a process that nobody comes to next to nothing: the socket is made when the
// first task is taken, and the server when the first request comes. Where there are no
// such sockets, or no folder is safe, the process has no address, and that is all.
//
// The name holds the process's number, so that what a killed process left is found: the
// next one that opens a socket removes it.
type Socket struct {
	env  func(string) string
	make func() (*Server, error)
	who  func(*net.UnixConn) (uid int, told bool, err error)

	once    sync.Once
	address string
	web     *http.Server
	wait    sync.WaitGroup

	mu     sync.Mutex
	srv    *Server
	err    error
	closed bool
}

// NewSocket makes one that is not open yet. The server is made when somebody comes; the
// socket ends it.
func NewSocket(env func(string) string, server func() (*Server, error)) *Socket {
	return &Socket{env: env, make: server, who: peerUser}
}

// SocketToken is a token that nobody has: for a server that only its socket leads to.
func SocketToken() (string, error) { return random() }

// addressLimit is how long a socket's path may be: what the strictest system takes.
const addressLimit = 103

// Address opens the socket, the first time, and says where it is: unix:/path, or "" when
// there is none. It is safe for concurrent use.
func (s *Socket) Address() string {
	s.once.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return
		}
		for _, dir := range socketDirs(s.env) {
			if path, l := listenIn(dir); l != nil {
				s.address = "unix:" + path
				s.serve(l, dir)
				return
			}
		}
	})
	return s.address
}

// serve answers who comes. The caller holds mu.
func (s *Socket) serve(l *net.UnixListener, dir string) {
	s.web = &http.Server{
		Handler: http.HandlerFunc(s.answer), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
		ConnContext: ofConn,
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	s.wait.Go(func() { _ = s.web.Serve(limited(&peers{l, s.who}, maxPeers, maxPeers/2)) }) // it ends with Close
	s.wait.Go(func() { sweepSockets(dir, strings.TrimPrefix(s.address, "unix:")) })
}

// maxPeers bounds how many connections are open.
const maxPeers = 256

func (s *Socket) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.srv == nil && s.err == nil && !s.closed {
		s.srv, s.err = s.make()
	}
	srv, err := s.srv, s.err
	s.mu.Unlock()
	if srv == nil {
		p := problem(http.StatusServiceUnavailable, "stopping", "The process is ending", "it cannot be asked any more")
		p.cause, p.Retryable = err, true
		fail(w, r, p)
		return
	}
	srv.guard(w, r)
}

// socketGrace is how long requests that are being answered may take when the process
// ends: followers are told, and find the rest in the task's journal.
const socketGrace = 500 * time.Millisecond

// Close ends the socket, and the server if there was one. It does not keep a process:
// what is not answered soon is cut off.
func (s *Socket) Close() error {
	s.mu.Lock()
	s.closed = true
	srv, web := s.srv, s.web
	s.mu.Unlock()
	if web != nil {
		_ = os.Remove(strings.TrimPrefix(s.address, "unix:")) // the next one that opens a socket does it, else
	}
	if srv != nil {
		srv.halt()
	}
	var err error
	if web != nil {
		ctx, cancel := context.WithTimeout(context.Background(), socketGrace)
		defer cancel()
		if web.Shutdown(ctx) != nil {
			err = web.Close()
		}
	}
	if srv != nil {
		srv.feeds.close()
	}
	s.wait.Wait()
	if err != nil {
		return fmt.Errorf("close the socket: %w", err)
	}
	return nil
}

type peerKey struct{}

// isPeer reports whether a request came through the socket, from the user who runs this
// process: that is as good as the token, which lies in a file of the same user's.
func isPeer(r *http.Request) bool { return r.Context().Value(peerKey{}) != nil }

// peers lets in who is the same user. Where the system does not say who it is, the
// folder has judged, and the token is asked for.
type peers struct {
	*net.UnixListener
	who func(*net.UnixConn) (uid int, told bool, err error)
}

type peer struct {
	net.Conn
	same bool
}

func (l *peers) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, told, err := l.who(conn)
		if err != nil || told && uid != os.Geteuid() {
			_ = conn.Close() // nobody whom it concerns
			continue
		}
		return &peer{Conn: conn, same: told}, nil
	}
}

// socketDirs are the folders in which a socket may lie, the best one first.
func socketDirs(env func(string) string) []string {
	dirs := []string{filepath.Join(os.TempDir(), "roost-"+strconv.Itoa(os.Geteuid()))}
	if run := env("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		dirs = append([]string{filepath.Join(run, "roost")}, dirs...)
	}
	return dirs
}

// listenIn opens a socket in a folder; nil when that cannot be done safely.
func listenIn(dir string) (string, *net.UnixListener) {
	b := make([]byte, 6)
	if _, err := rand.Read(b); err != nil {
		return "", nil
	}
	path := filepath.Join(dir, strconv.Itoa(os.Getpid())+"-"+hex.EncodeToString(b)+socketEnd)
	if !haveSockets || len(filepath.Join(dir, longestName)) > addressLimit {
		return "", nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", nil
	}
	if safeFolder(dir) != nil {
		return "", nil
	}
	// It gets its name when it answers, so that one which refuses is a dead process's.
	temp := strings.TrimSuffix(path, socketEnd) + socketTemp
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return "", nil
	}
	l.SetUnlinkOnClose(false) // by its first name
	if err = os.Chmod(temp, 0o600); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = l.Close()
		_ = os.Remove(temp)
		return "", nil
	}
	return path, l
}

const (
	socketEnd  = ".sock"
	socketTemp = ".new"
)

// longestName is as long as the name of a socket can be. A folder takes those of all processes
// or of none: else what one with a short number left when it was killed would stay until there
// is another one with a short number.
const longestName = "4194304-0123456789ab" + socketEnd

// refusalIsDeath: a socket that refuses belongs to nobody who lives. Elsewhere one refuses, too,
// while too many want to be let in.
const refusalIsDeath = runtime.GOOS == "linux"

// sweepSockets removes what killed processes left in a folder; own is this process's socket. That
// a process with the number is there proves nothing: numbers are given again, and the one that
// has it may be anybody's.
func sweepSockets(dir, own string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		pid, ok := socketName(e.Name())
		if !ok || e.Type()&fs.ModeSocket == 0 || path == own {
			continue
		}
		if (!refusalIsDeath || strings.HasSuffix(path, socketTemp)) && alive(pid) {
			continue
		}
		// The number may be of another container's, where it lives. No time is set: it is told at
		// once whether somebody listens, and a process that stood still meanwhile must not take
		// that for an answer.
		conn, err := net.Dial("unix", path) //nolint:noctx // it does not wait
		switch {
		case err == nil:
			dead := deaf(conn)
			if _ = conn.Close(); dead {
				_ = os.Remove(path)
			}
		case errors.Is(err, syscall.ECONNREFUSED):
			_ = os.Remove(path) // if it cannot be removed, it is in nobody's way
		}
	}
}

// deaf reports whether whoever listened at the other end is dead. What he was just starting has
// his sockets until its exec, and so he seems to be there for a moment, or longer on a busy
// machine.
func deaf(c net.Conn) bool {
	pid := listener(c.(*net.UnixConn)) //nolint:forcetypeassert // it was dialled as one
	return pid > 0 && !alive(pid)
}

// socketName reads a socket's name.
func socketName(name string) (pid int, ok bool) {
	stem, ok := strings.CutSuffix(name, socketEnd)
	if !ok {
		if stem, ok = strings.CutSuffix(name, socketTemp); !ok {
			return 0, false
		}
	}
	number, random, ok := strings.Cut(stem, "-")
	pid, err := strconv.Atoi(number)
	return pid, ok && err == nil && pid > 0 && number == strconv.Itoa(pid) && len(random) == 12 && strings.Trim(random, "0123456789abcdef") == ""
}
