package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/config"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/atomicfile"
)

func (a *App) configCommand() *cobra.Command {
	parent := &cobra.Command{
		Use:   "config",
		Short: "Show and change settings",
		Long: "Settings are in a TOML file (`roost config path`), overridden by variables\n" +
			"(ROOST_MODEL for model), overridden by flags (--model).",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	var origin bool
	show := &cobra.Command{
		Use: "list", Short: "List all settings and what holds for each", Args: count(0, 0, "roost config list"),
		RunE: func(*cobra.Command, []string) error { return a.configList(origin) },
	}
	show.Flags().BoolVar(&origin, "origin", false, "show where each comes from")
	parent.AddCommand(show, a.configImportCommand(),
		&cobra.Command{
			Use: "get KEY", Short: "Print one setting", Args: count(1, 1, "roost config get model"), ValidArgsFunction: settingKeys,
			RunE: func(_ *cobra.Command, args []string) error { return a.configGet(args[0]) },
		},
		&cobra.Command{
			Use: "set KEY VALUE...", Short: "Change one setting in the file", ValidArgsFunction: settingKeys,
			Long: "Change one setting in the file; all else in it stays as it is. A list takes\nseveral values.",
			Args: count(2, -1, "roost config set model NAME"),
			RunE: func(_ *cobra.Command, args []string) error { return a.configSet(args[0], args[1:]) },
		},
		&cobra.Command{
			Use:               "unset KEY",
			Short:             "Take one setting out of the file",
			Args:              count(1, 1, "roost config unset model"),
			ValidArgsFunction: settingKeys,
			RunE:              func(_ *cobra.Command, args []string) error { return a.configSet(args[0], nil) },
		},
		&cobra.Command{
			Use: "path", Short: "Print where the file is", Args: count(0, 0, "roost config path"),
			RunE: func(*cobra.Command, []string) error {
				path, err := a.configPath()
				if err != nil {
					return err
				}
				if a.flags.json {
					return encode(a.Out, map[string]string{"path": path}, false)
				}
				return a.println(path)
			},
		})
	return parent
}

func (a *App) println(text string) error {
	if _, err := fmt.Fprintln(a.Out, a.result(text)); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// item is a setting as --json shows it.
type item struct {
	Key    string `json:"key"`
	Value  any    `json:"value"` // a string, a list of strings, or null
	Origin string `json:"origin"`
}

func (a *App) item(s config.Setting) item {
	i := item{Key: s.Key.Name, Origin: s.Origin}
	flags := map[string]string{"root": a.flags.root, "cache": a.flags.cache, "sources": a.flags.sources, "server": a.flags.server}
	switch {
	case flags[s.Key.Name] != "":
		i.Value, i.Origin = flags[s.Key.Name], "--"+s.Key.Flag
	case !s.Set():
		if text := a.fallback(s.Key.Name); text != "" {
			i.Value = text
		}
	case s.Key.Secret:
		i.Value = "***"
	case s.Value.IsList:
		i.Value = s.Value.List
	default:
		i.Value = s.Value.Text
	}
	return i
}

// fallback is what holds for a key that is not set, "" for nothing.
func (a *App) fallback(key string) string {
	var dir string
	switch key {
	case "root":
		dir, _ = a.home("XDG_DATA_HOME", ".local/share")
	case "cache":
		dir, _ = a.home("XDG_CACHE_HOME", ".cache")
	}
	return cmp.Or(dir, map[string]string{"sources": "auto", "approve": "ask", "mode": "code"}[key])
}

func shown(i item) string {
	switch v := i.Value.(type) {
	case string:
		return v
	case []string:
		return strings.Join(v, ", ")
	}
	return ""
}

func (a *App) configList(origin bool) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	items := make([]item, len(config.Keys))
	wide := 0
	for i, k := range config.Keys {
		items[i] = a.item(s.values[k.Name])
		wide = max(wide, len(k.Name))
	}
	for _, e := range s.file.Entries { // profiles, and what was remembered for sources
		if v, ok := s.values[e.Key]; ok && !slices.ContainsFunc(config.Keys, func(k config.Key) bool { return k.Name == e.Key }) {
			items, wide = append(items, a.item(v)), max(wide, len(e.Key))
		}
	}
	if a.flags.json {
		return encode(a.Out, struct {
			Items []item `json:"items"`
		}{items}, false)
	}
	for _, i := range items {
		value := display.OneLine(shown(i))
		if i.Value == nil {
			value = "-"
		}
		line := display.Pad(i.Key, wide) + "  " + value
		if origin {
			line += "  (" + i.Origin + ")"
		}
		if err := a.println(line); err != nil {
			return err
		}
	}
	return nil
}

func knownKey(name string) (config.Key, error) {
	k, ok := config.Find(name)
	if !ok {
		f := usage("use the setting "+name, "there is no such setting", "roost config list")
		if near := config.Closest(name); near != "" {
			f.Try, f.Suggestions = "roost config get "+near, []string{near}
		}
		return k, f
	}
	return k, nil
}

func (a *App) configGet(name string) error {
	k, err := knownKey(name)
	if err != nil {
		return err
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	v, there := s.values[k.Name]
	if !there {
		v = config.Setting{Key: k, Origin: config.Default} // of a profile that does not set it
	}
	i := a.item(v)
	if a.flags.json {
		return encode(a.Out, i, false)
	}
	if i.Value == nil {
		return &Failure{Exit: ExitNotFound, Code: "not_set", Status: 404, What: "print the setting " + name, Why: "it is not set",
			Try: "roost config set " + name + " VALUE"}
	}
	if list, ok := i.Value.([]string); ok {
		return a.println(strings.Join(list, "\n"))
	}
	return a.println(shown(i))
}

// configSet changes a setting, or takes it out when there is no value. It works on the file alone: what is wrong
// elsewhere in it must not keep the user from changing it.
func (a *App) configSet(name string, values []string) error {
	k, known := knownKey(name)
	if known != nil && len(values) > 0 {
		return known
	}
	v := config.Value{IsList: k.List, List: values}
	if !k.List && len(values) > 1 {
		return usage("roost config set "+name, "it takes one value", "roost config set "+name+" VALUE")
	}
	if !k.List && len(values) == 1 {
		v.Text = values[0]
	}
	path, f, err := a.configFile()
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
			return usage("roost config set "+name+" "+strings.Join(values, " "), err.Error(), "roost config set "+name+" VALUE")
		}
		if name == "root" && !filepath.IsAbs(v.Text) { // it would be another folder wherever roost is called
			return usage("roost config set root "+v.Text, "the folder is not absolute", "roost config set root "+shellWord(a.abs(v.Text)))
		}
		text = f.With(name, v)
	}
	if _, err := config.Parse(text); err != nil { // never leave a file that cannot be read
		return fmt.Errorf("change the settings %s: the result cannot be read, so it was not written: %w", path, err)
	}
	if err := replace(path, text); err != nil {
		return fmt.Errorf("change the settings: %w", err)
	}
	if known == nil && a.Env(k.Env) != "" {
		a.warn(k.Env + " is set and overrides the file")
	}
	return nil
}

// replace writes a file whole or not at all. It may hold keys, so only its owner may
// read it. A link is followed: people keep their settings elsewhere.
func replace(path string, data []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data)
}
