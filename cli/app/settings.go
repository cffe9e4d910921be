package app

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/local"
)

// Place returns where this user's settings are.
func (a *App) Place() config.Place {
	return config.Place{
		Env: a.Env,
		Dir: a.Dir,
		Flags: map[string]string{
			"root": a.Flags.Root, "cache": a.Flags.Cache, "sources": a.Flags.Sources, "server": a.Flags.Server,
		},
		Warn: a.Warn,
	}
}

// Abs returns the absolute path of a folder that is relative to the current one.
func (a *App) Abs(dir string) string { return a.Place().Abs(dir) }

// GivenFolder returns the absolute path of the folder that a flag names; "" where the flag was not given.
func (a *App) GivenFolder(dir string) string {
	if dir == "" {
		return ""
	}
	return a.Abs(dir)
}

// ModelOf returns the model that a flag names for a task that exists: as the path of a script, which is relative to the
// current folder, also where the provider is the task's own.
func (a *App) ModelOf(ctx context.Context, c *client.Client, id, provider, model string) (string, error) {
	if model != "" && provider == "" {
		t, err := c.Task(ctx, id)
		if err != nil {
			return "", err
		}
		provider = t.Provider
	}
	return a.Place().ModelName(provider, model), nil
}

// Home returns Roost's folder under an XDG variable, or under the platform's counterpart of it.
func (a *App) Home(variable, fallback string) (string, error) {
	return a.Place().Home(variable, fallback)
}

// Settings reads the settings file and the environment once, when a command needs them: `help` and `config path` also
// work with a broken file. It warns of lines that belong to no setting.
func (a *App) Settings() (*config.Settings, error) {
	if a.Loaded != nil {
		return a.Loaded, nil
	}
	s, err := a.Place().Read()
	if err != nil {
		return nil, err
	}
	for _, text := range s.Warnings {
		a.Warn(text)
	}
	a.Loaded = s
	return s, nil
}

// EngineConfig returns what the engine needs in addition to a task's own settings.
func (a *App) EngineConfig() (setup.Config, error) {
	s, err := a.Settings()
	if err != nil {
		return setup.Config{}, err
	}
	return a.Place().Engine(s)
}

// Global returns the value of a global flag, or else of the setting of that name; "" without either.
func (a *App) Global(name string) (string, error) {
	if given := a.Place().Flags[name]; given != "" {
		return given, nil
	}
	s, err := a.Settings()
	if err != nil {
		return "", err
	}
	return s.Text(name), nil
}

// Fills reports whether a setting provides the value of a flag of the command itself.
func Fills(cmd *cobra.Command, k config.Key) bool {
	return k.Flag != "" && cmd.LocalNonPersistentFlags().Lookup(k.Flag) != nil && cmd.InheritedFlags().Lookup(k.Flag) == nil
}

// AsNew completes the settings of a new task from this user's settings. They count for a task of a server, too, and
// override the settings of the server.
func (a *App) AsNew(given api.Settings) (api.Settings, error) {
	s, err := a.Settings()
	if err != nil {
		return given, err
	}
	c, _ := a.Place().Defaults(s, setup.Choice{Provider: given.Provider, Model: given.Model, BaseURL: given.BaseURL, Profile: given.Profile})
	given.Model = c.Model
	out := api.Settings{
		Mode:       c.Mode,
		Provider:   c.Provider,
		BaseURL:    c.BaseURL,
		Profile:    c.Profile,
		Effort:     c.Effort,
		MaxTokens:  api.Given(c.MaxTokens),
		CondenseAt: api.Given(c.Condense),
		Stale:      c.Stale,
		Approve:    c.Approve,
		Allow:      c.Allow,
		Deny:       c.Deny,
		AllowTools: c.AllowTools,
		AskTools:   c.AskTools,
		DenyTools:  c.DenyTools,
	}
	if c.Limits != nil {
		out.Limits = new(c.Limits.Given())
	}
	data, err := json.Marshal(given) // holds only what was given, which replaces what the settings have
	if err != nil {
		return given, err
	}
	return out, json.Unmarshal(data, &out)
}

// Open opens the store that the global flags name.
func (a *App) Open() (*local.Roost, error) {
	server, err := a.Global("server")
	if err != nil {
		return nil, err
	}
	if server != "" {
		return nil, failure.Usage("use the server "+server, "this command does not work on the tasks of a server",
			"the same without --server, and without ROOST_SERVER and the setting server")
	}
	o, err := a.localOptions()
	if err != nil {
		return nil, err
	}
	return local.Open(o)
}

// OpenShared opens tasks in a database. This server's own folders are those of the global flags.
func (a *App) OpenShared(ctx context.Context, shared local.Shared) (*local.Roost, error) {
	o, err := a.localOptions()
	if err != nil {
		return nil, err
	}
	return local.OpenShared(ctx, o, shared)
}

// OpenRoot opens the tasks of a root, which may differ from that of the global flags, without other tools' storages.
func (a *App) OpenRoot(root string) (*local.Roost, error) {
	o, err := a.localOptions()
	if err != nil {
		return nil, err
	}
	o.Root, o.Cache, o.Sources, o.AutoSources = root, "", nil, false
	return local.Open(o)
}

func (a *App) localOptions() (o local.Options, err error) {
	o = local.Options{Env: a.Env, Now: a.Now, Version: api.ProgramVersion()}
	if o.Root, err = a.RootFolder(); err != nil {
		return o, err
	}
	if o.Cache, err = a.folder("cache", "XDG_CACHE_HOME", ".cache"); err != nil {
		return o, err
	}
	o.Cache = a.Abs(o.Cache)
	if o.State, err = a.Home("XDG_STATE_HOME", ".local/state"); err != nil {
		return o, err
	}
	settings, err := a.Settings()
	if err != nil {
		return o, err
	}
	o.Sources, o.AutoSources = a.Place().Sources(settings)
	return o, nil
}

// RootFolder is Roost's own folder, which need not exist.
func (a *App) RootFolder() (string, error) {
	dir, err := a.folder("root", "XDG_DATA_HOME", ".local/share")
	if err == nil && !filepath.IsAbs(dir) {
		err = failure.New(failure.ExitConfig, "root_unusable", "use the root "+dir, "must be an absolute path", "roost --root DIR ...")
	}
	return dir, err
}

// folder returns the folder that a global flag or its setting names, or else Roost's under an XDG variable.
func (a *App) folder(name, variable, fallback string) (string, error) {
	if dir, err := a.Global(name); dir != "" || err != nil {
		return dir, err
	}
	return a.Home(variable, fallback)
}

// start gives a store the engine of one command, and records the first run that begins in it. A run waits for the
// user as long as its process lives.
func (a *App) start(s *local.Roost, settings setup.Config) {
	first := &atomic.Pointer[engine.Run]{}
	a.first = first
	s.Start(engine.Options{
		Config:       settings,
		Hold:         -1,
		NotifyFailed: a.Warn,
		Begun:        func(r *engine.Run) { first.CompareAndSwap(nil, r) },
	}, true)
}

// FirstRun returns the first run that began in this process: the one that the command asked for. nil when there was
// none.
func (a *App) FirstRun() *engine.Run {
	if a.first == nil {
		return nil
	}
	return a.first.Load()
}
