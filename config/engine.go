package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/notify"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/roofmt"
)

// ModelName makes the path of a scripted model absolute: the user gives it relative to
// the current folder, and the task keeps it.
func (p Place) ModelName(provider, model string) string {
	if provider != "script" || model == "" || model == "demo" {
		return model
	}
	return p.Abs(model)
}

// Defaults fills what a request for a new task leaves open from the settings. The settings model and address count
// only for the provider in the settings. A profile that a flag or variable names overrides each setting that it
// covers. named reports whether the request or the environment names the provider.
func (p Place) Defaults(s *Settings, r setup.Choice) (filled setup.Choice, named bool) {
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
	_, fields := Profiles(s.Values, s.File)
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
		put(v)
	}
	r.Model = p.ModelName(r.Provider, r.Model)
	if *r.Limits == (api.RunLimits{}) {
		r.Limits = nil
	}
	return r, named
}

// presets returns the settings that fill members of a request, each with the function that sets the member unless the
// request has its own.
func presets(r *setup.Choice) map[string]func(Setting) {
	word := func(to *string) func(Setting) {
		return func(s Setting) { *to = cmp.Or(*to, s.Value.Text) }
	}
	words := func(to *[]string) func(Setting) {
		return func(s Setting) {
			if *to == nil {
				*to = s.Value.List
			}
		}
	}
	l := r.Limits
	return map[string]func(Setting){
		"mode":               word(&r.Mode),
		"provider":           word(&r.Provider),
		"model":              word(&r.Model),
		"base_url":           word(&r.BaseURL),
		"effort":             word(&r.Effort),
		"stale":              word(&r.Stale),
		"max_tokens":         number(&r.MaxTokens),
		"condense_at":        number(&r.Condense),
		"approve":            word(&r.Approve),
		"allow":              words(&r.Allow),
		"deny":               words(&r.Deny),
		"allow_tools":        words(&r.AllowTools),
		"ask_tools":          words(&r.AskTools),
		"deny_tools":         words(&r.DenyTools),
		"max_turns":          number(&l.MaxTurns),
		"max_cost":           number(&l.MaxCostMicros),
		"max_cost_task":      number(&l.MaxTaskMicros),
		"ask_after_requests": number(&l.AskRequests),
		"ask_after_cost":     number(&l.AskCostMicros),
		"idle_timeout":       number(&l.IdleTimeoutMS),
		"total_timeout":      number(&l.TotalTimeoutMS),
	}
}

func number[N int | int64](to *N) func(Setting) {
	return func(s Setting) { *to = cmp.Or(*to, N(s.Number())) }
}

// OrNone turns a limit of a document or a setting into one of the engine: 0, which means no limit, becomes a negative
// number.
func OrNone[N int | int64](n N) N {
	if n == 0 {
		return -1
	}
	return n
}

// profiles returns the profiles of the settings file, each with its own key if it has one.
func (p Place) profiles(s *Settings, kept *Secrets) map[string]setup.Profile {
	names, fields := Profiles(s.Values, s.File)
	if len(names) == 0 {
		return nil
	}
	out := make(map[string]setup.Profile, len(names))
	for _, name := range names {
		one := setup.Profile{Choice: setup.Choice{Limits: &api.RunLimits{}}, Foreign: fields[name]["roo_name"].Value.Text}
		put := presets(&one.Choice)
		for field, v := range fields[name] {
			if put[field] != nil {
				put[field](v)
			}
		}
		one.Model = p.ModelName(one.Provider, one.Model)
		one.Key, _ = ProfileKey(name, kept, fields[name])
		out[name] = one
	}
	return out
}

// hooks returns the hooks of the settings file, in its order.
func (s *Settings) hooks() (list []setup.Hook, err error) {
	names, fields := Table(Hooks, s.Values, s.File)
	for _, name := range names {
		text := func(member string) string { return fields[name][member].Value.Text }
		h := setup.Hook{Name: name, On: text("on"), Tool: text("tool"), Command: text("command"), Failure: text("on_failure")}
		h.Timeout = time.Duration(max(fields[name]["timeout"].Number(), 0)) * time.Millisecond
		if problem := h.Check(); problem != "" {
			return nil, broken("use the hook "+name, problem, "mend [hooks."+name+"] in "+s.Path)
		}
		list = append(list, h)
	}
	return list, nil
}

// Millis rounds up to milliseconds: a small limit must not become 0, which means none.
func Millis(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }

// ImportedModes returns the file of the modes that were imported. Only Roost writes it. Roost never writes the user's
// own custom_modes.yaml, whose modes count before these.
func ImportedModes(settings string) string {
	return filepath.Join(filepath.Dir(settings), "imported_modes.json")
}

// table returns the settings of one table of the file, by their names in the table: the profile of each mode or source.
func (s *Settings) table(name string) map[string]string {
	out := map[string]string{}
	for key, v := range s.Values {
		if entry, ok := strings.CutPrefix(key, name+"."); ok && v.Value.Text != "" {
			out[entry] = v.Value.Text
		}
	}
	return out
}

// Servers returns the files that name MCP servers, and the folder with the user's decisions about them.
func (p Place) Servers(s *Settings) mcp.Files {
	dir := filepath.Dir(s.Path)
	return mcp.Files{
		Own: filepath.Join(dir, "mcp.json"), Editors: p.editorFiles(s, "mcp_settings.json", "cline_mcp_settings.json"),
		Choices: mcp.Choices{Dir: filepath.Join(dir, "mcp_allowed")}, Logins: mcp.Logins{Dir: filepath.Join(dir, "mcp_logins")},
	}
}

// editorFiles returns the files with such names in the settings folders of the editors' storages that tasks are read
// from.
func (p Place) editorFiles(s *Settings, names ...string) (files []string) {
	dirs, auto := p.Sources(s)
	if auto {
		dirs = append(dirs, editorFolders()...)
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

// editorFolders returns the folders in which editors and tools of this machine keep their storages; not all of them
// exist.
func editorFolders() []string {
	env, err := roofmt.SystemEnv()
	if err != nil {
		return nil
	}
	return api.Each(roofmt.DefaultStorages(env), func(place roofmt.Storage) string { return place.Dir })
}

// Sources returns the folders of other tools that the user named; auto reports whether storages that are found on
// this machine are read, too.
func (p Place) Sources(s *Settings) (dirs []string, auto bool) {
	text := p.named(s, "sources")
	auto = text == ""
	for _, dir := range List(text) {
		switch dir {
		case "auto":
			auto = true
		case "none":
		default:
			dirs = append(dirs, p.Abs(dir))
		}
	}
	return dirs, auto
}

// Engine returns what the engine needs in addition to a task's own settings. Keys and addresses of providers may come
// from the file where the variables are unset.
func (p Place) Engine(s *Settings) (setup.Config, error) {
	kept, err := p.Secrets()
	if err != nil {
		return setup.Config{}, err
	}
	byEnv := map[string]string{}
	for _, v := range s.Values {
		if !v.Key.Secret {
			byEnv[v.Key.Env] = v.Value.Text
		}
	}
	late := map[string]func() (string, error){}
	for _, name := range setup.Providers() {
		switch key, origin := p.ProviderKey(name, kept, s); {
		case key != "":
			byEnv[setup.KeyVariables(name)[0]] = key
		case origin == RingOrigin:
			late[name] = kept.ringKey(name)
		}
	}
	c := setup.ConfigFromEnv(func(name string) string {
		if text := byEnv[name]; text != "" {
			return text
		}
		return p.Env(name)
	})
	c.LateKeys = late
	c.PreferKeyed()
	if provider := s.Text("provider"); provider != "" && provider != c.Provider {
		c.Provider, c.Model = provider, "" // the default model is another provider's
	}
	if model := s.Text("model"); model != "" {
		c.Model = p.ModelName(c.Provider, model)
	}
	c.MaxDayMicros = max(s.Values["max_cost_day"].Number(), 0)
	if c.Home = p.Env("HOME"); c.Home == "" {
		c.Home, _ = os.UserHomeDir() // without one there are no rules in it
	}
	c.Settings, c.ModeProfiles = filepath.Dir(s.Path), s.table(ModeProfiles)
	const modes = "custom_modes.yaml" // beside Roost's settings, and in the editors' storages that tasks are read from
	c.ModeFiles = append([]string{filepath.Join(c.Settings, modes), ImportedModes(s.Path)}, p.editorFiles(s, modes)...)
	c.Servers, c.Env = p.Servers(s), p.Env
	// Not the whole folder: a file that ROOST_CONFIG names may lie among the user's own files. The files of modes are
	// guarded because they give rights and go to every model, those of servers because Roost runs what they name.
	c.Guarded = slices.Concat([]string{
		s.Path, filepath.Join(c.Settings, SecretFile), filepath.Join(c.Settings, lockFile), filepath.Join(c.Settings, mode.ImportedRules),
		c.Servers.Own, c.Servers.Choices.Dir, c.Servers.Logins.Dir,
	}, c.ModeFiles, c.Servers.Editors)
	// These folders hold the root's keys and what a person typed.
	for variable, fallback := range map[string]string{"XDG_STATE_HOME": ".local/state", "XDG_CACHE_HOME": ".cache"} {
		if dir, err := p.Home(variable, fallback); err == nil {
			c.Guarded = append(c.Guarded, dir)
		}
	}
	if dir := p.Env("XDG_RUNTIME_DIR"); dir != "" {
		c.Guarded = append(c.Guarded, filepath.Join(dir, "roost"))
	}
	if c.Home != "" {
		c.Guarded = append(c.Guarded, filepath.Join(c.Home, ".roo"), filepath.Join(c.Home, ".agents"))
	}
	c.Linter = s.Text("linter")
	c.NoCheckpoints = s.Text("checkpoints") == "off"
	c.CheckpointFile, c.CheckpointSurvey = s.Values["checkpoint_file"].Number(), s.Values["checkpoint_survey"].Number()
	c.CheckpointStore = s.Values["checkpoint_store"].Number()
	c.IncludeTools, c.ExcludeTools = s.Values["tools.include"].Value.List, s.Values["tools.exclude"].Value.List
	if name, problem := setup.CheckTools(c.IncludeTools, c.ExcludeTools); problem != "" {
		return setup.Config{}, broken("use the setting tools.include or tools.exclude", fmt.Sprintf("%q: %s", name, problem),
			"roost config set tools.exclude NAME...  # tools are named as in Roo Code, e.g. apply_patch")
	}
	c.PrivateHosts = s.Values["web.private_hosts"].Value.List
	if err := setup.CheckPrivateHosts(c.PrivateHosts); err != nil {
		return setup.Config{}, broken("use the setting web.private_hosts", err.Error(), "roost config set web.private_hosts localhost:8080")
	}
	if c.Hooks, err = s.hooks(); err != nil {
		return setup.Config{}, err
	}
	c.Notify = notify.Config{
		Command: s.Text("notify_command"),
		Webhook: s.Text("notify_webhook"),
		Ends:    s.Text("notify_on"),
		Text:    s.Text("notify_text") == "true",
		After:   time.Duration(s.Values["notify_after"].Number()) * time.Millisecond,
	}
	if base := s.Text("base_url"); base != "" && c.Provider != "" {
		c.BaseURLs[c.Provider] = base
	}
	c.Profiles, c.SourceProfiles = p.profiles(s, kept), s.table(SourceProfiles)
	c.Defaults = func(c setup.Choice) (setup.Choice, bool) { return p.Defaults(s, c) }
	return c, nil
}
