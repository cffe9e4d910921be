package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/intake"
)

// Verify compares the texts in the catalogue with the folders; store.VerifyRows compares the rows. The text of a task that
// has changed since is stale: it will be read again. A text that counts as new and differs misleads its readers.
func Verify(ctx context.Context, s *store.Store) (out []store.Mismatch) {
	if s.CacheDir() == "" {
		return nil
	}
	about := func(problem string, stale bool) store.Mismatch {
		return store.Mismatch{
			Path:    s.CacheDir(),
			File:    filepath.Join(s.CacheDir(), catalog.Name),
			Problem: problem,
			Source:  "the tasks",
			Stale:   stale,
		}
	}
	db, err := catalog.Verify(ctx, s.CacheDir())
	if db != nil {
		defer db.Close() //nolint:errcheck // it is only read
	}
	switch {
	case err != nil:
		return []store.Mismatch{about(err.Error(), false)}
	case db == nil:
		if refs, err := s.Refs(ctx); err != nil || len(refs) > 0 {
			out = append(out, about("it is missing; every search reads all tasks", true))
		}
		return out
	}
	tasks, err := s.Candidates(ctx, store.Filter{})
	if err != nil {
		return []store.Mismatch{about(err.Error(), false)}
	}
	defer tasks.Close()
	snap, err := db.Snapshot(ctx)
	if err != nil {
		return []store.Mismatch{about(err.Error(), false)}
	}
	defer snap.Close()
	known, err := snap.Tasks(ctx)
	if err != nil {
		return []store.Mismatch{about(err.Error(), false)}
	}
	behind := 0
	for i, t := range tasks.Tasks {
		progress.Report(ctx, progress.State{What: "comparing the catalogue", Done: i, Of: len(tasks.Tasks)})
		key := catalogKey(t.Ref)
		row, ok := known[key]
		delete(known, key)
		if !ok || t.Stamp == "" || t.Stamp != row.Stamp {
			behind++
			continue
		}
		problem, err := compareText(ctx, s, tasks, t, snap, row)
		if ctx.Err() != nil {
			return out
		}
		if err != nil {
			problem = err.Error()
		}
		if problem != "" {
			m := about(problem, false)
			m.ID, m.Path = t.Ref.ID, t.Ref.Dir
			out = append(out, m)
		}
	}
	if behind > 0 {
		text := fmt.Sprintf("%d of %d tasks are not in it as they are now; searches read them", behind, len(tasks.Tasks))
		out = append(out, about(text, true))
	}
	if n := len(goneOf(known)); n > 0 {
		out = append(out, about(fmt.Sprintf("%d of its tasks are gone", n), true))
	}
	return out
}

// Rebuild fills the catalogue, after setting a damaged one aside.
func Rebuild(ctx context.Context, s *store.Store, damaged bool) error {
	if damaged {
		if db, _ := catalog.Verify(ctx, s.CacheDir()); db != nil { // what is wrong with it is known
			if err := db.SetAside(); err != nil {
				return err
			}
		}
	}
	if err := waitUntilCalm(ctx, s); err != nil {
		return err
	}
	if _, err := s.List(ctx, store.Filter{}); err != nil {
		return err
	}
	found, err := Run(ctx, s, Query{Text: "catalogue", Filter: store.Filter{Limit: 1}})
	if err == nil && len(found.Notes) > 0 {
		err = errors.New(strings.Join(found.Notes, "; "))
	}
	return err
}

// waitUntilCalm waits for a bounded time until no task has changed just now: the catalogue does not keep tasks that
// have.
func waitUntilCalm(ctx context.Context, s *store.Store) error {
	for end := time.Now().Add(10 * intake.ClockTick); time.Now().Before(end); {
		tasks, err := s.Candidates(ctx, store.Filter{})
		if err != nil {
			return err
		}
		tasks.Close()
		if !slices.ContainsFunc(tasks.Tasks, func(t store.Candidate) bool { return t.Stamp == "" }) {
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
func compareText(ctx context.Context, s *store.Store, tasks *store.Candidates, t store.Candidate, snap *catalog.Snapshot,
	row catalog.Task) (string, error) {
	v, err := s.ReadUnlabelled(ctx, t.Ref)
	if err != nil {
		return "", nil //nolint:nilerr // the check of the task reports that it cannot be read
	}
	defer v.Close()
	var fresh catalog.Builder
	for m, err := range texts(ctx, v.State) {
		if err != nil {
			return "", ctx.Err() // a damaged task is not kept in the catalogue
		}
		fresh.Add(m)
	}
	want := fresh.Entry("", "").Digest()
	have, err := snap.Digest(ctx, row.ID)
	if err != nil {
		return "its text cannot be read: " + err.Error(), ctx.Err()
	}
	if !bytes.Equal(have, want) && tasks.Unchanged(t) { // else it changed just now
		return "its text differs from its folder", nil
	}
	return "", nil
}
