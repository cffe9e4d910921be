package app

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/money"
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

// ConfigPath is the settings file, which need not exist.
func (a *App) ConfigPath() (string, error) {
	if path := a.Env("ROOST_CONFIG"); path != "" {
		return a.Abs(path), nil
	}
	dir, err := a.Home("XDG_CONFIG_HOME", ".config")
	return filepath.Join(dir, "config.toml"), err
}

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
		return path, nil, &failure.Failure{Exit: failure.ExitConfig, Code: "configuration", What: "read the settings " + path, Why: err.Error(),
			Try: "mend the file, or name another one in ROOST_CONFIG"}
	}
	f, err := config.Parse(data)
	var syntax *config.SyntaxError
	if errors.As(err, &syntax) {
		return path, nil, &failure.Failure{Exit: failure.ExitConfig, Code: "configuration", What: "read the settings " + path,
			Why: syntax.Error(), Try: fmt.Sprintf("mend line %d of %s", syntax.Line, path)}
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
	var bad *config.ValueError
	if errors.As(err, &bad) {
		return nil, &failure.Failure{Exit: failure.ExitConfig, Code: "configuration", What: "use the setting " + bad.Key,
			Why: bad.Origin + ": " + bad.Problem,
			Try: "roost config set " + bad.Key + " VALUE, or unset " + bad.Origin}
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
	count := func(to *int) func(config.Value) {
		return func(v config.Value) {
			if n, err := strconv.Atoi(v.Text); err == nil && *to == 0 {
				*to = orNone(n)
			}
		}
	}
	amount := func(to *int64) func(config.Value) {
		return func(v config.Value) {
			if usd, err := money.Parse(v.Text); err == nil && *to == 0 {
				*to = orNone(int64(usd))
			}
		}
	}
	span := func(to *int64) func(config.Value) {
		return func(v config.Value) {
			if d, err := time.ParseDuration(v.Text); err == nil && *to == 0 {
				*to = orNone(millis(d))
			}
		}
	}
	never := func(to *int) func(config.Value) {
		return func(v config.Value) {
			if v.Text == "never" {
				v.Text = "0"
			}
			count(to)(v)
		}
	}
	l := r.Limits
	return map[string]func(config.Value){
		"mode":               word(&r.Mode),
		"provider":           word(&r.Provider),
		"model":              word(&r.Model),
		"base_url":           word(&r.BaseURL),
		"effort":             word(&r.Effort),
		"stale":              word(&r.Stale),
		"max_tokens":         count(&r.MaxTokens),
		"condense_at":        never(&r.Condense),
		"approve":            word(&r.Approve),
		"allow":              words(&r.Allow),
		"deny":               words(&r.Deny),
		"allow_tools":        words(&r.AllowTools),
		"ask_tools":          words(&r.AskTools),
		"deny_tools":         words(&r.DenyTools),
		"max_turns":          count(&l.MaxTurns),
		"max_cost":           amount(&l.MaxCostMicros),
		"max_cost_task":      amount(&l.MaxTaskMicros),
		"ask_after_requests": count(&l.AskRequests),
		"ask_after_cost":     amount(&l.AskCostMicros),
		"idle_timeout":       span(&l.IdleTimeoutMS),
		"total_timeout":      span(&l.TotalTimeoutMS),
	}
}

// orNone is a limit as the engine takes it, where a negative one takes a limit away.
func orNone[N int | int64](n N) N {
	if n == 0 {
		return -1
	}
	return n
}

// Home is roost's folder under an XDG variable, or the platform's like.
func (a *App) Home(variable, fallback string) (string, error) {
	if dir := a.Env(variable); filepath.IsAbs(dir) { // the XDG rules: a relative one is ignored
		return filepath.Join(dir, "roost"), nil
	}
	if runtime.GOOS == "windows" {
		place := "LOCALAPPDATA"
		if variable == "XDG_CONFIG_HOME" || variable == "XDG_STATE_HOME" { // the keys lie apart from the root
			place = "APPDATA"
		}
		if dir := a.Env(place); dir != "" {
			return filepath.Join(dir, "roost"), nil
		}
	}
	home := a.Env("HOME")
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", &failure.Failure{Exit: failure.ExitConfig, Code: "no_home", What: "find Roost's folders", Why: err.Error(),
				Try: "roost --root DIR ..."}
		}
	}
	if runtime.GOOS == "darwin" {
		switch variable {
		case "XDG_DATA_HOME":
			fallback = "Library/Application Support"
		case "XDG_CACHE_HOME":
			fallback = "Library/Caches"
		}
	}
	return filepath.Join(home, filepath.FromSlash(fallback), "roost"), nil
}

// Abs is the absolute path of a folder that is relative to the current one.
func (a *App) Abs(dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(a.Dir, dir)
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
