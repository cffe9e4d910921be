package setup

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

func TestEachLimitReplacesItself(t *testing.T) {
	has := api.RunLimits{MaxTurns: 10, MaxCostMicros: 500, IdleTimeoutMS: 1000, TotalTimeoutMS: 60_000}
	for _, c := range []struct {
		name        string
		given, want api.RunLimits
	}{
		{"none", api.RunLimits{}, has},
		{"turns", api.RunLimits{MaxTurns: 3}, api.RunLimits{MaxTurns: 3, MaxCostMicros: 500, IdleTimeoutMS: 1000, TotalTimeoutMS: 60_000}},
		{"cost", api.RunLimits{MaxCostMicros: 9}, api.RunLimits{MaxTurns: 10, MaxCostMicros: 9, IdleTimeoutMS: 1000, TotalTimeoutMS: 60_000}},
		{"two times", api.RunLimits{IdleTimeoutMS: 5, TotalTimeoutMS: 6}, api.RunLimits{MaxTurns: 10, MaxCostMicros: 500, IdleTimeoutMS: 5, TotalTimeoutMS: 6}},
		{"turns taken away", api.RunLimits{MaxTurns: -1}, api.RunLimits{MaxCostMicros: 500, IdleTimeoutMS: 1000, TotalTimeoutMS: 60_000}},
		{"all taken away", api.RunLimits{MaxTurns: -1, MaxCostMicros: -1, IdleTimeoutMS: -1, TotalTimeoutMS: -1}, api.RunLimits{}},
	} {
		if diff := cmp.Diff(c.want, replaceLimits(has, c.given)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestSettings(t *testing.T) {
	e := Resolver{Config: Config{Provider: "anthropic", Model: "from-config"}}
	kept := task.Settings{
		Workspace: "/w", Mode: "architect", Provider: "script", Model: "a.yaml", BaseURL: "http://old", Approve: "read",
		Allow: []string{"go test"}, Limits: api.RunLimits{MaxTurns: 4},
	}
	for _, c := range []struct {
		name string
		has  task.Settings
		give Choice
		want func(*task.Settings)
	}{
		{"a task keeps what it has", kept, Choice{}, func(*task.Settings) {}},
		{"what is given replaces it", kept, Choice{Mode: "code", Approve: "all", Deny: []string{"rm"}}, func(s *task.Settings) {
			s.Mode, s.Approve, s.Deny = "code", "all", []string{"rm"}
		}},
		{"an empty list is a list", kept, Choice{Allow: []string{}}, func(s *task.Settings) { s.Allow = []string{} }},
		{"condensing can be left out", kept, Choice{Condense: -1}, func(s *task.Settings) { s.Condense = -1 }},
		{"one limit", kept, Choice{Limits: &api.RunLimits{MaxCostMicros: 7}}, func(s *task.Settings) { s.Limits.MaxCostMicros = 7 }},
		{"another provider's model means nothing", kept, Choice{Provider: "anthropic"}, func(s *task.Settings) {
			s.Provider, s.Model, s.BaseURL = "anthropic", providers["anthropic"].model, ""
		}},
		{"the same provider's does", kept, Choice{Provider: "script"}, func(*task.Settings) {}},
		{"the configuration comes last", task.Settings{Workspace: "/w"}, Choice{}, func(s *task.Settings) {
			*s = task.Settings{Workspace: "/w", Mode: "code", Condense: defaultCondense, Provider: "anthropic", Model: "from-config", Approve: "ask"}
		}},
		{"a model that was named stays", task.Settings{Workspace: "/w"}, Choice{Model: "mine"}, func(s *task.Settings) {
			*s = task.Settings{Workspace: "/w", Mode: "code", Condense: defaultCondense, Provider: "anthropic", Model: "mine", Approve: "ask"}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.has
			want.Condense = defaultCondense
			c.want(&want)
			got, err := e.Settings(c.has, c.give)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestSettingsThatCannotBe(t *testing.T) {
	e := Resolver{}
	var config *Error
	_, err := e.Settings(task.Settings{Workspace: "/w"}, Choice{Approve: "maybe"})
	if !errors.As(err, &config) || !strings.Contains(config.Try, "ask, read, edits or all") {
		t.Errorf("policy: %v", err)
	}
	_, err = e.Settings(task.Settings{}, Choice{})
	if !errors.As(err, &config) || !strings.Contains(config.Try, "-C") {
		t.Errorf("workspace: %v", err)
	}
	for provider, try := range map[string]string{
		"": "ANTHROPIC_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY",
		"google": "GEMINI_API_KEY", "openai-compatible": "OPENAI_COMPATIBLE_BASE_URL", "openrouter": "anthropic, openai, google",
	} {
		if _, err = e.Provider(task.Settings{Provider: provider}); !errors.As(err, &config) || !strings.Contains(config.Try, try) {
			t.Errorf("provider %q: %v", provider, err)
		}
	}
	if _, err = e.Provider(task.Settings{Provider: "script", Model: filepath.Join(t.TempDir(), "none.yaml")}); !errors.As(err, &config) {
		t.Errorf("script: %v", err)
	}
}

func TestConfigFromEnv(t *testing.T) {
	env := func(vars map[string]string) Config {
		c := ConfigFromEnv(func(name string) string { return vars[name] })
		c.Zone = ""
		return c
	}
	if diff := cmp.Diff(Config{Keys: map[string]string{}, BaseURLs: map[string]string{}, Clouds: map[string]string{}}, env(nil)); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct {
		vars map[string]string
		want Config
	}{
		"the first that has a key": {
			map[string]string{"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"},
			Config{Provider: "anthropic", Model: providers["anthropic"].model, Keys: map[string]string{"anthropic": "a", "openai": "o"}, BaseURLs: map[string]string{}},
		},
		"openai alone": {
			map[string]string{"OPENAI_API_KEY": "o", "OPENAI_BASE_URL": "http://127.0.0.1:2"},
			Config{Provider: "openai", Model: providers["openai"].model, Keys: map[string]string{"openai": "o"}, BaseURLs: map[string]string{"openai": "http://127.0.0.1:2"}},
		},
		"google under its other name": {
			map[string]string{"GOOGLE_API_KEY": "g"},
			Config{Provider: "google", Model: providers["google"].model, Keys: map[string]string{"google": "g"}, BaseURLs: map[string]string{}},
		},
		"a server that imitates is never guessed": {
			map[string]string{"OPENROUTER_API_KEY": "r", "OPENAI_COMPATIBLE_BASE_URL": "http://127.0.0.1:3"},
			Config{Keys: map[string]string{"openai-compatible": "r"}, BaseURLs: map[string]string{"openai-compatible": "http://127.0.0.1:3"}},
		},
	} {
		c.want.Clouds = map[string]string{}
		if diff := cmp.Diff(c.want, env(c.vars)); diff != "" {
			t.Error(name, diff)
		}
	}
	want := Config{
		Provider: "anthropic", Model: providers["anthropic"].model,
		Keys: map[string]string{"anthropic": "k"}, BaseURLs: map[string]string{"anthropic": "http://127.0.0.1:1"},
		Clouds: map[string]string{},
	}
	if diff := cmp.Diff(want, env(map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"})); diff != "" {
		t.Error(diff)
	}
}

func TestZone(t *testing.T) {
	for _, c := range []struct {
		name   string
		offset int
		want   string
	}{
		{"UTC", 0, "UTC, UTC+0:00"}, {"CET", 3600, "CET, UTC+1:00"}, {"IST", 5*3600 + 1800, "IST, UTC+5:30"},
		{"NST", -(3*3600 + 1800), "NST, UTC-3:30"},
	} {
		if got := zoneName(time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone(c.name, c.offset))); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
