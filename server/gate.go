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

// A gate bounds how many connections are open: one more waits for another's end. Strangers,
// which have not shown the token yet, have a smaller bound of their own. Where it is reached the
// oldest one that has said nothing for a while is cut off, so that a user without the token
// cannot fill the server by connecting.
type gate struct {
	net.Listener
	room chan struct{}
	shut chan struct{}
	once sync.Once

	most      int
	left      chan struct{} // a stranger left, or showed the token
	mu        sync.Mutex
	strangers []*guest // the oldest first
}

// strangerPatience is how long a stranger that was just let in may say nothing, however many
// others come: a client under load needs a moment between connecting and asking.
const strangerPatience = 100 * time.Millisecond

// strangerAge is how long a stranger may take to ask something when it says a little all the time.
const strangerAge = time.Second

func limited(l net.Listener, most, strangers int) *gate {
	return &gate{Listener: l, room: make(chan struct{}, most), shut: make(chan struct{}), most: strangers, left: make(chan struct{}, 1)}
}

// Accept lets the next connection in once there is room for it.
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

// crowd reports whether there is no room for a stranger, and who may be cut off for one.
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

// Close ends the listener, and lets go of who waits for room.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.shut) })
	return g.Listener.Close()
}

// guest is a connection that was let in.
type guest struct {
	net.Conn
	gate   *gate
	came   time.Time
	leave  func()
	silent atomic.Int64 // since when the server waits for its next bytes, in Unix nanoseconds; 0 = it does not
}

// Read waits for the next bytes.
func (c *guest) Read(p []byte) (int, error) {
	c.silent.Store(time.Now().UnixNano())
	n, err := c.Conn.Read(p)
	c.silent.Store(0)
	return n, err
}

// Close ends the connection and frees its place.
func (c *guest) Close() error {
	c.leave()
	return c.Conn.Close()
}

// known says that the connection is no stranger's any more.
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

// ofConn puts into the context of a connection's requests who it is.
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

// shown notes that a request's connection has shown the token.
func shown(r *http.Request) {
	if g, ok := r.Context().Value(guestKey{}).(*guest); ok {
		g.known()
	}
}
