package events

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/feed"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/task"
)

// reader reads a task's durable events from its journal, which any process may write. It is for one goroutine.
type reader struct {
	store *store.Store
	ref   store.Ref
	log   journal.Reader
	seq   uint64         // the commit that was read last
	state *task.State    // the state after commit seq, which has the composed messages; nil until a commit needs it
	under journal.Reader // state loads its messages from this reader
	run   string         // the newest run at commit seq, while state is nil
	owner func() *Owner
}

// openReader opens a task's journal after a commit, or at the journal's head if that is older. owner gives the run of this
// process that owns the task, if there is one. openReader neither waits nor writes. journal.ErrNotFound: the task has no
// journal, because no program that keeps a journal has changed the task yet.
func openReader(ctx context.Context, s *store.Store, ref store.Ref, after uint64, owner func() *Owner) (*reader, error) {
	log, err := s.Follow(ctx, ref)
	if err != nil {
		return nil, err
	}
	head, err := log.Head(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("task %s: %w", ref.ID, err), log.Close())
	}
	return &reader{store: s, ref: ref, log: log, seq: min(after, head), owner: owner}, nil
}

func (r *reader) close() error { return errors.Join(r.dropState(), r.log.Close()) }

func (r *reader) dropState() error {
	if r.state == nil {
		return nil
	}
	r.state = nil
	return r.under.Close()
}

// events yields the events of each commit after the reader's position. A damaged commit has no events.
func (r *reader) events(commits iter.Seq2[journal.Commit, error]) iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		for c, err := range commits {
			var lost *journal.DamageError
			switch {
			case errors.As(err, &lost):
				if r.state != nil {
					r.state.Lost(lost.Damage)
				}
				r.seq = max(r.seq, lost.Seq)
				continue
			case err != nil:
				yield(nil, err)
				return
			}
			events, err := r.render(c)
			if err != nil {
				yield(nil, err)
				return
			}
			r.seq = c.Seq
			if !yield(events, nil) {
				return
			}
		}
	}
}

// render renders a commit's events. For a commit that cannot be folded, the events have only the members of the
// commit's line.
func (r *reader) render(c journal.Commit) ([]Event, error) {
	if known, ok := r.ownerContext(c); ok {
		r.run = known.Run
		return Render(r.ref.ID, c, known), r.dropState()
	}
	if err := r.fold(c.Seq - 1); err != nil {
		return nil, err
	}
	_ = r.state.Apply(c)
	events := make([]task.Event, len(c.Events))
	for i, raw := range c.Events {
		if e, err := task.Decode(raw); err == nil {
			events[i] = e
		}
	}
	known, err := ContextOf(r.state, events)
	if err != nil && unanswered(r.store, err) {
		return nil, err
	}
	return Render(r.ref.ID, c, known), nil
}

// ownerContext returns the context of a commit that the task's owner in this process made. The owner does not note
// commits that the store makes by itself, for example for a queued input; such commits have no messages, and start no
// run. If this owner could not save a commit, the journal may have a commit of the next owner with that number.
func (r *reader) ownerContext(c journal.Commit) (Context, bool) {
	if r.owner == nil {
		return Context{}, false
	}
	owner := r.owner()
	if owner == nil || owner.epoch != c.Epoch {
		return Context{}, false
	}
	if known, ok := owner.context(c.Seq); ok {
		return known, true
	}
	if r.run == "" || r.state != nil {
		return Context{}, false
	}
	for _, raw := range c.Events {
		if typ, _ := esjson.GetString(raw, "type"); strings.HasPrefix(typ, "message.") || strings.HasPrefix(typ, "run.") {
			return Context{}, false
		}
	}
	return Context{Run: r.run}, true
}

// fold makes the state after a commit, unless the reader has a state. It reads the journal through a reader of its own,
// because its caller is reading from this one.
func (r *reader) fold(seq uint64) error {
	if r.state != nil {
		return nil
	}
	log, err := r.store.Follow(context.Background(), r.ref)
	if err != nil {
		return err
	}
	state, err := fold.To(context.Background(), log, seq)
	if err != nil {
		return errors.Join(fmt.Errorf("task %s: %w", r.ref.ID, err), log.Close())
	}
	r.state, r.under = state, log
	return nil
}

// ReadJournal passes to give the durable events after a cursor that a task's journal holds now. journal.ErrNotFound:
// the task has no journal.
func ReadJournal(ctx context.Context, s *store.Store, ref store.Ref, after Cursor, give func(Item) error) error {
	_, err := readJournal(ctx, s, ref, after, func(one Item) error {
		if !after.Before(one.Cursor) {
			return nil
		}
		return give(one)
	})
	return err
}

// readJournal passes to give the events of commits, without those before a cursor. It returns the cursor after them.
func readJournal(ctx context.Context, s *store.Store, ref store.Ref, after Cursor, give func(Item) error) (Cursor, error) {
	seq := after.Seq
	if !after.IsWhole() {
		seq-- // some events of this commit are after the cursor
	}
	r, err := openReader(ctx, s, ref, seq, nil)
	if err != nil {
		return after, err
	}
	for events, err := range r.events(r.log.Read(ctx, r.seq+1)) {
		if err != nil {
			return after, errors.Join(err, r.close())
		}
		for _, one := range itemsOf(events, feed.Place{}) {
			if err := give(one); err != nil {
				return after, errors.Join(err, r.close())
			}
		}
	}
	// Damaged commits have no events.
	if head := AfterCommit(r.seq); after.Before(head) {
		after = head
	}
	return after, r.close()
}

// Newest returns the cursor after the newest event of a task's journal; ok is false while the journal has no event.
func Newest(ctx context.Context, s *store.Store, ref store.Ref) (c Cursor, ok bool, err error) {
	log, err := s.Follow(ctx, ref)
	if errors.Is(err, journal.ErrNotFound) {
		return c, false, nil
	}
	if err != nil {
		return c, false, err
	}
	defer log.Close()
	for commit, err := range log.ReadBackward(ctx, 0) {
		if _, is := errors.AsType[*journal.DamageError](err); is {
			continue
		}
		if err != nil {
			return c, false, fmt.Errorf("task %s: %w", ref.ID, err)
		}
		return at(commit.Epoch, commit.Seq, len(commit.Events)-1), true, nil
	}
	return c, false, nil
}

// Exists reports whether a task's journal has the event before a cursor. A commit that was damaged since counts as present,
// because the commits after it can still be read.
func Exists(ctx context.Context, s *store.Store, ref store.Ref, c Cursor) (bool, error) {
	if c.IsWhole() {
		newest, _, err := Newest(ctx, s, ref)
		return c.Seq <= newest.Seq, err
	}
	log, err := s.Follow(ctx, ref)
	if errors.Is(err, journal.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer log.Close()
	for commit, err := range log.Read(ctx, c.Seq) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("task %s: %w", ref.ID, err)
		}
		return commit.Seq == c.Seq && commit.Epoch == c.Epoch && c.Index < len(commit.Events), nil
	}
	return false, nil
}

// maxRetries is how often the reader tries to read commits that a line announced and the journal does not show yet;
// retryDelay is the pause between tries. An owner announces a commit after its sync, and readers see the commit at once,
// unless the owner writes its record at that very moment. The limit counts tries and not time: a process that was stopped
// for a minute has not tried.
const (
	maxRetries = 400
	retryDelay = 5 * time.Millisecond
)

// entryReader reads the events that lines of the activity log announce. They depend on the log and the journals alone, so
// that every reader finds the same events after a cursor. It keeps some journals open, because the lines of a few tasks
// alternate. It is for one goroutine.
type entryReader struct {
	store   *store.Store
	most    int
	readers map[feed.Task]*reader
	pause   func() // between tries; nil: retryDelay
}

// until calls try until it has seen an announced commit, or has failed, and pauses in between. After the owner has
// released the journal, one more try shows everything that the owner wrote: the try before may have been too early.
func (r *entryReader) until(ctx context.Context, ref store.Ref, try func() (seen bool, err error)) error {
	last := false
	for n := 1; ; n++ {
		if seen, err := try(); err != nil || seen || last || n == maxRetries {
			return err
		}
		if r.pause != nil {
			r.pause()
		} else if !sleep.For(ctx, retryDelay) {
			return ctx.Err()
		}
		last = !r.store.Held(ctx, ref)
	}
}

// unanswered reports whether an error means that the database does not answer, and not that a journal is missing or damaged.
func unanswered(s *store.Store, err error) bool {
	_, damaged := errors.AsType[*journal.DamageError](err)
	held := []error{journal.ErrNotFound, journal.ErrBlobMissing, journal.ErrBlobDamaged}
	return s.Shared() && !damaged && !slices.ContainsFunc(held, func(e error) bool { return errors.Is(err, e) })
}

// skipUnreadable decides about the error of a journal: nil means that the stream skips a journal that is missing or damaged.
// If this process lacks files or memory, or the database does not answer, skipUnreadable returns the error: that state is
// temporary, and skipping the journal would lose its events.
func (r *entryReader) skipUnreadable(ctx context.Context, err error) error {
	if unanswered(r.store, err) {
		return err
	}
	for _, temporary := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, temporary) {
			return err
		}
	}
	return ctx.Err()
}

// read passes the events of an entry to give, commit by commit. A missing or unreadable journal gives no events; the
// stream of its task reports why.
func (r *entryReader) read(ctx context.Context, e feed.Entry, give func([]Event) error) error {
	task := feed.Task{Source: e.Source, ID: e.Task}
	if e.End {
		defer r.drop(task)
	}
	ref, ok := r.store.LogRef(e.Source, e.Task)
	if !ok || e.New.To < max(e.New.From, 1) {
		return nil
	}
	from, err := r.firstCommit(ctx, ref, e)
	if err != nil {
		return r.skipUnreadable(ctx, err)
	}
	if store.IsOverlay(ref) {
		return r.readOverlay(ctx, e, ref, from, give)
	}
	reopen := true // once: a journal that is replaced repeatedly must not delay the others
	return r.until(ctx, ref, func() (seen bool, err error) {
		log, err := r.reader(ctx, task, ref, from-1)
		if err != nil {
			return true, r.skipUnreadable(ctx, err)
		}
		for events, err := range log.events(log.log.Read(ctx, log.seq+1)) {
			if err != nil {
				r.drop(task)
				if reopen && errors.Is(err, journal.ErrReplaced) {
					reopen = false
					return false, nil
				}
				return true, r.skipUnreadable(ctx, err)
			}
			if len(events) == 0 || events[0].Seq < from {
				continue
			}
			if events[0].Seq > e.New.To {
				break
			}
			from = events[0].Seq + 1
			if err := give(events); err != nil {
				return true, err
			}
			if from > e.New.To {
				break
			}
		}
		return from > e.New.To || log.seq >= e.New.To, nil
	})
}

// firstCommit returns the first commit that an entry announces.
func (r *entryReader) firstCommit(ctx context.Context, ref store.Ref, e feed.Entry) (uint64, error) {
	if e.New.From > 0 {
		return e.New.From, nil
	}
	log, err := r.store.Follow(ctx, ref)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	// Wait for the announced commit: without it, the journal's head would be too old for the search below.
	err = r.until(ctx, ref, func() (bool, error) {
		head, err := log.Head(ctx)
		return err != nil || head >= e.New.To, nil //nolint:nilerr // the search below reports it
	})
	if err != nil {
		return 0, err
	}
	first, err := firstSince(ctx, log, e.Birth)
	return max(min(first, e.Line.From), 1), err
}

// firstSince returns the first commit of a journal that is not older than a time, in Unix milliseconds; head+1 if all
// are older.
func firstSince(ctx context.Context, log journal.Reader, at int64) (uint64, error) {
	head, err := log.Head(ctx)
	if err != nil {
		return 0, err
	}
	low, high := uint64(1), head+1
	for low < high { // times rise, unless a clock was set back
		mid := (low + high) / 2
		old := false
		for c, err := range journal.Whole(log.Read(ctx, mid)) {
			if err != nil {
				return 0, err
			}
			old = c.At < at
			break
		}
		if old {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, nil
}

// reader returns a reader of a task that begins after a commit.
func (r *entryReader) reader(ctx context.Context, task feed.Task, ref store.Ref, after uint64) (*reader, error) {
	if one := r.readers[task]; one != nil && one.seq == after {
		return one, nil
	}
	r.drop(task)
	if len(r.readers) >= r.most {
		r.close() // the tasks whose lines alternate now are opened again
	}
	log, err := openReader(ctx, r.store, ref, after, nil)
	if err != nil {
		return nil, err
	}
	if r.readers == nil {
		r.readers = map[feed.Task]*reader{}
	}
	r.readers[task] = log
	return log, nil
}

func (r *entryReader) drop(task feed.Task) {
	if one := r.readers[task]; one != nil {
		_ = one.close() // was only read
		delete(r.readers, task)
	}
}

func (r *entryReader) close() {
	for task := range r.readers {
		r.drop(task)
	}
}

// The overlay of the root has the labels of other tools' tasks, and deletions and restores. No task's journal has these, but
// in the stream of all tasks they are events of their tasks.

// readOverlay passes the changes of the overlay that an entry announces to give.
func (r *entryReader) readOverlay(ctx context.Context, e feed.Entry, ref store.Ref, from uint64, give func([]Event) error) error {
	return r.until(ctx, ref, func() (seen bool, err error) {
		log, err := r.store.OpenOverlay(ctx)
		if err != nil {
			return true, r.skipUnreadable(ctx, err)
		}
		from, err = r.readChanges(ctx, log, from, e.New.To, give)
		return from > e.New.To, errors.Join(err, log.Close())
	})
}

// readChanges passes the changes of the overlay from one commit to another to give, and returns the commit to continue with.
// It skips an unreadable journal.
func (r *entryReader) readChanges(ctx context.Context, log journal.Reader, from, to uint64, give func([]Event) error) (uint64, error) {
	for c, err := range journal.Whole(log.Read(ctx, max(from, 1))) {
		if err != nil {
			return to + 1, r.skipUnreadable(ctx, err)
		}
		if c.Seq > to {
			return to + 1, nil
		}
		from = c.Seq + 1
		if events := overlayEvents(c); len(events) > 0 {
			if err := give(events); err != nil {
				return from, err
			}
		}
	}
	return from, nil
}

// overlayEvents renders a change of the overlay. The events depend on the journal alone. seq is the newest commit of the
// task's own journal at that time; overlay numbers the changes.
func overlayEvents(c journal.Commit) []Event {
	var out []Event
	for _, e := range overlay.Entries(c) {
		labelled := e.Type == overlay.Changed && (e.Title != nil || e.Tags != nil || e.Pinned != nil)
		restored := e.Type == overlay.Kept || e.Type == overlay.Deleted && e.Deleted != nil && !*e.Deleted
		deleted := e.Type == overlay.Deleted && !restored && (e.Deleted != nil || e.IsPurged())
		typ := overlay.Changed
		switch {
		case deleted:
			typ = overlay.Deleted
		case !labelled && !restored:
			continue
		}
		var o esjson.Object
		o.String("type", typ)
		o.String("task_id", e.ID)
		o.Int("seq", int64(e.Head)) //nolint:gosec // a count of commits
		o.String("at", api.Stamp(c.At))
		o.String("source", e.Source)
		o.Int("overlay", int64(c.Seq)) //nolint:gosec // a count of commits
		if labelled {
			addLabels(&o, e)
		} else {
			o.Bool("deleted", deleted)
		}
		if deleted {
			hidden, name := e.Source != api.OwnSource, e.Name
			if hidden {
				name = e.Source + ":" + e.ID
			}
			o.Bool("hidden", hidden)
			o.Bool("purged", e.IsPurged())
			if !e.IsPurged() {
				o.String("name", name)
			}
		}
		out = append(out, Event{Of: e.ID, ID: strconv.FormatUint(c.Epoch, 10) + "." + strconv.FormatUint(c.Seq, 10), Type: typ,
			Seq: c.Seq, At: c.At, Data: o.Bytes()})
	}
	return out
}

// addLabels adds the labels that an entry of the overlay changes.
func addLabels(o *esjson.Object, e overlay.Entry) {
	if e.Title != nil {
		o.String("title", *e.Title)
	}
	if e.Tags != nil {
		o.Raw("tags", esjson.Strings(*e.Tags))
	}
	if e.Pinned != nil {
		o.Bool("pinned", *e.Pinned)
	}
}
