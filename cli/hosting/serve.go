package hosting

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/server"
	"github.com/roost-dev/roost/server/metrics"
	"github.com/roost-dev/roost/server/presence"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/web"
)

// serveFlags are the flags of serve. The way in which a server works on tasks has settings, too.
type serveFlags struct {
	listen, cert, key string
	shared            sharedFlags
	lan               string // the address for devices of the local network; "" = they are not served
	hosts, origins    []string
	fresh, trust      bool
	host              string            // of listen
	tls               *tls.Config       // of cert and key; nil without them
	leaf              *x509.Certificate // its certificate
	pin               string            // SHA-256 of leaf, in hexadecimal; "" = none

	maxRuns, attempts int
	resume            bool
	hold, drain       time.Duration
}

func (a *commands) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := help.Command("serve", func(cmd *cobra.Command, _ []string) error { return a.serve(cmd, &f) })
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:7878", "`address` and port; port 0 is any that is free")
	fl.StringArrayVar(&f.hosts, "host", nil, "a `name` that the server is reached by, beside localhost and its address")
	fl.StringVar(&f.cert, "tls-cert", "", "`file` with the certificate chain (PEM)")
	fl.StringVar(&f.key, "tls-key", "", "`file` with the certificate's key (PEM)")
	fl.StringVar(&f.lan, "lan", "", "serve the local network, too, by TLS with an authority of its own; `address` and port")
	fl.Lookup("lan").NoOptDefVal = usualLAN
	fl.BoolVar(&f.trust, "trust-root", false, "first trust the root with its present content, as roost root trust does: for containers")
	fl.BoolVar(&f.fresh, "new-token", false, "make a new token: the old token and all log-ins become invalid")
	fl.IntVar(&f.maxRuns, "max-runs", 8, "how many runs work at a time")
	fl.DurationVar(&f.hold, "hold", 10*time.Minute,
		"how long a run waits for a person before it ends as waiting; 0: until it gets an answer")
	fl.DurationVar(&f.drain, "drain-timeout", 30*time.Second, "how long runs are finished before the server ends")
	fl.BoolVar(&f.resume, "auto-resume", false, "continue runs that were interrupted when an earlier server was killed")
	fl.IntVar(&f.attempts, "resume-attempts", 3, "how often in a row the server continues one task by itself")
	f.shared.define(fl)
	fl.StringArrayVar(&f.origins, "cors-origin", nil,
		"an `ORIGIN` whose web pages may ask with the token, exactly as browsers send it (again for more)")
	return cmd
}

// serve answers requests until a signal or a request ends it.
func (a *commands) serve(cmd *cobra.Command, f *serveFlags) error {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return failure.Usage("roost serve --listen "+f.listen, "want an address and a port", "roost serve --listen 127.0.0.1:7878")
	}
	f.host = host
	if err := f.secure(); err != nil {
		return err
	}
	if err := a.settle(cmd); err != nil { // sets fields of f
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	s, closing, err := a.openServed(cmd.Context(), f)
	if err != nil {
		return err
	}
	defer closing()
	stop := a.StopperWith(cmd.Context(), func() {
		a.OnSignal("stopping: runs that work are finished for a while, then interrupted and saved; once more ends it at once")
	})
	defer stop.Undo()
	// Before the token: a server that cannot listen makes no token.
	l, err := a.listen(cmd.Context(), s.Root(), f.listen)
	if err != nil {
		return err
	}
	if bound, _, err := net.SplitHostPort(l.Addr().String()); f.tls == nil && (err != nil || !server.Loopback(bound)) {
		return errors.Join(f.open(), l.Close()) // the name localhost resolves to another address here
	}
	claim, err := s.Claim()
	if err != nil {
		return errors.Join(serverRuns(err), l.Close())
	}
	err = a.serveOn(cmd.Context(), stop, s, l, claim, f)
	if err = errors.Join(err, claim.Release()); err != nil {
		return err
	}
	if code := stop.Exit(); code != 0 {
		return failure.New(code, "stopped", "the server was stopped", "a signal stopped it; nothing is lost",
			"roost serve")
	}
	return nil
}

// listen listens at the address.
func (a *commands) listen(ctx context.Context, root, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		if p, there := presence.Find(root); there == nil {
			return nil, serverRuns(&presence.TakenError{By: p})
		}
		return nil, failure.New(failure.ExitBusy, "address_in_use", "listen on "+address,
			"another program listens there, maybe another roost serve",
			"roost serve --listen 127.0.0.1:0  # any free port")
	case err != nil:
		return nil, failure.Config("listen on "+address, err.Error(),
			"roost serve --listen 127.0.0.1:7878")
	}
	return l, nil
}

// serverRuns turns the error for a root that already has a server into a Failure. It returns other errors unchanged.
func serverRuns(err error) error {
	var taken *presence.TakenError
	if !errors.As(err, &taken) {
		return err
	}
	return failure.New(failure.ExitBusy, "server_running", "start the server", taken.Error(),
		"roost server status  # roost server stop ends it")
}

// secure reads the certificate, and refuses settings that would send the token unencrypted.
func (f *serveFlags) secure() error {
	switch {
	case (f.cert == "") != (f.key == ""):
		return failure.Usage("roost serve", "a certificate needs its key, and a key its certificate",
			"roost serve --tls-cert FILE --tls-key FILE")
	case f.cert == "" && server.Loopback(f.host):
		return nil
	case f.cert == "":
		return f.open()
	}
	cert, err := inputfile.Read(f.cert)
	key, kerr := inputfile.Read(f.key)
	var pair tls.Certificate
	if err = errors.Join(err, kerr); err == nil {
		pair, err = tls.X509KeyPair(cert, key)
	}
	if err != nil {
		return failure.Config("use the certificate "+f.cert,
			err.Error(), "roost serve --tls-cert FILE --tls-key FILE")
	}
	f.tls, f.leaf = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, pair.Leaf
	f.pin = fmt.Sprintf("%x", sha256.Sum256(pair.Leaf.Raw))
	return nil
}

// open returns the failure for serving without TLS at an address that other machines can reach.
func (f serveFlags) open() *failure.Failure {
	return failure.New(failure.ExitConfig, "tls_needed", "listen on "+f.listen,
		"other machines can reach this address, and without TLS anyone in between could read the token and all tasks",
		"roost serve --listen "+f.listen+" --tls-cert FILE --tls-key FILE  # or listen on 127.0.0.1 and "+
			"come by ssh -L 7878:127.0.0.1:7878")
}

// address returns the URL by which a server is reached.
func address(addr, host string, secure bool) (string, error) {
	scheme := map[bool]string{false: "http://", true: "https://"}[secure]
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("find the server's address: %w", err)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost" // all addresses of this machine
	}
	return scheme + net.JoinHostPort(host, port), nil
}

// greet prints the address of the server.
func (a *commands) greet(ctx context.Context, url, token string, srv *server.Server, at *server.LAN) error {
	path, err := srv.LoginPath(ctx)
	if err != nil {
		return err
	}
	out := struct {
		URL         string   `json:"url"`
		Token       string   `json:"token"`
		Login       string   `json:"login_url"`
		LAN         *api.LAN `json:"lan,omitempty"`
		LANLoginURL string   `json:"lan_login_url,omitempty"`
	}{URL: url, Token: token, Login: url + path}
	if at != nil {
		other, err := srv.LoginPath(ctx) // each device needs a link of its own
		if err != nil {
			return err
		}
		out.LAN, out.LANLoginURL = &at.LAN, at.URL+other
	}
	if a.Flags.JSON {
		return a.PrintJSON(out)
	}
	if at != nil {
		if err := a.showLAN(at.LAN, out.LANLoginURL); err != nil {
			return err
		}
	}
	err = a.Println("serving " + url + "\nlog in, once: " + url + path)
	a.Say("programs find the token in server/token below the root; Ctrl-C ends the server")
	return err
}

// serveOn runs the server until it is stopped. The end has this order: no new run starts and the runs finish, while the
// server still answers all requests; followers get the end of their streams; the engine closes.
func (a *commands) serveOn(ctx context.Context, stop *app.Stopper, s *local.Roost, l net.Listener,
	claim *presence.Claim, f *serveFlags) error {
	c, err := a.EngineConfig()
	if err == nil && f.trust {
		all := s.Service()
		_, err = all.TrustRoot(ctx, false)
		all.Close()
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	token, notice, err := s.Token(f.fresh)
	if err != nil {
		return errors.Join(failure.Config("get the server's token", err.Error(),
			"roost serve --new-token"), l.Close())
	}
	if notice != "" {
		a.Warn(notice)
	}
	url, err := address(l.Addr().String(), f.host, f.tls != nil)
	restart, other := a.restarts()
	if err = errors.Join(err, other); err != nil {
		return errors.Join(err, l.Close())
	}
	log := a.log(token, c)
	if err := s.Share(f.shared.folders, f.shared.clones); err != nil {
		return errors.Join(failure.Config("start the server", err.Error(),
			"roost serve --workspace NAME=DIR --clone DIR --clone-from https://git.example.org/team/"), l.Close())
	}
	outer, err := a.openLAN(ctx, f, s.Root(), token)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	page, fingerprint := url, "" // the page for notifications, which arrive on other devices; the certificate's authority
	if outer != nil {
		page, fingerprint = outer.URL, outer.Fingerprint
	}
	logins := s.Devices(token)
	watch := metrics.NewWatch(log)
	e := s.Start(engine.Options{
		Config:   c,
		MaxRuns:  f.maxRuns,
		Hold:     cmp.Or(f.hold, -1),
		Confined: true,
		Observe:  watch.Observe,
		Page:     page,
		NotifyFailed: func(why string) {
			log.Warn("a notification failed", "error", why)
		},
	}, false)
	asked, ask := context.WithCancel(stop.Ctx) // cancelled when the server should stop
	defer ask()
	now, hurry := context.WithCancel(context.Background()) // cancelled when runs should not be finished
	defer hurry()
	recovery := new(server.Recovery)
	group, err := s.Group()
	if err != nil {
		return errors.Join(err, l.Close(), s.Close(ctx))
	}
	reached := cmp.Or(f.shared.peers, url)
	if group != nil {
		s.ReachedAt(reached)
	}
	if err := s.Announce(ctx, reached); err != nil {
		return errors.Join(err, l.Close(), s.Close(ctx))
	}
	place := a.Place()
	all := s.ServiceWith(service.Options{
		Place:   &place,
		Log:     log,
		Secrets: c.KnownKeys(),
		Restart: restart,
	})
	srv, err := server.New(server.Options{
		Service: all,
		Pages: web.New(web.Options{
			Reader:  all,
			Version: api.ProgramVersion().Version,
			Now:     a.Now,
			Devices: logins.List,
			Trust:   fingerprint,
		}),
		Group:    group,
		LAN:      outer,
		Devices:  logins,
		Accounts: s.Accounts(),
		Requests: s.Requests(all),
		Token:    token,
		Hosts:    append([]string{f.host}, f.hosts...),
		TLS:      f.tls,
		Cert:     f.leaf,
		Log:      log,
		Now:      a.Now,
		Version:  api.ProgramVersion(),
		URL:      url,
		Watch:    watch,
		Recovery: recovery,
		Origins:  f.origins,
		Stop: func(atOnce bool) {
			if atOnce {
				hurry()
			}
			ask()
		},
		Limits: api.Bounds{MaxRuns: f.maxRuns, Hold: f.hold.String(), DrainTimeout: f.drain.String()},
	})
	if err != nil {
		return errors.Join(err, l.Close(), s.Close(ctx))
	}
	answering, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(answering, l) }()
	var background sync.WaitGroup
	recovering, giveUp := context.WithCancel(answering)
	background.Go(func() {
		first := func() { takeUp(recovering, e, f, recovery, log) }
		if group == nil {
			first()
			return
		}
		takeOver(recovering, s, reached, f, log, first)
	})
	if group != nil {
		background.Go(func() { checkReached(recovering, srv, reached, log) })
	}

	here := presence.Server{URL: url, PID: os.Getpid(), StartedAt: api.Stamp(a.Millis()), Version: api.ProgramVersion().Version, Cert: f.pin}
	if err = claim.Tell(here); err == nil {
		err = a.greet(ctx, url, token, srv, outer)
	}
	log.Info("serving", "url", url, "pid", os.Getpid(), "max_runs", f.maxRuns)
	if len(f.shared.folders) > 0 {
		log.Info("sharing folders", "folders", f.shared.folders)
	}
	if c := f.shared.clones; c.Dir != "" {
		log.Info("cloning workspaces", "into", c.Dir, "from", c.From)
	}
	ended := false
	if err == nil {
		select {
		case <-asked.Done():
		case err = <-served:
			ended = true
		}
	}
	srv.Leave()
	giveUp()
	background.Wait()
	running, waiting, queued := e.Load()
	log.Info("stopping", "running", running, "waiting", waiting, "queued", queued)
	finishing, over := context.WithTimeout(context.WithoutCancel(ctx), f.drain)
	defer context.AfterFunc(now, over)()
	err = errors.Join(err, e.Drain(finishing))
	over()
	hangUp()
	if !ended {
		err = errors.Join(err, <-served)
	}
	err = errors.Join(err, s.Close(ctx))
	log.Info("stopped")
	return err
}

// takeUp continues the tasks that an earlier server left, while this server already answers requests. If it cannot
// continue a task, it still continues the others.
func takeUp(ctx context.Context, e *engine.Engine, f *serveFlags, recovery *server.Recovery, log *slog.Logger) {
	recovery.Set("going_on")
	err := e.Recover(ctx, engine.RecoverOptions{Resume: f.resume, MaxAttempts: f.attempts})
	if err != nil && ctx.Err() == nil {
		recovery.Set("failed")
		log.Warn("not all that an earlier server left was taken up", "error", err.Error())
		return
	}
	recovery.Set("done")
}

func (f *serveFlags) check() error {
	switch {
	case f.maxRuns < 1:
		return failure.Usage("roost serve --max-runs", "at least one run at a time is needed", "roost serve --max-runs 8")
	case f.hold < 0 || f.drain < 0 || f.attempts < 0:
		return failure.Usage("roost serve", "a time or number cannot be negative", "roost serve --hold 10m --drain-timeout 30s")
	}
	for _, origin := range f.origins {
		if !server.ValidOrigin(origin) {
			return failure.Usage("roost serve --cors-origin "+origin,
				"want an origin as browsers send it: scheme and host in small letters, the port unless it is the usual one, no pattern",
				"roost serve --cors-origin https://example.com")
		}
	}
	return f.shared.check()
}

// settle sets the flags of the command that were not given from the settings.
func (a *commands) settle(cmd *cobra.Command) error {
	s, err := a.Settings()
	if err != nil {
		return err
	}
	for _, k := range config.Keys {
		v := s.Values[k.Name]
		if !app.Fills(cmd, k) || cmd.Flags().Changed(k.Flag) || !v.Set() {
			continue
		}
		texts := v.Value.List
		if !v.Value.IsList {
			texts = []string{v.Value.Text}
		}
		for _, text := range texts {
			if err := cmd.Flags().Set(k.Flag, text); err != nil {
				return failure.Config("use the setting "+k.Name,
					v.Origin+": "+err.Error(), "roost config set "+k.Name+" VALUE")
			}
		}
	}
	return nil
}

// log makes the server's log on stderr: runs and changes, with -v every request, with -q problems only; JSON with --json.
// It masks secrets in every field: keys of the environment, the settings and profiles by their values, others by their
// form.
func (a *commands) log(token string, c setup.Config) *slog.Logger {
	masks := redact.New(append(c.KnownKeys(), redact.Known{Kind: "token", Value: token})...)
	o := &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, at slog.Attr) slog.Attr {
		switch at.Value.Kind() {
		case slog.KindString, slog.KindAny:
			if at.Key == slog.LevelKey {
				return at // slog formats the level itself
			}
			text, _ := masks.String(fmt.Sprint(at.Value.Any()))
			at.Value = slog.StringValue(text)
		}
		return at
	}}
	switch {
	case a.Flags.Verbose:
		o.Level = slog.LevelDebug
	case a.Flags.Quiet:
		o.Level = slog.LevelWarn
	}
	if a.Flags.JSON {
		return slog.New(slog.NewJSONHandler(a.Err, o))
	}
	return slog.New(slog.NewTextHandler(a.Err, o))
}

// restarts returns the settings for restarts by a server that this command starts. Reading the settings has checked
// them.
func (a *commands) restarts() (service.Restart, error) {
	s, err := a.Settings()
	if err != nil {
		return service.Restart{}, err
	}
	return service.Restart{
		Off:         s.Text("restart.enabled") == "false",
		OwnOnly:     s.Text("restart.cross_context") == "false",
		MaxAttempts: int(s.Values["restart.max_attempts"].Number()),
		LoadTimeout: time.Duration(s.Values["restart.load_timeout"].Number()) * time.Millisecond,
		Workspace:   a.Dir,
	}, nil
}
