package server

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// PeersKnown: this system says who is at the other end of a socket.
const PeersKnown = true

// peerUser is the user at the other end of a connection; told is false where the system
// does not say.
func peerUser(c *net.UnixConn) (uid int, told bool, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, failed); err != nil {
		return 0, false, err
	}
	return int(cred.Uid), true, nil
}
