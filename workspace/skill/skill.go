// Package skill knows the skills: folders with a file SKILL.md that describes how a kind of work is done, and with
// the other files that it needs. A model gets their names and descriptions, and requests the text of a skill when it
// needs it.
//
// The package finds them where Roo and other agents keep them: in .roo/skills and .agents/skills of the workspace and of the home
// folder, those of one mode in the folder skills-<mode> next to skills. SKILL.md begins with front matter (YAML
// between lines of "---") that holds name, which is that of the folder, and description; modeSlugs, or the older
// mode, may name the modes it is for.
//
// Among several skills with one name, the workspace's comes before the home folder's, a mode's before that of every
// mode, and .roo before .agents. A skill that cannot be used is left out alone, with a reason.
//
// No link of the workspace is followed out of it: a repository must not contain a name that leads to a file outside.
// In the home folder links are followed, because they are the user's own. Files are read when the model requests
// them, so that an edit takes effect at once.
//
// Limits: 200 folders in one place and 100 skills in all; 256 KiB of a file.
package skill

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/workspace/slash"
)

// Skill is one skill.
type Skill struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Source      string   `json:"source"` // project, global
	Modes       []string `json:"modes"`  // the modes that it is for; empty = every mode
	Path        string   `json:"path"`   // of SKILL.md, absolute
}

// Limits.
const (
	maxFile        = 256 << 10 // bytes of one SKILL.md
	maxFolders     = 200       // searched in one place
	maxSkills      = 100
	maxName        = 64
	maxDescription = 1024 // characters, by the standard
)

// Set is the skills of one workspace.
type Set struct {
	Workspace string // absolute folder; "" for none
	Home      string // folder of the user's own .roo and .agents; "" for none
}

// ErrNone: there is no such skill in the mode.
var ErrNone = errors.New("there is no such skill")

// In lists the skills of a mode by their names. The notes name the skills that cannot be used, and why.
func (s Set) In(mode string) (list []Skill, notes []string) {
	list, notes = s.all(mode)
	slices.SortFunc(list, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	if len(list) > maxSkills {
		notes = append(notes, fmt.Sprintf("only the first %d of %d skills are used", maxSkills, len(list)))
		list = list[:maxSkills]
	}
	return list, notes
}

// Find gives a skill of a mode and its text without the front matter. ErrNone: there is no skill of that name.
func (s Set) Find(mode, name string) (k Skill, text string, err error) {
	list, _ := s.In(mode)
	i := slices.IndexFunc(list, func(k Skill) bool { return k.Name == name })
	if i < 0 {
		return Skill{}, "", ErrNone
	}
	k = list[i]
	err = s.visit(k.Source, func(fsys fs.FS, root string) error {
		rel, err := filepath.Rel(root, k.Path)
		if err != nil {
			return err
		}
		data, err := read(fsys, filepath.ToSlash(rel))
		_, text = slash.Front(string(data))
		return err
	})
	return k, text, api.Failed(err, "read the skill %s", name)
}

// all returns the skills of a mode; of several with one name, the one that comes first.
func (s Set) all(mode string) (list []Skill, notes []string) {
	note := func(where, why string) {
		notes = append(notes, fmt.Sprintf("the skill %s is left out: %s", where, why))
	}
	for _, source := range []string{"project", "global"} {
		var found []Skill
		err := s.visit(source, func(fsys fs.FS, root string) error {
			for _, dir := range folders(mode) {
				found = append(found, scan(fsys, root, dir, note)...)
			}
			return nil
		})
		if err != nil {
			notes = append(notes, fmt.Sprintf("the skills of %s cannot be read: %v", s.base(source), err))
		}
		for _, own := range []bool{true, false} { // those for this mode count before those for every mode
			for _, k := range found {
				have := slices.ContainsFunc(list, func(h Skill) bool { return h.Name == k.Name })
				if own == (len(k.Modes) > 0) && !have && (!own || slices.Contains(k.Modes, mode)) {
					k.Source = source
					list = append(list, k)
				}
			}
		}
	}
	return list, notes
}

// base returns the folder above the skills of a source, "" for none.
func (s Set) base(source string) string {
	if source == "project" {
		return s.Workspace
	}
	return s.Home
}

// visit lets f read a source's files; without such a source it does nothing.
func (s Set) visit(source string, f func(fsys fs.FS, root string) error) error {
	base := s.base(source)
	switch {
	case base == "":
		return nil
	case source == "global":
		return f(os.DirFS(base), base)
	}
	root, err := inputfile.OpenDir(base)
	if err != nil {
		return inputfile.WithoutPath(err)
	}
	defer root.Close()
	return f(inputfile.FS(root), base)
}

// folder is a folder that may hold skills, and the mode that all of them are for.
type folder struct{ name, mode string }

// folders returns the folders with skills of a source, in order of precedence.
func folders(mode string) (out []folder) {
	if slugForm().MatchString(mode) {
		out = append(out, folder{".roo/skills-" + mode, mode}, folder{".agents/skills-" + mode, mode})
	}
	return append(out, folder{".roo/skills", ""}, folder{".agents/skills", ""})
}

var (
	slugForm = lazyregexp.New(`^[a-zA-Z0-9-]+$`)
	nameForm = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)
)

// Valid reports whether a text can be the name of a skill by the standard: small letters and digits with single
// dashes between them.
func Valid(name string) bool { return len(name) <= maxName && nameForm().MatchString(name) }

// scan reads the front matter of the skills in a folder.
func scan(fsys fs.FS, root string, dir folder, note func(where, why string)) (list []Skill) {
	entries, err := fs.ReadDir(fsys, dir.name)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			note("in "+dir.name, inputfile.WithoutPath(err).Error())
		}
		return nil
	}
	if len(entries) > maxFolders {
		note("in "+dir.name, fmt.Sprintf("it holds %d entries, and the first %d are looked at", len(entries), maxFolders))
		entries = entries[:maxFolders]
	}
	for _, e := range entries {
		name := path.Join(dir.name, e.Name(), "SKILL.md")
		if _, err := fs.Stat(fsys, name); err != nil {
			if !errors.Is(err, fs.ErrNotExist) && !e.Type().IsRegular() {
				note(name, inputfile.WithoutPath(err).Error())
			}
			continue
		}
		k, err := describe(fsys, name, e.Name(), dir.mode)
		if err != nil {
			note(name, inputfile.WithoutPath(err).Error())
			continue
		}
		k.Path = filepath.Join(root, filepath.FromSlash(name))
		list = append(list, k)
	}
	return list
}

// describe reads the front matter of a skill.
func describe(fsys fs.FS, name, dir, mode string) (Skill, error) {
	data, err := read(fsys, name)
	if err != nil {
		return Skill{}, err
	}
	front, _ := slash.Front(string(data))
	k := Skill{Name: front.Text("name"), Description: strings.Join(strings.Fields(front.Text("description")), " ")}
	switch list := front.List("modeSlugs"); {
	case len(list) > 0:
		k.Modes = list
	case front.Text("mode") != "":
		k.Modes = []string{front.Text("mode")}
	case mode != "":
		k.Modes = []string{mode}
	}
	switch {
	case front == nil:
		return k, errors.New(`it does not begin with front matter: lines of "---" around name and description`)
	case k.Name == "":
		return k, errors.New("its front matter has no name")
	case k.Name != dir:
		return k, fmt.Errorf("its name %q is not that of its folder", k.Name)
	case !Valid(k.Name):
		return k, fmt.Errorf("its name may hold small letters, digits and single dashes, at most %d characters", maxName)
	case k.Description == "":
		return k, errors.New("its front matter has no description")
	case len([]rune(k.Description)) > maxDescription:
		return k, fmt.Errorf("its description has more than %d characters", maxDescription)
	}
	return k, nil
}

// read reads one file of bounded size.
func read(fsys fs.FS, name string) ([]byte, error) {
	data, err := inputfile.ReadFS(fsys, name, maxFile+1)
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return data, err
}
