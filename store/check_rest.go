package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
)

// exportAge is how long an unfinished export must have stood still to be left: it has
// no lock.
const exportAge = time.Hour

// checkRest looks at what no list of tasks shows, and at what is kept for all of them.
func (s *Store) checkRest(ctx context.Context, refs []Ref, o CheckOptions, out *Report) {
	steps := []struct {
		look func() []Finding
		mend func([]Finding) error // nil: nothing to be done about it
	}{
		{s.checkPlace, nil},
		{func() []Finding { return s.checkHidden(ctx, refs) }, nil},
		{func() []Finding { return s.checkOverlay(ctx) }, func([]Finding) error {
			return s.shelve(ctx, func(Marks, func(...mark) error) error { return s.removePurged() })
		}},
		{func() []Finding { return s.checkIndex() }, func(found []Finding) error { return s.mendIndex(ctx, found) }},
		{func() []Finding { return s.checkImport() }, func([]Finding) error { return s.dropImport() }},
		{func() []Finding { return s.checkRows(ctx) }, func([]Finding) error { return s.mendRows(ctx) }},
	}
	for _, step := range steps {
		if ctx.Err() != nil {
			return
		}
		found := step.look()
		if step.mend != nil && wanted(found, o) {
			if err := step.mend(found); err != nil {
				found = append(found, Finding{Path: s.opt.Root, File: s.opt.Root, Problem: err.Error()})
			} else {
				left := step.look()
				out.Repaired = append(out.Repaired, gone(found, left)...)
				found = left
			}
		}
		out.add(found)
	}
	found, bad, db := s.checkCatalog(ctx, refs)
	if wanted(found, o) {
		err := s.mendCatalog(ctx, db, anyFaulty(found) && len(bad) == 0, bad)
		if err != nil {
			found = append(found, Finding{Path: s.opt.Cache, File: s.opt.Cache, Problem: err.Error()})
		} else {
			var left []Finding
			left, _, db = s.checkCatalog(ctx, refs)
			out.Repaired = append(out.Repaired, gone(found, left)...)
			found = left
		}
	}
	if db != nil {
		_ = db.Close() // it was only read
	}
	if !o.Rebuild { // it is filled by whoever searches; that it is not yet is no news
		found = slices.DeleteFunc(found, func(f Finding) bool { return f.kind == stale })
	}
	out.add(found)
	left := s.strays(o)
	if o.Repair {
		var done []Finding
		left, done = sweep(left)
		out.Repaired = append(out.Repaired, done...)
	}
	out.add(left)
}

// wanted: there is something that the options ask to be mended.
func wanted(found []Finding, o CheckOptions) bool {
	return slices.ContainsFunc(found, func(f Finding) bool {
		return f.mendable && (o.Repair && f.kind != stale || o.Rebuild && f.kind != leftover)
	})
}

// gone are the findings that are no more.
func gone(before, after []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(before), func(f Finding) bool { return slices.Contains(after, f) })
}

// checkHidden verifies the tasks that are in the trash, deleted in another tool's
// storage, or continued in a storage that is not named now. They are not mended:
// whoever wants them puts them back first.
func (s *Store) checkHidden(ctx context.Context, shown []Ref) []Finding {
	var list []Ref
	deleted, err := names(s.trashDir())
	var out []Finding
	if err != nil {
		out = append(out, Finding{Path: s.trashDir(), File: s.trashDir(), Problem: err.Error()})
	}
	for _, name := range deleted {
		list = append(list, s.trashRef(name))
	}
	known := map[string]bool{}
	for _, r := range shown {
		known[r.Log] = true
	}
	sources, _ := names(s.AdoptedDir(""))
	for _, source := range sources {
		ids, _ := names(s.AdoptedDir(source))
		for _, id := range ids {
			log := filepath.Join(s.AdoptedDir(source), id)
			if known[log] || !HasJournal(log) {
				continue
			}
			dir, tool := adoptedFrom(ctx, log)
			if dir == "" {
				dir = log
			}
			list = append(list, Ref{ID: id, Source: source, Tool: tool, Dir: dir, Log: log})
		}
	}
	for _, r := range list {
		if ctx.Err() != nil {
			break
		}
		for _, f := range s.check(ctx, r) {
			if f.kind == faulty {
				f.mendable, f.rotten, f.remove = false, "", ""
				out = append(out, f)
			}
		}
	}
	return out
}

// checkPlace looks for the folder of tasks.
func (s *Store) checkPlace() []Finding {
	if !s.TasksLost() {
		return nil
	}
	return []Finding{{Path: s.opt.Root, File: s.TasksDir(), Problem: "the folder of tasks is gone, and it had tasks", Lost: "what was in it; put it back before anything is written to this root"}}
}

// checkOverlay verifies what is kept of other tools' tasks, and purges that were cut.
func (s *Store) checkOverlay(ctx context.Context) []Finding {
	about := func(file, problem, recovered, lost string) Finding {
		return Finding{Path: s.overlayDir(), File: file, Problem: problem, Recovered: recovered, Lost: lost}
	}
	var out []Finding
	entries, err := os.ReadDir(s.trashDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		out = append(out, about(s.trashDir(), err.Error(), "", ""))
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".purged-") {
			f := about(filepath.Join(s.trashDir(), e.Name()), "a purge was interrupted", "nothing: it was to be removed", "").of(leftover).can()
			out = append(out, f)
		}
	}
	log, err := filelog.OpenReader(s.overlayDir())
	if errors.Is(err, journal.ErrNotFound) {
		return out
	}
	if err != nil {
		return append(out, about(s.overlayDir(), err.Error(), "every task; titles, tags and pins of other tools' tasks are not shown", ""))
	}
	defer log.Close()
	health, err := log.Health(ctx)
	if err != nil {
		return append(out, about(s.overlayDir(), err.Error(), "", ""))
	}
	for _, d := range health.Damaged {
		lost := "a change to titles, tags, pins or the trash"
		if d.Seq > 0 {
			lost += fmt.Sprintf(": commit %d", d.Seq)
		}
		out = append(out, about(filepath.Join(s.overlayDir(), "journal.jsonl"), d.Reason, "all other changes", lost))
	}
	for _, f := range ofHealth(Ref{Dir: s.overlayDir()}, journal.Health{TornTail: health.TornTail, SetAside: health.SetAside}) {
		f.File = filepath.Join(s.overlayDir(), f.File)
		out = append(out, f)
	}
	return out
}

// checkIndex compares Roo's history index in our own root with the folders. It is for
// editors; nothing of ours reads it.
func (s *Store) checkIndex() []Finding {
	path := filepath.Join(s.TasksDir(), roofmt.IndexName)
	about := func(problem string, k kind) Finding {
		return Finding{Path: s.TasksDir(), File: path, Problem: problem, Recovered: "it is derived from the task folders", kind: k, mendable: true}
	}
	ids, err := names(s.TasksDir())
	if err != nil {
		return nil // the source says so
	}
	index, err := roofmt.ReadIndex(s.TasksDir())
	if err != nil {
		return []Finding{about(err.Error(), faulty)}
	}
	lacking := 0
	for _, id := range ids {
		item, ok := readItem(filepath.Join(s.TasksDir(), id), id)
		if !ok || esjson.TypeOf(item) != esjson.TypeObject {
			continue
		}
		if have, ok := index.Get(id); !ok || !esjson.Equal(have, item) {
			lacking++
		}
	}
	orphans := 0
	for _, e := range index.Entries {
		if s.orphan(e) {
			orphans++
		}
	}
	var out []Finding
	if lacking > 0 {
		out = append(out, about(strconv.Itoa(lacking)+" tasks are not in it as their folders say", stale))
	}
	if orphans > 0 {
		out = append(out, about(strconv.Itoa(orphans)+" of its tasks have no folder", stale))
	}
	return out
}

// mendIndex keeps an index that cannot be read beside the new one.
func (s *Store) mendIndex(ctx context.Context, found []Finding) error {
	if err := s.Prepare(); err != nil {
		return err
	}
	if anyFaulty(found) {
		path := filepath.Join(s.TasksDir(), roofmt.IndexName)
		if err := os.Rename(path, path+".damaged-"+strconv.FormatInt(s.opt.Now(), 10)); err != nil {
			return fmt.Errorf("keep the damaged history index: %w", err)
		}
	}
	ids, err := names(s.TasksDir())
	if err != nil {
		return err
	}
	if err := s.UpdateIndex(ctx, ids); err != nil {
		return err
	}
	return s.SweepIndex(ctx)
}

// checkImport finds what a killed import left. Its copies are not proven, and their
// originals stand where they were.
func (s *Store) checkImport() []Finding {
	stages := filepath.Join(s.TasksDir(), ImportStages)
	if !exists(stages, "") || s.importing() {
		return nil
	}
	return []Finding{{Path: s.TasksDir(), File: stages, Problem: "an import was interrupted; copies that are not proven yet",
		Recovered: "the originals are untouched; importing again goes on", kind: leftover, mendable: true}}
}

// importing reports whether a living process imports into the root.
func (s *Store) importing() bool {
	path := filepath.Join(s.opt.Root, ImportLock)
	if !exists(path, "") {
		return false
	}
	free, err := LockImport(path)
	if err != nil {
		return true
	}
	free()
	return false
}

func (s *Store) dropImport() error {
	free, err := LockImport(filepath.Join(s.opt.Root, ImportLock))
	if err != nil {
		return err
	}
	defer free()
	return os.RemoveAll(filepath.Join(s.TasksDir(), ImportStages))
}

// strays are files of ours outside of tasks that a kill left.
func (s *Store) strays(o CheckOptions) []Finding {
	var out []Finding
	look := func(dir, prefix string, age time.Duration, problem string) {
		if dir == "" {
			return
		}
		for _, e := range old(dir, age) {
			if strings.HasPrefix(e.Name(), prefix) && e.Type().IsRegular() {
				path := filepath.Join(dir, e.Name())
				out = append(out, Finding{Path: dir, File: path, Problem: problem, Recovered: "nothing needs it", kind: leftover, remove: path})
			}
		}
	}
	look(s.opt.Root, ".probe-", leftAge, "left by a process that is gone")
	dirs := []string{s.opt.Root, s.opt.Cache}
	if o.Spill != "" && !slices.Contains(dirs, o.Spill) {
		dirs = append(dirs, o.Spill)
	}
	for _, dir := range dirs {
		look(dir, ".roost-export-", exportAge, "an export that was not finished")
	}
	if s.opt.Cache != "" && exists(s.opt.Cache, catalog.Name+".damaged") {
		out = append(out, Finding{Path: s.opt.Cache, File: filepath.Join(s.opt.Cache, catalog.Name+".damaged"), kind: leftover,
			Problem: "a damaged catalogue that was set aside", Recovered: "it stays, for whoever wants to know; nothing needs it"})
	}
	return out
}
