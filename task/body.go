package task

import (
	"bytes"
	"fmt"

	"github.com/roost-dev/roost/esjson"
)

// body returns a message's JSON, and the places of the pieces that it is composed of.
func (s *State) body(b Body) (raw []byte, pieces [][]place, err error) {
	raw, starts, err := b.json(s.blobs, func(p Piece) ([]byte, error) {
		if p.Result != "" {
			c := s.calls[p.Result]
			if c == nil || c.Finished == nil {
				return nil, fmt.Errorf("result of call %q, which has none", p.Result)
			}
			pieces = append(pieces, []place{c.finished})
			raw, err := c.Result()
			if err == nil && len(raw) == 0 {
				err = fmt.Errorf("result of call %q, which is empty", p.Result)
			}
			return raw, err
		}
		m := s.Message(p.TextOf)
		if m == nil {
			return nil, fmt.Errorf("text of message %d, which does not exist", p.TextOf)
		}
		pieces = append(pieces, m.texts[:len(m.texts):len(m.texts)])
		text := m.text
		if m.textAway {
			events, err := s.fetch(eventsAt(m.texts))
			if err != nil {
				return nil, err
			}
			if text, err = texts(m.texts, events); err != nil {
				return nil, err
			}
		}
		return esjson.Quote(nil, string(text)), nil
	})
	for i, at := range starts {
		if p := b.Compose[i]; p.Result != "" && p.Blob == "" {
			s.calls[p.Result].share(raw[at:])
		}
	}
	return raw, pieces, err
}

// share keeps the result where a message has it, which begins with it: a long task is
// mostly results, and would hold each twice.
func (c *Call) share(message []byte) {
	if n := len(c.Finished.Result); !c.away && n > 0 {
		c.Finished.Result = message[:n:n]
	}
}

// json assembles a body. piece returns each piece that is not literal. starts holds the offset at which each piece of
// Compose begins.
func (b Body) json(blobs Blobs, piece func(Piece) ([]byte, error)) (raw []byte, starts []int, err error) {
	switch {
	case len(b.Raw) > 0:
		return bytes.Clone(b.Raw), nil, nil
	case b.Blob != "":
		raw, err := blobs.Range(b.Blob, 0, -1)
		if err == nil && !esjson.Valid(raw) {
			err = fmt.Errorf("blob %s holds no JSON", b.Blob)
		}
		return raw, nil, err
	}
	// First what there is to put together: it is kept for as long as the task is open,
	// and made piece by piece it would be up to a quarter larger than it needs to be.
	parts, size := make([][]byte, len(b.Compose)), 0
	for i, p := range b.Compose {
		switch {
		case p.Blob != "":
			parts[i], err = blobs.Range(p.Blob, 0, -1)
		case !p.literal():
			parts[i], err = piece(p)
		}
		if err != nil {
			return nil, nil, err
		}
		size += len(parts[i])
		if p.literal() {
			size += len(p.Literal)
		}
	}
	raw, starts = make([]byte, 0, size), make([]int, len(parts))
	for i, part := range parts {
		starts[i] = len(raw)
		if raw = append(raw, part...); b.Compose[i].literal() {
			raw = append(raw, b.Compose[i].Literal...)
		}
	}
	if !esjson.Valid(raw) {
		return nil, nil, fmt.Errorf("composed message is not JSON")
	}
	return raw, starts, nil
}

// literal reports whether the piece is text that it spells out.
func (p Piece) literal() bool { return p.TextOf == 0 && p.Result == "" && p.Blob == "" }
