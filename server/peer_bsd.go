//go:build darwin || freebsd

package server

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// levelLocal is SOL_LOCAL of darwin, which is 0 there and on FreeBSD.
const levelLocal = 0

// PeersKnown: this system says who is at the other end of a socket.
const PeersKnown = true

// peerUser is the user at the other end of a connection; told is false where the system
// does not say.
func peerUser(c *net.UnixConn) (uid int, told bool, err error) {
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

// listener is not asked for here: a connection to who is dead fails with its first request.
func listener(*net.UnixConn) int { return 0 }
