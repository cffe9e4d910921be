package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/clitest"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// What the files say of profiles is what the engine is told: limits in its units, and
// the key of the file of keys before that of the settings.
func TestProfilesReachTheEngine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.toml")
	fixture.NoError(t, os.WriteFile(file, []byte(`[profiles.work]
provider = "anthropic"
api_key = "sk-of-the-settings"
max_tokens = 9000
max_turns = 0
max_cost = "0.50"
idle_timeout = "90s"
total_timeout = "0s"
allow = ["go test"]
[profiles.play]
provider = "script"
model = "x.yaml"
api_key = "sk-play"
roo_name = "my play"
[source_profiles]
roo-12ab = "work"
`), 0o600))
	fixture.NoError(t, os.WriteFile(filepath.Join(dir, config.SecretFile), []byte("openai = \"sk-openai\"\n[profiles]\nwork = \"sk-of-the-keys\"\n"), 0o600))
	a, _, _ := clitest.New(t, "ROOST_CONFIG="+file)
	got, err := a.EngineConfig()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]setup.Profile{
		"work": {
			Choice: setup.Choice{Provider: "anthropic", MaxTokens: 9000, Allow: []string{"go test"},
				Limits: &api.RunLimits{MaxTurns: -1, MaxCostMicros: 500_000, IdleTimeoutMS: 90_000, TotalTimeoutMS: -1}},
			Key: "sk-of-the-keys",
		},
		"play": {Choice: setup.Choice{Provider: "script", Model: filepath.Join(a.Dir, "x.yaml"), Limits: &api.RunLimits{}}, Key: "sk-play", Foreign: "my play"},
	}
	if diff := cmp.Diff(want, got.Profiles, cmpopts.IgnoreUnexported(setup.Choice{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"roo-12ab": "work"}, got.SourceProfiles); diff != "" {
		t.Error(diff)
	}
	if got.Keys["openai"] != "sk-openai" || got.Provider != "openai" {
		t.Errorf("a key that was kept names no provider: %q %q", got.Provider, got.Keys["openai"])
	}
}

// Only so much of a key is shown that its owner knows it again.
func TestEnds(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"": "", "abcd": "", "sk-456789012345": "", "sk-4567890123456": "3456", strings.Repeat("x", 200) + "tail": "tail"} {
		if got := config.Ends(key); got != want {
			t.Errorf("%d characters end in %q", len(key), got)
		}
	}
}

// Any of a provider's variables goes before what is kept, and is named.
func TestTheVariableThatHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ env, provider, want string }{
		{"GOOGLE_API_KEY=k", "google", "GOOGLE_API_KEY"}, {"OPENROUTER_API_KEY=k", "openai-compatible", "OPENROUTER_API_KEY"},
		{"OPENAI_API_KEY=", "openai", ""}, {"OPENAI_API_KEY=k", "anthropic", ""}, {"OPENAI_API_KEY=k", "profiles.openai", ""},
	} {
		a, _, _ := clitest.New(t, c.env)
		if got := a.Place().KeyVariable(c.provider); got != c.want {
			t.Errorf("%s for %s: %q", c.env, c.provider, got)
		}
	}
}
