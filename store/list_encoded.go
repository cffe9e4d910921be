package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/store/overlay"
)

// Encoded is one page of a list as JSON.
type Encoded struct {
	Items      []json.RawMessage // a Summary each
	NextCursor string
}

// ListEncoded is List for those who want JSON of it. The cache keeps each row as JSON:
// one that nothing has been added to since is given as it is kept, and neither decoded nor
// encoded again, which for fifty tasks takes longer than to find them among thousands.
func (s *Store) ListEncoded(ctx context.Context, f Filter) (out Encoded, err error) {
	err = s.page(ctx, f, func(l *lines, list []*entry, page Listing) error {
		out.NextCursor = page.NextCursor
		out.Items = onAllCores(list, func(ln *entry) json.RawMessage {
			if raw := l.raw(ln); raw != nil {
				return raw
			}
			raw, failed := encodeSummary(l.whole(ctx, ln))
			if failed != nil {
				return nil
			}
			return raw
		})
		for i, raw := range out.Items {
			if raw == nil {
				return fmt.Errorf("list task %s: it cannot be written as JSON", list[i].row.ID)
			}
		}
		return ctx.Err()
	})
	return out, err
}

// raw is a row as it is kept, nil when that is not what is to be shown.
func (l *lines) raw(ln *entry) json.RawMessage {
	if ln.sum != nil && !ln.fresh || ln.lost || !ln.row.Known || l.known == nil || len(l.copies[ln]) > 0 {
		return nil
	}
	if len(l.marks) > 0 {
		if _, marked := l.marks[overlay.Key{Source: l.srcs[ln.src].Name, ID: ln.row.ID}]; marked {
			return nil
		}
	}
	row := *ln.row
	if l.known.rows.Load(&row) != nil {
		return nil
	}
	return row.Whole
}

// encodeSummary is how a row is kept: what JSON need not escape stands as it is.
func encodeSummary(t Summary) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t); err != nil {
		return nil, fmt.Errorf("write the row of task %s: %w", t.ID, err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
