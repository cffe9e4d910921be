package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

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
	if _, ok := socketName(name); !ok || !strings.HasSuffix(name, socketEnd) || !ourFolder(filepath.Base(dir)) {
		return nil, &UnreachableError{Why: path + " is not a socket of roost"}
	}
	if err := safeFolder(dir); err != nil {
		return nil, &UnreachableError{Why: err.Error()}
	}
	if err := safeSocket(path); err != nil {
		return nil, &UnreachableError{Why: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, &UnreachableError{Why: err.Error(), Silent: errors.Is(err, syscall.EAGAIN)} // its queue of connections is full
	}
	if uid, known, err := userOf(conn.(*net.UnixConn)); err != nil || known && uid != os.Geteuid() {
		return nil, errors.Join(&UnreachableError{Why: "another user listens at " + path}, conn.Close())
	}
	if deaf(conn) {
		return nil, errors.Join(&UnreachableError{Why: "the process that listened at " + path + " is dead"}, conn.Close())
	}
	if err := checkHealth(conn); err != nil {
		why := fmt.Sprintf("the process that listens at %s does not answer: %v", path, err)
		return nil, errors.Join(&UnreachableError{Why: why, Silent: errors.Is(err, os.ErrDeadlineExceeded)}, conn.Close())
	}
	return conn, nil
}

// checkHealth asks the process at the other end whether it lives, and leaves the connection for the next request.
// The kernel accepts connections for a process that was stopped, and nothing that waits for its answer would end.
func checkHealth(conn net.Conn) error {
	err := conn.SetDeadline(time.Now().Add(healthTimeout))
	if err == nil {
		_, err = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	if err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close(), conn.SetDeadline(time.Time{}))
}

// ourFolder reports whether a folder has a name that Listen gives. In another user namespace this user may have
// another number.
func ourFolder(name string) bool {
	if name == "roost" {
		return true
	}
	user, ok := strings.CutPrefix(name, "roost-")
	return ok && user != "" && strings.Trim(user, "0123456789") == ""
}
