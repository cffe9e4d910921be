// Package doctor verifies tasks and what is kept for all of them, and repairs what can be repaired without losing a
// byte.
//
// A check changes nothing unless its options ask for it. Lost commits and payloads cannot be repaired; the report names
// what was recovered of them. A repair keeps the bytes that it replaces. Running it again changes nothing more.
package doctor

import (
	"context"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/store"
)

// Check verifies tasks: every commit, every payload, every file, and that derived data agrees. Without ids it verifies
// all tasks, those in the trash, and what is kept for all tasks. A folder without message bytes counts as a task in
// order.
func Check(ctx context.Context, s *store.Store, ids []string, o Options) (api.Checkup, error) {
	out := api.Checkup{
		Damaged:   []api.Finding{},
		Repaired:  []api.Finding{},
		Stale:     []api.Finding{},
		Leftovers: []api.Finding{},
		Untrusted: []api.Finding{},
	}
	refs, err := s.FindAll(ctx, ids)
	if err != nil {
		return api.Checkup{}, err
	}
	d := &doctor{s, o}
	for i, ref := range refs {
		progress.Report(ctx, progress.State{What: "checking", Done: i, Of: len(refs)})
		if err := ctx.Err(); err != nil {
			return out, err
		}
		found, repaired := d.checkTask(ctx, ref, len(ids) > 0)
		out.Tasks++
		if !anyDamaged(found) {
			out.OK++
		}
		add(&out, found)
		out.Repaired = append(out.Repaired, documents(repaired)...)
	}
	if len(ids) == 0 {
		d.checkRoot(ctx, refs, &out)
	}
	return out, ctx.Err()
}

// checkTask verifies a task and repairs it as the options want. It returns what is still wrong and what was repaired.
func (d *doctor) checkTask(ctx context.Context, ref store.Ref, named bool) (found, repaired []finding) {
	found = d.inspect(ctx, ref)
	if d.mayRepair(ref, found, named) {
		copies, err := d.repair(ctx, ref, found)
		if err != nil {
			// A task that cannot be repaired does not keep the others from it.
			return append(found, aboutTask(ref, ref.Log, err.Error(), "", "")), nil
		}
		left := d.inspect(ctx, ref)
		repaired = repairedFindings(found, left, copies)
		found = left
	}
	if d.opt.Repair {
		left, removed := removeLeftovers(found)
		found, repaired = left, append(repaired, removed...)
	}
	return found, repaired
}

// mayRepair decides whether a task is changed.
func (d *doctor) mayRepair(ref store.Ref, found []finding, named bool) bool {
	ours := store.HasJournal(ref.Log)
	if d.opt.Rebuild && ours && slices.ContainsFunc(found, func(f finding) bool { return f.kind == stale || f.rewrite != "" }) {
		return true
	}
	if !d.opt.Repair || !slices.ContainsFunc(found, func(f finding) bool { return f.kind == damaged && f.repairable }) {
		return false
	}
	return ours || ref.Own || named && ref.CanAdopt()
}
