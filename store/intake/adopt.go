package intake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/infer"
	"github.com/roost-dev/roost/task"
)

// Adoption is the event that makes a folder of JSON files a task with a journal. It names files in the place of blobs;
// Adopt replaces them by hashes.
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
		for _, loss := range folder.Losses {
			if loss.File == doc.Source || loss.File == doc.Name {
				f.Lost = append(f.Lost, loss.Problem)
			}
		}
		e.Files = append(e.Files, f)
	}
	var ok bool
	if e.Settings.Workspace, ok = esjson.GetString(e.Item, "workspace"); !ok {
		e.Settings.Workspace, _ = esjson.GetString(e.Item, "cwdOnTaskInitialization") // Cline's name for it
	}
	e.Settings.Mode, _ = esjson.GetString(e.Item, "mode")
	e.Settings.Profile, _ = esjson.GetString(e.Item, "apiConfigName")
	e.CreatedAt = firstTS(folder)
	return e
}

// Item is a folder's history item, or the task's entry in an index.
func Item(folder *roofmt.Folder) []byte {
	if len(folder.Item) > 0 {
		return folder.Item
	}
	return folder.Row
}

// firstTS is the time of the oldest message that has one, 0 when none has.
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
	ts, _ := esjson.GetInt(Item(folder), "ts")
	return ts
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
		if _, err := os.Lstat(filepath.Join(folder.Dir, name)); err != nil {
			continue
		}
		hash, size, err := KeepFile(ctx, t, folder.Dir, name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, roofmt.ErrNotRegular) {
			continue // it went just now, or it is a pipe or a folder
		}
		if err != nil {
			return fmt.Errorf("task %s: keep the original %s: %w", t.ID, name, err)
		}
		e.Files = append(e.Files, task.Original{Name: name, Blob: hash, Size: size, Leaf: true})
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
