package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/store/intake"
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
		return nil //nolint:nilerr // VerifyCatalog reports a damaged catalogue; a list would set it aside
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
	about := func(t Summary, problem string) {
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

// CatalogCheck is the result of VerifyCatalog. It holds the catalogue open.
type CatalogCheck struct {
	Mismatches []Mismatch

	damaged   bool     // the catalogue as a whole
	wrongRows []string // their keys
	db        *catalog.DB
}

// Close closes the catalogue, which was only read.
func (c *CatalogCheck) Close() {
	if c.db != nil {
		_ = c.db.Close()
		c.db = nil
	}
}

// VerifyCatalog compares the catalogue with the folders. A row of a task that has changed since is stale: it will be
// read again. A row that counts as new and differs misleads its readers.
func (s *Store) VerifyCatalog(ctx context.Context, refs []Ref) *CatalogCheck {
	c := &CatalogCheck{}
	if s.opt.Cache == "" {
		return c
	}
	about := func(problem string, stale bool) Mismatch {
		return Mismatch{
			Path:    s.opt.Cache,
			File:    filepath.Join(s.opt.Cache, catalog.Name),
			Problem: problem,
			Source:  "the tasks",
			Stale:   stale,
		}
	}
	damaged := func(err error) *CatalogCheck {
		c.damaged = true
		c.Mismatches = append(c.Mismatches, about(err.Error(), false))
		return c
	}
	var err error
	if c.db, err = catalog.Verify(ctx, s.opt.Cache); err != nil {
		return damaged(err)
	}
	if c.db == nil {
		if len(refs) > 0 {
			c.Mismatches = append(c.Mismatches, about("it is missing; every search reads all tasks", true))
		}
		return c
	}
	snap, err := c.db.Snapshot(ctx)
	if err != nil {
		return damaged(err)
	}
	defer snap.Close()
	known, err := snap.Tasks(ctx)
	if err != nil {
		return damaged(err)
	}
	behind := 0
	for i, ref := range refs {
		progress.Report(ctx, progress.State{What: "comparing the catalogue", Done: i, Of: len(refs)})
		key := catalogKey(ref)
		row, ok := known[key]
		delete(known, key)
		if stamp, _ := s.stampOf(ref); !ok || stamp == "" || stamp != row.Stamp {
			behind++
			continue
		}
		problem, err := s.compareRow(ctx, ref, snap, row)
		if ctx.Err() != nil {
			return c
		}
		if err != nil {
			problem = err.Error()
		}
		if problem != "" {
			m := about(problem, false)
			m.ID, m.Path = ref.ID, ref.Dir
			c.Mismatches, c.wrongRows = append(c.Mismatches, m), append(c.wrongRows, key)
		}
	}
	gone := 0
	for key := range known {
		_, dir, _ := strings.Cut(key, "\x00")
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			gone++
		}
	}
	if behind > 0 {
		text := fmt.Sprintf("%d of %d tasks are not in it as they are now; searches read them", behind, len(refs))
		c.Mismatches = append(c.Mismatches, about(text, true))
	}
	if gone > 0 {
		c.Mismatches = append(c.Mismatches, about(fmt.Sprintf("%d of its tasks are gone", gone), true))
	}
	return c
}

// compareRow describes how a row differs from what the folder gives; "" when it does not.
func (s *Store) compareRow(ctx context.Context, ref Ref, snap *catalog.Snapshot, row catalog.Task) (string, error) {
	v, err := s.read(ctx, ref, false)
	if err != nil {
		return "", nil //nolint:nilerr // the check of the task reports that it cannot be read
	}
	defer v.Close()
	want, err := json.Marshal(v.Summary)
	if err != nil {
		return "", err
	}
	var kept Summary
	raw, err := snap.Summary(ctx, row.ID)
	if err == nil {
		err = json.Unmarshal(raw, &kept)
	}
	if err != nil {
		return "its row cannot be read: " + err.Error(), nil
	}
	have, err := json.Marshal(kept)
	if err != nil {
		return "", err
	}
	if after, _ := s.stampOf(ref); after != row.Stamp {
		return "", nil // it changed just now
	}
	if !bytes.Equal(have, want) {
		return "its row differs from its folder", nil
	}
	return s.compareText(ctx, v, snap, row)
}

// RebuildCatalog sets a damaged catalogue aside or drops its wrong rows, and fills it. It closes the check.
func (s *Store) RebuildCatalog(ctx context.Context, c *CatalogCheck) error {
	if c.damaged {
		if err := c.db.SetAside(); err != nil {
			return err
		}
	} else if len(c.wrongRows) > 0 {
		if err := c.db.Drop(ctx, c.wrongRows); err != nil {
			return err
		}
	}
	c.Close()
	if err := s.waitUntilCalm(ctx); err != nil {
		return err
	}
	if _, err := s.List(ctx, Filter{}); err != nil {
		return err
	}
	found, err := s.Search(ctx, SearchQuery{Text: "catalogue", Filter: Filter{Limit: 1}})
	if err == nil && len(found.Notes) > 0 {
		err = errors.New(strings.Join(found.Notes, "; "))
	}
	return err
}

// waitUntilCalm waits for a bounded time until no task has changed just now: the catalogue does not keep tasks that
// have.
func (s *Store) waitUntilCalm(ctx context.Context) error {
	refs, _, err := s.refs(ctx)
	if err != nil {
		return err
	}
	for end := time.Now().Add(10 * intake.ClockTick); time.Now().Before(end); {
		if !slices.ContainsFunc(refs, func(r Ref) bool { _, calm := s.stampOf(r); return !calm }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(intake.ClockTick / 5):
		}
	}
	return nil // another program is at work; searches read those tasks until they are calm
}

// compareText describes how the searchable messages of a task differ from what its folder gives; "" when they do not.
func (s *Store) compareText(ctx context.Context, v *View, snap *catalog.Snapshot, row catalog.Task) (string, error) {
	var fresh catalog.Builder
	for m, err := range texts(ctx, v.State) {
		if err != nil {
			return "", ctx.Err() // a damaged task is not kept in the catalogue
		}
		fresh.Add(m)
		fresh.Shed()
	}
	want := fresh.Entry("", "", 0, nil).Digest()
	have, err := snap.Digest(ctx, row.ID)
	if err != nil {
		return "its text cannot be read: " + err.Error(), ctx.Err()
	}
	if !bytes.Equal(have, want) {
		return "its text differs from its folder", nil
	}
	return "", nil
}
