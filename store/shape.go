package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// What of a history is sent, Cline keeps beside it: classic Cline as a range of indexes in its list of tasks, sessions in a file
// that stands for their beginning. Roost and Roo keep it in the messages, as tags by which a marker or a summary hides others. So
// that a task goes on with what Cline would have sent, its bookkeeping is turned into tags when it becomes one of ours; nothing
// of the history goes away by that, and Roo reads it, too.

// cutID and condensedID are what the tags refer to.
const (
	cutID       = "cline-deleted-range"
	condensedID = "cline-compaction"
)

// insertedKey marks a message that stands in no file of the other tool's.
const insertedKey = "insertedBy"

// piece is one message of a shaped history: one that was there, by its place, or a new one.
type piece struct {
	from int // -1 = new
	raw  []byte
}

// shape gives the history with its tags; nil when Cline would send all of it.
func shape(folder *roofmt.Folder, history [][]byte) []piece {
	if compacted, n := folder.Compacted(); n > 0 && n <= len(history) {
		return shapeCompacted(history, compacted, n)
	}
	if first, last, ok := folder.Deleted(); ok && last < len(history)-1 {
		return shapeDeleted(history, first, last)
	}
	return nil
}

// shapeDeleted hides what classic Cline deleted, first to last. The reply before it carries the marker: a message that says that
// something is missing would be one that Cline did not send. Results whose calls are hidden are not sent either.
func shapeDeleted(history [][]byte, first, last int) []piece {
	out := make([]piece, 0, len(history)+1)
	id := esjson.Quote(nil, cutID)
	hide := func(raw []byte) []byte { return esjson.Set(raw, "truncationParent", id) }
	for i, raw := range history {
		switch {
		case i == first-1:
			raw = esjson.Set(esjson.Set(raw, "isTruncationMarker", []byte("true")), "truncationId", id)
		case i >= first && i <= last:
			raw = hide(raw)
		case i == last+1:
			if rest, changed := withoutResults(raw); changed {
				out = append(out, piece{i, hide(raw)})
				if rest != nil {
					out = append(out, piece{-1, esjson.Set(rest, insertedKey, []byte(`"roost"`))})
				}
				continue
			}
		}
		out = append(out, piece{i, raw})
	}
	return out
}

// withoutResults takes the tool results out of a user turn; nil when nothing is left of it.
func withoutResults(raw []byte) (rest []byte, changed bool) {
	content, ok := esjson.Get(raw, "content")
	if role, _ := esjson.GetString(raw, "role"); role != "user" || !ok || esjson.TypeOf(content) != esjson.TypeArray {
		return raw, false
	}
	var keep [][]byte
	for block := range esjson.Array(content) {
		if typ, _ := esjson.GetString(block, "type"); typ == "tool_result" {
			changed = true
			continue
		}
		keep = append(keep, block)
	}
	if !changed {
		return raw, false
	}
	if len(keep) == 0 {
		return nil, true
	}
	return esjson.Set(raw, "content", slices.Concat([]byte("["), bytes.Join(keep, []byte(",")), []byte("]"))), true
}

// shapeCompacted puts what a session is sent as in front of what came after.
func shapeCompacted(history, compacted [][]byte, n int) []piece {
	out := make([]piece, 0, len(history)+len(compacted))
	id := esjson.Quote(nil, condensedID)
	for i, raw := range history[:n] {
		out = append(out, piece{i, esjson.Set(raw, "condenseParent", id)})
	}
	for i, raw := range compacted {
		if i == 0 {
			raw = esjson.Set(esjson.Set(raw, "isSummary", []byte("true")), "condenseId", id)
		}
		out = append(out, piece{-1, esjson.Set(raw, insertedKey, []byte(`"roost"`))})
	}
	for i, raw := range history[n:] {
		out = append(out, piece{n + i, raw})
	}
	return out
}

// shaped reports whether a task's history is turned when it is adopted: one that goes on in another tool's folder keeps that
// tool's bookkeeping.
func shaped(ref Ref, folder *roofmt.Folder) bool {
	return ref.Own || !goesOnInPlace(ref, folder)
}

// shapeEvent says in one event what becomes of the API history: ours are the numbers of its messages, have their bytes as they
// stand now, and want the folder's. It is nil when nothing does.
func (t *Task) shapeEvent(ctx context.Context, folder *roofmt.Folder, ours []uint64, have, want [][]byte, next uint64) (*task.ForeignImported, error) {
	pieces := shape(folder, want)
	if pieces == nil || len(ours) != len(want) {
		return nil, nil
	}
	e := task.ForeignImported{Tool: "cline", History: task.API, First: next}
	blob := []byte{'['}
	for _, p := range pieces {
		var row task.ForeignRow
		if p.from >= 0 {
			row.Message = ours[p.from]
		}
		if p.from < 0 || !bytes.Equal(p.raw, have[p.from]) {
			if len(blob) > 1 {
				blob = append(blob, ',')
			}
			row.Off, row.Len = int64(len(blob)), int64(len(p.raw))
			blob = append(blob, p.raw...)
		}
		e.Rows = append(e.Rows, row)
	}
	blob = append(blob, ']')
	hash, err := t.PutBlob(ctx, blob)
	if err != nil {
		return nil, fmt.Errorf("task %s: keep what is sent of it: %w", t.Ref.ID, err)
	}
	e.Blob, e.Size = hash, int64(len(blob))
	return &e, nil
}

// elements are all messages of a document.
func elements(doc *roofmt.Document) ([][]byte, error) {
	out := make([][]byte, 0, doc.Len())
	for raw, err := range doc.All() {
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}

// shapeAdopted is the event that follows an adoption in the same commit, nil when there is none to follow.
func (t *Task) shapeAdopted(ctx context.Context, folder *roofmt.Folder) (*task.ForeignImported, error) {
	if !shaped(t.Ref, folder) || !curtailed(folder) {
		return nil, nil
	}
	list, err := elements(folder.API)
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	first := t.state.NextMessage() + uint64(folder.UI.Len()) // an adoption numbers the UI history first
	ours := make([]uint64, len(list))
	for i := range ours {
		ours[i] = first + uint64(i)
	}
	return t.shapeEvent(ctx, folder, ours, list, list, first+uint64(len(list)))
}

// curtailed reports whether Cline sends less of a history than there is, without reading the history.
func curtailed(folder *roofmt.Folder) bool {
	if _, _, ok := folder.Deleted(); ok {
		return true
	}
	_, n := folder.Compacted()
	return n > 0
}

// shapeAgain does for a history that the other tool went on with what adopting it does.
func (t *Task) shapeAgain(ctx context.Context, folder *roofmt.Folder) error {
	if !curtailed(folder) {
		return nil
	}
	want, err := elements(folder.API)
	if err != nil {
		return fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	var ours []uint64
	var have [][]byte
	for _, m := range originalMessages(t.state.API()) {
		ours, have = append(ours, m.ID), append(have, m.Raw())
	}
	e, err := t.shapeEvent(ctx, folder, ours, have, want, t.state.NextMessage())
	if e == nil || err != nil {
		return err
	}
	if err := t.Commit(ctx, *e); err != nil {
		return err
	}
	return t.Barrier(ctx)
}

// originalMessages are those of a history that stood in the other tool's file.
func originalMessages(list []*task.Message) []*task.Message {
	return slices.DeleteFunc(slices.Clone(list), func(m *task.Message) bool {
		by, _ := esjson.GetString(m.Raw(), insertedKey)
		return by == "roost"
	})
}

// Sent is what of a task's API history is sent, as far as that can be said without looking into messages: of a long task
// that was condensed, little is read. at are the places of these messages in the whole history. For a task of Cline's that
// was never continued in Roost it is all of it, with the tags that it would get.
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
	if err != nil || v.Folder == nil || len(history) != v.Folder.API.Len() || !shaped(v.Ref, v.Folder) {
		return history, err
	}
	if pieces := shape(v.Folder, history); pieces != nil {
		history = history[:0:0]
		for _, p := range pieces {
			history = append(history, p.raw)
		}
	}
	return history, nil
}
