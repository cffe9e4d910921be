// Package local is Roost inside a Go program: it assembles the store, the engine, the service and the server of one
// process, and returns the client through which the program works. The command line is such a program, too.
//
// Open creates nothing on the disk; the first task creates the root. Several processes may open the same root at once:
// one process works on a task at a time, and the others reach that process through its socket.
//
// A Roost without an engine only reads. Start adds the engine, and Close ends what Start and Client began.
package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	catalog "github.com/roost-dev/roost/catalog/postgres"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/client"
	content "github.com/roost-dev/roost/content/postgres"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/database/lease"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/migrate"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/server"
	"github.com/roost-dev/roost/server/devices"
	"github.com/roost-dev/roost/server/idempotency"
	"github.com/roost-dev/roost/server/peer"
	"github.com/roost-dev/roost/server/presence"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/rootkey"
	"github.com/roost-dev/roost/view"
	"github.com/roost-dev/roost/workspace/reach"
)

// Options name the folders of the tasks, and describe this process to others.
type Options struct {
	Root        string              // Roost's own root; absolute
	Cache       string              // derived data; "" = the folder cache in the root
	State       string              // the folder of the root's keys; "" = keys live as long as the process
	Sources     []string            // other tools' storages, absolute
	AutoSources bool                // also use the storages found on this machine
	Env         func(string) string // nil: a process without environment
	Now         func() time.Time    // nil: time.Now
	Version     api.Version         // of the program
}

// ErrKey: a server cannot use the file that holds the key of its group.
var ErrKey = errors.New("the key of the group cannot be used")

// Shared describes the database of a group of servers.
type Shared struct {
	DB   *database.DB
	Key  string      // the file that holds the key of the group; the first server makes it
	Warn func(error) // gets errors that do not stop the work
}

// Roost holds the tasks of one root and the parts of this process that work on them. It is safe for concurrent use,
// except for Start and Close.
type Roost struct {
	opt    Options
	store  *store.Store
	engine *engine.Engine // nil before Start
	socket *server.Socket

	journals *postgres.Journals // in a database; nil: tasks are in folders
	contents *content.Stores
	requests *idempotency.Shared // nil before Requests
	accounts *accounts.Accounts
	keys     *rootkey.Ring
	reach    *reach.Server // nil before Share
	announce *lease.Lease
}

// Open checks the options and opens the tasks for reading.
func Open(o Options) (*Roost, error) { return open(context.Background(), o, nil) }

// OpenShared is Open for tasks in a database. The root then holds only this server's own files.
func OpenShared(ctx context.Context, o Options, shared Shared) (*Roost, error) {
	return open(ctx, o, &shared)
}

func open(ctx context.Context, o Options, shared *Shared) (*Roost, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	if o.Cache == "" && o.Root != "" {
		o.Cache = filepath.Join(o.Root, "cache")
	}
	r := &Roost{opt: o}
	var rows store.Catalog // nil: this process keeps the catalogue in a file
	var err error
	if shared != nil {
		if r.keys, err = rootkey.Join(ctx, shared.DB, shared.Key); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKey, err)
		}
		r.journals = postgres.Open(ctx, shared.DB, postgres.Options{
			Owner: journal.OwnerInfo{Program: "roost serve"},
			Warn:  shared.Warn,
		})
		r.contents = content.New(shared.DB, content.Options{})
		r.accounts = accounts.New(shared.DB)
		r.announce = lease.New(shared.DB, announceFor)
		rows = catalog.Open(shared.DB)
	}
	r.store, err = store.Open(store.Options{
		Root:        o.Root,
		Cache:       o.Cache,
		State:       o.State,
		Sources:     o.Sources,
		AutoSources: o.AutoSources,
		Now:         r.millis,
		Rows:        view.UIFromAPI,
		Shared:      r.journals,
		Keys:        r.keys,
		Catalog:     rows,
	})
	if err != nil {
		return nil, errors.Join(err, r.closeShared(ctx))
	}
	return r, nil
}

// sharedContents are the checkpoint contents of the tasks of all servers.
type sharedContents struct {
	*content.Stores
	store *store.Store
}

func (c sharedContents) Tasks(ctx context.Context) ([]store.Ref, error) { return c.store.Every(ctx) }

// closeShared ends the work on the database; the caller closes the connections.
func (r *Roost) closeShared(ctx context.Context) error {
	if r.journals == nil {
		return nil
	}
	r.journals.Close()
	r.accounts.Close()
	err := errors.Join(r.contents.Close(ctx), r.announce.Close(ctx))
	if r.requests != nil {
		err = errors.Join(err, r.requests.Close(ctx))
	}
	return err
}

// Group returns the token by which the servers that share a database recognize each other; nil without a database.
func (r *Roost) Group() (*server.Group, error) {
	if r.keys == nil {
		return nil, nil
	}
	token, err := r.keys.Token(rootkey.ForServers)
	return &server.Group{Token: token}, err
}

// ReachedAt sets the address at which the other servers of the group reach this one, instead of a socket.
func (r *Roost) ReachedAt(url string) { r.store.ReachedAt(func() string { return url }) }

// announceFor is the time for which a killed server still counts as running.
const announceFor = 10 * time.Second

// Clones configures the source and the folder from and into which a server clones workspaces that no server of the
// group has.
type Clones = reach.Cloning

// Share sets the folders that this server of a group shares with others, as NAME=DIR, and how it clones workspaces. Call
// Share before Start, in the process that is the server of its root. Without a database Share does nothing.
func (r *Roost) Share(folders []string, clones Clones) error {
	if r.journals == nil {
		return nil
	}
	id, err := rootkey.ServerID(r.opt.State, r.Root())
	if err != nil {
		return fmt.Errorf("name this server: %w", err)
	}
	if below, bad := filepath.Rel(r.Root(), clones.Dir); clones.Dir != "" && bad == nil && filepath.IsLocal(below) {
		return fmt.Errorf("clone workspaces into %s: the folder lies in the root, which no run may work in", clones.Dir)
	}
	r.reach, err = reach.New(id, reach.Options{Shared: folders, Clones: clones, Running: r.Servers})
	return err
}

// Announce publishes the address and the shared folders of this server to the others of the group. An announcement is valid
// for announceFor; repeat it as long as the server runs.
func (r *Roost) Announce(ctx context.Context, url string) error {
	if r.journals == nil {
		return nil
	}
	host, _ := os.Hostname() // without it the list is shorter
	document, err := json.Marshal(api.GroupServer{
		ID:         r.reach.ID(),
		URL:        url,
		Host:       host,
		Folders:    r.reach.Folders(),
		ClonesFrom: r.reach.ClonesFrom(),
	})
	if err != nil {
		return err
	}
	return r.announce.Announce(ctx, document)
}

// Servers returns the running servers of the group; none without a database.
func (r *Roost) Servers(ctx context.Context) (list []api.GroupServer, err error) {
	if r.journals == nil {
		return nil, nil
	}
	documents, err := lease.Announced(ctx, r.journals.DB())
	for _, document := range documents {
		var s api.GroupServer
		if json.Unmarshal(document, &s) == nil { // a newer server may write it otherwise
			list = append(list, s)
		}
	}
	return list, err
}

// Devices returns the browsers that are logged in with a token: to this server, or to all that share its database.
func (r *Roost) Devices(token string) *devices.Devices {
	if r.journals == nil {
		return devices.New(r.Root(), token, r.opt.Now)
	}
	return devices.InDatabase(r.journals.DB(), token, r.opt.Now)
}

// Requests returns the requests with idempotency keys of all servers that share the database; nil without one.
func (r *Roost) Requests(s *service.Service) *idempotency.Requests {
	if r.journals == nil {
		return nil
	}
	if r.requests == nil {
		r.requests = idempotency.NewShared(r.journals.DB(), func() idempotency.Seal { return s.IdempotencySeal() })
	}
	return &r.requests.Requests
}

// Accounts returns the accounts of the people who use the servers of the database; nil without one.
func (r *Roost) Accounts() *accounts.Accounts { return r.accounts }

// Lost returns the tasks of a database whose server has died.
func (r *Roost) Lost(ctx context.Context) ([]store.Ref, error) { return r.store.Lost(ctx) }

func (r *Roost) millis() int64 { return r.opt.Now().UnixMilli() }

// Root returns the folder of Roost's own tasks.
func (r *Roost) Root() string { return r.store.Root() }

// Once returns true at the first call with a name in a root, and records it: for offers that are made once per root.
func (r *Roost) Once(name string) bool { return r.store.Once(name) }

// Engine returns the engine that runs tasks in this process; nil before Start.
func (r *Roost) Engine() *engine.Engine { return r.engine }

// Start starts the engine. With the engine's first task it also opens a socket, through which other processes answer,
// send and cancel. brief: the process ends with its tasks, and begins no others. Close ends both.
func (r *Roost) Start(o engine.Options, brief bool) *engine.Engine {
	o.Now = r.millis
	if r.contents != nil {
		o.Contents, o.Reach = sharedContents{r.contents, r.store}, r.reach
	}
	r.engine = engine.New(r.store, o)
	r.socket = server.NewSocket(r.opt.Env, func() (*server.Server, error) {
		if peer.Known {
			return r.server(server.SocketToken(), brief, nil)
		}
		token, _, err := server.OwnToken(r.store, false)
		if err != nil {
			return nil, err
		}
		return r.server(token, brief, nil)
	})
	r.store.ReachedAt(r.socket.Address)
	return r.engine
}

// Close saves and ends the runs of the engine, and closes the socket.
func (r *Roost) Close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if r.engine == nil {
		return r.closeShared(ctx)
	}
	return errors.Join(r.engine.Close(ctx), r.socket.Close(), r.closeShared(ctx))
}

// unbounded is for restarts that users request: only a server obeys the settings for restarts.
var unbounded = service.Restart{MaxAttempts: -1}

// Service makes the service of this process. Before Start it only reads.
func (r *Roost) Service(secrets ...redact.Known) *service.Service {
	return r.ServiceWith(service.Options{Restart: unbounded, Secrets: secrets})
}

// ServiceWith is Service with other options.
func (r *Roost) ServiceWith(o service.Options) *service.Service {
	o.Now, o.Temp, o.Servers = r.opt.Now, r.opt.Env("TMPDIR"), r.Servers
	if r.journals != nil {
		o.Database = r.journals.DB().Ping
	}
	return service.New(r.store, r.engine, o)
}

func (r *Roost) server(token string, guest bool, secrets []redact.Known) (*server.Server, error) {
	return server.New(server.Options{
		Service: r.Service(secrets...),
		Token:   token,
		Guest:   guest,
		Now:     r.opt.Now,
		Version: r.opt.Version,
	})
}

// Client returns a client of a server in this process; the caller must call end. Exports mask the secrets.
func (r *Roost) Client(secrets ...redact.Known) (c *client.Client, end func(), err error) {
	token := server.SocketToken()
	srv, err := r.server(token, false, secrets)
	if err != nil {
		return nil, nil, err
	}
	return client.Local(srv.Handler(), token), srv.End, nil
}

// Token returns the token of the root for a server, a new one if fresh is set. notice reports that a token had to be
// replaced.
func (r *Roost) Token(fresh bool) (token, notice string, err error) {
	if r.keys != nil {
		if fresh {
			return "", "", errors.New("the token of servers that share a database follows from their key: give all of them another key")
		}
		if token, err = r.keys.Token(rootkey.ForClients); err == nil {
			err = server.KeepToken(r.Root(), token)
		}
		return token, "", err
	}
	return server.OwnToken(r.store, fresh)
}

// Claim makes this process the server of the root. *presence.TakenError: another process is the server.
func (r *Roost) Claim() (*presence.Claim, error) {
	err := filelog.Trusted(r.Root())
	if err == nil {
		err = r.store.Prepare()
	}
	if err != nil {
		return nil, fmt.Errorf("become the server of %s: %w", r.Root(), err)
	}
	return presence.NewClaim(r.Root())
}

// ErrBegun: there are accounts already, so that no first one can be made.
var ErrBegun = accounts.ErrBegun

// BeginAccounts makes the tables in the database at url if they are missing, and the first account, which may do
// everything, with its token; it fails with ErrBegun if there are accounts.
func BeginAccounts(ctx context.Context, url, name string) (api.IssuedToken, error) {
	if err := database.Migrate(ctx, url); err != nil {
		return api.IssuedToken{}, err
	}
	db, err := database.Open(ctx, url)
	if err != nil {
		return api.IssuedToken{}, fmt.Errorf("make the first account: %w", err)
	}
	defer db.Close()
	return accounts.New(db).Begin(ctx, name)
}

// Migrate copies all tasks of one store into another: from folders into a database, or back. See package migrate.
func Migrate(ctx context.Context, from, to *Roost, o api.NewMigration) (api.Migration, error) {
	return migrate.Run(ctx, from.end(), to.end(), o)
}

func (r *Roost) end() migrate.End {
	e := migrate.End{Store: r.store, Contents: checkpoint.Place{Dir: checkpoints.Dir(r.store)}}
	if r.contents != nil {
		e.Contents.Stores = r.contents
	}
	return e
}
