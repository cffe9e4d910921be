package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/roofmt"
)

// ImportPath lists the tasks of a place: a task folder, a folder of task folders, or
// a whole storage. Each name counts, whatever bytes it is made of.
func (s *Store) ImportPath(ctx context.Context, path string) ([]Importable, error) {
	found, err := roofmt.Find(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", path, err)
	}
	if s.ownPlace(path) || found.TasksDir != "" && s.ownPlace(found.TasksDir) {
		return nil, fmt.Errorf("import %s: %w", path, ErrOwnPlace)
	}
	var out []Importable
	for _, f := range found.Tasks {
		out = append(out, Importable{Name: f.ID, Dir: f.Dir})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("import %s: it holds no task folder: %w", path, ErrNotFound)
	}
	return out, nil
}

// ImportSource lists the tasks of the sources that go by a name: a source's, a
// tool's, or "all" for every source but Roost's own. Tasks whose folder an editor
// deleted are not among them: they live on in Roost already. Sources that cannot be
// looked into come back by themselves, so that the others can go on.
func (s *Store) ImportSource(ctx context.Context, name string) (list []Importable, unreachable []SourceState, err error) {
	if name == OwnSource {
		return nil, nil, fmt.Errorf("import from %s: %w", name, ErrOwnPlace)
	}
	refs, states, err := s.refs(ctx)
	if err != nil {
		return nil, nil, err
	}
	fits := func(source, tool string) bool {
		return source != OwnSource && (name == "all" || source == name || tool == name)
	}
	known := name == "all"
	for _, state := range states {
		if fits(state.Name, state.Tool) {
			known = true
			if strings.HasPrefix(state.State, "unreachable") {
				unreachable = append(unreachable, state)
			}
		}
	}
	if !known {
		return nil, nil, fmt.Errorf("import from %s: no source goes by that name: %w", name, ErrNotFound)
	}
	for _, r := range refs {
		if fits(r.Source, r.Tool) && exists(r.Dir, "") {
			_, id := roofmt.PlaceOf(r.Dir)
			list = append(list, Importable{Name: id, Dir: r.Dir})
		}
	}
	return list, unreachable, nil
}
