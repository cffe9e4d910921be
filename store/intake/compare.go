package intake

import (
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

	// Restored: no other program changed the file. The journal was damaged, and a file that Roost had written holds
	// what the journal lost.
	Restored bool

	Changed int
	Lacking int

	Answers []string // the ids of calls whose results are new in it
	Replied bool     // a reply of the model is new in it
}

// note records which calls have a result, and whether the model replied, in new elements of the API history.
func (c *Change) note(h task.History, elements [][]byte, list ...[]int) {
	if h != task.API {
		return
	}
	for _, i := range slices.Concat(list...) {
		c.Answers = append(c.Answers, foreign.ResultsIn(elements[i])...)
		role, _ := esjson.GetString(elements[i], "role")
		c.Replied = c.Replied || role == "assistant"
	}
}

// ClosedElsewhere are the events that close what another program decided: a question whose call has a result now, or
// after which the model replied, is closed, and a run that waited for it has ended. Questions about damage are Roost's
// own.
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

// judge decides what a changed file means. Roost applies it only when it is whole and has everything that Roost
// acknowledged.
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
	change.note(h, elements, m.Added, m.Changed)
	return change, true
}

// whole reports whether every element of a document is there: in its own file, or, when a writer died between removing
// the old file and renaming the new one, in the temporary file that it left.
func whole(doc *roofmt.Document) bool {
	return doc.Intact() || doc.State == roofmt.Missing && doc.Recovered() && doc.Tail.Clean()
}

// prefixOf reports whether only Roost's newest messages are lacking.
func prefixOf(m foreign.Match, ours []*task.Message) bool {
	n := len(ours) - len(m.Lacking)
	return len(m.Lacking) > 0 && m.Lacking[0] == ours[n] && n == len(m.Rows)
}

// staleLock is the age at which a lock of Roo has no holder any more.
const staleLock = 31 * time.Second

// locked reports whether a living program held a lock on one of the files when the folder was listed. A lock that is
// gone since then may have been released after the files were read, and so the holder may have replaced what was read.
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
	if folder.Origin.Tool == roofmt.UnknownTool {
		return "another program"
	}
	return string(folder.Origin.Tool)
}
