package wire

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// NewTransport is the default transport, made for requests of megabytes. The
// default write buffer of 4 KB would turn each into hundreds of writes. 16 KB, one TLS
// record, are enough, since TLS sends record by record. On a connection without TLS (a
// model or a gateway on this machine) a Body is sent without a copy through the buffer.
// Each running task keeps a connection with its buffers: larger ones would be most of
// the memory that a task takes.
func NewTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // a program that embeds us has put its own there
	}
	t = t.Clone()
	t.WriteBufferSize = 16 << 10
	t.ReadBufferSize = 8 << 10
	dial := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext // as the default one has it
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if tcp, is := c.(*net.TCPConn); is && err == nil {
			return gatherConn{tcp}, nil
		}
		return c, err
	}
	return t
}

// gatherConn sends a Body with as few system calls as there can be. The transport
// asks connections for ReadFrom before it copies.
type gatherConn struct{ *net.TCPConn }

// ReadFrom sends what r has.
func (c gatherConn) ReadFrom(r io.Reader) (int64, error) {
	if limited, is := r.(*io.LimitedReader); is {
		if body, is := limited.R.(*bodyReader); is && limited.N == body.left {
			n, err := body.gather(c.TCPConn)
			limited.N -= n
			return n, err
		}
	}
	return c.TCPConn.ReadFrom(r) //nolint:wrapcheck // the transport looks at the error
}
