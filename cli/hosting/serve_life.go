package hosting

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/server"
	"github.com/roost-dev/roost/server/metrics"
	"github.com/roost-dev/roost/server/presence"
	"github.com/roost-dev/roost/service"
)

// serving holds the parts of a server that runs.
type serving struct {
	stop     *app.Stopper
	roost    *local.Roost
	listener net.Listener
	claim    *presence.Claim
	tls      *tls.Config
	cert     *x509.Certificate
	host     string
	flags    serveFlags
}

// serveOn runs the server. It ends in this order: no run starts any more and the runs
// finish, while all requests are still answered; followers get the end; the engine closes.
func (a *commands) serveOn(ctx context.Context, v serving) error {
	c, err := a.EngineConfig()
	if err != nil {
		return errors.Join(err, v.listener.Close())
	}
	if v.flags.trust {
		all := v.roost.Service()
		_, err := all.TrustRoot(ctx, false)
		if all.Close(); err != nil {
			return errors.Join(err, v.listener.Close())
		}
	}
	token, notice, err := v.roost.Token(v.flags.fresh)
	if err != nil {
		return errors.Join(&failure.Failure{
			Exit: failure.ExitConfig,
			Code: "configuration",
			What: "get the server's token",
			Why:  err.Error(),
			Try:  "roost serve --new-token",
		}, v.listener.Close())
	}
	if notice != "" {
		a.Warn(notice)
	}
	url, err := address(v.listener.Addr().String(), v.host, v.tls != nil)
	if err != nil {
		return errors.Join(err, v.listener.Close())
	}
	restart, err := a.restarts()
	if err != nil {
		return errors.Join(err, v.listener.Close())
	}
	work := v.flags.work
	log := a.log(token, c)
	watch := metrics.NewWatch(log)
	hold := work.hold
	if hold == 0 {
		hold = -1
	}
	e := v.roost.Start(engine.Options{
		Config:   c,
		MaxRuns:  work.maxRuns,
		Hold:     hold,
		Confined: true,
		Observe:  watch.Observe,
	}, false)
	asked := newServeEnd(v.stop.Ctx)
	defer asked.stop()
	recovery := new(server.Recovery)
	srv, err := server.New(server.Options{
		Service: v.roost.ServiceWith(service.Options{
			Log:     log,
			Secrets: app.SecretsOf(c),
			Restart: restart,
		}),
		Token:    token,
		Hosts:    append([]string{v.host}, v.flags.hosts...),
		TLS:      v.tls,
		Cert:     v.cert,
		Log:      log,
		Now:      a.Now,
		Version:  api.VersionOf(app.Version),
		URL:      url,
		Watch:    watch,
		Recovery: recovery,
		Origins:  work.origins,
		Stop:     asked.take,
		Limits:   api.Bounds{MaxRuns: work.maxRuns, Hold: work.hold.String(), DrainTimeout: work.drain.String()},
	})
	closed := func(err error) error {
		return errors.Join(err, v.roost.Close(ctx))
	}
	if err != nil {
		return closed(errors.Join(err, v.listener.Close()))
	}
	answering, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(answering, v.listener) }()
	var background sync.WaitGroup
	recovering, giveUp := context.WithCancel(answering)
	bounded, unbind := context.WithCancel(context.WithoutCancel(ctx))
	var memory sync.WaitGroup
	memory.Go(func() { boundMemory(bounded) })
	background.Go(func() { takeUp(recovering, e, work, recovery, log) })

	err = v.claim.Tell(presence.Server{
		URL:       url,
		PID:       os.Getpid(),
		StartedAt: api.Stamp(a.Millis()),
		Version:   api.VersionOf(app.Version).Version,
	})
	if err == nil {
		err = a.greet(url, token, srv)
	}
	log.Info("serving", "url", url, "pid", os.Getpid(), "max_runs", work.maxRuns)
	ended := false
	if err == nil {
		select {
		case <-asked.ctx.Done():
		case err = <-served:
			ended = true
		}
	}
	srv.Leave()
	giveUp()
	background.Wait()
	running, waiting, queued := e.Load()
	log.Info("stopping", "running", running, "waiting", waiting, "queued", queued)
	finishing, over := context.WithTimeout(context.WithoutCancel(ctx), work.drain)
	go func() {
		select {
		case <-asked.now:
			over()
		case <-finishing.Done():
		}
	}()
	err = errors.Join(err, e.Drain(finishing))
	over()
	hangUp()
	if !ended {
		err = errors.Join(err, <-served)
	}
	err = closed(err)
	unbind()
	memory.Wait()
	log.Info("stopped")
	return err
}

// serveEnd is how a request, other than a signal, ends a server.
type serveEnd struct {
	ctx  context.Context //nolint:containedctx // ends when the server is to end
	stop context.CancelFunc
	once sync.Once
	now  chan struct{} // closed when runs are not to be finished
}

func newServeEnd(ctx context.Context) *serveEnd {
	e := &serveEnd{now: make(chan struct{})}
	e.ctx, e.stop = context.WithCancel(ctx)
	return e
}

func (e *serveEnd) take(now bool) {
	if now {
		e.once.Do(func() { close(e.now) })
	}
	e.stop()
}

// takeUp takes up what an earlier server left. It works while requests are already
// answered; a task that it cannot take up keeps no other from being taken up.
func takeUp(ctx context.Context, e *engine.Engine, work workFlags, recovery *server.Recovery, log *slog.Logger) {
	recovery.Set("going_on")
	err := e.Recover(ctx, engine.RecoverOptions{Resume: work.resume, MaxAttempts: work.attempts})
	if err != nil && ctx.Err() == nil {
		recovery.Set("failed")
		log.Warn("not all that an earlier server left was taken up", "error", err.Error())
		return
	}
	recovery.Set("done")
}
