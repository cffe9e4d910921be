package intake

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/foreign"
	"github.com/roost-dev/roost/task/rewind"
)

// Change is a file that another program changed, and what Roost makes of it.
type Change struct {
	File    string
	Event   *task.ForeignImported // nil when Roost does not apply the change
	Refused string                // the reason
	Kept    string                // the blob that holds the file's bytes; "" for a reader
	Added   int

	// Rewound: the other program rewound the task. What it wrote after that are further changes.
	Rewound *task.Rewound

	// Restored: no other program changed the file. The journal lost messages by damage, and a file that Roost had
	// written still holds them.
	Restored bool

	Changed int
	Lacking int

	Answers []string // the ids of calls whose results are new in it
	Replied bool     // a reply of the model is new in it
}

// takeIn makes the event that takes in some elements of a history file. It notes which calls have a result in them, and
// whether the model replied.
func (c *Change) takeIn(doc *roofmt.Document, h task.History, m foreign.Match, elements [][]byte, list []int) {
	c.Event = &task.ForeignImported{History: h, Blob: doc.Source, Size: doc.SourcePrint.Size, Rows: m.Rows}
	for _, i := range list {
		c.Event.Rows[i].Off, c.Event.Rows[i].Len = doc.Spans[i].Off, doc.Spans[i].Len
		if h == task.API {
			c.Answers = append(c.Answers, foreign.ResultsIn(elements[i])...)
			c.Replied = c.Replied || esjson.TextOf(elements[i], "role") == "assistant"
		}
	}
}

// ClosedElsewhere returns the events for questions that another program settled. A question is closed when its call
// has a result now, or when the model replied after it; a run that waited for it has ended. Questions about damage
// are Roost's own.
func ClosedElsewhere(s *task.State, changes []Change, by string) (out []task.Event) {
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
		out = append(out, api.QuestionClosed{Question: q.Question, By: by, Reason: "answered elsewhere"})
		if run := s.Run; run.Rests() && run.Waiting == q.Question {
			out = append(out, task.RunEnded{Run: run.ID, Outcome: "interrupted", Reason: "it was answered in another program"})
		}
	}
	return out
}

// Changes compares the folder with what Roost wrote last. A file whose bytes are Roost's is not compared. The two
// histories are one state: when one of them cannot be applied, the other is not applied either.
func Changes(s *task.State, folder *roofmt.Folder, w projection.Watermark) []Change {
	if steps, ok := rewoundElsewhere(s, folder, w); ok {
		return steps
	}
	waiting, err := s.ResultsSoFar()
	if err != nil {
		return []Change{{File: folder.API.Name, Refused: err.Error()}}
	}
	return changesOf(s.UI(), s.API(), waiting, folder, w)
}

// changesOf compares the folder with two histories. waiting is the user turn that ends the projection of a task that
// waits for a subtask: as the last message of a file it is not new.
func changesOf(ui, api []*task.Message, waiting []byte, folder *roofmt.Folder, w projection.Watermark) []Change {
	var out []Change
	for _, doc := range []*roofmt.Document{folder.UI, folder.API} {
		h, ours, derived := task.UI, ui, []byte(nil)
		if doc.Kind == roofmt.API {
			h, ours, derived = task.API, api, waiting
		}
		if doc.State == roofmt.Missing && doc.Source == "" {
			continue // there is nothing to take in; the projection writes it again
		}
		if w.Wrote(doc) {
			continue
		}
		if change, changed := judge(doc, h, ours, derived, w.Knows(doc.Name)); changed {
			out = append(out, change)
		}
	}
	return refuseTogether(out)
}

// refuseTogether refuses all changes when one of them is refused: one history alone would no longer match the other.
func refuseTogether(list []Change) []Change {
	bad := slices.IndexFunc(list, func(c Change) bool { return c.Refused != "" })
	for i := range list {
		if bad >= 0 && list[i].Refused == "" {
			list[i].Event = nil
			list[i].Refused = fmt.Sprintf("it belongs to %s, which cannot be taken over", list[bad].File)
		}
	}
	return list
}

// judge decides what a changed file means. Roost applies a change only when the file is whole and holds everything
// that Roost acknowledged.
func judge(doc *roofmt.Document, h task.History, ours []*task.Message, derived []byte, known bool) (Change, bool) {
	change := Change{File: doc.Name}
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
		// It may be an older projection of Roost's, or the leftover of an interrupted write that has nothing new.
		return change, false
	}
	change.Added, change.Changed = len(m.Added), len(m.Changed)
	added := m.New(elements)
	for _, msg := range m.Lacking {
		if !msg.Missing && !foreign.Expendable(msg, added) {
			change.Lacking++
		}
	}
	if change.Lacking > 0 {
		change.Refused = fmt.Sprintf("it lacks %d messages that Roost has (another window wrote it from its memory)", change.Lacking)
		return change, true
	}
	change.takeIn(doc, h, m, elements, slices.Concat(m.Added, m.Changed))
	return change, true
}

// whole reports whether every element of a document is there: in its own file, or, when a writer died between removing
// the old file and renaming the new one, in the temporary file that it left.
func whole(doc *roofmt.Document) bool {
	return doc.Intact() || doc.State == roofmt.Missing && doc.Recovered() && doc.Tail.Clean()
}

// prefixOf reports whether the file lacks Roost's newest messages and nothing else.
func prefixOf(m foreign.Match, ours []*task.Message) bool {
	n := len(ours) - len(m.Lacking)
	return len(m.Lacking) > 0 && m.Lacking[0] == ours[n] && n == len(m.Rows)
}

// staleLock is the age from which one of Roo's locks has no living holder.
const staleLock = 31 * time.Second

// locked reports whether a living program held a lock on one of the files when the folder was listed. Such a lock
// counts even if it is gone now: its holder may have replaced the files after they were read.
func locked(folder *roofmt.Folder) bool {
	for _, name := range folder.Locks {
		info, err := os.Lstat(filepath.Join(folder.Dir, name+".lock"))
		if err != nil || time.Since(info.ModTime()) <= staleLock {
			return true
		}
	}
	return false
}

// Program names the program that writes a folder.
func Program(folder *roofmt.Folder) string {
	if folder.Tool == roofmt.UnknownTool {
		return "another program"
	}
	return string(folder.Tool)
}

// rewoundElsewhere reports whether another program rewound the task, and makes one rewind of it, which can be undone
// like Roost's own: the hidden messages stay as a branch. It decides by the content of the files, and only where no
// other act can have made them:
//
//   - Both files were cut, as Roo cuts them, and nothing else changed.
//   - Messages are gone that the other program itself wrote or knew. A window that writes an older state from its
//     memory has those, so the program removed them on purpose, and rows after the cut may be new: the user edited a
//     message and sent it again.
//   - In that case one file may be cut alone: the UI history, because no API message goes with its rows, or because Roo
//     died between its two writes, and the rewind that it began is finished; or replies in the API history, which a
//     user removed by hand.
//
// Every other change is refused as usual: Roost's branch stays the head, and the file's bytes are kept.
func rewoundElsewhere(s *task.State, folder *roofmt.Folder, w projection.Watermark) ([]Change, bool) {
	ui, ok := cutSide(s.UI(), task.UI, nil, folder.UI, w)
	if !ok || !w.Knows(folder.UI.Name) {
		return nil, false
	}
	waiting, err := s.ResultsSoFar()
	if err != nil {
		return nil, false
	}
	api, ok := cutSide(s.API(), task.API, waiting, folder.API, w)
	if !ok || !w.Knows(folder.API.Name) {
		return nil, false
	}
	e, err := rewindOf(s, ui, api, Program(folder))
	if err != nil {
		return nil, false
	}
	out := []Change{{File: ui.doc.Name, Rewound: &e, Lacking: len(ui.gone) + len(api.gone)}}
	for _, side := range []side{ui, api} {
		if len(side.added) > 0 {
			change := Change{File: side.doc.Name, Added: len(side.added)}
			change.takeIn(side.doc, side.h, side.match, side.left, side.added)
			out = append(out, change)
		}
	}
	return out, true
}

// rewindOf returns the rewind that explains the content of both files.
func rewindOf(s *task.State, ui, api side, by string) (task.Rewound, error) {
	kept := len(s.UI()) - len(ui.gone)
	added := len(ui.added)+len(api.added) > 0
	onPurpose := theirs(ui.gone)
	switch {
	case len(ui.gone) == 0 && !added && theirs(api.gone) && last(api.gone, s.API()):
		return rewind.ModelAs(s, api.gone, by)
	case len(ui.gone) == 0, kept == 0, !last(ui.gone, s.UI()), !onPurpose && (added || len(api.gone) == 0):
		return task.Rewound{}, rewind.ErrNoRewind
	}
	e, err := rewind.As(s, kept, api.gone, by)
	if errors.Is(err, rewind.ErrNoRewind) && !added && len(api.gone) == 0 {
		e, err = rewind.At(s, kept, false)
		e.By = by
	}
	return e, err
}

// theirs reports whether the same program that wrote messages removed them. Messages that Roo removes on its own when
// it resumes do not count.
func theirs(gone []*task.Message) bool {
	return slices.ContainsFunc(gone, func(m *task.Message) bool {
		return m.Foreign && m.Kind() != "user" && !foreign.Expendable(m, nil)
	})
}

// last reports whether exactly the newest messages of a history are gone.
func last(gone, of []*task.Message) bool {
	return len(gone) <= len(of) && slices.Equal(gone, of[len(of)-len(gone):])
}

// side is the file of one history, read as some of Roost's messages followed by new ones.
type side struct {
	doc   *roofmt.Document
	match foreign.Match
	gone  []*task.Message
	added []int // elements, the last ones
	left  [][]byte
	h     task.History
}

// cutSide returns false for a file that is not of that form. It does not compare tags.
func cutSide(ours []*task.Message, h task.History, derived []byte, doc *roofmt.Document, w projection.Watermark) (side, bool) {
	s := side{doc: doc, h: h}
	if w.Wrote(doc) {
		return s, true
	}
	if !whole(doc) || doc.Recovered() || doc.Len() == 0 {
		return s, false
	}
	left, err := elementsIn(doc, derived)
	if err != nil {
		return s, false
	}
	s.left, s.match = left, foreign.Compare(ours, h, left)
	s.gone, s.added = s.match.Lacking, s.match.Added
	if n := len(s.added); n > 0 && s.added[0] != len(left)-n {
		return s, false
	}
	byID := map[uint64]*task.Message{}
	for _, o := range ours {
		byID[o.ID] = o
	}
	for _, i := range s.match.Changed {
		if !esjson.Equal(untagged(left[i]), untagged(byID[s.match.Rows[i].Message].Raw())) {
			return s, false
		}
	}
	return s, true
}

// elementsIn reads all elements of a file, except a last one that equals derived, the turn with which a task that waits
// for a subtask is projected: no journal holds it.
func elementsIn(doc *roofmt.Document, derived []byte) ([][]byte, error) {
	out := make([][]byte, 0, doc.Len())
	for raw, err := range doc.All() {
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	if n := len(out); derived != nil && n > 0 && esjson.Equal(out[n-1], derived) {
		out = out[:n-1]
	}
	return out, nil
}

func untagged(raw []byte) []byte {
	return esjson.Remove(esjson.Remove(raw, "condenseParent"), "truncationParent")
}
