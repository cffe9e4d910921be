package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// adoption is the event that makes a folder of JSON files a task of ours. Its
// blobs are still file names; taking it in replaces them by hashes.
func adoption(ref Ref, folder *roofmt.Folder) task.Adopted {
	e := task.Adopted{Task: ref.ID, Tool: toolName(ref, folder), Dir: folder.Dir, Item: itemOf(folder)}
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
		e.Settings.Workspace, _ = esjson.GetString(e.Item, "cwdOnTaskInitialization") // Cline's word for it
	}
	e.Settings.Mode, _ = esjson.GetString(e.Item, "mode")
	e.Settings.Profile, _ = esjson.GetString(e.Item, "apiConfigName")
	e.CreatedAt = firstTS(folder)
	return e
}

// itemOf is a folder's history item, or what an index keeps of it.
func itemOf(folder *roofmt.Folder) []byte {
	if len(folder.Item) > 0 {
		return folder.Item
	}
	return folder.Row
}

func toolName(ref Ref, folder *roofmt.Folder) string {
	if ref.Tool != "" && !ref.Own {
		return ref.Tool
	}
	return string(folder.Origin.Tool)
}

// firstTS is the time of the oldest message that has one, 0 when none has.
func firstTS(folder *roofmt.Folder) int64 {
	for _, doc := range []*roofmt.Document{folder.UI, folder.API} {
		for i := range min(doc.Len(), 3) {
			if doc.Spans[i].Len > vastFrom {
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
	ts, _ := esjson.GetInt(itemOf(folder), "ts")
	return ts
}

// adopt commits the adoption: originals into blobs first, then one event.
func (t *Task) adopt(ctx context.Context, folder *roofmt.Folder) error {
	t.store.withRow(folder)
	e := adoption(t.Ref, folder)
	for i := range e.Files {
		doc := folder.UI
		if e.Files[i].History == task.API {
			doc = folder.API
		}
		hash, size, err := t.keepDocument(ctx, doc)
		if err != nil {
			return fmt.Errorf("task %s: keep the original %s: %w", t.Ref.ID, e.Files[i].Name, err)
		}
		e.Files[i].Blob, e.Files[i].Size = hash, size
	}
	for _, name := range []string{roofmt.MetadataName, roofmt.ItemName} {
		if !exists(folder.Dir, name) {
			continue
		}
		hash, size, err := t.keepInside(ctx, folder.Dir, name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, roofmt.ErrNotRegular) {
			continue // it went in this moment, or a pipe or a folder stands there
		}
		if err != nil {
			return fmt.Errorf("task %s: keep the original %s: %w", t.Ref.ID, name, err)
		}
		e.Files = append(e.Files, task.Original{Name: name, Blob: hash, Size: size, Leaf: true})
	}
	events := []task.Event{e}
	if sent, err := t.shapeAdopted(ctx, folder); err != nil {
		return err
	} else if sent != nil {
		events = append(events, *sent)
	}
	if err := t.Commit(ctx, events...); err != nil {
		return err
	}
	return t.Barrier(ctx)
}

// keepDocument stores the bytes that a document was read from: its open file, and
// not what lies under that name by now.
func (t *Task) keepDocument(ctx context.Context, doc *roofmt.Document) (string, int64, error) {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := doc.WriteTo(w)
		w.CloseWithError(err)
	}()
	h, n, err := t.log.PutBlobFrom(ctx, r)
	_ = r.Close() // it only tells the writer to stop
	<-done
	return string(h), n, err
}

// keepInside stores a file of a folder, and follows no link out of it.
func (t *Task) keepInside(ctx context.Context, dir, name string) (string, int64, error) {
	f, err := roofmt.OpenFile(dir, name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h, n, err := t.log.PutBlobFrom(ctx, f)
	return string(h), n, err
}

// keepFile stores a file as a blob.
func (t *Task) keepFile(ctx context.Context, path string) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h, n, err := t.log.PutBlobFrom(ctx, f)
	return string(h), n, err
}

// PutBlobFile stores a file's bytes beside the journal.
func (t *Task) PutBlobFile(ctx context.Context, path string) (string, int64, error) {
	return t.keepFile(ctx, path)
}
