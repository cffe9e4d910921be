//go:build darwin || freebsd

package peer

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// levelLocal is SOL_LOCAL of darwin, which is 0 there and on FreeBSD.
const levelLocal = 0

// Known: this system reports the user at the other end of a socket.
const Known = true

// userOf returns the user at the other end of a connection; known is false where the system does not report it.
func userOf(c *net.UnixConn) (uid int, known bool, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false, err
	}
	var cred *unix.Xucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptXucred(int(fd), levelLocal, unix.LOCAL_PEERCRED) })
	if err = errors.Join(err, failed); err != nil {
		return 0, false, err
	}
	return int(cred.Uid), true, nil
}

// listenerOf returns 0, because this system does not report the process: the first request to a dead process fails.
func listenerOf(*net.UnixConn) int { return 0 }
