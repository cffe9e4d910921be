//go:build !unix

package server

import "errors"

// Other processes do not reach this one here: what there is of unix sockets has no
// owners and modes.
const haveSockets = false

var errNoSockets = errors.New("this system has no sockets that belong to a user")

func safeFolder(string) error { return errNoSockets }

func safeSocket(string) error { return errNoSockets }

func alive(int) bool { return true }
