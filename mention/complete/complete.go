// Package complete completes the beginning of a word: files and folders after "@", commands and skills after "/", and
// names from any list.
//
// Limits: it uses the first 20,000 names of a workspace, folders near the root first; a list is reused for five
// seconds, so that a person who keeps typing does not wait for the disk; it offers 50 words.
package complete

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/keyed"
	"github.com/roost-dev/roost/mention"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/search"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/skill"
	"github.com/roost-dev/roost/workspace/slash"
)

// offered bounds the offered words; rather than read more, a person types another letter.
const offered = 50

// Rank returns the words that match the typed beginning, the best first. With about, a description may match instead of the
// name, which may be only an id. Rank leaves out a word that a terminal cannot show unchanged.
func Rank(list []api.Completion, begun string, about bool) []api.Completion {
	type scored struct {
		api.Completion
		score int
	}
	var fits []scored
	for _, word := range list {
		score, ok := fuzzy(begun, word.Text)
		if other, fit := fuzzy(begun, word.About); about && !ok && fit {
			score, ok = other+1000, true
		}
		if ok && redact.Terminal(word.Text) == word.Text && !strings.Contains(word.Text, "\n") {
			fits = append(fits, scored{word, score})
		}
	}
	slices.SortStableFunc(fits, func(a, b scored) int { return cmp.Compare(a.score, b.score) })
	return api.Each(fits[:min(len(fits), offered)], func(f scored) api.Completion { return f.Completion })
}

// fuzzy reports whether all typed characters occur in a word in this order, and the distance of the word: 0 is an
// equal word. A beginning is nearer than a part, a part nearer than single characters, and single characters at the
// beginnings of words are nearer than others. The empty text is equally near to every word.
func fuzzy(begun, word string) (score int, ok bool) {
	if begun == "" {
		return 0, true
	}
	b, w := strings.ToLower(begun), strings.ToLower(word)
	rest := len(w) - len(b)
	switch i := strings.Index(w, b); {
	case i == 0:
		return min(rest, 99), true
	case i > 0 && !letterAt(w, i-1):
		return 100 + min(rest, 99), true
	case i > 0:
		return 200 + min(rest, 99), true
	}
	score, at := 300, 0
	for _, r := range b {
		i := strings.IndexRune(w[at:], r)
		if i < 0 {
			return 0, false
		}
		if i > 0 && letterAt(w, at+i-1) {
			score += min(i, 20)
		}
		at += i + len(string(r))
	}
	return score + min(len(w)/10, 50), true
}

// letterAt reports whether a letter or digit is at a byte of a text.
func letterAt(text string, i int) bool {
	r := rune(text[i])
	return r >= utf8.RuneSelf || unicode.IsLetter(r) || unicode.IsDigit(r)
}

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
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lists == nil || len(f.lists) == listsKept { // they serve for some seconds only
		f.lists = map[string]look{}
	}
	f.lists[w.Root()] = look{now, names}
	return names
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
	for i := range list {
		list[i].Text = "@" + list[i].Text
	}
	for _, word := range f.Find(ctx, dir, strings.ReplaceAll(strings.TrimPrefix(begun, "/"), `\ `, " "), now) {
		name := word.Text
		word.Text = "@/" + strings.ReplaceAll(name, " ", `\ `)
		// Of a name with a tab or a dot at its end, for example, a mention names only a part.
		if m := mention.Scan(strings.TrimSpace(word.Text)); len(m) == 1 && m[0].Path == name {
			list = append(list, word)
		}
	}
	return list[:min(len(list), offered)]
}

// Commands returns the slash commands and the skills of a mode that match the typed beginning. If a command and a
// skill share a name, the command counts.
func Commands(ctx context.Context, commands slash.Set, skills skill.Set, mode, begun string) []api.Completion {
	var list []api.Completion
	have := map[string]bool{}
	for _, name := range commands.Names() {
		c, err := commands.Find(ctx, name)
		if err != nil {
			continue // it cannot be used
		}
		have[name] = true
		list = append(list, api.Completion{Text: name, About: tool.OneLine(c.Description), From: from(c.Source)})
	}
	known, _ := skills.In(mode)
	for _, k := range known {
		if !have[k.Name] {
			list = append(list, api.Completion{Text: k.Name, About: tool.OneLine(k.Description), From: from(k.Source)})
		}
	}
	return Rank(list, begun, false)
}

// from returns the source of a command in the words of completions.
func from(source string) string {
	if source == "built-in" {
		return "builtin"
	}
	return source
}
