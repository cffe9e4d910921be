package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"math"

	"github.com/roost-dev/roost/journal"
)

// span is the position of a message among the events of its commit's line, for a message that an event spells out:
// how many bytes precede it, its own, and how many follow it. The fold checks that the event holds the message's very
// bytes there. A line whose events take exactly as many bytes has the message at the same position, so that reading a
// long history only copies and decodes nothing. The zero value is no position: the message is composed, is in a blob,
// or does not end its event.
type span struct{ front, size, back uint32 }

// rawKey precedes a message that is the last member of its event.
const rawKey = `"raw":`

// in is the message, nil when a line's events do not take the bytes that they took
// when it was folded.
func (p span) in(events []byte) []byte {
	front, end := uint64(p.front), uint64(p.front)+uint64(p.size)
	if p.size < 2 || p.back == 0 || end+uint64(p.back) != uint64(len(events)) {
		return nil
	}
	if raw := events[front:end]; bytes.HasSuffix(events[:front], []byte(rawKey)) && raw[0] == '{' &&
		raw[len(raw)-1] == '}' && events[end] == '}' {
		return raw
	}
	return nil
}

// frame is the event that is folded, and how many bytes of its line surround it.
type frame struct {
	event       []byte
	front, back int
}

// frames yields the events of a commit, each with the number of bytes around it.
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

// holds returns the position at which the event spells out a message.
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

// wanted is an event to be read, and the position of a message in it.
type wanted struct {
	seq   uint64
	event int
	span
}

// inOrder compares places in the log.
func inOrder(a, b wanted) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.event, b.event))
}

// eventsAt returns the events at places of the log.
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
