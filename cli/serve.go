package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/server"
)

type serveFlags struct {
	listen, cert, key string
	hosts             []string
	fresh             bool
}

func (a *App) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the tasks over HTTP, for reading and following",
		Long: "Serve the tasks of all sources over HTTP, for programs and browsers of this machine: lists, tasks,\n" +
			"messages, search, usage, and the events of a task as they come, also of one that runs in another\n" +
			"terminal. The routes are told by GET /openapi.json. This version only reads: starting, answering\n" +
			"and changing tasks is not served yet.\n\n" +
			"Every request needs the token, which lies in server/token below the root and stays the same over\n" +
			"restarts, or the cookie that the log-in link sets, once. Beyond this machine nothing is served\n" +
			"without TLS. With --json the first line is {\"url\",\"token\",\"login_url\"}; without, the token is\n" +
			"never printed. The log goes to stderr, -v tells of every request, and secrets in it are masked.\n\n" +
			"Ctrl-C or SIGTERM ends it: followers are told and can go on after the next start where they were.",
		Example: "  roost serve\n  roost serve --listen 127.0.0.1:0 --json\n" +
			"  curl -N -H \"Authorization: Bearer $(cat ROOT/server/token)\" 'http://127.0.0.1:7878/v1/tasks/ID/events?after=0'",
		Args: count(0, 0, "roost serve"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:7878", "`address` and port; port 0 is any that is free")
	fl.StringArrayVar(&f.hosts, "host", nil, "a `name` that the server is reached by, beside localhost and its address")
	fl.StringVar(&f.cert, "tls-cert", "", "`file` with the certificate chain (PEM)")
	fl.StringVar(&f.key, "tls-key", "", "`file` with the certificate's key (PEM)")
	fl.BoolVar(&f.fresh, "new-token", false, "make a new token: who has the old one, or a log-in, is out")
	for _, name := range []string{"listen", "host"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

// serve answers until a signal ends it.
func (a *App) serve(cmd *cobra.Command, f serveFlags) error {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return usage("roost serve --listen "+f.listen, "want an address and a port", "roost serve --listen 127.0.0.1:7878")
	}
	config, leaf, err := f.secure(host)
	if err != nil {
		return err
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	stop := a.stopper(cmd.Context())
	defer stop.undo()
	// Before the token: where nothing can be served, nothing is made.
	l, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", f.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return &Failure{Exit: ExitBusy, Code: "address_in_use", Status: 409, What: "listen on " + f.listen, Why: "another program listens there, maybe another roost serve",
			Try: "roost serve --listen 127.0.0.1:0  # any free port"}
	}
	if err != nil {
		return &Failure{Exit: ExitConfig, Code: "configuration", What: "listen on " + f.listen, Why: err.Error(), Try: "roost serve --listen 127.0.0.1:7878"}
	}
	if bound, _, err := net.SplitHostPort(l.Addr().String()); config == nil && (err != nil || !loopback(bound)) {
		return errors.Join(f.open(), l.Close()) // localhost is another machine's address here
	}
	token, err := server.Token(s.Root(), f.fresh)
	if err != nil {
		return errors.Join(&Failure{Exit: ExitConfig, Code: "configuration", What: "get the server's token", Why: err.Error(), Try: "roost serve --new-token"}, l.Close())
	}
	srv, err := server.New(server.Options{
		Store: s, Token: token, Hosts: append([]string{host}, f.hosts...), TLS: config, Cert: leaf,
		Log: a.log(token), Now: a.Now, Version: report.VersionOf(Version),
	})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if err := a.greet(l.Addr().String(), host, config != nil, token, srv); err != nil {
		return errors.Join(err, l.Close())
	}
	if err := srv.Serve(stop.ctx, l); err != nil {
		return err
	}
	if code := stop.exit(); code != 0 {
		return &Failure{Exit: code, Code: "stopped", What: "the server was stopped", Why: "a signal asked for it; nothing is lost", Try: "roost serve"}
	}
	return nil
}

// secure reads the certificate, and refuses what would put the token on a wire in the
// clear.
func (f serveFlags) secure(host string) (*tls.Config, *x509.Certificate, error) {
	if (f.cert == "") != (f.key == "") {
		return nil, nil, usage("roost serve", "a certificate needs its key, and a key its certificate", "roost serve --tls-cert FILE --tls-key FILE")
	}
	if f.cert == "" {
		if !loopback(host) {
			return nil, nil, f.open()
		}
		return nil, nil, nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, nil, &Failure{Exit: ExitConfig, Code: "configuration", What: "use the certificate " + f.cert, Why: err.Error(), Try: "roost serve --tls-cert FILE --tls-key FILE"}
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, pair.Leaf, nil
}

// open is the refusal to serve in the clear where others are.
func (f serveFlags) open() *Failure {
	return &Failure{Exit: ExitConfig, Code: "tls_needed", What: "listen on " + f.listen,
		Why: "others could reach it there, and without TLS anybody on the way could read the token and all tasks",
		Try: "roost serve --listen " + f.listen + " --tls-cert FILE --tls-key FILE  # or listen on 127.0.0.1 and come by ssh -L 7878:127.0.0.1:7878"}
}

// loopback reports whether only this machine reaches a host. A name may stand for
// anything; only localhost is known.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// greet prints where the server is.
func (a *App) greet(addr, host string, secure bool, token string, srv *server.Server) error {
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("print the address: %w", err)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost" // all addresses of this machine
	}
	url := scheme + net.JoinHostPort(host, port)
	if a.flags.json {
		return encode(a.Out, struct {
			URL   string `json:"url"`
			Token string `json:"token"`
			Login string `json:"login_url"`
		}{url, token, url + srv.LoginPath()}, false)
	}
	if err := a.println("serving " + url + "\nlog in, once: " + url + srv.LoginPath()); err != nil {
		return err
	}
	a.say("for programs the token lies in server/token below the root; Ctrl-C ends the server")
	return nil
}

// log is the server's log on stderr: its own words with -v only, trouble always, JSON
// with --json. Secrets are masked whatever holds them.
func (a *App) log(token string) *slog.Logger {
	secrets := []redact.Known{{Kind: "token", Value: token}}
	for _, p := range engine.Providers() {
		for _, name := range engine.KeyVariables(p) {
			if v := a.Env(name); v != "" {
				secrets = append(secrets, redact.Known{Value: v})
			}
		}
	}
	masks := redact.New(secrets...)
	o := &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, at slog.Attr) slog.Attr {
		if at.Value.Kind() == slog.KindString {
			text, _ := masks.String(at.Value.String())
			at.Value = slog.StringValue(text)
		}
		return at
	}}
	switch {
	case a.flags.verbose:
		o.Level = slog.LevelDebug
	case a.flags.quiet:
		o.Level = slog.LevelWarn
	}
	if a.flags.json {
		return slog.New(slog.NewJSONHandler(a.Err, o))
	}
	return slog.New(slog.NewTextHandler(a.Err, o))
}
