package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/inputfile"
)

// SecretFile is the file in which `auth set` stores keys: it is not the settings file, because people show and share
// that one.
const SecretFile = "auth.toml"

// Secrets are the keys in that file, by their names in it: a provider's name, or "profiles." and a profile's name.
type Secrets struct {
	Path string
	File *File
}

// Key returns the key that is stored under a name, "" when there is none.
func (s *Secrets) Key(name string) string {
	e, _ := s.File.Get(name)
	return e.Value.Text
}

// Secrets reads the file of keys; one that does not exist is empty. It refuses a file that others may read: its keys
// may be known by now.
func (p Place) Secrets() (*Secrets, error) {
	settings, err := p.Path()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(filepath.Dir(settings), SecretFile)
	refuse := func(why, try string) error {
		return broken("read the keys in "+path, why, try)
	}
	f, err := inputfile.Open(path)
	err = ofLink(path, err)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return &Secrets{path, &File{}}, nil
	}
	if err != nil {
		return nil, refuse(err.Error(), "make it a file that is readable for you alone: chmod 600 "+api.ShellWord(path))
	}
	defer f.Close()
	info, err := f.Stat() // of the opened file: the path may name another one by now
	if err != nil {
		return nil, refuse(err.Error(), "look at the file")
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, refuse(fmt.Sprintf("others than you may open it (mode %04o), so it is not used", mode), "chmod 600 "+api.ShellWord(path))
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, refuse(err.Error(), "look at the file")
	}
	file, err := Parse(data)
	if syntax, is := errors.AsType[*SyntaxError](err); is {
		// The parser's words may quote the line, and the line holds a key.
		return nil, refuse(fmt.Sprintf("line %d cannot be read", syntax.Line),
			fmt.Sprintf("mend line %d, or delete the file and use roost auth set", syntax.Line))
	}
	for _, e := range file.Entries {
		if e.table != e.Key && e.table != "profiles" && !strings.HasPrefix(e.Key, KeyringMark("")) {
			return nil, refuse(fmt.Sprintf(`line %d is below [%s]; a key is one line: openai = "KEY", or NAME = "KEY" below [profiles]`, e.Line, e.table),
				fmt.Sprintf("mend line %d", e.Line))
		}
	}
	return &Secrets{path, file}, nil
}

// LongestKey bounds a key, in bytes: no provider's key is that long.
const LongestKey = 8 << 10

// CheckKey returns an error for a text that cannot be a key of any provider. The error does not repeat the text.
func CheckKey(text string) error {
	if len(text) > LongestKey || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("the input is no key: it holds blanks or characters that no key has, or is too long")
	}
	return nil
}

// Ends returns the last characters of a key; "" for a key so short that they would reveal
// half of it.
func Ends(key string) string {
	if len(key) < 16 {
		return ""
	}
	return key[len(key)-4:]
}

// KeyVariable returns the variable that holds a provider's key now, "" when none does.
func (p Place) KeyVariable(provider string) string {
	for _, v := range setup.KeyVariables(provider) {
		if p.Env(v) != "" {
			return v
		}
	}
	return ""
}

// ProviderKey finds a provider's key: variable, keyring, file of keys, settings. It does not open the keyring: for a
// key there, it returns only the origin.
func (p Place) ProviderKey(provider string, kept *Secrets, s *Settings) (key, origin string) {
	if v := p.KeyVariable(provider); v != "" {
		return p.Env(v), v
	}
	if kept.InKeyring(provider) {
		return "", RingOrigin
	}
	if key := kept.Key(provider); key != "" {
		return key, kept.Path
	}
	v := s.Values["providers."+provider+".api_key"]
	if v.Value.Text == "" {
		return "", ""
	}
	return v.Value.Text, v.Origin
}

// ProfileKey finds the key that belongs to one profile alone.
func ProfileKey(name string, kept *Secrets, fields map[string]Setting) (key, origin string) {
	if key := kept.Key("profiles." + name); key != "" {
		return key, kept.Path
	}
	return fields["api_key"].Value.Text, fields["api_key"].Origin
}

// KeyringService is the service name of Roost's keys in the system's keyring.
const KeyringService = "roost"

// KeyringWait limits the time for a call to the keyring. The keyring may ask the person for its password, and a
// service that hangs must not delay Roost for ever.
var KeyringWait = 30 * time.Second

// KeyringMark returns the entry of the file of keys for a key that is in the keyring. Without it Roost does not open
// the keyring: that costs time, and may open a window.
func KeyringMark(name string) string { return "keyring." + name }

// InKeyring reports whether the file of keys places a provider's key in the keyring.
func (s *Secrets) InKeyring(name string) bool {
	e, _ := s.File.Get(KeyringMark(name))
	return e.Value.Text == "true"
}

// entry returns a key's name in the keyring. It contains the settings' folder: two folders (ROOST_CONFIG) have
// separate keys.
func (s *Secrets) entry(name string) string { return name + " (" + filepath.Dir(s.Path) + ")" }

func keyringFailed(what, why, try string) *Error {
	return &Error{Broken, "keyring", what, why, try, nil}
}

var errNoKeyring = errors.New("this system has no keyring service that answers (no D-Bus session)")

// InTime calls the keyring, and waits no longer than KeyringWait.
func InTime[T any](ctx context.Context, call func() (T, error)) (T, error) {
	if !keyringThere() {
		return *new(T), errNoKeyring
	}
	ctx, cancel := context.WithTimeoutCause(ctx, KeyringWait, fmt.Errorf("it did not answer in %s", KeyringWait))
	defer cancel()
	return Await(ctx, call)
}

// keyringThere reports whether this system may have a keyring. Where none exists the library must not search for one: the
// search would start a service.
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
func (p Place) ringSet(ctx context.Context, s *Secrets, name, of, key string) error {
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
		return keyringFailed("keep the key for "+of+" in the system's keyring", err.Error(),
			"roost auth set "+of+" keeps it in a file for you alone")
	}
	split := len(KeyringMark("")) + strings.IndexByte(name, '.') // as in Keep, of the longer name
	if err := s.rewrite(s.File.with(KeyringMark(name), split, Value{Text: "true"})); err != nil {
		return err
	}
	return s.rewrite(s.File.Without(name)) // the file must not hold it any more
}

// ringRemove removes a key from the keyring, and its mark from the file.
func (p Place) ringRemove(ctx context.Context, s *Secrets, name, of string) error {
	_, err := InTime(ctx, func() (bool, error) { return true, keyring.Delete(KeyringService, s.entry(name)) })
	if err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return keyringFailed("forget the key for "+of+" in the system's keyring", err.Error(),
			"remove "+api.ShellWord(s.entry(name))+" of "+KeyringService+" with your system's own program; roost auth set "+of+
				" keeps another key in a file")
	}
	return s.rewrite(s.File.Without(KeyringMark(name)))
}

// RingOrigin is the text for the keyring as the origin of a key.
const RingOrigin = "the system's keyring"

// ringKey returns a function that reads a key from the keyring when it is first called, and keeps it.
func (s *Secrets) ringKey(name string) func() (string, error) {
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

// rewrite replaces the file of keys.
func (s *Secrets) rewrite(text []byte) error {
	next, err := Parse(text)
	if err == nil {
		err = Replace(s.Path, text)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", s.Path, err)
	}
	s.File = next
	return nil
}

// Await waits for a call that cannot be cancelled. When ctx ends first, Await leaves the call's goroutine behind.
func Await[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type outcome struct {
		val T
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		val, err := call()
		done <- outcome{val, err}
	}()
	select {
	case o := <-done:
		return o.val, o.err
	case <-ctx.Done():
		return *new(T), context.Cause(ctx)
	}
}
