package wire_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/llm/wire"
)

// A body is the pieces one after the other, however it is read and however often.
func TestBodyIsItsPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "pieces")
		b := new(wire.Body)
		for _, p := range pieces {
			b.Add(p)
		}
		wanted := bytes.Join(pieces, nil)
		if !bytes.Equal(b.Bytes(), wanted) || b.Size() != int64(len(wanted)) {
			t.Fatalf("%d bytes, %q", b.Size(), b.Bytes())
		}
		for range 2 {
			if err := iotest.TestReader(b.Reader(), wanted); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// digests answers each request with its length and the digest of its body.
func digests(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		n, err := io.Copy(sum, r.Body)
		fmt.Fprintf(w, "%d of %d %x %v", n, r.ContentLength, sum.Sum(nil), err)
	}))
	t.Cleanup(s.Close)
	return s
}

func post(ctx context.Context, c *http.Client, url string, b *wire.Body) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, b.Reader())
	if err != nil {
		return "", err
	}
	req.ContentLength = b.Size()
	req.GetBody = func() (io.ReadCloser, error) { return b.Reader(), nil }
	res, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	return string(said), err
}

func client(t *testing.T) *http.Client {
	t.Helper()
	c := &http.Client{Transport: wire.NewTransport()}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// many is a body of so many pieces of different lengths.
func many(pieces, size int) *wire.Body {
	b := new(wire.Body)
	for i := range pieces {
		b.Add(bytes.Repeat([]byte{byte('a' + i%26)}, size+i%7))
	}
	return b
}

// What leaves through the transport is the body, byte for byte: more pieces than
// one system call takes, more bytes than a socket holds, and several requests over
// one connection.
func TestTransportSendsTheBody(t *testing.T) {
	s, c := digests(t), client(t)
	for name, b := range map[string]*wire.Body{
		"one byte": many(1, 1), "many small ones": many(5000, 3),
		"larger than a socket": many(40, 1<<20), "a history": many(400, 5<<10),
	} {
		t.Run(name, func(t *testing.T) {
			wanted := fmt.Sprintf("%d of %d %x <nil>", b.Size(), b.Size(), sha256.Sum256(b.Bytes()))
			for range 3 {
				if said, err := post(t.Context(), c, s.URL, b); err != nil || said != wanted {
					t.Fatalf("%q, %v; wanted %q", said, err, wanted)
				}
			}
		})
	}
}

// A redirect has the body sent again from its start.
func TestTransportSendsTheBodyAgain(t *testing.T) {
	s := digests(t)
	first := httptest.NewServer(http.RedirectHandler(s.URL, http.StatusTemporaryRedirect))
	defer first.Close()
	b := many(100, 1<<10)
	said, err := post(t.Context(), client(t), first.URL, b)
	if wanted := fmt.Sprintf("%d of %d %x <nil>", b.Size(), b.Size(), sha256.Sum256(b.Bytes())); err != nil || said != wanted {
		t.Fatalf("got %q, %v, want no error and said = %v", said, err, wanted)
	}
}

// A server that stops reading does not hold a cancelled request.
func TestTransportStopsWhenCancelled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := post(ctx, client(t), "http://"+l.Addr().String(), many(64, 1<<20))
		ended <- err
	}()
	server := <-accepted
	defer server.Close()
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it still sends")
	}
}
