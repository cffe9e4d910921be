package wire

import (
	"fmt"
	"io"
	"net"
)

// Body is a request body that is never put together: most of it are the messages'
// own bytes. A long history is a megabyte that would be allocated, copied and
// collected again with every turn.
type Body struct {
	list [][]byte
	size int64
}

// NewBody makes an empty body with room for so many pieces.
func NewBody(pieces int) *Body { return &Body{list: make([][]byte, 0, pieces)} }

// Add adds a piece. Its bytes must not be changed from now on.
func (b *Body) Add(piece []byte) {
	if len(piece) > 0 {
		b.list = append(b.list, piece)
		b.size += int64(len(piece))
	}
}

// Size is the body's length in bytes.
func (b *Body) Size() int64 { return b.size }

// Bytes is the body in one piece.
func (b *Body) Bytes() []byte {
	out := make([]byte, 0, b.size)
	for _, p := range b.list {
		out = append(out, p...)
	}
	return out
}

// Reader reads the body from its start. Each attempt has its own.
func (b *Body) Reader() io.ReadCloser { return &bodyReader{list: b.list, left: b.size} }

// bodyReader reads one piece after the other. The bytes are only read, and the
// transport may still do so when the reply has begun.
type bodyReader struct {
	list [][]byte
	at   int // in the first piece
	left int64
}

func (r *bodyReader) Read(p []byte) (n int, err error) {
	for n < len(p) && len(r.list) > 0 {
		c := copy(p[n:], r.list[0][r.at:])
		n, r.at = n+c, r.at+c
		if r.at == len(r.list[0]) {
			r.list, r.at = r.list[1:], 0
		}
	}
	r.left -= int64(n)
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// gather hands the rest of the body to the connection without copying it.
func (r *bodyReader) gather(c *net.TCPConn) (int64, error) {
	// WriteTo uses its list up; this one is shared by all attempts.
	list := append(make(net.Buffers, 0, len(r.list)), r.list...)
	if len(list) > 0 {
		list[0] = list[0][r.at:]
	}
	r.list, r.at, r.left = nil, 0, 0
	n, err := list.WriteTo(c)
	if err != nil {
		return n, fmt.Errorf("send the request: %w", err)
	}
	return n, nil
}

// Close has nothing to give back.
func (*bodyReader) Close() error { return nil }
