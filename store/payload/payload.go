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
	s := spill{ctx: ctx, to: to}
	switch of := e.(type) {
	case task.MessageAdded:
		s.body(&of.Body)
		e = of
	case task.MessageChanged:
		s.body(&of.Body)
		e = of
	case task.InputQueued:
		s.images(&of)
		e = of
	case task.ToolFinished:
		s.bytes((*[]byte)(&of.Result), &of.Blob)
		s.name(of.Output)
		e = of
	case task.Adopted:
		of.Files = slices.Clone(of.Files) // the caller's list must not change
		for i := range of.Files {
			s.name(of.Files[i].Blob)
			spillList(&s, &of.Files[i].Spans, &of.Files[i].SpansBlob)
		}
		e = of
	case task.ForeignImported:
		s.name(of.Blob)
		spillList(&s, &of.Rows, &of.RowsBlob)
		e = of
	case task.ForeignRefused:
		s.name(of.Blob)
	}
	return e, s.blobs, s.err
}

// spill collects the blobs of an event. After its first error it stores nothing more.
type spill struct {
	ctx   context.Context //nolint:containedctx // of one call
	to    Blobs
	blobs []journal.Hash
	err   error
}

func (s *spill) name(hash string) {
	if hash != "" {
		s.blobs = append(s.blobs, journal.Hash(hash))
	}
}

// bytes moves bytes into a blob when they are too many for a line, and names the blob.
func (s *spill) bytes(raw *[]byte, blob *string) {
	if len(*raw) > MaxInline {
		*blob = s.put(*raw)
		*raw = nil
	}
	s.name(*blob)
}

func (s *spill) put(data []byte) string {
	if s.err != nil {
		return ""
	}
	h, err := s.to.PutBlob(s.ctx, data)
	if err != nil {
		s.err = fmt.Errorf("store a payload of %d bytes: %w", len(data), err)
	}
	return string(h)
}

// body spills a message's JSON, or the literal parts of a composed one: images that a user sent while tools ran follow the
// tools' results.
func (s *spill) body(b *task.Body) {
	s.bytes((*[]byte)(&b.Raw), &b.Blob)
	b.Compose = slices.Clone(b.Compose) // the caller's list must not change
	for i := range b.Compose {
		p := &b.Compose[i]
		literal := []byte(p.Literal)
		s.bytes(&literal, &p.Blob)
		p.Literal = string(literal)
	}
}

// images spills the images of a queued input: the queue is part of every snapshot.
func (s *spill) images(q *task.InputQueued) {
	size := 0
	for _, image := range q.Images {
		size += len(image)
	}
	if size > MaxInline {
		raw, _ := json.Marshal(q.Images) // texts
		s.bytes(&raw, &q.ImagesBlob)
		q.ImageCount, q.Images = len(q.Images), nil
		return
	}
	s.name(q.ImagesBlob)
}

// maxElements bounds the elements of a list in an event. Each takes about twenty bytes.
const maxElements = MaxInline / 20

// spillList moves a list into a blob when it is too long for a line, and names the blob.
func spillList[E any](s *spill, list *[]E, blob *string) {
	if len(*list) > maxElements {
		raw, err := json.Marshal(*list)
		if err != nil && s.err == nil {
			s.err = fmt.Errorf("encode a list: %w", err)
		}
		*list, *blob = nil, s.put(raw)
	}
	s.name(*blob)
}
