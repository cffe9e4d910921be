package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/foreign"
)

// Intake is a file that another program changed, and what is made of it.
type Intake struct {
	File    string
	Event   *task.ForeignImported // nil when the change is not applied
	Refused string                // why not
	Kept    string                // the blob that holds the file's bytes; "" for a reader
	Added   int

	// Rewound: it took the task back. What it wrote behind that are further changes.
	Rewound *task.Rewound

	// Restored: no other program did it. The journal was damaged, and a file that we
	// had written holds what it lost.
	Restored bool
	Changed  int
	Lacking  int

	Answers []string // the ids of calls whose results are new in it
	Replied bool     // a reply of the model is new in it
}

// saw notes what new elements of the model's side say of calls.
func (c *Intake) saw(h task.History, elements [][]byte, list ...[]int) {
	if h != task.API {
		return
	}
	for _, i := range slices.Concat(list...) {
		c.Answers = append(c.Answers, foreign.ResultsIn(elements[i])...)
		role, _ := esjson.GetString(elements[i], "role")
		c.Replied = c.Replied || role == "assistant"
	}
}

// elsewhere are the events that end what another program decided: a question whose call has a result now, or which the model went on
// without, is closed, and a run that waited for it is over. Damage is asked about by us alone.
func elsewhere(s *task.State, changes []Intake, by string) (out []task.Event) {
	var answers []string
	replied := false
	for _, c := range changes {
		if c.Event != nil {
			answers, replied = append(answers, c.Answers...), replied || c.Replied
		}
	}
	for _, q := range s.Questions {
		if q.Kind == "damage" || q.Call == "" && !replied || q.Call != "" && !slices.Contains(answers, q.Call) {
			continue
		}
		out = append(out, task.QuestionClosed{Question: q.Question, By: by, Reason: "answered elsewhere"})
		if run := s.Run; run.Rests() && run.Waiting == q.Question {
			out = append(out, task.RunEnded{Run: run.ID, Outcome: "interrupted", Reason: "it was answered in another program"})
		}
	}
	return out
}

// ErrForeignBusy: another program is writing the task's files just now.
var ErrForeignBusy = errors.New("another program is writing this task")

// foreignChanges compares the folder with what we know we wrote. A file whose
// bytes are ours is never looked into. The two histories are one state: when one
// of them cannot be applied, the other is not applied either.
func foreignChanges(s *task.State, folder *roofmt.Folder, w projection.Watermark) []Intake {
	if steps, ok := rewoundElsewhere(s, folder, w); ok {
		return steps
	}
	waiting, err := s.ResultsSoFar()
	if err != nil {
		return []Intake{{File: folder.API.Name, Refused: err.Error()}}
	}
	return changesOf(s.UI(), s.API(), waiting, folder, w)
}

// changesOf compares the folder with two histories. waiting is the user turn that a task
// which waits for a subtask is projected with: as the last one of a file it is nothing new.
func changesOf(ui, api []*task.Message, waiting []byte, folder *roofmt.Folder, w projection.Watermark) []Intake {
	var out []Intake
	for _, doc := range []*roofmt.Document{folder.UI, folder.API} {
		h, ours, derived := task.UI, ui, []byte(nil)
		if doc.Kind == roofmt.API {
			h, ours, derived = task.API, api, waiting
		}
		if doc.State == roofmt.Missing && doc.Source == "" {
			continue // nothing to take in; the projection puts it back
		}
		if w.Wrote(doc) {
			continue
		}
		if change, foreign := judge(doc, h, ours, derived, w.Knows(doc.Name)); foreign {
			out = append(out, change)
		}
	}
	return together(out)
}

// together refuses what stands beside a refused file: taken in alone it would
// make the two histories drift apart.
func together(list []Intake) []Intake {
	for _, bad := range list {
		if bad.Refused == "" {
			continue
		}
		for i := range list {
			if list[i].Refused == "" {
				list[i].Event = nil
				list[i].Refused = fmt.Sprintf("it goes with %s, which cannot be taken over", bad.File)
			}
		}
		break
	}
	return list
}

// judge decides what a foreign file means. It is applied only when it is whole
// and has everything that we acknowledged.
func judge(doc *roofmt.Document, h task.History, ours []*task.Message, derived []byte, known bool) (Intake, bool) {
	change := Intake{File: doc.Name}
	switch {
	case !whole(doc):
		change.Refused = fmt.Sprintf("it is %s", doc.State)
		return change, true
	case doc.Len() == 0 && len(ours) > 0:
		change.Refused = "it has become an empty list"
		return change, true
	}
	elements, err := elementsIn(doc, derived)
	if err != nil {
		change.Refused = err.Error()
		return change, true
	}
	m := foreign.Compare(ours, h, elements)
	if m.Same() {
		return change, false
	}
	if (!known || doc.Recovered()) && len(m.Added) == 0 && len(m.Changed) == 0 && prefixOf(m, ours) {
		// An older projection of ours, for all we know; or the leftover of an
		// interrupted write that has nothing new.
		return change, false
	}
	change.Added, change.Changed = len(m.Added), len(m.Changed)
	for _, msg := range m.Lacking {
		if !msg.Missing && !foreign.Expendable(msg, m.New(elements)) {
			change.Lacking++
		}
	}
	if change.Lacking > 0 {
		change.Refused = fmt.Sprintf("it lacks %d messages that Roost has (another window wrote it from its memory)", change.Lacking)
		return change, true
	}
	event := task.ForeignImported{History: h, Blob: doc.Source, Size: doc.SourcePrint.Size, Rows: m.Rows}
	for _, list := range [][]int{m.Added, m.Changed} {
		for _, i := range list {
			event.Rows[i].Off, event.Rows[i].Len = doc.Spans[i].Off, doc.Spans[i].Len
		}
	}
	change.Event = &event
	change.saw(h, elements, m.Added, m.Changed)
	return change, true
}

// whole reports whether every element of a document is there: in its own file, or,
// when a writer died between taking the old file away and putting the new one in
// its place, in what it left beside.
func whole(doc *roofmt.Document) bool {
	return doc.Intact() || doc.State == roofmt.Missing && doc.Recovered() && doc.Tail.Clean()
}

// prefixOf reports whether only our newest messages are lacking.
func prefixOf(m foreign.Match, ours []*task.Message) bool {
	n := len(ours) - len(m.Lacking)
	return len(m.Lacking) > 0 && m.Lacking[0] == ours[n] && n == len(m.Rows)
}

// staleLock is the age at which a lock of Roo has no holder any more.
const staleLock = 31 * time.Second

// locked reports whether a living program held a lock on one of the files when the
// folder was listed. A lock that has gone since then was given up after the files had
// been read, perhaps, and so what was read may be what its holder replaced.
func locked(folder *roofmt.Folder) bool {
	for _, name := range folder.Locks {
		info, err := os.Lstat(filepath.Join(folder.Dir, name+".lock"))
		if err != nil || time.Since(info.ModTime()) <= staleLock {
			return true
		}
	}
	return false
}

// takeIn commits what another program changed. A state that cannot be applied is
// kept as a blob and reported; our branch stays the head.
func (t *Task) takeIn(ctx context.Context, folder *roofmt.Folder) ([]Intake, error) {
	mark := projection.Read(t.Ref.Log)
	histories := mark
	if t.hit() {
		histories = projection.Watermark{}
	}
	if err := t.load(folder, histories); err != nil {
		return nil, err
	}
	changes := foreignChanges(t.state, folder, histories)
	for i := range changes {
		changes[i].Restored = t.hit() && mark.Wrote(docOf(folder, changes[i].File)) && changes[i].Event != nil
	}
	events, err := t.intakeEvents(ctx, folder, changes)
	if err != nil {
		return nil, err
	}
	small, kept, err := t.takeInSmall(ctx, folder, mark)
	if err != nil {
		return nil, err
	}
	changes, events = append(changes, small...), append(events, kept...)
	return changes, t.took(ctx, changes, events)
}

// hit reports whether the journal lost something. Then Roo's files, also those
// that we wrote, may be all that is left of a message: they are compared one by
// one and not taken for a picture of the journal, which would wipe it out.
func (t *Task) hit() bool { return len(t.state.Problems) > 0 }

func docOf(folder *roofmt.Folder, name string) *roofmt.Document {
	if name == folder.API.Name {
		return folder.API
	}
	return folder.UI
}

// load brings the histories into memory when they are to be compared.
func (t *Task) load(folder *roofmt.Folder, mark projection.Watermark) error {
	if mark.Wrote(folder.UI) && mark.Wrote(folder.API) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.state.Load(); err != nil {
		return fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	return nil
}

// took commits the events of an intake, if there are any, and notes it for
// whoever asks for it later.
func (t *Task) took(ctx context.Context, changes []Intake, events []task.Event) error {
	t.proj.takenMu.Lock()
	t.proj.taken = append(t.proj.taken, changes...)
	t.proj.takenMu.Unlock()
	if len(events) == 0 {
		return nil
	}
	if err := t.Commit(ctx, events...); err != nil {
		return err
	}
	return t.Barrier(ctx)
}

// Intakes are all changes of other programs that were met since the task was
// taken over: those that Own found, and those that came while it was owned, which
// Close takes in. Ask after Close to hear of the last ones.
func (t *Task) Intakes() []Intake {
	t.proj.takenMu.Lock()
	defer t.proj.takenMu.Unlock()
	return slices.Clone(t.proj.taken)
}

// intakeEvents keeps the bytes of changed files and makes the events of changes.
func (t *Task) intakeEvents(ctx context.Context, folder *roofmt.Folder, changes []Intake) ([]task.Event, error) {
	var events []task.Event
	next := t.state.NextMessage()
	for i, change := range changes {
		if change.Rewound != nil {
			events = append(events, *change.Rewound)
			continue
		}
		doc := docOf(folder, change.File)
		name := doc.Source
		if name == "" {
			name = doc.Name
		}
		var hash string
		var size int64
		if doc.Source != "" { // else it cannot be read, and there is nothing to keep
			var err error
			if hash, size, err = t.keepDocument(ctx, doc); err != nil {
				return nil, fmt.Errorf("task %s: keep the changed %s: %w", t.Ref.ID, name, err)
			}
		}
		changes[i].Kept = hash
		if change.Event == nil {
			if !t.refusedBefore(name, hash) {
				events = append(events, task.ForeignRefused{Name: name, Blob: hash, Size: size, Reason: change.Refused})
			}
			continue
		}
		changes[i].Event.Blob, changes[i].Event.Size = hash, size
		changes[i].Event.Tool, changes[i].Event.First = t.Ref.Tool, next
		next += changes[i].Event.News()
		events = append(events, *changes[i].Event)
	}
	return append(events, elsewhere(t.state, changes, toolOf(folder))...), nil
}

// refusedBefore: the same bytes are kept already. A window that writes its memory
// again and again must not fill the journal.
func (t *Task) refusedBefore(name, hash string) bool {
	return hash != "" && slices.ContainsFunc(t.state.Refused, func(r task.ForeignRefused) bool {
		return r.Name == name && r.Blob == hash
	})
}

// takeInSmall keeps history_item.json and task_metadata.json where they cannot be
// read any more, before they are written anew. Readable ones are merged by the
// projection, and nothing of them is lost.
func (t *Task) takeInSmall(ctx context.Context, folder *roofmt.Folder, mark projection.Watermark) ([]Intake, []task.Event, error) {
	var changes []Intake
	var events []task.Event
	for _, f := range []struct {
		name  string
		data  []byte
		print roofmt.Fingerprint
	}{
		{roofmt.ItemName, folder.Item, folder.ItemPrint},
		{roofmt.MetadataName, folder.Metadata, folder.MetadataPrint},
	} {
		if !f.print.Exists || f.data != nil || mark.Files[f.name].Print() == f.print {
			continue
		}
		hash, size, err := t.keepInside(ctx, folder.Dir, f.name)
		if err != nil {
			continue // it cannot be read, and so it will not be replaced either
		}
		change := Intake{File: f.name, Refused: "it is no JSON object any more", Kept: hash}
		changes = append(changes, change)
		if !t.refusedBefore(f.name, hash) {
			events = append(events, task.ForeignRefused{Name: f.name, Blob: hash, Size: size, Reason: change.Refused})
		}
	}
	return changes, events, nil
}
