// Package lan makes a server reachable for the devices of the local network, by TLS. A certificate authority of the root's
// own signs the server's certificate; a device installs the authority's certificate once and trusts the server from then on.
//
// A device that installs the authority trusts everything that the authority's key signs. The authority is therefore limited
// to servers, to this machine's name and names in .local, and to private addresses. The file server/ca.pem below the root,
// which only its owner may read, holds the key. The authority belongs to the token of the server: a copied root gets a new
// token and with it a new authority.
//
// The server's certificate is valid for a week and is never on disk. The server makes a new one when a third of that time is
// left, and when the machine's addresses change.
//
// A server that listens on all addresses listens on public ones, too: Limit closes connections to those at once.
package lan

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/inputfile"
)

const (
	caYears    = 10
	serverLife = 7 * 24 * time.Hour
	// early is the time by which a certificate is valid before it is made: the clock of a device may be behind.
	early = 24 * time.Hour
)

// private are the addresses that the authority may sign for.
var private = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"), // shared address space, as private overlays use it
	netip.MustParsePrefix("fc00::/7"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
}

// Private reports whether an address is one of this machine or of a local network.
func Private(a netip.Addr) bool {
	return slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// Authority is the certificate authority of a root, with the server's certificate. It is safe for concurrent use.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  func() time.Time
	host string            // the name of this machine; "" = none
	only netip.Addr        // the one address that the server listens on; zero: all
	own  func() []net.Addr // the addresses of this machine

	mu     sync.Mutex
	served *tls.Certificate
}

// File returns the path of the authority of a root.
func File(root string) string { return filepath.Join(root, "server", "ca.pem") }

// Options are what an authority needs.
type Options struct {
	Root  string
	Token string // of the server
	Host  string // the name of this machine, as os.Hostname has it
	Only  netip.Addr
	Now   func() time.Time
}

// Open reads the authority of a root, and makes one when there is none, when it belongs to another token, or when a tenth
// of its time is left. It refuses a file that others may read.
func Open(o Options) (*Authority, error) {
	a := &Authority{now: o.Now, host: nameOf(o.Host), only: o.Only, own: addresses}
	file := File(o.Root)
	sum := sha256.Sum256([]byte("authority of " + o.Token)) // the file names its owner without showing the token
	owner := hex.EncodeToString(sum[:])
	info, err := os.Lstat(file)
	switch {
	case err == nil && (!info.Mode().IsRegular() || os.PathSeparator == '/' && info.Mode().Perm()&0o077 != 0):
		return nil, fmt.Errorf("others may read the key in %s (mode %04o): delete the file, and remove its certificate from "+
			"the devices that have it", file, info.Mode().Perm())
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	if err == nil {
		data, err := inputfile.Read(file)
		if err != nil {
			return nil, fmt.Errorf("read the certificate authority: %w", err)
		}
		if a.read(data, owner) && a.now().Before(a.cert.NotAfter.AddDate(-1, 0, 0)) {
			return a, nil
		}
	}
	data, err := a.create(owner)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(file, data)
	}
	return a, api.Failed(err, "make the certificate authority")
}

const ownerHeader = "Roost-Owner"

// read reads the authority from its file; false if the file holds none, or one of another owner.
func (a *Authority) read(data []byte, owner string) bool {
	key, rest := pem.Decode(data)
	cert, _ := pem.Decode(rest)
	if key == nil || cert == nil || key.Headers[ownerHeader] != owner {
		return false
	}
	parsed, err := x509.ParsePKCS8PrivateKey(key.Bytes)
	ours, is := parsed.(*ecdsa.PrivateKey)
	if err != nil || !is {
		return false
	}
	a.key = ours
	a.cert, err = x509.ParseCertificate(cert.Bytes)
	return err == nil && ours.PublicKey.Equal(a.cert.PublicKey)
}

// create makes a new authority and returns its file.
func (a *Authority) create(owner string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial := newSerial()
	now := a.now()
	name := "Roost"
	if a.host != "" {
		name += " on " + a.host
	}
	c := &x509.Certificate{
		SerialNumber:                serial,
		Subject:                     pkix.Name{CommonName: fmt.Sprintf("%s (%x)", name, serial.Bytes()[:3])},
		NotBefore:                   now.Add(-early),
		NotAfter:                    now.AddDate(caYears, 0, 0),
		KeyUsage:                    x509.KeyUsageCertSign,
		ExtKeyUsage:                 []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:                        true,
		BasicConstraintsValid:       true,
		MaxPathLenZero:              true,
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         []string{"local"},
	}
	if a.host != "" {
		c.PermittedDNSDomains = append(c.PermittedDNSDomains, a.host)
	}
	for _, p := range private {
		bits := p.Addr().BitLen()
		c.PermittedIPRanges = append(c.PermittedIPRanges, &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), bits)})
	}
	a.key = key
	if a.cert, err = a.sign(c, c, key); err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	out := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Headers: map[string]string{ownerHeader: owner}, Bytes: secret})
	return append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})...), nil
}

// sign makes a certificate for a key, which the authority signs.
func (a *Authority) sign(c, parent *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func newSerial() *big.Int {
	b := make([]byte, 16)
	_, _ = rand.Read(b)     // never fails
	b[0] = b[0]&0x7f | 0x40 // positive, and of full length
	return new(big.Int).SetBytes(b)
}

// Certificate returns the authority's certificate (DER), as devices install it.
func (a *Authority) Certificate() []byte { return a.cert.Raw }

// Fingerprint returns the SHA-256 of the certificate, as phones show it.
func (a *Authority) Fingerprint() string {
	s := sha256.Sum256(a.cert.Raw)
	pairs := make([]string, len(s))
	for i, b := range s {
		pairs[i] = fmt.Sprintf("%02X", b)
	}
	return strings.Join(pairs, ":")
}

// TLS returns the configuration of the server.
func (a *Authority) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return a.server(localOf(hello.Conn))
		},
	}
}

// Names reports whether the server's certificate has a name or an address, which is in lower case.
func (a *Authority) Names(host string) bool {
	c, err := a.server(netip.Addr{})
	return err == nil && c.Leaf.VerifyHostname(host) == nil
}

// Address returns the address by which devices reach this machine; an error when it is in no local network.
func (a *Authority) Address() (string, error) {
	c, err := a.server(netip.Addr{})
	if err != nil {
		return "", err
	}
	for _, ip := range c.Leaf.IPAddresses {
		return ip.String(), nil
	}
	return "", errors.New("this machine has no address of a local network")
}

// server returns the server's certificate. at is an address of this machine that the certificate must contain; zero:
// none.
func (a *Authority) server(at netip.Addr) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.served; c != nil && a.now().Before(c.Leaf.NotAfter.Add(-serverLife/3)) {
		if !at.IsValid() || slices.ContainsFunc(c.Leaf.IPAddresses, func(ip net.IP) bool { return ip.Equal(at.AsSlice()) }) {
			return c, nil
		}
	}
	now := a.now()
	c := &x509.Certificate{
		SerialNumber: newSerial(),
		Subject:      pkix.Name{CommonName: "Roost"},
		NotBefore:    now.Add(-early),
		NotAfter:     now.Add(serverLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     a.names(),
		IPAddresses:  a.reached(),
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	var leaf *x509.Certificate
	if err == nil {
		leaf, err = a.sign(c, a.cert, key)
	}
	if err != nil {
		return nil, fmt.Errorf("make the server's certificate: %w", err)
	}
	a.served = &tls.Certificate{Certificate: [][]byte{leaf.Raw, a.cert.Raw}, PrivateKey: key, Leaf: leaf}
	return a.served, nil
}

// names returns the names of this machine in the local network. They leave out the bare name if the machine was
// renamed after the authority was made: devices would refuse a certificate with that name.
func (a *Authority) names() (out []string) {
	if a.host == "" {
		return nil
	}
	if slices.Contains(a.cert.PermittedDNSDomains, a.host) {
		out = append(out, a.host)
	}
	return append(out, a.host+".local")
}

// reached returns the addresses by which other devices reach this machine, those of version 4 first.
func (a *Authority) reached() []net.IP {
	if a.only.IsValid() {
		return []net.IP{a.only.AsSlice()}
	}
	var out []net.IP
	for _, one := range a.own() {
		ip, is := one.(*net.IPNet)
		if !is {
			continue
		}
		if addr, ok := netip.AddrFromSlice(ip.IP); ok && Private(addr) && !addr.Unmap().IsLoopback() {
			out = append(out, addr.Unmap().AsSlice())
		}
	}
	slices.SortStableFunc(out, func(a, b net.IP) int { return len(a) - len(b) })
	return out
}

func addresses() []net.Addr {
	all, _ := net.InterfaceAddrs() // without them the certificate has the names alone
	return all
}

// nameOf returns the first part of a machine's name; "" when it is no name of DNS.
func nameOf(host string) string {
	host, _, _ = strings.Cut(strings.ToLower(host), ".")
	if len(host) > 63 || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.Trim(host, "-") != host || host == "localhost" {
		return ""
	}
	return host
}

// localOf returns the address of this machine that a connection came to.
func localOf(c net.Conn) netip.Addr {
	at, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

// Limit returns a listener that accepts connections from a local network to a private address, and closes all others.
func Limit(l net.Listener) net.Listener { return &limited{l} }

type limited struct{ net.Listener }

// Accept returns the next connection of the local network.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // net/http compares it
		}
		from, err := netip.ParseAddrPort(c.RemoteAddr().String())
		if err == nil && Private(localOf(c)) && Private(from.Addr().WithZone("")) {
			return c, nil
		}
		_ = c.Close()
	}
}
