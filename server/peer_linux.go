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
	cred, err := peerCred(c)
	if err != nil {
		return 0, false, err
	}
	return int(cred.Uid), true, nil
}

// listener is the process that began to listen where a connection leads to; 0 where the
// system does not say, or has no number for it here: it is of another container.
func listener(c *net.UnixConn) int {
	cred, err := peerCred(c)
	if err != nil {
		return 0
	}
	return int(cred.Pid)
}

func peerCred(c *net.UnixConn) (cred *unix.Ucred, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return cred, errors.Join(err, failed)
}
