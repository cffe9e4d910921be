package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/failpoint"
	proc "github.com/roost-dev/roost/internal/process"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// Owned is an owned task and what Own found.
type Owned struct {
	Task    *Task
	Intakes []intake.Change // what another program changed
	Gone    bool            // the editor deleted the folder; Roost's journal is whole
	Forked  string          // the task it is a fork of, when its format cannot be continued in place
	Again   bool            // that fork exists already, and is continued
}

// Create makes a new task in Roost's own root. Nothing of it is visible before its events are synced.
func (s *Store) Create(ctx context.Context, created task.Created, events ...task.Event) (*Task, error) {
	if err := s.Prepare(); err != nil {
		return nil, err
	}
	if created.Task == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("make a task id: %w", err)
		}
		created.Task = id.String()
	}
	if !api.ValidTaskID(created.Task) {
		return nil, fmt.Errorf("task id %q: it must match ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$", created.Task)
	}
	ref := s.OwnRef(created.Task)
	if projection.Linked(ref.Dir) || roofmt.IsFolder(ref.Dir) {
		return nil, fmt.Errorf("task %s exists already", created.Task)
	}
	t, err := s.takeWith(ctx, ref, false, false)
	if err != nil {
		return nil, err
	}
	if t.state.ID != "" {
		return nil, errors.Join(fmt.Errorf("task %s exists already", created.Task), t.Close(ctx))
	}
	return t.begin(ctx, created, events)
}

// begin makes the first commit of a task durable. The task is released when that fails.
func (t *Task) begin(ctx context.Context, created task.Created, events []task.Event) (*Task, error) {
	if err := t.CommitSynced(ctx, append([]task.Event{created}, events...)...); err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return t, nil
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
	if _, err := os.Stat(ref.Dir); errors.Is(err, os.ErrNotExist) && !HasJournal(ref.Log) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, ref.Dir)
	}
	outside := projection.Linked(ref.Dir)
	if outside && (ref.Own || HasJournal(ref.Log)) {
		return nil, fmt.Errorf("task %s: %s is a symbolic link: %w", ref.ID, ref.Dir, ErrLinked)
	}
	if ref.Foreign() && !HasJournal(ref.Log) {
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
		err = s.takeInOriginalOf(ctx, owned)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return owned, nil
}

// staysInPlace reports whether a foreign task is continued in its own folder: where Roost's writer is proven for the
// tool, and would not drop messages that Roost left out when it read the folder.
func staysInPlace(ref Ref, folder *roofmt.Folder) bool {
	return continuedInPlace(ref.toolOf(folder)) && !folder.Abridged
}

// toolOf is the tool that made the task in a folder.
func (r Ref) toolOf(folder *roofmt.Folder) string {
	if r.Tool != "" && !r.Own {
		return r.Tool
	}
	return string(folder.Origin.Tool)
}

// tags reports whether the task's history is tagged when it is adopted: a task that stays in another tool's folder
// keeps that tool's own bookkeeping.
func (r Ref) tags(folder *roofmt.Folder) bool { return r.Own || !staysInPlace(r, folder) }

// continuedInPlace reports whether Roost's writer is proven for a tool's folders.
func continuedInPlace(tool string) bool { return tool != "cline" && tool != "kilo" }

// CanAdopt reports whether the task can be continued in its own folder.
func (r Ref) CanAdopt() bool { return continuedInPlace(r.Tool) && !projection.Linked(r.Dir) }

// readFolder reads the task's folder while no program writes it; nil when there is no folder.
func (t *Task) readFolder(ctx context.Context) (*roofmt.Folder, error) {
	// Remove locks that a killed process of Roost left: the read would wait for them. The read reports locks that cannot
	// be removed.
	_ = roofmt.Sweep(ctx, t.Ref.Dir)
	folder, err := intake.ReadSettled(ctx, t.Ref.Dir, projection.Read(t.Ref.Log), t.store.wait)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	return folder, nil
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
	adopted := empty(t.state)
	if adopted {
		if err := t.adopt(ctx, folder); err != nil {
			return err
		}
	} else {
		var err error
		if o.Intakes, err = t.takeIn(ctx, folder); err != nil {
			return err
		}
	}
	return t.proj.Saw(folder, adopted)
}

// takeWith locks the journal and folds it. It creates what does not exist, unless existing says that the folder must
// exist: it may have moved into the trash since it was found. lean means that it reads the log from its snapshot on.
func (s *Store) takeWith(ctx context.Context, ref Ref, existing, lean bool) (*Task, error) {
	if err := s.EnsureDir(filepath.Dir(ref.Log), "cannot be written"); err != nil {
		return nil, err
	}
	wants := expected(ctx, ref)
	o := s.logOptions(ref)
	o.Existing, o.Owner, o.Synced, o.Meets = existing, s.owner(), s.announcer(ref), wants.check()
	log, err := ownLog(ctx, ref.Log, o)
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
	})
	return t, nil
}

// BranchName is the name of the branch that a commit left.
func BranchName(seq uint64) string { return fmt.Sprintf("b%d", seq) }

// OwnLean owns a task like Own, but reads no more than it must: the log from its snapshot on, and Roo's files only where
// another program may have changed them. The next owner compares everything.
func (s *Store) OwnLean(ctx context.Context, ref Ref) (*Owned, error) {
	v := &View{Ref: ref}
	if projection.Linked(ref.Dir) || !HasJournal(ref.Log) || !v.asWritten() {
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

// forkSpace keeps ids of forks apart from all other name-based ids.
var forkSpace = uuid.MustParse("7d0a1f5e-1f5b-5c1e-9a35-6f0f7a6f2c11")

// forkID is the id under which a foreign task is continued. It follows from the task's place: continuing it again, also
// from two processes at the same moment, leads to the same fork. A random id would make a new fork each time.
func forkID(from Ref) string {
	return uuid.NewSHA1(forkSpace, []byte(from.Source+"\x00"+from.ID)).String()
}

// Continued is the task in Roost's own root that continues a foreign one, if there is one: its settings and messages are
// the newer ones. Owning either of the two owns that task.
func (s *Store) Continued(ref Ref) (Ref, bool) {
	if ref.Own {
		return Ref{}, false
	}
	fork := s.OwnRef(forkID(ref))
	return fork, HasJournal(fork.Log)
}

// Latest is the task that continues a foreign one, or the task itself.
func (s *Store) Latest(ref Ref) Ref {
	if fork, ok := s.Continued(ref); ok {
		return fork
	}
	return ref
}

// FindLatest is Find, and Latest of what it finds.
func (s *Store) FindLatest(ctx context.Context, given string) (Ref, error) {
	ref, err := s.Find(ctx, given)
	if err != nil {
		return ref, err
	}
	return s.Latest(ref), nil
}

// fork continues a task whose format has no proven writer as a task of Roost's own root: first as a new one, then always
// as that one.
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
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return owned, nil
}

// forkAgain continues an existing fork. It takes in what other programs changed in the fork's folder and in the
// original.
func (s *Store) forkAgain(ctx context.Context, o *Owned, original *roofmt.Folder) error {
	t := o.Task
	from := t.state.Adopted
	if from == nil || clean(from.Dir) != clean(original.Dir) {
		return fmt.Errorf("task %s: it is no continuation of %s; move it out of %s to continue that one", t.Ref.ID, original.Dir, s.TasksDir())
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
	changes, err := t.takeInOriginal(ctx, original)
	o.Intakes = append(o.Intakes, changes...)
	return err
}

// takeInOriginalOf does for a fork that is owned by its own id what owning it by the original's id does. It skips an
// original that cannot be read now.
func (s *Store) takeInOriginalOf(ctx context.Context, o *Owned) error {
	t := o.Task
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
	changes, err := t.takeInOriginal(ctx, folder)
	o.Intakes = append(o.Intakes, changes...)
	return err
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
	if roofmt.IsFolder(ref.Dir) && !HasJournal(ref.Log) { // another program put it there
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
	if t, err = t.begin(ctx, created, events); err != nil {
		return nil, false, err
	}
	return &Owned{Task: t}, true, nil
}

// FindChild finds a child of a task by its whole id, in Roost's own root or in the parent's storage. Otherwise the error
// is ErrNotFound.
func (s *Store) FindChild(ctx context.Context, parent Ref, id string) (Ref, error) {
	if !api.ValidTaskID(id) {
		return Ref{}, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	if own := s.OwnRef(id); exists(own.Dir, "") {
		return own, nil
	}
	all, err := s.Refs(ctx)
	if err != nil {
		return Ref{}, err
	}
	if i := slices.IndexFunc(all, func(r Ref) bool { return r.ID == id && r.Source == parent.Source }); i >= 0 {
		return all[i], nil
	}
	if t, err := s.FindDeleted(ctx, id); err == nil {
		return Ref{}, &TrashedError{Given: id, Name: t.Name}
	}
	return Ref{}, fmt.Errorf("%w: %q", ErrNotFound, id)
}

// holderWait bounds how long ownLog waits for a lock whose holder is dead. On a busy machine, a child may need that
// long to reach its exec.
const holderWait = 10 * time.Second

// ownLog locks and opens a log for writing. A process that was killed while it started a command leaves a child that
// has the lock open until the command's exec: the holder is dead, and the lock is not free yet.
func ownLog(ctx context.Context, dir string, o filelog.Options) (journal.Owner, error) {
	o.Known = max(o.Known, projection.Read(dir).Seq) // before the lock is taken: then it is not newer than the log
	for end := time.Now().Add(holderWait); ; {
		log, err := filelog.Own(ctx, dir, o)
		var busy *journal.BusyError
		if err == nil || !errors.As(err, &busy) || !filelog.Here(busy.Holder) || proc.Alive(busy.Holder.PID) || time.Now().After(end) {
			return log, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A caller that changes a task it has read wants the task to be as it read it. Another process may have changed the
// task since. So the heads are compared once the lock is held and before anything is written: a refused change leaves
// the task as it was.

// ErrMoved: the task changed since the caller read it.
var ErrMoved = errors.New("the task changed since it was read")

type expectKey struct{}

// expectation is the head that a caller expects a task's journal to have.
type expectation struct {
	log string

	mu   sync.Mutex
	seq  uint64
	over bool
}

// Expecting is a context in which a task is only taken over, deleted or labelled while its journal ends with commit
// seq, 0 meaning that it has no journal; otherwise the error is ErrMoved. Changes made in the context itself move the
// expected commit forward. It holds until done is called.
func Expecting(ctx context.Context, ref Ref, seq uint64) (_ context.Context, done func()) {
	e := &expectation{log: ref.Log, seq: seq}
	return context.WithValue(ctx, expectKey{}, e), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.over = true
	}
}

// expected is the expectation that a context has of a task; nil when there is none.
func expected(ctx context.Context, ref Ref) *expectation {
	e, _ := ctx.Value(expectKey{}).(*expectation)
	if e == nil || e.log != ref.Log {
		return nil
	}
	return e
}

// MeetsExpectation is an ErrMoved when the context expects the task's journal to end with another commit than it
// does. It is for a change that takes no lock on the journal.
func MeetsExpectation(ctx context.Context, ref Ref) error {
	if wants := expected(ctx, ref); wants != nil {
		return wants.meets(HeadOf(ctx, ref.Log))
	}
	return nil
}

// MeetsExpectationAt is MeetsExpectation for a caller that has read the task up to a commit.
func MeetsExpectationAt(ctx context.Context, ref Ref, head uint64) error {
	return expected(ctx, ref).meets(head)
}

// meets is an ErrMoved when the journal's head is not the expected one.
func (e *expectation) meets(last uint64) error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over || e.seq == last {
		return nil
	}
	return fmt.Errorf("its newest commit is %d, not %d: %w", last, e.seq, ErrMoved)
}

// check is meets for filelog.Options; nil when nothing is expected.
func (e *expectation) check() func(head uint64) error {
	if e == nil {
		return nil
	}
	return e.meets
}

// moved records that a change in the context moved the journal's head.
func (e *expectation) moved(last uint64) {
	if e != nil {
		e.mu.Lock()
		e.seq = last
		e.mu.Unlock()
	}
}
