package search

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// heavy are folders that hold what tools made. They are listed and not entered
// unless they are what was asked for.
var heavy = map[string]bool{
	"node_modules": true, "__pycache__": true, "venv": true, "env": true, "target": true, "dist": true, "out": true,
	"bundle": true, "vendor": true, "tmp": true, "temp": true, "deps": true, "Pods": true,
}

// walker goes through a folder in name order, breadth first if asked, minding
// .gitignore files on the way. It never follows links to folders, so it ends and
// stays below its base.
type walker struct {
	base    string // absolute, links followed
	root    string // rules of .gitignore files from here down count
	enter   func(name string) bool
	shallow bool // do not enter folders
	breadth bool // a folder's own entries first, then what its folders hold
}

// visit is called for every entry; false ends the walk.
type visit func(abs string, d fs.DirEntry) bool

type ignoreLayer struct {
	dir   string
	rules *workspace.Ignore
}

func (w walker) walk(ctx context.Context, fn visit) error {
	layers := w.outerLayers()
	type folder struct {
		abs    string
		layers []ignoreLayer
	}
	queue := []folder{{w.base, layers}}
	for len(queue) > 0 {
		var f folder
		if w.breadth {
			f, queue = queue[0], queue[1:]
		} else {
			f, queue = queue[len(queue)-1], queue[:len(queue)-1]
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := readFolder(f.abs)
		if err != nil {
			if f.abs == w.base || tool.ContextError(err) != nil {
				return err
			}
			continue // a folder that may not be read hides its content, no more
		}
		own := withLayer(f.layers, f.abs)
		var sub []folder
		for _, d := range entries {
			abs := filepath.Join(f.abs, d.Name())
			if d.Name() == ".git" || hiddenByGit(own, abs, d.IsDir()) {
				continue
			}
			if !fn(abs, d) {
				return nil
			}
			if d.IsDir() && !w.shallow && w.enter(d.Name()) {
				sub = append(sub, folder{abs, own})
			}
		}
		if !w.breadth {
			slices.Reverse(sub)
		}
		queue = append(queue, sub...)
	}
	return nil
}

// outerLayers gives the .gitignore files between the root and the base.
func (w walker) outerLayers() []ignoreLayer {
	rel, ok := insideRel(w.root, w.base)
	if !ok {
		return nil
	}
	layers := withLayer(nil, w.root)
	dir := w.root
	for _, part := range strings.Split(rel, "/") {
		if dir = filepath.Join(dir, part); dir != w.base {
			layers = withLayer(layers, dir)
		}
	}
	return layers
}

func withLayer(layers []ignoreLayer, dir string) []ignoreLayer {
	name := filepath.Join(dir, ".gitignore")
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return layers
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return layers
	}
	// A new slice: siblings share the one before.
	return append(layers[:len(layers):len(layers)], ignoreLayer{dir, workspace.ParseIgnore(string(text), false)})
}

// hiddenByGit asks the nearest file first; parents were judged on the way down.
func hiddenByGit(layers []ignoreLayer, abs string, dir bool) bool {
	for i := len(layers) - 1; i >= 0; i-- {
		rel, ok := insideRel(layers[i].dir, abs)
		if !ok {
			continue
		}
		if v := layers[i].rules.Decide(rel, dir); v != 0 {
			return v > 0
		}
	}
	return false
}

// tooWide reports whether a folder is a home directory or a root, which are never
// walked through: that would show files the model did not ask for, and take too long.
func tooWide(abs string) bool {
	if filepath.Dir(abs) == abs {
		return true
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	return abs == home
}

// maxFolder bounds how many names of one folder are taken: sorting them needs them
// all in memory, and a folder with more is no folder that people look into.
const maxFolder = 200_000

// readFolder is os.ReadDir that takes no more than maxFolder names.
func readFolder(name string) ([]fs.DirEntry, error) {
	// Stat first: opening a pipe would wait for a writer.
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "list", Path: name, Err: syscall.ENOTDIR}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := f.ReadDir(maxFolder)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}

// CompileGlob makes a test of paths relative to the searched folder. A glob
// without "/" is about the name at any depth; {a,b} gives alternatives.
func CompileGlob(glob string) (func(string) bool, error) {
	glob = filepath.ToSlash(strings.TrimSpace(glob))
	if glob == "" || glob == "*" {
		return func(string) bool { return true }, nil
	}
	exclude := strings.HasPrefix(glob, "!")
	var text strings.Builder
	alternatives := expandBraces(strings.TrimPrefix(glob, "!"), 256)
	if alternatives == nil {
		return nil, fmt.Errorf("the file_pattern %q has too many alternatives", glob)
	}
	for _, g := range alternatives {
		if g = strings.TrimPrefix(g, "./"); g != "" && (g[0] == '#' || g[0] == '!') {
			g = `\` + g
		}
		text.WriteString(g + "\n")
	}
	rules := workspace.ParseIgnore(text.String(), false)
	return func(rel string) bool { return rules.Hides(rel, false) != exclude }, nil
}

// expandBraces writes {a,b} out, nil when that gives more than most texts.
func expandBraces(s string, most int) []string {
	open := strings.IndexByte(s, '{')
	if open < 0 {
		return []string{s}
	}
	depth, start := 0, open+1
	var parts []string
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case ',':
			if depth == 1 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		case '}':
			if depth--; depth > 0 {
				continue
			}
			parts = append(parts, s[start:i])
			var out []string
			for _, p := range parts {
				rest := expandBraces(s[:open]+p+s[i+1:], most-len(out))
				if rest == nil || len(out)+len(rest) > most {
					return nil
				}
				out = append(out, rest...)
			}
			return out
		}
	}
	return []string{s} // never closed: literal
}
