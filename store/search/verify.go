package search

import (
	"bytes"
	"context"
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
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/intake"
)

// Check is the result of Verify. It holds the catalogue open.
type Check struct {
	Mismatches []store.Mismatch

	damaged bool     // the catalogue as a whole
	wrong   []string // keys of tasks
	db      *catalog.DB
}

// Close closes the catalogue, which was only read.
func (c *Check) Close() {
	if c.db != nil {
		_ = c.db.Close()
		c.db = nil
	}
}

// Verify compares the texts in the catalogue with the folders; store.VerifyRows compares the rows. The text of a task that
// has changed since is stale: it will be read again. A text that counts as new and differs misleads its readers.
func Verify(ctx context.Context, s *store.Store) *Check {
	c := &Check{}
	if s.CacheDir() == "" {
		return c
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
	damaged := func(err error) *Check {
		c.damaged = true
		c.Mismatches = append(c.Mismatches, about(err.Error(), false))
		return c
	}
	var err error
	if c.db, err = catalog.Verify(ctx, s.CacheDir()); err != nil {
		return damaged(err)
	}
	if c.db == nil {
		if refs, err := s.Refs(ctx); err != nil || len(refs) > 0 {
			c.Mismatches = append(c.Mismatches, about("it is missing; every search reads all tasks", true))
		}
		return c
	}
	tasks, err := s.Candidates(ctx, store.Filter{})
	if err != nil {
		return damaged(err)
	}
	defer tasks.Close()
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
			return c
		}
		if err != nil {
			problem = err.Error()
		}
		if problem != "" {
			m := about(problem, false)
			m.ID, m.Path = t.Ref.ID, t.Ref.Dir
			c.Mismatches, c.wrong = append(c.Mismatches, m), append(c.wrong, key)
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
		text := fmt.Sprintf("%d of %d tasks are not in it as they are now; searches read them", behind, len(tasks.Tasks))
		c.Mismatches = append(c.Mismatches, about(text, true))
	}
	if gone > 0 {
		c.Mismatches = append(c.Mismatches, about(fmt.Sprintf("%d of its tasks are gone", gone), true))
	}
	return c
}

// Rebuild sets a damaged catalogue aside or drops its wrong texts, and fills it. It closes the check.
func (c *Check) Rebuild(ctx context.Context, s *store.Store) error {
	if c.damaged {
		if err := c.db.SetAside(); err != nil {
			return err
		}
	} else if len(c.wrong) > 0 {
		if err := c.db.Drop(ctx, c.wrong); err != nil {
			return err
		}
	}
	c.Close()
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
