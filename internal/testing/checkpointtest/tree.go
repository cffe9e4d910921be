package checkpointtest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Node is what a path holds: a file or a link. The zero Node is nothing.
type Node struct {
	Link bool
	Mode fs.FileMode // permission bits; of a link none
	Data string      // content, or where the link leads
}

// Tree is a whole workspace: paths with / and their content. git's own files are in no Tree; Repositories compares
// those.
type Tree map[string]Node

// ReadTree takes the picture of a folder. Anything that is neither file, folder nor
// link is an error: no test makes such things.
func ReadTree(root string) (Tree, error) {
	t := Tree{}
	err := walk(root, func(path, slash string, d fs.DirEntry) error {
		if d.Name() == ".git" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		n, err := readNode(path, d)
		t[slash] = n
		return err
	})
	return t, err
}

// Repositories are all files of all .git folders and files below a folder, by path:
// mode and digest. Two equal ones mean that no ref, index, hook, setting or object of
// any repository differs by a byte.
func Repositories(root string) (map[string]string, error) {
	out := map[string]string{}
	err := walk(root, func(path, slash string, d fs.DirEntry) error {
		if !slices.Contains(strings.Split(slash, "/"), ".git") {
			return nil
		}
		if d.IsDir() {
			out[slash] = "folder"
			return nil
		}
		n, err := readNode(path, d)
		out[slash] = fmt.Sprintf("%v %v %x", n.Link, n.Mode, sha256.Sum256([]byte(n.Data)))
		return err
	})
	return out, err
}

func walk(root string, f func(path, slash string, d fs.DirEntry) error) error {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return f(path, filepath.ToSlash(rel), d)
	})
	if err != nil {
		return fmt.Errorf("look at %s: %w", root, err)
	}
	return nil
}

func readNode(path string, d fs.DirEntry) (Node, error) {
	info, err := d.Info()
	if err != nil {
		return Node{}, err
	}
	if d.Type() == fs.ModeSymlink {
		to, err := os.Readlink(path)
		return Node{Link: true, Data: to}, err
	}
	if !d.Type().IsRegular() {
		return Node{}, errors.New("neither a file nor a link")
	}
	data, err := os.ReadFile(path)
	return Node{Mode: info.Mode().Perm(), Data: string(data)}, err
}

// Clone is a copy that may be changed.
func (t Tree) Clone() Tree { return maps.Clone(t) }

// Set puts something at a path; the zero Node takes it away.
func (t Tree) Set(path string, n Node) {
	if n == (Node{}) {
		delete(t, path)
		return
	}
	t[path] = n
}

// Differs are the paths at which two trees differ, sorted.
func (t Tree) Differs(o Tree) []string {
	var out []string
	for _, path := range t.with(o) {
		if t[path] != o[path] {
			out = append(out, path)
		}
	}
	return out
}

func (t Tree) with(o Tree) []string {
	all := maps.Clone(t)
	maps.Copy(all, o)
	return slices.Sorted(maps.Keys(all))
}

// Compare describes how a tree differs from the one that was wanted, "" when it does not.
func (t Tree) Compare(want Tree) string {
	var b strings.Builder
	for _, path := range t.Differs(want) {
		fmt.Fprintf(&b, "  %q\n    is     %s\n    wanted %s\n", path, t[path], want[path])
	}
	return b.String()
}

func (n Node) String() string {
	switch {
	case n == (Node{}):
		return "nothing"
	case n.Link:
		return fmt.Sprintf("a link to %q", n.Data)
	}
	return fmt.Sprintf("a file %v %.600q", n.Mode, brief.ReplaceAllString(n.Data, ""))
}

// brief leaves out what never changes in the files of the tests.
var brief = regexp.MustCompile(`(?m)^still .*\n`)
