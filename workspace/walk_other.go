//go:build !unix

package workspace

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/internal/inputfile"
)

// leadsTo reports whether a clean absolute path leads to info without passing a link. It holds each folder on the way
// open while it looks up the next name in it.
func (w *Workspace) leadsTo(path string, info fs.FileInfo) bool {
	here, names, err := w.walkFrom(path)
	if err != nil {
		return false
	}
	defer func() { here.Close() }()
	at, err := here.Stat(".")
	for i := 0; err == nil && i < len(names); i++ {
		if at, err = here.Lstat(names[i]); err != nil || i == len(names)-1 {
			break
		}
		if !at.IsDir() {
			return false
		}
		next, err := here.OpenRoot(names[i])
		if err != nil {
			return false
		}
		here.Close()
		here = next
		if now, err := here.Stat("."); err != nil || !os.SameFile(at, now) {
			return false
		}
	}
	return err == nil && os.SameFile(at, info)
}

// walkFrom opens the folder where the walk along path begins, and returns the names below that folder: the workspace
// while its path still leads to the same folder, otherwise the top of the file system.
func (w *Workspace) walkFrom(path string) (*os.Root, []string, error) {
	if rest, ok := Within(w.root, path); ok {
		if root, err := inputfile.OpenDir(w.root); err == nil {
			if now, err := root.Stat("."); err == nil && os.SameFile(now, w.info) {
				return root, namesOf(rest), nil
			}
			root.Close()
		}
	}
	vol := filepath.VolumeName(path)
	root, err := inputfile.OpenDir(vol)
	return root, namesOf(path[len(vol):]), err
}
