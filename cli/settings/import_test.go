package settings

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/clitest"
)

// An import reads and replaces the files of the user under their lock: while another change holds it, nothing is imported.
func TestImportTakesTheLockOfTheSettings(t *testing.T) {
	t.Parallel()
	a, _, _ := clitest.New(t)
	c := &commands{App: a}
	exported := filepath.Join(a.Dir, "exported.json")
	const text = `{"providerProfiles":{"currentApiConfigName":"p","apiConfigs":{"p":{"apiProvider":"anthropic","apiModelId":"m","apiKey":"sk-1"}}},
		"globalSettings":{"customModes":[{"slug":"docs","name":"Docs","roleDefinition":"You write.","groups":["read"]}]}}`
	if err := os.WriteFile(exported, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := a.Place().Path()
	if err != nil {
		t.Fatal(err)
	}
	made := func() (names []string) {
		entries, err := os.ReadDir(filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if err := a.Place().Locked(t.Context(), func() error {
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := c.configImport(stopped, exported, true, false); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled while another change holds the lock", err)
		}
		if got := made(); len(got) != 1 {
			t.Errorf("got %q, want the lock file alone", got)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.configImport(t.Context(), exported, true, false); err != nil {
		t.Fatal(err)
	}
	if got := made(); len(got) != 4 {
		t.Errorf("got %q, want settings, keys and modes beside the lock file", got)
	}
}

// --force replaces the profile of the same name alone: another one whose name begins like it stays, and a key that was
// kept for the replaced one is not sent to the new address.
func TestImportReplacesOneProfile(t *testing.T) {
	t.Parallel()
	a, _, said := clitest.New(t)
	c := &commands{App: a}
	for key, value := range map[string]string{
		"profiles.work.provider": "openai-compatible", "profiles.work.base_url": "https://old.example/v1",
		"profiles.work.fast.provider": "openai",
	} {
		if err := a.Place().Set(t.Context(), key, []string{value}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"profiles.work", "profiles.other"} {
		if _, err := a.Place().SetKey(t.Context(), name, name, "sk-of-"+name, false); err != nil {
			t.Fatal(err)
		}
	}
	exported := filepath.Join(a.Dir, "exported.json")
	const text = `{"providerProfiles":{"currentApiConfigName":"work","apiConfigs":{"work":{"apiProvider":"anthropic","apiModelId":"m"},
		"other":{"apiProvider":"anthropic","apiModelId":"m"}}}}`
	if err := os.WriteFile(exported, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.configImport(t.Context(), exported, false, true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "the key that was kept for it is removed") {
		t.Errorf("got %q, want that the key is removed", said)
	}
	_, f, err := a.Place().File()
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"profiles.work.provider": "anthropic", "profiles.work.base_url": "", "profiles.work.fast.provider": "openai",
	} {
		if e, _ := f.Get(key); e.Value.Text != want {
			t.Errorf("%s: got %q, want %q", key, e.Value.Text, want)
		}
	}
	kept, err := a.Place().Secrets()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"profiles.work": "", "profiles.other": "sk-of-profiles.other"} {
		if got := kept.Key(name); got != want {
			t.Errorf("the key %s: got %q, want %q", name, got, want)
		}
	}
}
