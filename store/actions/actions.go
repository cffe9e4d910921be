// Package actions lists what users did to tasks, and undoes and redoes it.
//
// An action is in one of two logs: in the task's own journal, or in the overlay when the folder is not ours or moves
// away. Each entry of the overlay names the commit at which the task's journal was (overlay.Entry.Head), so the actions
// of both logs have one order that does not depend on clocks. A third log of all actions was the alternative: a kill
// between two writes would make it wrong.
//
// Undoing appends to the log that holds the action, so it loses nothing. The action is chosen again once that log is
// locked: when another process did something in between, Undo fails with a *ConflictError and that action stays. Of a
// task of the root, the journal is locked first.
package actions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/store/trash"
	"github.com/roost-dev/roost/task"
)

// deletion is the kind of an action that deleted a task.
const deletion = "delete"

// ErrFiles: the action restored files, and the caller cannot restore files.
var ErrFiles = errors.New("it restored files, and undoing it must restore files, too")

// restoresFiles reports whether an action restored files.
func restoresFiles(d task.Action) bool { return d.Kind == api.ActionRestore || len(d.Files) > 0 }

// loggedAction is an action and the log that holds it.
type loggedAction struct {
	task.Action
	inOverlay bool
}

func (a loggedAction) id() string {
	switch {
	case a.inOverlay && a.Seq == 0:
		return "trash"
	case a.inOverlay:
		return fmt.Sprintf("overlay-%d", a.Seq)
	}
	return fmt.Sprintf("journal-%d", a.Seq)
}

// moment orders the actions of both logs: an entry of the overlay follows the commit that it names.
type moment [3]uint64

func (a loggedAction) moment() moment {
	if a.inOverlay {
		return moment{a.Head, 1, a.Then}
	}
	return moment{a.Then}
}

func (m moment) compare(o moment) int { return slices.Compare(m[:], o[:]) }

// actionList are actions in their order.
type actionList []loggedAction

func (l actionList) newest() (loggedAction, bool) {
	if len(l) == 0 {
		return loggedAction{}, false
	}
	return l[len(l)-1], true
}

// describe returns the actions for a caller, the newest first.
func (l actionList) describe(moved uint64) []api.Action {
	out := make([]api.Action, 0, len(l))
	for _, a := range slices.Backward(l) {
		d := a.describe()
		d.WentOn = a.Move && moved > a.Then
		out = append(out, d)
	}
	return out
}

func (a loggedAction) describe() api.Action {
	d := api.Action{ID: a.id(), Kind: a.Kind, At: api.Date(a.At)}
	if a.Kind == deletion {
		d.From.Deleted, d.To.Deleted = new(false), new(true)
		return d
	}
	if restoresFiles(a.Action) {
		d.Files, d.Checkpoint, d.Safety = len(a.Action.Files), new(a.Action.To), a.Action.Safety
	}
	if a.Move {
		d.Gone, d.Branch, d.By = &api.MessageCounts{UI: a.Gone.UI, API: a.Gone.API}, store.BranchName(a.Seq), a.By
		return d
	}
	if a.Cover > 0 {
		d.Covered = a.Cover
		return d
	}
	d.From = api.ActionLabels{Title: a.Before.Title, Tags: a.Before.Tags, Pinned: a.Before.Pinned, Access: a.Before.Access}
	d.To = api.ActionLabels{Title: a.After.Title, Tags: a.After.Tags, Pinned: a.After.Pinned, Access: a.After.Access}
	return d
}

// merge puts the actions of both logs in order. An action that was undone in one log cannot be redone once a newer
// action is in the other.
func merge(journal, overlay task.Actions) (done, redo actionList) {
	last := map[bool]moment{false: {journal.Last}, true: {overlay.Head, 1, overlay.Last}}
	if overlay.Last == 0 {
		last[true] = moment{}
	}
	for inOverlay, of := range map[bool]task.Actions{false: journal, true: overlay} {
		for _, d := range of.Done {
			done = append(done, loggedAction{d, inOverlay})
		}
		for _, d := range of.Undone {
			if a := (loggedAction{d, inOverlay}); last[!inOverlay].compare(a.moment()) < 0 {
				redo = append(redo, a)
			}
		}
	}
	for _, l := range []actionList{done, redo} { // no two actions have one moment
		slices.SortStableFunc(l, func(a, b loggedAction) int { return a.moment().compare(b.moment()) })
	}
	return done, redo
}

// taskActions are the actions of a task, with what undo needs to perform them.
type taskActions struct {
	api.TaskActions
	ref    store.Ref
	folder string // in the trash
	done   actionList
	redo   actionList
	moved  uint64 // the newest commit that continued the histories
}

// qualifiedName returns a name of the task that matches no other task.
func (t *taskActions) qualifiedName() string {
	switch {
	case t.folder != "":
		return store.OwnSource + ":" + t.folder
	case t.ref.Own:
		return store.OwnSource + ":" + t.ref.ID
	}
	return t.Name
}

// Find lists what can be undone and redone of one task, also of one in the trash. It changes nothing.
func Find(ctx context.Context, s *store.Store, given string) (api.TaskActions, error) {
	t, err := find(ctx, s, given)
	return t.TaskActions, err
}

func find(ctx context.Context, s *store.Store, given string) (taskActions, error) {
	ref, err := s.Find(ctx, given)
	if trashed, ok := errors.AsType[*store.TrashedError](err); ok {
		d, err := s.FindDeleted(ctx, trashed.Name)
		if err != nil {
			return taskActions{}, err
		}
		return ofDeleted(ctx, s, d)
	} else if err != nil {
		return taskActions{}, err
	}
	t, err := ofTask(ctx, s, ref)
	if err != nil || strings.Contains(given, ":") {
		return t, err
	}
	return preferDeletedCopy(ctx, s, t)
}

// preferDeletedCopy returns a deleted copy of a task in another source when its deletion is the newest action: a user
// who deletes one of two copies and then undoes means that one.
func preferDeletedCopy(ctx context.Context, s *store.Store, t taskActions) (taskActions, error) {
	d, err := s.FindDeleted(ctx, t.ref.ID)
	if err != nil || d.Ref.ID != t.ref.ID || d.Ref.Source == t.ref.Source {
		return t, nil //nolint:nilerr // there is none, or the name fits several
	}
	copied, err := ofDeleted(ctx, s, d)
	if err != nil {
		return t, err
	}
	last, ok := copied.done.newest()
	if own, some := t.done.newest(); !ok || some && own.At >= last.At {
		return t, nil
	}
	return copied, nil
}

// newDeleted begins the actions of a deleted task.
func newDeleted(d store.DeletedTask) taskActions {
	t := taskActions{TaskActions: api.TaskActions{Trashed: true, Name: d.Name}, ref: d.Ref}
	if !d.Hidden {
		t.folder = d.Name
	}
	return t
}

// newPresent begins the actions of a task in its place.
func newPresent(ref store.Ref) taskActions {
	t := taskActions{TaskActions: api.TaskActions{Task: api.Summary{ID: ref.ID, Source: ref.Source}, Name: ref.ID}, ref: ref}
	if !ref.Own {
		t.Name = ref.Source + ":" + ref.ID
	}
	return t
}

func ofDeleted(ctx context.Context, s *store.Store, d store.DeletedTask) (taskActions, error) {
	t := newDeleted(d)
	table, err := s.Overlay(ctx)
	if err != nil {
		return t, err
	}
	t.Task = s.SummaryOfDeleted(ctx, d, table)
	all, err := readOverlay(ctx, s)
	if err == nil {
		err = t.readJournal(ctx, s, all)
	}
	return t, err
}

// ofTask returns the actions of a task in its place. It reads the task once.
func ofTask(ctx context.Context, s *store.Store, ref store.Ref) (taskActions, error) {
	t := newPresent(ref)
	v, err := s.Read(ctx, ref)
	if err != nil {
		return t, err
	}
	t.Task = v.Summary
	if err := v.Close(); err != nil {
		return t, err
	}
	all, err := readOverlay(ctx, s)
	if err != nil {
		return t, err
	}
	if v.Log == nil || len(v.Pending) > 0 { // a change of another program is no action until it is taken in
		return t, t.readJournal(ctx, s, all)
	}
	t.fill(v.State, all)
	return t, nil
}

// readJournal fills in the actions of one task from its journal.
func (t *taskActions) readJournal(ctx context.Context, s *store.Store, all map[overlay.Key]*overlayActions) error {
	state, err := s.FoldJournal(ctx, t.ref)
	if err != nil {
		return err
	}
	t.fill(state, all)
	return nil
}

// fill fills in the actions. state is nil when the task has no journal.
func (t *taskActions) fill(state *task.State, all map[overlay.Key]*overlayActions) {
	var own task.Actions
	if t.moved = 0; state != nil {
		own, t.moved = state.Actions, state.Moved
	}
	key := overlay.Key{Source: t.ref.Source, ID: t.ref.ID}
	t.done, t.redo = merge(own, all[key].of(t.ref, t.folder))
	t.redo = slices.DeleteFunc(t.redo, func(a loggedAction) bool { return a.Move && t.moved > a.Then })
	t.Undo, t.Redo = t.done.describe(t.moved), t.redo.describe(t.moved)
}

// maxReaders bounds how many tasks FindAll reads at the same time.
const maxReaders = 2

// FindAll lists the tasks with actions that can be undone or redone, the one with the newest action first. It leaves
// out tasks that cannot be read.
func FindAll(ctx context.Context, s *store.Store, limit int) ([]api.TaskActions, error) {
	refs, err := s.Refs(ctx)
	if err != nil {
		return nil, err
	}
	deleted, err := s.Deleted(ctx)
	if err != nil {
		return nil, err
	}
	table, err := s.Overlay(ctx)
	if err != nil {
		return nil, err
	}
	filed, err := readOverlay(ctx, s)
	if err != nil {
		return nil, err
	}
	var all []taskActions
	for _, d := range deleted {
		t := newDeleted(d)
		t.Task = s.SummaryOfDeleted(ctx, d, table)
		all = append(all, t)
	}
	for _, ref := range refs {
		if ref.Own || filed[overlay.Key{Source: ref.Source, ID: ref.ID}] != nil || s.HasJournal(ctx, ref) {
			all = append(all, newPresent(ref))
		}
	}
	store.Parallel(ctx, maxReaders, len(all), func(i int) {
		if all[i].readJournal(ctx, s, filed) != nil {
			all[i].done, all[i].redo = nil, nil
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(t taskActions) bool { return len(t.done)+len(t.redo) == 0 })
	slices.SortStableFunc(all, func(a, b taskActions) int { return int(min(max(b.newest()-a.newest(), -1), 1)) })
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	for i := range all {
		if t := &all[i]; !t.Trashed {
			if t.Task, err = labels.Row(ctx, s, t.ref); err != nil {
				t.Task = s.SummaryOf(ctx, t.ref)
			}
		}
	}
	return api.Each(all, func(t taskActions) api.TaskActions { return t.TaskActions }), nil
}

// newest returns the time of the newest action.
func (t taskActions) newest() (at int64) {
	for _, a := range slices.Concat(t.done, t.redo) {
		at = max(at, a.At)
	}
	return at
}

// overlayActions are the overlay's actions of one task, and the labels that its entries give.
type overlayActions struct {
	actions task.Actions
	folders map[uint64]string // of deletions of our own tasks: the folder in the trash
	title   string
	tags    []string
	pinned  bool
}

// readOverlay folds the overlay into the actions of each task.
func readOverlay(ctx context.Context, s *store.Store) (map[overlay.Key]*overlayActions, error) {
	out := map[overlay.Key]*overlayActions{}
	err := s.EachInOverlay(ctx, func(c journal.Commit, e overlay.Entry) {
		key := overlay.Key{Source: e.Source, ID: e.ID}
		if out[key] == nil {
			out[key] = &overlayActions{folders: map[uint64]string{}}
		}
		out[key].fold(e, c.Seq, c.At)
	})
	return out, err
}

func (o *overlayActions) fold(e overlay.Entry, seq uint64, at int64) {
	switch {
	case e.Type == overlay.Changed:
		o.foldLabels(e, seq, at)
	case e.Type != overlay.Deleted || e.Deleted == nil:
	case !*e.Deleted:
		if i := o.findDeletion(e.Name); i >= 0 {
			o.actions.Undo(o.actions.Done[i].Seq, seq, e.Head)
		}
	case e.Redoes != 0:
		o.folders[e.Redoes] = e.Name
		o.actions.Redo(e.Redoes, seq, e.Head)
	default:
		o.folders[seq] = e.Name
		o.actions.Do(task.Action{Kind: deletion, Seq: seq, Head: e.Head, At: at})
	}
}

func (o *overlayActions) foldLabels(e overlay.Entry, seq uint64, at int64) {
	change := task.Changed{Title: e.Title, Tags: e.Tags, Pinned: e.Pinned}
	switch {
	case e.Undoes != 0:
		o.actions.Undo(e.Undoes, seq, e.Head)
	case e.Redoes != 0:
		o.actions.Redo(e.Redoes, seq, e.Head)
	case change.Kind() != "":
		o.actions.Do(task.Action{
			Kind:   change.Kind(),
			Seq:    seq,
			Head:   e.Head,
			At:     at,
			Before: change.Against(o.title, o.tags, o.pinned, api.Access{}),
			After:  change,
		})
	}
	if e.Title != nil {
		o.title = *e.Title
	}
	if e.Tags != nil {
		o.tags = *e.Tags
	}
	if e.Pinned != nil {
		o.pinned = *e.Pinned
	}
}

// findDeletion returns the index of the newest deletion that moved the task into a folder of the trash; the folder is
// "" for another tool's task.
func (o *overlayActions) findDeletion(folder string) int {
	for i, d := range slices.Backward(o.actions.Done) {
		if d.Kind == deletion && o.folders[d.Seq] == folder {
			return i
		}
	}
	return -1
}

// of returns the actions of one task. folder is its folder in the trash, "" when it is not there. The place of an own
// task decides whether it is deleted, and not the entry that was written before it moved.
func (o *overlayActions) of(ref store.Ref, folder string) task.Actions {
	if !ref.Own {
		if o == nil {
			return task.Actions{}
		}
		return o.actions
	}
	var out task.Actions
	if folder != "" {
		deleted := task.Action{Kind: deletion, Head: ^uint64(0)} // of a deletion that no entry records
		if o != nil {
			if i := o.findDeletion(folder); i >= 0 {
				deleted = o.actions.Done[i]
			}
		}
		return task.Actions{Done: []task.Action{deleted}, Last: deleted.Seq, Head: deleted.Head}
	}
	if o != nil {
		out = o.actions
		out.Done = nil
	}
	return out
}

// Options choose an action. The zero value is the newest one.
type Options struct {
	Redo   bool   // do again what was undone last
	Only   string // an Action's ID: when it is not the next one, nothing is done
	DryRun bool   // only report which action it would be

	// Next is called with the action before anything is done. It may be nil.
	Next func(api.Action)
	// Saved is called as soon as a change in the journal is durable, before Roo's files are written. Its
	// api.TaskActions holds only the names of the task. It may be nil.
	Saved func(api.Action, api.TaskActions)

	// Ready is called with the task once it is owned, before the action is chosen. It may be nil.
	Ready func(context.Context, *store.Task) error
	// Files undoes or redoes an action that restored files, and commits what it does. When it is nil, such an action
	// fails with ErrFiles.
	Files func(context.Context, *store.Task, task.Action) error
}

// ErrNothing: there is nothing to undo, or to redo.
var ErrNothing = errors.New("there is no action to undo or redo")

// ContinuedError: the histories were continued since they were moved, so that undoing the move would remove more. What
// they were before is kept as a branch: a fork can start from it.
type ContinuedError struct {
	Branch string
	Kind   string
}

func (e *ContinuedError) Error() string {
	return fmt.Sprintf("the task was continued since its last %s; what it was before is kept as the branch %s", e.Kind, e.Branch)
}

// ConflictError: the next action is not the one that was asked for, because another action came in between.
type ConflictError struct{ Want, Next string }

func (e *ConflictError) Error() string {
	if e.Next == "" {
		return fmt.Sprintf("%s is not the next action any more: it was undone or redone since", e.Want)
	}
	return fmt.Sprintf("%s was meant, but the next action is %s now", e.Want, e.Next)
}

// Undo takes back what a user did to a task last or, with Redo, does again what was undone last. It returns the action,
// and the task's actions after it.
//
// Its errors wrap ErrNothing, are a *ContinuedError, *ConflictError or *journal.BusyError, wrap trash.ErrTaken (another
// task has the id of the one to restore), or are those of store.Store.Find.
func Undo(ctx context.Context, s *store.Store, given string, o Options) (api.Action, api.TaskActions, error) {
	t, owned, err := own(ctx, s, given, o)
	if err == nil && owned == nil {
		t, err = findSettled(ctx, s, given, o)
	}
	if err != nil {
		return api.Action{}, t.TaskActions, err
	}
	a, err := t.next(o) // without an error if the task is owned
	if err != nil || o.DryRun {
		return a.describe(), t.TaskActions, err
	}
	if o.Next != nil {
		o.Next(a.describe())
	}
	o.Only = a.id()
	subtasks, err := t.perform(ctx, s, a, o, owned)
	if err != nil {
		return a.describe(), t.TaskActions, fmt.Errorf("task %s: %w", t.ref.ID, err)
	}
	t.folder = "" // it may be elsewhere now
	now, err := Find(ctx, s, t.qualifiedName())
	now.Subtasks = subtasks
	return a.describe(), now, err
}

// own takes ownership of a task of the root and lists its actions, so that a long task is opened once. Unless the
// next action is one of the task's own journal, own releases the task and returns a nil owned: the caller then reads
// the task.
func own(ctx context.Context, s *store.Store, given string, o Options) (t taskActions, owned *store.Task, err error) {
	ref, err := s.Find(ctx, given)
	if err != nil || !ref.Own || !s.HasJournal(ctx, ref) || o.DryRun {
		return t, nil, nil //nolint:nilerr // reading what there is gives the error
	}
	got, err := s.OwnLean(ctx, ref)
	if err != nil {
		return t, nil, nil //nolint:nilerr // whether there is anything to undo comes first
	}
	t = newPresent(ref)
	all, err := readOverlay(ctx, s)
	if err == nil {
		t.fill(got.Task.State(), all)
		if !strings.Contains(given, ":") {
			t, err = preferDeletedCopy(ctx, s, t)
		}
	}
	if a, wrong := t.next(o); err != nil || wrong != nil || a.inOverlay {
		return t, nil, errors.Join(err, got.Task.Close(ctx))
	}
	return t, got.Task, nil
}

// findSettled takes in what another program changed, and then calls find: the change comes first, and may be the
// action that the caller means.
func findSettled(ctx context.Context, s *store.Store, given string, o Options) (taskActions, error) {
	t, err := find(ctx, s, given)
	if err != nil || !t.Task.Pending || o.DryRun || t.Trashed {
		return t, err
	}
	owned, err := s.Own(ctx, t.ref)
	if err == nil {
		err = owned.Task.Close(ctx)
	}
	if err != nil {
		return t, err
	}
	return find(ctx, s, given)
}

// perform undoes or redoes an action in the log that holds it. owned is its task, nil where that is not owned yet.
func (t *taskActions) perform(
	ctx context.Context, s *store.Store, a loggedAction, o Options, owned *store.Task,
) (subtasks []string, err error) {
	checkNext := func() error { return t.checkNext(ctx, s, o) }
	switch {
	case a.Kind == deletion && o.Redo:
		if err = trash.DeleteAgain(ctx, s, t.ref, a.Seq, checkNext); err == nil {
			subtasks, err = trash.DeleteSubtasksAgain(ctx, s, t.ref, a.At)
		}
	case a.Kind == deletion:
		if _, err = trash.RestoreIf(ctx, s, t.qualifiedName(), checkNext); err == nil {
			subtasks, err = trash.RestoreSubtasks(ctx, s, t.ref, a.At)
		}
	case a.inOverlay:
		err = s.ChangeOverlay(ctx, func(_ overlay.Table, add overlay.Append) error {
			if err := checkNext(); err != nil {
				return err
			}
			return add(t.labelEntry(ctx, s, a, o.Redo))
		})
	default:
		err = t.performInJournal(ctx, s, a, o, owned)
	}
	return subtasks, err
}

// labelEntry returns the entry of the overlay that undoes or redoes a change of labels.
func (t *taskActions) labelEntry(ctx context.Context, s *store.Store, a loggedAction, redo bool) overlay.Entry {
	e := overlay.Entry{
		Type:   overlay.Changed,
		Source: t.ref.Source,
		ID:     t.ref.ID,
		Head:   s.HeadOf(ctx, t.ref),
		Undoes: a.Seq,
	}
	to := a.Before
	if redo {
		to, e.Undoes, e.Redoes = a.After, 0, a.Seq
	}
	e.Title, e.Tags, e.Pinned = to.Title, to.Tags, to.Pinned
	return e
}

// next returns the action that the options choose.
func (t *taskActions) next(o Options) (loggedAction, error) {
	list := t.done
	if o.Redo {
		list = t.redo
	}
	a, ok := list.newest()
	switch {
	case o.Only != "" && (!ok || o.Only != a.id()):
		err := &ConflictError{Want: o.Only}
		if ok {
			err.Next = a.id()
		}
		return a, err
	case !ok:
		return a, ErrNothing
	case a.Move && t.moved > a.Then && o.Redo:
		return a, ErrNothing // a new message ends what could be redone
	case a.Move && t.moved > a.Then:
		return a, &ContinuedError{Branch: store.BranchName(a.Seq), Kind: a.Kind}
	}
	return a, nil
}

// checkNext chooses the action again, with the overlay locked.
func (t *taskActions) checkNext(ctx context.Context, s *store.Store, o Options) error {
	all, err := readOverlay(ctx, s)
	if err == nil {
		err = t.readJournal(ctx, s, all)
	}
	if err == nil {
		_, err = t.next(o)
	}
	return err
}

// performInJournal undoes or redoes an action in the task's own journal, and releases the task.
func (t *taskActions) performInJournal(ctx context.Context, s *store.Store, a loggedAction, o Options, owned *store.Task) error {
	if owned == nil {
		got, err := s.OwnLean(ctx, t.ref)
		if err != nil {
			return err
		}
		owned = got.Task
	}
	return owned.CloseChanged(ctx, t.performOwned(ctx, s, owned, a, o))
}

func (t *taskActions) performOwned(ctx context.Context, s *store.Store, owned *store.Task, a loggedAction, o Options) error {
	if o.Ready != nil {
		if err := o.Ready(ctx, owned); err != nil {
			return err
		}
	}
	all, err := readOverlay(ctx, s)
	if err != nil {
		return err
	}
	t.fill(owned.State(), all)
	if _, err := t.next(o); err != nil {
		return err
	}
	event := a.Back()
	if o.Redo {
		event = a.Again()
	}
	switch {
	case !restoresFiles(a.Action):
		err = owned.CommitDurably(ctx, "undo", event)
	case o.Files == nil:
		err = ErrFiles
	default:
		err = o.Files(ctx, owned, a.Action)
	}
	if err == nil && o.Saved != nil {
		now := *t
		now.fill(owned.State(), all)
		o.Saved(a.describe(), now.TaskActions)
	}
	return err
}
