package task

import (
	"fmt"
	"slices"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
)

// adopt makes the elements of another tool's files the task's first messages:
// all UI messages, then all API messages.
func (s *State) adopt(e Adopted, c journal.Commit) error {
	s.ID, s.Settings, s.CreatedAt = e.Task, e.Settings, e.CreatedAt
	s.Origin = "extension"
	brief := e
	brief.Files = slices.Clone(e.Files)
	for i := range brief.Files {
		brief.Files[i].Spans = nil // they live on as messages
	}
	s.Adopted = &brief
	if n, ok := esjson.GetInt(e.Item, "number"); ok {
		s.Number = int(n)
	}
	s.Parent, _ = esjson.GetString(e.Item, "parentTaskId")
	s.RootTask, _ = esjson.GetString(e.Item, "rootTaskId")

	var first error
	for _, h := range []History{UI, API} {
		for _, f := range e.Files {
			if f.History != h {
				continue
			}
			if err := s.attachSpans(f, h, c.Seq); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}

func (s *State) attachSpans(f Original, h History, seq uint64) error {
	if len(f.Spans) == 0 {
		return nil
	}
	if len(f.Spans)%2 != 0 {
		return fmt.Errorf("original %s: an odd number of element bounds", f.Name)
	}
	// One read of the whole span range: elements lie side by side.
	start, end := f.Spans[0], f.Spans[len(f.Spans)-2]+f.Spans[len(f.Spans)-1]
	data, err := s.blobs.Range(f.Blob, start, end-start)
	if err != nil {
		err = fmt.Errorf("original %s: %w", f.Name, err)
	}
	for i := 0; i+1 < len(f.Spans); i += 2 {
		m := &Message{ID: s.NextMessage(), History: h, Seq: seq, Foreign: true}
		off, n := f.Spans[i]-start, f.Spans[i+1]
		if err == nil && off >= 0 && n > 0 && off+n <= int64(len(data)) {
			m.raw = data[off : off+n : off+n]
		} else {
			m.raw, m.Missing = []byte("{}"), true
		}
		s.attach(m)
	}
	return err
}

// importForeign makes one history exactly what another program's file says.
// Messages that the file no longer has are hidden; nothing is destroyed.
func (s *State) importForeign(e ForeignImported, c journal.Commit) error {
	next := make([]*Message, 0, len(e.Rows))
	kept := map[*Message]bool{}
	var first error
	for _, row := range e.Rows {
		var raw []byte
		if row.Len > 0 {
			var err error
			if raw, err = s.blobs.Range(e.Blob, row.Off, row.Len); err != nil && first == nil {
				first = fmt.Errorf("foreign %s history: %w", e.History, err)
			}
			if !esjson.Valid(raw) {
				raw = nil
			}
		}
		m := s.Message(row.Message)
		if m != nil && (m.History != e.History || kept[m]) {
			m = nil // it is no state of that message: not lost, but new
		}
		if m == nil {
			m = &Message{ID: s.NextMessage(), History: e.History, Seq: c.Seq, Foreign: true, raw: raw}
			if raw == nil {
				m.raw, m.Missing = []byte("{}"), true
			}
			s.messages = append(s.messages, m)
		} else if raw != nil {
			m.raw, m.saved = raw, nil
		}
		m.Hidden = ""
		kept[m] = true
		next = append(next, m)
	}
	list := &s.ui
	if e.History == API {
		list = &s.api
	}
	for _, m := range *list {
		if !kept[m] {
			m.Hidden = "foreign"
		}
	}
	*list = next
	if e.History == API {
		s.reindex()
	}
	return first
}
