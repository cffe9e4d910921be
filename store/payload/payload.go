// Package payload moves big payloads of an event into blobs, before the event is committed.
package payload

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// MaxInline is the largest size in bytes of a payload that stays in its event, so that a line of the journal stays
// readable and cheap to scan.
const MaxInline = 256 << 10

// Blobs stores payloads. A journal.Owner is one.
type Blobs interface {
	PutBlob(ctx context.Context, data []byte) (journal.Hash, error)
}

// Spill moves big payloads of an event into blobs, and names all blobs that the event refers to.
func Spill(ctx context.Context, to Blobs, e task.Event) (task.Event, []journal.Hash, error) {
	var blobs []journal.Hash
	name := func(hash string) {
		if hash != "" {
			blobs = append(blobs, journal.Hash(hash))
		}
	}
	var err error
	switch e := e.(type) {
	case task.MessageAdded:
		err = spillBody(ctx, to, &e.Body, name)
		return e, blobs, err
	case task.MessageChanged:
		err = spillBody(ctx, to, &e.Body, name)
		return e, blobs, err
	case task.InputQueued:
		err = spillImages(ctx, to, &e)
		name(e.ImagesBlob)
		return e, blobs, err
	case task.ToolFinished:
		err = spillBytes(ctx, to, (*[]byte)(&e.Result), &e.Blob)
		name(e.Blob)
		name(e.Output)
		return e, blobs, err
	case task.Adopted:
		e.Files = append([]task.Original(nil), e.Files...)
		for i := range e.Files {
			f := &e.Files[i]
			if err := spillList(ctx, to, &f.Spans, &f.SpansBlob); err != nil {
				return nil, nil, err
			}
			name(f.Blob)
			name(f.SpansBlob)
		}
		return e, blobs, nil
	case task.ForeignImported:
		err = spillList(ctx, to, &e.Rows, &e.RowsBlob)
		name(e.Blob)
		name(e.RowsBlob)
		return e, blobs, err
	case task.ForeignRefused:
		name(e.Blob)
	}
	return e, blobs, nil
}

// spillBody spills a message's JSON, or the literal parts of a composed one: images that a user sent while tools ran
// follow the tools' results.
func spillBody(ctx context.Context, to Blobs, b *task.Body, name func(string)) error {
	if err := spillBytes(ctx, to, (*[]byte)(&b.Raw), &b.Blob); err != nil {
		return err
	}
	name(b.Blob)
	for i, p := range b.Compose {
		if len(p.Literal) > MaxInline {
			raw := []byte(p.Literal)
			if err := spillBytes(ctx, to, &raw, &p.Blob); err != nil {
				return err
			}
			p.Literal = ""
			b.Compose = slices.Clone(b.Compose) // the caller's list must not change
			b.Compose[i] = p
		}
		name(p.Blob)
	}
	return nil
}

// spillImages spills the images of a queued input: the queue is part of every snapshot.
func spillImages(ctx context.Context, to Blobs, q *task.InputQueued) error {
	size := 0
	for _, image := range q.Images {
		size += len(image)
	}
	if size <= MaxInline {
		return nil
	}
	raw, err := json.Marshal(q.Images)
	if err != nil {
		return fmt.Errorf("encode the images of input %s: %w", q.Input, err)
	}
	if err := spillBytes(ctx, to, &raw, &q.ImagesBlob); err != nil {
		return err
	}
	q.ImageCount, q.Images = len(q.Images), nil
	return nil
}

// spillBytes moves bytes into a blob when they are too many for a line.
func spillBytes(ctx context.Context, to Blobs, raw *[]byte, blob *string) error {
	if len(*raw) <= MaxInline {
		return nil
	}
	h, err := to.PutBlob(ctx, *raw)
	if err != nil {
		return fmt.Errorf("store a payload of %d bytes: %w", len(*raw), err)
	}
	*raw, *blob = nil, string(h)
	return nil
}

// maxElements bounds the elements of a list in an event. Each takes about twenty bytes.
const maxElements = MaxInline / 20

func spillList[E any](ctx context.Context, to Blobs, list *[]E, blob *string) error {
	if len(*list) <= maxElements {
		return nil
	}
	raw, err := json.Marshal(*list)
	if err != nil {
		return fmt.Errorf("encode a list: %w", err)
	}
	h, err := to.PutBlob(ctx, raw)
	if err != nil {
		return fmt.Errorf("store a list of %d elements: %w", len(*list), err)
	}
	*list, *blob = nil, string(h)
	return nil
}
