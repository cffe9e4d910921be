package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/atomicfile"
)

// KnownKey finds a setting by its name.
func KnownKey(name string) (config.Key, error) {
	k, ok := config.Find(name)
	if !ok {
		f := failure.Usage("use the setting "+name, "there is no such setting", "roost config list")
		if near := config.Closest(name); near != "" {
			f.Try, f.Suggestions = "roost config get "+near, []string{near}
		}
		return k, f
	}
	return k, nil
}

// ConfigSet changes a setting, or takes it out when there is no value. It works on the file alone: what is wrong
// elsewhere in it must not keep the user from changing it.
func (a *App) ConfigSet(name string, values []string) error {
	k, known := KnownKey(name)
	if known != nil && len(values) > 0 {
		return known
	}
	v := config.Value{IsList: k.List, List: values}
	if !k.List && len(values) > 1 {
		return failure.Usage("roost config set "+name, "it takes one value", "roost config set "+name+" VALUE")
	}
	if !k.List && len(values) == 1 {
		v.Text = values[0]
	}
	path, f, err := a.ConfigFile()
	if err != nil {
		return err
	}
	if _, there := f.Get(name); known != nil && !there {
		return known // what nothing reads can still be taken out
	}
	text := f.Without(name)
	if len(values) > 0 {
		err := k.Check(v)
		if err == nil && strings.HasSuffix(name, "base_url") {
			err = setup.CheckAddress(v.Text) // a file with such an address is read; the request to it is refused
		}
		if err != nil {
			return failure.Usage("roost config set "+name+" "+strings.Join(values, " "), err.Error(), "roost config set "+name+" VALUE")
		}
		if name == "root" && !filepath.IsAbs(v.Text) { // it would be another folder wherever roost is called
			return failure.Usage("roost config set root "+v.Text, "the folder is not absolute", "roost config set root "+failure.ShellWord(a.Abs(v.Text)))
		}
		text = f.With(name, v)
	}
	if _, err := config.Parse(text); err != nil { // never leave a file that cannot be read
		return fmt.Errorf("change the settings %s: the result cannot be read, so it was not written: %w", path, err)
	}
	if err := Replace(path, text); err != nil {
		return fmt.Errorf("change the settings: %w", err)
	}
	if known == nil && a.Env(k.Env) != "" {
		a.Warn(k.Env + " is set and overrides the file")
	}
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
