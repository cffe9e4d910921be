package lan

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// open opens an authority of a machine with these addresses at a time that the test changes.
func open(t *testing.T, root, token, host string, now *time.Time, own ...string) *Authority {
	t.Helper()
	a := fixture.Must[*Authority](t)(Open(Options{Root: root, Token: token, Host: host, Now: func() time.Time { return *now }}))
	a.own = func() (out []net.Addr) {
		for _, one := range own {
			out = append(out, &net.IPNet{IP: net.ParseIP(one), Mask: net.CIDRMask(24, 32)})
		}
		return out
	}
	return a
}

// trusts verifies the server's certificate as a device does that installed the authority.
func trusts(a *Authority, c *tls.Certificate, host string, at time.Time) error {
	pool := x509.NewCertPool()
	pool.AddCert(fixtureCert(a.Certificate()))
	_, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err
}

func fixtureCert(der []byte) *x509.Certificate {
	c, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return c
}

func TestTheChainVerifies(t *testing.T) {
	now := start
	a := open(t, t.TempDir(), "token", "Box.example.org", &now, "192.168.1.5", "203.0.113.9", "127.0.0.1", "fd00::5", "fe80::1", "2001:db8::1", "10.0.0.7")
	c := fixture.Must[*tls.Certificate](t)(a.server(netip.Addr{}))
	for _, name := range []string{"box", "box.local", "192.168.1.5", "10.0.0.7", "fd00::5"} {
		if err := trusts(a, c, name, now); err != nil || !a.Names(name) {
			t.Errorf("%s: got %v and a name of the server: %v, want it trusted", name, err, a.Names(name))
		}
	}
	for _, name := range []string{"localhost", "127.0.0.1", "203.0.113.9", "2001:db8::1", "fe80::1", "box.example.org", "evil.example", "x.box.local", "192.168.1.6", ""} {
		if a.Names(name) {
			t.Errorf("%q is a name of the server, want only those of its certificate", name)
		}
	}
	if got := fixture.Must[string](t)(a.Address()); got != "192.168.1.5" {
		t.Errorf("the address: got %s, want 192.168.1.5", got)
	}
	leaf, ca := c.Leaf, fixtureCert(a.Certificate())
	if leaf.IsCA || leaf.NotAfter.Sub(now) > serverLife || ca.NotAfter.Before(now.AddDate(9, 0, 0)) || !ca.MaxPathLenZero || ca.KeyUsage != x509.KeyUsageCertSign ||
		!slices.Equal(ca.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
		t.Errorf("got the server's until %s and the authority's until %s, usage %v %v, path %v", leaf.NotAfter, ca.NotAfter, ca.KeyUsage, ca.ExtKeyUsage, ca.MaxPathLenZero)
	}
}

// What the authority's key signs beyond its limits is not trusted, whoever has the key.
func TestTheAuthorityIsLimited(t *testing.T) {
	now := start
	for _, wrong := range []struct{ host, address string }{{"bank.example", "192.168.1.5"}, {"box", "203.0.113.9"}} {
		a := open(t, t.TempDir(), "token", "box", &now, "192.168.1.5")
		a.only = netip.MustParseAddr(wrong.address)
		a.host = wrong.host
		a.cert.PermittedDNSDomains = append(a.cert.PermittedDNSDomains, wrong.host) // the signer's own view
		c := fixture.Must[*tls.Certificate](t)(a.server(netip.Addr{}))
		if err := trusts(a, c, "", now); err == nil || !strings.Contains(err.Error(), "not permitted") {
			t.Errorf("%s at %s: got %v, want a name that is not permitted", wrong.host, wrong.address, err)
		}
	}
}

func TestTheServersCertificateIsRenewed(t *testing.T) {
	now := start
	own := []string{"192.168.1.5"}
	a := open(t, t.TempDir(), "token", "box", &now)
	a.own = func() (out []net.Addr) {
		for _, one := range own {
			out = append(out, &net.IPNet{IP: net.ParseIP(one)})
		}
		return out
	}
	serial := func(at string) string {
		t.Helper()
		var addr netip.Addr
		if at != "" {
			addr = netip.MustParseAddr(at)
		}
		c := fixture.Must[*tls.Certificate](t)(a.server(addr))
		if err := trusts(a, c, "box.local", now); err != nil {
			t.Errorf("at %s: %v", now, err)
		}
		return c.Leaf.SerialNumber.String()
	}
	first := serial("")
	now = now.Add(4 * 24 * time.Hour)
	if got := serial("192.168.1.5"); got != first {
		t.Error("the certificate was made again after four days, want it kept")
	}
	now = now.Add(24 * time.Hour)
	second := serial("")
	if second == first {
		t.Error("the certificate is the same after five days of seven, want a new one")
	}
	own = []string{"10.1.1.1"}
	if got := serial("10.1.1.1"); got == second || !a.Names("10.1.1.1") || a.Names("192.168.1.5") {
		t.Errorf("after a change of addresses: names 10.1.1.1: %v, 192.168.1.5: %v, want the new address alone", a.Names("10.1.1.1"), a.Names("192.168.1.5"))
	}
}

func TestTheAuthorityStaysAndIsPrivate(t *testing.T) {
	now, root := start, t.TempDir()
	a := open(t, root, "token", "box", &now)
	if info, err := os.Stat(File(root)); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("the file: got %v, %v, want mode 0600", info, err)
	}
	now = now.AddDate(8, 0, 0)
	for host, names := range map[string]int{"box": 2, "other": 1, "": 0} {
		b := open(t, root, "token", host, &now)
		if !bytes.Equal(a.Certificate(), b.Certificate()) || a.Fingerprint() != b.Fingerprint() {
			t.Errorf("on the machine %q the authority is another one, want the same", host)
		}
		if got := b.names(); len(got) != names {
			t.Errorf("on the machine %q: got the names %q, want %d", host, got, names)
		}
		if err := trusts(b, fixture.Must[*tls.Certificate](t)(b.server(netip.MustParseAddr("10.0.0.1"))), "", now); err != nil {
			t.Errorf("on the machine %q: %v", host, err)
		}
	}
	if b := open(t, root, "another token", "box", &now); bytes.Equal(a.Certificate(), b.Certificate()) {
		t.Error("a copied root, which has another token, kept the authority")
	}
	last := open(t, root, "another token", "box", &now)
	now = now.AddDate(9, 1, 0)
	if b := open(t, root, "another token", "box", &now); bytes.Equal(last.Certificate(), b.Certificate()) {
		t.Error("an authority that ends in a year was kept")
	}
	if err := os.WriteFile(File(root), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, root, "token", "box", &now)
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(File(root), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Root: root, Token: "token", Now: func() time.Time { return now }}); err == nil || !strings.Contains(err.Error(), filepath.Base(File(root))) {
		t.Errorf("a key that others may read: got %v, want a refusal", err)
	}
}

// A device that trusts the authority talks TLS with the server; one that does not refuses.
func TestTLSWithTheServer(t *testing.T) {
	now := time.Now()
	a := open(t, t.TempDir(), "token", "box", &now)
	l := fixture.Must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	a.only = netip.MustParseAddr("127.0.0.1")
	web := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })}
	done := make(chan error, 1)
	go func() { done <- web.Serve(tls.NewListener(Limit(l), a.TLS())) }()
	defer func() { _ = web.Close(); <-done }()
	pool := x509.NewCertPool()
	for _, trusted := range []bool{false, true} {
		if trusted {
			pool.AddCert(fixtureCert(a.Certificate()))
		}
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
		resp, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String())
		if (err == nil) != trusted {
			t.Errorf("trusted %v: got %v", trusted, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
	}
}

func TestPrivateAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"192.168.0.1": true, "172.31.9.9": true, "172.32.0.1": false, "10.255.0.1": true, "100.64.0.1": true, "127.0.0.1": true, "::1": true,
		"::ffff:192.168.0.1": true, "fd12::1": true, "8.8.8.8": false, "2001:db8::1": false, "0.0.0.0": false, "169.254.1.1": false,
	} {
		if got := Private(netip.MustParseAddr(text)); got != want {
			t.Errorf("Private(%s): got %v, want %v", text, got, want)
		}
	}
}
