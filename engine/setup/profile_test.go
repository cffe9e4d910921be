package setup

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

func withProfiles() Resolver {
	return Resolver{Config: Config{
		Provider: "anthropic", Model: "from-config", Keys: map[string]string{"anthropic": "sk-general-5678"},
		Profiles: map[string]Profile{
			"work": {
				Choice: Choice{Provider: "anthropic", Model: "claude-opus-5-5", Effort: "high", MaxTokens: 9000, Mode: "architect",
					Approve: "read", Allow: []string{"go test"}, Limits: &api.RunLimits{MaxTurns: 5}},
				Key: "sk-of-work-1234",
			},
			"plain":    {Choice: Choice{Provider: "openai"}},
			"my-local": {Choice: Choice{Provider: "openai-compatible", Model: "qwen", BaseURL: "http://box/v1"}, Foreign: "my local"},
			"half":     {Choice: Choice{Model: "m"}},
		},
		SourceProfiles: map[string]string{"roo-1": "work", "roo-2": "openai", "roo-3": "gone"},
	}}
}

func TestProfiles(t *testing.T) {
	e := withProfiles()
	work := task.Settings{
		Workspace: "/w", Profile: "work", Account: "work", Provider: "anthropic", Model: "claude-opus-5-5", Effort: "high", MaxTokens: 9000,
		Mode: "architect", Approve: "read", Allow: []string{"go test"}, Limits: api.RunLimits{MaxTurns: 5}, Condense: defaultCondense,
	}
	for _, c := range []struct {
		name string
		has  task.Settings
		give Choice
		want func(*task.Settings)
	}{
		{"all of it", task.Settings{Workspace: "/w"}, Choice{Profile: "work"}, func(*task.Settings) {}},
		{"what is given goes before it", task.Settings{Workspace: "/w"}, Choice{Profile: "work", Model: "m", Effort: "low", Mode: "code", MaxTokens: 1, Approve: "all"}, func(s *task.Settings) {
			s.Model, s.Effort, s.Mode, s.MaxTokens, s.Approve = "m", "low", "code", 1, "all"
		}},
		{"a length can be taken away", task.Settings{Workspace: "/w"}, Choice{Profile: "work", MaxTokens: -1}, func(s *task.Settings) { s.MaxTokens = 0 }},
		{"another provider takes neither model nor key along", task.Settings{Workspace: "/w"}, Choice{Profile: "work", Provider: "openai"}, func(s *task.Settings) {
			s.Provider, s.Model, s.Account = "openai", providers["openai"].model, ""
		}},
		{"a task keeps what it was begun with", work, Choice{}, func(*task.Settings) {}},
		{"a profile in a later run replaces the one before", work, Choice{Profile: "plain"}, func(s *task.Settings) {
			s.Profile, s.Account, s.Provider, s.Model, s.Effort, s.MaxTokens = "plain", "", "openai", providers["openai"].model, "", 0
		}},
		{"another tool's name for it is kept", task.Settings{Workspace: "/w"}, Choice{Profile: "my-local"}, func(s *task.Settings) {
			*s = task.Settings{Workspace: "/w", Profile: "my local", Provider: "openai-compatible", Model: "qwen", BaseURL: "http://box/v1", Mode: "code", Approve: "ask", Condense: defaultCondense}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := work
			c.want(&want)
			got, err := e.Settings(c.has, c.give)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
	for name, words := range map[string]string{"nope": "there are half, my-local, plain, work", "half": "no provider"} {
		var config *Error
		if _, err := e.Settings(task.Settings{Workspace: "/w"}, Choice{Profile: name}); !errors.As(err, &config) || !strings.Contains(config.Why, words) {
			t.Errorf("%s: got %v, want errors.As(err, &config) and strings.Contains(config.Why, words)", name, err)
		}
	}
}

// A profile's own key is used for its tasks, masked like every key, and not replaced
// by another one when it is gone.
func TestAProfilesOwnKey(t *testing.T) {
	e := withProfiles()
	s := task.Settings{Provider: "anthropic", Model: "m", Account: "work"}
	choice, err := e.Provider(s)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := choice.Masks.String("a sk-of-work-1234 and b sk-general-5678"); strings.Contains(got, "sk-") {
		t.Errorf("not masked: %s", got)
	}
	var config *Error
	for _, gone := range []string{"plain", "nope"} {
		s.Account = gone
		if _, err := e.Provider(s); !errors.As(err, &config) || !strings.Contains(config.Try, "auth set --profile "+gone) {
			t.Errorf("%s: got %v, want errors.As(err, &config) and strings.Contains(config.Try, \"auth set --profile \"+gone)",
				gone, err)
		}
	}
}

// Who answers a task of another tool that names a profile is found or asked for, and
// never guessed.
func TestTheProfileOfAnotherToolsTask(t *testing.T) {
	e := withProfiles()
	for _, c := range []struct {
		name, source string
		has          task.Settings
		give         Choice
		want         Choice
		told         string
		unknown      bool
	}{
		{"none is named", "roo-9", task.Settings{}, Choice{}, Choice{}, "", false},
		{"it ran here before", "roo-9", task.Settings{Profile: "x", Provider: "script"}, Choice{}, Choice{}, "", false},
		{"a provider is given", "roo-9", task.Settings{Profile: "x"}, Choice{Provider: "script"}, Choice{Provider: "script"}, "", false},
		{"a profile is given", "roo-1", task.Settings{Profile: "x"}, Choice{Profile: "plain"}, Choice{Profile: "plain"}, "", false},
		{"one of that name", "roo-9", task.Settings{Profile: "plain"}, Choice{}, Choice{Profile: "plain"}, "", false},
		{"one that another tool calls so", "roo-9", task.Settings{Profile: "my local"}, Choice{}, Choice{Profile: "my-local"}, "", false},
		{"our name for it is not theirs", "roo-9", task.Settings{Profile: "my-local"}, Choice{}, Choice{}, "", true},
		{"its mode stays", "roo-9", task.Settings{Profile: "work", Mode: "ask"}, Choice{}, Choice{Profile: "work", Mode: "ask"}, "", false},
		{"unknown", "roo-9", task.Settings{Profile: "x"}, Choice{}, Choice{}, "", true},
		{"a model alone names nobody", "roo-9", task.Settings{Profile: "x"}, Choice{Model: "m"}, Choice{}, "", true},
		{"remembered", "roo-1", task.Settings{Profile: "x"}, Choice{}, Choice{Profile: "work", keepName: true}, `"x" is not known here: work`, false},
		{"a provider was remembered", "roo-2", task.Settings{Profile: "x"}, Choice{}, Choice{Provider: "openai"}, `"x" is not known here: openai`, false},
		{"what was remembered is gone", "roo-3", task.Settings{Profile: "x"}, Choice{}, Choice{Profile: "gone", keepName: true}, "gone", false},
		{"said just now", "roo-9", task.Settings{Profile: "x"}, Choice{RunChoice: task.RunChoice{StandIn: "plain"}}, Choice{RunChoice: task.RunChoice{StandIn: "plain"}, Profile: "plain", keepName: true}, "plain", false},
	} {
		got, told, err := e.ResolveProfile(c.source, "t", c.has, c.give)
		var unknown *UnknownProfileError
		if errors.As(err, &unknown) != c.unknown || c.unknown && (unknown.Profile != c.has.Profile || unknown.Source != c.source) {
			t.Errorf("%s: got %v, want errors.As(err, &unknown) = c.unknown and (not c.unknown or (unknown.Profile = c.has.Profile and unknown.Source = c.source))",
				c.name, err)
		}
		if c.unknown {
			continue
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(Choice{})); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", c.name, diff)
		}
		if text := strings.Join(told, "\n"); !strings.Contains(text, c.told) || c.told == "" && text != "" {
			t.Errorf("%s: told %q", c.name, text)
		}
	}
	// A stand-in leaves the task its own name, which goes back into its files.
	s, err := e.Settings(task.Settings{Workspace: "/w", Profile: "x"}, Choice{Profile: "work", keepName: true})
	if err != nil || s.Profile != "x" || s.Account != "work" {
		t.Errorf(`got %v %+v, want no error and s.Profile = "x" and s.Account = "work"`, err, s)
	}
	// What was remembered and is gone is told, not replaced.
	if _, err := e.Settings(task.Settings{Workspace: "/w", Profile: "x"}, Choice{Profile: "gone", keepName: true}); err == nil {
		t.Error("a profile that is gone is used")
	}
}

// The key of one server that goes by openai-compatible is not sent to another.
func TestOpenRoutersKeyStaysWithIt(t *testing.T) {
	for _, c := range []struct {
		key, base string
		strays    bool
	}{
		{"sk-or-v1-1", "https://openrouter.ai/api/v1", false}, {"sk-or-v1-1", "https://eu.openrouter.ai/api/v1", false},
		{"sk-or-v1-1", "http://127.0.0.1:11434/v1", true}, {"sk-or-v1-1", "https://openrouter.ai.evil.example/v1", true},
		{"sk-or-v1-1", "https://evilopenrouter.ai/v1", true}, {"sk-or-v1-1", "https://openrouter.ai@evil.example/v1", true}, {"sk-or-v1-1", "://", true},
		{"sk-other", "http://127.0.0.1:11434/v1", false}, {"", "", false},
	} {
		if got := leaksKey(c.key, c.base); got != c.strays {
			t.Errorf("%s to %s: %v", c.key, c.base, got)
		}
	}
}

func TestEveryProviderTakesAKey(t *testing.T) {
	for _, name := range Providers() {
		vars := KeyVariables(name)
		if len(vars) == 0 {
			t.Fatalf("%s has no variable", name)
		}
		c := ConfigFromEnv(func(v string) string {
			if slices.Contains(vars, v) {
				return "key of " + v
			}
			return ""
		})
		if c.Keys[name] != "key of "+vars[0] {
			t.Errorf("%s: %q, the first variable counts", name, c.Keys[name])
		}
	}
	if KeyVariables("script") != nil || DefaultModel("openai-compatible") != "" {
		t.Error("what is no provider with a key has one")
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string]string{
		"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1",
		"google": "https://generativelanguage.googleapis.com", "openai-compatible": "", "script": "", "none": "",
	} {
		if got := Address(provider); got != want {
			t.Errorf("%s: got %q, want %q", provider, got, want)
		}
	}
}
