// Package intake takes what other programs wrote in a task's folder into the task's journal.
//
// Roo, its relatives and Cline write a task as JSON files: two histories and two small files. A task of theirs is
// adopted: its first commit names the originals. After that, each owner compares the files with what Roost wrote last
// and takes in the difference: new and changed messages, a rewind, an answer. A change that Roost cannot apply is kept
// as a blob and reported; Roost's own messages are never given up for it.
//
// Other tools' folders hold nothing of Roost but the JSON files, because an editor's "delete" removes the folder. A
// task whose format has no writer continues as a fork whose id follows from its source and id, so there is one fork.
// What Cline keeps beside a history about messages that it no longer sends becomes tags in the commit that adopts
// (tagHistory).
//
// The two histories are judged as one state: between a program's write of one and of the other they disagree. If one is
// refused, so is the other.
//
// The programs write at any time, one file after the other. So ReadSettled waits until the two histories agree, and
// for no longer than a few seconds.
//
// Readers use the same functions without a journal: they fold the changes in memory only.
package intake

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/infer"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// Journal is what taking in needs of an owned task.
type Journal interface {
	State() *task.State
	Load() error // reads the histories into memory
	CommitSynced(ctx context.Context, events ...task.Event) error
	PutBlob(ctx context.Context, data []byte) (hash string, err error)
	PutBlobFrom(ctx context.Context, r io.Reader) (hash string, size int64, err error)
}

// Target is an owned task that takes in what another program wrote.
type Target struct {
	Journal
	ID   string
	Tool string // the program that writes the task's folder

	// Tag: what Cline leaves out of its requests is turned into tags. A task that stays in Cline's folder keeps
	// Cline's own bookkeeping instead.
	Tag bool
}

// TakeIn commits what another program changed in the task's folder. A state that cannot be applied is kept as a blob
// and reported; Roost's branch stays the head. mark is what Roost wrote last. It returns the changes also when the
// commit fails.
func (t Target) TakeIn(ctx context.Context, folder *roofmt.Folder, mark projection.Watermark) ([]Change, error) {
	// When the journal lost a message, Roo's files may hold the only copy, also the files that Roost wrote. So all files
	// are compared message by message: as projections of the journal they would be overwritten.
	damaged := len(t.State().Problems) > 0
	histories := mark
	if damaged {
		histories = projection.Watermark{}
	}
	if err := t.load(folder, histories); err != nil {
		return nil, err
	}
	changes := Changes(t.State(), folder, histories)
	for i := range changes {
		changes[i].Restored = damaged && mark.Wrote(docOf(folder, changes[i].File)) && changes[i].Event != nil
	}
	events, err := t.events(ctx, folder, changes)
	if err != nil {
		return nil, err
	}
	unreadable, kept, err := t.keepUnreadable(ctx, folder, mark)
	if err != nil {
		return nil, err
	}
	changes = append(changes, unreadable...)
	return changes, t.commit(ctx, append(events, kept...))
}

// TakeInOriginal takes in what the other tool added to the task that this one is a fork of. When both continued, the
// fork stays as it is, the original's state is kept as a blob, and the change is refused with that reason.
func (t Target) TakeInOriginal(ctx context.Context, folder *roofmt.Folder) ([]Change, error) {
	mark := Originals(t.State().Adopted)
	if err := t.load(folder, mark); err != nil {
		return nil, err
	}
	var changes []Change
	for _, change := range changesOf(t.State().UI(), originalMessages(t.State().API()), nil, folder, mark) {
		if change.Event == nil && change.Added == 0 && change.Changed == 0 && change.Lacking > 0 {
			continue // only the fork continued
		}
		if change.Event == nil {
			change.Refused = fmt.Sprintf("the original in %s was continued on its own: %s", folder.Dir, change.Refused)
		}
		changes = append(changes, change)
	}
	events, err := t.events(ctx, folder, changes)
	if err != nil {
		return nil, err
	}
	return changes, t.commit(ctx, events)
}

// Originals returns a watermark of the bytes of a foreign folder that an adoption has.
func Originals(from *task.Adopted) projection.Watermark {
	mark := projection.Watermark{Files: map[string]projection.File{}}
	for _, f := range from.Files {
		mark.Files[f.Name] = projection.File{SHA256: f.Blob, Size: f.Size}
	}
	return mark
}

func docOf(folder *roofmt.Folder, name string) *roofmt.Document {
	if name == folder.API.Name {
		return folder.API
	}
	return folder.UI
}

// load reads the histories into memory when they have to be compared.
func (t Target) load(folder *roofmt.Folder, mark projection.Watermark) error {
	if mark.Wrote(folder.UI) && mark.Wrote(folder.API) {
		return nil
	}
	return api.Failed(t.Load(), "task %s", t.ID)
}

// commit commits events durably; nothing when there are none.
func (t Target) commit(ctx context.Context, events []task.Event) error {
	if len(events) == 0 {
		return nil
	}
	return t.CommitSynced(ctx, events...)
}

// events keeps the bytes of changed files and makes the events of changes.
func (t Target) events(ctx context.Context, folder *roofmt.Folder, changes []Change) ([]task.Event, error) {
	var events []task.Event
	next := t.State().NextMessage()
	for i, change := range changes {
		if change.Rewound != nil {
			events = append(events, *change.Rewound)
			continue
		}
		doc := docOf(folder, change.File)
		name := cmp.Or(doc.Source, doc.Name)
		var hash string
		var size int64
		if doc.Source != "" { // otherwise it cannot be read, and there is nothing to keep
			var err error
			if hash, size, err = t.keepDocument(ctx, doc); err != nil {
				return nil, fmt.Errorf("task %s: keep the changed %s: %w", t.ID, name, err)
			}
		}
		changes[i].Kept = hash
		if change.Event == nil {
			if !KeptBefore(t.State(), name, hash) {
				events = append(events, task.ForeignRefused{Name: name, Blob: hash, Size: size, Reason: change.Refused})
			}
			continue
		}
		changes[i].Event.Blob, changes[i].Event.Size = hash, size
		changes[i].Event.Tool, changes[i].Event.First = t.Tool, next
		next += changes[i].Event.News()
		events = append(events, *changes[i].Event)
	}
	return append(events, ClosedElsewhere(t.State(), changes, Program(folder))...), nil
}

// KeptBefore reports whether the journal already has these bytes of a refused file. An editor that keeps writing the
// same state must not fill the journal.
func KeptBefore(s *task.State, name, hash string) bool {
	return hash != "" && slices.ContainsFunc(s.Refused, func(r task.ForeignRefused) bool {
		return r.Name == name && r.Blob == hash
	})
}

// keepUnreadable keeps history_item.json and task_metadata.json as blobs when they can no longer be parsed, before
// the projection replaces them. The projection merges readable ones, and nothing of them is lost.
func (t Target) keepUnreadable(ctx context.Context, folder *roofmt.Folder, mark projection.Watermark) (
	changes []Change, events []task.Event, err error) {
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
		hash, size, err := KeepFile(ctx, t, folder.Dir, f.name)
		if err != nil {
			return nil, nil, err
		}
		if hash == "" {
			continue // it is not replaced either
		}
		change := Change{File: f.name, Refused: "it is no JSON object any more", Kept: hash}
		changes = append(changes, change)
		if !KeptBefore(t.State(), f.name, hash) {
			events = append(events, task.ForeignRefused{Name: f.name, Blob: hash, Size: size, Reason: change.Refused})
		}
	}
	return changes, events, nil
}

// keepDocument stores the bytes that a document was read from: those of its open file. The file that has that name
// now may be another one.
func (t Target) keepDocument(ctx context.Context, doc *roofmt.Document) (string, int64, error) {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := doc.WriteTo(w)
		w.CloseWithError(err)
	}()
	hash, n, err := t.PutBlobFrom(ctx, r)
	_ = r.Close() // this only stops the writer
	<-done
	return hash, n, err
}

// KeepFile stores a file of a folder as a blob; "" when there is none, or a pipe or a folder in its place. It follows no
// link out of the folder.
func KeepFile(ctx context.Context, j Journal, dir, name string) (hash string, size int64, err error) {
	f, err := roofmt.OpenFile(dir, name)
	if err != nil && !projection.Exists(filepath.Join(dir, name)) || errors.Is(err, roofmt.ErrNotRegular) {
		return "", 0, nil
	}
	if err == nil {
		defer f.Close()
		hash, size, err = j.PutBlobFrom(ctx, f)
	}
	if err != nil {
		return "", 0, fmt.Errorf("keep %s: %w", filepath.Join(dir, name), err)
	}
	return hash, size, nil
}

// Adoption returns the event that makes a folder of JSON files a task with a journal. It names files where a
// committed event names blobs; Adopt replaces the names by hashes.
func Adoption(id, tool string, folder *roofmt.Folder) task.Adopted {
	e := task.Adopted{Task: id, Tool: tool, Dir: folder.Dir, Item: Item(folder)}
	for _, doc := range []*roofmt.Document{folder.UI, folder.API} {
		if doc.Source == "" {
			continue
		}
		h := task.UI
		if doc.Kind == roofmt.API {
			h = task.API
		}
		f := task.Original{Name: doc.Source, Blob: doc.Source, Size: doc.SourcePrint.Size, History: h}
		f.Spans = make([]int64, 0, 2*len(doc.Spans))
		for _, span := range doc.Spans {
			f.Spans = append(f.Spans, span.Off, span.Len)
		}
		f.Lost = api.Some(folder.Losses, func(loss roofmt.Loss) (string, bool) {
			return loss.Problem, loss.File == doc.Source || loss.File == doc.Name
		})
		e.Files = append(e.Files, f)
	}
	var ok bool
	if e.Settings.Workspace, ok = esjson.GetString(e.Item, "workspace"); !ok {
		e.Settings.Workspace = esjson.TextOf(e.Item, "cwdOnTaskInitialization") // Cline's name for it
	}
	e.Settings.Mode = esjson.TextOf(e.Item, "mode")
	e.Settings.Profile = esjson.TextOf(e.Item, "apiConfigName")
	e.CreatedAt = firstTS(folder)
	return e
}

// Item returns a folder's history item, or the task's entry in an index.
func Item(folder *roofmt.Folder) []byte {
	if len(folder.Item) > 0 {
		return folder.Item
	}
	return folder.Row
}

// firstTS returns the time of the oldest message that has one, 0 when none has.
func firstTS(folder *roofmt.Folder) int64 {
	for _, doc := range []*roofmt.Document{folder.UI, folder.API} {
		for i := range min(doc.Len(), 3) {
			if doc.Spans[i].Len > infer.LongMessage {
				continue
			}
			raw, err := doc.Raw(i)
			if err != nil {
				continue
			}
			if ts, ok := esjson.GetInt(raw, "ts"); ok && ts > 0 {
				return ts
			}
		}
	}
	return esjson.IntOf(Item(folder), "ts")
}

// Adopt commits the adoption of a folder: first the originals as blobs, then one event.
func (t Target) Adopt(ctx context.Context, folder *roofmt.Folder) error {
	e := Adoption(t.ID, t.Tool, folder)
	for i := range e.Files {
		doc := folder.UI
		if e.Files[i].History == task.API {
			doc = folder.API
		}
		hash, size, err := t.keepDocument(ctx, doc)
		if err != nil {
			return fmt.Errorf("task %s: keep the original %s: %w", t.ID, e.Files[i].Name, err)
		}
		e.Files[i].Blob, e.Files[i].Size = hash, size
	}
	for _, name := range []string{roofmt.MetadataName, roofmt.ItemName} {
		hash, size, err := KeepFile(ctx, t, folder.Dir, name)
		if err != nil {
			return err
		}
		if hash != "" {
			e.Files = append(e.Files, task.Original{Name: name, Blob: hash, Size: size, Leaf: true})
		}
	}
	events := []task.Event{e}
	tags, err := t.tagAdopted(ctx, folder)
	if err != nil {
		return err
	}
	if tags != nil {
		events = append(events, *tags)
	}
	return t.commit(ctx, events)
}

// Cline records outside of the history which part of it it sends: classic Cline as a range of indexes in its list of
// tasks, sessions in a file that replaces their beginning. Roost and Roo record it in the messages, as tags by which a
// marker or a summary hides others. So that Roost sends what Cline would have sent, Cline's records are turned into tags
// when Roost takes over the task. No message goes away by that, and Roo can read the result.

// cutID and condensedID are the ids in the tags that hide or replace messages.
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

// tagHistory returns the history with its tags; nil when Cline would send all of it.
func tagHistory(folder *roofmt.Folder, history [][]byte) []tagged {
	if compacted, n := folder.Compacted(); n > 0 && n <= len(history) {
		return tagCompacted(history, compacted, n)
	}
	if first, last, ok := folder.Deleted(); ok && last < len(history)-1 {
		return tagDeleted(history, first, last)
	}
	return nil
}

// tagDeleted hides the messages that classic Cline deleted, first to last. The reply before them carries the marker,
// since Cline sends no separate message for it. It also hides results whose calls are hidden.
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
	if esjson.TextOf(raw, "role") != "user" || !ok || esjson.TypeOf(content) != esjson.TypeArray {
		return raw, false
	}
	var keep [][]byte
	for block := range esjson.Array(content) {
		if esjson.TextOf(block, "type") == "tool_result" {
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

// tagEvent returns one event that tags the API history: ours are the numbers of its messages, have their bytes in the
// journal, and want their bytes in the folder. It is nil when there is nothing to tag.
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

// tagAdopted returns the event that follows an adoption in the same commit; nil when there is nothing to tag.
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
	_, _, cut := folder.Deleted()
	_, n := folder.Compacted()
	return cut || n > 0
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

// originalMessages returns the messages of a history that were in the other tool's file.
func originalMessages(list []*task.Message) []*task.Message {
	return slices.DeleteFunc(slices.Clone(list), func(m *task.Message) bool {
		return esjson.TextOf(m.Raw(), insertedKey) == "roost"
	})
}

// SentByCline returns an API history of a folder with the tags that adopting it would set; the same history when
// Cline would send all of it.
func SentByCline(folder *roofmt.Folder, history [][]byte) [][]byte {
	pieces := tagHistory(folder, history)
	if pieces == nil {
		return history
	}
	return api.Each(pieces, func(p tagged) []byte { return p.raw })
}
