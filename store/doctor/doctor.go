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
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/store/search"
	"github.com/roost-dev/roost/store/trash"
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
	if len(ids) == 0 && !d.store.Shared() {
		d.checkRoot(ctx, refs, &out)
	}
	return out, ctx.Err()
}

// checkTask verifies a task and repairs it as the options want. It returns what is still wrong and what was repaired.
func (d *doctor) checkTask(ctx context.Context, ref store.Ref, named bool) (found, repaired []finding) {
	found = d.inspect(ctx, ref)
	if d.mayRepair(ctx, ref, found, named) {
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
func (d *doctor) mayRepair(ctx context.Context, ref store.Ref, found []finding, named bool) bool {
	ours := d.store.HasJournal(ctx, ref)
	if d.opt.Rebuild && ours && slices.ContainsFunc(found, func(f finding) bool { return f.kind == stale || f.rewrite != "" }) {
		return true
	}
	if !d.opt.Repair || !slices.ContainsFunc(found, func(f finding) bool { return f.kind == damaged && f.repairable }) {
		return false
	}
	return ours || ref.Own || named
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

// fromMismatch returns the finding for derived data that differs from its journal.
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

// add sorts what is still wrong, and what was repaired, into the lists of a report.
func add(r *api.Checkup, found, repaired []finding) {
	lists := map[kind]*[]api.Finding{damaged: &r.Damaged, stale: &r.Stale, leftover: &r.Leftovers, untrusted: &r.Untrusted}
	for _, f := range found {
		*lists[f.kind] = append(*lists[f.kind], f.Finding)
	}
	r.Repaired = append(r.Repaired, api.Each(repaired, func(f finding) api.Finding { return f.Finding })...)
}

func anyDamaged(list []finding) bool {
	return slices.ContainsFunc(list, func(f finding) bool { return f.kind == damaged })
}

// doctor is one check of tasks.
type doctor struct {
	store *store.Store
	opt   Options
}

// repair takes the task over. That sets a torn tail aside, takes in what is whole, and writes Roo's files again from
// the journal. It returns the copies of the replaced bytes by file name.
func (d *doctor) repair(ctx context.Context, ref store.Ref, found []finding) (map[string]string, error) {
	if err := d.removeDerived(ctx, ref, found); err != nil {
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
			copies[store.JournalName] = filepath.Join(ref.Log, name)
		}
	}
	return copies, nil
}

// removeDerived removes what the next owner makes again from journal and blobs.
func (d *doctor) removeDerived(ctx context.Context, ref store.Ref, found []finding) error {
	for _, f := range found {
		name := filepath.Base(f.File)
		if name != "journal.idx" && name != projection.Name || !d.opt.Rebuild && f.rewrite == "" {
			continue
		}
		if holder, held := d.store.Holder(ctx, ref); held {
			return &journal.BusyError{Dir: ref.Log, Holder: holder}
		}
		if err := os.Remove(filepath.Join(ref.Log, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("rebuild %s of task %s: %w", name, ref.ID, err)
		}
	}
	return nil
}

// tornTails returns the names of the files of unfinished lines that owners set aside.
func tornTails(logDir string) []string {
	entries, _ := os.ReadDir(logDir) // the check reports a folder that cannot be read
	return api.Some(entries, func(e os.DirEntry) (string, bool) {
		return e.Name(), strings.HasPrefix(e.Name(), "journal.torn-")
	})
}

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
			func() []finding { return api.Each(d.store.VerifyIndex(ctx), fromMismatch) },
			func(found []finding) error { return d.store.RebuildIndex(ctx, anyDamaged(found)) },
		},
		{d.checkImport, func([]finding) error { return importer.RemoveInterrupted(d.store) }},
		{
			func() []finding { return api.Each(d.store.VerifyRows(ctx), fromMismatch) },
			func([]finding) error { return d.store.RebuildRows(ctx) },
		},
		{
			func() []finding {
				return slices.DeleteFunc(api.Each(search.Verify(ctx, d.store), fromMismatch), func(f finding) bool {
					return f.kind == stale && !d.opt.Rebuild // every search fills the catalogue; that it is not full yet is no finding
				})
			},
			func(found []finding) error { return search.Rebuild(ctx, d.store, anyDamaged(found)) },
		},
	}
	for _, step := range steps {
		if ctx.Err() != nil {
			return
		}
		found := step.inspect()
		var repaired []finding
		if step.repair != nil && d.wantsRepair(found) {
			if err := step.repair(found); err != nil {
				found = append(found, about(d.store.Root(), d.store.Root(), err.Error(), "", ""))
			} else {
				left := step.inspect()
				found, repaired = left, missing(left, found)
			}
		}
		add(out, found, repaired)
	}
	left := d.rootLeftovers()
	var removed []finding
	if d.opt.Repair {
		left, removed = removeLeftovers(left)
	}
	add(out, left, removed)
}

// wantsRepair reports whether the options ask for the repair of a finding.
func (d *doctor) wantsRepair(found []finding) bool {
	return slices.ContainsFunc(found, func(f finding) bool {
		return f.repairable && (d.opt.Repair && f.kind != stale || d.opt.Rebuild && f.kind != leftover)
	})
}

// missing returns the findings of before that are not in after.
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

// checkOverlay verifies the overlay, and finds interrupted purges.
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
	log, err := s.OpenOverlay(ctx)
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
		out = append(out, here(filepath.Join(s.OverlayDir(), store.JournalName), damage.Reason, "all other changes", lost))
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

// A file of ours counts as left by a dead process once it has this age, unless a lock shows that its writer lives.
// Exports take longer than other writes.
const (
	leftAge   = time.Minute
	exportAge = time.Hour
)

// taskLeftovers returns what interrupted work left in a task's folders. log is nil when the task has no journal.
func (d *doctor) taskLeftovers(ctx context.Context, ref store.Ref, log journal.Reader) []finding {
	var out []finding
	add := func(path, problem, keeps string, remove bool) {
		f := aboutTask(ref, path, problem, keeps, "").withKind(leftover)
		if remove {
			f.remove = path
		}
		out = append(out, f)
	}
	for _, dir := range []string{ref.Dir, filepath.Join(ref.Dir, "command-output")} {
		list, err := roofmt.Leftovers(dir, time.Now())
		if err != nil {
			continue // the check of the task reports a folder that cannot be read
		}
		for _, l := range list {
			keeps := "nothing needs it"
			if !l.Ours {
				keeps = "it is kept: it may hold messages"
			}
			if strings.HasSuffix(l.Name, ".json.lock") {
				keeps = "the next write removes it"
			}
			add(filepath.Join(dir, l.Name), l.What, keeps, l.Ours)
		}
	}
	if _, held := d.store.Holder(ctx, ref); held || log == nil {
		return out
	}
	for _, dir := range []string{ref.Log, filepath.Join(ref.Log, "blobs")} {
		for _, e := range oldEntries(dir, leftAge) {
			name := e.Name()
			if dir == ref.Log && projection.IsHalfWritten(name) || dir != ref.Log && strings.HasPrefix(name, "tmp-") {
				add(filepath.Join(dir, name), "half written by a dead process", "no commit names it", true)
			}
		}
	}
	unnamed, bytes, err := unnamedBlobs(ctx, ref.Log, log)
	switch {
	case err != nil:
		out = append(out, aboutTask(ref, filepath.Join(ref.Log, "blobs"), err.Error(), "", ""))
	case len(unnamed) > 0:
		problem := fmt.Sprintf("no commit names %d payloads of %d bytes in all; this is the first", len(unnamed), bytes)
		add(unnamed[0], problem, "they are kept: nothing that was written is destroyed", false)
	}
	return out
}

// oldEntries returns the files and folders of a folder that have not changed for a while.
func oldEntries(dir string, age time.Duration) []fs.DirEntry {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		info, err := e.Info()
		return err != nil || time.Since(info.ModTime()) < age
	})
}

// unnamedBlobs returns the payloads that no commit names, and their size. A kill between a payload and its commit
// leaves such.
func unnamedBlobs(ctx context.Context, dir string, log journal.Reader) (paths []string, size int64, err error) {
	there := map[journal.Hash]fs.DirEntry{}
	groups, err := os.ReadDir(filepath.Join(dir, "blobs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for _, g := range groups {
		if !g.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(dir, "blobs", g.Name()))
		if err != nil {
			return nil, 0, err
		}
		for _, f := range files {
			if h := journal.Hash(f.Name()); h.Valid() && f.Name()[:2] == g.Name() {
				there[h] = f
			}
		}
	}
	for c, err := range log.Read(ctx, 1) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			return nil, 0, nil // the lost commit may have named any of them
		case err != nil:
			return nil, 0, err
		}
		for _, h := range c.Blobs {
			delete(there, h)
		}
	}
	for h, f := range there {
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > leftAge {
			paths = append(paths, filepath.Join(dir, blobFile(h)))
			size += info.Size()
		}
	}
	slices.Sort(paths)
	return paths, size, nil
}

// removeLeftovers removes the leftovers that may be removed.
func removeLeftovers(found []finding) (left, removed []finding) {
	for _, f := range found {
		if f.remove == "" {
			left = append(left, f)
			continue
		}
		if err := removeLeftover(f.remove); err != nil {
			f.Recovered = "it could not be removed: " + err.Error()
			left = append(left, f)
			continue
		}
		f.Recovered = "removed"
		removed = append(removed, f)
	}
	return left, removed
}

// removeLeftover removes one leftover. A leftover of a writer of Roo's files is checked again under that writer's
// lock.
func removeLeftover(path string) error {
	dir, name := filepath.Split(path)
	if strings.HasPrefix(name, ".roost-tmp_") || strings.HasPrefix(name, ".roost-lock_") || strings.HasSuffix(name, ".json.lock") {
		if err := roofmt.Sweep(context.Background(), dir); err != nil {
			return err
		}
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.New("it is in use again")
	}
	return os.RemoveAll(path)
}

// rootLeftovers are files of ours outside of tasks that killed processes left.
func (d *doctor) rootLeftovers() []finding {
	var out []finding
	root, cache := d.store.Root(), d.store.CacheDir()
	add := func(dir, prefix string, age time.Duration, problem string) {
		if dir == "" {
			return
		}
		for _, e := range oldEntries(dir, age) {
			if strings.HasPrefix(e.Name(), prefix) && e.Type().IsRegular() {
				path := filepath.Join(dir, e.Name())
				f := about(dir, path, problem, "nothing needs it", "").withKind(leftover)
				f.remove = path
				out = append(out, f)
			}
		}
	}
	add(root, ".probe-", leftAge, "left by a dead process")
	dirs := []string{root, cache}
	if extra := d.opt.SpillDir; extra != "" && !slices.Contains(dirs, extra) {
		dirs = append(dirs, extra)
	}
	for _, dir := range dirs {
		add(dir, ".roost-export-", exportAge, "an unfinished export")
	}
	if damaged := filepath.Join(cache, catalog.Name+".damaged"); cache != "" && projection.Exists(damaged) {
		out = append(out, about(cache, damaged, "a damaged catalogue that was set aside",
			"it is kept for investigation; nothing needs it", "").withKind(leftover))
	}
	return out
}

func blobFile(h journal.Hash) string {
	return filepath.Join("blobs", string(h[:2]), string(h))
}
