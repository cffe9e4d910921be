package peer

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

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

// socketName reads the name of a socket.
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
