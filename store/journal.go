package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/feed"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// HasJournal reports whether a task has a journal or had one. A journal that was deleted beside its lock file,
// index, payloads or watermark is damaged; it is never begun again.
func HasJournal(logDir string) bool {
	return filelog.Exists(logDir) || projection.Read(logDir).Seq > 0
}

// OpenJournal opens the journal in a folder for reading. It reads the watermark first: the commit that the
// watermark names was synced before, so a journal that ends earlier lacks commits.
func OpenJournal(logDir string) (journal.Reader, error) {
	return filelog.OpenKnowing(logDir, nil, projection.Read(logDir).Seq)
}

// FoldJournal is the state that the journal in a folder gives; nil when there is no journal. Its messages cannot
// be read.
func FoldJournal(ctx context.Context, logDir string) (*task.State, error) {
	log, err := OpenJournal(logDir)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return fold.Lean(ctx, log)
}

// HeadOf is the newest commit of the journal in a folder; 0 when there is no journal or it cannot be read.
func HeadOf(ctx context.Context, dir string) uint64 {
	log, err := OpenJournal(dir)
	if err != nil {
		return 0
	}
	defer log.Close()
	head, err := log.Head(ctx)
	if err != nil {
		return 0
	}
	return head
}

// SavedCommit is the newest commit that a journal is known to have had, also when its end is lost.
func SavedCommit(ctx context.Context, log journal.Reader) (uint64, error) {
	for c, err := range log.ReadBackward(ctx, 0) {
		if lost, ok := errors.AsType[*journal.DamageError](err); ok {
			return lost.Seq, nil
		}
		return c.Seq, err
	}
	var last uint64 // in a log without commits, only reading forward finds what is lost
	for _, err := range log.Read(ctx, 1) {
		var lost *journal.DamageError
		if !errors.As(err, &lost) {
			return last, err
		}
		last = lost.Seq
	}
	return last, nil
}

// LockJournal locks the existing journal of a task without taking the task over: no process can own the task
// until the journal is closed. known is a commit that the journal is known to have had, 0 when nothing is known.
// It fails with ErrMoved when the context expects another head; see Expecting.
func (s *Store) LockJournal(ctx context.Context, ref Ref, known uint64) (journal.Owner, error) {
	o := s.logOptions(ref)
	o.Existing, o.Known, o.Meets = true, known, expected(ctx, ref).check()
	return ownLog(ctx, ref.Log, o)
}

// logOptions are the options of a task's journal for an owner that no process needs to reach.
func (s *Store) logOptions(ref Ref) filelog.Options {
	return filelog.Options{
		FS: s.opt.FS, Clock: s.opt.Now, By: s.opt.Program, Seal: s.seal(ref),
		Owner: journal.OwnerInfo{PID: os.Getpid(), Program: s.opt.Program},
	}
}

// OwnNewJournal owns the journal in a folder that is about to become the folder of a new task. Its commits are sealed with
// the task's key.
func (s *Store) OwnNewJournal(ctx context.Context, ref Ref, dir string) (journal.Owner, error) {
	return filelog.Own(ctx, dir, s.logOptions(ref))
}

// adoptedFrom is the folder from which the task of a journal was adopted, and the tool that made it; "" when the first
// commits hold no adoption.
func adoptedFrom(ctx context.Context, logDir string) (dir, tool string) {
	log, err := OpenJournal(logDir)
	if err != nil {
		return "", ""
	}
	defer log.Close()
	tries := 0
	for c, err := range log.Read(ctx, 1) {
		if tries++; err != nil || tries > 16 { // epochs of killed owners may come first
			return "", ""
		}
		for _, raw := range c.Events {
			if e, err := task.Decode(raw); err == nil {
				if a, ok := e.(task.Adopted); ok {
					return a.Dir, a.Tool
				}
			}
		}
	}
	return "", ""
}

// empty reports whether a journal holds no commit yet. A journal whose first commit is damaged is not empty: the files
// are its projections.
func empty(s *task.State) bool {
	return s.ID == "" && len(s.Problems) == 0 && s.NextMessage() == 1
}

// Follow opens a task's log for reading on, beside its owner.
func (s *Store) Follow(ref Ref) (journal.Reader, error) {
	log, err := OpenJournal(ref.Log)
	if err != nil {
		return nil, fmt.Errorf("follow task %s: %w", ref.ID, err)
	}
	return log, nil
}

// FeedDir is the folder of the root's feed: the order in which the commits of all its tasks became durable.
func (s *Store) FeedDir() string { return filepath.Join(s.opt.Root, "feed") }

// announcer announces what an owner syncs in the feed. The next sync announces what one could not: the feed is derived,
// and no owner waits for it.
func (s *Store) announcer(ref Ref) func(epoch, head uint64, last bool) {
	w := feed.NewWriter(s.FeedDir(), s.opt.Now)
	var announced uint64
	return func(epoch, head uint64, last bool) {
		if head == announced && !last || head == 0 {
			return
		}
		from := announced + 1
		if announced == 0 {
			from = head // the commit that opened the epoch; readers have the earlier ones
		}
		if w.Append(feed.Line{Source: ref.Source, Task: ref.ID, Epoch: epoch, From: from, To: head, End: last}) == nil {
			announced = head
		}
	}
}

// Announce announces in the feed how far a task's journal goes, for an owner that could not: one that was killed, or
// one that wrote the journal before its folder was in place.
func (s *Store) Announce(ctx context.Context, ref Ref) error {
	held := s.Held(ref) // before its head is read: an owner that comes later announces more
	if IsOverlay(ref) && !held {
		table, err := s.Overlay(ctx)
		if err == nil && len(s.untrueDeletions(table, 0)) > 0 { // ChangeOverlay repairs them
			err = s.ChangeOverlay(ctx, func(overlay.Table, overlay.Append) error { return nil })
		}
		if err != nil {
			return err
		}
	}
	log, err := s.Follow(ref)
	if err != nil {
		return err
	}
	defer log.Close()
	for c, err := range journal.Whole(log.ReadBackward(ctx, 0)) {
		if err != nil {
			return err
		}
		return feed.NewWriter(s.FeedDir(), s.opt.Now).Append(feed.Line{Source: ref.Source, Task: ref.ID, Epoch: c.Epoch, From: c.Seq, To: c.Seq, End: !held})
	}
	return nil
}

// Held reports whether a process owns a task's journal now.
func (s *Store) Held(ref Ref) bool {
	_, held := filelog.Holder(ref.Log)
	return held
}

// LogRef is a reference to a task's journal alone, by its names in a feed. It does not check that the journal exists.
func (s *Store) LogRef(source, id string) (Ref, bool) {
	switch {
	case source == overlaySource && id == overlayID:
		return s.overlayRef(), true
	case !api.ValidTaskID(id) || !api.ValidTaskID(source):
		return Ref{}, false
	case source == OwnSource:
		return s.OwnRef(id), true
	}
	dir := filepath.Join(s.AdoptedDir(source), id)
	return Ref{ID: id, Source: source, Dir: dir, Log: dir}, true
}

// FirstSince is the first commit of a journal that is not older than a time, in Unix milliseconds; head+1 when all are
// older.
func FirstSince(ctx context.Context, log journal.Reader, at int64) (uint64, error) {
	head, err := log.Head(ctx)
	if err != nil {
		return 0, err
	}
	low, high := uint64(1), head+1
	for low < high { // times rise, as far as clocks do
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

// Standing is whether a task's log is this root's own: what it holds open, and the settings
// that it keeps, count only then.
type Standing string

// The standings of a log. Behind a task.Received or a task.Forked that this root signed, what
// is before it does not matter any more.
const (
	Ours      Standing = ""                 // every commit that counts is proven
	Unsigned  Standing = task.FromUnsigned  // a program wrote it that did not sign
	Elsewhere Standing = task.FromElsewhere // signed with a key that is not known in this place
	Altered   Standing = task.FromAltered   // commits do not match, or the end is missing
)

// judged is the standing that a proof gives. begins is the newest commit behind which everything is the task's own.
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

// seal is how a task's log is signed and verified.
func (s *Store) seal(ref Ref) *journal.Seal {
	if ref.Own {
		return s.Seal("tasks/" + ref.ID)
	}
	return s.Seal("adopted/" + ref.Source + "/" + ref.ID)
}

// Seal signs and verifies a log of this root, or what else is kept under that name in it. Where the keys cannot be read nothing is signed,
// and nothing counts as proven: that is safe, and doctor names it.
func (s *Store) Seal(log string) *journal.Seal {
	seal, err := s.ring.Seal(log)
	if err != nil {
		return &journal.Seal{Log: log}
	}
	return seal
}

// Keys is nil when this root has keys here, or nobody has written to it yet; else why it has
// none.
func (s *Store) Keys() error {
	_, err := s.ring.Seal("")
	return err
}

// Verified is Follow for a reader who acts on what the log's snapshot says: it gives none that
// this root did not write.
func (s *Store) Verified(ref Ref) (journal.Reader, error) {
	log, err := filelog.OpenVerified(ref.Log, s.seal(ref))
	if err != nil {
		return nil, fmt.Errorf("open the log of task %s: %w", ref.ID, err)
	}
	return log, nil
}

// Standing is whether the log of a task is this root's own, without owning it. begins is
// State.Begins of the folded log.
func (s *Store) Standing(ctx context.Context, ref Ref, begins uint64) (Standing, error) {
	log, err := s.Verified(ref)
	if errors.Is(err, journal.ErrNotFound) {
		return Ours, nil // it holds nothing that could be obeyed
	}
	if err != nil {
		return Altered, err
	}
	p, err := log.(journal.Prover).Proof(ctx)
	return judged(p, begins), errors.Join(err, log.Close())
}

// Standing is whether the task's log was this root's own when it was taken over.
func (t *Task) Standing() Standing {
	if t.received {
		return Ours
	}
	return judged(t.proof, t.state.Begins)
}

// Receive makes a task this root's own: it ends all that is open, and leaves the settings that a
// stranger may not decide to the user. trust keeps those settings.
func (t *Task) Receive(ctx context.Context, from string, trust bool) error {
	s := t.state
	e := task.Received{From: from, Had: s.Settings, Settings: s.Settings.Proposed()}
	if trust {
		e.Settings = s.Settings
	}
	return t.receive(ctx, e)
}

// Vouch makes a task this root's own as it is, at its user's word.
func (t *Task) Vouch(ctx context.Context) error {
	s := t.state
	return t.receive(ctx, task.Received{From: string(t.Standing()), Had: s.Settings, Settings: s.Settings, Kept: true})
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

// Trust makes the root its user's own in this place: the keys that the user has for it in other
// places count here, and of tasks whose logs are still not proven, those that hold something
// open, or settings of their own, are vouched for as they stand. Tasks that were imported
// stay received.
func (s *Store) Trust(ctx context.Context, dry bool) (api.TrustedRoot, error) {
	out := api.TrustedRoot{Root: s.opt.Root, Tasks: []api.TrustedTask{}}
	if !dry {
		if err := s.Prepare(); err != nil {
			return out, err
		}
		n, err := s.ring.Trust()
		if err != nil {
			return out, err
		}
		out.Keys = n
	}
	refs, err := s.Refs(ctx)
	if err != nil {
		return out, err
	}
	for i, ref := range refs {
		progress.Report(ctx, progress.State{What: "checking", Done: i, Of: len(refs)})
		if err := ctx.Err(); err != nil {
			return out, err
		}
		t, ok, err := s.trustTask(ctx, ref, dry)
		if err != nil {
			t, ok = api.TrustedTask{ID: ref.ID, Source: ref.Source, Problem: err.Error()}, true
		}
		if ok {
			out.Tasks = append(out.Tasks, t)
		}
	}
	return out, nil
}

func (s *Store) trustTask(ctx context.Context, ref Ref, dry bool) (t api.TrustedTask, ok bool, err error) {
	if !exists(ref.Log, "journal.jsonl") {
		return t, false, nil
	}
	v, err := s.Read(ctx, ref)
	if err != nil {
		return t, false, err
	}
	t = api.TrustedTask{ID: ref.ID, Source: ref.Source, Holds: v.State.Brings()}
	standing, err := s.Standing(ctx, ref, v.State.Begins)
	if err = errors.Join(err, v.Close()); err != nil {
		return t, false, err
	}
	if t.Standing = string(standing); standing == Ours || len(t.Holds) == 0 || exists(ref.Dir, ImportRecord) {
		return t, false, nil // an import's owner receives it
	}
	if dry {
		return t, true, nil
	}
	owned, err := s.Own(ctx, ref)
	if err != nil {
		return t, false, err
	}
	if owned.Task.Standing() != Ours {
		err = owned.Task.Vouch(ctx)
	}
	return t, true, errors.Join(err, owned.Task.Close(context.WithoutCancel(ctx)))
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

// Mismatch is derived data that differs from what it is derived from.
type Mismatch struct {
	ID, Path string // of the task; "" for data that is kept for all tasks
	File     string
	Problem  string
	Source   string // what the file is derived from
	Stale    bool   // it is missing or behind, and misleads no reader
	Rewrite  string // the name of the file that must be written again, when Distrust or removing it makes that happen

	Unrepairable bool // deriving it again would not help
}

// Distrust keeps the bytes of one of Roo's files that is not what was written, and lets the projector write the file
// again. It keeps them with a commit, as it does for any refused file, and returns the blob; "" when there is no file.
func (t *Task) Distrust(ctx context.Context, name, reason string) (blob string, err error) {
	hash, size, err := intake.KeepFile(ctx, t, t.Ref.Dir, name)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("task %s: keep the damaged %s: %w", t.Ref.ID, name, err)
	}
	if !intake.KeptBefore(t.state, name, hash) {
		err := t.CommitSynced(ctx, task.ForeignRefused{Name: name, Blob: hash, Size: size, Reason: reason})
		if err != nil {
			return "", err
		}
	}
	t.proj.Distrust(name)
	return hash, nil
}

// Index is Roo's history index of the store's own root.
func (s *Store) Index() *projection.Index { return s.index }

// IndexTask puts a task of Roost's own root into its index.
func (s *Store) IndexTask(ctx context.Context, ref Ref) error {
	if !ref.Own {
		return nil
	}
	return s.index.Put(ctx, ref.ID)
}

// VerifyIndex compares Roo's history index in Roost's own root with the task folders.
func (s *Store) VerifyIndex() []Mismatch {
	about := func(problem string, stale bool) Mismatch {
		path := filepath.Join(s.TasksDir(), roofmt.IndexName)
		return Mismatch{Path: s.TasksDir(), File: path, Problem: problem, Source: "the task folders", Stale: stale}
	}
	lacking, orphans, err := s.index.Verify()
	if err != nil {
		return []Mismatch{about(err.Error(), false)}
	}
	var out []Mismatch
	if lacking > 0 {
		out = append(out, about(strconv.Itoa(lacking)+" tasks are not in it as their folders have them", true))
	}
	if orphans > 0 {
		out = append(out, about(strconv.Itoa(orphans)+" of its tasks have no folder", true))
	}
	return out
}

// RebuildIndex makes the history index again from the task folders. An index that cannot be read is kept beside it.
func (s *Store) RebuildIndex(ctx context.Context, unreadable bool) error {
	if err := s.Prepare(); err != nil {
		return err
	}
	return s.index.Rebuild(ctx, unreadable)
}

// VerifyRows compares what a list shows, starting from the rows that an earlier list kept, with what it shows when it
// reads every task. A row of a task that changed since is no mismatch: the list itself reads the task again.
func (s *Store) VerifyRows(ctx context.Context) []Mismatch {
	path := filepath.Join(s.opt.Cache, catalog.Name)
	if s.opt.Cache == "" {
		return nil
	}
	db, err := catalog.Verify(ctx, s.opt.Cache)
	if db != nil {
		_ = db.Close() // it was only read
	}
	if db == nil || err != nil {
		return nil //nolint:nilerr // search.Verify reports a damaged catalogue; a list would set it aside
	}
	found, err := s.wrongRows(ctx)
	if err == nil && len(found) > 0 { // a change between the two lists is no mismatch
		var again []Mismatch
		again, err = s.wrongRows(ctx)
		found = slices.DeleteFunc(found, func(m Mismatch) bool { return !slices.Contains(again, m) })
	}
	if err != nil {
		return []Mismatch{{Path: s.opt.Cache, File: path, Problem: err.Error()}}
	}
	return found
}

// wrongRows are the tasks of which a list shows something else than their folders give.
func (s *Store) wrongRows(ctx context.Context) ([]Mismatch, error) {
	cached, err := s.List(ctx, Filter{Empty: true, closely: true})
	if err != nil {
		return nil, err
	}
	bare := &Store{opt: s.opt, wait: s.wait, clock: s.clock}
	bare.opt.Cache = ""
	fresh, err := bare.List(ctx, Filter{Empty: true})
	if err != nil {
		return nil, err
	}
	key := func(t api.Summary) string { return t.Source + "\x00" + t.Path }
	there := map[string]api.Summary{}
	for _, t := range fresh.Items {
		there[key(t)] = t
	}
	var out []Mismatch
	about := func(t api.Summary, problem string) {
		file := filepath.Join(s.opt.Cache, catalog.Name)
		out = append(out, Mismatch{ID: t.ID, Path: t.Path, File: file, Problem: problem, Source: "the tasks"})
	}
	for _, have := range cached.Items {
		want, ok := there[key(have)]
		delete(there, key(have))
		a, errA := json.Marshal(have)
		b, errB := json.Marshal(want)
		switch {
		case errA != nil || errB != nil:
			return nil, errors.Join(errA, errB)
		case !ok && exists(have.Path, ""):
			about(have, "the list shows it, but there is no such task")
		case ok && !bytes.Equal(a, b):
			about(have, "the list differs from its folder")
		}
	}
	for _, t := range there {
		about(t, "the list does not show it")
	}
	return out, nil
}

// RebuildRows removes the kept rows and makes them again.
func (s *Store) RebuildRows(ctx context.Context) error {
	db, err := catalog.Open(ctx, s.opt.Cache)
	if err != nil {
		return err
	}
	if err := errors.Join(db.ForgetRows(ctx), db.Close()); err != nil {
		return err
	}
	_, err = s.List(ctx, Filter{})
	return err
}

// Behind are the tasks whose Roo files show less than their journal holds: the process that would have written them was
// killed, or the disk refused. Owning such a task and closing it writes them. Behind leaves out tasks that a process
// owns, and damaged ones, which wait for a user's decision.
func (s *Store) Behind(ctx context.Context) ([]Ref, error) {
	refs, err := s.Refs(ctx)
	if err != nil {
		return nil, err
	}
	var out []Ref
	for _, ref := range refs {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if s.behind(ctx, ref) {
			out = append(out, ref)
		}
	}
	return out, nil
}

func (s *Store) behind(ctx context.Context, ref Ref) bool {
	log, err := os.Lstat(filepath.Join(ref.Log, journalName))
	if err != nil || !exists(ref.Log, "journal.lock") || !exists(ref.Dir, "") { // without a lock file no process owned it here
		return false
	}
	written := projection.Read(ref.Log)
	mark, err := os.Lstat(filepath.Join(ref.Log, projection.Name))
	if err == nil && len(written.Writing) == 0 && !log.ModTime().After(mark.ModTime()) {
		return false // the record is written after the last commit
	}
	if _, held := filelog.Holder(ref.Log); held {
		return false
	}
	if head := HeadOf(ctx, ref.Log); head == 0 || head <= written.Seq {
		return false
	}
	v, err := s.read(ctx, ref, false)
	if err != nil {
		return false // opening the task reports why
	}
	whole := len(v.State.Problems) == 0 && !v.Unborn
	return v.Close() == nil && whole
}
