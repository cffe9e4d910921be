package anthropic

import (
	"io"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/option"
)

// pieces is a request body that was never put together: most of it are the
// messages' own bytes. A long history is a megabyte that would be allocated,
// copied and collected again with every turn.
type pieces struct {
	list [][]byte
	size int64
}

func (p *pieces) add(b []byte) {
	p.list = append(p.list, b)
	p.size += int64(len(b))
}

// bytes is the body in one piece.
func (p *pieces) bytes() []byte {
	out := make([]byte, 0, p.size)
	for _, b := range p.list {
		out = append(out, b...)
	}
	return out
}

// reader reads the body from its start. Each attempt has its own.
func (p *pieces) reader() io.ReadCloser { return &piecesReader{list: p.list} }

// option makes the SDK send the body. The SDK takes bodies of unknown length or in
// one piece only, so it is put in behind it.
func (p *pieces) option() option.RequestOption {
	return option.WithMiddleware(func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		req.Header.Set("Content-Type", "application/json")
		req.ContentLength = p.size
		req.Body = p.reader()
		// A connection that was kept may turn out to be closed: the transport then
		// sends the body again by itself.
		req.GetBody = func() (io.ReadCloser, error) { return p.reader(), nil }
		return next(req)
	})
}

// piecesReader reads one piece after the other. The bytes are only read, and the
// transport may still do so when the reply has begun: messages are never changed
// in place.
type piecesReader struct {
	list [][]byte
	at   int // in the first piece
}

func (r *piecesReader) Read(b []byte) (n int, err error) {
	for n < len(b) && len(r.list) > 0 {
		c := copy(b[n:], r.list[0][r.at:])
		n, r.at = n+c, r.at+c
		if r.at == len(r.list[0]) {
			r.list, r.at = r.list[1:], 0
		}
	}
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (*piecesReader) Close() error { return nil }
