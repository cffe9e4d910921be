package settings

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/engine/setup"
)

func (a *commands) configCommand() *cobra.Command {
	var origin bool
	show := help.Command("config list", func(*cobra.Command, []string) error { return a.configList(origin) })
	show.Flags().BoolVar(&origin, "origin", false, "show where each comes from")
	return failure.Group(help.Command("config", nil), show, a.configImportCommand(),
		help.CommandFor("config get", app.SettingKeys, func(_ *cobra.Command, args []string) error {
			return a.configGet(args[0])
		}),
		help.CommandFor("config set", app.SettingKeys, func(_ *cobra.Command, args []string) error {
			return a.ConfigSet(args[0], args[1:])
		}),
		help.CommandFor("config unset", app.SettingKeys, func(_ *cobra.Command, args []string) error {
			return a.ConfigSet(args[0], nil)
		}),
		help.Command("config path", func(*cobra.Command, []string) error {
			path, err := a.ConfigPath()
			if err != nil {
				return err
			}
			if a.Flags.JSON {
				return a.PrintJSON(map[string]string{"path": path})
			}
			return a.Println(path)
		}))
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
	lines := make([]string, len(items))
	for n, i := range items {
		value := display.OneLine(shown(i))
		if i.Value == nil {
			value = "-"
		}
		if lines[n] = display.Pad(i.Key, wide) + "  " + value; origin {
			lines[n] += "  (" + i.Origin + ")"
		}
	}
	return a.Println(strings.Join(lines, "\n"))
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
			return failure.Usage("roost auth set --profile "+failure.ShellWord(profile)+" --keyring",
				"only keys of providers are kept in the keyring", "roost auth set --profile "+failure.ShellWord(profile))
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
	return failure.Group(help.Command("auth", nil), set, remove, status)
}

// account is the name that a key is kept under, and its name for people.
func (a *commands) account(verb, profile string, args []string) (name, of string, err error) {
	what := "roost auth " + verb
	switch {
	case profile != "" && len(args) > 0:
		return "", "", failure.Usage(what, "name either a provider or a profile", what+" --profile "+failure.ShellWord(profile))
	case profile != "":
		if !config.ValidProfile(profile) {
			return "", "", failure.Usage(what+" --profile "+profile, "a profile's name has only letters, digits, - and _", "roost config list")
		}
		return "profiles." + profile, "--profile " + profile, nil
	case len(args) == 0:
		return "", "", failure.Usage(what, "name a provider", what+" anthropic")
	}
	return args[0], args[0], knownProvider(what, args[0])
}

func knownProvider(what, name string) error {
	all := setup.Providers()
	if slices.Contains(all, name) {
		return nil
	}
	f := failure.Usage(what+" "+name, "there is no provider of that name that takes a key; there are "+strings.Join(all, ", "), what+" "+all[0])
	for _, p := range all {
		if config.Distance(name, p) < 3 || strings.HasPrefix(p, name) {
			f.Try, f.Suggestions = what+" "+p, []string{p}
		}
	}
	return f
}

func (a *commands) authSet(cmd *cobra.Command, name, of string, ring, force bool) error {
	s, err := a.Secrets()
	if err != nil {
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
	place := s.Path
	if ring {
		place = app.RingOrigin
		err = a.RingSet(cmd.Context(), s, name, of, key)
	} else if err = a.keep(s, name, key); err == nil && s.InKeyring(name) { // the newest key counts
		if failed := a.RingRemove(cmd.Context(), s, name, of); failed != nil {
			a.Warn("an older key stays in the system's keyring, and is no longer used: " + failed.Error())
			err = a.Rewrite(s, s.File.Without(app.KeyringMark(name)))
		}
	}
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintJSON(accountState{Provider: name, Set: true, Origin: place, Ends: app.Ends(key), Page: page})
	}
	a.Say("the key for %s is kept in %s", of, place)
	if v := a.KeyVariable(name); v != "" {
		a.Warn(v + " is set and overrides it")
	}
	return nil
}

// storeAnyway asks whether a doubtful key is meant, and is a failure when it is not, or when nobody can be asked.
func (a *commands) storeAnyway(ctx context.Context, of, doubt, page string) error {
	if a.Interactive() {
		answer, err := a.Prompter().Read(ctx, "this does not look right: "+doubt+". Store it anyway? (y, or anything else) > ")
		if err != nil || strings.EqualFold(strings.TrimSpace(answer), "y") {
			return err
		}
	}
	if page != "" {
		doubt += "; they are made at " + page
	}
	return failure.Usage("store the key for "+of, doubt, "roost auth set "+of+" --force  # if it is right all the same")
}

// keep replaces one key in the file and leaves the rest as it is.
func (a *commands) keep(s *app.Secrets, name, key string) error {
	text := s.File.With(name, config.Value{Text: key})
	next, err := config.Parse(text)
	if err == nil {
		if e, ok := next.Get(name); !ok || e.Value.Text != key {
			err = fmt.Errorf("it would not be read back")
		}
	}
	if err == nil {
		err = app.Replace(s.Path, text)
	}
	if err != nil {
		return fmt.Errorf("keep the key in %s: %w", s.Path, err)
	}
	s.File = next
	return nil
}

func (a *commands) authRemove(ctx context.Context, name, of string) error {
	s, err := a.Secrets()
	if err != nil {
		return err
	}
	ring := s.InKeyring(name)
	if ring {
		if err := a.RingRemove(ctx, s, name, of); err != nil {
			return err
		}
	}
	if s.Key(name) == "" && !ring {
		f := failure.NotFound("not_set", "delete the key for "+of, "none is kept in "+s.Path, "roost auth status")
		if v := a.KeyVariable(name); v != "" {
			f.Why, f.Try = f.Why+"; there is one in "+v, "unset "+v
		}
		return f
	}
	if err := app.Replace(s.Path, s.File.Without(name)); err != nil {
		return fmt.Errorf("delete the key for %s: %w", of, err)
	}
	a.Say("the key for %s is removed from this machine; copies of it still work: revoke it at the provider too if that matters", of)
	if v := a.KeyVariable(name); v != "" {
		a.Warn(v + " is set and still holds one")
	}
	return nil
}

// accountState is what a status may show of a key.
type accountState struct {
	Provider string `json:"provider,omitempty"`
	Profile  string `json:"profile,omitempty"`
	Set      bool   `json:"set"`
	Origin   string `json:"origin,omitempty"` // a variable, a file, the keyring, or PATH:LINE of the settings
	Page     string `json:"page,omitempty"`   // where people make keys for the provider
	Ends     string `json:"ends,omitempty"`   // the last four characters of the key, or of the access key's id
	// Problem is why credentials of a cloud that are there cannot be used.
	Problem string `json:"problem,omitempty"`
}

func (a *commands) authStatus(args []string) error {
	if len(args) > 0 {
		if err := knownProvider("roost auth status", args[0]); err != nil {
			return err
		}
	}
	kept, err := a.Secrets()
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
	var items []accountState
	add := func(state accountState, key, origin string) {
		state.Set, state.Origin, state.Ends = key != "" || origin == app.RingOrigin, origin, app.Ends(key)
		if state.Profile == "" {
			state.Page = setup.KeyPage(state.Provider)
		}
		items = append(items, state)
	}
	for _, p := range setup.Providers() {
		if len(args) == 0 || args[0] == p {
			key, origin := a.ProviderKey(p, kept, s)
			if origin == "" {
				login, err := c.CloudLogin(p)
				if err != nil {
					items = append(items, accountState{Provider: p, Problem: err.Error()})
					continue
				}
				if login.Origin != "" {
					items = append(items, accountState{Provider: p, Set: true, Origin: login.Origin, Ends: login.Ends})
					continue
				}
			}
			add(accountState{Provider: p}, key, origin)
		}
	}
	if len(args) == 0 {
		names, fields := config.Profiles(s.Values, s.File)
		for _, e := range kept.File.Entries {
			if name, ok := strings.CutPrefix(e.Key, "profiles."); ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		for _, name := range names {
			if key, origin := app.ProfileKey(name, kept, fields[name]); key != "" {
				add(accountState{Profile: name, Provider: fields[name]["provider"].Value.Text}, key, origin)
			}
		}
	}
	if a.Flags.JSON {
		return a.Items(items)
	}
	rows, none := [][]string{{"PROVIDER", "KEY", "FROM"}}, true
	for _, i := range items {
		row := []string{i.Provider, "no key", "-"}
		if i.Page != "" && !i.Set {
			row[2] = "make one at " + i.Page
		}
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
		}
		rows = append(rows, row)
	}
	if err := a.Grid(rows); err != nil {
		return err
	}
	if none {
		a.Say("store a key with: roost auth set PROVIDER")
	}
	return nil
}
