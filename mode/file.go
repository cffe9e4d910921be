package mode

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// maxFile bounds a file of modes, and maxText each text in it, in bytes: a mode's text is sent with every request.
const (
	maxFile = 256 << 10
	maxText = 32 << 10
)

// File is the content of a file of modes.
type File struct {
	Modes    []Mode
	Found    bool     // it holds custom modes, usable or not
	Problems []string // what of it cannot be used, and why
}

// Parse reads a file of modes: YAML, or JSON when that fails. It never fails as a whole: Problems lists what cannot
// be used. source is the source of the modes, even if the file itself claims another; path is kept with them, for
// people.
func Parse(text, source, path string) File {
	if len(text) > maxFile {
		return File{Problems: []string{fmt.Sprintf("it has more than %d bytes, and is not read", maxFile)}}
	}
	root, err := readRoot(text)
	if err != nil {
		return File{Problems: []string{err.Error()}}
	}
	return readModes(root, source, path)
}

// readModes reads the modes of a parsed file.
func readModes(root *value, source, path string) File {
	list := root.member("customModes")
	if list == nil || list.kind == aNull || list.falsy() {
		return File{}
	}
	f := File{Found: true}
	if list.kind != aList {
		f.Problems = []string{"customModes is " + string(list.kind) + ", and must be a list"}
		return f
	}
	for i, el := range list.list {
		m, err := readMode(el)
		name := fmt.Sprintf("mode %d", i+1)
		if m.Slug != "" {
			name = fmt.Sprintf("mode %q", m.Slug)
		}
		if err == nil && slices.ContainsFunc(f.Modes, func(have Mode) bool { return have.Slug == m.Slug }) {
			err = errors.New("its slug appears twice in the file; the first one counts")
		}
		if err != nil {
			f.Problems = append(f.Problems, name+" is left out: "+err.Error())
			continue
		}
		m.Source, m.Path = source, path
		f.Modes = append(f.Modes, m)
	}
	return f
}

// readRoot reads YAML, or JSON where the text is no YAML.
func readRoot(text string) (*value, error) {
	root, err := readYAML(typography.Replace(strings.TrimPrefix(text, "\ufeff")))
	if err != nil {
		var other error
		if root, other = readJSON(text); other != nil {
			return nil, err
		}
	}
	return root, nil
}

// falsy reports whether JavaScript counts the value as false.
func (v *value) falsy() bool {
	switch v.kind {
	case aString:
		return v.text == ""
	case aBool:
		return strings.EqualFold(v.text, "false")
	case aNumber:
		return strings.Trim(v.text, "+-0.") == "" || strings.EqualFold(v.text, ".nan")
	}
	return false
}

// typography undoes what word processors and chats do to YAML, as Roo does.
var typography = strings.NewReplacer(
	"\u00a0", " ", "\u200b", "", "\u200c", "", "\u200d", "",
	"\u2010", "-", "\u2011", "-", "\u2012", "-", "\u2013", "-", "\u2014", "-", "\u2015", "-", "\u2212", "-",
	"\u2018", "'", "\u2019", "'", "\u201c", `"`, "\u201d", `"`,
)

var slugForm = regexp.MustCompile(`^[a-zA-Z0-9-]+$`)

// readMode reads one mode. With an error it returns what names the mode.
func readMode(v *value) (Mode, error) {
	m := Mode{Groups: []Group{}}
	if v.kind != aMap {
		return m, fmt.Errorf("it is %s, and must be a map with slug, name, roleDefinition and groups", v.kind)
	}
	var problems []string
	text := func(to *string, key string, required bool) {
		member := v.member(key)
		switch {
		case member == nil && !required:
		case member == nil:
			problems = append(problems, key+" is missing")
		case member.kind != aString:
			problems = append(problems, fmt.Sprintf("%s is %s, and must be text (put it in quotes)", key, member.kind))
		case len(member.text) > maxText:
			problems = append(problems, fmt.Sprintf("%s has %d bytes, and may have %d", key, len(member.text), maxText))
		case required && member.text == "":
			problems = append(problems, key+" is empty")
		default:
			*to = member.text
		}
	}
	text(&m.Slug, "slug", true)
	if m.Slug != "" && !slugForm.MatchString(m.Slug) {
		problems = append(problems, "its slug may hold only letters, digits and dashes")
	}
	text(&m.Name, "name", true)
	text(&m.RoleDefinition, "roleDefinition", true)
	text(&m.WhenToUse, "whenToUse", false)
	text(&m.Description, "description", false)
	text(&m.CustomInstructions, "customInstructions", false)
	var source string
	text(&source, "source", false)
	if s := v.member("source"); s != nil && s.kind == aString && source != Global && source != Project {
		problems = append(problems, "source must be global or project")
	}
	switch list := v.member("groups"); {
	case list == nil:
		problems = append(problems, "groups is missing")
	case list.kind != aList:
		problems = append(problems, fmt.Sprintf("groups is %s, and must be a list", list.kind))
	default:
		for _, el := range list.list {
			g, keep, err := readGroup(el)
			switch {
			case err != nil:
				problems = append(problems, err.Error())
			case !keep:
			case slices.ContainsFunc(m.Groups, func(have Group) bool { return have.Name == g.Name }):
				problems = append(problems, "the group "+g.Name+" appears twice")
			default:
				m.Groups = append(m.Groups, g)
			}
		}
	}
	if len(problems) > 0 {
		return m, errors.New(strings.Join(problems, "; "))
	}
	return m, nil
}

// obsoleteGroups are groups of older versions: they are accepted and have no meaning.
var obsoleteGroups = []string{"browser"}

// readGroup reads a name, or a list of a name and options. keep is false for an obsolete group.
func readGroup(v *value) (g Group, keep bool, err error) {
	name := v
	if v.kind == aList && len(v.list) > 0 {
		name = v.list[0]
	}
	if name.kind == aString && slices.Contains(obsoleteGroups, name.text) {
		return g, false, nil
	}
	if _, known := groups[name.text]; name.kind != aString || !known {
		return g, false, fmt.Errorf("a group is %s %s; there are read, edit, command, mcp and modes", name.kind, name.text)
	}
	g.Name = name.text
	if v.kind == aString {
		return g, true, nil
	}
	if len(v.list) != 2 || v.list[1].kind != aMap {
		return g, false, fmt.Errorf("the group %s must be its name, or its name and a map of fileRegex and description", g.Name)
	}
	g.limited = true
	for _, option := range []struct {
		key   string
		to    *string
		empty *bool
	}{{"fileRegex", &g.FileRegex, &g.emptyRegex}, {"description", &g.Description, &g.emptyDescription}} {
		switch member := v.list[1].member(option.key); {
		case member == nil:
		case member.kind != aString:
			return g, false, fmt.Errorf("%s of the group %s is %s, and must be text", option.key, g.Name, member.kind)
		default:
			*option.to, *option.empty = member.text, member.text == ""
		}
	}
	if g.FileRegex != "" {
		if g.files, err = compile(g.FileRegex); err != nil {
			return g, false, fmt.Errorf("fileRegex of the group %s: %w", g.Name, err)
		}
	}
	return g, true, nil
}

// ReadFile reads a file of modes; a missing file holds none.
func ReadFile(fsys fs.FS, name, source, path string) File {
	problem := func(err error) File {
		return File{Problems: []string{fmt.Sprintf("it cannot be read: %v", withoutPath(err))}}
	}
	info, err := fs.Stat(fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return File{}
	case err != nil:
		return problem(err)
	case !info.Mode().IsRegular(): // opening a pipe would block for ever
		return problem(errors.New("it is no regular file"))
	}
	data, err := readUpTo(fsys, name, maxFile+1)
	if err != nil {
		return problem(err)
	}
	return Parse(string(data), source, path)
}
