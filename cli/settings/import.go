package settings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/mode"
)

func (a *commands) configImportCommand() *cobra.Command {
	var keys, force bool
	cmd := help.Command("config import", func(cmd *cobra.Command, args []string) error {
		return a.configImport(cmd.Context(), a.Abs(args[0]), keys, force)
	})
	cmd.Flags().BoolVar(&keys, "keys", false, "take the keys over too")
	cmd.Flags().BoolVar(&force, "force", false, "replace what is there already")
	return cmd
}

// importedItem is the result for one imported profile.
type importedItem struct {
	Profile string   `json:"profile,omitempty"` // its name here
	RooName string   `json:"roo_name"`
	State   string   `json:"state"` // imported, kept, skipped
	Reason  string   `json:"reason,omitempty"`
	Key     string   `json:"key"` // imported, left, none
	Notes   []string `json:"notes,omitempty"`
}

// mostImported bounds the bytes of an imported file; exported settings have some kilobytes.
const mostImported = 16 << 20

func (a *commands) configImport(ctx context.Context, path string, keys, force bool) error {
	refuse := func(why string) error {
		return failure.New(failure.ExitFailed, "failed", "import the settings "+path, why,
			"name the JSON file that Roo Code's settings export")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return failure.NotFound("not_found", "import the settings "+path, "there is no such file", "roost config import FILE")
	case err != nil:
		return refuse(err.Error())
	case !info.Mode().IsRegular() || info.Size() > mostImported:
		return refuse("it is no file of settings")
	}
	data, err := inputfile.Read(path)
	if err != nil {
		return refuse(err.Error())
	}
	found, err := config.Roo(data)
	if err != nil {
		if modes, _ := mode.Exported(string(data)); modes.Found {
			found, err = config.RooExport{Custom: data}, nil // modes that were exported by themselves
		}
	}
	if err != nil {
		return refuse(err.Error())
	}
	var all importedAll
	if err := a.Place().Locked(ctx, func() error {
		all, err = a.importAll(found, keys, force)
		return err
	}); err != nil {
		return err
	}
	return a.imported(all)
}

// importedAll is the result of importing a whole exported file.
type importedAll struct {
	Items        []importedItem        `json:"items"`
	Current      string                `json:"current,omitempty"` // the profile that Roo used, by Roo's name
	Modes        []importedMode        `json:"modes"`
	ModeProfiles []importedModeProfile `json:"mode_profiles"`
	Problems     []string              `json:"problems"` // problems of the modes, in words
	file         string                // the settings file
}

// importAll imports an exported file. The caller holds the lock of the settings.
func (a *commands) importAll(found config.RooExport, keys, force bool) (all importedAll, err error) {
	kept, err := a.Place().Secrets()
	if err != nil {
		return all, err
	}
	file, f, err := a.Place().File()
	if err != nil {
		return all, err
	}
	all = importedAll{Items: []importedItem{}, Current: found.Current, file: file}
	for _, p := range found.Profiles {
		item := importedItem{Profile: p.Name, RooName: p.Roo, State: "imported", Key: "none", Notes: p.Notes}
		takeKey := keys && p.Key != ""
		has, name := slices.ContainsFunc(f.Entries, of(p.Name)), "profiles."+p.Name
		switch {
		case p.Skipped != "":
			item.State, item.Reason, takeKey = "skipped", p.Skipped, false
		case !force && has:
			item.State, item.Reason = "kept", "there is a profile of that name; --force replaces it"
			takeKey = takeKey && kept.Key(name) == "" && sameService(f, p)
		default:
			if has && kept.Key(name) != "" && !sameService(f, p) { // the key is for the replaced service alone
				if err := kept.Keep(name, ""); err != nil {
					return all, err
				}
				item.Notes = append(item.Notes, "the key that was kept for it is removed: it was for another service")
			}
			if f, err = profileInto(f, p); err != nil {
				return all, fmt.Errorf("import the profile %s: %w", p.Roo, err)
			}
			if p.Key != "" {
				item.Key = "left"
			}
		}
		if takeKey {
			if err := kept.Keep(name, p.Key); err != nil {
				return all, err
			}
			item.Key = "imported"
		}
		all.Items = append(all.Items, item)
	}
	if f, all.ModeProfiles, err = importModeProfiles(f, found.ModeProfiles, force); err != nil {
		return all, err
	}
	modes, problems, err := a.importModes(string(found.Custom), file, force)
	if err != nil {
		return all, err
	}
	all.Modes, all.Problems = notNil(modes), notNil(problems)
	if len(found.Profiles) > 0 {
		if err := config.Replace(file, f.Text()); err != nil {
			return all, fmt.Errorf("change the settings %s: %w", file, err)
		}
	}
	return all, nil
}

// of returns a test for entries: whether one belongs to a profile. The name of another profile may begin with profile and a dot.
func of(profile string) func(config.Entry) bool {
	return func(e config.Entry) bool {
		field, in := strings.CutPrefix(e.Key, "profiles."+profile+".")
		return in && !strings.Contains(field, ".")
	}
}

// sameService reports whether the profile in the settings uses the same service as the exported one: only then may the
// exported key be sent there.
func sameService(f *config.File, p config.RooProfile) bool {
	for _, field := range []string{"provider", "base_url"} {
		e, _ := f.Get("profiles." + p.Name + "." + field)
		if e.Value.Text != p.Values[field].Text {
			return false
		}
	}
	return true
}

// profileInto returns the file with its profile of that name replaced.
func profileInto(f *config.File, p config.RooProfile) (*config.File, error) {
	var err error
	for _, e := range f.Entries { // of the file before the first change
		if of(p.Name)(e) {
			if f, err = config.Parse(f.Without(e.Key)); err != nil {
				return nil, err
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(p.Values)) {
		if f, err = config.Parse(f.With("profiles."+p.Name+"."+field, p.Values[field])); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// imported prints the result of each part.
func (a *commands) imported(all importedAll) error {
	if a.Flags.JSON {
		return a.PrintJSON(all)
	}
	left, current := 0, ""
	for _, i := range all.Items {
		line := i.State + "  " + i.RooName
		if i.Profile != "" && i.Profile != i.RooName {
			line += " as " + i.Profile
		}
		if i.Reason != "" {
			line += ": " + i.Reason
		}
		if i.Key == "imported" {
			line += "; its key is stored"
		}
		if i.Key == "left" {
			left++
		}
		if i.RooName == all.Current && i.State != "skipped" {
			current = i.Profile
		}
		a.Println(display.OneLine(line))
		for _, n := range i.Notes {
			a.Say("  %s", n)
		}
	}
	all.print(a)
	a.Say("the settings are in %s", all.file)
	if left > 0 {
		a.Say("%s left in the exported file: --keys takes them over, or roost auth set --profile NAME", api.Plural(left, "key"))
	}
	if current != "" {
		a.Say("Roo used %s; to use it for new tasks: roost config set profile %s", current, api.ShellWord(current))
	}
	return nil
}

// importedMode is the result for a mode.
type importedMode struct {
	Slug   string         `json:"slug"`
	State  string         `json:"state"` // imported, kept, same
	Reason string         `json:"reason,omitempty"`
	Rules  []importedRule `json:"rules"`
}

// importedRule is the result for a file with rules of a mode.
type importedRule struct {
	Path   string `json:"path"`
	State  string `json:"state"` // imported, kept, same
	Reason string `json:"reason,omitempty"`
}

// importModes imports the modes in the text of an exported file. problems describe the parts that Roost cannot use.
func (a *commands) importModes(text, settings string, force bool) (items []importedMode, problems []string, err error) {
	found, rules := mode.Exported(text)
	if len(found.Modes) == 0 {
		return nil, found.Problems, nil
	}
	file := config.ImportedModes(settings)
	dir := filepath.Dir(file)
	had, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read the imported modes: %w", err)
	}
	have, _ := mode.Exported(string(had))
	if len(have.Problems) > 0 && !force {
		return nil, nil, failure.Config("read the imported modes "+file, strings.Join(have.Problems, "; "),
			"mend or remove the file, or --force to leave out what cannot be read")
	}
	own := mode.ReadFile(os.DirFS(dir), "custom_modes.yaml", mode.Global, "")
	modes := have.Modes
	for _, m := range found.Modes {
		item := importedMode{Slug: m.Slug, State: "imported", Rules: []importedRule{}}
		i := slices.IndexFunc(modes, func(h mode.Mode) bool { return h.Slug == m.Slug })
		switch {
		case i < 0:
			modes = append(modes, m)
		case bytes.Equal(mode.Encode(modes[i:i+1]), mode.Encode([]mode.Mode{m})):
			item.State = "same"
		case force:
			modes[i] = m
		default:
			item.State, item.Reason = "kept", "another mode of that slug was imported before; --force replaces it"
		}
		if item.State != "kept" {
			if slices.ContainsFunc(own.Modes, func(h mode.Mode) bool { return h.Slug == m.Slug }) {
				item.Reason = "custom_modes.yaml has a mode of that slug, and that one counts"
			}
			item.Rules, err = api.TryEach(rules[m.Slug], func(r mode.RuleFile) (importedRule, error) {
				return writeRule(dir, m.Slug, r, force)
			})
			if err != nil {
				return nil, nil, err
			}
		}
		items = append(items, item)
	}
	if data := mode.Encode(modes); !bytes.Equal(data, had) {
		if err := config.Replace(file, data); err != nil {
			return nil, nil, fmt.Errorf("write the imported modes %s: %w", file, err)
		}
	}
	return items, found.Problems, nil
}

// writeRule writes a file of a mode's rules into the settings' folder, and never out of
// it: neither through the rule's path nor through a link.
func writeRule(dir, slug string, r mode.RuleFile, force bool) (importedRule, error) {
	item := importedRule{Path: r.Path, State: "imported"}
	name := path.Join(mode.ImportedRules, slug, r.Path)
	failed := func(err error) (importedRule, error) {
		return item, fmt.Errorf("write the rules %s: %w", filepath.Join(dir, filepath.FromSlash(name)), err)
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		item.State, item.Reason = "kept", "this system has no such file names"
		return item, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return failed(err)
	}
	root, err := inputfile.OpenDir(dir)
	if err != nil {
		return failed(err)
	}
	defer root.Close()
	old, err := root.ReadFile(name)
	switch {
	case err == nil && string(old) == r.Text:
		item.State = "same"
		return item, nil
	case err == nil && !force:
		item.State, item.Reason = "kept", "there is another file of that name; --force replaces it"
		return item, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return failed(err)
	}
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return failed(err)
	}
	if err := root.WriteFile(name, []byte(r.Text), 0o600); err != nil {
		return failed(err)
	}
	return item, nil
}

// importedModeProfile is the result for the profile of a mode.
type importedModeProfile struct {
	Mode    string `json:"mode"`
	Profile string `json:"profile,omitempty"`
	State   string `json:"state"` // imported, kept, skipped, same
	Reason  string `json:"reason,omitempty"`
}

// importModeProfiles imports which profile answers in which mode.
func importModeProfiles(f *config.File, uses []config.RooModeProfile, force bool) (*config.File, []importedModeProfile, error) {
	items := []importedModeProfile{}
	for _, use := range uses {
		key := config.ModeProfiles + "." + use.Mode
		item := importedModeProfile{Mode: use.Mode, Profile: use.Profile, State: "imported"}
		i := slices.IndexFunc(f.Entries, func(e config.Entry) bool { return e.Key == key })
		switch {
		case use.Roo == "":
			item.State, item.Reason = "skipped", "the file does not hold its profile"
		case use.Profile == "":
			item.State, item.Reason = "skipped", "its profile "+use.Roo+" cannot be taken over"
		case i >= 0 && f.Entries[i].Value.Text == use.Profile:
			item.State = "same"
		case i >= 0 && !force:
			item.State, item.Reason = "kept", "it has another profile here, "+f.Entries[i].Value.Text+"; --force replaces it"
		default:
			var err error
			if f, err = config.Parse(f.With(key, config.Value{Text: use.Profile})); err != nil {
				return nil, nil, fmt.Errorf("import the profile of mode %s: %w", use.Mode, err)
			}
		}
		items = append(items, item)
	}
	return f, items, nil
}

// print writes a line for each result but those for profiles.
func (m importedAll) print(a *commands) {
	var lines []string
	add := func(state, what, reason string) {
		if reason != "" {
			what += ": " + reason
		}
		lines = append(lines, display.OneLine(state+"  "+what))
	}
	for _, i := range m.Modes {
		add(i.State, "mode "+i.Slug, i.Reason)
		for _, r := range i.Rules {
			add(r.State, "rules of mode "+i.Slug+": "+r.Path, r.Reason)
		}
	}
	for _, p := range m.ModeProfiles {
		what := "profile of mode " + p.Mode
		if p.Profile != "" {
			what += " (" + p.Profile + ")"
		}
		add(p.State, what, p.Reason)
	}
	a.warnAll(m.Problems)
	a.Println(lines...)
}
