package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/server/peer"
)

// A gate bounds the open connections: one more waits until another ends. Strangers are connections that have not shown
// the token yet; they have a smaller bound. When it is reached, the gate closes the oldest silent stranger, so that a
// user without the token cannot fill the server with connections.
type gate struct {
	net.Listener
	room chan struct{}
	shut chan struct{}
	once sync.Once

	most      int
	left      chan struct{} // a stranger closed, or showed the token
	mu        sync.Mutex
	strangers []*guest // the oldest first
}

// strangerPatience is how long a new stranger may be silent, however many others wait: a client under load needs a moment
// between connecting and sending.
const strangerPatience = 100 * time.Millisecond

// strangerAge bounds how long a stranger may send a little at a time without a request.
const strangerAge = time.Second

func limited(l net.Listener, most, strangers int) *gate {
	return &gate{Listener: l, room: make(chan struct{}, most), shut: make(chan struct{}), most: strangers, left: make(chan struct{}, 1)}
}

// Accept returns the next connection when there is room for it.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.room <- struct{}{}:
	case <-g.shut:
		return nil, net.ErrClosed
	}
	conn, err := g.next()
	if err != nil {
		<-g.room
		return nil, err
	}
	c := &guest{Conn: conn, gate: g, came: time.Now()}
	c.leave = sync.OnceFunc(func() { c.known(); <-g.room })
	if p, ok := conn.(*peer.Conn); !ok || !p.SameUser {
		g.mu.Lock()
		g.strangers = append(g.strangers, c)
		g.mu.Unlock()
	}
	return c, nil
}

func (g *gate) next() (net.Conn, error) {
	for {
		full, idle := g.crowd()
		if !full {
			return g.Listener.Accept()
		}
		if idle != nil {
			_ = idle.Close()
			continue
		}
		again := time.NewTimer(strangerPatience / 4)
		select {
		case <-g.left:
		case <-again.C:
		case <-g.shut:
			again.Stop()
			return nil, net.ErrClosed
		}
		again.Stop()
	}
}

// crowd reports whether there is no room for a stranger, and which one may be closed for it.
func (g *gate) crowd() (full bool, idle *guest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.strangers) < g.most {
		return false, nil
	}
	now := time.Now()
	for _, c := range g.strangers {
		since := c.silent.Load()
		if since != 0 && (now.UnixNano()-since >= int64(strangerPatience) || now.Sub(c.came) >= strangerAge) {
			return true, c
		}
	}
	return true, nil
}

// Close ends the listener, and Accept when it waits for room.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.shut) })
	return g.Listener.Close()
}

// guest is an accepted connection.
type guest struct {
	net.Conn
	gate   *gate
	came   time.Time
	leave  func()
	silent atomic.Int64 // since when the server waits for its next bytes, in Unix nanoseconds; 0 = it does not wait
}

// Read waits for the next bytes.
func (c *guest) Read(p []byte) (int, error) {
	c.silent.Store(time.Now().UnixNano())
	n, err := c.Conn.Read(p)
	c.silent.Store(0)
	return n, err
}

// Close ends the connection and makes room for another.
func (c *guest) Close() error {
	c.leave()
	return c.Conn.Close()
}

// known marks a connection that has shown the token.
func (c *guest) known() {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.strangers, c); i >= 0 {
		g.strangers = slices.Delete(g.strangers, i, i+1)
		select {
		case g.left <- struct{}{}:
		default:
		}
	}
}

type guestKey struct{}

// ofConn puts the connection, and whether it is a peer's, into the context of its requests.
func ofConn(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	g, ok := c.(*guest)
	if !ok {
		return ctx
	}
	if p, ok := g.Conn.(*peer.Conn); ok && p.SameUser {
		ctx = context.WithValue(ctx, peerKey{}, true)
	}
	return context.WithValue(ctx, guestKey{}, g)
}

// shown marks the connection of a request that has shown the token.
func shown(r *http.Request) {
	if g, ok := r.Context().Value(guestKey{}).(*guest); ok {
		g.known()
	}
}
