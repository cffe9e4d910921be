package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/workspace"
)

// layer are the rules below a folder: the current ones, and those at the survey before.
type layer struct {
	dir      string // "" or ending in "/"
	above    string // of a folder that holds the workspace: from there to it
	now, was *workspace.Ignore
}

func (l layer) decide(rules *workspace.Ignore, p string, dir bool) int {
	if rules == nil {
		return 0
	}
	return rules.Decide(l.above+p[len(l.dir):], dir)
}

// walker goes through the workspace once, in the order of recorded paths, and notes what it sees without reading
// contents. Entries of the newest survey are reused for files that look the same.
type walker struct {
	k     *Keeper
	known []string // sorted: looked at although they are hidden
	base  *scan    // the survey before a command; nil for such a one
	out   *scan
	max   int

	old []entry // the newest survey, from where the walk is
}

// leftover matches temporary files of our own writes.
var leftover = regexp.MustCompile(`^\..+\.roost-[0-9a-f]{12}\.tmp$`)

// errFull: the walk reached its limit of files.
var errFull = errors.New("too many files")

func (k *Keeper) walk(ctx context.Context, g *openRoot, base *scan) (*scan, error) {
	var known []string
	if base != nil {
		known = base.known // what became known since would look new
	} else {
		k.mu.Lock()
		known = slices.Concat(slices.Collect(maps.Keys(k.known)), slices.Collect(maps.Keys(k.tracked)))
		k.mu.Unlock()
		slices.Sort(known)
		known = slices.Compact(known)
	}
	w := &walker{k: k, known: known, base: base, max: k.o.MaxWalk, out: &scan{known: known, rules: map[string]*compiled{}}}
	if k.last != nil {
		w.old = k.last.list
		w.out.list = make([]entry, 0, len(k.last.list)+64)
	}
	err := w.folder(ctx, g.Root, "", w.outer(k.w.Root()), false)
	if err != nil && !errors.Is(err, errFull) {
		return nil, err
	}
	return w.out, nil
}

// child is one name of a folder.
type child struct {
	key  string // recorded, a folder's with "/" at the end
	name string // on the disk
	info fs.FileInfo
}

// folder walks one folder, whose recorded path is "" or ends in "/". In one that is
// hidden only known paths are looked at.
func (w *walker) folder(ctx context.Context, dir *os.Root, prefix string, layers []layer, hidden bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if prefix != "" {
		w.out.dirs = append(w.out.dirs, prefix)
	}
	names, err := w.names(dir, prefix, hidden)
	if err != nil {
		if prefix == "" {
			return err
		}
		w.out.closed = append(w.out.closed, prefix)
		return nil
	}
	children := make([]child, 0, len(names))
	git := false
	for _, name := range names {
		if gitName(name) {
			git = true
			continue
		}
		if name[0] == '.' && leftover.MatchString(name) {
			continue
		}
		info, err := dir.Lstat(name)
		if absent(err) {
			continue
		}
		if err != nil { // a folder that may be read and not entered
			if prefix == "" {
				return err
			}
			w.out.closed = append(w.out.closed, prefix)
			return nil
		}
		c := child{key: Recorded(name), name: name, info: info}
		if info.IsDir() {
			c.key += "/"
		}
		children = append(children, c)
	}
	slices.SortFunc(children, func(a, b child) int { return strings.Compare(a.key, b.key) })
	if git {
		w.out.repos = append(w.out.repos, strings.TrimSuffix("./"+prefix, "/"))
		layers = w.exclude(dir, prefix, layers)
	}
	if !hidden {
		layers = w.layer(dir, prefix, layers)
	}
	for _, c := range children {
		p := prefix + c.key
		if !c.info.IsDir() {
			if (hidden || w.hides(layers, p, false)) && !w.wanted(p) {
				w.veil(p, hidden)
				continue
			}
			if len(w.out.list) >= w.max {
				w.out.end = p
				return errFull
			}
			w.add(p, c.info)
			continue
		}
		veiled := hidden || w.hides(layers, strings.TrimSuffix(p, "/"), true)
		if veiled {
			w.veil(p, hidden)
		}
		if veiled && !w.wantedBelow(p) {
			continue
		}
		sub, err := dir.OpenRoot(c.name)
		if err == nil {
			if got, e := sub.Stat("."); e != nil || !os.SameFile(got, c.info) {
				sub.Close()
				err = errVanished
			}
		}
		if err != nil {
			w.out.dirs = append(w.out.dirs, p)
			w.out.closed = append(w.out.closed, p)
			continue
		}
		err = w.folder(ctx, sub, p, layers, veiled)
		sub.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// maxVeiled bounds how many hidden names a survey keeps, for naming a few of them.
const maxVeiled = 1000

// veil notes a hidden path; below is true inside a hidden folder.
func (w *walker) veil(p string, below bool) {
	if w.base == nil && !below && len(w.out.veiled) < maxVeiled {
		w.out.veiled = append(w.out.veiled, p)
	}
}

// names lists a folder; of a hidden one only names that lead to known paths.
func (w *walker) names(dir *os.Root, prefix string, hidden bool) ([]string, error) {
	if hidden {
		return w.knownIn(prefix), nil
	}
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

func (w *walker) knownIn(prefix string) (names []string) {
	add := func(p string) {
		name, _, _ := strings.Cut(p[len(prefix):], "/")
		if name = OnDisk(name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	i, _ := slices.BinarySearch(w.known, prefix)
	for ; i < len(w.known) && strings.HasPrefix(w.known[i], prefix); i++ {
		add(w.known[i])
	}
	if w.base != nil {
		i, _ := w.base.find(prefix)
		for ; i < len(w.base.list) && strings.HasPrefix(w.base.list[i].path, prefix); i++ {
			add(w.base.list[i].path)
		}
	}
	return names
}

// wanted reports that a file is examined although it is hidden.
func (w *walker) wanted(p string) bool {
	_, ok := slices.BinarySearch(w.known, p)
	return ok || w.base != nil && w.base.has(p, false)
}

// wantedBelow: there may be such a file in a folder, whose path ends in "/".
func (w *walker) wantedBelow(p string) bool {
	i, _ := slices.BinarySearch(w.known, p)
	return i < len(w.known) && strings.HasPrefix(w.known[i], p) || w.base != nil && w.base.has(strings.TrimSuffix(p, "/"), true)
}

// add notes a file.
func (w *walker) add(p string, info fs.FileInfo) {
	now := statOf(info)
	for len(w.old) > 0 && w.old[0].path < p {
		w.old = w.old[1:]
	}
	if len(w.old) > 0 && w.old[0].path == p {
		if o := &w.old[0]; o.stat == now {
			w.out.list = append(w.out.list, *o)
			return
		}
	}
	w.out.list = append(w.out.list, entry{path: strings.Clone(p), stat: now})
}

// hides asks the nearest rules first; parents were judged on the way down. After a command, what was hidden before it
// stays hidden, and what it hid is examined if it was seen before: otherwise a changed .gitignore would look like added
// or removed files.
func (w *walker) hides(layers []layer, p string, dir bool) bool {
	same := true
	for i := len(layers) - 1; i >= 0; i-- {
		l := layers[i]
		if l.now != l.was {
			same = false
		}
		if v := l.decide(l.now, p, dir); v != 0 {
			if v > 0 {
				return true
			}
			break
		}
	}
	if w.base == nil || same {
		return false
	}
	for i := len(layers) - 1; i >= 0; i-- {
		if v := layers[i].decide(layers[i].was, p, dir); v != 0 {
			return v > 0
		}
	}
	return false
}

// layer adds a folder's .gitignore.
func (w *walker) layer(dir *os.Root, prefix string, layers []layer) []layer {
	return w.push(layers, layer{dir: prefix}, prefix+".gitignore", w.rules(dir, ".gitignore", prefix+".gitignore"))
}

// exclude adds what a repository hides without a .gitignore. That of a worktree is elsewhere, and is left out.
func (w *walker) exclude(dir *os.Root, prefix string, layers []layer) []layer {
	return w.push(layers, layer{dir: prefix}, prefix+".git/info/exclude",
		w.rules(dir, path.Join(".git", "info", "exclude"), prefix+".git/info/exclude"))
}

// outer are the rules above the workspace, of the repository around it.
func (w *walker) outer(root string) (layers []layer) {
	top, above := enclosing(root)
	for i := range above {
		dir, err := os.OpenRoot(top)
		if err != nil {
			return layers
		}
		l := layer{above: strings.Join(above[i:], "/") + "/"}
		if i == 0 {
			layers = w.push(layers, l, top+"/.git/info/exclude",
				w.rules(dir, path.Join(".git", "info", "exclude"), top+"/.git/info/exclude"))
		}
		layers = w.push(layers, l, top+"/.gitignore", w.rules(dir, ".gitignore", top+"/.gitignore"))
		dir.Close()
		top = filepath.Join(top, above[i])
	}
	return layers
}

func (w *walker) push(layers []layer, l layer, key string, now *compiled) []layer {
	if now != nil {
		w.out.rules[key] = now
		l.now = now.rules
	}
	if w.base != nil {
		if was := w.base.rules[key]; was != nil {
			l.was = was.rules
		}
	}
	if l.now == nil && l.was == nil {
		return layers
	}
	return append(layers[:len(layers):len(layers)], l) // a new slice: siblings share the one before
}

// maxRules bounds a file of rules in bytes.
const maxRules = 1 << 20

// rules reads a file of rules, unless it is as it was when it was read last.
func (w *walker) rules(dir *os.Root, name, key string) *compiled {
	info, err := dir.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRules {
		return nil
	}
	now := statOf(info)
	if have, ok := w.k.rules[key]; ok && have.stat == now && now.settled(have.read) {
		return &have
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|workspace.OpenNonblock, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	fresh := compiled{stat: now, read: time.Now().UnixNano()}
	var text bytes.Buffer
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if _, err := io.Copy(&text, io.LimitReader(f, maxRules)); err != nil {
		return nil
	}
	fresh.text = text.String()
	fresh.rules = workspace.ParseIgnore(fresh.text, false)
	w.k.rules[key] = fresh
	return &fresh
}
