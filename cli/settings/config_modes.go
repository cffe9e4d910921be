package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/mode"
)

// importedMode is what became of a mode.
type importedMode struct {
	Slug   string         `json:"slug"`
	State  string         `json:"state"` // imported, kept, same
	Reason string         `json:"reason,omitempty"`
	Rules  []importedRule `json:"rules"`
}

// importedRule is what became of a file of a mode's rules.
type importedRule struct {
	Path   string `json:"path"`
	State  string `json:"state"` // imported, kept, same
	Reason string `json:"reason,omitempty"`
}

// importModes takes modes over from the text of an exported file of modes. problems
// describe the parts that it cannot use.
func (a *commands) importModes(text, settings string, force bool) (items []importedMode, problems []string, err error) {
	if text == "" {
		return nil, nil, nil
	}
	found, rules := mode.Exported(text)
	if len(found.Modes) == 0 {
		return nil, found.Problems, nil
	}
	file := app.ImportedModes(settings)
	dir := filepath.Dir(file)
	had, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read the imported modes: %w", err)
	}
	have, _ := mode.Exported(string(had))
	if len(have.Problems) > 0 && !force {
		return nil, nil, &failure.Failure{Exit: failure.ExitConfig, Code: "configuration", What: "read the imported modes " + file,
			Why: strings.Join(have.Problems, "; "),
			Try: "mend or remove the file, or --force to leave out what cannot be read"}
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
		if item.State != "kept" && slices.ContainsFunc(own.Modes, func(h mode.Mode) bool { return h.Slug == m.Slug }) {
			item.Reason = "custom_modes.yaml has a mode of that slug, and that one counts"
		}
		if item.State != "kept" {
			for _, r := range rules[m.Slug] {
				rule, err := writeRule(dir, m.Slug, r, force)
				if err != nil {
					return nil, nil, err
				}
				item.Rules = append(item.Rules, rule)
			}
		}
		items = append(items, item)
	}
	if data := mode.Encode(modes); !bytes.Equal(data, had) {
		if err := app.Replace(file, data); err != nil {
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
	root, err := os.OpenRoot(dir)
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

// importedModeProfile is what became of the profile of a mode.
type importedModeProfile struct {
	Mode    string `json:"mode"`
	Profile string `json:"profile,omitempty"`
	State   string `json:"state"` // imported, kept, skipped, same
	Reason  string `json:"reason,omitempty"`
}

// importModeProfiles takes over which profile answers in which mode.
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

// importedMore is what became of what is no profile.
type importedMore struct {
	Modes        []importedMode        `json:"modes"`
	ModeProfiles []importedModeProfile `json:"mode_profiles"`
	Problems     []string              `json:"problems"` // what of the modes could not be used, in words
}

func (m *importedMore) take(modes []importedMode, problems []string, err error) error {
	m.Modes, m.Problems = append(m.Modes, modes...), append(m.Problems, problems...)
	return err
}

// print writes a line for each.
func (m *importedMore) print(a *commands) error {
	line := func(state, what, reason string) error {
		if reason != "" {
			what += ": " + reason
		}
		return a.Println(display.OneLine(state + "  " + what))
	}
	for _, i := range m.Modes {
		if err := line(i.State, "mode "+i.Slug, i.Reason); err != nil {
			return err
		}
		for _, r := range i.Rules {
			if err := line(r.State, "rules of mode "+i.Slug+": "+r.Path, r.Reason); err != nil {
				return err
			}
		}
	}
	for _, p := range m.ModeProfiles {
		what := "profile of mode " + p.Mode
		if p.Profile != "" {
			what += " (" + p.Profile + ")"
		}
		if err := line(p.State, what, p.Reason); err != nil {
			return err
		}
	}
	for _, why := range m.Problems {
		a.Warn(why)
	}
	return nil
}
