package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// Mismatch is derived data that differs from what it is derived from.
type Mismatch struct {
	ID, Path string // of the task; "" for data that is kept for all tasks
	File     string
	Problem  string
	Source   string // what the file is derived from
	Stale    bool   // it is missing or out of date, and misleads no reader
	Rewrite  string // the name of the file to write again, when Distrust or removing the file makes that happen

	Unrepairable bool // deriving it again would not help
}

// Distrust keeps the bytes of one of Roo's files that does not hold what the projector wrote, and lets the projector
// write it again. A commit keeps the bytes, as for any refused file. It returns their blob; "" when there is no file.
func (t *Task) Distrust(ctx context.Context, name, reason string) (blob string, err error) {
	hash, size, err := intake.KeepFile(ctx, t, t.Ref.Dir, name)
	if hash == "" {
		return "", err
	}
	if !intake.KeptBefore(t.state, name, hash) {
		err := t.CommitSynced(ctx, task.ForeignRefused{Name: name, Blob: hash, Size: size, Reason: reason})
		if err != nil {
			return "", err
		}
	}
	t.proj.Distrust(name)
	return hash, nil
}

// VerifyIndex compares Roo's history index in Roost's own root with the task folders.
func (s *Store) VerifyIndex(ctx context.Context) []Mismatch {
	about := func(problem string, stale bool) Mismatch {
		path := filepath.Join(s.TasksDir(), roofmt.IndexName)
		return Mismatch{Path: s.TasksDir(), File: path, Problem: problem, Source: "the task folders", Stale: stale}
	}
	lacking, orphans, err := s.index.Verify(func(id string) bool { return s.Held(ctx, s.OwnRef(id)) })
	if err != nil {
		return []Mismatch{about(err.Error(), false)}
	}
	var out []Mismatch
	if lacking > 0 {
		out = append(out, about("it does not match "+api.Plural(lacking, "task folder"), true))
	}
	if orphans > 0 {
		out = append(out, about("it has "+api.Plural(orphans, "task")+" without a folder", true))
	}
	return out
}

// RebuildIndex makes the history index again from the task folders. An index that cannot be read is kept beside it.
func (s *Store) RebuildIndex(ctx context.Context, unreadable bool) error {
	if err := s.Prepare(); err != nil {
		return err
	}
	return s.index.Rebuild(ctx, unreadable)
}

// VerifyRows compares a list that uses the rows which an earlier list kept with a list that reads every task. A row
// of a task that changed since is no mismatch: the list itself reads the task again.
func (s *Store) VerifyRows(ctx context.Context) []Mismatch {
	db, err := s.VerifyCatalog(ctx)
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
		found = slices.DeleteFunc(found, func(m Mismatch) bool { return !slices.Contains(again, m) })
	}
	if err != nil {
		return []Mismatch{s.CatalogMismatch(err.Error(), false)}
	}
	return found
}

// wrongRows returns the tasks whose rows in a list differ from what their folders give.
func (s *Store) wrongRows(ctx context.Context) ([]Mismatch, error) {
	cached, err := s.List(ctx, Filter{TaskFilter: api.TaskFilter{Empty: true}, closely: true})
	if err != nil {
		return nil, err
	}
	bare := &Store{opt: s.opt, logs: s.logs, wait: s.wait, clock: s.clock}
	bare.others.Store(s.others.Load())
	bare.opt.Cache, bare.opt.Catalog = "", nil
	fresh, err := bare.List(ctx, Filter{TaskFilter: api.TaskFilter{Empty: true}})
	if err != nil {
		return nil, err
	}
	key := func(t api.Summary) string { return t.Source + "\x00" + t.Path }
	there := map[string]api.Summary{}
	for _, t := range fresh.Items {
		there[key(t)] = t
	}
	var out []Mismatch
	about := func(t api.Summary, problem string) {
		m := s.CatalogMismatch(problem, false)
		m.ID, m.Path = t.ID, t.Path
		out = append(out, m)
	}
	for _, have := range cached.Items {
		want, ok := there[key(have)]
		delete(there, key(have))
		a, errA := json.Marshal(have)
		b, errB := json.Marshal(want)
		switch {
		case errA != nil || errB != nil:
			return nil, errors.Join(errA, errB)
		case !ok && exists(have.Path, ""):
			about(have, "the list shows it, but there is no such task")
		case ok && !bytes.Equal(a, b):
			about(have, "the list differs from its folder")
		}
	}
	for _, t := range there {
		about(t, "the list does not show it")
	}
	return out, nil
}

// RebuildRows removes the kept rows and makes them again.
func (s *Store) RebuildRows(ctx context.Context) error {
	db, err := s.OpenCatalog(ctx)
	if err != nil || db == nil {
		return err
	}
	if err := errors.Join(db.ForgetRows(ctx), db.Close()); err != nil {
		return err
	}
	_, err = s.List(ctx, Filter{})
	return err
}

// Behind returns the tasks whose Roo files show less than their journal holds: the process that would have written
// them was killed, or the disk refused. Owning such a task and closing it writes them. Behind leaves out tasks that a
// process owns, and damaged ones, which wait for a user's decision.
func (s *Store) Behind(ctx context.Context) ([]Ref, error) {
	refs, err := s.Refs(ctx)
	if err != nil {
		return nil, err
	}
	var out []Ref
	for _, ref := range refs {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if s.behind(ctx, ref) {
			out = append(out, ref)
		}
	}
	return out, nil
}

func (s *Store) behind(ctx context.Context, ref Ref) bool {
	log, err := os.Lstat(filepath.Join(ref.Log, JournalName))
	if err != nil || !exists(ref.Log, "journal.lock") || !exists(ref.Dir, "") { // without a lock file no process owned it here
		return false
	}
	written := projection.Read(ref.Log)
	mark, err := os.Lstat(filepath.Join(ref.Log, projection.Name))
	if err == nil && len(written.Writing) == 0 && !log.ModTime().After(mark.ModTime()) {
		return false // the record is written after the last commit
	}
	if s.Held(ctx, ref) {
		return false
	}
	if head := s.HeadOf(ctx, ref); head == 0 || head <= written.Seq {
		return false
	}
	v, err := s.read(ctx, ref, false)
	if err != nil {
		return false // opening the task reports why
	}
	whole := len(v.State.Problems) == 0 && !v.Unborn
	return v.Close() == nil && whole
}
