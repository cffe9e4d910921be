package hosting

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/server"
)

// sharedFlags are the flags of a server whose tasks are in a database.
type sharedFlags struct {
	store string // the address of the database; "" = tasks are in folders
	key   string // the file with it
	peers string // the address of this server for the others

	folders []string // folders that other servers have, too, as NAME=DIR
	clones  local.Clones
}

func (f *sharedFlags) define(fl *pflag.FlagSet) {
	fl.StringVar(&f.store, "store", "", "keep tasks in the PostgreSQL database at an `address`, which other servers share")
	fl.StringVar(&f.key, "store-key", "", "`file` with the key of the servers that share the database; the first one makes it")
	fl.StringVar(&f.peers, "peer-url", "", "`address` at which the other servers reach this one")
	fl.StringArrayVar(&f.folders, "workspace", nil,
		"a folder that other servers have too, maybe at another path, as `NAME=DIR`: they take over each other's tasks in it (again for more)")
	fl.StringVar(&f.clones.Dir, "clone", "",
		"`folder` for clones of workspaces that no running server has, so that this one takes over their tasks")
	fl.StringArrayVar(&f.clones.From, "clone-from", nil,
		"how the `address` of a git remote begins that may be cloned, up to a slash: https://git.example.org/team/ (again for more)")
	fl.DurationVar(&f.clones.After, "clone-after", time.Minute,
		"clone only when the server that has the workspace was away for this long, unless a person asks")
}

// openServed opens the tasks to serve. closing must be called at the end.
func (a *commands) openServed(ctx context.Context, f *serveFlags) (s *local.Roost, closing func(), err error) {
	if f.shared.store == "" && len(f.shared.folders) > 0 {
		return nil, nil, failure.Usage("roost serve --workspace "+f.shared.folders[0], "folders are shared by servers that share a database",
			"roost serve --store ADDRESS --workspace NAME=DIR")
	}
	if c := f.shared.clones; f.shared.store == "" && (c.Dir != "" || len(c.From) > 0) {
		return nil, nil, failure.Usage("roost serve --clone "+c.Dir, "workspaces are cloned by servers that share a database",
			"roost serve --store ADDRESS --clone DIR --clone-from https://git.example.org/team/")
	}
	if f.shared.store == "" {
		s, err = a.Open()
		return s, func() {}, err
	}
	if err := database.Migrate(ctx, f.shared.store); err != nil {
		return nil, nil, refuse(err, explain(err))
	}
	return a.openDatabase(ctx, f.shared.store, f.shared.key)
}

// refuse returns the failure of a command that cannot use its database.
func refuse(err error, next string) error {
	return failure.New(failure.ExitConfig, "database", "open the database", err.Error(), next)
}

// openDatabase opens the tasks in a database that has its tables. key is the file with the key of the servers that share
// it; "" = the usual one. closing must be called at the end.
func (a *commands) openDatabase(ctx context.Context, address, key string) (s *local.Roost, closing func(), err error) {
	db, err := database.Open(ctx, address)
	switch {
	case errors.Is(err, database.ErrNoSchema):
		return nil, nil, err
	case err != nil:
		return nil, nil, refuse(err, explain(err))
	case db.MaxConns() < 2: // it would wait for the connection that it holds
		db.Close()
		return nil, nil, refuse(errors.New("a search needs two connections"), "leave pool_max_conns=1 out of the address")
	}
	if key == "" {
		folder, err := a.Home("XDG_STATE_HOME", ".local/state")
		if err != nil {
			db.Close()
			return nil, nil, err
		}
		key = filepath.Join(folder, "group-key.json")
	}
	s, err = a.OpenShared(ctx, local.Shared{
		DB:   db,
		Key:  key,
		Warn: func(err error) { a.Warn(err.Error()) },
	})
	if err != nil {
		db.Close()
		next := "roost serve --root /FOLDER --store ADDRESS --store-key FILE"
		if errors.Is(err, local.ErrKey) {
			next = "chmod 600 " + key + "  # after copying it from a server of the group, if there is one"
		}
		return nil, nil, refuse(err, next)
	}
	return s, db.Close, nil
}

// explain returns advice about a database that cannot be used.
func explain(err error) string {
	switch {
	case errors.Is(err, database.ErrReadOnly):
		return "roost serve --store with the address of the primary, or with those of all: postgres://USER@HOST1,HOST2/NAME"
	case errors.Is(err, database.ErrNotDurable):
		return "set synchronous_commit and fsync to on"
	case errors.Is(err, database.ErrNewerSchema):
		return "roost version  # install the version that the other servers have"
	case errors.Is(err, database.ErrDenied):
		return "psql ADDRESS  # as the same user; set PGPASSWORD, or write ~/.pgpass with mode 0600"
	case errors.Is(err, database.ErrNotCreated):
		return "createdb --owner USER NAME  # on the database's machine"
	case errors.Is(err, database.ErrNotAllowed):
		return "psql -c 'ALTER DATABASE name OWNER TO user'  # as an administrator"
	}
	return "pg_isready -d ADDRESS  # roost serve --store postgres://USER@HOST/NAME"
}

// check refuses a --peer-url that no other server could use.
func (f *sharedFlags) check() error {
	if f.peers == "" {
		return nil
	}
	refuse := func(why string) error {
		return failure.Usage("roost serve --peer-url "+f.peers, why, "roost serve --store ADDRESS --peer-url https://HOST:7878")
	}
	u, err := url.Parse(f.peers)
	switch {
	case f.store == "":
		return refuse("only servers that share a database reach each other; --store is missing")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "":
		return refuse("want the address of this server, for the others: scheme, host and port")
	case u.Scheme == "http" && !server.Loopback(u.Hostname()):
		return refuse("the other servers send the token of the group there, and without TLS anyone in between could read it")
	}
	return nil
}

// How often, and with which pauses, a server tries to reach itself: a new name may not resolve at once.
const (
	reachTries = 8
	reachEvery = 2 * time.Second
)

// checkReached warns when this server does not answer at the address that it announces to the others: then no other server
// can stop its runs or answer their questions.
func checkReached(ctx context.Context, srv *server.Server, address string, log *slog.Logger) {
	for try := 1; ; try++ {
		err := srv.Reached(ctx, address)
		if err == nil || ctx.Err() != nil {
			return
		}
		if try == reachTries {
			log.Warn("the other servers cannot reach this one; set --peer-url to an address that leads here",
				"peer_url", address, "error", err.Error())
			return
		}
		if !sleep.For(ctx, reachEvery) {
			return
		}
	}
}

// takeOverEvery is how often a server looks for tasks whose server has died. A lease of 3 s plus takeOverEvery is the time
// until another server continues them. A server tries the same tasks again every takeOverAgain, because it may have lacked
// their workspaces, and then also looks which servers run.
const (
	takeOverEvery = time.Second
	takeOverAgain = 10 * time.Second
)

// takeover continues the tasks of servers of the group that ended. If several servers try, one gets the lease of a
// task.
type takeover struct {
	s    *local.Roost
	f    *serveFlags
	log  *slog.Logger
	work sync.WaitGroup
	done chan error // the result of the present work; one work runs at a time

	tried, said string
	last        time.Time // of the last attempt, and of the last look at the servers
	looked      time.Time
	servers     map[string]bool // the servers that ran at that look
	cloning     time.Time       // when workspaces of an ended server may be cloned; zero: no server has ended lately
}

// takeOver announces this server and its address until ctx ends. After first has returned, it continues the tasks that
// other servers worked on or had in their queues when they died or ended.
func takeOver(ctx context.Context, s *local.Roost, url string, f *serveFlags, log *slog.Logger, first func()) {
	t := &takeover{s: s, f: f, log: log, done: make(chan error, 1)}
	defer t.work.Wait()
	if _, err := t.ended(ctx); err != nil { // notes which servers run now; first takes up what ended before
		t.report(ctx, err)
	}
	t.work.Go(func() {
		first()
		t.done <- nil
	})
	tick := time.NewTicker(takeOverEvery)
	defer tick.Stop()
	busy := true
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-t.done:
			busy = false
			t.report(ctx, err)
			continue
		case <-tick.C:
		}
		if err := s.Announce(ctx, url); err != nil {
			t.report(ctx, err)
		}
		if busy { // the work may clone for minutes; announcements continue
			continue
		}
		o, err := t.left(ctx)
		switch {
		case err != nil:
			t.report(ctx, err)
		case o != nil:
			busy = true
			t.work.Go(func() { t.done <- s.Engine().Recover(ctx, *o) })
		}
	}
}

// left returns the tasks to continue now; nil = none.
func (t *takeover) left(ctx context.Context) (*engine.RecoverOptions, error) {
	lost, err := t.s.Lost(ctx)
	if err != nil {
		return nil, err
	}
	names := ""
	for _, ref := range lost {
		names += ref.ID + " "
	}
	if again := names == t.tried; len(lost) > 0 && (!again || time.Since(t.last) >= takeOverAgain) {
		if t.tried, t.last = names, time.Now(); !again {
			t.log.Info("taking over", "tasks", len(lost))
		}
		return &engine.RecoverOptions{Resume: true, MaxAttempts: t.f.attempts, Lost: lost}, nil
	}
	t.tried = names
	if time.Since(t.looked) < takeOverAgain {
		return nil, nil
	}
	gone, err := t.ended(ctx)
	switch now := time.Now(); {
	case err != nil:
		return nil, err
	case gone:
		t.log.Info("a server of the group has ended; taking up what it left")
		if clones := t.f.shared.clones; clones.Dir != "" && clones.After > 0 {
			t.cloning = now.Add(clones.After + takeOverAgain) // Recover counts from its first look at a workspace
		}
	case t.cloning.IsZero() || now.Before(t.cloning):
		return nil, nil
	default: // this server lacked the workspaces of some tasks that it left, and may clone them by now
		t.cloning = time.Time{}
	}
	return &engine.RecoverOptions{Resume: t.f.resume, MaxAttempts: t.f.attempts}, nil
}

// ended reports whether a server has ended since the previous call.
func (t *takeover) ended(ctx context.Context) (gone bool, err error) {
	running, err := t.s.Servers(ctx)
	if err != nil {
		return false, err
	}
	t.looked = time.Now()
	now := api.SetOf(api.Each(running, func(g api.GroupServer) string { return g.ID }))
	for id := range t.servers {
		gone = gone || !now[id]
	}
	t.servers = now
	return gone, nil
}

// report logs a problem once, until the problem changes.
func (t *takeover) report(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != t.said && text != "" && ctx.Err() == nil {
		t.log.Warn("not all tasks of servers that ended were taken over", "error", text)
	}
	t.said = text
}
