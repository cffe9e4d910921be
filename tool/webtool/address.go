package webtool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
)

// longestURL is the longest address that is accepted, in bytes.
const longestURL = 8 << 10

// usualPort is the port that a scheme uses if the URL names none.
var usualPort = map[string]string{"http": "80", "https": "443"}

// parse reads an address that may be fetched: http or https, a host in ASCII, no name or password. The result holds
// ASCII only: the user sees the very characters that are sent. Its Host is the site, which is the subject of a
// permission: the host, with the port where it is not the usual one.
func parse(text string) (*url.URL, error) {
	if len(text) > longestURL {
		return nil, fmt.Errorf("it has %d bytes, and %d is the limit", len(text), longestURL)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("it is no URL")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	if usualPort[u.Scheme] == "" {
		return nil, errors.New("it must begin with https:// or http://")
	}
	if u.User != nil {
		return nil, errors.New("it holds a name or password, which is never sent")
	}
	host, port := strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), u.Port()
	_, notIP := netip.ParseAddr(host)
	switch {
	case host == "":
		return nil, errors.New("it names no host")
	case notIP != nil && strings.ContainsFunc(host, outsideHost):
		return nil, errors.New("its host must be letters of ASCII, digits, dashes and dots; write an international name as xn--NAME")
	case strings.Contains(host, "%"):
		return nil, errors.New("its host has a zone")
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.Host = host; port != "" && port != usualPort[u.Scheme] {
		u.Host += ":" + port
	}
	u.Fragment, u.RawFragment = "", ""
	var query strings.Builder
	for _, b := range []byte(u.RawQuery) {
		if b <= ' ' || b >= 0x7f {
			fmt.Fprintf(&query, "%%%02X", b)
		} else {
			query.WriteByte(b)
		}
	}
	u.RawQuery = query.String()
	return u, nil
}

func outsideHost(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_')
}

// portOf returns the port for the request.
func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), usualPort[u.Scheme])
}

// CheckPrivate returns an error for a site on a private address that is not written as HOST:PORT.
func CheckPrivate(sites []string) error {
	for _, s := range sites {
		host, port, err := net.SplitHostPort(s)
		if err != nil || host == "" || port == "" || strings.ContainsAny(s, "*/@") {
			return fmt.Errorf("%q: want a host and its port, such as localhost:8080", s)
		}
	}
	return nil
}

// private reports whether the user's settings allow a site to have a private address.
func (o Options) private(u *url.URL) bool {
	own := net.JoinHostPort(u.Hostname(), portOf(u))
	return slices.ContainsFunc(o.Private, func(s string) bool { return strings.EqualFold(s, own) })
}

// plainlyPrivate refuses an address that can be judged before its host name is resolved.
func (o Options) plainlyPrivate(u *url.URL) error {
	if o.private(u) {
		return nil
	}
	host := u.Hostname()
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && !isPublic(ip) {
		return o.notPublic(u, host)
	}
	return nil
}

func (o Options) notPublic(u *url.URL, address string) error {
	return fmt.Errorf("%s is no public address, and %s does not reach those; the user can allow this one with "+
		"roost config set web.private_hosts %s", address, Name, net.JoinHostPort(u.Hostname(), portOf(u)))
}

// resolve returns the addresses of a host. All must be public: one that is not makes the name suspect, whichever of
// them would be dialed.
func (o Options) resolve(ctx context.Context, u *url.URL) (found []netip.Addr, err error) {
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		found = []netip.Addr{ip}
	} else if found, err = cmp.Or[Resolver](o.Resolver, net.DefaultResolver).LookupNetIP(ctx, "ip", host); err != nil {
		return nil, fmt.Errorf("the name %s cannot be resolved: %w", host, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the name %s has no address", host)
	}
	for i, ip := range found {
		if found[i] = ip.Unmap(); !o.private(u) && !isPublic(ip) {
			return nil, o.notPublic(u, host+" ("+ip.String()+")")
		}
	}
	return found, nil
}

// closed are parts of the public address space that lead to non-public hosts, or that embed another address.
var closed = api.Each([]string{
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	"168.63.129.16/32", // Azure's host
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
}, netip.MustParsePrefix)

var (
	global = netip.MustParsePrefix("2000::/3")
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
)

// isPublic reports whether an address belongs to the public Internet: it is no private, loopback, link-local,
// metadata or reserved one.
func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	if nat64.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	if ip.Zone() != "" || ip.Is6() && !global.Contains(ip) {
		return false
	}
	return !slices.ContainsFunc(closed, func(p netip.Prefix) bool { return p.Contains(ip) })
}
