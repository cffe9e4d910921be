package app

import (
	"context"
	"errors"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/local"
)

// Open opens the store that the global flags name.
func (a *App) Open() (*local.Roost, error) {
	o := local.Options{Env: a.Env, Now: a.Now, Version: api.VersionOf(Version)}
	var server, sources string
	for _, g := range []struct {
		to        *string
		flag, key string
	}{{&o.Root, a.Flags.Root, "root"}, {&o.Cache, a.Flags.Cache, "cache"}, {&server, a.Flags.Server, "server"},
		{&sources, a.Flags.Sources, "sources"}} {
		var err error
		if *g.to, err = a.Global(g.flag, g.key); err != nil {
			return nil, err
		}
	}
	if server != "" {
		return nil, failure.Usage("use the server "+server, "this command works on this machine alone, or on other tasks than a server's",
			"the same without --server, and without ROOST_SERVER and the setting server")
	}
	var err error
	if o.Root == "" {
		if o.Root, err = a.Home("XDG_DATA_HOME", ".local/share"); err != nil {
			return nil, err
		}
	}
	if o.Cache == "" {
		if o.Cache, err = a.Home("XDG_CACHE_HOME", ".cache"); err != nil {
			return nil, err
		}
	}
	if o.State, err = a.Home("XDG_STATE_HOME", ".local/state"); err != nil {
		return nil, err
	}
	o.AutoSources = sources == ""
	for _, dir := range List(sources) {
		switch dir {
		case "auto":
			o.AutoSources = true
		case "none":
		default:
			o.Sources = append(o.Sources, a.Abs(dir))
		}
	}
	return local.Open(o)
}

// WithEngine opens store and engine for one command and closes the engine,
// saved, before it returns.
func (a *App) WithEngine(ctx context.Context, f func(*local.Roost) error) error {
	s, err := a.Open()
	if err != nil {
		return err
	}
	c, err := a.EngineConfig()
	if err != nil {
		return err
	}
	s.Start(engine.Options{Config: c}, true)
	return errors.Join(f(s), s.Close(ctx))
}
