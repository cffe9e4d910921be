package running

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/cli/chat"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/workspace"
)

// Bounds of what an @ looks through: entries of the workspace, folders below each other, and for how long one look
// counts while a person types.
const (
	listedMost = 20_000
	listedDeep = 12
	listedFor  = 5 * time.Second
)

// listing is the files of one workspace, as they were a moment ago.
type listing struct {
	mu   sync.Mutex
	dir  string
	at   time.Time
	list []chat.Word
}

// below are the files for what was typed behind an @: without a "/" those of the whole workspace, else those of the
// folder and below it. Files that .rooignore or the .gitignore of the workspace hide are left out, and hidden ones
// until the person types the dot. Folders end in "/".
func (l *listing) below(ctx context.Context, dir, begun string) (out []chat.Word) {
	if dir == "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir != dir || time.Since(l.at) > listedFor {
		l.list = list(ctx, dir)
		l.dir, l.at = dir, time.Now()
	}
	folder, head := path.Split(begun)
	for _, w := range l.list {
		rest, in := strings.CutPrefix(w.Text, folder)
		if !in || rest == "" || folder != "" && strings.Contains(strings.TrimSuffix(rest, "/"), "/") && head == "" {
			continue
		}
		if begun == "" && strings.Contains(strings.TrimSuffix(rest, "/"), "/") {
			continue // at first only what lies at the top
		}
		if hidden := strings.HasPrefix(rest, ".") || strings.Contains(rest, "/."); hidden && !strings.Contains(begun, ".") {
			continue
		}
		out = append(out, w)
	}
	return out
}

// list reads the names below a workspace, folder after folder, until there are too many. It follows no link.
func list(ctx context.Context, dir string) (out []chat.Word) {
	var rules []*workspace.Ignore
	if w, err := workspace.Open(dir); err == nil {
		ignore, err := w.Ignore()
		if err != nil {
			return nil // it is not known what is hidden
		}
		rules = append(rules, ignore)
	}
	if text, err := os.ReadFile(filepath.Join(dir, ".gitignore")); err == nil {
		rules = append(rules, workspace.ParseIgnore(string(text), false))
	}
	hidden := func(rel string, dir bool) bool {
		return slices.ContainsFunc(rules, func(ig *workspace.Ignore) bool { return ig.Decide(rel, dir) > 0 })
	}
	next := []string{""}
	for depth := 0; depth < listedDeep && len(next) > 0; depth++ {
		folders := next
		next = nil
		for _, folder := range folders {
			entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(folder)))
			if err != nil || ctx.Err() != nil {
				continue // there is nothing to offer
			}
			slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
			for _, e := range entries {
				rel := folder + e.Name()
				if e.Name() == ".git" || display.Safe(rel) != rel || strings.Contains(rel, "\n") || hidden(rel, e.IsDir()) {
					continue
				}
				if e.IsDir() {
					rel += "/"
					next = append(next, rel)
				}
				if out = append(out, chat.Word{Text: rel}); len(out) == listedMost {
					return out
				}
			}
		}
	}
	return out
}
