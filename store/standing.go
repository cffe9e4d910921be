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
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// Standing tells whether a task's log is this root's own: what it holds open, and the settings
// that it keeps, count only then.
type Standing string

// The standings of a log. Behind a task.Received or a task.Forked that this root signed, what
// stands before it does not matter any more.
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

// Standing tells whether the log of a task is this root's own, without owning it. begins is
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

// Standing tells whether the task's log was this root's own when it was taken over.
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

// Vouch makes a task this root's own as it stands, at its user's word.
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
