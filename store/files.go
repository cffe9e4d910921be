package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/store/projection"
)

// names lists the entries of a folder; a folder that does not exist has none.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if name[0] == '_' || name[0] == '.' {
			continue
		}
		isDir := e.IsDir()
		if e.Type()&os.ModeSymlink != 0 { // a stat for each entry would take longer than all else
			info, err := os.Stat(filepath.Join(dir, name))
			isDir = err == nil && info.IsDir()
		}
		if isDir {
			out = append(out, name)
		}
	}
	return out, nil
}

// exists reports whether a folder has an entry of a name; with the name "", whether the folder exists.
func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// linked reports whether a task folder is a symbolic link. Roost reads its target and never writes it.
func linked(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

// ErrLinked: the task folder leads out of its storage. Roost reads it and does not write it.
var ErrLinked = projection.ErrLinked

// clean is a path with all links resolved; a path that does not exist is only cleaned.
func clean(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// Within reports whether a path is a folder or below it, with all links resolved.
func Within(dir, path string) bool {
	rel, err := filepath.Rel(clean(dir), clean(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// inFolder is filepath.Join for a clean folder and the name of one in it.
func inFolder(dir, name string) string {
	if dir == "" || os.IsPathSeparator(dir[len(dir)-1]) {
		return filepath.Join(dir, name)
	}
	return dir + string(filepath.Separator) + name
}
