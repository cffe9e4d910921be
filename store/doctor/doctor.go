// Package doctor verifies tasks and what is kept for all of them, and repairs what can be repaired without losing a
// byte.
//
// A check changes nothing unless its options ask for it. Lost commits and payloads cannot be repaired; the report names
// what was recovered of them. A repair keeps the bytes that it replaces. Running it again changes nothing more.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/projection"
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
		add(&out, found, repaired)
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
		for _, f := range missing(left, found) {
			if f.kind != leftover {
				f.Copy = copies[filepath.Base(f.File)]
				repaired = append(repaired, f)
			}
		}
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

// Options are the options of Check. The zero value changes nothing.
type Options struct {
	// Repair repairs what can be repaired without losing a byte: it sets an unfinished last line of a journal aside and
	// writes a damaged file of Roo's again from the journal. Finding.Copy names the replaced bytes. A task of another
	// tool that has no journal yet is repaired only when it is named, because that makes it a task of ours. Repair also
	// removes what dead processes of ours left half written and nothing can need.
	Repair bool
	// Rebuild makes derived data again where it is missing, behind or wrong. Correct data stays as it is.
	Rebuild bool

	// SpillDir, when not "", is a folder besides root and cache in which exports may have left unfinished files: the
	// current folder.
	SpillDir string
}

// finding is one thing that is wrong, and what a repair does about it.
type finding struct {
	api.Finding
	kind       kind
	repairable bool
	rewrite    string // the derived file that a repair writes again
	remove     string // the leftover that a repair removes
}

// kind is the list of the report that a finding belongs to.
type kind uint8

const (
	damaged kind = iota
	stale
	leftover
	untrusted
)

// aboutTask begins a finding about a task.
func aboutTask(ref store.Ref, file, problem, recovered, lost string) finding {
	f := about(ref.Dir, file, problem, recovered, lost)
	f.ID = ref.ID
	return f
}

// about begins a finding about what is kept for all tasks.
func about(path, file, problem, recovered, lost string) finding {
	return finding{Finding: api.Finding{
		Path:      path,
		File:      file,
		Problem:   problem,
		Recovered: recovered,
		Lost:      lost,
	}}
}

func (f finding) withRepair() finding     { f.repairable = true; return f }
func (f finding) withKind(k kind) finding { f.kind = k; return f }

// fromMismatch is the finding that derived data differs.
func fromMismatch(m store.Mismatch) finding {
	f := about(m.Path, m.File, m.Problem, "", "")
	f.ID, f.rewrite, f.repairable = m.ID, m.Rewrite, !m.Unrepairable
	if m.Stale {
		f.kind = stale
	}
	if m.Source != "" {
		f.Recovered = "it is derived from " + m.Source
	}
	return f
}

func fromMismatches(list []store.Mismatch) (out []finding) {
	for _, m := range list {
		out = append(out, fromMismatch(m))
	}
	return out
}

// add sorts what is still wrong, and what was repaired, into the lists of a report.
func add(r *api.Checkup, found, repaired []finding) {
	lists := map[kind]*[]api.Finding{damaged: &r.Damaged, stale: &r.Stale, leftover: &r.Leftovers, untrusted: &r.Untrusted}
	for _, f := range found {
		*lists[f.kind] = append(*lists[f.kind], f.Finding)
	}
	for _, f := range repaired {
		r.Repaired = append(r.Repaired, f.Finding)
	}
}

func anyDamaged(list []finding) bool {
	return slices.ContainsFunc(list, func(f finding) bool { return f.kind == damaged })
}

// doctor is one check.
type doctor struct {
	store *store.Store
	opt   Options
}

// repair takes the task over. That sets a torn tail aside, takes in what is whole, and writes Roo's files again from
// the journal. It returns the copies of the replaced bytes by file name.
func (d *doctor) repair(ctx context.Context, ref store.Ref, found []finding) (map[string]string, error) {
	if err := d.removeDerived(ref, found); err != nil {
		return nil, err
	}
	before := tornTails(ref.Log)
	owned, err := d.store.Own(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("repair task %s: %w", ref.ID, err)
	}
	t := owned.Task
	if ref.Own {
		if err := roofmt.Sweep(ctx, ref.Dir); err != nil {
			return nil, errors.Join(err, t.Close(ctx))
		}
	}
	copies := map[string]string{}
	keep := func(name, blob string) {
		if len(blob) > 2 {
			copies[name] = filepath.Join(t.Ref.Log, blobFile(journal.Hash(blob)))
		}
	}
	for _, f := range found {
		if f.rewrite == "" || f.rewrite == "journal.idx" {
			continue
		}
		blob, err := t.Distrust(ctx, f.rewrite, f.Problem)
		if err != nil {
			return nil, errors.Join(err, t.Close(ctx))
		}
		keep(f.rewrite, blob)
	}
	adopted := t.State().Adopted
	if err := t.Close(ctx); err != nil {
		return nil, fmt.Errorf("repair task %s: %w", ref.ID, err)
	}
	if adopted != nil {
		for _, f := range adopted.Files {
			if copies[f.Name] == "" {
				keep(f.Name, f.Blob)
			}
		}
	}
	for _, change := range t.Intakes() {
		keep(change.File, change.Kept)
	}
	for _, name := range tornTails(ref.Log) {
		if !slices.Contains(before, name) {
			copies[journalName] = filepath.Join(ref.Log, name)
		}
	}
	return copies, nil
}

// removeDerived removes what the next owner makes again from journal and blobs.
func (d *doctor) removeDerived(ref store.Ref, found []finding) error {
	for _, f := range found {
		name := filepath.Base(f.File)
		if name != "journal.idx" && name != projection.Name || !d.opt.Rebuild && f.rewrite == "" {
			continue
		}
		if holder, held := filelog.Holder(ref.Log); held {
			return &journal.BusyError{Dir: ref.Log, Holder: holder}
		}
		if err := os.Remove(filepath.Join(ref.Log, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("rebuild %s of task %s: %w", name, ref.ID, err)
		}
	}
	return nil
}

// tornTails are the names of the files of unfinished lines that owners set aside.
func tornTails(logDir string) (out []string) {
	entries, _ := os.ReadDir(logDir) // the check reports a folder that cannot be read
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "journal.torn-") {
			out = append(out, e.Name())
		}
	}
	return out
}
