package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
)

func (p place) nowhere() bool { return p == place{} }

// inOrder compares places in the log.
func inOrder(a, b place) int {
	return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Event, b.Event))
}

// eventsAt returns the places that are events of the log.
func eventsAt(places []place) []place {
	return slices.DeleteFunc(slices.Clone(places), func(p place) bool { return p.Seq == 0 })
}

// fetched holds events by their places. Callers ask for them nearly in the order of the log, so at tries the place
// after the last one first.
type fetched struct {
	wanted []place           // in order
	found  []json.RawMessage // the events of the first places, until all are read
	next   int
}

// at returns the event at a place, nil when it was not fetched.
func (f *fetched) at(p place) json.RawMessage {
	if f.next >= len(f.wanted) || f.wanted[f.next] != p {
		i, ok := slices.BinarySearchFunc(f.wanted, p, inOrder)
		if !ok {
			return nil
		}
		f.next = i
	}
	f.next++
	return f.found[f.next-1]
}

// fetch reads the wanted events, each part of the log once.
func (s *State) fetch(list []place) (*fetched, error) {
	slices.SortFunc(list, inOrder)
	list = slices.Compact(list)
	f := &fetched{wanted: list, found: make([]json.RawMessage, 0, len(list))}
	if len(list) > 0 && s.source == nil {
		return nil, fmt.Errorf("commit %d: %w", list[0].Seq, ErrNoSource)
	}
	for len(f.found) < len(list) {
		if err := f.fetchStretch(s.source.Commits(list[len(f.found)].Seq)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// fetchStretch reads from the first wanted event that is not read yet, and continues while the next wanted one is near.
func (f *fetched) fetchStretch(log iter.Seq2[journal.Commit, error]) error {
	for c, err := range log {
		first := f.wanted[len(f.found)].Seq
		var damage *journal.DamageError
		if errors.As(err, &damage) && damage.Seq != first {
			continue // not what is wanted
		}
		if err == nil {
			err = f.take(c)
		}
		if err != nil {
			return fmt.Errorf("commit %d: %w", first, err)
		}
		if c.Seq > first {
			return fmt.Errorf("commit %d is not in the log", first)
		}
		if len(f.found) == len(f.wanted) || f.wanted[len(f.found)].Seq > c.Seq+apart {
			return nil
		}
	}
	return fmt.Errorf("commit %d is not in the log", f.wanted[len(f.found)].Seq)
}

// take copies the wanted events of a commit: an event itself would keep its whole commit in memory.
func (f *fetched) take(c journal.Commit) error {
	for len(f.found) < len(f.wanted) && f.wanted[len(f.found)].Seq == c.Seq {
		event := f.wanted[len(f.found)].Event
		if event < 0 || event >= len(c.Events) {
			return fmt.Errorf("it has no event %d", event)
		}
		f.found = append(f.found, bytes.Clone(c.Events[event]))
	}
	return nil
}

// Raws returns messages as their files hold them, and reads the log once.
func (s *State) Raws(list []*Message) ([]json.RawMessage, error) {
	return s.read(list, func(m *Message, raw json.RawMessage) json.RawMessage { return m.shown(bare(raw, m.Lifted)) })
}

// read calls as with the bytes of each message, and returns the results. It is one loop, because a second pass over
// all messages of a long task costs as much as fetching them from memory.
func (s *State) read(list []*Message, as func(*Message, json.RawMessage) json.RawMessage) ([]json.RawMessage, error) {
	need := make([]place, 0, len(list))
	for _, m := range list {
		if m.rawAway {
			need = m.wants(need)
		}
	}
	events, err := s.fetch(need)
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	out := make([]json.RawMessage, len(list))
	for i, m := range list {
		raw := withText(m.raw, m.saved)
		if m.rawAway {
			if raw, err = m.read(events); err != nil {
				return nil, fmt.Errorf("read message %d: %w", m.ID, err)
			}
		}
		out[i] = as(m, raw)
	}
	return out, nil
}

// Stored returns the number of bytes of a file that reading the message takes, as far as known. It is 0 also for a
// message in the log, where messages are small.
func (m *Message) Stored() int64 {
	if !m.rawAway || m.Body.Blob == "" {
		return 0
	}
	return m.Body.Len
}

// wants appends to list the places of the log's events that hold the message's bytes.
func (m *Message) wants(list []place) []place {
	list = append(list, eventsAt([]place{m.Body})...)
	for _, p := range m.Pieces {
		list = append(list, eventsAt(p)...)
	}
	return append(list, eventsAt(m.Texts[m.SavedFrom:])...)
}

// read assembles a message from the events that hold it.
func (m *Message) read(events *fetched) (json.RawMessage, error) {
	raw := json.RawMessage("{}")
	var err error
	switch {
	case m.Body.Blob != "":
		raw, err = m.state.element(m.Body.Blob, m.Body.Off, m.Body.Len)
	case m.Body.Seq != 0:
		raw, err = m.readBody(events)
	}
	if err != nil || m.SavedFrom == len(m.Texts) {
		return raw, err
	}
	saved, err := texts(m.Texts[m.SavedFrom:], events)
	return withText(raw, saved), err
}

func (m *Message) readBody(events *fetched) (json.RawMessage, error) {
	if raw := plainBody(events.at(m.Body)); raw != nil {
		return raw, nil
	}
	var body Body
	switch e, err := Decode(events.at(m.Body)); e := e.(type) {
	case MessageAdded:
		body = e.Body
	case MessageChanged:
		body = e.Body
	default:
		return nil, fmt.Errorf("commit %d, event %d holds no message (%v)", m.Body.Seq, m.Body.Event, err)
	}
	next := 0
	raw, _, err := body.json(m.state.blobs, func(p Piece) (out []byte, err error) {
		if next >= len(m.Pieces) {
			return nil, fmt.Errorf("commit %d, event %d has more pieces than the state knows", m.Body.Seq, m.Body.Event)
		}
		at := m.Pieces[next]
		next++
		if p.Result == "" {
			text, err := texts(at, events)
			return esjson.Quote(nil, string(text)), err
		}
		return m.state.result(at, events)
	})
	return raw, err
}

// plainBody returns the message that an event of the log holds as raw, nil when the message is in a blob or composed
// of pieces. The log has checked that its events are JSON.
func plainBody(event []byte) (raw []byte) {
	known := false
	for key, val := range esjson.Members(event) {
		switch key {
		case "type":
			known = string(val) == `"message.added"` || string(val) == `"message.changed"`
		case "raw":
			raw = val
		}
	}
	if !known {
		return nil
	}
	return raw
}

// texts returns the streamed text at the places.
func texts(places []place, events *fetched) ([]byte, error) {
	var out []byte
	for _, p := range places {
		e, err := Decode(events.at(p))
		saved, ok := e.(MessageTextSaved)
		if !ok {
			return nil, fmt.Errorf("commit %d, event %d holds no text (%v)", p.Seq, p.Event, err)
		}
		out = append(out, saved.Text...)
	}
	return out, nil
}

// result returns the result block at the place.
func (s *State) result(at []place, events *fetched) (json.RawMessage, error) {
	if len(at) == 0 {
		return nil, nil
	}
	e, err := Decode(events.at(at[0]))
	done, ok := e.(ToolFinished)
	if !ok {
		return nil, fmt.Errorf("commit %d, event %d holds no result (%v)", at[0].Seq, at[0].Event, err)
	}
	return done.result(s.blobs)
}

// result returns the result block from the event or its blob.
func (e ToolFinished) result(blobs Blobs) (json.RawMessage, error) {
	if e.Blob == "" {
		return bytes.Clone(e.Result), nil
	}
	return blobJSON(blobs, e.Blob)
}

// blobJSON reads a blob that holds JSON.
func blobJSON(blobs Blobs, hash string) ([]byte, error) {
	raw, err := blobs.Range(hash, 0, -1)
	if err == nil && !esjson.Valid(raw) {
		return nil, fmt.Errorf("blob %s holds no JSON", hash)
	}
	return raw, err
}

// apart is the number of unwanted commits that fetchStretch reads to reach the next wanted one. Behind a wider gap,
// the log finds the commit by its index.
const apart = 64

// windowBytes bounds the part of an original that is read at once: its elements follow each other, and the whole file
// may be larger than memory.
const windowBytes = 4 << 20

// sane reports whether an offset and a length can be valid. The log may be damaged, or made by another program: no
// code adds up such numbers before this check.
func sane(off, n int64) bool { return off >= 0 && n > 0 && off <= math.MaxInt64-n }

// elements reads bytes of a foreign file.
func (s *State) elements(blob string, off, n int64) ([]byte, error) {
	if !sane(off, n) {
		return nil, fmt.Errorf("an element of %d bytes at offset %d is not possible", n, off)
	}
	data, err := s.blobs.Range(blob, off, n)
	if err == nil && int64(len(data)) != n {
		err = fmt.Errorf("read %d bytes at offset %d of %s: got only %d", n, off, blob, len(data))
	}
	return data, err
}

// element reads a message in a foreign file.
func (s *State) element(blob string, off, n int64) ([]byte, error) {
	raw, err := s.elements(blob, off, n)
	if err == nil && !esjson.Valid(raw) {
		return nil, fmt.Errorf("bytes %d+%d of %s are not JSON", off, n, blob)
	}
	return raw, err
}

func heldMessage(m *Message) held { return held{message: m, size: m.size()} }
func heldResult(c *Call) held     { return held{call: c, size: len(c.Finished.Result)} }

// Lean makes the state keep only the newest messages in memory, about room bytes of them, and read the others from src on
// demand. Readers mostly want the end of a task, and a composed message nearly always refers to recent ones.
func (s *State) Lean(src Source, room int) *State {
	s.blobs, s.source, s.room = src, src, room
	for _, m := range s.messages {
		if !m.rawAway {
			s.hold(heldMessage(m))
		}
	}
	for _, c := range s.order {
		if c.Finished != nil && !c.away {
			s.hold(heldResult(c))
		}
	}
	s.trim()
	return s
}

// hold records bytes that came into memory. When bytes were recorded twice, trim drops them at their first record:
// they can be read again.
func (s *State) hold(h held) {
	if s.source == nil || h.size <= 0 {
		return
	}
	s.held = append(s.held, h)
	s.holding += h.size
}

// grew notes how many bytes of a message came into memory: it had before bytes there. Streamed text comes in many
// pieces, each of which counts once.
func (s *State) grew(m *Message, before int) {
	s.hold(held{message: m, size: m.size() - before})
}

// trim drops the oldest bytes from memory until the rest fits.
func (s *State) trim() {
	gone := 0
	for s.holding > s.room && gone < len(s.held) {
		h := s.held[gone]
		gone++
		s.holding -= h.size
		if h.message != nil {
			h.message.drop()
			continue
		}
		if h.call.Finished != nil {
			h.call.Finished.Result, h.call.away = nil, true
		}
	}
	// Moving the rest down each time would cost what is held for each commit.
	s.held = s.held[gone:]
}

// Load brings every visible message into memory for good. It is for comparing whole histories: reading one message at a
// time would take long.
func (s *State) Load() error {
	for _, list := range [][]*Message{s.ui, s.api} {
		raws, err := s.read(list, func(_ *Message, raw json.RawMessage) json.RawMessage { return raw })
		if err != nil {
			return err
		}
		for i, m := range list {
			if m.rawAway {
				// raws has the text that was streamed since, too.
				m.raw, m.saved, m.rawAway = raws[i], nil, false
			}
		}
	}
	s.held, s.holding, s.room = nil, 0, math.MaxInt
	return nil
}

// RawUI returns the visible UI history as its file holds it.
func (s *State) RawUI() ([][]byte, error) { return s.bytes(s.ui) }

// RawAPI returns the visible API history as its file holds it.
func (s *State) RawAPI() ([][]byte, error) { return s.bytes(s.api) }

func (s *State) bytes(list []*Message) ([][]byte, error) {
	raws, err := s.Raws(list)
	if err != nil {
		return nil, err
	}
	return api.Each(raws, func(raw json.RawMessage) []byte { return raw }), nil
}

// Kept is the whole output of a command whose result shows only a part of it. It implements io.ReaderAt.
type Kept struct {
	Size  int64 // bytes
	hash  string
	blobs Blobs
}

// Kept finds the output of an earlier command by the artifact name that the result gave the model; false when there
// is none.
func (s *State) Kept(artifact string) (Kept, bool) {
	for _, c := range slices.Backward(s.order) {
		if f := c.Finished; f != nil && f.Artifact == artifact && artifact != "" && f.Output != "" {
			return Kept{Size: f.Size, hash: f.Output, blobs: s.blobs}, true
		}
	}
	return Kept{}, false
}

// ReadAt reads from an offset in bytes.
func (k Kept) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read a kept output: the offset %d is negative", off)
	}
	if off >= k.Size {
		return 0, io.EOF
	}
	want := min(int64(len(p)), k.Size-off)
	data, err := k.blobs.Range(k.hash, off, want)
	n := copy(p, data)
	switch {
	case err != nil:
		return n, fmt.Errorf("read a kept output: %w", err)
	case int64(n) < want:
		return n, fmt.Errorf("read a kept output: %w", io.ErrUnexpectedEOF)
	case n < len(p):
		return n, io.EOF
	}
	return n, nil
}
