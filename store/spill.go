package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// blobThreshold is the payload size over which bytes go into a blob, so that a
// commit line stays readable and cheap to scan.
const blobThreshold = 256 << 10

// spill moves what is big in an event into blobs, and names all blobs that the
// event refers to.
func (t *Task) spill(ctx context.Context, e task.Event) (task.Event, []journal.Hash, error) {
	var blobs []journal.Hash
	name := func(hash string) {
		if hash != "" {
			blobs = append(blobs, journal.Hash(hash))
		}
	}
	var err error
	switch e := e.(type) {
	case task.MessageAdded:
		err = t.spillBody(ctx, &e.Body, name)
		return e, blobs, err
	case task.MessageChanged:
		err = t.spillBody(ctx, &e.Body, name)
		return e, blobs, err
	case task.InputQueued:
		err = t.spillImages(ctx, &e)
		name(e.ImagesBlob)
		return e, blobs, err
	case task.ToolFinished:
		err = t.spillBytes(ctx, (*[]byte)(&e.Result), &e.Blob)
		name(e.Blob)
		name(e.Output)
		return e, blobs, err
	case task.Adopted:
		e.Files = append([]task.Original(nil), e.Files...)
		for i := range e.Files {
			f := &e.Files[i]
			if err := spillList(ctx, t, &f.Spans, &f.SpansBlob); err != nil {
				return nil, nil, err
			}
			name(f.Blob)
			name(f.SpansBlob)
		}
		return e, blobs, nil
	case task.ForeignImported:
		err = spillList(ctx, t, &e.Rows, &e.RowsBlob)
		name(e.Blob)
		name(e.RowsBlob)
		return e, blobs, err
	case task.ForeignRefused:
		name(e.Blob)
	}
	return e, blobs, nil
}

// spillBody spills a message's JSON, or what a composed one spells out: images that a person
// sent while tools ran stand beside the tools' results.
func (t *Task) spillBody(ctx context.Context, b *task.Body, name func(string)) error {
	if err := t.spillBytes(ctx, (*[]byte)(&b.Raw), &b.Blob); err != nil {
		return err
	}
	name(b.Blob)
	for i, p := range b.Compose {
		if len(p.Literal) > blobThreshold {
			raw := []byte(p.Literal)
			if err := t.spillBytes(ctx, &raw, &p.Blob); err != nil {
				return err
			}
			p.Literal = ""
			b.Compose = slices.Clone(b.Compose) // the caller's list stays as it is
			b.Compose[i] = p
		}
		name(p.Blob)
	}
	return nil
}

// spillImages spills the images of words that wait: the queue is part of every snapshot.
func (t *Task) spillImages(ctx context.Context, q *task.InputQueued) error {
	size := 0
	for _, image := range q.Images {
		size += len(image)
	}
	if size <= blobThreshold {
		return nil
	}
	raw, err := json.Marshal(q.Images)
	if err != nil {
		return fmt.Errorf("task %s: encode the images of input %s: %w", t.Ref.ID, q.Input, err)
	}
	if err := t.spillBytes(ctx, &raw, &q.ImagesBlob); err != nil {
		return err
	}
	q.ImageCount, q.Images = len(q.Images), nil
	return nil
}

// spillBytes puts bytes that are too many for a line into a blob.
func (t *Task) spillBytes(ctx context.Context, raw *[]byte, blob *string) error {
	if len(*raw) <= blobThreshold {
		return nil
	}
	h, err := t.log.PutBlob(ctx, *raw)
	if err != nil {
		return fmt.Errorf("task %s: store a payload of %d bytes: %w", t.Ref.ID, len(*raw), err)
	}
	*raw, *blob = nil, string(h)
	return nil
}

// listThreshold is how many elements of a list a line may hold; each takes some
// twenty bytes.
const listThreshold = blobThreshold / 20

func spillList[E any](ctx context.Context, t *Task, list *[]E, blob *string) error {
	if len(*list) <= listThreshold {
		return nil
	}
	raw, err := json.Marshal(*list)
	if err != nil {
		return fmt.Errorf("task %s: encode a list: %w", t.Ref.ID, err)
	}
	h, err := t.log.PutBlob(ctx, raw)
	if err != nil {
		return fmt.Errorf("task %s: store a list of %d elements: %w", t.Ref.ID, len(*list), err)
	}
	*list, *blob = nil, string(h)
	return nil
}
