package cli

import (
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/server"
	"github.com/roost-dev/roost/server/peer"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/store"
)

// unbounded is for restarts that users make themselves, in a shell or a chat: the
// settings of restarts bind a server only.
var unbounded = service.Restart{MaxAttempts: -1}

// socket is where other processes reach this one while it works on a task: roost
// attach, send, answer and cancel in another terminal, a second roost resume, a server.
// It opens with the first task that this process owns. brief: the process ends with its
// tasks, and must start no others.
func (a *App) socket(s *store.Store, e *engine.Engine, brief bool) *server.Socket {
	sock := server.NewSocket(a.Env, func() (*server.Server, error) {
		token, err := server.SocketToken()
		if !peer.Known {
			token, _, err = server.OwnToken(s, false)
		}
		if err != nil {
			return nil, err
		}
		return server.New(server.Options{
			Service: service.New(s, e, service.Options{Now: a.Now, Restart: unbounded}),
			Token:   token,
			Guest:   brief,
			Now:     a.Now,
			Version: api.VersionOf(Version),
		})
	})
	s.ReachedAt(sock.Address)
	return sock
}

// local is a client of a server in this very process; end must be called.
func (a *App) local(s *store.Store, e *engine.Engine) (c *client.Client, end func(), err error) {
	token, err := server.SocketToken()
	if err != nil {
		return nil, nil, err
	}
	o := service.Options{Now: a.Now, Restart: unbounded}
	if c, err := a.engineConfig(); err == nil { // export refuses to mask without them
		o.Secrets = secretsOf(c)
	}
	srv, err := server.New(server.Options{Service: service.New(s, e, o), Token: token, Now: a.Now, Version: api.VersionOf(Version)})
	if err != nil {
		return nil, nil, err
	}
	return client.Local(srv.Handler(), token), srv.End, nil
}
