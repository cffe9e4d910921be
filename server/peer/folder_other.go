//go:build !unix

package peer

import "errors"

// Other processes do not reach this one here: unix sockets have no owners and modes on this system.
const haveSockets = false

var errNoSockets = errors.New("this system has no sockets with owners")

func safeFolder(string) error { return errNoSockets }

func safeSocket(string) error { return errNoSockets }
