// Package peer lets processes of one user reach each other while they work on tasks. A process listens at a unix socket of
// mode 0600 in a folder of mode 0700; the lock files of the tasks that it holds name the socket.
//
// A process of the same user, as the kernel reports it, needs no token. Where the kernel does not report the user, the mode of
// the folder keeps other users out, and the server still wants the token. Any program that can write a lock file can name
// any socket, so Dial trusts only a socket that Listen could have made, and only if this user listens there.
//
// The name of a socket contains the number of its process, so that the next process that listens can remove the socket of a
// killed one. If the system has no such sockets, or no folder is safe, Listen returns nil and the process has no address:
// other processes then wait until it releases its tasks.
package peer

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/internal/process"
)

// Listener is the socket of this process. It is safe for concurrent use.
type Listener struct {
	*net.UnixListener

	// User reports the user at the other end of a connection; known is false if the system does not report it. Listen
	// sets User.
	User func(*net.UnixConn) (uid int, known bool, err error)

	path string
}

// Conn is a connection that a Listener accepted.
type Conn struct {
	net.Conn
	SameUser bool // the kernel reports that this user is at the other end
}

// Listen opens a socket in the first folder that is safe; nil if none is.
func Listen(env func(string) string) *Listener {
	for _, dir := range folders(env) {
		if l := listenIn(dir); l != nil {
			return l
		}
	}
	return nil
}

// Address returns the address in lock files: unix:/path.
func (l *Listener) Address() string { return "unix:" + l.path }

// Remove removes the socket. Open connections stay.
func (l *Listener) Remove() error { return os.Remove(l.path) }

// Accept returns the next connection of this user, or of an unknown user if the system does not report users.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, known, err := l.User(conn)
		if err != nil || known && uid != os.Geteuid() {
			_ = conn.Close() // another user
			continue
		}
		return &Conn{Conn: conn, SameUser: known}, nil
	}
}

// folders returns the folders in which a socket may be, the best one first.
func folders(env func(string) string) []string {
	dirs := []string{filepath.Join(os.TempDir(), "roost-"+strconv.Itoa(os.Geteuid()))}
	if run := env("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		dirs = append([]string{filepath.Join(run, "roost")}, dirs...)
	}
	return dirs
}

const (
	socketEnd  = ".sock"
	socketTemp = ".new"

	// longestPath bounds the path of a socket, in bytes: the bound of the strictest system.
	longestPath = 103

	// longestName is the longest name that a socket can have. A folder is used only if the sockets of all processes fit:
	// otherwise the socket of a killed process with a short number would stay until another process with a short number
	// listens there.
	longestName = "4194304-0123456789ab" + socketEnd
)

// listenIn opens a socket in a folder; nil if that is impossible or unsafe.
func listenIn(dir string) *Listener {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	path := filepath.Join(dir, strconv.Itoa(os.Getpid())+"-"+hex.EncodeToString(b)+socketEnd)
	if !haveSockets || len(filepath.Join(dir, longestName)) > longestPath {
		return nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil
	}
	if safeFolder(dir) != nil {
		return nil
	}
	// The socket gets its final name once it listens, so that a socket that refuses connections belongs to a dead process.
	temp := strings.TrimSuffix(path, socketEnd) + socketTemp
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return nil
	}
	l.SetUnlinkOnClose(false) // closing would remove the temporary name
	if err = os.Chmod(temp, 0o600); err == nil {
		err = atomicfile.Rename(temp, path)
	}
	if err != nil {
		_ = l.Close()
		_ = os.Remove(temp)
		return nil
	}
	return &Listener{UnixListener: l, User: userOf, path: path}
}

// refusalIsDeath: no living process listens at a socket that refuses connections. On other systems than Linux, a socket also
// refuses while too many connections wait.
const refusalIsDeath = runtime.GOOS == "linux"

// Sweep removes the sockets that killed processes left in the socket's folder. A living process with the number in a name
// proves nothing, because the system reuses numbers.
func (l *Listener) Sweep() {
	dir := filepath.Dir(l.path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		pid, ok := socketName(e.Name())
		if !ok || e.Type()&fs.ModeSocket == 0 || path == l.path {
			continue
		}
		if (!refusalIsDeath || strings.HasSuffix(path, socketTemp)) && process.Alive(pid) {
			continue
		}
		// The process may live in another container, with this number there. The dial has no time limit: the kernel
		// answers at once, and if this process were stopped, a timeout would look like a refusal.
		conn, err := net.Dial("unix", path) //nolint:noctx // it does not wait
		switch {
		case err == nil:
			dead := deaf(conn)
			if _ = conn.Close(); dead {
				_ = os.Remove(path)
			}
		case errors.Is(err, syscall.ECONNREFUSED):
			_ = os.Remove(path) // a socket that stays does no harm
		}
	}
}

// deaf reports whether the process that listened at the other end is dead. A child that the process was starting keeps its
// sockets open until the exec, so that a dead process may seem to live for a moment, or longer on a busy machine.
func deaf(c net.Conn) bool {
	pid := listenerOf(c.(*net.UnixConn)) //nolint:forcetypeassert // it is a unix connection
	return pid > 0 && !process.Alive(pid)
}

var socketNames = lazyregexp.New(`^([1-9][0-9]*)-[0-9a-f]{12}\.(sock|new)$`) // they end in socketEnd or socketTemp

// socketName reads the name of a socket.
func socketName(name string) (pid int, ok bool) {
	parts := socketNames().FindStringSubmatch(name)
	if parts == nil {
		return 0, false
	}
	pid, err := strconv.Atoi(parts[1])
	return pid, err == nil
}

const (
	dialTimeout = 2 * time.Second

	// healthTimeout bounds how long a process may take to show that it lives, also on a busy machine.
	healthTimeout = 4 * time.Second
)

// UnreachableError reports why Dial did not reach a process.
type UnreachableError struct {
	Why    string
	Silent bool // the process lives and does not answer: it may be stopped
}

func (e *UnreachableError) Error() string {
	return "reach the process that works on the task: " + e.Why
}

// Dial connects to the process of this user that listens at an address from a lock file. Errors: *UnreachableError.
func Dial(ctx context.Context, address string) (net.Conn, error) {
	path, ok := strings.CutPrefix(address, "unix:")
	if !ok || !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return nil, &UnreachableError{Why: fmt.Sprintf("%q is not the address of a socket", address)}
	}
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	if _, ok := socketName(name); !ok || !strings.HasSuffix(name, socketEnd) || !ourFolder().MatchString(filepath.Base(dir)) {
		return nil, &UnreachableError{Why: path + " is not a socket of roost"}
	}
	if err := safeFolder(dir); err != nil {
		return nil, &UnreachableError{Why: err.Error()}
	}
	if err := safeSocket(path); err != nil {
		return nil, &UnreachableError{Why: err.Error()}
	}
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, &UnreachableError{Why: err.Error(), Silent: errors.Is(err, syscall.EAGAIN)} // the socket's queue of connections is full
	}
	if uid, known, err := userOf(conn.(*net.UnixConn)); err != nil || known && uid != os.Geteuid() {
		return nil, errors.Join(&UnreachableError{Why: "another user listens at " + path}, conn.Close())
	}
	if deaf(conn) {
		return nil, errors.Join(&UnreachableError{Why: "the process that listened at " + path + " is dead"}, conn.Close())
	}
	return Healthy(ctx, conn, "localhost", "the process that listens at "+path)
}

// Healthy returns a connection once who, the process at its other end, has reported its health. Errors: *UnreachableError.
func Healthy(ctx context.Context, conn net.Conn, host, who string) (net.Conn, error) {
	if err := checkHealth(ctx, conn, host); err != nil {
		why := fmt.Sprintf("%s does not answer: %v", who, err)
		return nil, errors.Join(&UnreachableError{Why: why, Silent: errors.Is(err, os.ErrDeadlineExceeded)}, conn.Close())
	}
	return conn, nil
}

// checkHealth asks the process at the other end, by the name host, for its health, and keeps the connection open for the next
// request. The kernel accepts connections for a stopped process, and a request to that process would never end.
func checkHealth(ctx context.Context, conn net.Conn, host string) error {
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	req, err := http.NewRequest(http.MethodGet, "http://"+host+"/healthz", http.NoBody)
	if err == nil {
		err = errors.Join(conn.SetDeadline(time.Now().Add(healthTimeout)), req.Write(conn))
	}
	if err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return err
	}
	if _, err = io.Copy(io.Discard, resp.Body); resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer is %s; roost serve --host %s lets the server answer to that name", resp.Status, req.URL.Hostname())
	}
	return errors.Join(err, resp.Body.Close(), conn.SetDeadline(time.Time{}))
}

// ourFolder matches the names of folders that Listen makes. The number need not be this user's: in another user
// namespace this user has another number.
var ourFolder = lazyregexp.New(`^roost(-[0-9]+)?$`)
