package task

import (
	"maps"
	"sync"

	"github.com/roost-dev/roost/esjson"
)

// Notes are what a state keeps of the messages of one foreign file, taken while the file is read: going through half a gigabyte
// twice would show. They are good for one state. To be used by one goroutine.
type Notes struct {
	history History
	kinds   map[string]string
	list    []*Message
	free    []Message
	lent    []*noteMemory
}

// NewNotes are for a file that holds the given history.
func NewNotes(h History) *Notes { return &Notes{history: h, kinds: map[string]string{}} }

var noteMemories = sync.Pool{New: func() any { return new(noteMemory) }}

// Note takes the next message of the file, with three levels. Nothing of it is kept.
func (n *Notes) Note(message *esjson.Index) {
	if len(n.free) == 0 {
		lent := noteMemories.Get().(*noteMemory) //nolint:errcheck,forcetypeassert // it holds no others
		n.lent, n.free = append(n.lent, lent), lent[:]
	}
	m := &n.free[0]
	n.free = n.free[1:]
	m.facts.Read(n.history == API, message, n.kinds)
	n.list = append(n.list, m)
}

// attachNoted makes the messages of a file from notes. It reports false when they
// are not of these elements.
func (s *State) attachNoted(f Original, h History, seq uint64, n *Notes) bool {
	if n == nil || s.source == nil || n.history != h || len(n.list) == 0 || 2*len(n.list) != len(f.Spans) {
		return false
	}
	maps.Copy(s.kinds, n.kinds)
	for i, m := range n.list {
		m.ID, m.History, m.Seq, m.Foreign, m.state = s.NextMessage(), h, seq, true, s
		m.body = place{Blob: f.Blob, Off: f.Spans[2*i], Len: f.Spans[2*i+1]}
		m.rawAway, m.textAway = true, true
		s.attach(m)
	}
	s.lent = append(s.lent, n.lent...)
	*n = Notes{history: h}
	return true
}

// Release ends a state that was made from notes, and gives the memory of its messages to the next notes. A reader of
// ten thousand tasks, one after the other, would spend a quarter of its time on allocating and clearing memory.
// Nothing may use the state or its messages afterwards; texts, times and sums that they returned stay valid. A caller
// that does not call it loses nothing else.
func (s *State) Release() {
	for _, lent := range s.lent {
		clear(lent[:])
		noteMemories.Put(lent)
	}
	*s = State{}
}
