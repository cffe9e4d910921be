package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// View is a task opened for reading. Nothing on disk changes by it.
type View struct {
	Ref     Ref
	State   *task.State
	Summary api.Summary
	Log     journal.Reader  // nil while the task has no journal
	Folder  *roofmt.Folder  // nil when there is none, or when its histories are as we wrote them
	Pending []intake.Change // what another program changed, folded into State and not taken in yet

	Unborn bool  // its journal holds nothing yet
	size   int64 // bytes of Roo's files
}

// Close closes the files. The state's messages cannot be read afterwards.
func (v *View) Close() error {
	var errs []error
	if v.Log != nil {
		errs = append(errs, v.Log.Close())
	}
	if v.Folder != nil {
		errs = append(errs, v.Folder.Close())
	}
	return errors.Join(errs...)
}

// Saved is the newest commit that the task's journal had, by the files beside it: a journal that ends earlier lacks its
// end. 0 = there is no journal.
func (v *View) Saved(ctx context.Context) (uint64, error) {
	if v.Log == nil {
		return 0, nil
	}
	return SavedCommit(ctx, v.Log)
}

// Unread is a *roofmt.UnreadError when a file of the task exists and cannot be read. The rest of such a task is shown,
// and no run continues it.
func (v *View) Unread() error {
	if v.Folder == nil || v.Folder.Unread == nil {
		return nil
	}
	return fmt.Errorf("task %s: %w", v.Ref.ID, v.Folder.Unread)
}

// Read opens a task for reading. With an index of the journal it costs the page that is shown: older messages are read on
// demand, and damage in them is found then, or by the doctor.
func (s *Store) Read(ctx context.Context, ref Ref) (*View, error) {
	v, err := s.read(ctx, ref, false)
	if err != nil || ref.Own {
		return v, err
	}
	if marks, err := s.Overlay(ctx); err == nil { // else it is shown as it is without
		ApplyLabels(&v.Summary, marks)
	}
	return v, nil
}

// WithView reads a task, calls f, and closes the view.
func (s *Store) WithView(ctx context.Context, ref Ref, f func(*View) error) error {
	v, err := s.Read(ctx, ref)
	if err != nil {
		return err
	}
	return errors.Join(f(v), v.Close())
}

// ReadWhole is Read, except that it reads every commit of the journal and leaves out labels in the overlay.
func (s *Store) ReadWhole(ctx context.Context, ref Ref) (*View, error) { return s.read(ctx, ref, true) }

// ReadUnlabelled is Read without the labels in the overlay, for a caller that needs none: it saves reading the overlay.
func (s *Store) ReadUnlabelled(ctx context.Context, ref Ref) (*View, error) {
	return s.read(ctx, ref, false)
}

// ReadToContinue is Read for a caller that is about to continue the task: a file that cannot be read is an error.
func (s *Store) ReadToContinue(ctx context.Context, ref Ref) (*View, error) {
	v, err := s.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	if err := v.Unread(); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// read opens a task; whole means that it reads every commit of the journal.
func (s *Store) read(ctx context.Context, ref Ref, whole bool) (*View, error) {
	v := &View{Ref: ref}
	if err := s.readInto(ctx, v, whole); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	v.Summary = summarise(v)
	return v, nil
}

func (s *Store) readInto(ctx context.Context, v *View, whole bool) error {
	log, err := OpenJournal(v.Ref.Log)
	switch {
	case err == nil:
		v.Log = log
	case !errors.Is(err, journal.ErrNotFound):
		return fmt.Errorf("task %s: open its journal: %w", v.Ref.ID, err)
	}
	var mark projection.Watermark
	if v.Log == nil || !v.asWritten() {
		if mark, err = v.readFolder(ctx); err != nil {
			return fmt.Errorf("task %s: %w", v.Ref.ID, err)
		}
	}
	s.withRow(v.Folder)
	if v.Log == nil {
		if v.Folder == nil {
			return fmt.Errorf("%w: %s", ErrNotFound, v.Ref.Dir)
		}
		v.State = unadopted(ctx, v.Ref, v.Folder)
		return nil
	}
	readState := fold.Lean
	if whole {
		readState = fold.EveryCommit
	}
	if v.State, err = readState(ctx, v.Log); err != nil {
		return fmt.Errorf("task %s: %w", v.Ref.ID, err)
	}
	if v.State.ID == "" {
		blank := empty(v.State)
		if blank && v.Folder != nil && !v.Folder.Empty() {
			v.State = unadopted(ctx, v.Ref, v.Folder)
			return nil
		}
		v.Unborn = blank
		v.State.ID = v.Ref.ID
	}
	if len(v.State.Problems) > 0 { // as taking in does: see intake.Target.TakeIn
		mark = projection.Watermark{}
		if v.Folder == nil {
			if _, err := v.readFolder(ctx); err != nil {
				return fmt.Errorf("task %s: %w", v.Ref.ID, err)
			}
			s.withRow(v.Folder)
		}
	}
	if v.Folder == nil {
		return nil
	}
	return v.foldForeign(ctx, mark)
}

// foldForeign folds in what another program changed, for this reader only, as taking it in will do.
func (v *View) foldForeign(ctx context.Context, mark projection.Watermark) error {
	if v.changed(mark) {
		// They are compared message by message.
		if err := v.load(ctx); err != nil {
			return fmt.Errorf("task %s: %w", v.Ref.ID, err)
		}
	}
	v.Pending = intake.Changes(v.State, v.Folder, mark)
	v.State.With(fold.FromBoth(ctx, v.Log, v.Folder))
	var events []task.Event
	for _, change := range v.Pending {
		switch {
		case change.Rewound != nil:
			events = append(events, *change.Rewound)
		case change.Event != nil:
			events = append(events, *change.Event)
		}
	}
	for _, e := range append(events, intake.ClosedElsewhere(v.State, v.Pending, intake.Program(v.Folder))...) {
		raw, err := task.Encode(e)
		if err != nil {
			return err
		}
		if err := v.State.Apply(journal.Commit{Seq: v.State.Seq + 1, Epoch: v.State.Epoch, Events: []journal.Event{raw}}); err != nil {
			return fmt.Errorf("task %s: %w", v.Ref.ID, err)
		}
	}
	return nil
}

// load reads the histories into memory. Messages that the snapshot names may have been damaged since: then the whole log
// is folded, which finds what is lost.
func (v *View) load(ctx context.Context) error {
	err := v.State.Load()
	if err == nil {
		return nil
	}
	if v.State, err = fold.EveryCommit(ctx, v.Log); err != nil {
		return err
	}
	return v.State.Load()
}

// changed reports whether a history file may not be the one we wrote.
func (v *View) changed(mark projection.Watermark) bool {
	for _, doc := range []*roofmt.Document{v.Folder.UI, v.Folder.API} {
		if doc.Source != "" && !mark.Wrote(doc) {
			return true
		}
	}
	return false
}

// asWritten reports whether the folder's histories are, by their fingerprints, those that Roost wrote: then the journal
// lacks nothing of them, and they need not be read.
func (v *View) asWritten() bool {
	before := projection.Read(v.Ref.Log)
	prints, err := roofmt.Prints(v.Ref.Dir)
	if err != nil {
		return false
	}
	for _, name := range []string{roofmt.UIName, roofmt.APIName} {
		last, ok := before.Files[name]
		if !ok || !prints[name].Exists || last.Print() != prints[name] || last.MTime == 0 {
			return false
		}
	}
	if projection.Read(v.Ref.Log).Seq != before.Seq {
		return false
	}
	for _, print := range prints {
		v.size += print.Size
	}
	return true
}

// readFolder reads the folder and the watermark that belongs to it: an owner may be writing projections just now, and its
// new bytes must not look foreign.
func (v *View) readFolder(ctx context.Context) (projection.Watermark, error) {
	var noter func(roofmt.Kind) roofmt.Noter
	if v.Log == nil { // a journal has them already
		noter = notes
	}
	for try := 0; ; try++ {
		before := projection.Read(v.Ref.Log)
		folder, err := roofmt.ReadNoting(ctx, v.Ref.Dir, noter)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return before, err
		}
		after := projection.Read(v.Ref.Log)
		if before.Seq == after.Seq || try == 5 {
			if err == nil {
				v.Folder = folder
				v.size = folder.UI.SourcePrint.Size + folder.API.SourcePrint.Size + int64(len(folder.Item)+len(folder.Metadata))
			}
			return after, nil
		}
		if err == nil {
			if err := folder.Close(); err != nil {
				return before, err
			}
		}
	}
}

// unadopted is the state that adopting the folder would give.
func unadopted(ctx context.Context, ref Ref, folder *roofmt.Folder) *task.State {
	state := task.New(nil).Lean(fold.FromBoth(ctx, nil, folder), fold.MessageMemory)
	noted := map[string]*task.Notes{}
	for _, doc := range []*roofmt.Document{folder.UI, folder.API} {
		if notes, ok := doc.Notes.(*task.Notes); ok {
			noted[doc.Source] = notes
			doc.Notes = nil // the state owns them now
		}
	}
	state.Adopt(intake.Adoption(ref.ID, ref.toolOf(folder), folder), noted)
	return state
}

// notes collects what a state needs of a folder's messages during the read.
func notes(kind roofmt.Kind) roofmt.Noter {
	if kind == roofmt.API {
		return task.NewNotes(task.API)
	}
	return task.NewNotes(task.UI)
}

// Sent is the part of a task's API history that a request sends, as far as the journal holds it without the messages'
// bytes: of a long condensed task, it reads little. at are the indexes of these messages in the whole history. For a
// task of Cline's that was never continued in Roost it is the whole history, with the tags that it would get.
func (v *View) Sent() (history [][]byte, at []int, err error) {
	if v.State.Seq > 0 {
		list := v.State.Sent()
		raws, err := v.State.Raws(list)
		if err != nil {
			return nil, nil, err
		}
		i := 0
		history, at = make([][]byte, 0, len(list)), make([]int, 0, len(list))
		for place, m := range v.State.API() {
			if i < len(list) && list[i] == m {
				history, at = append(history, raws[i]), append(at, place)
				i++
			}
		}
		return history, at, nil
	}
	if history, err = v.wholeHistory(); err != nil {
		return nil, nil, err
	}
	for i := range history {
		at = append(at, i)
	}
	return history, at, nil
}

// wholeHistory is the API history of a task without a journal, tagged.
func (v *View) wholeHistory() ([][]byte, error) {
	history, err := v.State.RawAPI()
	if err != nil || v.Folder == nil || len(history) != v.Folder.API.Len() || !v.Ref.tags(v.Folder) {
		return history, err
	}
	return intake.SentByCline(v.Folder, history), nil
}

// maxKnownFiles bounds, in bytes, the task_metadata.json that FilesKnownElsewhere reads: the file is held in memory.
const maxKnownFiles = 256 << 20

// FilesKnownElsewhere is what another tool recorded of the files of a task: its entries of task_metadata.json, from the
// task's folder or, when that file is unreadable, from the adoption. It leaves out Roost's own entries: a fork derives
// those from its history.
func (v *View) FilesKnownElsewhere() []byte {
	var data []byte
	if f, err := roofmt.OpenFile(v.Ref.Dir, roofmt.MetadataName); err == nil {
		data, err = io.ReadAll(io.LimitReader(f, maxKnownFiles+1))
		if err = errors.Join(err, f.Close()); err != nil || len(data) > maxKnownFiles || !esjson.Valid(data) {
			data = nil
		}
	}
	if data == nil {
		if blob := projection.MetadataBlob(v.State); blob != "" && v.Log != nil {
			data, _ = fold.Payloads(v.Log).Range(blob, 0, -1) // a payload that is lost counts as none
		}
	}
	return projection.WithoutRecords(data, v.State.FilesEver())
}

// RenderItem is the history item that Roost would write for the task. size is the size of the task's files in bytes.
func (v *View) RenderItem(now, size int64) ([]byte, error) {
	return projection.RenderItem(v.State, now, size)
}
