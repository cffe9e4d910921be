package search

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// listEntry is one line of a listing.
type listEntry struct {
	path      string // relative to the listed folder, "/" between names, folders end in "/"
	ignored   bool
	protected bool
}

const (
	lockMark   = "\U0001F512 "
	shieldMark = "\U0001F6E1\ufe0f "
)

// formatListing sorts entries and writes them one a line. Hidden ones get a lock
// or, unless showIgnored, no line. marks is whether there are rules at all:
// without them nothing is marked.
func formatListing(entries []listEntry, limited, showIgnored, marks bool) string {
	sortEntries(entries)
	var lines []string
	for _, e := range entries {
		name := tool.SafeName(e.path)
		switch {
		case !marks:
			lines = append(lines, name)
		case e.ignored && !showIgnored:
		case e.ignored:
			lines = append(lines, lockMark+name)
		case e.protected:
			lines = append(lines, shieldMark+name)
		default:
			lines = append(lines, name)
		}
	}
	text := strings.Join(lines, "\n")
	switch {
	case limited:
		return text + "\n\n(File list truncated. Use list_files on specific subdirectories if you need to explore further.)"
	case text == "":
		return "No files found."
	}
	return text
}

// sortEntries puts a folder's files before its folders' content. Names that
// differ only by case or accents count as equal, so this is no strict order and
// the result depends on the steps taken: they are those of a JavaScript engine
// for short lists, one run from the left and then binary insertion. Lists are
// short by the limit on entries.
func sortEntries(entries []listEntry) {
	keys := make([]sortKey, len(entries))
	for i, e := range entries {
		keys[i] = sortKey{strings.Split(e.path, "/"), e}
	}
	less := func(a, b sortKey) bool { return comparePaths(a.parts, b.parts) < 0 }
	run := min(1, len(keys))
	if len(keys) > 1 {
		falling := less(keys[1], keys[0])
		for run = 2; run < len(keys) && less(keys[run], keys[run-1]) == falling; run++ {
		}
		if falling {
			slices.Reverse(keys[:run])
		}
	}
	for ; run < len(keys); run++ {
		k := keys[run]
		at := sort.Search(run, func(i int) bool { return less(k, keys[i]) })
		copy(keys[at+1:run+1], keys[at:run])
		keys[at] = k
	}
	for i, k := range keys {
		entries[i] = k.entry
	}
}

type sortKey struct {
	parts []string
	entry listEntry
}

func comparePaths(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		if i+1 == len(a) && i+1 < len(b) {
			return -1
		}
		if i+1 == len(b) && i+1 < len(a) {
			return 1
		}
		return compareNames(a[i], b[i])
	}
	return len(a) - len(b)
}

// newEntry judges an absolute path below base.
func newEntry(ws *workspace.Workspace, rules *workspace.Ignore, base, abs string, dir bool) listEntry {
	e := listEntry{path: slashRel(base, abs)}
	if dir && e.path != "" {
		e.path += "/"
	}
	if rel, ok := insideRel(ws.Root(), abs); ok {
		e.ignored = rules.Hides(rel, dir)
		e.protected = workspace.Protected(rel)
	}
	return e
}

// relBelow returns a clean path relative to a folder above it: filepath.Rel without splitting both
// paths, a cost that shows when every file of a tree is judged.
func relBelow(base, abs string) (string, bool) {
	rest, ok := strings.CutPrefix(abs, base)
	if !ok || len(rest) < 2 || rest[0] != filepath.Separator {
		return "", false
	}
	return filepath.ToSlash(rest[1:]), true
}

func slashRel(base, abs string) string {
	if rel, ok := relBelow(base, abs); ok {
		return rel
	}
	rel, err := filepath.Rel(base, abs)
	if err != nil {
		return filepath.ToSlash(abs)
	}
	if rel == "." {
		return ""
	}
	return filepath.ToSlash(rel)
}

func insideRel(root, abs string) (string, bool) {
	if rel, ok := relBelow(root, abs); ok {
		return rel, true
	}
	rel, err := filepath.Rel(root, abs)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// maxEntries is how many names a listing shows.
const maxEntries = 200

// List returns the names in a folder, or in all folders below it, as list_files shows them.
// Of a home or root folder that is not the workspace it names only the folder itself.
func List(ctx context.Context, ws *workspace.Workspace, base string, recursive bool) (string, error) {
	if tooWide(base) && base != ws.Root() {
		// Only its name: the model hardly meant what is in it.
		return formatListing([]listEntry{{path: base}}, false, false, false), nil
	}
	rules, err := ws.Ignore()
	if err != nil {
		return "", err
	}
	w := walker{
		base: base, root: ws.Root(), breadth: true,
		shallow: !recursive || tooWide(base),
		enter:   func(name string) bool { return !heavy[name] && name[0] != '.' },
	}
	var entries []listEntry
	limited := false
	err = w.walk(ctx, func(abs string, d fs.DirEntry) bool {
		if e := newEntry(ws, rules, base, abs, d.IsDir()); !e.ignored {
			if len(entries) == maxEntries {
				limited = true
				return false
			}
			entries = append(entries, e)
		}
		return true
	})
	if err != nil {
		return "", err
	}
	return formatListing(entries, limited, false, rules.Any()), nil
}
