package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/task"
)

func TestEachLimitReplacesItself(t *testing.T) {
	has := task.Limits{MaxTurns: 10, MaxCostMicros: 500, IdleTimeoutMS: 1000, TotalTimeoutMS: 60_000}
	for _, c := range []struct {
		name        string
		given, want task.Limits
	}{
		{"none", task.Limits{}, has},
		{"turns", task.Limits{MaxTurns: 3}, task.Limits{MaxTurns: 3, MaxCostMicros: 500, IdleTimeoutMS: 1000, TotalTimeoutMS: 60_000}},
		{"cost", task.Limits{MaxCostMicros: 9}, task.Limits{MaxTurns: 10, MaxCostMicros: 9, IdleTimeoutMS: 1000, TotalTimeoutMS: 60_000}},
		{"two times", task.Limits{IdleTimeoutMS: 5, TotalTimeoutMS: 6}, task.Limits{MaxTurns: 10, MaxCostMicros: 500, IdleTimeoutMS: 5, TotalTimeoutMS: 6}},
		{"turns taken away", task.Limits{MaxTurns: -1}, task.Limits{MaxCostMicros: 500, IdleTimeoutMS: 1000, TotalTimeoutMS: 60_000}},
		{"all taken away", task.Limits{MaxTurns: -1, MaxCostMicros: -1, IdleTimeoutMS: -1, TotalTimeoutMS: -1}, task.Limits{}},
	} {
		if diff := cmp.Diff(c.want, limits(has, c.given)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestSettings(t *testing.T) {
	e := &Engine{opt: Options{Config: Config{Provider: "anthropic", Model: "from-config"}}}
	kept := task.Settings{
		Workspace: "/w", Mode: "architect", Provider: "script", Model: "a.yaml", BaseURL: "http://old", Approve: "read",
		Allow: []string{"go test"}, Limits: task.Limits{MaxTurns: 4},
	}
	for _, c := range []struct {
		name string
		has  task.Settings
		give Request
		want func(*task.Settings)
	}{
		{"a task keeps what it has", kept, Request{}, func(*task.Settings) {}},
		{"what is given replaces it", kept, Request{Mode: "code", Approve: "all", Deny: []string{"rm"}}, func(s *task.Settings) {
			s.Mode, s.Approve, s.Deny = "code", "all", []string{"rm"}
		}},
		{"an empty list is a list", kept, Request{Allow: []string{}}, func(s *task.Settings) { s.Allow = []string{} }},
		{"condensing can be left out", kept, Request{Condense: -1}, func(s *task.Settings) { s.Condense = -1 }},
		{"one limit", kept, Request{Limits: &task.Limits{MaxCostMicros: 7}}, func(s *task.Settings) { s.Limits.MaxCostMicros = 7 }},
		{"another provider's model means nothing", kept, Request{Provider: "anthropic"}, func(s *task.Settings) {
			s.Provider, s.Model, s.BaseURL = "anthropic", providers["anthropic"].model, ""
		}},
		{"the same provider's does", kept, Request{Provider: "script"}, func(*task.Settings) {}},
		{"the configuration comes last", task.Settings{Workspace: "/w"}, Request{}, func(s *task.Settings) {
			*s = task.Settings{Workspace: "/w", Mode: "code", Condense: condenseAt, Provider: "anthropic", Model: "from-config", Approve: "ask"}
		}},
		{"a model that was named stays", task.Settings{Workspace: "/w"}, Request{Model: "mine"}, func(s *task.Settings) {
			*s = task.Settings{Workspace: "/w", Mode: "code", Condense: condenseAt, Provider: "anthropic", Model: "mine", Approve: "ask"}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.has
			want.Condense = condenseAt
			c.want(&want)
			got, err := e.settings(c.has, c.give)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestSettingsThatCannotBe(t *testing.T) {
	e := &Engine{}
	var config *ConfigError
	_, err := e.settings(task.Settings{Workspace: "/w"}, Request{Approve: "maybe"})
	if !errors.As(err, &config) || !strings.Contains(config.Try, "ask, read, edits or all") {
		t.Errorf("policy: %v", err)
	}
	_, err = e.settings(task.Settings{}, Request{})
	if !errors.As(err, &config) || !strings.Contains(config.Try, "-C") {
		t.Errorf("workspace: %v", err)
	}
	for provider, try := range map[string]string{
		"": "ANTHROPIC_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY",
		"google": "GEMINI_API_KEY", "openai-compatible": "OPENAI_COMPATIBLE_BASE_URL", "openrouter": "anthropic, openai, google",
	} {
		if _, err = e.provider(task.Settings{Provider: provider}); !errors.As(err, &config) || !strings.Contains(config.Try, try) {
			t.Errorf("provider %q: %v", provider, err)
		}
	}
	if _, err = e.provider(task.Settings{Provider: "script", Model: filepath.Join(t.TempDir(), "none.yaml")}); !errors.As(err, &config) {
		t.Errorf("script: %v", err)
	}
}

func TestConfigFromEnv(t *testing.T) {
	env := func(vars map[string]string) Config {
		c := ConfigFromEnv(func(name string) string { return vars[name] })
		c.Zone = ""
		return c
	}
	if diff := cmp.Diff(Config{Keys: map[string]string{}, BaseURLs: map[string]string{}}, env(nil)); diff != "" {
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
		if diff := cmp.Diff(c.want, env(c.vars)); diff != "" {
			t.Error(name, diff)
		}
	}
	want := Config{
		Provider: "anthropic", Model: providers["anthropic"].model,
		Keys: map[string]string{"anthropic": "k"}, BaseURLs: map[string]string{"anthropic": "http://127.0.0.1:1"},
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
		if got := zone(time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone(c.name, c.offset))); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestGitHead(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no repository", nil, ""},
		{"a branch", map[string]string{"HEAD": "ref: refs/heads/main\n", "refs/heads/main": "abc123\n"}, "abc123"},
		{"detached", map[string]string{"HEAD": "abc123\n"}, "abc123"},
		{"no commit yet", map[string]string{"HEAD": "ref: refs/heads/main\n"}, "refs/heads/main (no commit found)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range c.files {
				path := filepath.Join(root, ".git", filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := gitHead(root); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestDifferences(t *testing.T) {
	was := task.Settings{Workspace: "/w", Provider: "anthropic", Model: "a", Mode: "code"}
	ran := &task.State{Settings: was, Run: &task.Run{Head: "abc"}}
	for _, c := range []struct {
		name  string
		state *task.State
		now   func(*task.Settings)
		head  string
		want  []string
	}{
		{"nothing", ran, func(*task.Settings) {}, "abc", nil},
		{"another model", ran, func(s *task.Settings) { s.Model = "b" }, "abc", []string{"model: a -> b"}},
		{"what was not set is no change", &task.State{}, func(*task.Settings) {}, "abc", nil},
		{"files moved on", ran, func(*task.Settings) {}, "def", []string{"the workspace's HEAD has changed since the last run: abc -> def"}},
		{"git is gone", ran, func(*task.Settings) {}, "", []string{"the workspace's HEAD has changed since the last run: abc -> none"}},
		{"another workspace has another HEAD", ran, func(s *task.Settings) { s.Workspace = "/x" }, "def", []string{"workspace: /w -> /x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := was
			c.now(&now)
			if diff := cmp.Diff(c.want, differences(c.state, now, c.head)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
