package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/feed"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// Owned is an owned task and what Own found.
type Owned struct {
	Task   *Task  // Task.Intakes holds what another program changed
	Gone   bool   // the editor deleted the folder; Roost's journal is whole
	Forked string // the task that it is a fork of, when that task's format cannot be continued in place
	Again  bool   // that fork exists already, and is continued
}

// Create makes a new task in Roost's own root. Nothing of it is visible before its events are synced.
func (s *Store) Create(ctx context.Context, created task.Created, events ...task.Event) (*Task, error) {
	if created.Task == "" {
		created.Task = uuid.Must(uuid.NewV7()).String() // it never fails
	}
	if !api.ValidTaskID(created.Task) {
		return nil, fmt.Errorf("task id %q: it must match ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$", created.Task)
	}
	ref, taken := s.OwnRef(created.Task), fmt.Errorf("task %s exists already", created.Task)
	if projection.Linked(ref.Dir) || roofmt.IsFolder(ref.Dir) {
		return nil, taken
	}
	owned, made, err := s.CreateOnce(ctx, created, events...)
	if err != nil {
		return nil, err
	}
	if !made {
		return nil, errors.Join(taken, owned.Task.Close(ctx))
	}
	return owned.Task, nil
}

// Own takes a task over for writing. It takes the lock and opens an epoch, folds the journal, adopts a task without a
// journal, and takes in what another program changed.
func (s *Store) Own(ctx context.Context, ref Ref) (*Owned, error) {
	if err := s.Prepare(); err != nil {
		return nil, err
	}
	if err := CheckID(ref); err != nil {
		return nil, err
	}
	if _, err := os.Stat(ref.Dir); errors.Is(err, os.ErrNotExist) && !s.HasJournal(ctx, ref) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, ref.Dir)
	}
	outside := projection.Linked(ref.Dir)
	if outside && (ref.Own || s.HasJournal(ctx, ref)) {
		return nil, fmt.Errorf("task %s: %s is a symbolic link: %w", ref.ID, ref.Dir, ErrLinked)
	}
	if ref.Foreign() && !s.HasJournal(ctx, ref) {
		folder, err := intake.ReadSettled(ctx, ref.Dir, projection.Watermark{}, s.wait)
		if err != nil {
			return nil, fmt.Errorf("task %s: %w", ref.ID, err)
		}
		defer folder.Close()
		if outside || !staysInPlace(ref, folder) {
			return s.fork(ctx, ref, folder)
		}
	}
	t, err := s.takeWith(ctx, ref, ref.Own, false)
	if err != nil {
		return nil, err
	}
	owned := &Owned{Task: t}
	// The folder is read under the lock: an earlier read could miss what the owner before wrote last.
	folder, err := t.readFolder(ctx)
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	if folder != nil {
		defer folder.Close()
	}
	err = s.adoptOrTakeIn(ctx, owned, folder)
	if err == nil {
		err = s.takeInOriginalOf(ctx, t)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return owned, nil
}

func (s *Store) adoptOrTakeIn(ctx context.Context, o *Owned, folder *roofmt.Folder) error {
	t := o.Task
	if folder == nil {
		if t.Ref.Foreign() {
			o.Gone = true
			t.proj.Leave()
		}
		return nil
	}
	adopted, take := empty(t.state), t.takeIn
	if adopted {
		take = t.adopt
	}
	if err := take(ctx, folder); err != nil {
		return err
	}
	return errors.Join(t.addRows(ctx, folder, 1), t.proj.Saw(folder, adopted))
}

// takeWith locks the journal and folds it. It creates a journal that does not exist, unless existing is set: the
// folder may have moved into the trash since it was found. With lean it starts from the log's snapshot.
func (s *Store) takeWith(ctx context.Context, ref Ref, existing, lean bool) (*Task, error) {
	if !s.Shared() {
		if err := s.EnsureDir(filepath.Dir(ref.Log), "cannot be written"); err != nil {
			return nil, err
		}
	}
	wants := expected(ctx, ref)
	o := s.logOptions(ref)
	o.Existing, o.Owner, o.Synced, o.Meets = existing, s.owner(), s.announcer(ref), wants.meets
	log, err := s.logs.own(ctx, ref.Log, o)
	if existing && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s no longer exists", ErrNotFound, ref.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("take task %s: %w", ref.ID, err)
	}
	read := fold.All
	if lean {
		read = fold.Lean
	}
	state, err := read(ctx, log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("task %s: %w", ref.ID, err), log.Close())
	}
	projection.Sweep(ref.Log)
	if state.ID == "" && !empty(state) {
		state.ID = ref.ID // the commit with the id is damaged
	}
	proof, err := log.(journal.Prover).Proof(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("task %s: %w", ref.ID, err), log.Close())
	}
	t := &Task{Ref: ref, store: s, log: log, now: s.opt.Now, state: state, by: s.opt.Program, wants: wants, proof: proof}
	t.proj = projection.NewProjector(projection.Task{
		ID:           ref.ID,
		Dir:          ref.Dir,
		LogDir:       ref.Log,
		Own:          ref.Own,
		Log:          log,
		Now:          t.now,
		View:         t.View,
		SaveSnapshot: t.saveSnapshot,
		Load:         &s.load,
	})
	if s.Shared() {
		t.proj.Leave()
	}
	return t, nil
}

// BranchName returns the name of the branch that a commit left.
func BranchName(seq uint64) string { return fmt.Sprintf("b%d", seq) }

// OwnLean owns a task like Own, but reads no more than it must: the log from its snapshot on, and Roo's files only where
// another program may have changed them. The next owner compares everything.
func (s *Store) OwnLean(ctx context.Context, ref Ref) (*Owned, error) {
	v := &View{Ref: ref}
	if projection.Linked(ref.Dir) || !s.HasJournal(ctx, ref) || !v.asWritten() {
		return s.Own(ctx, ref)
	}
	if err := s.Prepare(); err != nil {
		return nil, err
	}
	t, err := s.takeWith(ctx, ref, ref.Own, true)
	if err != nil {
		return nil, err
	}
	if t.damaged() || empty(t.state) || !v.asWritten() || !t.proj.ReadUnchanged() {
		t.proj.Stop()
		t.wants.moved(t.state.Seq)
		if err := t.log.Close(); err != nil {
			return nil, err
		}
		return s.Own(ctx, ref)
	}
	return &Owned{Task: t}, nil
}

// OwnMade owns a task of the root that the caller has just made. No other program can have changed its files, so it
// compares nothing.
func (s *Store) OwnMade(ctx context.Context, ref Ref) (*Task, error) {
	return s.takeWith(ctx, ref, true, true)
}

// CommitDurably commits events and makes them durable. what begins the names of the failpoints at which tests kill the process.
func (t *Task) CommitDurably(ctx context.Context, what string, events ...task.Event) error {
	failpoint.Hit(what + ".before")
	err := t.Commit(ctx, events...)
	if err == nil {
		failpoint.Hit(what + ".committed")
		err = t.Barrier(ctx)
	}
	if err == nil {
		failpoint.Hit(what + ".synced")
	}
	return err
}

// fork continues a task whose format has no proven writer as a task of Roost's own root. The first call makes the new
// task; later calls continue it.
func (s *Store) fork(ctx context.Context, from Ref, folder *roofmt.Folder) (*Owned, error) {
	t, err := s.takeWith(ctx, s.OwnRef(forkID(from)), false, false)
	if err != nil {
		return nil, err
	}
	t.Ref.Tool = from.toolOf(folder)
	owned := &Owned{Task: t, Forked: from.Source + ":" + from.ID}
	if empty(t.state) {
		err = t.adopt(ctx, folder)
	} else {
		owned.Again = true
		err = s.forkAgain(ctx, owned, folder)
	}
	if err == nil {
		err = t.complete(ctx, folder, from)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return owned, nil
}

// complete gives a fork what the files of its original lack: rows, and the labels that the original has in Roost. A kill may
// have come after the adoption, so each call looks. A fork with actions of its own keeps its labels.
func (t *Task) complete(ctx context.Context, folder *roofmt.Folder, from Ref) error {
	if err := t.addRows(ctx, folder, 1); err != nil || len(t.state.Actions.Done)+len(t.state.Actions.Undone) > 0 {
		return err
	}
	marks, err := t.store.Overlay(ctx)
	of := marks[overlay.Key{Source: from.Source, ID: from.ID}]
	if err != nil || of.Title == nil && of.Tags == nil && of.Pinned == nil {
		return ctx.Err() // an overlay that cannot be read is no reason not to continue
	}
	return t.CommitSynced(ctx, task.Changed{Title: of.Title, Tags: of.Tags, Pinned: of.Pinned})
}

// forkAgain continues an existing fork. It takes in what other programs changed in the fork's folder and in the
// original.
func (s *Store) forkAgain(ctx context.Context, o *Owned, original *roofmt.Folder) error {
	t := o.Task
	from := t.state.Adopted
	if from == nil || inputfile.Resolved(from.Dir) != inputfile.Resolved(original.Dir) {
		return fmt.Errorf("task %s does not continue %s; to continue that, move the task out of %s", t.Ref.ID, original.Dir, s.TasksDir())
	}
	folder, err := t.readFolder(ctx)
	if err != nil {
		return err
	}
	if folder != nil {
		defer folder.Close()
	}
	if err := s.adoptOrTakeIn(ctx, o, folder); err != nil {
		return err
	}
	return t.takeInOriginal(ctx, original)
}

// takeInOriginalOf takes in the changes of a fork's original, for a fork that is owned by its own id. Owning it by
// the original's id does that, too. It skips an original that cannot be read now.
func (s *Store) takeInOriginalOf(ctx context.Context, t *Task) error {
	from := t.state.Adopted
	if !t.Ref.Own || from == nil || from.Dir == "" {
		return nil
	}
	tasks, id := roofmt.PlaceOf(from.Dir)
	if forkID(Ref{Source: SourceName(tasks), ID: id}) != t.Ref.ID {
		return nil
	}
	folder, err := intake.ReadSettled(ctx, from.Dir, intake.Originals(from), s.wait)
	if err != nil {
		return ctx.Err()
	}
	defer folder.Close()
	return t.takeInOriginal(ctx, folder)
}

// CreateOnce makes a task in Roost's own root, or owns the one that an earlier call made under the same id; made reports
// which. When a kill cuts off the first call, the second one finishes its work.
func (s *Store) CreateOnce(ctx context.Context, created task.Created, events ...task.Event) (owned *Owned, made bool, err error) {
	if err := s.Prepare(); err != nil {
		return nil, false, err
	}
	ref := s.OwnRef(created.Task)
	if err := CheckID(ref); err != nil {
		return nil, false, err
	}
	if projection.Linked(ref.Dir) {
		return nil, false, fmt.Errorf("task %s: %s is a symbolic link: %w", ref.ID, ref.Dir, ErrLinked)
	}
	if roofmt.IsFolder(ref.Dir) && !s.HasJournal(ctx, ref) { // another program put it there
		owned, err := s.Own(ctx, ref)
		return owned, false, err
	}
	t, err := s.takeWith(ctx, ref, false, false)
	if err != nil {
		return nil, false, err
	}
	if !empty(t.state) {
		if err := t.Close(ctx); err != nil {
			return nil, false, err
		}
		owned, err := s.Own(ctx, ref)
		return owned, false, err
	}
	if err := t.CommitSynced(ctx, append([]task.Event{created}, events...)...); err != nil {
		return nil, false, errors.Join(err, t.Close(ctx))
	}
	return &Owned{Task: t}, true, nil
}

// Announce announces in the feed how far a task's journal goes, for an owner that could not: one that was killed, or
// one that wrote the journal before its folder was in place.
func (s *Store) Announce(ctx context.Context, ref Ref) error {
	held := s.Held(ctx, ref) // before its head is read: an owner that comes later announces more
	if IsOverlay(ref) && !held {
		table, err := s.Overlay(ctx)
		if err == nil && len(s.untrueDeletions(ctx, table, 0)) > 0 { // ChangeOverlay repairs them
			err = s.ChangeOverlay(ctx, func(overlay.Table, overlay.Append) error { return nil })
		}
		if err != nil {
			return err
		}
	}
	log, err := s.Follow(ctx, ref)
	if err != nil {
		return err
	}
	defer log.Close()
	for c, err := range journal.Whole(log.ReadBackward(ctx, 0)) {
		if err != nil {
			return err
		}
		return s.feed.Append(ctx, feed.Line{Source: ref.Source, Task: ref.ID, Epoch: c.Epoch, From: c.Seq, To: c.Seq, End: !held})
	}
	return nil
}

// Standing classifies a task's log: this root's own, or why it is not. Only then do its settings count, and the
// questions, inputs and calls that it holds open.
type Standing string

// The standings of a log. The commits before a task.Received or a task.Forked that this root signed do not count any more.
const (
	Ours      Standing = ""                 // every commit that counts is proven
	Unsigned  Standing = task.FromUnsigned  // a program wrote it that did not sign
	Elsewhere Standing = task.FromElsewhere // signed with a key that is not known in this place
	Altered   Standing = task.FromAltered   // commits do not match, or the end is missing
	Another   Standing = task.FromPerson    // another person of this store gave the orders in it; see OrderedBy
)

// judged returns the standing that a proof gives. begins is State.Begins: the commits before it do not count.
func judged(p journal.Proof, begins uint64) Standing {
	switch {
	case p.Cut, p.Altered > begins:
		return Altered
	case p.Unknown > begins:
		return Elsewhere
	case p.Unsigned > begins:
		return Unsigned
	}
	return Ours
}

// OrderedBy returns the standing of a task for a person: Another when another person gave the orders that the task
// holds. Without accounts, every person is "".
func (o Standing) OrderedBy(s *task.State, person string) Standing {
	if o == Ours && s.Person != person {
		return Another
	}
	return o
}

// Standing returns the standing of a task's log, without owning it. begins is State.Begins of the folded log.
func (s *Store) Standing(ctx context.Context, ref Ref, begins uint64) (Standing, error) {
	log, err := s.Verified(ctx, ref)
	if errors.Is(err, journal.ErrNotFound) {
		return Ours, nil // it holds nothing that could be obeyed
	}
	if err != nil {
		return Altered, err
	}
	p, err := log.(journal.Prover).Proof(ctx)
	return judged(p, begins), errors.Join(err, log.Close())
}

// Standing returns the standing of the task's log at the time it was taken over.
func (t *Task) Standing() Standing {
	if t.received {
		return Ours
	}
	return judged(t.proof, t.state.Begins)
}

// Receive makes a task this root's own: it ends all that is open, and removes the settings that only the user may decide.
// trust keeps those settings. From here on, person orders what the task does.
func (t *Task) Receive(ctx context.Context, from, person string, trust bool) error {
	s := t.state
	e := task.Received{From: from, Had: s.Settings, Settings: s.Settings.Proposed(), Person: person}
	if trust {
		e.Settings = s.Settings
	}
	return t.receive(ctx, e)
}

// Vouch makes a task this root's own as it is, because its user asks for that.
func (t *Task) Vouch(ctx context.Context) error {
	s := t.state
	return t.receive(ctx, task.Received{From: string(t.Standing()), Had: s.Settings, Settings: s.Settings, Kept: true, Person: s.Person})
}

func (t *Task) receive(ctx context.Context, e task.Received) error {
	if err := t.CommitSynced(ctx, e); err != nil {
		return fmt.Errorf("receive task %s: %w", t.Ref.ID, err)
	}
	t.received = true
	return nil
}

// ImportRecord is the file that the importer leaves in a task that it copied.
const ImportRecord = ".roost-import.json"

// TrustKeys makes this place accept the keys that the user has for the root in other places. It returns how many are new.
// The servers of a database share one key, which they accept already.
func (s *Store) TrustKeys() (int, error) {
	if err := s.Prepare(); err != nil || s.Shared() {
		return 0, err
	}
	return s.ring.Trust()
}

// MadeToken reports whether a server's token was made in this place, and not brought along.
func (s *Store) MadeToken(token string) bool { return s.ring.MadeToken(token) }

// NoteToken notes that a server's token was made in this place.
func (s *Store) NoteToken(token string) error {
	if err := s.Prepare(); err != nil {
		return err
	}
	return s.ring.NoteToken(token)
}
