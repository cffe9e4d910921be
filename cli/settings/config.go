package settings

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine/setup"
)

func (a *commands) configCommand() *cobra.Command {
	var origin bool
	show := help.Command("config list", func(*cobra.Command, []string) error { return a.configList(origin) })
	show.Flags().BoolVar(&origin, "origin", false, "show where each comes from")
	return help.Group("config", show, a.configImportCommand(),
		help.CommandFor("config get", app.SettingKeys, func(_ *cobra.Command, args []string) error {
			return a.configGet(args[0])
		}),
		help.CommandFor("config set", app.SettingKeys, func(cmd *cobra.Command, args []string) error {
			return a.Place().Set(cmd.Context(), args[0], args[1:])
		}),
		help.CommandFor("config unset", app.SettingKeys, func(cmd *cobra.Command, args []string) error {
			return a.Place().Set(cmd.Context(), args[0], nil)
		}),
		help.Command("config path", func(*cobra.Command, []string) error {
			path, err := a.Place().Path()
			if err != nil {
				return err
			}
			return a.Outcome(map[string]string{"path": path}, path)
		}))
}

// shown returns the value of a setting as text, "-" for none.
func shown(i api.Setting) string {
	switch v := i.Value.(type) {
	case string:
		return v
	case []string:
		return strings.Join(v, ", ")
	}
	return "-"
}

func (a *commands) configList(origin bool) error {
	s, err := a.Settings()
	if err != nil {
		return err
	}
	items, wide := a.Place().Items(s), 0
	for _, i := range items {
		wide = max(wide, len(i.Key))
	}
	if a.Flags.JSON {
		return a.Items(items)
	}
	lines := make([]string, len(items))
	for n, i := range items {
		if lines[n] = display.Pad(i.Key, wide) + "  " + display.OneLine(shown(i)); origin {
			lines[n] += "  (" + i.Origin + ")"
		}
	}
	return a.Println(lines...)
}

func (a *commands) configGet(name string) error {
	k, err := config.KnownKey(name)
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
	i := a.Place().Item(v)
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

func (a *commands) authCommand() *cobra.Command {
	var profile string
	var ring, force bool
	names := app.First(app.Words(setup.Providers()...))
	set := help.CommandFor("auth set", names, func(cmd *cobra.Command, args []string) error {
		name, of, err := a.account("set", profile, args)
		if err != nil {
			return err
		}
		if ring && profile != "" {
			return failure.Usage("roost auth set --profile "+api.ShellWord(profile)+" --keyring",
				"only keys of providers are kept in the keyring", "roost auth set --profile "+api.ShellWord(profile))
		}
		return a.authSet(cmd, name, of, ring, force)
	})
	remove := help.CommandFor("auth remove", names, func(cmd *cobra.Command, args []string) error {
		name, of, err := a.account("remove", profile, args)
		if err != nil {
			return err
		}
		return a.authRemove(cmd.Context(), name, of)
	})
	for _, cmd := range []*cobra.Command{set, remove} {
		cmd.Flags().StringVar(&profile, "profile", "", "the key of this profile alone")
	}
	set.Flags().BoolVar(&ring, "keyring", false, "keep it in the system's keyring and not in a file")
	set.Flags().BoolVar(&force, "force", false, "store it even if it does not look like a key of the provider")
	status := help.CommandFor("auth status", names, func(_ *cobra.Command, args []string) error {
		return a.authStatus(args)
	})
	return help.Group("auth", set, remove, status)
}

// account returns the name under which a key is saved, and its name for people.
func (a *commands) account(verb, profile string, args []string) (name, of string, err error) {
	what := "roost auth " + verb
	switch {
	case profile != "" && len(args) > 0:
		return "", "", failure.Usage(what, "name either a provider or a profile", what+" --profile "+api.ShellWord(profile))
	case profile != "":
		if !config.ValidProfile(profile) {
			return "", "", failure.Usage(what+" --profile "+profile, "a profile's name has only letters, digits, - and _", "roost config list")
		}
		return "profiles." + profile, "--profile " + profile, nil
	case len(args) == 0:
		return "", "", failure.Usage(what, "name a provider", what+" anthropic")
	}
	return args[0], args[0], config.KnownProvider(what, args[0])
}

func (a *commands) authSet(cmd *cobra.Command, name, of string, ring, force bool) error {
	if _, err := a.Place().Secrets(); err != nil { // before anybody types a key
		return err
	}
	page := setup.KeyPage(name)
	if page != "" && a.Interactive() {
		a.Say("keys for %s are made at %s", of, page)
	}
	key, err := a.ReadKey(cmd.Context(), of)
	if err != nil {
		return err
	}
	if doubt := setup.KeyDoubt(name, key); doubt != "" && !force {
		if err := a.storeAnyway(cmd.Context(), of, doubt, page); err != nil {
			return err
		}
	}
	var notes []string
	at := a.Place()
	at.Warn = func(text string) { notes = append(notes, text) } // printed after the result
	place, err := at.SetKey(cmd.Context(), name, of, key, ring)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		state := api.KeyState{Provider: name, Set: true, Origin: place, Ends: config.Ends(key), Page: page}
		if profile, is := strings.CutPrefix(name, "profiles."); is {
			state.Provider, state.Profile = "", profile
		}
		return a.PrintJSON(state)
	}
	a.Say("the key for %s is kept in %s", of, place)
	a.warnAll(notes)
	return nil
}

func (a *commands) warnAll(notes []string) {
	for _, text := range notes {
		a.Warn(text)
	}
}

// storeAnyway asks whether to store a doubtful key. It fails when the user declines, or when no user can be asked.
func (a *commands) storeAnyway(ctx context.Context, of, doubt, page string) error {
	if a.Interactive() {
		agreed, err := a.Agree(ctx, "this does not look right: "+doubt+". Store it anyway?")
		if err != nil || agreed {
			return err
		}
	}
	if page != "" {
		doubt += "; they are made at " + page
	}
	return failure.Usage("store the key for "+of, doubt, "roost auth set "+of+" --force  # if it is right all the same")
}

func (a *commands) authRemove(ctx context.Context, name, of string) error {
	var notes []string
	at := a.Place()
	at.Warn = func(text string) { notes = append(notes, text) }
	if err := at.RemoveKey(ctx, name, of); err != nil {
		return err
	}
	a.Say("the key for %s is removed from this machine; copies of it still work: revoke it at the provider too if that matters", of)
	a.warnAll(notes)
	return nil
}

func (a *commands) authStatus(args []string) error {
	if len(args) > 0 {
		if err := config.KnownProvider("roost auth status", args[0]); err != nil {
			return err
		}
	}
	kept, err := a.Place().Secrets()
	if err != nil {
		return err
	}
	s, err := a.Settings()
	if err != nil {
		return err
	}
	c, err := a.EngineConfig()
	if err != nil {
		return err
	}
	var items []api.KeyState
	for _, p := range setup.Providers() {
		if len(args) == 0 || args[0] == p {
			items = append(items, a.Place().ProviderState(p, kept, s, c))
		}
	}
	if len(args) == 0 {
		items = append(items, config.ProfileStates(kept, s)...)
	}
	if a.Flags.JSON {
		return a.Items(items)
	}
	rows, none := [][]string{{"PROVIDER", "KEY", "FROM"}}, true
	for _, i := range items {
		row := []string{i.Provider, "no key", "-"}
		if i.Profile != "" {
			row[0] = "profile " + i.Profile
		}
		switch {
		case i.Problem != "":
			row[2] = i.Problem
		case i.Set:
			row[1], row[2], none = "set", i.Origin, false
			if i.Ends != "" {
				row[1] = "..." + i.Ends
			}
		case i.Page != "":
			row[2] = "make one at " + i.Page
		}
		rows = append(rows, row)
	}
	err = a.Grid(rows)
	if none {
		a.Say("store a key with: roost auth set PROVIDER")
	}
	return err
}
