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

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/store/search"
	"github.com/roost-dev/roost/store/trash"
)

// checkRoot verifies what no list of tasks shows, and what is kept for all tasks.
func (d *doctor) checkRoot(ctx context.Context, refs []store.Ref, out *Report) {
	steps := []struct {
		inspect func() []Finding
		repair  func([]Finding) error // nil: it cannot be repaired
	}{
		{d.checkTasksDir, nil},
		{func() []Finding { return d.checkUnlisted(ctx, refs) }, nil},
		{func() []Finding { return d.checkOverlay(ctx) }, func([]Finding) error { return trash.FinishPurges(ctx, d.store) }},
		{
			func() []Finding { return fromMismatches(d.store.VerifyIndex()) },
			func(found []Finding) error { return d.store.RebuildIndex(ctx, anyDamaged(found)) },
		},
		{d.checkImport, func([]Finding) error { return importer.RemoveInterrupted(d.store) }},
		{
			func() []Finding { return fromMismatches(d.store.VerifyRows(ctx)) },
			func([]Finding) error { return d.store.RebuildRows(ctx) },
		},
	}
	for _, step := range steps {
		if ctx.Err() != nil {
			return
		}
		found := step.inspect()
		if step.repair != nil && d.wantsRepair(found) {
			if err := step.repair(found); err != nil {
				found = append(found, Finding{Path: d.store.Root(), File: d.store.Root(), Problem: err.Error()})
			} else {
				left := step.inspect()
				out.Repaired = append(out.Repaired, missing(left, found)...)
				found = left
			}
		}
		out.add(found)
	}
	d.checkCatalog(ctx, refs, out)
	left := d.rootLeftovers()
	if d.opt.Repair {
		var removed []Finding
		left, removed = removeLeftovers(left)
		out.Repaired = append(out.Repaired, removed...)
	}
	out.add(left)
}

// checkCatalog compares the catalogue with the tasks.
func (d *doctor) checkCatalog(ctx context.Context, refs []store.Ref, out *Report) {
	check := search.Verify(ctx, d.store, refs)
	found := fromMismatches(check.Mismatches)
	if d.wantsRepair(found) {
		if err := check.Rebuild(ctx, d.store); err != nil {
			cache := d.store.CacheDir()
			found = append(found, Finding{Path: cache, File: cache, Problem: err.Error()})
		} else {
			check = search.Verify(ctx, d.store, refs)
			left := fromMismatches(check.Mismatches)
			out.Repaired = append(out.Repaired, missing(left, found)...)
			found = left
		}
	}
	check.Close()
	if !d.opt.Rebuild { // every search fills the catalogue; that it is not full yet is no finding
		found = slices.DeleteFunc(found, func(f Finding) bool { return f.kind == stale })
	}
	out.add(found)
}

// wantsRepair reports whether the options ask for the repair of a finding.
func (d *doctor) wantsRepair(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool {
		return f.repairable && (d.opt.Repair && f.kind != stale || d.opt.Rebuild && f.kind != leftover)
	})
}

// missing are the findings of before that are not in after.
func missing(after, before []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(before), func(f Finding) bool { return slices.Contains(after, f) })
}

// checkUnlisted verifies the tasks that no list shows: those in the trash, those deleted in another tool's storage, and
// those continued in a storage that is not configured now. They are not repaired; to repair one, put it back first.
func (d *doctor) checkUnlisted(ctx context.Context, listed []store.Ref) []Finding {
	var out []Finding
	refs, err := d.store.UnlistedTasks(ctx, listed)
	if err != nil {
		out = append(out, Finding{Path: d.store.TrashDir(), File: d.store.TrashDir(), Problem: err.Error()})
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
func (d *doctor) checkTasksDir() []Finding {
	if !d.store.TasksLost() {
		return nil
	}
	return []Finding{{
		Path:    d.store.Root(),
		File:    d.store.TasksDir(),
		Problem: "the folder of tasks is missing, and it had tasks",
		Lost:    "what was in it; put it back before anything is written to this root",
	}}
}

// checkOverlay verifies the overlay, and finds purges that were interrupted.
func (d *doctor) checkOverlay(ctx context.Context) []Finding {
	s := d.store
	about := func(file, problem, recovered, lost string) Finding {
		return Finding{Path: s.OverlayDir(), File: file, Problem: problem, Recovered: recovered, Lost: lost}
	}
	var out []Finding
	entries, err := os.ReadDir(s.TrashDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		out = append(out, about(s.TrashDir(), err.Error(), "", ""))
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".purged-") {
			f := about(filepath.Join(s.TrashDir(), e.Name()), "a purge was interrupted", "nothing: it was to be removed", "")
			f = f.withKind(leftover).withRepair()
			out = append(out, f)
		}
	}
	log, err := filelog.OpenReader(s.OverlayDir())
	if errors.Is(err, journal.ErrNotFound) {
		return out
	}
	if err != nil {
		return append(out, about(s.OverlayDir(), err.Error(), "every task; titles, tags and pins of other tools' tasks are not shown", ""))
	}
	defer log.Close()
	health, err := log.Health(ctx)
	if err != nil {
		return append(out, about(s.OverlayDir(), err.Error(), "", ""))
	}
	for _, damage := range health.Damaged {
		lost := "a change to titles, tags, pins or the trash"
		if damage.Seq > 0 {
			lost += fmt.Sprintf(": commit %d", damage.Seq)
		}
		out = append(out, about(filepath.Join(s.OverlayDir(), journalName), damage.Reason, "all other changes", lost))
	}
	for _, f := range journalFindings(store.Ref{Dir: s.OverlayDir()}, journal.Health{TornTail: health.TornTail, SetAside: health.SetAside}) {
		f.File = filepath.Join(s.OverlayDir(), f.File)
		out = append(out, f)
	}
	return out
}

// checkImport finds the copies of a killed import. They are not verified, and their originals are in place.
func (d *doctor) checkImport() []Finding {
	dir := importer.Interrupted(d.store)
	if dir == "" {
		return nil
	}
	return []Finding{{
		Path:       filepath.Dir(dir),
		File:       dir,
		Problem:    "an import was interrupted and left unverified copies",
		Recovered:  "the originals are untouched; importing again continues",
		kind:       leftover,
		repairable: true,
	}}
}
