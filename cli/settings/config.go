package settings

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
)

func (a *commands) configCommand() *cobra.Command {
	var origin bool
	show := &cobra.Command{
		Use: "list", Short: "List all settings and what holds for each", Args: failure.Arguments(0, 0, "roost config list"),
		RunE: func(*cobra.Command, []string) error { return a.configList(origin) },
	}
	show.Flags().BoolVar(&origin, "origin", false, "show where each comes from")
	return failure.Group(&cobra.Command{
		Use:   "config",
		Short: "Show and change settings",
		Long: "Settings are in a TOML file (`roost config path`), overridden by variables\n" +
			"(ROOST_MODEL for model), overridden by flags (--model).",
	}, show, a.configImportCommand(),
		&cobra.Command{
			Use: "get KEY", Short: "Print one setting", Args: failure.Arguments(1, 1, "roost config get model"), ValidArgsFunction: app.SettingKeys,
			RunE: func(_ *cobra.Command, args []string) error { return a.configGet(args[0]) },
		},
		&cobra.Command{
			Use: "set KEY VALUE...", Short: "Change one setting in the file", ValidArgsFunction: app.SettingKeys,
			Long: "Change one setting in the file; all else in it stays as it is. A list takes\nseveral values.",
			Args: failure.Arguments(2, -1, "roost config set model NAME"),
			RunE: func(_ *cobra.Command, args []string) error { return a.ConfigSet(args[0], args[1:]) },
		},
		&cobra.Command{
			Use: "unset KEY", Short: "Take one setting out of the file", ValidArgsFunction: app.SettingKeys,
			Args: failure.Arguments(1, 1, "roost config unset model"),
			RunE: func(_ *cobra.Command, args []string) error { return a.ConfigSet(args[0], nil) },
		},
		&cobra.Command{
			Use: "path", Short: "Print where the file is", Args: failure.Arguments(0, 0, "roost config path"),
			RunE: func(*cobra.Command, []string) error {
				path, err := a.ConfigPath()
				if err != nil {
					return err
				}
				if a.Flags.JSON {
					return a.PrintJSON(map[string]string{"path": path})
				}
				return a.Println(path)
			},
		})
}

// item is a setting as --json shows it.
type item struct {
	Key    string `json:"key"`
	Value  any    `json:"value"` // a string, a list of strings, or null
	Origin string `json:"origin"`
}

func (a *commands) item(s config.Setting) item {
	i := item{Key: s.Key.Name, Origin: s.Origin}
	flags := map[string]string{"root": a.Flags.Root, "cache": a.Flags.Cache, "sources": a.Flags.Sources, "server": a.Flags.Server}
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
func (a *commands) fallback(key string) string {
	var dir string
	switch key {
	case "root":
		dir, _ = a.Home("XDG_DATA_HOME", ".local/share")
	case "cache":
		dir, _ = a.Home("XDG_CACHE_HOME", ".cache")
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

func (a *commands) configList(origin bool) error {
	s, err := a.Settings()
	if err != nil {
		return err
	}
	items := make([]item, len(config.Keys))
	wide := 0
	for i, k := range config.Keys {
		items[i] = a.item(s.Values[k.Name])
		wide = max(wide, len(k.Name))
	}
	for _, e := range s.File.Entries { // profiles, and what was remembered for sources
		if v, ok := s.Values[e.Key]; ok && !slices.ContainsFunc(config.Keys, func(k config.Key) bool { return k.Name == e.Key }) {
			items, wide = append(items, a.item(v)), max(wide, len(e.Key))
		}
	}
	if a.Flags.JSON {
		return a.Items(items)
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
		if err := a.Println(line); err != nil {
			return err
		}
	}
	return nil
}

func (a *commands) configGet(name string) error {
	k, err := app.KnownKey(name)
	if err != nil {
		return err
	}
	s, err := a.Settings()
	if err != nil {
		return err
	}
	v, there := s.Values[k.Name]
	if !there {
		v = config.Setting{Key: k, Origin: config.Default} // of a profile that does not set it
	}
	i := a.item(v)
	if a.Flags.JSON {
		return a.PrintJSON(i)
	}
	if i.Value == nil {
		return failure.NotFound("not_set", "print the setting "+name, "it is not set", "roost config set "+name+" VALUE")
	}
	if list, ok := i.Value.([]string); ok {
		return a.Println(strings.Join(list, "\n"))
	}
	return a.Println(shown(i))
}
