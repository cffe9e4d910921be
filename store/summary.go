package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/cost"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/store/infer"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// summarise gives a task's row. Everything in it is derived.
func summarise(v *View) api.Summary {
	s, ref := v.State, v.Ref
	name, err := title(s)
	if err != nil {
		s.Problems = append(s.Problems, task.Problem{Reason: err.Error()})
	}
	tasks, _ := roofmt.PlaceOf(ref.Dir)
	sum := api.Summary{
		ID: ref.ID, Source: ref.Source, Tool: ref.Tool, Origin: s.Origin,
		Root: filepath.Dir(tasks), Path: ref.Dir,
		Number: s.Number, Title: name,
		Workspace: s.Settings.Workspace, Mode: s.Settings.Mode,
		Provider: s.Settings.Provider, Model: s.Settings.Model,
		ParentID: s.Parent, RootID: s.RootTask,
		Messages: api.MessageCounts{UI: len(s.UI()), API: len(s.API())},
		Tags:     slices.Clone(s.Tags), Pinned: s.Pinned,
		OpenQuestions: len(s.Questions),
		Pending:       len(v.Pending) > 0,
		Received:      received(s),
		Access:        s.Access,
	}
	if sum.Provider+sum.Model == "" && s.Adopted != nil { // what another tool asked is no setting of ours
		sum.Provider, _ = esjson.GetString(s.Adopted.Item, "provider")
		sum.Model, _ = esjson.GetString(s.Adopted.Item, "modelId")
	}
	updated := s.UpdatedAt
	if v.Log == nil {
		updated = max(updated, s.LastTS()) // nothing of ours says when it changed
	}
	sum.CreatedAt, sum.UpdatedAt = api.Date(s.CreatedAt), api.Date(updated)
	sum.WaitingUntil = api.Date(s.WaitingUntil)
	sum.ChildIDs = api.Each(s.Children, func(c task.Child) string { return c.ID })
	var tokens usage.Tokens
	for _, m := range s.UI() {
		if spent, ok := m.Spent(); ok {
			spent.AddTo(&tokens)
		}
	}
	context, _ := cost.Round(usage.Tokens{In: tokens.ContextTokens})
	sum.ContextTokens = context.TokensIn
	sum.Usage = cost.TallyOf(s).Usage()
	if sum.TS = rooTS(s); sum.TS <= 0 {
		sum.TS = infer.TimeOfID(ref.ID)
	}
	if sum.CreatedAt == nil {
		sum.CreatedAt = api.Date(infer.TimeOfID(ref.ID))
	}
	if v.Log == nil || s.Adopted != nil {
		if s.Adopted != nil {
			sum.Origin = roofmt.SaidOrigin(s.Adopted.Item)
		}
		if sum.Origin == "" {
			sum.Origin = roofmt.PlaceOrigin(cmp.Or(v.CopiedFrom(), ref.Dir))
			sum.Inferred = append(sum.Inferred, "origin")
		}
	}
	sum.Status = status(v, sum.Origin)
	switch {
	case sum.Tool != "" && (!ref.Own || s.Adopted == nil):
	case v.Folder != nil:
		sum.Tool = string(v.Folder.Tool)
		sum.Inferred = append(sum.Inferred, "tool")
	case s.Adopted != nil:
		sum.Tool = s.Adopted.Tool
		sum.Inferred = append(sum.Inferred, "tool")
	}
	sum.Size = v.size
	if v.Folder != nil {
		for _, loss := range v.Folder.Losses {
			if v.Log != nil {
				continue // the journal is the truth; the files are made again from it
			}
			sum.Damaged = append(sum.Damaged, api.Damage{File: filepath.Join(ref.Dir, loss.File), Problem: loss.Problem, Recovered: loss.Recovered})
		}
		sum.Empty = v.Log == nil && v.Folder.Empty()
		if v.Log == nil && len(intake.Item(v.Folder)) == 0 && !sum.Empty {
			sum.Inferred = append(sum.Inferred, "title", "ts")
		}
	}
	for _, p := range s.Problems {
		if v.Log != nil {
			sum.Damaged = append(sum.Damaged, api.Damage{
				File: filepath.Join(ref.Log, JournalName), Problem: p.Reason,
				Lost: lost(p),
			})
		}
	}
	for _, change := range v.Pending {
		if change.Refused != "" {
			sum.Damaged = append(sum.Damaged, api.Damage{
				File: filepath.Join(ref.Dir, change.File), Problem: change.Refused,
				Recovered: "all messages are in the journal",
			})
		}
	}
	sum.Empty = sum.Empty || v.Unborn
	infer.Environment(&sum, s)
	// Half of a surrogate pair is no text: what has one would not come back from the
	// kept rows as it went in.
	for _, text := range []*string{&sum.Title, &sum.Workspace, &sum.Mode, &sum.Provider, &sum.Model} {
		*text = strings.ToValidUTF8(*text, "\ufffd")
	}
	return sum.Filled()
}

func lost(p task.Problem) string {
	if p.Seq == 0 {
		return ""
	}
	return fmt.Sprintf("commit %d", p.Seq)
}

func title(s *task.State) (string, error) {
	if s.Title != "" {
		return s.Title, nil
	}
	if ui := s.UI(); len(ui) > 0 && !ui[0].Missing && !infer.TooLong(ui[0]) {
		raws, err := s.Raws(ui[:1])
		if err != nil {
			return "", err
		}
		text, _ := esjson.GetString(raws[0], "text")
		if text = strings.TrimSpace(text); text != "" {
			return text, nil
		}
	}
	if s.Adopted != nil {
		if text, ok := esjson.GetString(s.Adopted.Item, "task"); ok {
			return text, nil
		}
	}
	return infer.Title(s), nil
}

// newestRows yields the rows of the user's history from its end, without resume questions.
func newestRows(s *task.State) iter.Seq[*task.Message] {
	return func(yield func(*task.Message) bool) {
		for _, m := range slices.Backward(s.UI()) {
			kind := m.Kind()
			if kind != "ask:resume_task" && kind != "ask:resume_completed_task" && !yield(m) {
				return
			}
		}
	}
}

// rooTS returns the time of the last row that is not a resume question.
func rooTS(s *task.State) int64 {
	for m := range newestRows(s) {
		if ts := m.TS(); ts > 0 {
			return ts
		}
	}
	if s.Adopted != nil {
		if ts, ok := esjson.GetInt(s.Adopted.Item, "ts"); ok {
			return ts
		}
	}
	return max(s.LastTS(), s.CreatedAt)
}

// CopiedFrom returns the folder of the task that a task of our own was copied from, by Own or by an import; "" for others.
func (v *View) CopiedFrom() (dir string) {
	if v.Ref.Own {
		record, _ := inputfile.Read(filepath.Join(v.Ref.Dir, ImportRecord)) // most tasks have none, and a stranger's may be a pipe
		if dir = esjson.TextOf(record, "from"); dir == "" && v.State.Adopted != nil {
			dir = v.State.Adopted.Dir
		}
	}
	return dir
}

// status derives a task's status from the newest run; a run without an owner was interrupted.
func status(v *View, origin string) string {
	s := v.State
	switch {
	case s.Restoring != nil:
		return "restoring" // files are being put back: who works on it next finishes that
	case s.Run == nil && s.Fork != nil && foreignStatus(s, origin) == "interrupted":
		return "idle" // nothing of its own began yet
	case s.Run == nil:
		return foreignStatus(s, origin)
	case s.Awaited() != nil:
		return "delegated"
	case s.Run.Waiting != "":
		return "waiting"
	case s.Run.Outcome != "" && (s.Run.Rewound || wentOnElsewhere(s)): // what it ended in is no more
		return foreignStatus(s, origin)
	case s.Run.Outcome == "limit", s.Run.Outcome == "denied":
		return "interrupted"
	case s.Run.Outcome != "":
		return s.Run.Outcome
	case s.Run.Waits():
		return "queued"
	}
	if v.held() {
		if len(s.Questions) > 0 {
			return "waiting" // its run waits in memory
		}
		return "running"
	}
	return "interrupted"
}

// wentOnElsewhere reports whether another program wrote the newest row. Every run of ours writes a row when it
// begins.
func wentOnElsewhere(s *task.State) bool {
	ui := s.UI()
	return len(ui) > 0 && ui[len(ui)-1].Foreign
}

// foreignStatus derives the status from the last rows, as Roo does.
func foreignStatus(s *task.State, origin string) string {
	for m := range newestRows(s) {
		switch m.Kind() {
		case "ask:completion_result":
			return "completed"
		case "say:completion_result":
			// Roo's two files are saved one after the other, and its CLI ends without asking.
			if s.Completes() || origin == roofmt.CLIOrigin && !m.Partial() {
				return "completed"
			}
		}
		if infer.Completed(s) {
			return "completed"
		}
		return "interrupted"
	}
	if len(s.API()) > 0 {
		if s.Adopted != nil {
			switch said, _ := esjson.GetString(s.Adopted.Item, "status"); said {
			case "completed", "failed", "cancelled": // what else it says is of a program that may be gone
				return said
			}
		}
		return "interrupted"
	}
	return "idle"
}

func received(s *task.State) *api.Received {
	r := s.Received
	if r == nil || r.Kept {
		return nil
	}
	return &api.Received{
		From: r.From, At: api.Date(r.At), Approve: r.Had.Approve, Allow: r.Had.Allow, AllowTools: r.Had.Tools, BaseURL: r.Had.BaseURL,
		Queue: len(r.Queue), Questions: r.Questions, Answers: r.Answers, Notes: r.Notes(s.Settings),
	}
}

// View is a task opened for reading. Nothing on disk changes by it.
type View struct {
	Ref     Ref
	State   *task.State
	Summary api.Summary
	Labels  overlay.Entry   // of a task of another tool: its labels in Roost
	Log     journal.Reader  // nil while the task has no journal
	Folder  *roofmt.Folder  // nil when there is none, or when its histories are as we wrote them
	Pending []intake.Change // what another program changed, folded into State and not taken in yet

	Unborn bool        // the journal holds no commit yet
	blank  bool        // Unborn, and State is folded from the files
	size   int64       // bytes of Roo's files
	held   func() bool // a process owns it now
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

// Saved returns the newest commit that the task's journal had, by the files beside it: a journal that ends earlier
// lacks its end. 0 = there is no journal.
func (v *View) Saved(ctx context.Context) (uint64, error) {
	if v.Log == nil {
		return 0, nil
	}
	return SavedCommit(ctx, v.Log)
}

// Settled reports whether the task's journal holds the whole task. If not, its next owner takes in the rest.
func (v *View) Settled() bool { return v.Log != nil && !v.blank && len(v.Pending) == 0 }

// Unread returns a *roofmt.UnreadError when a file of the task exists and cannot be read. Views show the rest of such
// a task, and no run continues it.
func (v *View) Unread() error {
	if v.Folder == nil || v.Folder.Unread == nil {
		return nil
	}
	return fmt.Errorf("task %s: %w", v.Ref.ID, v.Folder.Unread)
}

// Read opens a task for reading. With an index of the journal it reads only the page that is shown: older messages
// are read on demand, and damage in them is found at that time, or by the doctor.
func (s *Store) Read(ctx context.Context, ref Ref) (*View, error) {
	v, err := s.read(ctx, ref, false)
	if err != nil || ref.Own {
		return v, err
	}
	if marks, err := s.Overlay(ctx); err == nil { // else it is shown as it is without
		v.Labels = marks[overlay.Key{Source: ref.Source, ID: ref.ID}]
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

// FromView is WithView for a function that has a result.
func FromView[T any](ctx context.Context, s *Store, ref Ref, f func(*View) (T, error)) (out T, err error) {
	err = s.WithView(ctx, ref, func(v *View) error {
		out, err = f(v)
		return err
	})
	return out, err
}

// ReadWhole is Read, except that it reads every commit of the journal and leaves out labels in the overlay.
func (s *Store) ReadWhole(ctx context.Context, ref Ref) (*View, error) { return s.read(ctx, ref, true) }

// ReadUnlabelled is Read without the labels in the overlay, for a caller that needs none: it saves reading the overlay.
func (s *Store) ReadUnlabelled(ctx context.Context, ref Ref) (*View, error) {
	return s.read(ctx, ref, false)
}

// ReadToContinue is Read for a caller that is about to continue the task: a file that cannot be read is an error, a lost
// user's history is reconstructed, as the owner will do it, and the settings have the mode that the histories name.
func (s *Store) ReadToContinue(ctx context.Context, ref Ref) (*View, error) {
	v, err := s.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	seq := v.State.Seq
	if err := cmp.Or(v.Unread(), s.addRows(v.State, v.Folder, 1, v.fold)); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	v.State.Seq = seq // the rows are not in the journal yet
	v.State.Settings.Mode = cmp.Or(v.State.Settings.Mode, v.Summary.Mode)
	return v, nil
}

// read opens a task; whole means that it reads every commit of the journal.
func (s *Store) read(ctx context.Context, ref Ref, whole bool) (*View, error) {
	v := &View{Ref: ref, held: func() bool { return s.Held(ctx, ref) }}
	if err := s.readInto(ctx, v, whole); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	v.Summary = summarise(v)
	return v, nil
}

func (s *Store) readInto(ctx context.Context, v *View, whole bool) error {
	log, err := s.OpenJournal(ctx, v.Ref)
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
			v.State, v.blank = unadopted(ctx, v.Ref, v.Folder), true
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

// foldForeign folds in what another program changed, for this view only. An owner will fold the same when it takes
// the change in.
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
	return v.fold(append(events, intake.ClosedElsewhere(v.State, v.Pending, intake.Program(v.Folder))...)...)
}

// fold folds in events that are not in the journal.
func (v *View) fold(events ...task.Event) error {
	for _, e := range events {
		if err := fold.Event(v.State, 0, e); err != nil {
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

// changed reports whether a history file may differ from the one that we wrote.
func (v *View) changed(mark projection.Watermark) bool {
	return slices.ContainsFunc([]*roofmt.Document{v.Folder.UI, v.Folder.API}, func(doc *roofmt.Document) bool {
		return doc.Source != "" && !mark.Wrote(doc)
	})
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

// readFolder reads the folder and the watermark that matches it: an owner may be writing projections at the same
// moment, and its new bytes must not look foreign.
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

// unadopted returns the state that adopting the folder would give.
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

// notes returns the Noter that collects, during the read, what a state needs of a folder's messages.
func notes(kind roofmt.Kind) roofmt.Noter {
	if kind == roofmt.API {
		return task.NewNotes(task.API)
	}
	return task.NewNotes(task.UI)
}

// Sent returns the part of a task's API history that a request sends, as far as the journal shows it without the
// messages' bytes: for a long condensed task, it reads little. at are the indexes of these messages in the whole
// history. For a task of Cline's that was never continued in Roost, it returns the whole history, with the tags that
// adopting would set.
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

// wholeHistory returns the API history of a task without a journal, tagged.
func (v *View) wholeHistory() ([][]byte, error) {
	history, err := v.State.RawAPI()
	if err != nil || v.Folder == nil || len(history) != v.Folder.API.Len() || !v.Ref.tags(v.Folder) {
		return history, err
	}
	return intake.SentByCline(v.Folder, history), nil
}

// maxKnownFiles bounds, in bytes, the task_metadata.json that FilesKnownElsewhere reads: the file is held in memory.
const maxKnownFiles = 256 << 20

// FilesKnownElsewhere returns what another tool recorded about the files of a task: its entries of
// task_metadata.json, from the task's folder or, when that file is unreadable, from the adoption. It leaves out
// Roost's own entries: a fork derives them from its history.
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
