//go:build !unix

package peer

import "errors"

// Unix sockets have no owners and modes on this system, so other processes cannot reach this one.
const haveSockets = false

var errNoSockets = errors.New("this system has no sockets with owners")

func safeFolder(string) error { return errNoSockets }

func safeSocket(string) error { return errNoSockets }
