package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/payload"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// Task is an owned task: the handle of its one writer. Its state is folded from what was appended, so that owner and
// readers cannot disagree.
//
// Commit and State are for one goroutine at a time (the run's); the projector works on copies that it takes under the
// same lock. Inputs may come from any goroutine: see Enqueue.
type Task struct {
	Ref   Ref
	store *Store
	log   journal.Owner
	now   func() int64
	proj  *projection.Projector

	mu       sync.Mutex
	state    *task.State
	by       string
	proof    journal.Proof // of the log as it was taken over
	received bool          // no unproven commit of the log starts anything any more
	snapshot uint64        // the commit of the newest snapshot
	pending  pendingInputs // events that other goroutines committed
	wants    *expectation

	takenMu sync.Mutex // not mu: a call of Intakes must not wait for a commit
	taken   []intake.Change
}

// State returns the folded state. It is valid only until the next Commit; other goroutines use View.
func (t *Task) State() *task.State { return t.state }

// View calls f with the state while no commit can change it. f must not keep the state.
func (t *Task) View(f func(*task.State)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t.state)
}

// By names the author of the next commits.
func (t *Task) By(run string) { t.by = run }

// Epoch returns the epoch of this ownership.
func (t *Task) Epoch() uint64 { return t.log.Epoch() }

// Commit appends events as one commit and folds it. The commit is durable after the next Barrier. Payloads over 256
// KB are moved into blobs first.
func (t *Task) Commit(ctx context.Context, events ...task.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.foldPending(); err != nil {
		return err
	}
	c, folded, err := t.append(ctx, events)
	if err != nil {
		return err
	}
	if err := t.state.ApplyOwn(c, folded); err != nil {
		return fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	t.proj.Wake()
	return nil
}

// append gives events to the log as one commit. The caller holds mu.
func (t *Task) append(ctx context.Context, events []task.Event) (journal.Commit, []task.Event, error) {
	draft := journal.Draft{At: t.now(), By: actor(ctx, t.by)}
	folded := make([]task.Event, 0, len(events))
	for _, e := range events {
		e, blobs, err := payload.Spill(ctx, t.log, e)
		if err != nil {
			return journal.Commit{}, nil, fmt.Errorf("task %s: %w", t.Ref.ID, err)
		}
		raw, err := task.Encode(e)
		if err != nil {
			return journal.Commit{}, nil, err
		}
		draft.Events = append(draft.Events, raw)
		folded = append(folded, e)
		draft.Blobs = append(draft.Blobs, blobs...)
	}
	seq, err := t.log.Append(ctx, draft)
	if err != nil {
		return journal.Commit{}, nil, fmt.Errorf("task %s: commit: %w", t.Ref.ID, err)
	}
	return journal.Commit{
		Seq: seq, Epoch: t.log.Epoch(), At: draft.At, By: draft.By,
		Blobs: draft.Blobs, Events: draft.Events,
	}, folded, nil
}

// Barrier returns when everything committed so far is synced.
func (t *Task) Barrier(ctx context.Context) error {
	return api.Failed(t.log.Barrier(ctx), "task %s", t.Ref.ID)
}

// leaseMargin is the least time that a lease must still last before work begins that cannot be undone. If the server
// stops for longer at that moment, or the work lasts longer while no lease is renewed, it can overlap with the next
// owner.
const leaseMargin = time.Second

// Held returns an error when the task's lease could end before work begins that cannot be undone. A task in a folder
// is held by a lock of the kernel, which does not expire.
func (t *Task) Held(ctx context.Context) error {
	leased, ok := t.log.(postgres.Holder)
	if !ok {
		return nil
	}
	return api.Failed(leased.Held(ctx, leaseMargin), "task %s", t.Ref.ID)
}

// CommitSynced commits events and waits until they are on disk.
func (t *Task) CommitSynced(ctx context.Context, events ...task.Event) error {
	if err := t.Commit(ctx, events...); err != nil {
		return err
	}
	return t.Barrier(ctx)
}

// Unsaved returns nil while the journal can be saved; otherwise the reason why not.
func (t *Task) Unsaved() error { return t.log.Unsaved() }

// PutBlob stores a payload beside the journal.
func (t *Task) PutBlob(ctx context.Context, data []byte) (string, error) {
	h, err := t.log.PutBlob(ctx, data)
	return string(h), err
}

// Close writes the projections, then releases the task.
func (t *Task) Close(ctx context.Context) error {
	projected, err := t.close(ctx)
	return cmp.Or(err, projected)
}

// CloseChanged is Close after a change of which err is the error. A change that is on disk has not failed because its
// projections could not be written: the next owner writes them, and a caller who repeats an undo would undo more.
func (t *Task) CloseChanged(ctx context.Context, err error) error {
	_, closed := t.close(ctx)
	return errors.Join(err, closed)
}

func (t *Task) close(ctx context.Context) (projected, err error) {
	projected = errors.Join(t.closePending(), t.proj.Close(ctx))
	for range 3 {
		if !errors.Is(projected, roofmt.ErrChanged) {
			break
		}
		// Another program wrote at the same time: take its change in, then write again.
		if projected = t.reconcile(context.WithoutCancel(ctx)); projected == nil {
			projected = t.proj.Settle(context.WithoutCancel(ctx))
		}
	}
	// The snapshot is derived: a failure costs the next reader time and nothing else.
	_ = t.saveSnapshot(context.WithoutCancel(ctx), 1)
	if projected == nil && t.state.ID != "" {
		projected = t.store.IndexTask(context.WithoutCancel(ctx), t.Ref)
	}
	t.View(func(s *task.State) { t.wants.moved(s.Seq) })
	return projected, api.Failed(t.log.Close(), "task %s: close", t.Ref.ID)
}

// saveSnapshot saves the folded state next to the log, if there are at least commits new commits. A reader then folds
// only the commits after it.
func (t *Task) saveSnapshot(ctx context.Context, commits uint64) error {
	var snap journal.Snapshot
	var err error
	t.View(func(s *task.State) {
		if s.Seq >= t.snapshot+commits && !s.Doubtful() { // every reader would miss what this one missed
			snap.Seq = s.Seq
			snap.Data, err = s.Snapshot()
		}
	})
	if err != nil || snap.Seq == 0 {
		return err
	}
	if err := t.Barrier(ctx); err != nil {
		return err
	}
	if err := t.log.SaveSnapshot(ctx, snap); err != nil {
		return fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	t.snapshot = snap.Seq // one caller at a time: the projector's loop, then Close
	return nil
}

// reconcile takes in what another program changed while the task was owned.
func (t *Task) reconcile(ctx context.Context) error {
	folder, err := t.readFolder(ctx)
	if err != nil || folder == nil {
		return err
	}
	defer folder.Close()
	if err := t.takeIn(ctx, folder); err != nil {
		return err
	}
	return t.proj.Saw(folder, false)
}

// readFolder reads the task's folder while no program writes it; nil when there is no folder.
func (t *Task) readFolder(ctx context.Context) (*roofmt.Folder, error) {
	// Remove locks that a killed process of Roost left: the read would wait for them. The read reports locks that cannot
	// be removed.
	_ = roofmt.Sweep(ctx, t.Ref.Dir)
	folder, err := intake.ReadSettled(ctx, t.Ref.Dir, projection.Read(t.Ref.Log), t.store.wait)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return folder, api.Failed(err, "task %s", t.Ref.ID)
}

// ErrForeignBusy: another program is writing the task's files just now.
var ErrForeignBusy = projection.ErrBusy

// SkipWaits makes the store take files as settled at once. It is for tests whose files do not change by themselves.
func (s *Store) SkipWaits() { s.wait.Settle, s.wait.Pause, s.wait.Still = 0, time.Millisecond, 0 }

// TrustTimesAfter sets how long a file must be unchanged before its times are trusted. It is for tests that know the
// clock of their file system.
func (s *Store) TrustTimesAfter(d time.Duration) { s.calmIn = d }

// target returns the task as a target that takes in what another program wrote in a folder.
func (t *Task) target(folder *roofmt.Folder) intake.Target {
	return intake.Target{Journal: t, ID: t.Ref.ID, Tool: t.Ref.Tool, Tag: t.Ref.tags(folder)}
}

// adopt makes a folder of JSON files the beginning of the task's journal.
func (t *Task) adopt(ctx context.Context, folder *roofmt.Folder) error {
	t.store.withRow(folder)
	target := t.target(folder)
	target.Tool = t.Ref.toolOf(folder)
	return target.Adopt(ctx, folder)
}

// addRows gives a task that has only the model's history the rows of the user's, so far as these can be reconstructed.
// Otherwise nothing would show what came before the rows that the next run adds. The messages before number next are
// those that had their rows reconstructed before; a task that has other rows gets none.
func (s *Store) addRows(state *task.State, folder *roofmt.Folder, next uint64, commit func(...task.Event) error) error {
	all := state.API()
	old := slices.IndexFunc(all, func(m *task.Message) bool { return m.ID >= next })
	if have := len(state.UI()); folder == nil || !folder.UI.Lost() || s.opt.Rows == nil || old < 0 || (have > 0) != (old > 0) {
		return nil
	}
	list, err := state.Raws(all)
	if err != nil {
		return fmt.Errorf("task %s: reconstruct the user's history: %w", state.ID, err)
	}
	raws := api.Each(list, func(raw json.RawMessage) []byte { return raw })
	rows, known := s.opt.Rows(raws), len(s.opt.Rows(raws[:old]))
	if known != len(state.UI()) {
		return nil
	}
	for some := range slices.Chunk(rows[min(known, len(rows)):], 100) { // a commit is bounded
		next := state.NextMessage()
		var events []task.Event
		for i, row := range some {
			events = append(events, task.MessageAdded{History: task.UI, Message: next + uint64(i), Body: task.Body{Raw: row}})
		}
		if err := commit(events...); err != nil {
			return err
		}
	}
	return nil
}

// addRows commits the rows that the store reconstructs.
func (t *Task) addRows(ctx context.Context, folder *roofmt.Folder, next uint64) error {
	if err := t.store.addRows(t.state, folder, next, func(events ...task.Event) error { return t.Commit(ctx, events...) }); err != nil {
		return err
	}
	return t.Barrier(ctx)
}

// takeIn commits what another program changed in the task's folder.
func (t *Task) takeIn(ctx context.Context, folder *roofmt.Folder) error {
	changes, err := t.target(folder).TakeIn(ctx, folder, projection.Read(t.Ref.Log))
	t.record(changes)
	return err
}

// takeInOriginal commits what the other tool added to the task that this one is a fork of.
func (t *Task) takeInOriginal(ctx context.Context, folder *roofmt.Folder) error {
	target, next := t.target(folder), t.state.NextMessage()
	changes, err := target.TakeInOriginal(ctx, folder)
	t.record(changes)
	if err != nil || !slices.ContainsFunc(changes, func(c intake.Change) bool { return c.Event != nil }) {
		return err
	}
	if err := t.addRows(ctx, folder, next); err != nil {
		return err
	}
	t.store.withRow(folder)
	return target.TagAgain(ctx, folder)
}

func (t *Task) record(changes []intake.Change) {
	t.takenMu.Lock()
	defer t.takenMu.Unlock()
	t.taken = append(t.taken, changes...)
}

// Intakes returns all changes of other programs since the task was taken over: those that Own found, and those that
// came while the task was owned, which Close takes in. Call it after Close to get the last ones.
func (t *Task) Intakes() []intake.Change {
	t.takenMu.Lock()
	defer t.takenMu.Unlock()
	return slices.Clone(t.taken)
}

// damaged reports whether the journal lost something.
func (t *Task) damaged() bool { return len(t.state.Problems) > 0 }

// Load reads the histories into memory.
func (t *Task) Load() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state.Load()
}

// PutBlobFrom stores a reader's bytes beside the journal.
func (t *Task) PutBlobFrom(ctx context.Context, r io.Reader) (string, int64, error) {
	h, n, err := t.log.PutBlobFrom(ctx, r)
	return string(h), n, err
}

// PutBlobFile stores a file's bytes beside the journal.
func (t *Task) PutBlobFile(ctx context.Context, path string) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return t.PutBlobFrom(ctx, f)
}

// Why an input cannot be added or changed during a run.
var (
	ErrInputTaken = errors.New("the input is no longer queued") // the model has it, or is about to get it
	ErrLetGo      = errors.New("the task was released")         // by its owner: own the task again
)

// pendingInputs are the commits of other goroutines than the run's. The log has them at once. The run's goroutine
// folds them into the state when it next commits or calls TakeIn: it reads the state without a lock, so no other
// goroutine may change the state.
type pendingInputs struct {
	commits []pendingCommit
	claimed map[string]bool // inputs that the run is using
	closed  bool
}

type pendingCommit struct {
	commit journal.Commit
	events []task.Event
}

// ChangeInput changes the task's queue during a run, from any goroutine: a task.InputQueued adds a user's input or
// replaces the one of the same name, a task.InputTaken removes it. The change is on disk when ChangeInput returns.
// ErrInputTaken: the run has that input already, or the input is not queued.
func (t *Task) ChangeInput(ctx context.Context, e task.Event) error {
	var input string
	dropping := false
	switch e := e.(type) {
	case task.InputQueued:
		input = e.Input
	case task.InputTaken:
		input, dropping = e.Input, true
	}
	err := func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		switch {
		case t.pending.closed:
			return ErrLetGo
		case t.pending.claimed[input], dropping && inputAt(t.queue(), input) < 0:
			return ErrInputTaken
		}
		c, folded, err := t.append(ctx, []task.Event{e})
		if err != nil {
			return err
		}
		t.pending.commits = append(t.pending.commits, pendingCommit{c, folded})
		return nil
	}()
	if err == nil {
		err = t.log.Barrier(ctx)
	}
	return api.Failed(err, "task %s: put input %s into the queue", t.Ref.ID, input)
}

// ChangeAccess shares the task, or gives it to another owner, during a run, from any goroutine. The change is on disk when
// it returns.
func (t *Task) ChangeAccess(ctx context.Context, a api.Access) error {
	return api.Failed(t.ChangeInput(ctx, task.Changed{Access: &a}), "share it")
}

// queue returns the queue of inputs, pending changes included. The caller holds mu.
func (t *Task) queue() []task.InputQueued {
	list := slices.Clone(t.state.Queue)
	for _, c := range t.pending.commits {
		for _, e := range c.events {
			switch e := e.(type) {
			case task.InputQueued:
				if i := inputAt(list, e.Input); i >= 0 {
					list[i] = e
				} else {
					list = append(list, e)
				}
			case task.InputTaken:
				list = slices.DeleteFunc(list, func(q task.InputQueued) bool { return q.Input == e.Input })
			}
		}
	}
	return list
}

func inputAt(list []task.InputQueued, input string) int {
	return slices.IndexFunc(list, func(q task.InputQueued) bool { return q.Input == input })
}

// Inputs returns the queued inputs, pending changes included. Large images stay in their blobs; see LoadInput.
func (t *Task) Inputs() []task.InputQueued {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queue()
}

// TakeIn folds pending commits into the state. It is for the run's goroutine.
func (t *Task) TakeIn() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.foldPending()
}

// Claim gives a queued input to the run, as it is now, with its images; after that it cannot be changed. It returns
// false when the input was removed from the queue. An input whose images cannot be read comes without them
// (task.InputQueued.Load): a damaged image must not hold up the user's text. It is for the run's goroutine.
func (t *Task) Claim(input string) (task.InputQueued, bool) {
	q, ok := t.claim(input)
	if !ok {
		return task.InputQueued{}, false
	}
	if whole, err := t.LoadInput(q); err == nil { // read without the lock
		q = whole
	}
	return q, true
}

func (t *Task) claim(input string) (task.InputQueued, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.queue()
	i := inputAt(list, input)
	if i < 0 {
		return task.InputQueued{}, false
	}
	if t.pending.claimed == nil {
		t.pending.claimed = map[string]bool{}
	}
	t.pending.claimed[input] = true
	return list[i], true
}

// LoadInput returns a queued input with its images. Any goroutine may call it.
func (t *Task) LoadInput(q task.InputQueued) (task.InputQueued, error) {
	whole, err := q.Load(fold.Payloads(t.log))
	if err != nil {
		return q, fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	return whole, nil
}

// foldPending folds pending commits into the state. The caller holds mu.
func (t *Task) foldPending() error {
	for len(t.pending.commits) > 0 {
		c := t.pending.commits[0]
		if err := t.state.ApplyOwn(c.commit, c.events); err != nil {
			return fmt.Errorf("task %s: %w", t.Ref.ID, err)
		}
		t.pending.commits = t.pending.commits[1:]
		t.proj.Wake()
	}
	return nil
}

// closePending folds pending commits into the state and refuses further ones.
func (t *Task) closePending() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending.closed = true
	return t.foldPending()
}

// A client repeats a request that a kill cut off, and the request must not do its work twice. So its commits carry its
// name, in the same write: of two writes, a note and a commit, a kill could leave one without the other.

type actorKey struct{}

// Acting returns a context whose commits name this author instead of the run. "" changes nothing.
func Acting(ctx context.Context, name string) context.Context {
	if name == "" {
		return ctx
	}
	return context.WithValue(ctx, actorKey{}, name)
}

func actor(ctx context.Context, run string) string {
	if name, ok := ctx.Value(actorKey{}).(string); ok {
		return name
	}
	return run
}

// CommitsBy returns the commits of a task made under a name (see Acting) since a time in Unix milliseconds, oldest
// first. If the last of them began a restore that another process has finished, the commit of the restore's end
// follows.
func (s *Store) CommitsBy(ctx context.Context, ref Ref, name string, since int64) ([]journal.Commit, error) {
	log, err := s.Follow(ctx, s.Latest(ctx, ref))
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer log.Close()
	var own []journal.Commit
	ends := map[uint64]journal.Commit{} // of restores, by the commit that began them
	for c, err := range journal.Whole(log.ReadBackward(ctx, 0)) {
		if err != nil {
			return nil, fmt.Errorf("task %s: read journal: %w", ref.ID, err)
		}
		if c.At < since {
			break
		}
		if c.By == name {
			own = append(own, c)
		} else if e, ok := lastEvent(c).(task.RestoreEnded); ok {
			ends[e.Begun] = c
		}
	}
	slices.Reverse(own)
	if n := len(own); n > 0 {
		if end, ok := ends[own[n-1].Seq]; ok {
			own = append(own, end)
		}
	}
	return own, nil
}

func lastEvent(c journal.Commit) task.Event {
	if len(c.Events) == 0 {
		return nil
	}
	e, err := task.Decode(c.Events[len(c.Events)-1])
	if err != nil {
		return nil
	}
	return e
}
