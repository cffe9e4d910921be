package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

const ringTestKey = "sk-ant-0123456789abcd"

// ringApp runs commands of one user, with a keyring in memory. Not in parallel: the
// library has one for the process.
func ringApp(t *testing.T) (file string, run func(stdin string, args ...string) (code int, out, errs string)) {
	t.Helper()
	keyring.MockInit()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	dir := t.TempDir()
	return filepath.Join(dir, "auth.toml"), func(stdin string, args ...string) (int, string, string) {
		a, out, errs := clitest.New(t, "ROOST_CONFIG="+filepath.Join(dir, "config.toml"))
		a.In = strings.NewReader(stdin)
		code := Run(context.Background(), a, args)
		return code, out.String(), errs.String()
	}
}

func TestAKeyInTheKeyring(t *testing.T) {
	file, run := ringApp(t)
	if code, _, errs := run("older-key-in-the-file\n", "auth", "set", "anthropic", "--force"); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := run(ringTestKey+"\n", "auth", "set", "anthropic", "--keyring"); code != 0 || !strings.Contains(errs, "kept in the system's keyring") {
		t.Fatal(code, errs)
	}
	data, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(data), "sk-ant") || strings.Contains(string(data), "older") || !strings.Contains(string(data), "[keyring]\nanthropic = ") {
		t.Errorf("the file holds %s, %v", data, err)
	}

	// Status tells the place without asking the keyring.
	keyring.MockInitWithError(errors.New("nobody may ask"))
	code, out, errs := run("", "auth", "status", "anthropic", "--json")
	var status struct {
		Items []struct {
			Set          bool
			Origin, Ends string
		}
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil || code != 0 || len(status.Items) != 1 {
		t.Fatal(code, out, errs, err)
	}
	if i := status.Items[0]; !i.Set || i.Origin != config.RingOrigin || i.Ends != "" {
		t.Errorf("got %+v, want i.Set and i.Origin = config.RingOrigin and i.Ends = \"\"", i)
	}
}

// The key is had when a task needs it, once, and never when it does not.
func TestAKeyOfTheKeyringIsReadWhenItIsNeeded(t *testing.T) {
	file, run := ringApp(t)
	if code, _, errs := run(ringTestKey+"\n", "auth", "set", "openai", "--keyring", "--force"); code != 0 {
		t.Fatal(errs)
	}
	a, _, _ := clitest.New(t, "ROOST_CONFIG="+filepath.Join(filepath.Dir(file), "config.toml"))
	keyring.MockInitWithError(errors.New("locked"))
	c, err := a.EngineConfig()
	if err != nil || c.Provider != "openai" || c.Model == "" || len(c.Keys) != 0 || len(c.LateKeys) != 1 {
		t.Fatalf(`got %+v, %v, want no error and c.Provider = "openai" and c.Model != "" and len(c.Keys) = 0 and len(c.LateKeys) = 1`,
			c, err)
	}
	if _, err := c.LateKeys["openai"](); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("a locked keyring: %v", err)
	}
	keyring.MockInit()
	if _, err := c.LateKeys["openai"](); err == nil || !strings.Contains(err.Error(), "no longer holds the key") {
		t.Errorf("a key that is gone: %v", err)
	}
	if err := keyring.Set(config.KeyringService, "openai ("+filepath.Dir(file)+")", ringTestKey); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if key, err := c.LateKeys["openai"](); key != ringTestKey || err != nil {
			t.Errorf("got %q, %v, want key = ringTestKey and no error", key, err)
		}
		keyring.MockInitWithError(errors.New("asked a second time"))
	}

	// A run without it is one that has no key, and a script needs none.
	keyring.MockInitWithError(errors.New("locked"))
	code, _, errs := run("", "run", "-C", t.TempDir(), "--root", filepath.Join(t.TempDir(), "root"), "--provider", "openai", "go")
	if code != failure.ExitConfig || !strings.Contains(errs, "locked") || !strings.Contains(errs, "roost auth set openai") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, _, errs := run("", "run", "-C", t.TempDir(), "--root", filepath.Join(t.TempDir(), "root"), "--cache", t.TempDir(), "--provider", "script", "--model", "demo", "--yes", "go"); strings.Contains(errs, "locked") {
		t.Errorf("exit %d: a script asked the keyring: %s", code, errs)
	}
	a, _, _ = clitest.New(t, "ROOST_CONFIG="+filepath.Join(filepath.Dir(file), "config.toml"), "OPENAI_API_KEY=of-the-variable")
	if c, err := a.EngineConfig(); err != nil || c.Keys["openai"] != "of-the-variable" || len(c.LateKeys) != 0 {
		t.Errorf("the variable: %+v, %v", c, err)
	}
}

func TestForgettingAKeyOfTheKeyring(t *testing.T) {
	file, run := ringApp(t)
	set := func(args ...string) {
		t.Helper()
		if code, _, errs := run(ringTestKey+"\n", append([]string{"auth", "set", "google", "--force"}, args...)...); code != 0 {
			t.Fatal(errs)
		}
	}
	entry := "google (" + filepath.Dir(file) + ")"
	set("--keyring")
	if code, _, errs := run("", "auth", "remove", "google"); code != 0 {
		t.Fatal(errs)
	}
	if _, err := keyring.Get(config.KeyringService, entry); !errors.Is(err, keyring.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
	if code, _, errs := run("", "auth", "remove", "google"); code != failure.ExitNotFound {
		t.Errorf("exit %d: %s", code, errs)
	}

	// One that is gone already is forgotten all the same; a new one in the file takes
	// the place of one in the keyring.
	set("--keyring")
	if err := keyring.Delete(config.KeyringService, entry); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := run("", "auth", "remove", "google"); code != 0 {
		t.Fatal(errs)
	}
	set("--keyring")
	set()
	if _, err := keyring.Get(config.KeyringService, entry); !errors.Is(err, keyring.ErrNotFound) {
		t.Errorf("the older one is still there: %v", err)
	}
	if _, out, _ := run("", "auth", "status", "google"); !strings.Contains(out, "auth.toml") || !strings.Contains(out, " ...abcd ") {
		t.Error(out)
	}

	// A keyring that refuses: nothing is lost, and there is a way out.
	set("--keyring")
	keyring.MockInitWithError(errors.New("refused"))
	if code, _, errs := run("", "auth", "remove", "google"); code != failure.ExitConfig || !strings.Contains(errs, "refused") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, out, _ := run("", "auth", "status", "google"); !strings.Contains(out, config.RingOrigin) {
		t.Error(out)
	}
	if code, _, errs := run(ringTestKey+"\n", "auth", "set", "google", "--force"); code != 0 || !strings.Contains(errs, "an older key stays") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, out, _ := run("", "auth", "status", "google"); !strings.Contains(out, "auth.toml") || !strings.Contains(out, " ...abcd ") {
		t.Error(out)
	}
}

// Where there is no keyring, or one that hangs, a person hears of the file.
func TestNoKeyring(t *testing.T) {
	file, run := ringApp(t)
	refused := func(why string) {
		t.Helper()
		code, _, errs := run(ringTestKey+"\n", "auth", "set", "anthropic", "--keyring")
		if code != failure.ExitConfig || !strings.Contains(errs, why) || !strings.Contains(errs, "roost auth set anthropic keeps it in a file") || strings.Contains(errs, "sk-ant") {
			t.Errorf("exit %d: %s", code, errs)
		}
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a file was made: %v", err)
		}
	}
	keyring.MockInitWithError(errors.New("The name org.freedesktop.secrets was not provided")) //nolint:staticcheck // as D-Bus says it
	refused("org.freedesktop.secrets")
	if code, _, _ := run(ringTestKey+"\n", "auth", "set", "--profile", "work", "--keyring"); code != failure.ExitUsage {
		t.Errorf("a profile's key: exit %d", code)
	}

	was := config.KeyringWait
	config.KeyringWait = time.Millisecond
	defer func() { config.KeyringWait = was }()
	hang := make(chan struct{})
	defer close(hang)
	if _, err := config.InTime(t.Context(), func() (bool, error) { <-hang; return true, nil }); err == nil || !strings.Contains(err.Error(), "did not answer in 1ms") {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	config.KeyringWait = time.Hour
	if _, err := config.InTime(ctx, func() (bool, error) { <-hang; return true, nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
