package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/store/search"
	"github.com/roost-dev/roost/store/trash"
)

// checkRoot verifies what no list of tasks shows, and what is kept for all tasks.
func (d *doctor) checkRoot(ctx context.Context, refs []store.Ref, out *api.Checkup) {
	steps := []struct {
		inspect func() []finding
		repair  func([]finding) error // nil: it cannot be repaired
	}{
		{d.checkTasksDir, nil},
		{func() []finding { return d.checkUnlisted(ctx, refs) }, nil},
		{func() []finding { return d.checkOverlay(ctx) }, func([]finding) error { return trash.FinishPurges(ctx, d.store) }},
		{
			func() []finding { return fromMismatches(d.store.VerifyIndex()) },
			func(found []finding) error { return d.store.RebuildIndex(ctx, anyDamaged(found)) },
		},
		{d.checkImport, func([]finding) error { return importer.RemoveInterrupted(d.store) }},
		{
			func() []finding { return fromMismatches(d.store.VerifyRows(ctx)) },
			func([]finding) error { return d.store.RebuildRows(ctx) },
		},
	}
	for _, step := range steps {
		if ctx.Err() != nil {
			return
		}
		found := step.inspect()
		if step.repair != nil && d.wantsRepair(found) {
			if err := step.repair(found); err != nil {
				found = append(found, about(d.store.Root(), d.store.Root(), err.Error(), "", ""))
			} else {
				left := step.inspect()
				out.Repaired = append(out.Repaired, documents(missing(left, found))...)
				found = left
			}
		}
		add(out, found)
	}
	d.checkCatalog(ctx, refs, out)
	left := d.rootLeftovers()
	if d.opt.Repair {
		var removed []finding
		left, removed = removeLeftovers(left)
		out.Repaired = append(out.Repaired, documents(removed)...)
	}
	add(out, left)
}

// checkCatalog compares the catalogue with the tasks.
func (d *doctor) checkCatalog(ctx context.Context, refs []store.Ref, out *api.Checkup) {
	check := search.Verify(ctx, d.store, refs)
	found := fromMismatches(check.Mismatches)
	if d.wantsRepair(found) {
		if err := check.Rebuild(ctx, d.store); err != nil {
			cache := d.store.CacheDir()
			found = append(found, about(cache, cache, err.Error(), "", ""))
		} else {
			check = search.Verify(ctx, d.store, refs)
			left := fromMismatches(check.Mismatches)
			out.Repaired = append(out.Repaired, documents(missing(left, found))...)
			found = left
		}
	}
	check.Close()
	if !d.opt.Rebuild { // every search fills the catalogue; that it is not full yet is no finding
		found = slices.DeleteFunc(found, func(f finding) bool { return f.kind == stale })
	}
	add(out, found)
}

// wantsRepair reports whether the options ask for the repair of a finding.
func (d *doctor) wantsRepair(found []finding) bool {
	return slices.ContainsFunc(found, func(f finding) bool {
		return f.repairable && (d.opt.Repair && f.kind != stale || d.opt.Rebuild && f.kind != leftover)
	})
}

// missing are the findings of before that are not in after.
func missing(after, before []finding) []finding {
	return slices.DeleteFunc(slices.Clone(before), func(f finding) bool { return slices.Contains(after, f) })
}

// checkUnlisted verifies the tasks that no list shows: those in the trash, those deleted in another tool's storage, and
// those continued in a storage that is not configured now. They are not repaired; to repair one, put it back first.
func (d *doctor) checkUnlisted(ctx context.Context, listed []store.Ref) []finding {
	var out []finding
	refs, err := d.store.UnlistedTasks(ctx, listed)
	if err != nil {
		out = append(out, about(d.store.TrashDir(), d.store.TrashDir(), err.Error(), "", ""))
	}
	for _, r := range refs {
		if ctx.Err() != nil {
			break
		}
		for _, f := range d.inspect(ctx, r) {
			if f.kind == damaged {
				f.repairable, f.rewrite, f.remove = false, "", ""
				out = append(out, f)
			}
		}
	}
	return out
}

// checkTasksDir finds out whether the folder of tasks was lost.
func (d *doctor) checkTasksDir() []finding {
	if !d.store.TasksLost() {
		return nil
	}
	return []finding{about(d.store.Root(), d.store.TasksDir(), "the folder of tasks is missing, and it had tasks", "",
		"what was in it; put it back before anything is written to this root")}
}

// checkOverlay verifies the overlay, and finds purges that were interrupted.
func (d *doctor) checkOverlay(ctx context.Context) []finding {
	s := d.store
	here := func(file, problem, recovered, lost string) finding {
		return about(s.OverlayDir(), file, problem, recovered, lost)
	}
	var out []finding
	entries, err := os.ReadDir(s.TrashDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		out = append(out, here(s.TrashDir(), err.Error(), "", ""))
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".purged-") {
			f := here(filepath.Join(s.TrashDir(), e.Name()), "a purge was interrupted", "nothing: it was to be removed", "")
			f = f.withKind(leftover).withRepair()
			out = append(out, f)
		}
	}
	log, err := filelog.OpenReader(s.OverlayDir())
	if errors.Is(err, journal.ErrNotFound) {
		return out
	}
	if err != nil {
		return append(out, here(s.OverlayDir(), err.Error(), "every task; titles, tags and pins of other tools' tasks are not shown", ""))
	}
	defer log.Close()
	health, err := log.Health(ctx)
	if err != nil {
		return append(out, here(s.OverlayDir(), err.Error(), "", ""))
	}
	for _, damage := range health.Damaged {
		lost := "a change to titles, tags, pins or the trash"
		if damage.Seq > 0 {
			lost += fmt.Sprintf(": commit %d", damage.Seq)
		}
		out = append(out, here(filepath.Join(s.OverlayDir(), journalName), damage.Reason, "all other changes", lost))
	}
	for _, f := range journalFindings(store.Ref{Dir: s.OverlayDir()}, journal.Health{TornTail: health.TornTail, SetAside: health.SetAside}) {
		f.File = filepath.Join(s.OverlayDir(), f.File)
		out = append(out, f)
	}
	return out
}

// checkImport finds the copies of a killed import. They are not verified, and their originals are in place.
func (d *doctor) checkImport() []finding {
	dir := importer.Interrupted(d.store)
	if dir == "" {
		return nil
	}
	return []finding{about(filepath.Dir(dir), dir, "an import was interrupted and left unverified copies",
		"the originals are untouched; importing again continues", "").withKind(leftover).withRepair()}
}
