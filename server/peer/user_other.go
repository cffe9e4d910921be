//go:build !linux && !darwin && !freebsd

package peer

import "net"

// Known: this system does not report the user at the other end of a socket.
const Known = false

// userOf reports nothing, because this system does not report the user at the other end.
func userOf(*net.UnixConn) (uid int, known bool, err error) { return 0, false, nil }

// listenerOf returns 0, because this system does not report the process.
func listenerOf(*net.UnixConn) int { return 0 }
