package importer

import (
	"context"
	"fmt"
	"os"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
)

// FindPath lists the tasks at a path: a task folder, a folder of task folders, or a whole storage. Every folder name
// counts, also one that cannot be an id.
func FindPath(ctx context.Context, s *store.Store, path string) ([]Original, error) {
	found, err := roofmt.Find(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", path, err)
	}
	if inOwnRoot(s, path) || found.TasksDir != "" && inOwnRoot(s, found.TasksDir) {
		return nil, fmt.Errorf("import %s: %w", path, ErrInOwnRoot)
	}
	var out []Original
	for _, f := range found.Tasks {
		out = append(out, Original{Name: f.ID, Dir: f.Dir})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("import %s: it holds no task folder: %w", path, store.ErrNotFound)
	}
	return out, nil
}

// FindSource lists the tasks of the sources with a name: the name of a source or of a tool, or "all" for every source
// except Roost's own. It leaves out tasks whose folder an editor deleted: Roost holds them already. It also returns the
// sources that cannot be read, so that the caller can import the others.
func FindSource(ctx context.Context, s *store.Store, name string) (list []Original, unreachable []api.SourceState, err error) {
	if name == store.OwnSource {
		return nil, nil, fmt.Errorf("import from %s: %w", name, ErrInOwnRoot)
	}
	refs, states, err := s.RefsAndSources(ctx)
	if err != nil {
		return nil, nil, err
	}
	matches := func(source, tool string) bool {
		return source != store.OwnSource && (name == "all" || source == name || tool == name)
	}
	known := name == "all"
	for _, state := range states {
		if matches(state.Name, state.Tool) {
			known = true
			if state.Unreachable() {
				unreachable = append(unreachable, state)
			}
		}
	}
	if !known {
		return nil, nil, fmt.Errorf("import from %s: no source has that name: %w", name, store.ErrNotFound)
	}
	for _, r := range refs {
		if !matches(r.Source, r.Tool) {
			continue
		}
		if _, err := os.Lstat(r.Dir); err == nil {
			_, id := roofmt.PlaceOf(r.Dir)
			list = append(list, Original{Name: id, Dir: r.Dir})
		}
	}
	return list, unreachable, nil
}

// inOwnRoot reports whether a path is among Roost's own tasks.
func inOwnRoot(s *store.Store, path string) bool { return store.Within(s.TasksDir(), path) }
