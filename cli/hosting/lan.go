package hosting

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/server"
	"github.com/roost-dev/roost/server/lan"
)

// usualLAN is the address of --lan without an address: every address of the machine. Package lan serves only those of
// local networks.
const usualLAN = ":7879"

// openLAN opens the listener for devices of the local network; nil without --lan.
func (a *commands) openLAN(ctx context.Context, f *serveFlags, root, token string) (*server.LAN, error) {
	if f.lan == "" {
		return nil, nil //nolint:nilnil // it was not asked for
	}
	host, _, err := net.SplitHostPort(f.lan)
	var only netip.Addr
	if err == nil && host != "" {
		only, err = netip.ParseAddr(host)
	}
	if err != nil || only.IsValid() && !lan.Private(only) {
		return nil, failure.Usage("roost serve --lan="+f.lan, "want a port, or an address of this machine in a local network and a port",
			"roost serve --lan  # or --lan=192.168.1.5:7879")
	}
	name, _ := os.Hostname() // without it the certificate has addresses alone
	ca, err := lan.Open(lan.Options{
		Root:  root,
		Token: token,
		Host:  name,
		Only:  only,
		Now:   a.Now,
	})
	if err != nil {
		return nil, failure.Config("open the server for the local network", err.Error(), "roost serve  # without --lan")
	}
	at, err := ca.Address()
	if err != nil {
		return nil, failure.Config("open the server for the local network", err.Error(),
			"ip address  # connect to a network, or roost serve without --lan")
	}
	l, err := a.listen(ctx, root, f.lan)
	if taken := (*failure.Failure)(nil); errors.As(err, &taken) {
		taken.Try = "roost serve --lan=:0  # any free port"
	}
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String()) // it listens there
	url := "https://" + net.JoinHostPort(at, port)
	return &server.LAN{
		Listener: lan.Limit(l),
		TLS:      ca.TLS(),
		Names:    ca.Names,
		CAFile:   ca.Certificate(),
		LAN: api.LAN{
			URL:         url,
			CA:          url + "/ca.crt",
			Fingerprint: ca.Fingerprint(),
		},
	}, nil
}
