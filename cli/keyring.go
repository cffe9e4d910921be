package cli

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
)

// keyringService is the service name of Roost's keys in the system's keyring.
const keyringService = "roost"

// keyringWait is how long the keyring may take. It may ask the person for its password,
// and a service that hangs must not hang us for ever.
var keyringWait = 30 * time.Second

// keyringMark is the entry of the file of keys for a key that is in the keyring. Without it
// Roost does not open the keyring: that costs time, and may open a window.
func keyringMark(name string) string { return "keyring." + name }

// inKeyring reports whether the file of keys places a provider's key in the keyring.
func (s *secrets) inKeyring(name string) bool {
	e, _ := s.file.Get(keyringMark(name))
	return e.Value.Text == "true"
}

// entry is a key's name in the keyring. It contains the settings' folder: two folders
// (ROOST_CONFIG) have separate keys.
func (s *secrets) entry(name string) string { return name + " (" + filepath.Dir(s.path) + ")" }

var errNoKeyring = errors.New("this system has no keyring service that answers (no D-Bus session)")

// inTime runs one call to the keyring. A call of the library cannot be cancelled: its goroutine
// stays behind when the call hangs.
func inTime[T any](ctx context.Context, call func() (T, error)) (T, error) {
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
	late := time.NewTimer(keyringWait)
	defer late.Stop()
	select {
	case o := <-done:
		return o.val, o.err
	case <-late.C:
		return none, fmt.Errorf("it did not answer in %s", keyringWait)
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

// ringSet stores a key in the keyring and marks it in the file of keys. Reading it back
// shows that Roost can get it again.
func (a *App) ringSet(ctx context.Context, s *secrets, name, of, key string) error {
	_, err := inTime(ctx, func() (bool, error) {
		if err := keyring.Set(keyringService, s.entry(name), key); err != nil {
			return false, err
		}
		back, err := keyring.Get(keyringService, s.entry(name))
		if err == nil && back != key {
			err = errors.New("it returned another value")
		}
		return true, err
	})
	if err != nil {
		return ringFailure("keep the key for "+of+" in the system's keyring", err, "roost auth set "+of+" keeps it in a file for you alone")
	}
	if s.key(name) != "" { // the file must not hold it any more
		if err := a.rewrite(s, s.file.Without(name)); err != nil {
			return err
		}
	}
	return a.rewrite(s, s.file.With(keyringMark(name), config.Value{Text: "true"}))
}

// ringRemove takes a key out of the keyring, and its mark out of the file.
func (a *App) ringRemove(ctx context.Context, s *secrets, name, of string) error {
	_, err := inTime(ctx, func() (bool, error) { return true, keyring.Delete(keyringService, s.entry(name)) })
	if err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return ringFailure("forget the key for "+of+" in the system's keyring", err,
			"remove "+shellWord(s.entry(name))+" of "+keyringService+" with your system's own program; roost auth set "+of+
				" keeps another key in a file")
	}
	return a.rewrite(s, s.file.Without(keyringMark(name)))
}

// ringOrigin is the origin of such a key in a status.
const ringOrigin = "the system's keyring"

// ringKeys reads keys on first use, each once; nil for no names.
func (a *App) ringKeys(s *secrets, names []string) map[string]func() (string, error) {
	if len(names) == 0 {
		return nil
	}
	out := map[string]func() (string, error){}
	for _, name := range names {
		out[name] = a.ringKey(s, name)
	}
	return out
}

func (a *App) ringKey(s *secrets, name string) func() (string, error) {
	var mu sync.Mutex
	had := ""
	return func() (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if had != "" {
			return had, nil
		}
		key, err := inTime(context.Background(), func() (string, error) { return keyring.Get(keyringService, s.entry(name)) })
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
	return &Failure{Exit: ExitConfig, Code: "keyring", What: what, Why: err.Error(), Try: try}
}

// rewrite puts the file of keys in its place.
func (a *App) rewrite(s *secrets, text []byte) error {
	next, err := config.Parse(text)
	if err == nil {
		err = replace(s.path, text)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	s.file = next
	return nil
}
