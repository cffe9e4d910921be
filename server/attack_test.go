package server

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// served is a server with all its limits on a listener, as roost serve has it.
func (g *bench) served(change func(*testOptions)) net.Addr {
	g.Helper()
	l := fixture.Must[net.Listener](g)(net.Listen("tcp", "127.0.0.1:0"))
	o := testOptions{Options: Options{Token: g.token}, Store: g.store}
	if change != nil {
		change(&o)
	}
	srv := fixture.Must[*Server](g)(o.serve())
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, l) }()
	g.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			g.Error(err)
		}
	})
	g.url = "http://" + l.Addr().String()
	return l.Addr()
}

func dial(t testing.TB, addr net.Addr) net.Conn {
	t.Helper()
	conn := fixture.Must[net.Conn](t)(net.Dial("tcp", addr.String()))
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A client that sends its headers drop by drop is let go, and holds up nobody.
func TestSlowHeaders(t *testing.T) {
	g := newBench(t)
	addr := g.served(func(o *testOptions) { o.HeaderTimeout = time.Second })
	begun := time.Now()
	conn := dial(t, addr)
	fmt.Fprintf(conn, "GET /v1/tasks HTTP/1.1\r\nHost: localhost\r\nX-Drop:")
	ended := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(conn)
		ended <- err
	}()
	for drops := 0; ; drops++ {
		select {
		case <-ended:
			if took := time.Since(begun); took > 40*time.Second {
				t.Errorf("it was let go after %s", took)
			}
			if took := time.Since(begun); took < 900*time.Millisecond {
				t.Errorf("it was let go after %s", took)
			}
			return
		case <-time.After(200 * time.Millisecond):
			fmt.Fprint(conn, "x")
			if drops%10 == 0 {
				g.get("/v1/version")
			}
		}
	}
}

// Headers that are too large, and bodies, are refused before anything is looked up.
func TestLargeRequests(t *testing.T) {
	g := newBench(t)
	addr := g.served(nil)
	line := ""
	for try := 0; line == "" && try < 5; try++ {
		conn := dial(t, addr)
		fmt.Fprintf(conn, "GET /v1/tasks HTTP/1.1\r\nHost: localhost\r\nX-Large: %s\r\n\r\n", strings.Repeat("x", 64<<10))
		// What it did not read resets the connection soon, for who comes late: with the answer.
		line, _ = bufio.NewReader(conn).ReadString('\n')
	}
	if !strings.Contains(line, "431") {
		t.Errorf("large headers: %q", line)
	}
	for _, length := range []string{"Content-Length: 104857600", "Transfer-Encoding: chunked"} {
		conn := dial(t, addr)
		fmt.Fprintf(conn, "GET /v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s\r\n\r\n", g.token, length)
		if line, _ := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, "413") {
			t.Errorf("%s: got %q, want strings.Contains(line, \"413\")", length, line)
		}
	}
	for _, raw := range []string{"GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n", "\x00\x01\x02\r\n\r\n", "GET http://evil.example/v1/tasks HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /v1/tasks HTTP/1.0\r\n\r\n"} {
		conn := dial(t, addr)
		fmt.Fprint(conn, raw)
		if line, _ := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, " 400") && !strings.Contains(line, " 403") {
			t.Errorf(`%q: got %q, want strings.Contains(line, " 400") or strings.Contains(line, " 403")`, raw, line)
		}
	}
}

// No more connections are open than may be; one that ends lets the next in.
func TestConnectionsAreBounded(t *testing.T) {
	g := newBench(t)
	addr := g.served(func(o *testOptions) { o.MaxConns, o.MaxStrangers = 2, 3 })
	first, second, third := dial(t, addr), dial(t, addr), dial(t, addr)
	ask := func(c net.Conn) { fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") }
	for _, c := range []net.Conn{first, second} {
		ask(c)
		fixture.Must[string](t)(bufio.NewReader(c).ReadString('\n'))
	}
	ask(third)
	if err := third.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := third.Read(make([]byte, 1)); err == nil {
		t.Errorf("a third connection was answered: %d", n)
	}
	first.Close()
	if err := third.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fixture.Must[string](t)(bufio.NewReader(third).ReadString('\n'))
}

// Readings wait for each other; a client that gives up does not keep its place.
func TestReadingsAreBounded(t *testing.T) {
	g := newBench(t, func(o *testOptions) { o.MaxReadings = 1 })
	leave, _ := g.srv.readings.enter("somebody else")
	ctx, cancel := context.WithCancel(t.Context())
	req := fixture.Must[*http.Request](t)(http.NewRequestWithContext(ctx, "GET", g.url+g.path(""), nil))
	req.Header.Set("Authorization", "Bearer "+g.token)
	gone := make(chan error, 1)
	go func() {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err == nil {
			resp.Body.Close()
		}
		gone <- err
	}()
	select {
	case <-gone:
		t.Error("it was answered although another one reads")
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	<-gone
	g.get("/healthz") // it reads nothing
	leave()
	g.get(g.path(""))
}

// stalled is a client that takes no byte of an answer.
type stalled struct {
	http.ResponseWriter
	writes, ends chan struct{}
}

func (s stalled) Write([]byte) (int, error) {
	s.writes <- struct{}{}
	<-s.ends
	return 0, errors.New("the client has gone")
}

// deadlines counts how often a handler sets the deadline of its writes.
type deadlines struct {
	*httptest.ResponseRecorder
	set int
}

func (d *deadlines) SetWriteDeadline(time.Time) error { d.set++; return nil }

// A list that comes in parts has a deadline for each, and not one for all.
func TestEachPartOfAListHasItsTime(t *testing.T) {
	g := newBench(t)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest("GET", "/v1/list?first=1", nil)
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer "+g.token)
	g.srv.Handler().ServeHTTP(w, r)
	if parts := strings.Count(w.Body.String(), "\n"); parts < 2 || w.set < parts {
		t.Errorf("got %d parts and %d deadlines, want at least 2, and a deadline for each\n%s", parts, w.set, w.Body)
	}
}

// Slow downloads stop no reading.
func TestExportsAreNoReadings(t *testing.T) {
	g := newBench(t, func(o *testOptions) { o.MaxReadings = 1 })
	slow := stalled{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		r := httptest.NewRequest("GET", g.path("/export"), nil)
		r.Host = "localhost"
		r.Header.Set("Authorization", "Bearer "+g.token)
		g.srv.Handler().ServeHTTP(slow, r)
	}()
	<-slow.writes
	g.get(g.path(""))
	close(slow.ends)
	if err := <-ended; err != http.ErrAbortHandler { //nolint:errorlint // a value of recover
		t.Errorf("the export ended with %v, want http.ErrAbortHandler", err)
	}
}

// Slow clients of one caller do not block the readings of another.
func TestSlowReadersOfOneCaller(t *testing.T) {
	s := newSharedBench(t)
	writes, ends := make(chan struct{}), make(chan struct{})
	const clients = 20
	ended := make(chan struct{}, clients)
	for range clients {
		go func() {
			r := httptest.NewRequest("GET", "/v1/tasks", nil)
			r.Host = "localhost"
			r.Header.Set("Authorization", strings.TrimPrefix(s.bob, "Authorization: "))
			s.srv.Handler().ServeHTTP(stalled{httptest.NewRecorder(), writes, ends}, r)
			ended <- struct{}{}
		}()
	}
	for range 6 { // all that one caller may have of eight
		<-writes
	}
	time.Sleep(50 * time.Millisecond)
	s.did(http.StatusOK, nil, "GET", "/v1/tasks", "", s.ann)
	close(ends)
	for done := 0; done < clients; {
		select {
		case <-writes:
		case <-ended:
			done++
		}
	}
}

// With TLS the names of the certificate are the server's, and no other.
func TestNamesOfACertificate(t *testing.T) {
	key := fixture.Must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	plan := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "roost"}, DNSNames: []string{"tasks.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	der := fixture.Must[[]byte](t)(x509.CreateCertificate(rand.Reader, plan, plan, &key.PublicKey, key))
	leaf := fixture.Must[*x509.Certificate](t)(x509.ParseCertificate(der))
	g := newBench(t)
	addr := g.served(func(o *testOptions) {
		o.TLS, o.Cert = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}}, MinVersion: tls.VersionTLS12}, leaf
	})
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	want := g.events()
	for host, status := range map[string]int{"tasks.example": 200, "127.0.0.1": 200, "other.example": 403} {
		req := fixture.Must[*http.Request](t)(http.NewRequest("GET", "https://"+addr.String()+g.path("/events?after=0"), nil))
		req.Host = host
		req.Header.Set("Authorization", "Bearer "+g.token)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != status || resp.ProtoMajor != 2 {
			t.Errorf("%s: %s by %s", host, resp.Status, resp.Proto)
		}
		if status == 200 {
			s := &stream{t, resp, bufio.NewReader(resp.Body)}
			if diff := firstDifference(want, s.take(len(want))); diff != "" {
				t.Error(diff)
			}
		}
		resp.Body.Close()
	}
	client.CloseIdleConnections()
}

// What cannot be read is a status, and its path stays in the log.
func TestFailuresOfTheDisk(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	g := newBench(t)
	if err := os.Chmod(journalPath(g), 0); err != nil {
		t.Fatal(err)
	}
	p := g.refused(403, "permission_denied", "GET", g.path(""))
	if strings.Contains(p.Detail, g.dir) || !strings.Contains(g.log.String(), "permission denied") {
		t.Errorf("got %s\n%s, want not strings.Contains(p.Detail, g.dir) and strings.Contains(g.log.String(), \"permission denied\")",
			p.Detail, g.log.String())
	}
}
