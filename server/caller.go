package server

import (
	"net/http"

	"github.com/roost-dev/roost/client"
)

// This file finds out who asks.

type peerKey struct{}

// isPeer reports whether a request came through the socket from the user who runs this process: that is as good as
// the token, which is in a file of the same user.
func isPeer(r *http.Request) bool { return r.Context().Value(peerKey{}) != nil }

// door is the name of the front door that input came through.
func (a *asked) door() string {
	switch {
	case a.RemoteAddr == client.LocalPeer:
		return "terminal"
	case isPeer(a.Request):
		return "cli"
	}
	return "api"
}

// entrance is the door that a request came through: a socket, this process, the network.
func entrance(r *http.Request) string {
	switch {
	case isPeer(r):
		return "socket"
	case r.Header.Get("Authorization") != "":
		return "token"
	}
	return "browser"
}
