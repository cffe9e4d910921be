package service

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/redact"
)

// The user's settings over the API. Only a caller at this machine (FromHere) may write keys, and settings that name a
// program, an address, a folder or a right: whoever steals a browser's log-in must not be able to run commands here.
// Methods show the settings in a repository's own files, but none can agree to them.

type hereKey struct{}

// FromHere marks a context as that of a request that came directly from this machine, with the user's log-in.
func FromHere(ctx context.Context) context.Context { return context.WithValue(ctx, hereKey{}, true) }

// notHere refuses a change that only callers at this machine may make, to other callers. command makes the change in a
// terminal.
func notHere(ctx context.Context, what, command string) error {
	if ctx.Value(hereKey{}) != nil {
		return nil
	}
	return problem(http.StatusForbidden, "not_from_here", what+" only from this machine",
		"the request came over a network or through another server, and this setting decides what runs here and where keys go",
		command+"  # in a terminal on the server's machine")
}

// settingsProblem returns the problem of an error about settings; nil for another error.
func settingsProblem(err error) *api.Problem {
	e, is := errors.AsType[*config.Error](err)
	if !is {
		return nil
	}
	status := map[config.Kind]int{
		config.Misused: http.StatusUnprocessableEntity, config.Broken: http.StatusUnprocessableEntity,
		config.Missing: http.StatusNotFound, config.Taken: http.StatusConflict,
	}[e.Kind]
	title := strings.ToUpper(e.What[:1]) + e.What[1:]
	if given, is := strings.CutPrefix(e.What, "roost config set "); is { // a command, with its value
		name, _, _ := strings.Cut(given, " ")
		title = "The setting " + name + " cannot be changed"
	}
	p := problem(status, e.Code, title, e.Why, slices.Compact(append([]string{e.Try}, e.Suggestions...))...)
	return p.Because(err)
}

// secrets returns what exports for readers mask.
func (s *Service) secrets() []redact.Known {
	if known := s.known.Load(); known != nil {
		return *known
	}
	return s.opt.Secrets
}

// place returns the place of the user's settings. A change through it appends its warnings to notes.
func (s *Service) place(notes *[]string) (config.Place, error) {
	if s.opt.Place == nil {
		return config.Place{}, problem(http.StatusServiceUnavailable, "no_settings", "This process has no settings",
			"it works for one command; only a server shows and changes settings", "roost serve")
	}
	p := *s.opt.Place
	p.Warn = func(text string) { *notes = append(*notes, text) }
	return p, nil
}

// reread reads the settings files and passes them to the engine and the store, so that the next run gets what this process
// shows. A run that works keeps its settings. The caller holds writing.
func (s *Service) reread(p config.Place) (*config.Settings, setup.Config, error) {
	set, err := p.Read()
	if err != nil {
		return nil, setup.Config{}, err
	}
	c, err := p.Engine(set)
	if err != nil {
		return set, c, err
	}
	kept, err := p.Secrets()
	if err != nil {
		return set, c, err
	}
	// Unchanged settings are not passed on: the engine keeps a key from the keyring, which need not ask the user again.
	text := string(set.File.Text()) + "\x00" + string(kept.File.Text())
	if text == s.applied {
		return set, c, nil
	}
	s.applied = text
	if s.engine != nil {
		s.engine.Configure(c)
	}
	s.store.SetSources(p.Sources(set))
	known := c.KnownKeys()
	s.known.Store(&known)
	return set, c, nil
}

// UserSettings returns what the user has set up, with the origin of each value. No key is in them.
func (s *Service) UserSettings(ctx context.Context) (api.UserSettings, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.userSettings(ctx)
}

func (s *Service) userSettings(ctx context.Context) (out api.UserSettings, err error) {
	p, err := s.place(new([]string))
	if err != nil {
		return out, err
	}
	set, c, err := s.reread(p)
	if err != nil {
		return out, err
	}
	kept, err := p.Secrets()
	if err != nil {
		return out, err
	}
	out = api.UserSettings{
		Path:      set.Path,
		Here:      ctx.Value(hereKey{}) != nil,
		Items:     []api.UserSetting{},
		Providers: []api.ProviderState{},
		Profiles:  append([]api.KeyState{}, config.ProfileStates(kept, set)...),
		Sources:   []string{},
		Warnings:  append([]string{}, set.Warnings...),
	}
	for _, item := range p.Items(set) {
		k, _ := config.Find(item.Key)
		one := api.UserSetting{
			Key: item.Key, Value: []string{}, Origin: item.Origin, Doc: k.Doc, List: k.List, Words: append([]string{}, k.Words...), Plain: k.Plain(),
		}
		switch v := item.Value.(type) {
		case string:
			one.Value = []string{v}
		case []string:
			one.Value = v
		}
		out.Items = append(out.Items, one)
	}
	out.Sources = append(out.Sources, api.Some(config.List(set.Text("sources")), func(dir string) (string, bool) {
		return dir, dir != "auto" && dir != "none"
	})...)
	chosen, _ := c.Defaults(setup.Choice{})
	profile := c.Profiles[chosen.Profile]
	out.Provider = cmp.Or(chosen.Provider, profile.Provider, c.Provider)
	out.Model = cmp.Or(chosen.Model, profile.Model)
	if out.Model == "" && out.Provider == c.Provider {
		out.Model = c.Model
	}
	out.Model = cmp.Or(out.Model, setup.DefaultModel(out.Provider))
	answers := out.Provider == "script"
	for _, name := range setup.Providers() {
		model := setup.DefaultModel(name)
		if name == out.Provider {
			model = out.Model
		}
		one := api.ProviderState{
			Name:    name,
			Key:     p.ProviderState(name, kept, set, c),
			Keyless: setup.Keyless(name),
			Model:   model,
			Address: cmp.Or(c.BaseURLs[name], setup.Address(name)),
			Test:    engine.TestCost(name, model),
		}
		if name == out.Provider {
			answers = one.Key.Set || profile.Key != "" || one.Keyless && cmp.Or(chosen.BaseURL, one.Address) != ""
		}
		out.Providers = append(out.Providers, one)
	}
	switch {
	case out.Provider == "":
		out.Problem = "no provider is named and no key was found"
	case !answers:
		out.Problem = "there is no key for " + out.Provider
	case out.Model == "":
		out.Problem = "no model of " + out.Provider + " is named"
	}
	return out, nil
}

// ChangeSettings sets settings in the user's file and removes others from it: all of them or none. It returns the settings
// after the change.
func (s *Service) ChangeSettings(ctx context.Context, n api.SettingsPatch) (out api.UserSettings, err error) {
	names := slices.AppendSeq(slices.Clone(n.Unset), maps.Keys(n.Set))
	slices.Sort(names)
	for _, name := range names {
		k, known := config.Find(name)
		if known && k.Secret {
			return out, api.Invalid(api.Wrong{Parameter: "/set", Detail: "a key is stored with PUT /v1/providers/{provider}/key"})
		}
		if known && k.Plain() {
			continue
		}
		if err := notHere(ctx, "The setting "+redact.Terminal(name)+" changes", "roost config set "+redact.Terminal(name)+" VALUE"); err != nil {
			return out, err
		}
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	notes := []string{}
	p, err := s.place(&notes)
	if err != nil {
		return out, err
	}
	if err := p.Change(ctx, n.Set, n.Unset); err != nil {
		return out, err
	}
	out, err = s.userSettings(ctx)
	out.Warnings = append(notes, out.Warnings...)
	return out, err
}

// SetKey stores the key of a provider. No method shows the key again.
func (s *Service) SetKey(ctx context.Context, provider string, n api.NewKey) (out api.KeyState, err error) {
	const what = "roost auth set"
	if err := cmp.Or(notHere(ctx, "A key is kept", what+" PROVIDER"), config.KnownProvider(what, provider)); err != nil {
		return out, err
	}
	key := strings.TrimSpace(n.Key)
	if key == "" {
		return out, api.Invalid(api.Wrong{Parameter: "/key", Detail: "the key is empty"})
	}
	if err := config.CheckKey(key); err != nil {
		return out, api.Invalid(api.Wrong{Parameter: "/key", Detail: err.Error()})
	}
	if doubt := setup.KeyDoubt(provider, key); doubt != "" && !n.Force {
		if page := setup.KeyPage(provider); page != "" {
			doubt += "; they are made at " + page
		}
		return out, problem(http.StatusUnprocessableEntity, "doubtful_key", "That does not look like a key of "+provider, doubt,
			`with "force": true it is stored anyway`)
	}
	err = s.changing(func(p config.Place) error {
		_, err := p.SetKey(ctx, provider, provider, key, false)
		return err
	})
	if err != nil {
		return out, err
	}
	return s.keyState(ctx, provider)
}

// RemoveKey deletes the stored key of a provider.
func (s *Service) RemoveKey(ctx context.Context, provider string) (out api.KeyState, err error) {
	const what = "roost auth remove"
	if err := cmp.Or(notHere(ctx, "A key is removed", what+" PROVIDER"), config.KnownProvider(what, provider)); err != nil {
		return out, err
	}
	if err := s.changing(func(p config.Place) error { return p.RemoveKey(ctx, provider, provider) }); err != nil {
		return out, err
	}
	return s.keyState(ctx, provider)
}

// changing changes the user's files, and passes the new settings to the engine.
func (s *Service) changing(change func(config.Place) error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	p, err := s.place(new([]string))
	if err == nil {
		err = change(p)
	}
	if err == nil {
		_, _, err = s.reread(p)
	}
	return err
}

func (s *Service) keyState(ctx context.Context, provider string) (api.KeyState, error) {
	all, err := s.UserSettings(ctx)
	for _, one := range all.Providers {
		if one.Name == provider {
			return one.Key, err
		}
	}
	return api.KeyState{Provider: provider}, err
}

// Models returns the models that Roost knows of a provider; "" = of all.
func (s *Service) Models(provider string) api.Models { return config.Models(provider) }

// configured returns the settings that the next run gets.
func (s *Service) configured() (c setup.Config, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	p, err := s.place(new([]string))
	if err == nil {
		_, c, err = s.reread(p)
	}
	return c, err
}

// Modes are the modes that a task in a workspace may be in; "" = in any.
func (s *Service) Modes(ctx context.Context, workspace string) (out []api.Mode, err error) {
	if err := cmp.Or(folder("workspace", workspace), mayName(ctx, workspace)); err != nil {
		return nil, err
	}
	c, err := s.configured()
	if err != nil {
		return nil, err
	}
	set, _ := c.Modes(workspace)
	for _, m := range set.All() {
		one := api.Mode{Slug: m.Slug, Name: m.Name, Tools: []string{}, Source: string(m.Source), Path: m.Path}
		for _, g := range m.Groups {
			word := g.Name
			if g.FileRegex != "" {
				word += " (" + g.FileRegex + ")"
			}
			one.Tools = append(one.Tools, word)
		}
		out = append(out, one)
	}
	return out, nil
}

// servers are the MCP servers that are defined for a workspace, with their states; "" = only those of the user and of
// editors.
func (s *Service) servers(ctx context.Context, workspace string) (list []mcp.Server, c setup.Config, err error) {
	if err := cmp.Or(folder("workspace", workspace), mayName(ctx, workspace)); err != nil {
		return nil, c, err
	}
	if c, err = s.configured(); err != nil {
		return nil, c, err
	}
	list, _ = c.Servers.Load(cmp.Or(workspace, filepath.Join(c.Settings, "none")))
	return list, c, nil
}

// MCPServers are the MCP servers that are defined for a workspace; "" = only those of the user and of editors.
func (s *Service) MCPServers(ctx context.Context, workspace string) (out []api.MCPServer, err error) {
	list, c, err := s.servers(ctx, workspace)
	for _, one := range list {
		doc := config.Server(one)
		doc.LoggedIn = c.Servers.Logins.Has(one)
		out = append(out, doc)
	}
	return out, err
}

// AddMCPServer defines an MCP server in the user's own file.
func (s *Service) AddMCPServer(ctx context.Context, n api.NewMCPServer) (out api.MCPServer, err error) {
	if err := notHere(ctx, "An MCP server is added", "roost mcp add NAME -- COMMAND"); err != nil {
		return out, err
	}
	c, err := s.configured()
	if err != nil {
		return out, err
	}
	err = s.changing(func(p config.Place) error {
		_, err := p.AddServer(ctx, mcp.Server{Scope: mcp.Own, File: c.Servers.Own}, n)
		return err
	})
	if err != nil {
		return out, err
	}
	all, err := s.MCPServers(ctx, "")
	for _, one := range all {
		if one.Name == n.Name {
			out = one
		}
	}
	return out, err
}

// RemoveMCPServer takes an MCP server out of the user's own file.
func (s *Service) RemoveMCPServer(ctx context.Context, name string) error {
	if err := notHere(ctx, "An MCP server is removed", "roost mcp remove NAME"); err != nil {
		return err
	}
	list, c, err := s.servers(ctx, "")
	if err != nil {
		return err
	}
	return s.changing(func(p config.Place) error {
		return p.RemoveServer(ctx, mcp.Server{Name: name, Scope: mcp.Own, File: c.Servers.Own}, c.Servers.Logins, p.Dir, list)
	})
}

// AddSource adds another tool's folder to the sources that Roost reads tasks from.
func (s *Service) AddSource(ctx context.Context, n api.NewSource) (out api.AddedSource, err error) {
	if err := notHere(ctx, "A source is added", "roost sources add DIR"); err != nil {
		return out, err
	}
	if !filepath.IsAbs(n.Path) {
		return out, api.Invalid(api.Wrong{Parameter: "/path", Detail: "want an absolute folder of the server's machine"})
	}
	err = s.changing(func(p config.Place) error {
		dir := p.Abs(n.Path)
		found, added, err := p.AddSource(ctx, dir)
		out = api.AddedSource{Path: dir, Tool: found.Tool, Tasks: found.Tasks, Added: added}
		return err
	})
	return out, err
}

// RemoveSource removes a folder from the sources that Roost reads tasks from.
func (s *Service) RemoveSource(ctx context.Context, path string) error {
	if err := notHere(ctx, "A source is removed", "roost sources remove DIR"); err != nil || path == "" {
		return cmp.Or(err, error(api.Invalid(api.Wrong{Parameter: "path", Detail: "name the folder"})))
	}
	return s.changing(func(p config.Place) error { return p.RemoveSource(ctx, p.Abs(path)) })
}

// TestProvider sends one short request to a provider, outside any task.
func (s *Service) TestProvider(ctx context.Context, provider string, n api.NewTest) (out api.Tested, err error) {
	if err := config.KnownProvider("roost run --provider", provider); err != nil && provider != "script" {
		return out, err
	}
	out, err = s.engine.Test(ctx, provider, n.Model)
	failed, is := errors.AsType[*llm.Error](err)
	if !is {
		return out, err
	}
	p := problem(http.StatusBadGateway, "provider_error", "The model did not answer", failed.Error())
	if failed.Kind == llm.Auth {
		p.Code, p.Title = "provider_auth", "The provider refused the key"
		p.Suggestions = []string{"roost auth set " + provider}
	}
	if failed.Try != "" { // the provider named a remedy of its own
		p.Detail = strings.Replace(p.Detail, llm.TryMark+failed.Try, "", 1)
		p.Suggestions = []string{failed.Try}
	}
	p.Retryable = failed.Retryable()
	return out, p
}
