package mode

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/internal/lazyregexp"
)

// Limits of rules. A text beyond them is cut, and a line in it reports that: every request contains the rules.
const (
	maxRuleFile  = 64 << 10  // bytes of one file
	maxRules     = 192 << 10 // bytes of all files
	maxRuleFiles = 100
	maxRuleDepth = 5
	maxRuleNames = 10_000 // that are looked at
)

// Rules are the user's instructions to the model in one mode, from files.
type Rules struct {
	Sections []Section
	Notes    []string // the files that could not be read, for the person
}

// Section is the text of one file of rules.
type Section struct {
	Title string // its origin; begins with "~" for the user's own files
	Text  string
}

// Places are the folders with rules; each may be nil.
type Places struct {
	Project  fs.FS // the workspace
	Home     fs.FS // the folder that holds the user's .roo
	Settings fs.FS // the folder of the user's settings, with the rules of imported modes
}

// ImportedRules is the subfolder of the settings for the rules of imported modes, with one folder per mode.
const ImportedRules = "mode-rules"

// LoadRules reads the rules for one mode, in a fixed order: first those of the mode, then AGENTS.md, then those of
// every mode; within each, the user's own before the workspace's, and files by name. As in Roo the older single files
// (.roorules, .clinerules) count only where the folders hold nothing.
//
// Unreadable files are noted and left out: a broken rule must not stop a task. Links are followed as far as each
// fs.FS allows; that of Project should not lead out of the workspace.
func LoadRules(p Places, slug string) Rules {
	l := &ruleLoader{left: maxRules}
	if slugForm().MatchString(slug) {
		l.loadKind(p, "-"+slug, slug)
	}
	for _, names := range [][]string{{"AGENTS.md", "AGENT.md"}, {"AGENTS.local.md"}} {
		for _, name := range names {
			if l.loadFile(p.Project, name, name) {
				break
			}
		}
	}
	l.loadKind(p, "", "")
	if l.skipped > 0 {
		l.note("%d files of rules are left out: at most %d files and %d KiB are sent", l.skipped, maxRuleFiles, maxRules>>10)
	}
	return l.rules
}

type ruleLoader struct {
	rules   Rules
	left    int // remaining bytes
	files   int
	names   int // that were looked at
	skipped int
}

func (l *ruleLoader) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(l.rules.Notes, text) { // a name may be a file's or a folder's
		l.rules.Notes = append(l.rules.Notes, text)
	}
}

// loadKind loads the rules of one mode ("-<slug>") or of every mode ("").
func (l *ruleLoader) loadKind(p Places, suffix, slug string) {
	any := l.loadFolder(p.Home, ".roo/rules"+suffix, "~/")
	if slug != "" {
		any = l.loadFolder(p.Settings, ImportedRules+"/"+slug, "settings:") || any
	}
	any = l.loadFolder(p.Project, ".roo/rules"+suffix, "") || any
	if any {
		return
	}
	for _, name := range []string{".roorules" + suffix, ".clinerules" + suffix} {
		if l.loadFile(p.Project, name, name) || l.loadFolder(p.Project, name, "") {
			return
		}
	}
}

// loadFolder loads the files of a folder and its subfolders; it returns false when they hold no text.
func (l *ruleLoader) loadFolder(fsys fs.FS, dir, prefix string) bool {
	if fsys == nil {
		return false
	}
	info, err := fs.Stat(fsys, dir)
	if err != nil || !info.IsDir() {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.note("the rules in %s cannot be read: %v", prefix+dir, inputfile.WithoutPath(err))
		}
		return false
	}
	var names []string
	l.listFiles(fsys, dir, prefix, []fs.FileInfo{info}, &names)
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.ToLower(path.Base(a)), strings.ToLower(path.Base(b))), cmp.Compare(a, b))
	})
	any := false
	for _, name := range names {
		any = l.loadFile(fsys, name, prefix+name) || any
	}
	return any
}

// listFiles collects the files below a folder. within holds that folder and the folders above it: it does not follow
// a link to one of them, since the walk would never end. Limits stop the walk of a large tree behind a link.
func (l *ruleLoader) listFiles(fsys fs.FS, dir, prefix string, within []fs.FileInfo, names *[]string) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		l.note("the rules in %s cannot be read: %v", prefix+dir, inputfile.WithoutPath(err))
		return
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if noRule(e.Name()) {
			continue
		}
		if l.names++; l.names > maxRuleNames {
			l.skipped++
			return
		}
		info, err := fs.Stat(fsys, name) // a link's target
		switch {
		case err != nil:
			l.note("the rules in %s cannot be read: %v", prefix+name, inputfile.WithoutPath(err))
		case slices.ContainsFunc(within, func(up fs.FileInfo) bool { return os.SameFile(up, info) }):
		case info.IsDir() && len(within) > maxRuleDepth:
			l.note("the rules in %s are nested too deeply and are left out", prefix+name)
		case info.IsDir():
			l.listFiles(fsys, name, prefix, append(within[:len(within):len(within)], info), names)
		case len(*names) >= 10*maxRuleFiles:
			l.skipped++
		default:
			*names = append(*names, name)
		}
	}
}

// noRule matches the names of files that editors and systems leave behind.
func noRule(name string) bool { return leftovers().MatchString(name) }

var leftovers = lazyregexp.New(`(?i)^(\.ds_store|thumbs\.db|desktop\.ini|\.gitkeep|\.gitignore)$|` +
	`(~|\.(bak|sw[po]|te?mp|log|old|orig|cache))$`)

// loadFile loads one file; false when it does not exist or holds no text.
func (l *ruleLoader) loadFile(fsys fs.FS, name, title string) bool {
	if fsys == nil {
		return false
	}
	if info, err := fs.Stat(fsys, name); err == nil && info.IsDir() {
		return false
	}
	data, err := inputfile.ReadFS(fsys, name, maxRuleFile+1)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		l.note("the rules in %s cannot be read: %v", title, inputfile.WithoutPath(err))
		return false
	}
	if bytes.IndexByte(data, 0) >= 0 {
		l.note("the rules in %s are left out: it is not text", title)
		return false
	}
	room := min(maxRuleFile, l.left)
	text := normalizeText(data[:min(len(data), room)])
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

// normalizeText removes differences between systems that have no meaning.
func normalizeText(data []byte) string {
	s := strings.ToValidUTF8(strings.TrimPrefix(string(data), "\ufeff"), "\uFFFD")
	return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n"))
}
