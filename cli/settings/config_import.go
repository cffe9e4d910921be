package settings

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/mode"
)

func (a *commands) configImportCommand() *cobra.Command {
	var keys, force bool
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Take profiles and modes over from what Roo Code exports", Args: failure.Arguments(1, 1,
			"roost config import roo-code-settings.json"),
		Long: "Take profiles over from the file that Roo Code's settings export: provider, model,\n" +
			"address, effort and length. Keys are left in it unless --keys is given; then they go\n" +
			"into the file of keys and are never shown.\n\n" +
			"Custom modes go into imported_modes.json beside the settings, their rules into\n" +
			"mode-rules there, and which profile Roo used in which mode becomes mode_profiles:\n" +
			"it answers in that mode unless a task names another provider. A file with exported\n" +
			"modes alone (YAML or JSON) is taken as well.\n\n" +
			"What is there already under the same name stays as it is unless --force is given.",
		RunE: func(_ *cobra.Command, args []string) error { return a.configImport(a.Abs(args[0]), keys, force) },
	}
	cmd.Flags().BoolVar(&keys, "keys", false, "take the keys over too")
	cmd.Flags().BoolVar(&force, "force", false, "replace what is there already")
	return cmd
}

// importedItem is the result for one imported profile.
type importedItem struct {
	Profile string   `json:"profile,omitempty"` // what it goes by here
	RooName string   `json:"roo_name"`
	State   string   `json:"state"` // imported, kept, skipped
	Reason  string   `json:"reason,omitempty"`
	Key     string   `json:"key"` // imported, left, none
	Notes   []string `json:"notes,omitempty"`
}

// mostImported bounds a file that is read whole; exported settings have some
// kilobytes.
const mostImported = 16 << 20

func (a *commands) configImport(path string, keys, force bool) error {
	refuse := func(why string) error {
		return &failure.Failure{
			Exit: failure.ExitFailed,
			Code: "failed",
			What: "import the settings " + path,
			Why:  why,
			Try:  "name the JSON file that Roo Code's settings export",
		}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &failure.Failure{
			Exit:   failure.ExitNotFound,
			Code:   "not_found",
			Status: 404,
			What:   "import the settings " + path,
			Why:    "there is no such file",
			Try:    "roost config import FILE",
		}
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
	var kept *app.Secrets
	if keys {
		if kept, err = a.Secrets(); err != nil {
			return err
		}
	}
	file, f, err := a.ConfigFile()
	if err != nil {
		return err
	}
	items := []importedItem{}
	for _, p := range found.Profiles {
		item := importedItem{Profile: p.Name, RooName: p.Roo, State: "imported", Key: "none", Notes: p.Notes}
		switch {
		case p.Skipped != "":
			item.State, item.Reason = "skipped", p.Skipped
		case !force && has(f, p.Name):
			item.State, item.Reason = "kept", "there is a profile of that name; --force replaces it"
			if keys && p.Key != "" && kept.Key("profiles."+p.Name) == "" && sameService(f, p) {
				if err := a.keep(kept, "profiles."+p.Name, p.Key); err != nil {
					return err
				}
				item.Key = "imported"
			}
		default:
			if f, err = profileInto(f, p); err != nil {
				return fmt.Errorf("import the profile %s: %w", p.Roo, err)
			}
			if p.Key != "" {
				item.Key = "left"
			}
			if p.Key != "" && keys {
				if err := a.keep(kept, "profiles."+p.Name, p.Key); err != nil {
					return err
				}
				item.Key = "imported"
			}
		}
		items = append(items, item)
	}
	more := importedMore{Modes: []importedMode{}, ModeProfiles: []importedModeProfile{}, Problems: []string{}}
	if f, more.ModeProfiles, err = importModeProfiles(f, found.ModeProfiles, force); err != nil {
		return err
	}
	if err := more.take(a.importModes(string(found.Custom), file, force)); err != nil {
		return err
	}
	if len(found.Profiles) > 0 {
		if err := app.Replace(file, f.Text()); err != nil {
			return fmt.Errorf("change the settings %s: %w", file, err)
		}
	}
	return a.imported(items, found, more, file)
}

// has reports whether a file holds a profile.
func has(f *config.File, profile string) bool {
	for _, e := range f.Entries {
		if strings.HasPrefix(e.Key, "profiles."+profile+".") {
			return true
		}
	}
	return false
}

// sameService reports whether the profile in a file uses the same service as the exported
// one: only then may its key go there.
func sameService(f *config.File, p config.RooProfile) bool {
	for _, field := range []string{"provider", "base_url"} {
		e, _ := f.Get("profiles." + p.Name + "." + field)
		if e.Value.Text != p.Values[field].Text {
			return false
		}
	}
	return true
}

// profileInto is the file with its profile of that name replaced.
func profileInto(f *config.File, p config.RooProfile) (*config.File, error) {
	var err error
	prefix := "profiles." + p.Name + "."
	for has(f, p.Name) {
		for _, e := range f.Entries {
			if strings.HasPrefix(e.Key, prefix) {
				if f, err = config.Parse(f.Without(e.Key)); err != nil {
					return nil, err
				}
				break
			}
		}
	}
	for _, field := range config.ProfileFields() {
		if v, ok := p.Values[field]; ok {
			if f, err = config.Parse(f.With(prefix+field, v)); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

func (a *commands) imported(items []importedItem, found config.RooExport, more importedMore, file string) error {
	if a.Flags.JSON {
		return app.Encode(a.Out, struct {
			Items   []importedItem `json:"items"`
			Current string         `json:"current,omitempty"`
			importedMore
		}{items, found.Current, more}, false)
	}
	left, current := 0, ""
	for _, i := range items {
		line := i.State + "  " + i.RooName
		if i.Profile != "" && i.Profile != i.RooName {
			line += " as " + i.Profile
		}
		if i.Reason != "" {
			line += ": " + i.Reason
		}
		if i.Key == "imported" {
			line += ", with its key"
		}
		if i.Key == "left" {
			left++
		}
		if i.RooName == found.Current && i.State != "skipped" {
			current = i.Profile
		}
		if err := a.Println(display.OneLine(line)); err != nil {
			return err
		}
		for _, n := range i.Notes {
			a.Say("  %s", n)
		}
	}
	if err := more.print(a); err != nil {
		return err
	}
	a.Say("the settings are in %s", file)
	if left > 0 {
		a.Say("%d key%s left in the exported file: --keys takes them over, or roost auth set --profile NAME", left, app.Plural(left))
	}
	if current != "" {
		a.Say("Roo used %s; to use it for new tasks: roost config set profile %s", current, current)
	}
	return nil
}
