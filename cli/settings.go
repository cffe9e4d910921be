package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/money"
)

// settings are what file and environment say. They are read when a command needs
// them: a broken file must not keep anybody from `help` or `config path`.
type settings struct {
	path   string
	file   *config.File
	values map[string]config.Setting
}

// text is a setting's value, "" when nobody has set it.
func (s *settings) text(key string) string { return s.values[key].Value.Text }

// configPath is the settings file, which need not exist.
func (a *App) configPath() (string, error) {
	if path := a.Env("ROOST_CONFIG"); path != "" {
		return a.abs(path), nil
	}
	dir, err := a.home("XDG_CONFIG_HOME", ".config")
	return filepath.Join(dir, "config.toml"), err
}

// configFile reads the settings file; one that does not exist is empty.
func (a *App) configFile() (string, *config.File, error) {
	path, err := a.configPath()
	if err != nil {
		return "", nil, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = nil, nil
	}
	if err != nil {
		return path, nil, &Failure{Exit: ExitConfig, Code: "configuration", What: "read the settings " + path, Why: err.Error(),
			Try: "mend the file, or name another one in ROOST_CONFIG"}
	}
	f, err := config.Parse(data)
	var syntax *config.SyntaxError
	if errors.As(err, &syntax) {
		return path, nil, &Failure{Exit: ExitConfig, Code: "configuration", What: "read the settings " + path,
			Why: syntax.Error(), Try: fmt.Sprintf("mend line %d of %s", syntax.Line, path)}
	}
	return path, f, err
}

// settings reads file and environment once. Lines that nothing reads are told.
func (a *App) settings() (*settings, error) {
	if a.loaded != nil {
		return a.loaded, nil
	}
	path, f, err := a.configFile()
	if err != nil {
		return nil, err
	}
	values, warnings, err := config.Resolve(f, path, a.Env)
	var bad *config.ValueError
	if errors.As(err, &bad) {
		return nil, &Failure{Exit: ExitConfig, Code: "configuration", What: "use the setting " + bad.Key, Why: bad.Origin + ": " + bad.Problem,
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
		a.warn(fmt.Sprintf("%s:%d: nothing is called %s%s", path, w.Line, w.Key, hint))
	}
	a.loaded = &settings{path: path, file: f, values: values}
	return a.loaded, nil
}

// global is the value of a global flag: given, or set, or "".
func (a *App) global(flag, key string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	s, err := a.settings()
	if err != nil {
		return "", err
	}
	return s.text(key), nil
}

// engineConfig is what the engine needs beside a task's own settings. Keys and
// addresses of providers may stand in the file where the variables are unset.
func (a *App) engineConfig() (engine.Config, error) {
	s, err := a.settings()
	if err != nil {
		return engine.Config{}, err
	}
	kept, err := a.secrets()
	if err != nil {
		return engine.Config{}, err
	}
	byEnv := map[string]string{}
	for _, v := range s.values {
		if !v.Key.Secret {
			byEnv[v.Key.Env] = v.Value.Text
		}
	}
	var late []string
	for _, p := range engine.Providers() {
		switch key, origin := a.providerKey(p, kept, s); {
		case key != "":
			byEnv[engine.KeyVariables(p)[0]] = key
		case origin == ringOrigin:
			late = append(late, p)
		}
	}
	c := engine.ConfigFromEnv(func(name string) string {
		if text := byEnv[name]; text != "" {
			return text
		}
		return a.Env(name)
	})
	c.LateKeys = a.ringKeys(kept, late)
	c.Prefer()
	if provider := s.text("provider"); provider != "" && provider != c.Provider {
		c.Provider, c.Model = provider, "" // the default model is another provider's
	}
	if model := s.text("model"); model != "" {
		c.Model = a.modelName(c.Provider, model)
	}
	if usd, err := money.Parse(s.text("max_cost_day")); err == nil && usd > 0 {
		c.MaxDayMicros = int64(usd)
	}
	// Not the folder: a file that ROOST_CONFIG names may lie among the user's own.
	c.Guarded = []string{s.path, filepath.Join(filepath.Dir(s.path), secretFile)}
	c.ModeFiles = a.modeFiles(s.path)
	if c.Home = a.Env("HOME"); c.Home == "" {
		c.Home, _ = os.UserHomeDir() // without one there are no rules in it
	}
	c.Settings, c.ModeProfiles = filepath.Dir(s.path), modeProfiles(s)
	c.Guarded = append(c.Guarded, filepath.Join(c.Settings, mode.ImportedRules))
	c.Guarded = append(c.Guarded, c.ModeFiles...) // what is in them gives rights, and is told to every model
	if c.Home != "" {
		c.Guarded = append(c.Guarded, filepath.Join(c.Home, ".roo"), filepath.Join(c.Home, ".agents"))
	}
	c.Servers, c.Env = a.mcpPlaces(s.path), a.Env
	c.Guarded = append(append(c.Guarded, c.Servers.Own, c.Servers.Choices.Dir), c.Servers.Editors...) // what is in them is run
	c.Linter = s.text("linter")
	c.NoCheckpoints = s.text("checkpoints") == "off"
	for key, to := range map[string]*int64{"checkpoint_file": &c.CheckpointFile, "checkpoint_survey": &c.CheckpointSurvey, "checkpoint_store": &c.CheckpointStore} {
		if text := s.text(key); text != "" {
			*to, _ = config.Bytes(text) // it was checked when it was read
		}
	}
	c.IncludeTools, c.ExcludeTools = s.values["tools.include"].Value.List, s.values["tools.exclude"].Value.List
	if name, problem := engine.CheckTools(c.IncludeTools, c.ExcludeTools); problem != "" {
		return engine.Config{}, &Failure{Exit: ExitConfig, Code: "configuration", What: "use the setting tools.include or tools.exclude", Why: fmt.Sprintf("%q: %s", name, problem),
			Try: "roost config set tools.exclude NAME...  # tools are named as in Roo Code, e.g. apply_patch"}
	}
	if base := s.text("base_url"); base != "" && c.Provider != "" {
		c.BaseURLs[c.Provider] = base
	}
	c.Profiles, c.SourceProfiles = a.profiles(s, kept), sourceProfiles(s)
	return c, nil
}

// modelName makes the file of a scripted model absolute: it is named from where
// the person stands, and the task keeps it.
func (a *App) modelName(provider, model string) string {
	if provider != "script" || model == "" || model == "demo" {
		return model
	}
	return a.abs(model)
}

// presets reports whether any setting would fill in a flag of a run.
func (a *App) presets(cmd *cobra.Command) (bool, error) {
	s, err := a.settings()
	if err != nil {
		return false, err
	}
	for _, k := range config.Keys {
		if fills(cmd, k) && s.values[k.Name].Set() {
			return true, nil
		}
	}
	return false, nil
}

// fills reports whether a setting stands for a flag of the command itself.
func fills(cmd *cobra.Command, k config.Key) bool {
	return k.Flag != "" && cmd.LocalNonPersistentFlags().Lookup(k.Flag) != nil && cmd.InheritedFlags().Lookup(k.Flag) == nil
}

// named reports whether it was said for this very command who is to be asked.
func (a *App) named(cmd *cobra.Command) bool {
	f := cmd.Flags()
	return f.Changed("provider") || f.Changed("profile") || a.Env("ROOST_PROVIDER") != "" || a.Env("ROOST_PROFILE") != ""
}

// told reports whether it was said for this very command who is to be asked, or which
// model.
func (a *App) told(cmd *cobra.Command) bool {
	f := cmd.Flags()
	return a.named(cmd) || f.Changed("model") || f.Changed("base-url") || a.Env("ROOST_MODEL") != "" || a.Env("ROOST_BASE_URL") != ""
}

// fill sets the flags of a run that were not given from the settings. Model and
// address belong to the provider that is set, and not to another one; a profile that
// was named in a higher place goes before each of what it sets.
func (a *App) fill(cmd *cobra.Command) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	flags := cmd.Flags()
	given := flags.Lookup("provider").Value.String()
	other := given != "" && given != s.text("provider")
	profile := s.values["profile"]
	switch fromEnv := profile.Origin == profile.Key.Env; {
	case flags.Changed("profile"):
		profile.Value.Text, profile.Origin = flags.Lookup("profile").Value.String(), "--profile"
	case flags.Changed("provider"), !fromEnv && s.values["provider"].Origin == "ROOST_PROVIDER":
		profile.Value.Text, profile.Origin = "", config.Default // who is asked was named in a higher place
	}
	_, fields := config.Profiles(s.values, s.file)
	inProfile := fields[profile.Value.Text]
	for _, k := range config.Keys {
		v := s.values[k.Name]
		if k.Name == "profile" {
			v = profile
		}
		if !fills(cmd, k) || flags.Changed(k.Flag) || !v.Set() {
			continue
		}
		if other && (k.Name == "model" || k.Name == "base_url") || k.Name == "approve" && flags.Changed("yes") {
			continue
		}
		if profile.Set() && k.Name != "profile" && (profile.Origin == "--profile" || profile.Origin == profile.Key.Env || v.Origin != k.Env) {
			switch _, sets := inProfile[k.Name]; {
			case sets, k.Name == "provider", k.Name == "model", k.Name == "base_url":
				continue
			}
		}
		texts := v.Value.List
		if !v.Value.IsList {
			texts = []string{v.Value.Text}
		}
		for _, text := range texts {
			if err := flags.Set(k.Flag, text); err != nil {
				return &Failure{Exit: ExitConfig, Code: "configuration", What: "use the setting " + k.Name, Why: v.Origin + ": " + err.Error(),
					Try: "roost config set " + k.Name + " VALUE"}
			}
		}
	}
	return nil
}

// home is roost's folder under an XDG variable, or the platform's like.
func (a *App) home(variable, fallback string) (string, error) {
	if dir := a.Env(variable); filepath.IsAbs(dir) { // the XDG rules: a relative one is ignored
		return filepath.Join(dir, "roost"), nil
	}
	if runtime.GOOS == "windows" {
		place := "LOCALAPPDATA"
		if variable == "XDG_CONFIG_HOME" {
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
			return "", &Failure{Exit: ExitConfig, Code: "no_home", What: "find Roost's folders", Why: err.Error(),
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

func (a *App) abs(dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(a.Dir, dir)
}

// list splits a list of folders; blanks around them do not count.
func list(text string) []string {
	var out []string
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
