package app

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/money"
)

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
	// Not the folder: a file that ROOST_CONFIG names may lie among the user's own.
	c.Guarded = []string{s.path, filepath.Join(filepath.Dir(s.path), SecretFile)}
	c.ModeFiles = a.modeFiles(s.path)
	if c.Home = a.Env("HOME"); c.Home == "" {
		c.Home, _ = os.UserHomeDir() // without one there are no rules in it
	}
	c.Settings, c.ModeProfiles = filepath.Dir(s.path), modeProfiles(s)
	c.Guarded = append(c.Guarded, filepath.Join(c.Settings, mode.ImportedRules))
	// their content gives rights, and goes to every model
	c.Guarded = append(c.Guarded, c.ModeFiles...)
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
	c.Servers, c.Env = a.mcpPlaces(s.path), a.Env
	c.Guarded = append(append(c.Guarded, c.Servers.Own, c.Servers.Choices.Dir), c.Servers.Editors...) // what is in them is run
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
		return setup.Config{}, &failure.Failure{Exit: failure.ExitConfig, Code: "configuration",
			What: "use the setting tools.include or tools.exclude", Why: fmt.Sprintf("%q: %s", name, problem),
			Try: "roost config set tools.exclude NAME...  # tools are named as in Roo Code, e.g. apply_patch"}
	}
	if base := s.Text("base_url"); base != "" && c.Provider != "" {
		c.BaseURLs[c.Provider] = base
	}
	c.Profiles, c.SourceProfiles = a.profiles(s, kept), sourceProfiles(s)
	c.Defaults = func(c setup.Choice) (setup.Choice, bool) { return a.defaults(s, c) }
	return c, nil
}
