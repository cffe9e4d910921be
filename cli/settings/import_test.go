package settings

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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
