package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// ForkOptions say where a new task begins in the history of another one.
type ForkOptions struct {
	ID       string // of the new task; "" = a new one
	At       string // the last message that it has: #12, a ts, or ~2 (before the last two turns); "" = all
	Branch   string // the branch that it starts from; "" = the head
	Origin   string
	Title    string
	Settings func(*task.Settings) error // changes what it takes over from the other one; an error refuses the fork
	DryRun   bool

	// Before is called with the new task's id before there is anything of it. nil = nobody
	// waits for that.
	Before func(id string, s *task.State) error
}

// ForkResult is a fork that was made, or would be.
type ForkResult struct {
	ID       string        `json:"id"` // of the new task; "" after a dry run
	From     ForkedFrom    `json:"forked_from"`
	Messages MessageCounts `json:"messages"`
	Last     *Row          `json:"last"` // the newest message that it has
	Path     string        `json:"path"`
	DryRun   bool          `json:"dry_run"`
}

// Fork makes a new task of Roost's own that begins with the history of another one. The
// two share the stored bytes by links, so that neither needs the other one to live. A
// task that runs can be forked: what it has saved counts. finish writes Roo's files of
// the new task, and must be called.
//
// Errors: *RefError, *BranchError, or what Find and Own give.
func (s *Store) Fork(ctx context.Context, ref Ref, o ForkOptions) (ForkResult, func(context.Context) error, error) {
	none := func(context.Context) error { return nil }
	if next, ok := s.Continued(ref); ok {
		ref = next
	}
	v, err := s.ReadToContinue(ctx, ref)
	if err != nil {
		return ForkResult{}, none, err
	}
	if !o.DryRun && (v.Log == nil || len(v.Pending) > 0) {
		// What only the other tool's files hold is taken in first; but not for a fork that
		// cannot be made.
		plan := o
		plan.DryRun = true
		_, _, _, err := s.forkInto(ctx, v, nil, plan)
		if err = errors.Join(err, v.Close()); err != nil {
			return ForkResult{}, none, err
		}
		if ref, v, err = s.settledView(ctx, ref); err != nil {
			return ForkResult{}, none, err
		}
	}
	if err := expected(ctx, ref).meets(v.State.Seq); err != nil {
		return ForkResult{}, none, errors.Join(fmt.Errorf("fork task %s: %w", ref.ID, err), v.Close())
	}
	known := v.knownElsewhere()
	out, base, id, err := s.forkInto(ctx, v, known, o)
	if err = errors.Join(err, v.Close()); err != nil || o.DryRun {
		return out, none, err
	}
	if o.Before != nil {
		if err := o.Before(id, v.State); err != nil {
			return out, none, fmt.Errorf("fork task %s: %w", ref.ID, err)
		}
	}
	failpoint.Hit("fork.before")
	if err := s.makeFork(ctx, ref, id, base, known, v.State.Seq); err != nil {
		return out, none, fmt.Errorf("fork task %s: %w", ref.ID, err)
	}
	failpoint.Hit("fork.made")
	own := s.OwnRef(id)
	return out, func(ctx context.Context) error {
		t, err := s.takeWith(ctx, own, true, true)
		if err != nil {
			return err
		}
		return t.Close(ctx)
	}, nil
}

// mostKnown bounds, in bytes, what another tool may know of the files of a task: it is
// held in memory.
const mostKnown = 256 << 20

// knownElsewhere is what another tool knew of the files of a task: its entries of
// task_metadata.json, as they stand in the task's folder now, or else as the adoption
// found them. A fork keeps them; those of Roost's own it derives from its history.
func (v *View) knownElsewhere() []byte {
	var data []byte
	if f, err := roofmt.OpenFile(v.Ref.Dir, roofmt.MetadataName); err == nil {
		data, err = io.ReadAll(io.LimitReader(f, mostKnown+1))
		if err = errors.Join(err, f.Close()); err != nil || len(data) > mostKnown || !esjson.Valid(data) {
			data = nil
		}
	}
	if data == nil {
		if blob := metadataOf(v.State); blob != "" && v.Log != nil {
			data, _ = Payloads(v.Log).Range(blob, 0, -1) // without it there is none
		}
	}
	return withoutRecords(data, v.State.FilesEver())
}

// settledView takes a task of another tool over, so that all of it is in a journal.
func (s *Store) settledView(ctx context.Context, ref Ref) (Ref, *View, error) {
	owned, err := s.Own(ctx, ref)
	if err != nil {
		return ref, nil, err
	}
	ref = owned.Task.Ref
	if err := owned.Task.Close(ctx); err != nil {
		return ref, nil, err
	}
	v, err := s.Read(ctx, ref)
	return ref, v, err
}

// forkInto plans a fork: what it has, and the events that it begins with. known is what
// another tool knew of files.
func (s *Store) forkInto(ctx context.Context, v *View, known []byte, o ForkOptions) (ForkResult, []task.Event, string, error) {
	state := v.State
	out := ForkResult{From: ForkedFrom{ID: v.Ref.ID, Source: v.Ref.Source, Branch: HeadBranch}, DryRun: o.DryRun}
	b, err := branchOf(state, o.Branch)
	if err != nil {
		return out, nil, "", err
	}
	id := o.ID
	if id == "" {
		made, err := uuid.NewV7()
		if err != nil {
			return out, nil, "", fmt.Errorf("make a task id: %w", err)
		}
		id = made.String()
	}
	start := task.Forked{
		Task: id, From: v.Ref.ID, Source: v.Ref.Source, Seq: state.Seq,
		CreatedAt: s.opt.Now(), Origin: o.Origin, Title: o.Title, Settings: state.Settings,
	}
	if b != nil {
		start.Branch, out.From.Branch = b.Seq, BranchName(b.Seq)
	}
	if known != nil {
		start.Metadata = hexOf(sha256.Sum256(known))
	}
	if stands, err := s.Standing(ctx, v.Ref, state.Begins); err != nil {
		return out, nil, "", err
	} else if stands != Ours {
		start.Settings = start.Settings.Proposed()
	}
	if o.Settings != nil {
		if err := o.Settings(&start.Settings); err != nil {
			return out, nil, "", err
		}
	}
	if start.Title == "" {
		start.Title = state.Title
	}
	// The reader's state becomes the fork's, as its log will say: so the cut is that of
	// the fork.
	first := journal.Commit{Seq: state.Seq + 1, Epoch: state.Epoch, At: start.CreatedAt}
	if err := applyTo(state, first, start); err != nil {
		return out, nil, "", err
	}
	events := []task.Event{start}
	cut, err := forkCut(state, o.At)
	if err != nil {
		return out, nil, "", err
	}
	if cut != nil {
		cut.Why = "fork"
		first.Seq++
		if err := applyTo(state, first, *cut); err != nil {
			return out, nil, "", err
		}
		events = append(events, *cut)
	}
	start.At = len(state.UI())
	events[0] = start
	out.From.At, out.Messages = start.At, MessageCounts{UI: len(state.UI()), API: len(state.API())}
	if n := len(state.UI()); n > 0 {
		last := rowAt(state, n-1)
		out.Last = &last
	}
	if !o.DryRun {
		out.ID, out.Path = start.Task, s.OwnRef(start.Task).Dir
	}
	// The commits that were applied to the reader's state are not in the log that is shared.
	state.Seq = start.Seq
	return out, events, start.Task, nil
}

func applyTo(s *task.State, c journal.Commit, e task.Event) error {
	raw, err := task.Encode(e)
	if err != nil {
		return err
	}
	c.Events = []journal.Event{raw}
	return s.Apply(c)
}

// forkCut is what a fork leaves out; nil when it has all.
func forkCut(s *task.State, at string) (*task.Rewound, error) {
	if at == "" {
		return nil, nil
	}
	to, err := findRow(s, at)
	if err != nil {
		return nil, err
	}
	var e task.Rewound
	switch {
	case to.turns > 0:
		e, err = s.CutTurns(to.turns)
	case to.between:
		e, err = s.CutAt(to.row, false)
	case to.row == len(s.UI())-1:
		return nil, nil
	default:
		e, err = s.CutAt(to.row+1, false)
	}
	if errors.Is(err, task.ErrTurns) {
		return nil, &RefError{Given: at, Why: fmt.Sprintf("the model has replied %d times", s.Replies), Candidates: someRows(s, len(s.UI()))}
	}
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// forkTemp begins the name of a fork that is being made: no list shows it.
const forkTemp = ".fork-"

// makeFork makes the new task's folder with one rename: before it there is nothing of it,
// after it all.
func (s *Store) makeFork(ctx context.Context, from Ref, id string, events []task.Event, known []byte, seq uint64) error {
	if err := s.Prepare(); err != nil {
		return err
	}
	if err := s.EnsureDir(s.TasksDir(), "cannot be written"); err != nil {
		return err
	}
	s.sweepForks()
	temp, err := os.MkdirTemp(s.TasksDir(), forkTemp+id+"-")
	if err != nil {
		return err
	}
	err = s.writeFork(ctx, from, temp, id, events, known, seq)
	if err == nil {
		failpoint.Hit("fork.written")
		err = os.Rename(temp, s.OwnRef(id).Dir)
	}
	if err == nil {
		err = filelog.OS.SyncDir(s.TasksDir())
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	_ = s.Tell(ctx, s.OwnRef(id)) // else its first owner does
	return nil
}

func (s *Store) writeFork(ctx context.Context, from Ref, dir, id string, events []task.Event, known []byte, seq uint64) error {
	if err := filelog.Begin(ctx, dir, from.Log, seq); err != nil {
		return err
	}
	failpoint.Hit("fork.begun")
	log, err := filelog.Own(ctx, dir, filelog.Options{
		FS: s.opt.FS, Clock: s.opt.Now, By: s.opt.Program,
		Owner: journal.OwnerInfo{PID: os.Getpid(), Program: s.opt.Program}, Seal: s.seal(s.OwnRef(id)),
	})
	if err != nil {
		return err
	}
	// Each event is a commit of its own: the cut is one of the fork's history.
	for _, e := range events {
		draft := journal.Draft{At: s.opt.Now(), By: s.opt.Program}
		if known != nil { // the first one names it
			var hash journal.Hash
			if hash, err = log.PutBlob(ctx, known); err != nil {
				return errors.Join(err, log.Close())
			}
			draft.Blobs, known = []journal.Hash{hash}, nil
		}
		raw, err := task.Encode(e)
		if err == nil {
			draft.Events = []journal.Event{raw}
			_, err = log.Append(ctx, draft)
		}
		if err != nil {
			return errors.Join(err, log.Close())
		}
	}
	return errors.Join(log.Barrier(ctx), log.Close())
}

// sweepForks removes what killed processes left of forks. One that is being made is
// young.
func (s *Store) sweepForks() {
	entries, err := os.ReadDir(s.TasksDir())
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), forkTemp) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(filepath.Join(s.TasksDir(), e.Name()))
		}
	}
}
