package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/server/lan"
)

// Over the local network the server has the names of its certificate alone, speaks TLS, and wants a log-in as everywhere.
// A site whose name resolves to the server's address gets nothing.
func TestTheLocalNetworkHasItsOwnNames(t *testing.T) {
	outer := fixture.Must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	inner := fixture.Must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	g := newBench(t, func(o *testOptions) {
		a := fixture.Must[*lan.Authority](t)(lan.Open(lan.Options{
			Root: o.Store.Root(), Token: o.Token, Host: "box", Only: netip.MustParseAddr("127.0.0.1"), Now: time.Now,
		}))
		o.URL = "http://" + inner.Addr().String()
		o.LAN = &LAN{
			Listener: lan.Limit(outer), TLS: a.TLS(), Names: a.Names, CAFile: a.Certificate(),
			LAN: api.LAN{URL: "https://" + outer.Addr().String(), CA: "https://" + outer.Addr().String() + "/ca.crt", Fingerprint: a.Fingerprint()},
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- g.srv.Serve(ctx, inner) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("serve: got %v, want nil", err)
		}
	}()
	ca := fixture.Must[*x509.Certificate](t)(x509.ParseCertificate(g.opt.LAN.CAFile))
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	client := &http.Client{Timeout: patience, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(base, path, host string, cookies ...*http.Cookie) *http.Response {
		t.Helper()
		r := fixture.Must[*http.Request](t)(http.NewRequest("GET", base+path, nil))
		if host != "" {
			r.Host = host
		}
		for _, c := range cookies {
			r.AddCookie(c)
		}
		resp := fixture.Must[*http.Response](t)(client.Do(r))
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	for host, want := range map[string]int{
		"": 200, "box": 200, "box.local:7879": 200, "127.0.0.1": 200,
		"localhost": 403, "[::1]": 403, "evil.example": 403, "box.evil.example": 403, "127.0.0.1.evil.example": 403, "192.168.1.5": 403,
	} {
		if resp := ask(g.opt.LAN.URL, "/healthz", host); resp.StatusCode != want {
			t.Errorf("over the local network, Host %q: got %s, want %d", host, resp.Status, want)
		}
	}
	for host, want := range map[string]int{"": 200, "localhost": 200, "box": 403, "box.local": 403, "evil.example": 403} {
		if resp := ask(g.opt.URL, "/healthz", host); resp.StatusCode != want {
			t.Errorf("on this machine, Host %q: got %s, want %d", host, resp.Status, want)
		}
	}
	if resp := ask(g.opt.LAN.URL, "/v1/tasks", ""); resp.StatusCode != 401 {
		t.Errorf("without a log-in: got %s, want 401", resp.Status)
	}
	resp := ask(g.opt.LAN.URL, "/ca.crt", "")
	if got := fixture.Must[[]byte](t)(io.ReadAll(resp.Body)); string(got) != string(ca.Raw) || resp.Header.Get("Content-Type") != "application/x-x509-ca-cert" {
		t.Errorf("the certificate: got %d bytes as %s, want the authority's %d", len(got), resp.Header.Get("Content-Type"), len(ca.Raw))
	}
	plain := fixture.Must[net.Conn](t)(net.Dial("tcp", outer.Addr().String()))
	defer plain.Close()
	if _, err := io.WriteString(plain, "GET /healthz HTTP/1.1\r\nHost: box\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(plain)
	if len(said) > 12 && string(said[:12]) == "HTTP/1.1 200" {
		t.Errorf("the local network is served without TLS: %s", said)
	}

	var link api.Login
	g.did(201, &link, "POST", "/v1/server/logins", "")
	if want := g.opt.LAN.URL + "/login?key="; len(link.LAN) < len(want) || link.LAN[:len(want)] != want {
		t.Fatalf("the link for another device: got %q, want %s...", link.LAN, want)
	}
	in := ask(link.LAN, "", "")
	if in.StatusCode != 303 || len(in.Cookies()) != 1 || !in.Cookies()[0].Secure {
		t.Fatalf("the log-in: got %s with %v, want 303 and a cookie for TLS alone", in.Status, in.Cookies())
	}
	if resp := ask(g.opt.LAN.URL, "/v1/tasks", "", in.Cookies()[0]); resp.StatusCode != 200 {
		t.Errorf("logged in: got %s, want 200", resp.Status)
	}
	if resp := ask(link.LAN, "", ""); resp.StatusCode != 401 {
		t.Errorf("the link once more: got %s, want 401", resp.Status)
	}
	var state api.Server
	g.did(200, &state, "GET", "/v1/server", "")
	if state.LAN == nil || *state.LAN != g.opt.LAN.LAN {
		t.Errorf("the server's state has the local network as %+v, want %+v", state.LAN, g.opt.LAN.LAN)
	}
}
