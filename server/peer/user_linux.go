package peer

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// Known: this system reports the user at the other end of a socket.
const Known = true

// userOf returns the user at the other end of a connection; known is false where the system does not report it.
func userOf(c *net.UnixConn) (uid int, known bool, err error) {
	cred, err := peerCred(c)
	if err != nil {
		return 0, false, err
	}
	return int(cred.Uid), true, nil
}

// listenerOf returns the process that listens at the other end of a connection; 0 where the system does not report
// it, or has no number for it here because the process is in another container.
func listenerOf(c *net.UnixConn) int {
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
