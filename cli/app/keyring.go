package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/cli/failure"
)

// KeyringService is the service name of Roost's keys in the system's keyring.
const KeyringService = "roost"

// KeyringWait is how long the keyring may take. It may ask the person for its password,
// and a service that hangs must not hang us for ever.
var KeyringWait = 30 * time.Second

// KeyringMark is the entry of the file of keys for a key that is in the keyring. Without it
// Roost does not open the keyring: that costs time, and may open a window.
func KeyringMark(name string) string { return "keyring." + name }

// InKeyring reports whether the file of keys places a provider's key in the keyring.
func (s *Secrets) InKeyring(name string) bool {
	e, _ := s.File.Get(KeyringMark(name))
	return e.Value.Text == "true"
}

// entry is a key's name in the keyring. It contains the settings' folder: two folders
// (ROOST_CONFIG) have separate keys.
func (s *Secrets) entry(name string) string { return name + " (" + filepath.Dir(s.Path) + ")" }

var errNoKeyring = errors.New("this system has no keyring service that answers (no D-Bus session)")

// InTime runs one call to the keyring. A call of the library cannot be cancelled: its goroutine
// stays behind when the call hangs.
func InTime[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type outcome struct {
		val T
		err error
	}
	var none T
	if !keyringThere() {
		return none, errNoKeyring
	}
	done := make(chan outcome, 1)
	go func() {
		val, err := call()
		done <- outcome{val, err}
	}()
	late := time.NewTimer(KeyringWait)
	defer late.Stop()
	select {
	case o := <-done:
		return o.val, o.err
	case <-late.C:
		return none, fmt.Errorf("it did not answer in %s", KeyringWait)
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// keyringThere keeps the library from searching where no keyring exists: the search would
// start a service.
func keyringThere() bool {
	switch runtime.GOOS {
	case "darwin", "windows":
		return true
	}
	if os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), fmt.Sprintf("/run/user/%d", os.Getuid())} {
		if info, err := os.Stat(filepath.Join(dir, "bus")); dir != "" && err == nil && info.Mode()&os.ModeSocket != 0 {
			return true
		}
	}
	return false
}

// RingSet stores a key in the keyring and marks it in the file of keys. Reading it back
// shows that Roost can get it again.
func (a *App) RingSet(ctx context.Context, s *Secrets, name, of, key string) error {
	_, err := InTime(ctx, func() (bool, error) {
		if err := keyring.Set(KeyringService, s.entry(name), key); err != nil {
			return false, err
		}
		back, err := keyring.Get(KeyringService, s.entry(name))
		if err == nil && back != key {
			err = errors.New("it returned another value")
		}
		return true, err
	})
	if err != nil {
		return ringFailure("keep the key for "+of+" in the system's keyring", err, "roost auth set "+of+" keeps it in a file for you alone")
	}
	if s.Key(name) != "" { // the file must not hold it any more
		if err := a.Rewrite(s, s.File.Without(name)); err != nil {
			return err
		}
	}
	return a.Rewrite(s, s.File.With(KeyringMark(name), config.Value{Text: "true"}))
}

// RingRemove takes a key out of the keyring, and its mark out of the file.
func (a *App) RingRemove(ctx context.Context, s *Secrets, name, of string) error {
	_, err := InTime(ctx, func() (bool, error) { return true, keyring.Delete(KeyringService, s.entry(name)) })
	if err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return ringFailure("forget the key for "+of+" in the system's keyring", err,
			"remove "+failure.ShellWord(s.entry(name))+" of "+KeyringService+" with your system's own program; roost auth set "+of+
				" keeps another key in a file")
	}
	return a.Rewrite(s, s.File.Without(KeyringMark(name)))
}

// RingOrigin is the origin of such a key in a status.
const RingOrigin = "the system's keyring"

// ringKeys reads keys on first use, each once; nil for no names.
func (a *App) ringKeys(s *Secrets, names []string) map[string]func() (string, error) {
	if len(names) == 0 {
		return nil
	}
	out := map[string]func() (string, error){}
	for _, name := range names {
		out[name] = a.ringKey(s, name)
	}
	return out
}

func (a *App) ringKey(s *Secrets, name string) func() (string, error) {
	var mu sync.Mutex
	had := ""
	return func() (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if had != "" {
			return had, nil
		}
		key, err := InTime(context.Background(), func() (string, error) { return keyring.Get(KeyringService, s.entry(name)) })
		switch {
		case errors.Is(err, keyring.ErrNotFound):
			return "", errors.New("the system's keyring no longer holds the key")
		case err != nil:
			return "", fmt.Errorf("the system's keyring did not return the key: %w", err)
		}
		had = strings.TrimSpace(key)
		return had, nil
	}
}

func ringFailure(what string, err error, try string) error {
	return &failure.Failure{Exit: failure.ExitConfig, Code: "keyring", What: what, Why: err.Error(), Try: try}
}

// Rewrite puts the file of keys in its place.
func (a *App) Rewrite(s *Secrets, text []byte) error {
	next, err := config.Parse(text)
	if err == nil {
		err = Replace(s.Path, text)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", s.Path, err)
	}
	s.File = next
	return nil
}
