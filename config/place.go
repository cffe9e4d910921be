package config

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/inputfile"
)

// Kind classifies errors about settings.
type Kind int

// The kinds of errors.
const (
	Misused Kind = iota // the request itself is wrong: an unknown name, a value that does not fit
	Broken              // a file, or something that this machine must have, is wrong
	Missing             // a name that does not exist
	Taken               // a name that is already in use
)

// Error is the reason why settings cannot be read or changed. Its Try is a command line.
type Error struct {
	Kind        Kind
	Code        string // for programs
	What        string // the attempted act, and its object
	Why         string
	Try         string // what to do
	Suggestions []string
}

func (e *Error) Error() string { return e.What + ": " + e.Why }

func misused(what, why, try string) *Error { return &Error{Misused, "usage", what, why, try, nil} }

func broken(what, why, try string) *Error {
	return &Error{Broken, "configuration", what, why, try, nil}
}

func missing(code, what, why, try string) *Error { return &Error{Missing, code, what, why, try, nil} }

// Place locates the settings of one user: files that the environment names, and the flags of a program. Its methods
// read and write the files; it keeps no state.
type Place struct {
	Env   func(string) string
	Dir   string            // absolute; relative names are relative to it
	Flags map[string]string // settings that flags of the program name: root, cache, sources, server
	Warn  func(string)      // gets notes for the user on a finished change; nil: they are dropped
}

func (p Place) warn(text string) {
	if p.Warn != nil {
		p.Warn(text)
	}
}

// Path returns the settings file, which need not exist.
func (p Place) Path() (string, error) {
	if path := p.Env("ROOST_CONFIG"); path != "" {
		return p.Abs(path), nil
	}
	dir, err := p.Home("XDG_CONFIG_HOME", ".config")
	return filepath.Join(dir, "config.toml"), err
}

// Home returns Roost's folder under an XDG variable, or under the platform's counterpart of it.
func (p Place) Home(variable, fallback string) (string, error) {
	if dir := p.Env(variable); filepath.IsAbs(dir) { // the XDG rules: a relative one is ignored
		return filepath.Join(dir, "roost"), nil
	}
	if runtime.GOOS == "windows" {
		place := "LOCALAPPDATA"
		if variable == "XDG_CONFIG_HOME" || variable == "XDG_STATE_HOME" { // the keys lie apart from the root
			place = "APPDATA"
		}
		if dir := p.Env(place); dir != "" {
			return filepath.Join(dir, "roost"), nil
		}
	}
	home := p.Env("HOME")
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", &Error{Broken, "no_home", "find Roost's folders", err.Error(), "roost --root DIR ...", nil}
		}
	}
	if runtime.GOOS == "darwin" {
		switch variable {
		case "XDG_DATA_HOME":
			fallback = "Library/Application Support"
		case "XDG_CACHE_HOME":
			fallback = "Library/Caches"
		}
	}
	return filepath.Join(home, filepath.FromSlash(fallback), "roost"), nil
}

// Abs returns the absolute path of a folder that is relative to the current one, or, behind ~/, to the user's home.
func (p Place) Abs(dir string) string {
	if rest, ok := strings.CutPrefix(dir, "~/"); ok {
		dir = filepath.Join(p.Env("HOME"), rest)
	}
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(p.Dir, dir)
}

// File reads the settings file; one that does not exist is empty.
func (p Place) File() (string, *File, error) {
	path, err := p.Path()
	if err != nil {
		return "", nil, err
	}
	data, err := inputfile.Read(path)
	err = ofLink(path, err)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return path, nil, broken("read the settings "+path, err.Error(), "mend the file, or name another one in ROOST_CONFIG")
	}
	f, err := Parse(data)
	if syntax, is := errors.AsType[*SyntaxError](err); is {
		return path, nil, broken("read the settings "+path, syntax.Error(), fmt.Sprintf("mend line %d of %s", syntax.Line, path))
	}
	return path, f, err
}

// ofLink returns the error of reading a file. A link to nothing is not a file that does not exist: its target may be on
// a disk that is missing now.
func ofLink(path string, err error) error {
	if target, no := os.Readlink(path); no == nil && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it is a link to %s, which does not exist", target)
	}
	return err
}

// Settings are the values of the settings file and the environment.
type Settings struct {
	Path     string // of the file
	File     *File
	Values   map[string]Setting
	Warnings []string // about lines that belong to no setting
}

// Text returns a setting's value, "" when it is not set.
func (s *Settings) Text(key string) string { return s.Values[key].Value.Text }

// Read reads file and environment.
func (p Place) Read() (*Settings, error) {
	path, f, err := p.File()
	if err != nil {
		return nil, err
	}
	values, unknown, err := Resolve(f, path, p.Env)
	if bad, is := errors.AsType[*ValueError](err); is {
		try := "unset " + bad.Origin // a variable
		if strings.HasPrefix(bad.Origin, path) {
			try = "roost config set " + bad.Key + " VALUE"
		}
		return nil, broken("use the setting "+bad.Key, bad.Origin+": "+bad.Problem, try)
	}
	if err != nil {
		return nil, fmt.Errorf("read the settings %s: %w", path, err)
	}
	s := &Settings{Path: path, File: f, Values: values}
	for _, w := range unknown {
		hint := ""
		if w.Closest != "" {
			hint = "; " + w.Closest + " is one"
		}
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s:%d: nothing is called %s%s", path, w.Line, w.Key, hint))
	}
	return s, nil
}

// named returns the value of a setting that a flag may override, "" when it is not set.
func (p Place) named(s *Settings, key string) string { return cmp.Or(p.Flags[key], s.Text(key)) }

// List splits a list of folders, and removes the blanks around them.
func List(text string) []string {
	return api.Some(strings.Split(text, ","), func(part string) (string, bool) {
		part = strings.TrimSpace(part)
		return part, part != ""
	})
}

// KnownKey finds a setting by its name.
func KnownKey(name string) (Key, error) {
	k, ok := Find(name)
	if !ok {
		f := misused("use the setting "+name, "there is no such setting", "roost config list")
		if near := Closest(name); near != "" {
			f.Try, f.Suggestions = "roost config get "+near, []string{near}
		}
		return k, f
	}
	return k, nil
}

// Set changes a setting, or removes it when there is no value. It reads only the file: errors in other parts of the
// file must not keep the user from changing it.
func (p Place) Set(ctx context.Context, name string, values []string) error {
	return p.Locked(ctx, func() error { return p.set(name, values) })
}

// set is Set under the lock.
func (p Place) set(name string, values []string) error {
	if len(values) == 0 {
		return p.change(nil, []string{name})
	}
	return p.change(map[string][]string{name: values}, nil)
}

// Change sets settings and removes others, all or none. Like Set, it reads only the file.
func (p Place) Change(ctx context.Context, set map[string][]string, unset []string) error {
	return p.Locked(ctx, func() error { return p.change(set, unset) })
}

// change is Change under the lock.
func (p Place) change(set map[string][]string, unset []string) error {
	path, f, err := p.File()
	if err != nil {
		return err
	}
	var over []string
	for _, name := range append(slices.Sorted(maps.Keys(set)), unset...) {
		var text []byte
		k, known := KnownKey(name)
		if values, sets := set[name]; sets {
			if known != nil {
				return known
			}
			if text, err = p.with(f, k, values); err != nil {
				return err
			}
		} else {
			if text = f.Without(name); known != nil && bytes.Equal(text, f.Text()) {
				return known // what nothing reads can still be taken out
			}
		}
		if f, err = Parse(text); err != nil { // never leave a file that cannot be read
			return fmt.Errorf("change the settings %s: the result cannot be read, so it was not written: %w", path, err)
		}
		if known == nil && p.Env(k.Env) != "" {
			over = append(over, k.Env+" is set and overrides the file")
		}
	}
	if err := Replace(path, f.Text()); err != nil {
		return fmt.Errorf("change the settings: %w", err)
	}
	for _, text := range over {
		p.warn(text)
	}
	return nil
}

// with returns the text of a file with one setting changed or added, if the setting takes the values.
func (p Place) with(f *File, k Key, values []string) ([]byte, error) {
	name, v := k.Name, Value{IsList: k.List, List: values}
	if !k.List && len(values) != 1 {
		return nil, misused("roost config set "+name, "it takes one value", "roost config set "+name+" VALUE")
	}
	if !k.List {
		v.Text = values[0]
	}
	err := k.Check(v)
	if err == nil && slices.Contains(values, "") {
		err = errors.New("a value is empty; roost config unset " + name + " removes the setting")
	}
	if err == nil && !utf8.ValidString(strings.Join(values, "")) {
		err = errors.New("a value is not UTF-8, as the file must be")
	}
	if all := append(setup.Providers(), "script"); err == nil && (name == "provider" || strings.HasSuffix(name, ".provider")) {
		err = oneOf(all, v.Text) // a file with another name is read: a newer version may know it
	}
	if err == nil && strings.HasSuffix(name, "base_url") {
		err = setup.CheckAddress(v.Text) // a file with such an address is read; the request to it is refused
	}
	if err != nil {
		return nil, misused("roost config set "+name, err.Error(), "roost config set "+name+" VALUE") // without the value: it may hold a secret
	}
	if (name == "root" || name == "cache") && !filepath.IsAbs(v.Text) { // it would be another folder wherever roost is called
		set := "roost config set " + name + " "
		return nil, misused(set+v.Text, "the folder is not absolute", set+api.ShellWord(p.Abs(v.Text)))
	}
	return f.With(name, v), nil
}

// lockFile is the file, beside the settings file, whose lock a process holds while it changes a file of the user.
const lockFile = "roost.lock"

// lockWait limits how long a change waits for another process. The other process may wait for the system's keyring: a
// key changes in the keyring and in the file under one lock.
var lockWait = KeyringWait + 10*time.Second

// lockPause is the time between two tries of the lock: a change takes a few syncs of a disk.
const lockPause = 5 * time.Millisecond

// Locked calls change while no other process changes a file of the user: settings, keys, MCP servers, imported modes.
// All of them have one lock, so change must not call a method that takes it. Its result must depend only on what it
// reads itself. Reading needs no lock: each file is replaced whole.
//
// The lock is that of the settings' folder. Processes that reach one file from two such folders, by a link or in a
// workspace, do not exclude each other.
func (p Place) Locked(ctx context.Context, change func() error) (err error) {
	path, err := p.Path()
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	file := filepath.Join(dir, lockFile)
	limited, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	var release func() error
	if err = os.MkdirAll(dir, 0o700); err == nil {
		release, err = filelock.Hold(limited, file, lockPause)
	}
	what := "change the settings in " + dir
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return fmt.Errorf("%s: %w", what, err)
	case errors.Is(err, context.DeadlineExceeded):
		return broken(what, "another process changes them: it locked "+file+", and "+lockWait.String()+" were not enough",
			"try again; if it stays so, end the other roost")
	case err != nil:
		return broken(what, err.Error(), "look at the folder: you must be able to write there")
	}
	defer func() { err = cmp.Or(err, release()) }()
	return change()
}

// Replace writes a file whole or not at all. The file may hold keys, so only its owner may read it. Replace follows a
// link: people keep their settings elsewhere. The caller holds the lock that Locked takes.
func Replace(path string, data []byte) error {
	path = inputfile.Resolved(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data)
}
