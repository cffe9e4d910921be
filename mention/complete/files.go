package complete

import (
	"context"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/keyed"
	"github.com/roost-dev/roost/mention"
	"github.com/roost-dev/roost/tool/search"
	"github.com/roost-dev/roost/workspace"
)

// Bounds of a look at a workspace: its number of names, its lifetime, its duration, and the number of stored looks.
const (
	listedMost = 20_000
	listedFor  = 5 * time.Second
	listedTime = 2 * time.Second
	listsKept  = 4
)

// Files finds files and folders of workspaces. The zero value is ready; it is safe for concurrent use.
type Files struct {
	looks keyed.Mutex[string] // by workspace: of several requests only one reads the disk
	mu    sync.Mutex
	lists map[string]look
}

// look is the list of a workspace's names at one moment.
type look struct {
	at    time.Time
	names []string
}

// Find returns the files and folders that match the typed beginning, relative to the workspace, the best first.
// Without a "/" it searches the whole workspace, otherwise the named folder and below. It leaves out files that
// .rooignore or a .gitignore hides, and hidden files until the person types the dot. Folders end in "/". For a dir
// that is no workspace it returns none.
func (f *Files) Find(ctx context.Context, dir, begun string, now time.Time) []api.Completion {
	folder, head := path.Split(begun)
	var list []api.Completion
	for _, name := range f.names(ctx, dir, now) {
		rest, in := strings.CutPrefix(name, folder)
		deep := strings.Contains(strings.TrimSuffix(rest, "/"), "/")
		if !in || rest == "" || head == "" && deep { // at first only the top
			continue
		}
		if hidden := strings.HasPrefix(rest, ".") || strings.Contains(rest, "/."); hidden && !strings.Contains(begun, ".") {
			continue
		}
		list = append(list, api.Completion{Text: name})
	}
	return Rank(list, begun, false)
}

// names returns the names of a workspace as they were a moment ago.
func (f *Files) names(ctx context.Context, dir string, now time.Time) []string {
	if dir == "" {
		return nil
	}
	w, err := workspace.Open(dir)
	if err != nil {
		return nil // there is nothing to offer
	}
	free, err := f.looks.Lock(ctx, w.Root())
	if err != nil {
		return nil
	}
	defer free()
	f.mu.Lock()
	one, ok := f.lists[w.Root()]
	f.mu.Unlock()
	if ok && now.Sub(one.at) < listedFor {
		return one.names
	}
	ctx, cancel := context.WithTimeout(ctx, listedTime)
	defer cancel()
	names, err := search.Names(ctx, w, listedMost)
	if err != nil { // of a disk that is slow, what was read so far
		return names
	}
	f.keep(w.Root(), look{now, names})
	return names
}

// keep stores a look, in place of the oldest one if there are too many.
func (f *Files) keep(root string, one look) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lists == nil {
		f.lists = map[string]look{}
	}
	f.lists[root] = one
	for len(f.lists) > listsKept {
		oldest := root
		for at, other := range f.lists {
			if other.at.Before(f.lists[oldest].at) {
				oldest = at
			}
		}
		delete(f.lists, oldest)
	}
}

// Mentions returns what may follow an "@": fixed names first, then files. Each is the whole mention.
func (f *Files) Mentions(ctx context.Context, dir, begun string, now time.Time) []api.Completion {
	var list []api.Completion
	if !strings.HasPrefix(begun, "/") {
		for _, n := range mention.Named() {
			list = append(list, api.Completion{Text: n[0], About: n[1]})
		}
		list = Rank(list, begun, false)
	}
	list = append(list, f.Find(ctx, dir, strings.ReplaceAll(strings.TrimPrefix(begun, "/"), `\ `, " "), now)...)
	for i, word := range list {
		if word.About == "" {
			word.Text = "/" + strings.ReplaceAll(word.Text, " ", `\ `)
		}
		list[i].Text = "@" + word.Text
	}
	return list[:min(len(list), offered)]
}
