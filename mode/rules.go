package mode

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Limits of rules. What is beyond them is cut, and that is said in the text itself:
// rules are sent with every request.
const (
	maxRuleFile  = 64 << 10  // bytes of one file
	maxRules     = 192 << 10 // bytes of all
	maxRuleFiles = 100
	maxRuleDepth = 5
)

// Rules are what the user's files tell a model to do, in one mode.
type Rules struct {
	Sections []Section
	Notes    []string // what could not be read, for the person
}

// Section is the text of one file of rules.
type Section struct {
	Title string // where it is from; of a file of the user's own it begins with "~"
	Text  string
}

// Places are where rules lie; each may be nil.
type Places struct {
	Project  fs.FS // the workspace
	Home     fs.FS // the folder that holds the user's .roo
	Settings fs.FS // the folder of the user's settings, with the rules of imported modes
}

// ImportedRules is the folder of the settings that holds the rules of imported modes, a
// folder a mode.
const ImportedRules = "mode-rules"

// LoadRules reads the rules for one mode. Their order is fixed: first those of the mode,
// then AGENTS.md, then those of every mode; in each the user's own before the
// workspace's, and files by their names. As in Roo the older single files (.roorules,
// .clinerules) count only where the folders hold nothing.
//
// What cannot be read is noted and left out: a broken rule must not stop a task. Links
// are followed as far as the file systems let them; for project that should be no
// further than the workspace.
func LoadRules(p Places, slug string) Rules {
	l := &ruleLoader{left: maxRules}
	project := p.Project
	if slugForm.MatchString(slug) {
		l.kind(p, "-"+slug, slug)
	}
	for _, names := range [][]string{{"AGENTS.md", "AGENT.md"}, {"AGENTS.local.md"}} {
		for _, name := range names {
			if l.file(project, name, name) {
				break
			}
		}
	}
	l.kind(p, "", "")
	if l.skipped > 0 {
		l.note("%d files of rules are left out: at most %d files and %d KiB are sent", l.skipped, maxRuleFiles, maxRules>>10)
	}
	return l.rules
}

type ruleLoader struct {
	rules   Rules
	left    int // bytes
	files   int
	skipped int
}

func (l *ruleLoader) note(format string, args ...any) {
	l.rules.Notes = append(l.rules.Notes, fmt.Sprintf(format, args...))
}

// kind loads the rules of one mode ("-<slug>") or of every mode ("").
func (l *ruleLoader) kind(p Places, suffix, slug string) {
	project := p.Project
	any := l.folder(p.Home, ".roo/rules"+suffix, "~/")
	if slug != "" {
		any = l.folder(p.Settings, ImportedRules+"/"+slug, "settings:") || any
	}
	any = l.folder(project, ".roo/rules"+suffix, "") || any
	if any {
		return
	}
	for _, name := range []string{".roorules" + suffix, ".clinerules" + suffix} {
		if l.file(project, name, name) || l.folder(project, name, "") {
			return
		}
	}
}

// folder loads the files of a folder and of those in it; false when there is no text.
func (l *ruleLoader) folder(fsys fs.FS, dir, prefix string) bool {
	if fsys == nil {
		return false
	}
	info, err := fs.Stat(fsys, dir)
	if err != nil || !info.IsDir() {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.note("the rules in %s cannot be read: %v", prefix+dir, reason(err))
		}
		return false
	}
	var names []string
	l.list(fsys, dir, prefix, []fs.FileInfo{info}, &names)
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.ToLower(path.Base(a)), strings.ToLower(path.Base(b))), cmp.Compare(a, b))
	})
	any := false
	for _, name := range names {
		any = l.file(fsys, name, prefix+name) || any
	}
	return any
}

// list collects the files below a folder. within is that folder and those it was
// reached through: a link to one of them is not followed round and round. Bounds keep
// a link to a large tree from being walked for ever.
func (l *ruleLoader) list(fsys fs.FS, dir, prefix string, within []fs.FileInfo, names *[]string) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		l.note("the rules in %s cannot be read: %v", prefix+dir, reason(err))
		return
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if noRule(e.Name()) {
			continue
		}
		info, err := fs.Stat(fsys, name) // a link's target
		switch {
		case err != nil:
			l.note("the rules in %s cannot be read: %v", prefix+name, reason(err))
		case slices.ContainsFunc(within, func(up fs.FileInfo) bool { return os.SameFile(up, info) }):
		case info.IsDir() && len(within) > maxRuleDepth:
			l.note("the rules in %s lie too deep and are left out", prefix+name)
		case info.IsDir():
			l.list(fsys, name, prefix, append(within[:len(within):len(within)], info), names)
		case len(*names) >= 10*maxRuleFiles:
			l.skipped++
		default:
			*names = append(*names, name)
		}
	}
}

// noRule are names that editors and systems leave behind.
func noRule(name string) bool {
	switch strings.ToLower(name) {
	case ".ds_store", "thumbs.db", "desktop.ini", ".gitkeep", ".gitignore":
		return true
	}
	return slices.ContainsFunc([]string{"~", ".bak", ".swp", ".swo", ".tmp", ".temp", ".log", ".old", ".orig", ".cache"}, func(end string) bool {
		return strings.HasSuffix(strings.ToLower(name), end)
	})
}

// file loads one file; false when there is none, or no text in it.
func (l *ruleLoader) file(fsys fs.FS, name, title string) bool {
	if fsys == nil {
		return false
	}
	info, err := fs.Stat(fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		l.note("the rules in %s cannot be read: %v", title, reason(err))
		return false
	case info.IsDir():
		return false
	case !info.Mode().IsRegular(): // opening a pipe would wait for ever
		l.note("the rules in %s cannot be read: it is no regular file", title)
		return false
	}
	data, err := readUpTo(fsys, name, maxRuleFile+1)
	if err != nil {
		l.note("the rules in %s cannot be read: %v", title, reason(err))
		return false
	}
	if bytes.IndexByte(data, 0) >= 0 {
		l.note("the rules in %s are left out: it is no text", title)
		return false
	}
	room := min(maxRuleFile, l.left)
	text := clean(data[:min(len(data), room)])
	if text == "" && len(data) <= room {
		return false
	}
	if l.files >= maxRuleFiles || room == 0 {
		l.skipped++
		return false
	}
	if len(data) > room {
		text += fmt.Sprintf("\n[The rest of %s is not shown: only its first %d bytes fit.]", title, room)
		l.note("the rules in %s are cut after %d bytes", title, room)
	}
	l.files++
	l.left -= min(len(data), room)
	l.rules.Sections = append(l.rules.Sections, Section{Title: title, Text: text})
	return true
}

// clean is text without what differs between systems and means nothing.
func clean(data []byte) string {
	s := strings.ToValidUTF8(strings.TrimPrefix(string(data), "\ufeff"), "\uFFFD")
	return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n"))
}

func readUpTo(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err //nolint:wrapcheck // reason takes it apart
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, limit))
}

// reason is an error without the path, which is said before it.
func reason(err error) error {
	var where *fs.PathError
	if errors.As(err, &where) {
		return where.Err
	}
	return err
}
