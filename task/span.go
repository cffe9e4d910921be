package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"math"

	"github.com/roost-dev/roost/journal"
)

// span is where a message that an event spells out stands among the events of its commit's
// line: how many bytes are before it, its own, and how many behind it. Folding sees that the
// event holds the message's very bytes there. A line whose events take exactly as many bytes
// has it there, so that reading a long history is copying: nothing is taken apart. The zero
// value is nowhere: of a message that is composed, lies in a blob, or does not end its event.
type span struct{ front, size, back uint32 }

// rawKey is what a message stands behind, as the last member of its event.
const rawKey = `"raw":`

// in is the message, nil when a line's events do not take the bytes that they took
// when it was folded.
func (p span) in(events []byte) []byte {
	front, end := uint64(p.front), uint64(p.front)+uint64(p.size)
	if p.size < 2 || p.back == 0 || end+uint64(p.back) != uint64(len(events)) {
		return nil
	}
	if raw := events[front:end]; bytes.HasSuffix(events[:front], []byte(rawKey)) && raw[0] == '{' && raw[len(raw)-1] == '}' && events[end] == '}' {
		return raw
	}
	return nil
}

// frame is the event that is folded and what stands around it in its line.
type frame struct {
	event       []byte
	front, back int
}

// frames yields the events of a commit with what stands around each.
func frames(c journal.Commit) iter.Seq2[int, frame] {
	return func(yield func(int, frame) bool) {
		front, back := 0, 0
		for _, e := range c.Events {
			back += len(e) + 1 // each but the first has a comma before it
		}
		for i, e := range c.Events {
			back -= len(e) + 1
			if !yield(i, frame{e, front, back}) {
				return
			}
			front += len(e) + 1
		}
	}
}

// holds says where the event spells out a message.
func (f frame) holds(raw []byte) span {
	n := len(f.event) - len(raw) - 1
	if !tight(raw) || n < len(rawKey) || f.front+len(f.event)+f.back > math.MaxInt32 {
		return span{}
	}
	if f.event[len(f.event)-1] != '}' || string(f.event[n-len(rawKey):n]) != rawKey || !bytes.Equal(f.event[n:n+len(raw)], raw) {
		return span{}
	}
	return span{uint32(f.front + n), uint32(len(raw)), uint32(f.back + 1)}
}

// wanted is an event to be read, and where in it a message stands.
type wanted struct {
	seq   uint64
	event int
	span
}

// inOrder compares places in the log.
func inOrder(a, b wanted) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.event, b.event))
}

// eventsAt are the events that stand at places of the log.
func eventsAt(places []place) []wanted {
	return appendPlaces(make([]wanted, 0, len(places)), places)
}

func appendPlaces(list []wanted, places []place) []wanted {
	for _, p := range places {
		if p.Seq != 0 {
			list = append(list, wanted{seq: p.Seq, event: p.Event})
		}
	}
	return list
}

// block is how many bytes of messages share one piece of memory: whoever keeps one of
// them keeps at most so much.
const block = 64 << 10

// copies makes copies of messages, many in one piece of memory.
type copies struct {
	room []byte
	left int // bytes that will be wanted, as far as is known
}

func (c *copies) of(raw []byte) json.RawMessage {
	n := len(raw)
	c.left -= n
	if n > cap(c.room)-len(c.room) {
		if n > block/4 {
			return bytes.Clone(raw)
		}
		c.room = make([]byte, 0, max(n, min(block, c.left+n)))
	}
	at := len(c.room)
	c.room = append(c.room, raw...)
	return c.room[at : at+n : at+n]
}
