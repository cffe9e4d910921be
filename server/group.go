package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/roost-dev/roost/server/devices"
	"github.com/roost-dev/roost/server/peer"
)

// Servers that share a database pass requests on to the server that works on the task. The task's lease names that server's
// address, and the servers of a group prove themselves to each other by a token that is derived from the group's key.

// Group describes how the servers that share a database reach each other.
type Group struct {
	Token string      // each server sends it to the others
	TLS   *tls.Config // for connections to the others; nil: the authorities of the system
}

const peerTimeout = 5 * time.Second // for a connection to another server

// fromGroup reports whether another server of the group passed a request on.
func (s *Server) fromGroup(r *http.Request) bool {
	return s.opt.Group != nil && s.opt.Group.Token != "" && devices.Same(bearer(r), s.opt.Group.Token)
}

// dialHolder connects to the process that works on a task. Errors are *peer.UnreachableError.
func (s *Server) dialHolder(ctx context.Context, address string) (net.Conn, error) {
	if s.opt.Group == nil || strings.HasPrefix(address, "unix:") {
		return peer.Dial(ctx, address)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &peer.UnreachableError{Why: fmt.Sprintf("%q is not the address of a server", address)}
	}
	dialer := &net.Dialer{Timeout: peerTimeout}
	var conn net.Conn
	if u.Scheme == "https" {
		config := s.opt.Group.TLS.Clone()
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		config.ServerName = u.Hostname()
		secure := &tls.Dialer{NetDialer: dialer, Config: config}
		conn, err = secure.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
	} else {
		if !Loopback(u.Hostname()) { // anyone in between could read the token
			return nil, &peer.UnreachableError{Why: address + " is on another machine and has no TLS"}
		}
		conn, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "80")))
	}
	if err != nil {
		return nil, &peer.UnreachableError{Why: err.Error()}
	}
	return peer.Healthy(ctx, conn, u.Host, "the server at "+address)
}

// Reached connects to the server at an address as another server of the group would.
func (s *Server) Reached(ctx context.Context, address string) error {
	conn, err := s.dialHolder(ctx, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// introduce adds the group's token to a request for the server at an address, and returns the host to name in the request.
// Over a socket no token is needed: the kernel names the user.
func (s *Server) introduce(h http.Header, address string) (host string) {
	if s.opt.Group == nil || strings.HasPrefix(address, "unix:") {
		return "localhost"
	}
	h.Set("Authorization", "Bearer "+s.opt.Group.Token)
	if u, err := url.Parse(address); err == nil {
		return u.Host
	}
	return "localhost"
}
