package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
)

// Source is where a state that holds no bytes reads them: the payloads that
// events name, and the commits themselves.
type Source interface {
	Blobs
	// Commits yields the commits from seq on, in order, and damage in its place.
	Commits(from uint64) iter.Seq2[journal.Commit, error]
}

// place is where bytes stand: in an event of the log, or in a range of a blob.
// The zero value is nowhere.
type place struct {
	Seq   uint64
	Event int

	Blob     string
	Off, Len int64
}

func (p place) nowhere() bool { return p == place{} }

// apart is how many commits are read over to get to the next one that is wanted;
// with more in between, the log finds it by its index.
const apart = 64

// fetched are events by their places. They are asked for nearly in the order of the log,
// so that a place is mostly the next one.
type fetched struct {
	places []place           // in order
	events []json.RawMessage // of the first ones, until all are read
	bodies []json.RawMessage // what plainBody makes of them; empty when there are few
	next   int
}

// many is from how many events on a second goroutine takes the messages out of them while
// the log is read. It makes copies: an event would keep its whole commit in memory.
const many = 1000

// takeOut begins to take the messages out of the events that each number on the channel
// says are there. It ends when the channel is closed.
func (f *fetched) takeOut(read <-chan int) (wait func()) {
	f.bodies = make([]json.RawMessage, len(f.places))
	events := f.events[:len(f.places)] // they are filled in place
	var work sync.WaitGroup
	work.Go(func() {
		done := 0
		for n := range read {
			for ; done < n; done++ {
				if raw := plainBody(events[done]); raw != nil {
					f.bodies[done] = bytes.Clone(raw)
				}
			}
		}
	})
	return work.Wait
}

// at is the event at a place, nil when it was not fetched.
func (f *fetched) at(p place) json.RawMessage {
	if i, ok := f.find(p); ok {
		return f.events[i]
	}
	return nil
}

// body is the message that the event at a place holds as it is; nil as plainBody says.
func (f *fetched) body(p place) json.RawMessage {
	i, ok := f.find(p)
	switch {
	case !ok:
		return nil
	case f.bodies != nil:
		return f.bodies[i]
	}
	return bytes.Clone(plainBody(f.events[i]))
}

func (f *fetched) find(p place) (int, bool) {
	if f.next >= len(f.places) || f.places[f.next] != p {
		i, ok := slices.BinarySearchFunc(f.places, p, inOrder)
		if !ok {
			return 0, false
		}
		f.next = i
	}
	f.next++
	return f.next - 1, true
}

// inOrder compares places in the log.
func inOrder(a, b place) int {
	return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Event, b.Event))
}

// fetch reads the events at the given places, each stretch of the log once.
func (s *State) fetch(places []place) (*fetched, error) {
	places = slices.DeleteFunc(slices.Clone(places), func(p place) bool { return p.Seq == 0 })
	slices.SortFunc(places, inOrder)
	places = slices.Compact(places)
	found := &fetched{places: places, events: make([]json.RawMessage, 0, len(places))}
	if len(places) == 0 {
		return found, nil
	}
	if s.source == nil {
		return nil, fmt.Errorf("commit %d: %w", places[0].Seq, ErrNoSource)
	}
	var read chan int
	if len(places) >= many {
		read = make(chan int, 16)
		defer found.takeOut(read)()
		defer close(read)
	}
	for len(found.events) < len(places) {
		if err := s.fetchStretch(found, read); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// fetchStretch reads from the first place on that is not read yet, while the next is near,
// and tells a channel how many are read when there is one.
func (s *State) fetchStretch(f *fetched, read chan<- int) error {
	first := f.places[len(f.events)]
	for c, err := range s.source.Commits(first.Seq) {
		left := f.places[len(f.events):]
		var damage *journal.DamageError
		if errors.As(err, &damage) && damage.Seq != left[0].Seq {
			continue // not what is wanted
		}
		if err != nil {
			return fmt.Errorf("commit %d: %w", left[0].Seq, err)
		}
		if c.Seq > left[0].Seq {
			return fmt.Errorf("commit %d is not in the log", left[0].Seq)
		}
		for len(left) > 0 && left[0].Seq == c.Seq {
			p := left[0]
			if p.Event >= len(c.Events) {
				return fmt.Errorf("commit %d has no event %d", p.Seq, p.Event)
			}
			f.events, left = append(f.events, json.RawMessage(c.Events[p.Event])), left[1:]
		}
		if read != nil {
			read <- len(f.events)
		}
		if len(left) == 0 || left[0].Seq > c.Seq+apart {
			return nil
		}
	}
	return fmt.Errorf("commit %d is not in the log", f.places[len(f.events)].Seq)
}

// Raws are messages as their files hold them, in one reading of the log.
func (s *State) Raws(list []*Message) ([]json.RawMessage, error) {
	out, err := s.stored(list)
	for i, m := range list {
		if err == nil {
			out[i] = m.shown(bare(out[i], m.lifted))
		}
	}
	return out, err
}

// stored is Raws without the tags of summaries.
func (s *State) stored(list []*Message) ([]json.RawMessage, error) {
	var need []place
	for _, m := range list {
		if m.rawAway {
			need = m.places(need)
		}
	}
	events, err := s.fetch(need)
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	out := make([]json.RawMessage, len(list))
	var near stretch
	for i, m := range list {
		if !m.rawAway {
			out[i] = withText(m.raw, m.saved)
			continue
		}
		if m.body.Blob != "" && !near.has(m.body) {
			near = s.stretch(list[i:])
		}
		if out[i], err = m.read(events, &near); err != nil {
			return nil, fmt.Errorf("read message %d: %w", m.ID, err)
		}
	}
	return out, nil
}

// Stored is how many bytes of a file reading the message takes, as far as that is known: 0
// also for one that stands in the log, which holds no large ones.
func (m *Message) Stored() int64 {
	if !m.rawAway || m.body.Blob == "" {
		return 0
	}
	return m.body.Len
}

// stretch is a part of a blob that was read in one go.
type stretch struct {
	at   place
	data []byte
}

func (r *stretch) has(p place) bool {
	return r.data != nil && sane(p.Off, p.Len) && p.Blob == r.at.Blob && p.Off >= r.at.Off && p.Len <= r.at.Off+r.at.Len-p.Off
}

// take is what stands at a place that the stretch has.
func (r *stretch) take(p place) []byte {
	from := p.Off - r.at.Off
	return r.data[from : from+p.Len : from+p.Len]
}

// stretch reads the first message and those that stand behind it in the same file: one by one, each would cost a call of its own.
// When it cannot be read there is none, and each message is read alone.
func (s *State) stretch(list []*Message) stretch {
	at := list[0].body
	if !sane(at.Off, at.Len) || at.Len > windowBytes {
		return stretch{}
	}
	n := 1
	for ; n < len(list); n++ {
		p := list[n].body
		if !list[n].rawAway || p.Blob != at.Blob || !sane(p.Off, p.Len) || p.Off < at.Off+at.Len || p.Off+p.Len-at.Off > windowBytes {
			break
		}
		at.Len = p.Off + p.Len - at.Off
	}
	if n == 1 {
		return stretch{}
	}
	data, err := s.elements(at.Blob, at.Off, at.Len)
	if err != nil {
		return stretch{}
	}
	return stretch{at: at, data: data}
}

// places adds where a message's bytes stand in the log.
func (m *Message) places(list []place) []place {
	list = append(list, m.body)
	for _, p := range m.pieces {
		list = append(list, p...)
	}
	return append(list, m.texts[m.savedFrom:]...)
}

// read puts a message together from the events it stands in.
func (m *Message) read(events *fetched, near *stretch) (json.RawMessage, error) {
	raw := json.RawMessage("{}")
	var err error
	switch {
	case m.body.Blob != "":
		if near.has(m.body) {
			raw = near.take(m.body)
		} else {
			raw, err = m.state.elements(m.body.Blob, m.body.Off, m.body.Len)
		}
		if err == nil && !esjson.Valid(raw) {
			err = fmt.Errorf("bytes %d+%d of %s are not JSON", m.body.Off, m.body.Len, m.body.Blob)
		}
	case m.body.Seq != 0:
		raw, err = m.readBody(events)
	}
	if err != nil {
		return nil, err
	}
	saved, err := texts(m.texts[m.savedFrom:], events)
	return withText(raw, saved), err
}

func (m *Message) readBody(events *fetched) (json.RawMessage, error) {
	if raw := events.body(m.body); raw != nil {
		return raw, nil
	}
	var body Body
	switch e, err := Decode(events.at(m.body)); e := e.(type) {
	case MessageAdded:
		body = e.Body
	case MessageChanged:
		body = e.Body
	default:
		return nil, fmt.Errorf("commit %d, event %d holds no message (%v)", m.body.Seq, m.body.Event, err)
	}
	next := 0
	return body.json(m.state.blobs, func(p Piece) (out []byte, err error) {
		if next >= len(m.pieces) {
			return nil, fmt.Errorf("commit %d, event %d: a piece too many", m.body.Seq, m.body.Event)
		}
		at := m.pieces[next]
		next++
		if p.Result == "" {
			text, err := texts(at, events)
			return esjson.Quote(nil, string(text)), err
		}
		return m.state.result(at, events)
	})
}

// plainBody is the message that an event of the log holds as it is, nil where it has to be
// put together. The log has checked that its events are JSON.
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

// texts is the streamed text that stands at the places.
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

// result is the result block that stands at the place.
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

// result is the result block, wherever it stands.
func (e ToolFinished) result(blobs Blobs) (json.RawMessage, error) {
	if e.Blob == "" {
		return bytes.Clone(e.Result), nil
	}
	raw, err := blobs.Range(e.Blob, 0, -1)
	if err == nil && !esjson.Valid(raw) {
		err = fmt.Errorf("blob %s holds no JSON", e.Blob)
	}
	if err != nil {
		return nil, err
	}
	return raw, nil
}
