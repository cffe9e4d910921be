// Package peer lets processes of one user reach each other while they work on tasks. A process listens at a unix
// socket of mode 0600 in a folder of mode 0700; the lock files of the tasks that it holds name the socket.
//
// A user of the same number needs no token there; the kernel reports the number. Where it does not, the folder has
// kept others out and the token decides. Any program that can write a lock file can name any socket, so Dial trusts
// only a socket that Listen could have made, and only when this user listens there.
//
// The name of a socket holds the number of its process, so that the next process that listens removes what a killed
// one left. Where the system has no such sockets, or no folder is safe, Listen returns nil and the process has no
// address: other processes then wait for its tasks.
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
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/process"
)

// Listener is the socket of this process. It is safe for concurrent use.
type Listener struct {
	*net.UnixListener

	// User reports the user at the other end of a connection; known is false where the system does not. Listen
	// sets it.
	User func(*net.UnixConn) (uid int, known bool, err error)

	path string
}

// Conn is a connection that a Listener accepted.
type Conn struct {
	net.Conn
	SameUser bool // the kernel reports that this user is at the other end
}

// Listen opens a socket in the best folder that is safe; nil when there is none.
func Listen(env func(string) string) *Listener {
	for _, dir := range folders(env) {
		if l := listenIn(dir); l != nil {
			return l
		}
	}
	return nil
}

// Address is what lock files name: unix:/path.
func (l *Listener) Address() string { return "unix:" + l.path }

// Remove removes the socket. Open connections stay.
func (l *Listener) Remove() error { return os.Remove(l.path) }

// Accept returns the next connection of this user, or of one whom the system does not report.
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

// folders are the folders in which a socket may be, the best one first.
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

	// longestPath bounds the path of a socket, in bytes: the strictest system takes as many.
	longestPath = 103

	// longestName is the longest name that a socket can have. A folder takes the sockets of all processes or of
	// none: else what a killed process with a short number left would stay until another short number comes.
	longestName = "4194304-0123456789ab" + socketEnd
)

// listenIn opens a socket in a folder; nil when that is not possible or not safe.
func listenIn(dir string) *Listener {
	b := make([]byte, 6)
	if _, err := rand.Read(b); err != nil {
		return nil
	}
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
	// The socket gets its name when it listens, so that one which refuses belongs to a dead process.
	temp := strings.TrimSuffix(path, socketEnd) + socketTemp
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return nil
	}
	l.SetUnlinkOnClose(false) // it would remove the first name
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

// refusalIsDeath: a socket that refuses has no living process. On other systems a socket also refuses while too
// many connections wait.
const refusalIsDeath = runtime.GOOS == "linux"

// Sweep removes what killed processes left in the folder of the socket. A process with the number in a name proves
// nothing: the system gives numbers again.
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
		// The number may belong to another container, where the process lives. The dial has no time limit: the
		// kernel answers at once, and a process that was stopped in between must not take a timeout for a refusal.
		conn, err := net.Dial("unix", path) //nolint:noctx // it does not wait
		switch {
		case err == nil:
			dead := deaf(conn)
			if _ = conn.Close(); dead {
				_ = os.Remove(path)
			}
		case errors.Is(err, syscall.ECONNREFUSED):
			_ = os.Remove(path) // one that stays does no harm
		}
	}
}

// deaf reports whether the process that listened at the other end is dead. A child that it was starting holds its
// sockets until the exec, so that the process seems to live for a moment, or longer on a busy machine.
func deaf(c net.Conn) bool {
	pid := listenerOf(c.(*net.UnixConn)) //nolint:forcetypeassert // it was dialled as one
	return pid > 0 && !process.Alive(pid)
}

var socketNames = regexp.MustCompile(`^([1-9][0-9]*)-[0-9a-f]{12}\.(sock|new)$`) // they end in socketEnd or socketTemp

// socketName reads the name of a socket.
func socketName(name string) (pid int, ok bool) {
	parts := socketNames.FindStringSubmatch(name)
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
	Silent bool // the process is there and does not answer: it may be stopped
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
	if _, ok := socketName(name); !ok || !strings.HasSuffix(name, socketEnd) || !ourFolder.MatchString(filepath.Base(dir)) {
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
		return nil, &UnreachableError{Why: err.Error(), Silent: errors.Is(err, syscall.EAGAIN)} // its queue of connections is full
	}
	if uid, known, err := userOf(conn.(*net.UnixConn)); err != nil || known && uid != os.Geteuid() {
		return nil, errors.Join(&UnreachableError{Why: "another user listens at " + path}, conn.Close())
	}
	if deaf(conn) {
		return nil, errors.Join(&UnreachableError{Why: "the process that listened at " + path + " is dead"}, conn.Close())
	}
	if err := CheckHealth(ctx, conn, "localhost"); err != nil {
		why := fmt.Sprintf("the process that listens at %s does not answer: %v", path, err)
		return nil, errors.Join(&UnreachableError{Why: why, Silent: errors.Is(err, os.ErrDeadlineExceeded)}, conn.Close())
	}
	return conn, nil
}

// CheckHealth asks the process at the other end of a connection, by the name host, whether it lives, and leaves the
// connection for the next request. The kernel accepts connections for a process that was stopped, and nothing that waits
// for its answer would end.
func CheckHealth(ctx context.Context, conn net.Conn, host string) error {
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

// ourFolder is what Listen calls folders. In another user namespace this user may have another number.
var ourFolder = regexp.MustCompile(`^roost(-[0-9]+)?$`)
