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
)

// checkCatalog compares the catalogue with the folders. A row of something that has
// changed since is no fault: it will be read again. One that counts as new and says
// something else misleads.
func (s *Store) checkCatalog(ctx context.Context, refs []Ref) (found []Finding, bad []string, db *catalog.DB) {
	if s.opt.Cache == "" {
		return nil, nil, nil
	}
	path := filepath.Join(s.opt.Cache, catalog.Name)
	about := func(problem string, k kind) Finding {
		return Finding{Path: s.opt.Cache, File: path, Problem: problem, Recovered: "it is derived from the tasks", kind: k, mendable: true}
	}
	db, err := catalog.Verify(ctx, s.opt.Cache)
	if err != nil {
		return []Finding{about(err.Error(), faulty)}, nil, db
	}
	if db == nil {
		if len(refs) == 0 {
			return nil, nil, nil
		}
		return []Finding{about("it is not there; every search reads all tasks", stale)}, nil, nil
	}
	snap, err := db.Snapshot(ctx)
	if err != nil {
		return []Finding{about(err.Error(), faulty)}, nil, db
	}
	defer snap.Close()
	known, err := snap.Tasks(ctx)
	if err != nil {
		return []Finding{about(err.Error(), faulty)}, nil, db
	}
	behind := 0
	for i, ref := range refs {
		Tell(ctx, Progress{What: "comparing the catalogue", Done: i, Of: len(refs)})
		key := catalogKey(ref)
		row, ok := known[key]
		delete(known, key)
		if stamp, _ := s.stampOf(ref); !ok || stamp == "" || stamp != row.Stamp {
			behind++
			continue
		}
		problem, err := s.compareRow(ctx, ref, snap, row)
		if ctx.Err() != nil {
			return found, bad, db
		}
		if err != nil {
			problem = err.Error()
		}
		if problem != "" {
			f := about(problem, faulty)
			f.ID, f.Path = ref.ID, ref.Dir
			found, bad = append(found, f), append(bad, key)
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
		found = append(found, about(fmt.Sprintf("%d of %d tasks are not in it as they are now; searches read them", behind, len(refs)), stale))
	}
	if gone > 0 {
		found = append(found, about(fmt.Sprintf("%d of its tasks are gone", gone), stale))
	}
	return found, bad, db
}

// compareRow says what of a row is not what the folder gives.
func (s *Store) compareRow(ctx context.Context, ref Ref, snap *catalog.Snapshot, row catalog.Task) (string, error) {
	v, err := s.read(ctx, ref, false)
	if err != nil {
		return "", nil //nolint:nilerr // that the task cannot be read is told with the task
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
		return "its row is not what the folder gives", nil
	}
	return s.compareText(ctx, v, snap, row)
}

// mendCatalog sets a damaged catalogue aside, or drops its wrong rows, and fills it.
func (s *Store) mendCatalog(ctx context.Context, db *catalog.DB, damaged bool, bad []string) error {
	if damaged {
		if err := db.SetAside(); err != nil {
			return err
		}
	} else if len(bad) > 0 {
		if err := db.Drop(ctx, bad); err != nil {
			return err
		}
	}
	if db != nil {
		_ = db.Close() // it is opened again by who fills it
	}
	if err := s.rest(ctx); err != nil {
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

// rest waits, not for long, until no task has changed just now: what has is not kept
// in the catalogue.
func (s *Store) rest(ctx context.Context) error {
	refs, _, err := s.refs(ctx)
	if err != nil {
		return err
	}
	for end := time.Now().Add(10 * restless); time.Now().Before(end); {
		if !slices.ContainsFunc(refs, func(r Ref) bool { _, calm := s.stampOf(r); return !calm }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(restless / 5):
		}
	}
	return nil // somebody is at work; those tasks are read until they rest
}
