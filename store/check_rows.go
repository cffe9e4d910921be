package store

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/catalog"
)

// checkRows compares what a list shows, which begins with the rows that the last one
// kept, with what it shows when it reads everything. A row of a task that changed
// since is read again by the list itself.
func (s *Store) checkRows(ctx context.Context) []Finding {
	path := filepath.Join(s.opt.Cache, catalog.RowsName)
	if s.opt.Cache == "" || !exists(path, "") {
		return nil
	}
	found, err := s.misled(ctx)
	if err == nil && len(found) > 0 { // what changed between the two looks is no fault
		var again []Finding
		again, err = s.misled(ctx)
		found = both(found, again)
	}
	if err != nil {
		return []Finding{{Path: s.opt.Cache, File: path, Problem: err.Error(), mendable: true}}
	}
	return found
}

func both(a, b []Finding) []Finding {
	in := map[Finding]bool{}
	for _, f := range b {
		in[f] = true
	}
	var out []Finding
	for _, f := range a {
		if in[f] {
			out = append(out, f)
		}
	}
	return out
}

// misled are the tasks of which a list shows something else than there is.
func (s *Store) misled(ctx context.Context) ([]Finding, error) {
	cached, err := s.List(ctx, Filter{Empty: true, closely: true})
	if err != nil {
		return nil, err
	}
	bare := &Store{opt: s.opt, wait: s.wait, clock: s.clock}
	bare.opt.Cache = ""
	fresh, err := bare.List(ctx, Filter{Empty: true})
	if err != nil {
		return nil, err
	}
	there := map[string][]byte{}
	for _, t := range fresh.Items {
		if there[t.Source+"\x00"+t.Path], err = json.Marshal(t); err != nil {
			return nil, err
		}
	}
	var out []Finding
	seen := map[string]bool{}
	about := func(t Summary, problem string) {
		out = append(out, Finding{ID: t.ID, Path: t.Path, File: filepath.Join(s.opt.Cache, catalog.RowsName), Problem: problem, Recovered: "it is derived from the tasks", mendable: true})
	}
	for _, t := range cached.Items {
		key := t.Source + "\x00" + t.Path
		seen[key] = true
		want, ok := there[key]
		have, err := json.Marshal(t)
		switch {
		case err != nil:
			return nil, err
		case !ok && exists(t.Path, ""):
			about(t, "the list shows it, and there is no such task")
		case ok && !bytes.Equal(have, want):
			about(t, "the list shows something else than its folder gives")
		}
	}
	for _, t := range fresh.Items {
		if !seen[t.Source+"\x00"+t.Path] {
			about(t, "the list does not show it")
		}
	}
	return out, nil
}

// mendRows lets the next list read everything.
func (s *Store) mendRows(ctx context.Context) error {
	if err := os.Remove(filepath.Join(s.opt.Cache, catalog.RowsName)); err != nil {
		return err
	}
	_, err := s.List(ctx, Filter{})
	return err
}
