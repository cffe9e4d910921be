package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/service"
)

// Settings are the values of the settings file and the environment. A command reads them
// when it needs them: `help` and `config path` work with a broken file, too.
type Settings struct {
	path   string
	File   *config.File
	Values map[string]config.Setting
}

// Text is a setting's value, "" when it is not set.
func (s *Settings) Text(key string) string { return s.Values[key].Value.Text }

// ConfigFile reads the settings file; one that does not exist is empty.
func (a *App) ConfigFile() (string, *config.File, error) {
	path, err := a.ConfigPath()
	if err != nil {
		return "", nil, err
	}
	data, err := inputfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = nil, nil
	}
	if err != nil {
		return path, nil, failure.Config("read the settings "+path, err.Error(), "mend the file, or name another one in ROOST_CONFIG")
	}
	f, err := config.Parse(data)
	if syntax, is := errors.AsType[*config.SyntaxError](err); is {
		return path, nil, failure.Config("read the settings "+path, syntax.Error(), fmt.Sprintf("mend line %d of %s", syntax.Line, path))
	}
	return path, f, err
}

// Settings reads file and environment once. It warns of lines that no setting reads.
func (a *App) Settings() (*Settings, error) {
	if a.Loaded != nil {
		return a.Loaded, nil
	}
	path, f, err := a.ConfigFile()
	if err != nil {
		return nil, err
	}
	values, warnings, err := config.Resolve(f, path, a.Env)
	if bad, is := errors.AsType[*config.ValueError](err); is {
		return nil, failure.Config("use the setting "+bad.Key, bad.Origin+": "+bad.Problem,
			"roost config set "+bad.Key+" VALUE, or unset "+bad.Origin)
	}
	if err != nil {
		return nil, fmt.Errorf("read the settings %s: %w", path, err)
	}
	for _, w := range warnings {
		hint := ""
		if w.Closest != "" {
			hint = "; " + w.Closest + " is one"
		}
		a.Warn(fmt.Sprintf("%s:%d: nothing is called %s%s", path, w.Line, w.Key, hint))
	}
	a.Loaded = &Settings{path: path, File: f, Values: values}
	return a.Loaded, nil
}

// Global is the value of a global flag: given, or set, or "".
func (a *App) Global(flag, key string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	s, err := a.Settings()
	if err != nil {
		return "", err
	}
	return s.Text(key), nil
}

// ModelName makes the path of a scripted model absolute: the user gives it relative to
// the current folder, and the task keeps it.
func (a *App) ModelName(provider, model string) string {
	if provider != "script" || model == "" || model == "demo" {
		return model
	}
	return a.Abs(model)
}

// Fills reports whether a setting provides the value of a flag of the command itself.
func Fills(cmd *cobra.Command, k config.Key) bool {
	return k.Flag != "" && cmd.LocalNonPersistentFlags().Lookup(k.Flag) != nil && cmd.InheritedFlags().Lookup(k.Flag) == nil
}

// defaults fills what a request for a new task leaves open from the settings. Model and
// address belong to the provider that is set, and not to another one. A profile that a
// flag or variable names overrides each setting that it covers. named reports whether the
// request or the environment names the provider.
func (a *App) defaults(s *Settings, r setup.Choice) (filled setup.Choice, named bool) {
	fromEnv := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return s.Values[key].Origin == s.Values[key].Key.Env })
	}
	named = r.Provider != "" || r.Profile != "" || fromEnv("provider", "profile")
	r.Preset = !named && r.Model == "" && r.BaseURL == "" && !fromEnv("model", "base_url")
	other := r.Provider != "" && r.Provider != s.Text("provider")
	higher := r.Profile != ""
	switch {
	case higher, r.Provider != "", !fromEnv("profile") && fromEnv("provider"): // a flag or variable names the provider
	default:
		r.Profile, higher = s.Text("profile"), fromEnv("profile")
	}
	_, fields := config.Profiles(s.Values, s.File)
	if r.Limits == nil {
		r.Limits = &api.RunLimits{}
	} else {
		l := *r.Limits
		r.Limits = &l
	}
	for key, put := range presets(&r) {
		v := s.Values[key]
		if !v.Set() {
			continue
		}
		who := key == "provider" || key == "model" || key == "base_url"
		if other && who {
			continue
		}
		if _, sets := fields[r.Profile][key]; r.Profile != "" && (sets || who) && (higher || !fromEnv(key)) {
			continue
		}
		put(v.Value)
	}
	r.Model = a.ModelName(r.Provider, r.Model)
	if *r.Limits == (api.RunLimits{}) {
		r.Limits = nil
	}
	return r, named
}

// AsNew fills a request for a new task of a server: this user's settings hold there, too,
// and override the settings of the server.
func (a *App) AsNew(r engine.Request) (engine.Request, error) {
	s, err := a.Settings()
	if err != nil {
		return r, err
	}
	r.Choice, _ = a.defaults(s, r.Choice)
	return r, nil
}

// presets are the settings that fill members of a request, each with the function that
// sets the member unless the request has its own. They were checked when they were read.
func presets(r *setup.Choice) map[string]func(config.Value) {
	word := func(to *string) func(config.Value) {
		return func(v config.Value) { *to = cmp.Or(*to, v.Text) }
	}
	words := func(to *[]string) func(config.Value) {
		return func(v config.Value) {
			if *to == nil {
				*to = v.List
			}
		}
	}
	dollars := func(text string) (int64, error) {
		usd, err := money.Parse(text)
		return int64(usd), err
	}
	span := func(text string) (int64, error) {
		d, err := time.ParseDuration(text)
		return millis(d), err
	}
	percent := func(text string) (int, error) {
		if text == "never" {
			return 0, nil
		}
		return strconv.Atoi(text)
	}
	l := r.Limits
	return map[string]func(config.Value){
		"mode":               word(&r.Mode),
		"provider":           word(&r.Provider),
		"model":              word(&r.Model),
		"base_url":           word(&r.BaseURL),
		"effort":             word(&r.Effort),
		"stale":              word(&r.Stale),
		"max_tokens":         number(&r.MaxTokens, strconv.Atoi),
		"condense_at":        number(&r.Condense, percent),
		"approve":            word(&r.Approve),
		"allow":              words(&r.Allow),
		"deny":               words(&r.Deny),
		"allow_tools":        words(&r.AllowTools),
		"ask_tools":          words(&r.AskTools),
		"deny_tools":         words(&r.DenyTools),
		"max_turns":          number(&l.MaxTurns, strconv.Atoi),
		"max_cost":           number(&l.MaxCostMicros, dollars),
		"max_cost_task":      number(&l.MaxTaskMicros, dollars),
		"ask_after_requests": number(&l.AskRequests, strconv.Atoi),
		"ask_after_cost":     number(&l.AskCostMicros, dollars),
		"idle_timeout":       number(&l.IdleTimeoutMS, span),
		"total_timeout":      number(&l.TotalTimeoutMS, span),
	}
}

func number[N int | int64](to *N, read func(string) (N, error)) func(config.Value) {
	return func(v config.Value) {
		if n, err := read(v.Text); err == nil && *to == 0 {
			*to = orNone(n)
		}
	}
}

// orNone is a limit as the engine takes it, where a negative one takes a limit away.
func orNone[N int | int64](n N) N {
	if n == 0 {
		return -1
	}
	return n
}

// List splits a list of folders; blanks around them do not count.
func List(text string) []string {
	var out []string
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// KnownKey finds a setting by its name.
func KnownKey(name string) (config.Key, error) {
	k, ok := config.Find(name)
	if !ok {
		f := failure.Usage("use the setting "+name, "there is no such setting", "roost config list")
		if near := config.Closest(name); near != "" {
			f.Try, f.Suggestions = "roost config get "+near, []string{near}
		}
		return k, f
	}
	return k, nil
}

// ConfigSet changes a setting, or takes it out when there is no value. It works on the file alone: what is wrong
// elsewhere in it must not keep the user from changing it.
func (a *App) ConfigSet(name string, values []string) error {
	k, known := KnownKey(name)
	if known != nil && len(values) > 0 {
		return known
	}
	v := config.Value{IsList: k.List, List: values}
	if !k.List && len(values) > 1 {
		return failure.Usage("roost config set "+name, "it takes one value", "roost config set "+name+" VALUE")
	}
	if !k.List && len(values) == 1 {
		v.Text = values[0]
	}
	path, f, err := a.ConfigFile()
	if err != nil {
		return err
	}
	if _, there := f.Get(name); known != nil && !there {
		return known // what nothing reads can still be taken out
	}
	text := f.Without(name)
	if len(values) > 0 {
		err := k.Check(v)
		if err == nil && strings.HasSuffix(name, "base_url") {
			err = setup.CheckAddress(v.Text) // a file with such an address is read; the request to it is refused
		}
		if err != nil {
			return failure.Usage("roost config set "+name+" "+strings.Join(values, " "), err.Error(), "roost config set "+name+" VALUE")
		}
		if name == "root" && !filepath.IsAbs(v.Text) { // it would be another folder wherever roost is called
			return failure.Usage("roost config set root "+v.Text, "the folder is not absolute", "roost config set root "+failure.ShellWord(a.Abs(v.Text)))
		}
		text = f.With(name, v)
	}
	if _, err := config.Parse(text); err != nil { // never leave a file that cannot be read
		return fmt.Errorf("change the settings %s: the result cannot be read, so it was not written: %w", path, err)
	}
	if err := Replace(path, text); err != nil {
		return fmt.Errorf("change the settings: %w", err)
	}
	if known == nil && a.Env(k.Env) != "" {
		a.Warn(k.Env + " is set and overrides the file")
	}
	return nil
}

// profiles are the profiles of the settings file, each with its own key if it has one.
func (a *App) profiles(s *Settings, kept *Secrets) map[string]setup.Profile {
	names, fields := config.Profiles(s.Values, s.File)
	if len(names) == 0 {
		return nil
	}
	out := make(map[string]setup.Profile, len(names))
	for _, name := range names {
		r := setup.Choice{Limits: &api.RunLimits{}}
		put := presets(&r)
		for field, v := range fields[name] {
			if put[field] != nil {
				put[field](v.Value)
			}
		}
		p := setup.Profile{
			Provider: r.Provider, Model: a.ModelName(r.Provider, r.Model), BaseURL: r.BaseURL, Effort: r.Effort, Mode: r.Mode,
			Approve: r.Approve, Allow: r.Allow, Deny: r.Deny, MaxTokens: max(r.MaxTokens, 0), Limits: *r.Limits,
			Foreign: fields[name]["roo_name"].Value.Text,
		}
		p.Key, _ = ProfileKey(name, kept, fields[name])
		out[name] = p
	}
	return out
}

// hooks are the hooks of the settings file, in its order.
func (s *Settings) hooks() (list []setup.Hook, err error) {
	names, fields := config.Table(config.Hooks, s.Values, s.File)
	for _, name := range names {
		text := func(member string) string { return fields[name][member].Value.Text }
		h := setup.Hook{Name: name, On: text("on"), Tool: text("tool"), Command: text("command"), Failure: text("on_failure")}
		h.Timeout, _ = time.ParseDuration(text("timeout")) // it was checked when it was read
		if problem := h.Check(); problem != "" {
			return nil, failure.Config("use the hook "+name, problem, "mend [hooks."+name+"] in "+s.path)
		}
		list = append(list, h)
	}
	return list, nil
}

// millis rounds up to milliseconds: a small limit must not become 0, which means none.
func millis(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }

// ImportedModes is the file of the modes that were imported. It is of ours alone: the
// user's own custom_modes.yaml is never written, and its modes count before these.
func ImportedModes(settings string) string {
	return filepath.Join(filepath.Dir(settings), "imported_modes.json")
}

// table are the settings of one table of the file, by their names in it: which profile belongs to a mode or a source.
func (s *Settings) table(name string) map[string]string {
	var out map[string]string
	for key, v := range s.Values {
		if entry, ok := strings.CutPrefix(key, name+"."); ok && v.Value.Text != "" {
			if out == nil {
				out = map[string]string{}
			}
			out[entry] = v.Value.Text
		}
	}
	return out
}

// mcpPlaces are the files that name MCP servers, and the folder with the user's decisions about them.
func (a *App) mcpPlaces(settings string) mcp.Files {
	dir := filepath.Dir(settings)
	return mcp.Files{
		Own: filepath.Join(dir, "mcp.json"), Editors: a.editorFiles("mcp_settings.json", "cline_mcp_settings.json"),
		Choices: mcp.Choices{Dir: filepath.Join(dir, "mcp_allowed")}, Logins: mcp.Logins{Dir: filepath.Join(dir, "mcp_logins")},
	}
}

// editorFiles are the files of such names in the settings folders of the editors'
// storages that tasks are read from.
func (a *App) editorFiles(names ...string) (files []string) {
	dirs, auto, err := a.sources()
	if err != nil {
		return nil
	}
	if auto {
		dirs = append(dirs, local.EditorFolders()...)
	}
	for _, dir := range dirs {
		for _, name := range names {
			path := filepath.Join(dir, "settings", name)
			if _, err := os.Stat(path); err == nil && !slices.Contains(files, path) {
				files = append(files, path)
			}
		}
	}
	return files
}

// sources are the folders of other tools that the person named; auto reports whether those that this machine has are
// read, too.
func (a *App) sources() (dirs []string, auto bool, err error) {
	text, err := a.Global(a.Flags.Sources, "sources")
	auto = text == ""
	for _, dir := range List(text) {
		switch dir {
		case "auto":
			auto = true
		case "none":
		default:
			dirs = append(dirs, a.Abs(dir))
		}
	}
	return dirs, auto, err
}

// modeFiles are the files that may hold the user's own modes: one next to Roost's
// settings, and those of the editors' storages that tasks are read from.
func (a *App) modeFiles(settings string) []string {
	const name = "custom_modes.yaml"
	return append([]string{filepath.Join(filepath.Dir(settings), name), ImportedModes(settings)}, a.editorFiles(name)...)
}

// EngineConfig is what the engine needs in addition to a task's own settings. Keys and
// addresses of providers may come from the file where the variables are unset.
func (a *App) EngineConfig() (setup.Config, error) {
	s, err := a.Settings()
	if err != nil {
		return setup.Config{}, err
	}
	kept, err := a.Secrets()
	if err != nil {
		return setup.Config{}, err
	}
	byEnv := map[string]string{}
	for _, v := range s.Values {
		if !v.Key.Secret {
			byEnv[v.Key.Env] = v.Value.Text
		}
	}
	var late []string
	for _, p := range setup.Providers() {
		switch key, origin := a.ProviderKey(p, kept, s); {
		case key != "":
			byEnv[setup.KeyVariables(p)[0]] = key
		case origin == RingOrigin:
			late = append(late, p)
		}
	}
	c := setup.ConfigFromEnv(func(name string) string {
		if text := byEnv[name]; text != "" {
			return text
		}
		return a.Env(name)
	})
	c.LateKeys = a.ringKeys(kept, late)
	c.PreferKeyed()
	if provider := s.Text("provider"); provider != "" && provider != c.Provider {
		c.Provider, c.Model = provider, "" // the default model is another provider's
	}
	if model := s.Text("model"); model != "" {
		c.Model = a.ModelName(c.Provider, model)
	}
	if usd, err := money.Parse(s.Text("max_cost_day")); err == nil && usd > 0 {
		c.MaxDayMicros = int64(usd)
	}
	if c.Home = a.Env("HOME"); c.Home == "" {
		c.Home, _ = os.UserHomeDir() // without one there are no rules in it
	}
	c.Settings, c.ModeFiles, c.ModeProfiles = filepath.Dir(s.path), a.modeFiles(s.path), s.table(config.ModeProfiles)
	c.Servers, c.Env = a.mcpPlaces(s.path), a.Env
	// Not the folder: a file that ROOST_CONFIG names may lie among the user's own. What the files of modes hold gives
	// rights, and goes to every model; what the files of servers hold is run.
	c.Guarded = slices.Concat([]string{
		s.path, filepath.Join(c.Settings, SecretFile), filepath.Join(c.Settings, mode.ImportedRules), c.Servers.Own, c.Servers.Choices.Dir,
		c.Servers.Logins.Dir,
	}, c.ModeFiles, c.Servers.Editors)
	// the root's keys, what was typed
	for variable, fallback := range map[string]string{"XDG_STATE_HOME": ".local/state", "XDG_CACHE_HOME": ".cache"} {
		if dir, err := a.Home(variable, fallback); err == nil {
			c.Guarded = append(c.Guarded, dir)
		}
	}
	if dir := a.Env("XDG_RUNTIME_DIR"); dir != "" {
		c.Guarded = append(c.Guarded, filepath.Join(dir, "roost"))
	}
	if c.Home != "" {
		c.Guarded = append(c.Guarded, filepath.Join(c.Home, ".roo"), filepath.Join(c.Home, ".agents"))
	}
	c.Linter = s.Text("linter")
	c.NoCheckpoints = s.Text("checkpoints") == "off"
	for key, to := range map[string]*int64{
		"checkpoint_file":   &c.CheckpointFile,
		"checkpoint_survey": &c.CheckpointSurvey,
		"checkpoint_store":  &c.CheckpointStore,
	} {
		if text := s.Text(key); text != "" {
			*to, _ = config.Bytes(text) // it was checked when it was read
		}
	}
	c.IncludeTools, c.ExcludeTools = s.Values["tools.include"].Value.List, s.Values["tools.exclude"].Value.List
	if name, problem := setup.CheckTools(c.IncludeTools, c.ExcludeTools); problem != "" {
		return setup.Config{}, failure.Config("use the setting tools.include or tools.exclude", fmt.Sprintf("%q: %s", name, problem),
			"roost config set tools.exclude NAME...  # tools are named as in Roo Code, e.g. apply_patch")
	}
	c.PrivateHosts = s.Values["web.private_hosts"].Value.List
	if err := setup.CheckPrivateHosts(c.PrivateHosts); err != nil {
		return setup.Config{}, failure.Config("use the setting web.private_hosts", err.Error(), "roost config set web.private_hosts localhost:8080")
	}
	if c.Hooks, err = s.hooks(); err != nil {
		return setup.Config{}, err
	}
	if base := s.Text("base_url"); base != "" && c.Provider != "" {
		c.BaseURLs[c.Provider] = base
	}
	c.Profiles, c.SourceProfiles = a.profiles(s, kept), s.table(config.SourceProfiles)
	c.Defaults = func(c setup.Choice) (setup.Choice, bool) { return a.defaults(s, c) }
	return c, nil
}

// Open opens the store that the global flags name.
func (a *App) Open() (*local.Roost, error) {
	server, err := a.Global(a.Flags.Server, "server")
	if err != nil {
		return nil, err
	}
	if server != "" {
		return nil, failure.Usage("use the server "+server, "this command works on this machine alone, or on other tasks than a server's",
			"the same without --server, and without ROOST_SERVER and the setting server")
	}
	o := local.Options{Env: a.Env, Now: a.Now, Version: api.ProgramVersion()}
	if o.Root, err = a.RootFolder(); err != nil {
		return nil, err
	}
	if o.Cache, err = a.folder(a.Flags.Cache, "cache", "XDG_CACHE_HOME", ".cache"); err != nil {
		return nil, err
	}
	if o.State, err = a.Home("XDG_STATE_HOME", ".local/state"); err != nil {
		return nil, err
	}
	if o.Sources, o.AutoSources, err = a.sources(); err != nil {
		return nil, err
	}
	return local.Open(o)
}

// RootFolder is Roost's own folder, which need not exist.
func (a *App) RootFolder() (string, error) {
	return a.folder(a.Flags.Root, "root", "XDG_DATA_HOME", ".local/share")
}

// folder is the folder that a flag or a setting names, or else Roost's under an XDG variable.
func (a *App) folder(flag, key, variable, fallback string) (string, error) {
	if dir, err := a.Global(flag, key); dir != "" || err != nil {
		return dir, err
	}
	return a.Home(variable, fallback)
}

// start gives a store the engine of one command, and notes the first run that begins in it. A run waits for the user as
// long as its process lives.
func (a *App) start(s *local.Roost, settings setup.Config) {
	first := &atomic.Pointer[engine.Run]{}
	a.first = first
	s.Start(engine.Options{Config: settings, Hold: -1, Begun: func(r *engine.Run) { first.CompareAndSwap(nil, r) }}, true)
}

// FirstRun is the first run that began in this process: the one that the command asked for. nil when there was none.
func (a *App) FirstRun() *engine.Run {
	if a.first == nil {
		return nil
	}
	return a.first.Load()
}

// WithService gives a service of the tasks that this process reads, without an engine.
func (a *App) WithService(f func(*service.Service) error) error {
	s, err := a.Open()
	if err != nil {
		return err
	}
	all := s.Service()
	defer all.Close()
	return f(all)
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
	a.start(s, c)
	return errors.Join(f(s), s.Close(ctx))
}
