package store

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/roofmt"
)

// refs lists every task folder of every source.
func (s *Store) refs(ctx context.Context) ([]Ref, []SourceState, error) {
	var out []Ref
	var states []SourceState
	list, err := s.sources(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, src := range list {
		state := SourceState{Name: src.Name, Tool: src.Tool, Path: src.Path, State: "readable"}
		if src.err != nil {
			state.State = "unreachable: " + src.err.Error()
		}
		for _, id := range src.ids {
			out = append(out, s.ref(src, id))
		}
		state.Tasks = len(src.ids)
		states = append(states, state)
	}
	return out, states, nil
}

func (s *Store) ref(src Source, id string) Ref {
	if r, ok := src.gone[id]; ok {
		return r
	}
	r := Ref{ID: id, Source: src.Name, Tool: src.Tool, Dir: filepath.Join(src.Tasks, id), Own: src.Own}
	r.Log = r.Dir
	if !src.Own {
		r.Log = filepath.Join(s.adoptedDir(src.Name), id)
	}
	return r
}

// Find resolves what a person typed: an id, its unique beginning or end, or
// SOURCE:ID. Asking for what is not there creates nothing.
func (s *Store) Find(ctx context.Context, given string) (Ref, error) {
	all, _, err := s.refs(ctx)
	if err != nil {
		return Ref{}, err
	}
	source, want, named := strings.Cut(given, ":")
	if !named {
		want = given
	}
	var exact, part []Ref
	for _, r := range all {
		if named && r.Source != source && r.Tool != source {
			continue
		}
		switch {
		case r.ID == want:
			exact = append(exact, r)
		case len(want) >= 3 && (strings.HasPrefix(r.ID, want) || strings.HasSuffix(r.ID, want)):
			part = append(part, r)
		}
	}
	if len(exact) > 0 {
		part = exact
	}
	switch len(part) {
	case 0:
		return Ref{}, fmt.Errorf("%w: %q", ErrNotFound, given)
	case 1:
		return part[0], nil
	}
	return Ref{}, &AmbiguousError{Given: given, Candidates: part}
}

// usableID refuses folder names that we do not turn into paths of our own.
func usableID(r Ref) error {
	if !roofmt.ValidID(r.ID) {
		return fmt.Errorf("task folder %s: its name cannot be a task id of Roost; import it under a new one", r.Dir)
	}
	return nil
}
