package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
)

// VerifyRows compares what a list shows, starting from the rows that an earlier list kept, with what it shows when it
// reads every task. A row of a task that changed since is no mismatch: the list itself reads the task again.
func (s *Store) VerifyRows(ctx context.Context) []Mismatch {
	path := filepath.Join(s.opt.Cache, catalog.Name)
	if s.opt.Cache == "" {
		return nil
	}
	db, err := catalog.Verify(ctx, s.opt.Cache)
	if db != nil {
		_ = db.Close() // it was only read
	}
	if db == nil || err != nil {
		return nil //nolint:nilerr // search.Verify reports a damaged catalogue; a list would set it aside
	}
	found, err := s.wrongRows(ctx)
	if err == nil && len(found) > 0 { // a change between the two lists is no mismatch
		var again []Mismatch
		again, err = s.wrongRows(ctx)
		found = inBoth(found, again)
	}
	if err != nil {
		return []Mismatch{{Path: s.opt.Cache, File: path, Problem: err.Error()}}
	}
	return found
}

// inBoth are the mismatches that two checks found.
func inBoth(a, b []Mismatch) []Mismatch {
	in := map[Mismatch]bool{}
	for _, f := range b {
		in[f] = true
	}
	var out []Mismatch
	for _, f := range a {
		if in[f] {
			out = append(out, f)
		}
	}
	return out
}

// wrongRows are the tasks of which a list shows something else than their folders give.
func (s *Store) wrongRows(ctx context.Context) ([]Mismatch, error) {
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
	var out []Mismatch
	seen := map[string]bool{}
	about := func(t api.Summary, problem string) {
		out = append(out, Mismatch{
			ID:      t.ID,
			Path:    t.Path,
			File:    filepath.Join(s.opt.Cache, catalog.Name),
			Problem: problem,
			Source:  "the tasks",
		})
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
			about(t, "the list shows it, but there is no such task")
		case ok && !bytes.Equal(have, want):
			about(t, "the list differs from its folder")
		}
	}
	for _, t := range fresh.Items {
		if !seen[t.Source+"\x00"+t.Path] {
			about(t, "the list does not show it")
		}
	}
	return out, nil
}

// RebuildRows removes the kept rows and makes them again.
func (s *Store) RebuildRows(ctx context.Context) error {
	db, err := catalog.Open(ctx, s.opt.Cache)
	if err != nil {
		return err
	}
	if err := errors.Join(db.ForgetRows(ctx), db.Close()); err != nil {
		return err
	}
	_, err = s.List(ctx, Filter{})
	return err
}
