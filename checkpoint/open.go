package checkpoint

import (
	"fmt"
	"path/filepath"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/workspace"
)

// Open opens the keeper of a workspace, whose store is a folder in dir, which is the
// program's own (<root>/checkpoints) and is made when absent. The error wraps ErrRefused for the root
// of a disk, a home folder or what holds one, and for folders that hold the program's
// own data, or lie in it.
func Open(dir string, w *workspace.Workspace, o Options) (*Keeper, error) {
	o = o.filled()
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the checkpoints of %s: %w", w.Root(), err)
	}
	if why := refused(w.Root(), filepath.Dir(dir), o.Home); why != "" {
		return nil, fmt.Errorf("%w: %s", ErrRefused, why)
	}
	name := NameOf(w.Root())
	c, err := OpenContents(dir, name)
	if err != nil {
		return nil, fmt.Errorf("open the checkpoints of %s: %w", w.Root(), err)
	}
	k := &Keeper{
		w: w, name: name, o: o, Contents: c,
		known: map[string]bool{}, sound: map[content.Hash]bool{}, saved: map[string]saved{}, unsaved: map[string]int64{},
		turn: make(chan struct{}, 1), rules: map[string]compiled{},
		tracked: map[string]bool{},
	}
	k.git.program = o.Git
	return k, nil
}
