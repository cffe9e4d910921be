package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zalando/go-keyring"
	"golang.org/x/term"

	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/inputfile"
)

// SecretFile is where `auth set` keeps keys: a file apart from the settings, because people
// show and share those.
const SecretFile = "auth.toml"

// Secrets are the keys of the file, by their names in it: a provider's name, or "profiles."
// and a profile's.
type Secrets struct {
	Path string
	File *config.File
}

// Key is the key that is kept under a name, "" when there is none.
func (s *Secrets) Key(name string) string {
	e, _ := s.File.Get(name)
	return e.Value.Text
}

// Secrets reads the file of keys; one that does not exist is empty. A file that
// others may read is refused: its keys may be known by now.
func (a *App) Secrets() (*Secrets, error) {
	settings, err := a.ConfigPath()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(filepath.Dir(settings), SecretFile)
	refuse := func(why, try string) error {
		return failure.Config("read the keys in "+path, why, try)
	}
	f, err := inputfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return &Secrets{path, &config.File{}}, nil
	}
	if err != nil {
		return nil, refuse(err.Error(), "make it readable for you alone: chmod 600 "+failure.ShellWord(path))
	}
	defer f.Close()
	info, err := f.Stat() // of the opened file: the path may name another one by now
	if err != nil {
		return nil, refuse(err.Error(), "look at the file")
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, refuse(fmt.Sprintf("others than you may open it (mode %04o), so it is not used", mode), "chmod 600 "+failure.ShellWord(path))
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, refuse(err.Error(), "look at the file")
	}
	file, err := config.Parse(data)
	if syntax, is := errors.AsType[*config.SyntaxError](err); is {
		// The parser's words may quote the line, and the line holds a key.
		return nil, refuse(fmt.Sprintf("line %d cannot be read", syntax.Line),
			fmt.Sprintf("mend line %d, or delete the file and use roost auth set", syntax.Line))
	}
	return &Secrets{path, file}, err
}

// longestKey bounds a key, in bytes: no provider's key is that long.
const longestKey = 8 << 10

// ReadKey takes a key from a prompt that does not show it, or from stdin.
func (a *App) ReadKey(ctx context.Context, of string) (string, error) {
	try := "echo \"$KEY\" | roost auth set " + of
	text, err := "", error(nil)
	if a.InTTY {
		if a.Flags.NoInput {
			return "", failure.New(failure.ExitInput, "input_needed", "read the key", "--no-input is set, and stdin is a terminal", try)
		}
		text, err = a.hidden(ctx, "key for "+of+" (not shown): ")
	} else {
		text, err = bufio.NewReader(io.LimitReader(a.In, longestKey+2)).ReadString(0)
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		return "", err
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", failure.Usage("roost auth set "+of, "there is no key on stdin", try)
	case len(text) > longestKey, strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "", failure.Usage("roost auth set "+of, "the input is no key: it holds blanks or characters that no key has, or is too long", try)
	}
	return text, nil
}

// hidden asks on the terminal without showing the input. On a signal it restores the
// terminal, which would show no input afterwards otherwise.
func (a *App) hidden(ctx context.Context, prompt string) (string, error) {
	f, ok := a.In.(*os.File)
	if !ok {
		return "", errors.New("read the key: stdin is no terminal after all")
	}
	fd := int(f.Fd())
	was, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Fprint(a.Err, prompt)
	text, err := await(ctx, func() ([]byte, error) { return term.ReadPassword(fd) })
	if ctx.Err() != nil {
		_ = term.Restore(fd, was)
	}
	fmt.Fprintln(a.Err)
	switch {
	case ctx.Err() != nil:
		return "", failure.New(failure.ExitInterrupt, "cancelled", "read the key", "it was stopped; nothing was changed",
			"the same command again")
	case err != nil && !errors.Is(err, io.EOF):
		return "", fmt.Errorf("read the key: %w", err)
	}
	return string(text), nil
}

// Ends returns the last characters of a key; "" for a key so short that they would reveal
// half of it.
func Ends(key string) string {
	if len(key) < 16 {
		return ""
	}
	return key[len(key)-4:]
}

// KeyVariable is the variable that holds a provider's key now, "" when none does.
func (a *App) KeyVariable(provider string) string {
	for _, v := range setup.KeyVariables(provider) {
		if a.Env(v) != "" {
			return v
		}
	}
	return ""
}

// ProviderKey finds a provider's key: variable, keyring, file of keys, settings. The
// keyring is not opened: for a key in it only the origin is given.
func (a *App) ProviderKey(provider string, kept *Secrets, s *Settings) (key, origin string) {
	if v := a.KeyVariable(provider); v != "" {
		return a.Env(v), v
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
func ProfileKey(name string, kept *Secrets, fields map[string]config.Setting) (key, origin string) {
	if key := kept.Key("profiles." + name); key != "" {
		return key, kept.Path
	}
	return fields["api_key"].Value.Text, fields["api_key"].Origin
}

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

// InTime runs one call to the keyring, and waits for it no longer than KeyringWait.
func InTime[T any](ctx context.Context, call func() (T, error)) (T, error) {
	if !keyringThere() {
		return *new(T), errNoKeyring
	}
	ctx, cancel := context.WithTimeoutCause(ctx, KeyringWait, fmt.Errorf("it did not answer in %s", KeyringWait))
	defer cancel()
	return await(ctx, call)
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
		return failure.New(failure.ExitConfig, "keyring", "keep the key for "+of+" in the system's keyring", err.Error(),
			"roost auth set "+of+" keeps it in a file for you alone")
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
		return failure.New(failure.ExitConfig, "keyring", "forget the key for "+of+" in the system's keyring", err.Error(),
			"remove "+failure.ShellWord(s.entry(name))+" of "+KeyringService+" with your system's own program; roost auth set "+of+
				" keeps another key in a file")
	}
	return a.Rewrite(s, s.File.Without(KeyringMark(name)))
}

// RingOrigin is how a status names the keyring as the origin of a key.
const RingOrigin = "the system's keyring"

// ringKeys read keys on first use, each once; nil for no names.
func (a *App) ringKeys(s *Secrets, names []string) map[string]func() (string, error) {
	var out map[string]func() (string, error)
	for _, name := range names {
		if out == nil {
			out = map[string]func() (string, error){}
		}
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

// Replace writes a file whole or not at all. It may hold keys, so only its owner may
// read it. A link is followed: people keep their settings elsewhere.
func Replace(path string, data []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data)
}
