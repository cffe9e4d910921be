package hosting

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/server"
	"github.com/roost-dev/roost/server/presence"
)

type serveFlags struct {
	listen, cert, key string
	hosts             []string
	fresh, trust      bool
	work              workFlags
}

func (a *commands) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the tasks over HTTP, and run them",
		Long: "Serve the tasks of all sources over HTTP, for programs, browsers and other terminals of this\n" +
			"machine: they are listed, shown, started, continued, answered and followed; GET /openapi.json\n" +
			"lists the routes. A task continues without clients. As many runs as --max-runs work at a\n" +
			"time, the others wait in a queue that outlives the server. Where a person must be asked, the\n" +
			"question stays open for as long as it takes: after --hold the run lets its task go, and goes\n" +
			"on with the answer.\n\n" +
			"Every request needs the token, which is in server/token below the root and stays the same over\n" +
			"restarts, or the cookie that the log-in link sets, once. Beyond this machine nothing is served\n" +
			"without TLS, and web pages of other origins may ask only where --cors-origin names them. With\n" +
			"--json the first line is {\"url\",\"token\",\"login_url\"}; without, the token is never printed.\n" +
			"The log goes to stderr: runs, changes and answers with their clients, but no message texts; -v\n" +
			"logs every request. GET /metrics is for Prometheus.\n\n" +
			"Ctrl-C, SIGTERM or `roost server stop` end it: nothing more is started, runs that work are finished\n" +
			"for as long as --drain-timeout and interrupted then, saved; queued and waiting ones are taken up by the\n" +
			"next server. A second signal ends it at once, which loses nothing that was acknowledged either.\n" +
			"A root has one server at a time; `roost server status` shows it.",
		Example: "  roost serve\n  roost serve --listen 127.0.0.1:0 --json\n  roost serve --max-runs 4 --auto-resume\n" +
			"  curl -N -H \"Authorization: Bearer $(cat ROOT/server/token)\" 'http://127.0.0.1:7878/v1/tasks/ID/events?after=0'",
		Args: failure.Arguments(0, 0, "roost serve"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:7878", "`address` and port; port 0 is any that is free")
	fl.StringArrayVar(&f.hosts, "host", nil, "a `name` that the server is reached by, beside localhost and its address")
	fl.StringVar(&f.cert, "tls-cert", "", "`file` with the certificate chain (PEM)")
	fl.StringVar(&f.key, "tls-key", "", "`file` with the certificate's key (PEM)")
	fl.BoolVar(&f.trust, "trust-root", false, "first trust the root with its present content, as roost root trust does: for containers")
	fl.BoolVar(&f.fresh, "new-token", false, "make a new token: the old token and all log-ins become invalid")
	f.work.add(cmd)
	for _, name := range []string{"listen", "host"} {
		app.Complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

// serve answers until a signal or a request ends it.
func (a *commands) serve(cmd *cobra.Command, f serveFlags) error {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return failure.Usage("roost serve --listen "+f.listen, "want an address and a port", "roost serve --listen 127.0.0.1:7878")
	}
	config, leaf, err := f.secure(host)
	if err != nil {
		return err
	}
	if err := a.settle(cmd); err != nil {
		return err
	}
	if err := f.work.check(); err != nil {
		return err
	}
	s, err := a.Open()
	if err != nil {
		return err
	}
	stop := a.StopperWith(cmd.Context(), a.draining)
	defer stop.Undo()
	// Before the token: where nothing can be served, nothing is made.
	l, err := a.listen(cmd.Context(), s.Root(), f.listen)
	if err != nil {
		return err
	}
	if bound, _, err := net.SplitHostPort(l.Addr().String()); config == nil && (err != nil || !app.Loopback(bound)) {
		return errors.Join(f.open(), l.Close()) // localhost is another machine's address here
	}
	claim, err := s.Claim()
	if err != nil {
		return errors.Join(serverRuns(err), l.Close())
	}
	err = a.serveOn(cmd.Context(), serving{stop: stop, roost: s, listener: l, claim: claim, tls: config, cert: leaf, host: host, flags: f})
	if err = errors.Join(err, claim.Release()); err != nil {
		return err
	}
	if code := stop.Exit(); code != 0 {
		return &failure.Failure{
			Exit: code,
			Code: "stopped",
			What: "the server was stopped",
			Why:  "a signal stopped it; nothing is lost",
			Try:  "roost serve",
		}
	}
	return nil
}

// listen takes the address.
func (a *commands) listen(ctx context.Context, root, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		if p, there := presence.Find(root); there == nil {
			return nil, serverRuns(&presence.TakenError{By: p})
		}
		return nil, &failure.Failure{Exit: failure.ExitBusy, Code: "address_in_use", Status: 409, What: "listen on " + address,
			Why: "another program listens there, maybe another roost serve",
			Try: "roost serve --listen 127.0.0.1:0  # any free port"}
	case err != nil:
		return nil, &failure.Failure{
			Exit: failure.ExitConfig,
			Code: "configuration",
			What: "listen on " + address,
			Why:  err.Error(),
			Try:  "roost serve --listen 127.0.0.1:7878",
		}
	}
	return l, nil
}

// serverRuns turns the error that a root already has a server into a Failure. Other errors stay.
func serverRuns(err error) error {
	var taken *presence.TakenError
	if !errors.As(err, &taken) {
		return err
	}
	return &failure.Failure{
		Exit:   failure.ExitBusy,
		Code:   "server_running",
		Status: 409,
		What:   "start the server",
		Why:    taken.Error(),
		Try:    "roost server status  # roost server stop ends it",
	}
}

// secure reads the certificate, and refuses settings that would send the token
// unencrypted.
func (f serveFlags) secure(host string) (*tls.Config, *x509.Certificate, error) {
	if (f.cert == "") != (f.key == "") {
		return nil, nil, failure.Usage("roost serve", "a certificate needs its key, and a key its certificate",
			"roost serve --tls-cert FILE --tls-key FILE")
	}
	if f.cert == "" {
		if !app.Loopback(host) {
			return nil, nil, f.open()
		}
		return nil, nil, nil
	}
	pair, err := f.pair()
	if err != nil {
		return nil, nil, &failure.Failure{
			Exit: failure.ExitConfig,
			Code: "configuration",
			What: "use the certificate " + f.cert,
			Why:  err.Error(),
			Try:  "roost serve --tls-cert FILE --tls-key FILE",
		}
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, pair.Leaf, nil
}

func (f serveFlags) pair() (tls.Certificate, error) {
	cert, err := inputfile.Read(f.cert)
	key, kerr := inputfile.Read(f.key)
	if err = errors.Join(err, kerr); err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// open is the refusal to serve in the clear where others are.
func (f serveFlags) open() *failure.Failure {
	return &failure.Failure{Exit: failure.ExitConfig, Code: "tls_needed", What: "listen on " + f.listen,
		Why: "other machines can reach this address, and without TLS anyone in between could read the token and all tasks",
		Try: "roost serve --listen " + f.listen + " --tls-cert FILE --tls-key FILE  # or listen on 127.0.0.1 and " +
			"come by ssh -L 7878:127.0.0.1:7878"}
}

// address is the URL by which a server is reached.
func address(addr, host string, secure bool) (string, error) {
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("find the server's address: %w", err)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost" // all addresses of this machine
	}
	return scheme + net.JoinHostPort(host, port), nil
}

// greet prints where the server is.
func (a *commands) greet(url, token string, srv *server.Server) error {
	if a.Flags.JSON {
		return app.Encode(a.Out, struct {
			URL   string `json:"url"`
			Token string `json:"token"`
			Login string `json:"login_url"`
		}{url, token, url + srv.LoginPath()}, false)
	}
	if err := a.Println("serving " + url + "\nlog in, once: " + url + srv.LoginPath()); err != nil {
		return err
	}
	a.Say("programs find the token in server/token below the root; Ctrl-C ends the server")
	return nil
}
