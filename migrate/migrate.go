// Package migrate copies all tasks of one store into another: from folders into a database that servers share, and back.
//
// Run copies each journal as it is stored, byte for byte, with its payloads; the journal appears in the target
// complete or not at all. Then Run reads both again and compares their hashes. It only reads the source, except where
// a journal is incomplete: it gives a journal to an imported task that nobody has continued, and adds changes by
// other programs. After an interruption, run it again: it compares the journals that the target has, and appends what
// the source has got since. Where both journals were continued, Run changes neither and names the task.
//
// After the journals, Run copies the contents of checkpoints and the drafts of own tasks and of a new one. The target derives
// snapshots, lists, the search index and Roo's files again. Not copied: requests with idempotency keys, log-ins,
// accounts, and the audit trail, which belong to servers; journals of tasks in the storages of other tools, which
// stay with their folders.
//
// A journal is signed with the key of the root or group that wrote it, so the target does not trust the copy: it
// starts nothing of that task by itself (see package store) until the owner vouches for it. With Trust, Run vouches
// for the tasks whose journals were the source's own.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/doctor"
	"github.com/roost-dev/roost/store/drafts"
)

// End is a store, and the place of its checkpoint contents.
type End struct {
	Store    *store.Store
	Contents checkpoint.Place
}

// Run copies all tasks. The result names what cannot be copied; Run continues with the rest. It returns an error when it
// cannot continue.
func Run(ctx context.Context, from, to End, o api.NewMigration) (api.Migration, error) {
	m := &migration{
		from: from,
		to:   to,
		opt:  o,
		out:  api.Migration{DryRun: o.DryRun, Problems: []api.MigrationProblem{}, Left: []api.MigrationProblem{}},
	}
	refs, err := m.journals(ctx)
	if err != nil {
		return m.out, fmt.Errorf("list the tasks: %w", err)
	}
	there := map[string]bool{} // the tasks that the target has, by the owner of their contents
	for i, ref := range refs {
		progress.Report(ctx, progress.State{What: "copying", Done: i, Of: len(refs)})
		if err := ctx.Err(); err != nil {
			return m.out, err
		}
		switch err := m.task(ctx, ref); {
		case store.IsOverlay(ref) && errors.Is(err, errTwo): // of labels, it has only those of other tools' tasks
			m.leave(ref.ID, "the target has an overlay of its own, and keeps its times of deletions")
		case err != nil:
			m.problem(ref, err)
		default:
			there[checkpoint.OwnerOf(ref.ID)] = !store.IsOverlay(ref)
		}
	}
	if o.DryRun {
		return m.out, nil
	}
	m.out.Contents, err = checkpoint.Copy(ctx, from.Contents, to.Contents, func(owner string) bool { return there[owner] },
		func(name, owner string, err error) {
			m.out.Problems = append(m.out.Problems, api.MigrationProblem{
				Task:    owner,
				Problem: fmt.Sprintf("the contents of its checkpoints in the workspace %s: %v", name, err),
			})
		})
	if err != nil {
		return m.out, fmt.Errorf("copy the contents of checkpoints: %w", err)
	}
	for _, ref := range refs {
		if err := ctx.Err(); err != nil {
			return m.out, err
		}
		if err := m.after(ctx, ref); err != nil {
			m.problem(ref, err)
		}
	}
	return m.out, api.Failed(m.draft(ctx, ""), "copy the draft of a new task")
}

// migration is one call of Run.
type migration struct {
	from, to End
	opt      api.NewMigration
	out      api.Migration
}

func (m *migration) problem(ref store.Ref, err error) {
	m.out.Problems = append(m.out.Problems, api.MigrationProblem{Task: ref.ID, Problem: err.Error()})
}

// journals returns the references of all journals to copy, in a fixed order.
func (m *migration) journals(ctx context.Context) ([]store.Ref, error) {
	s := m.from.Store
	all, err := s.Every(ctx)
	if err != nil {
		return nil, err
	}
	list := api.Some(all, func(ref store.Ref) (store.Ref, bool) { // others are no tasks, or are being made
		return ref, api.ValidTaskID(ref.ID) && (s.HasJournal(ctx, ref) || isFolder(ref.Dir))
	})
	adopted, err := filepath.Glob(filepath.Join(s.Root(), "adopted", "*", "*", "journal.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, path := range adopted {
		m.leave(filepath.Base(filepath.Dir(path)), "its folder is in the storage of another tool: import it first, and Roost copies it")
	}
	// The trash before the tasks, and the overlay last: a store corrects the deletion of a task that is in its place.
	slices.SortFunc(list, func(a, b store.Ref) int { return slices.Compare([]string{a.ID, b.Log}, []string{b.ID, a.Log}) })
	if ref := s.OverlayRef(); s.HasJournal(ctx, ref) {
		list = append(list, ref)
	}
	return list, nil
}

func (m *migration) leave(task, why string) {
	m.out.Left = append(m.out.Left, api.MigrationProblem{Task: task, Problem: why})
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// place returns the reference under which the target has the journal.
func (m *migration) place(ref store.Ref) store.Ref {
	s := m.from.Store
	switch {
	case store.IsOverlay(ref):
		return m.to.Store.OverlayRef()
	case filepath.Dir(ref.Log) == s.TrashDir():
		return m.to.Store.TrashRef(filepath.Base(ref.Log))
	}
	return m.to.Store.OwnRef(ref.ID)
}

// Reasons why one task is not copied.
var (
	errBusy   = errors.New("a process works on it: stop that process, and migrate again")
	errGrew   = errors.New("it changed while it was copied: migrate again")
	errTwo    = errors.New("the target has another task of this id, or its copy was continued there")
	errUnlike = errors.New("the copy differs from the original")
)

// task copies one journal.
func (m *migration) task(ctx context.Context, ref store.Ref) (err error) {
	if holder, held := m.from.Store.Holder(ctx, ref); held {
		return fmt.Errorf("%w (%s)", errBusy, holder.Who())
	}
	if settled, err := m.settle(ctx, ref); err != nil || !settled {
		return err
	}
	source, err := m.from.Store.OpenJournal(ctx, ref)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	place := m.place(ref)
	if err := m.follow(ctx, source, place); err != nil {
		return err
	}
	over, head, err := m.compare(ctx, source, place)
	if err != nil || over == head {
		if err == nil {
			m.out.Already++
		}
		return err
	}
	if !m.opt.DryRun {
		if err := m.copy(ctx, source, place, over); err != nil {
			return err
		}
	}
	if over > 0 {
		m.out.Extended++
	} else {
		m.out.Copied++
	}
	m.out.Commits += head - over
	return nil
}

// follow moves the copy of a task that was deleted or restored in the source since. Another task of its id stays.
func (m *migration) follow(ctx context.Context, source journal.Stored, place store.Ref) error {
	to := m.to.Store
	was := to.TrashRef(place.ID)
	if filepath.Dir(place.Log) == to.TrashDir() {
		was = to.OwnRef(place.ID)
	}
	if m.opt.DryRun || store.IsOverlay(place) || to.Taken(ctx, place) || !to.HasJournal(ctx, was) {
		return nil
	}
	if over, _, err := m.compare(ctx, source, was); err != nil || over == 0 {
		return nil //nolint:nilerr // it is not the copy, or went on there
	}
	if holder, held := to.Holder(ctx, was); held {
		return fmt.Errorf("%w (%s)", errBusy, holder.Who())
	}
	return errors.Join(to.EnsureTrash(), to.MoveTask(ctx, was, place)) // to lock the journal would add a commit
}

// settle completes the journal of a task: an imported task that nobody has continued has no journal, and another
// program may have changed Roo's files since the last commit. A dry run only counts such a task, and settled is
// false.
func (m *migration) settle(ctx context.Context, ref store.Ref) (settled bool, err error) {
	if m.from.Store.Shared() || store.IsOverlay(ref) {
		return true, nil
	}
	v, err := m.from.Store.Read(ctx, ref)
	if err != nil {
		return false, err
	}
	settled = v.Settled() || len(v.State.Problems) > 0 // damage is reported when it is copied
	if err := v.Close(); err != nil || settled {
		return settled, err
	}
	if m.opt.DryRun {
		m.out.Copied++
		return false, nil
	}
	owned, err := m.from.Store.Own(ctx, ref)
	if err != nil {
		return false, fmt.Errorf("add its files to its journal: %w", err)
	}
	return true, owned.Task.Close(ctx)
}

// compare returns the number of commits in the source, head, and the number of them that the target already has,
// over: all, the first ones, or none.
func (m *migration) compare(ctx context.Context, source journal.Stored, place store.Ref) (over, head uint64, err error) {
	if head, err = source.Head(ctx); err != nil {
		return 0, 0, err
	}
	target, err := m.to.Store.OpenJournal(ctx, place)
	if errors.Is(err, journal.ErrNotFound) {
		if m.to.Store.Taken(ctx, place) {
			return 0, head, fmt.Errorf("%s already exists without a journal: move it away", place.Log)
		}
		return 0, head, nil
	}
	if err != nil {
		return 0, head, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	has, err := target.Head(ctx)
	if err != nil {
		return 0, head, err
	}
	over = min(has, head)
	a, err := sumAt(ctx, source, over)
	if err != nil {
		return 0, head, err
	}
	b, err := sumAt(ctx, target, over)
	if err != nil {
		return 0, head, fmt.Errorf("in the target: %w", err)
	}
	if a != b {
		return 0, head, errTwo
	}
	return over, head, nil
}

// sumAt returns the sum of a journal's commits up to head. A journal that lacks one of them is damaged.
func sumAt(ctx context.Context, log journal.Stored, head uint64) (journal.Sum, error) {
	list, err := journal.Sums(ctx, log, head)
	if err != nil {
		return journal.Sum{}, explained(err)
	}
	if list[0].Head != head {
		return journal.Sum{}, fmt.Errorf("it ends with commit %d, not %d", list[0].Head, head)
	}
	return list[0], nil
}

// explained adds, to an error about damage, the command that shows all damage.
func explained(err error) error {
	if _, ok := errors.AsType[*journal.DamageError](err); ok || errors.Is(err, journal.ErrBlobMissing) || errors.Is(err, journal.ErrBlobDamaged) {
		return fmt.Errorf("%w; roost doctor shows what is lost", err)
	}
	return err
}

// copy writes the journal, and compares the copy with the source.
func (m *migration) copy(ctx context.Context, source journal.Stored, place store.Ref, over uint64) error {
	failpoint.Hit("migrate.before")
	if err := m.to.Store.Restore(ctx, place, over, source); err != nil {
		return explained(err)
	}
	failpoint.Hit("migrate.restored")
	target, err := m.to.Store.OpenJournal(ctx, place)
	if err != nil {
		return err
	}
	defer target.Close()
	head, err := target.Head(ctx)
	if err != nil {
		return err
	}
	want, err := sumAt(ctx, source, head)
	if err != nil {
		return err
	}
	got, err := sumAt(ctx, target, head)
	if err != nil {
		return err
	}
	if got != want {
		return errUnlike
	}
	if now, err := source.Head(ctx); err != nil || now != head {
		return errors.Join(err, errGrew)
	}
	return nil
}

// after copies the draft of a task and, with Trust, vouches for the copy.
func (m *migration) after(ctx context.Context, ref store.Ref) error {
	place := m.place(ref)
	if store.IsOverlay(ref) || !m.to.Store.HasJournal(ctx, place) {
		return nil
	}
	if err := m.draft(ctx, ref.Source+":"+ref.ID); err != nil {
		return fmt.Errorf("copy its draft: %w", err)
	}
	if !m.opt.Trust || filepath.Dir(ref.Log) == m.from.Store.TrashDir() {
		return nil
	}
	v, err := m.from.Store.Read(ctx, ref)
	if err != nil {
		return err
	}
	standing, err := m.from.Store.Standing(ctx, ref, v.State.Begins)
	if err = errors.Join(err, v.Close()); err != nil || standing != store.Ours {
		return err
	}
	_, vouched, err := doctor.TrustTask(ctx, m.to.Store, place, false)
	if vouched && err == nil {
		m.out.Trusted++
	}
	return err
}

// draft copies the draft of a task, "" = a new one, unless the target has one.
func (m *migration) draft(ctx context.Context, task string) error {
	from, to := drafts.Of(m.from.Store), drafts.Of(m.to.Store)
	d, err := from.Read(ctx, task)
	if err != nil || d.Revision == "" {
		return err
	}
	if there, err := to.Read(ctx, task); err != nil || there.Revision != "" {
		return err
	}
	images := map[string]drafts.Image{}
	for _, image := range d.Images {
		if images[image.Name], err = from.ReadImage(ctx, task, image.Name); err != nil {
			return err
		}
	}
	if _, err = to.Change(ctx, d, "", images); err == nil {
		m.out.Drafts++
	}
	return err
}
