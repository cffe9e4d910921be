package intake

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// Cline records outside of the history which part of it it sends: classic Cline as a range of indexes in its list of
// tasks, sessions in a file that replaces their beginning. Roost and Roo record it in the messages, as tags by which a
// marker or a summary hides others. So that Roost sends what Cline would have sent, Cline's records are turned into tags
// when Roost takes over the task. No message goes away by that, and Roo can read the result.

// cutID and condensedID are the ids that the tags refer to.
const (
	cutID       = "cline-deleted-range"
	condensedID = "cline-compaction"
)

// insertedKey marks a message that is in no file of the other tool.
const insertedKey = "insertedBy"

// tagged is one message of a tagged history: an original one, by its index, or a new one.
type tagged struct {
	from int // -1 = new
	raw  []byte
}

// tagHistory is the history with its tags; nil when Cline would send all of it.
func tagHistory(folder *roofmt.Folder, history [][]byte) []tagged {
	if compacted, n := folder.Compacted(); n > 0 && n <= len(history) {
		return tagCompacted(history, compacted, n)
	}
	if first, last, ok := folder.Deleted(); ok && last < len(history)-1 {
		return tagDeleted(history, first, last)
	}
	return nil
}

// tagDeleted hides the messages that classic Cline deleted, first to last. The reply before them carries the marker: a
// message of its own for the marker would be one that Cline did not send. It also hides results whose calls are hidden.
func tagDeleted(history [][]byte, first, last int) []tagged {
	out := make([]tagged, 0, len(history)+1)
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
				out = append(out, tagged{i, hide(raw)})
				if rest != nil {
					out = append(out, tagged{-1, esjson.Set(rest, insertedKey, []byte(`"roost"`))})
				}
				continue
			}
		}
		out = append(out, tagged{i, raw})
	}
	return out
}

// withoutResults removes the tool results from a user turn; rest is nil when nothing is left of it.
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
	return esjson.Set(raw, "content", esjson.List(keep)), true
}

// tagCompacted puts the compacted beginning of a session before the messages that follow it.
func tagCompacted(history, compacted [][]byte, n int) []tagged {
	out := make([]tagged, 0, len(history)+len(compacted))
	id := esjson.Quote(nil, condensedID)
	for i, raw := range history[:n] {
		out = append(out, tagged{i, esjson.Set(raw, "condenseParent", id)})
	}
	for i, raw := range compacted {
		if i == 0 {
			raw = esjson.Set(esjson.Set(raw, "isSummary", []byte("true")), "condenseId", id)
		}
		out = append(out, tagged{-1, esjson.Set(raw, insertedKey, []byte(`"roost"`))})
	}
	for i, raw := range history[n:] {
		out = append(out, tagged{n + i, raw})
	}
	return out
}

// tagEvent is one event that tags the API history: ours are the numbers of its messages, have their bytes in the journal,
// and want the folder's. It is nil when there is nothing to tag.
func (t Target) tagEvent(
	ctx context.Context, folder *roofmt.Folder, ours []uint64, have, want [][]byte, next uint64,
) (*task.ForeignImported, error) {
	pieces := tagHistory(folder, want)
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
		return nil, fmt.Errorf("task %s: keep its tagged messages: %w", t.ID, err)
	}
	e.Blob, e.Size = hash, int64(len(blob))
	return &e, nil
}

// tagAdopted is the event that follows an adoption in the same commit; nil when there is nothing to tag.
func (t Target) tagAdopted(ctx context.Context, folder *roofmt.Folder) (*task.ForeignImported, error) {
	if !t.Tag || !curtailed(folder) {
		return nil, nil
	}
	list, err := elementsIn(folder.API, nil)
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", t.ID, err)
	}
	first := t.State().NextMessage() + uint64(folder.UI.Len()) // an adoption numbers the UI history first
	ours := make([]uint64, len(list))
	for i := range ours {
		ours[i] = first + uint64(i)
	}
	return t.tagEvent(ctx, folder, ours, list, list, first+uint64(len(list)))
}

// curtailed reports whether Cline sends only a part of the history. It does not read the history.
func curtailed(folder *roofmt.Folder) bool {
	if _, _, ok := folder.Deleted(); ok {
		return true
	}
	_, n := folder.Compacted()
	return n > 0
}

// TagAgain tags a history that the other tool continued, as Adopt does.
func (t Target) TagAgain(ctx context.Context, folder *roofmt.Folder) error {
	if !curtailed(folder) {
		return nil
	}
	want, err := elementsIn(folder.API, nil)
	if err != nil {
		return fmt.Errorf("task %s: %w", t.ID, err)
	}
	var ours []uint64
	var have [][]byte
	for _, m := range originalMessages(t.State().API()) {
		ours, have = append(ours, m.ID), append(have, m.Raw())
	}
	e, err := t.tagEvent(ctx, folder, ours, have, want, t.State().NextMessage())
	if e == nil || err != nil {
		return err
	}
	return t.commit(ctx, []task.Event{*e})
}

// originalMessages are the messages of a history that were in the other tool's file.
func originalMessages(list []*task.Message) []*task.Message {
	return slices.DeleteFunc(slices.Clone(list), func(m *task.Message) bool {
		by, _ := esjson.GetString(m.Raw(), insertedKey)
		return by == "roost"
	})
}

// SentByCline is an API history of a folder with the tags that adopting it would set; the same history when Cline would
// send all of it.
func SentByCline(folder *roofmt.Folder, history [][]byte) [][]byte {
	pieces := tagHistory(folder, history)
	if pieces == nil {
		return history
	}
	out := make([][]byte, 0, len(pieces))
	for _, p := range pieces {
		out = append(out, p.raw)
	}
	return out
}
