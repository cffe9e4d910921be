package task

import (
	"maps"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
)

// Notes are what a state keeps of the messages of one foreign file, taken while the file is read: going through half a gigabyte
// twice would show. They are good for one state. To be used by one goroutine.
type Notes struct {
	history History
	kinds   map[string]string
	list    []*Message
	free    []Message
}

// NewNotes are for a file that holds the given history.
func NewNotes(h History) *Notes { return &Notes{history: h, kinds: map[string]string{}} }

// noteChunk is how many messages get their memory at once.
const noteChunk = 256

// Note takes the next message of the file, with three levels. Nothing of it is kept.
func (n *Notes) Note(message *esjson.Index) {
	if len(n.free) == 0 {
		n.free = make([]Message, min(noteChunk, 8+len(n.list))) // most tasks are small
	}
	m := &n.free[0]
	n.free = n.free[1:]
	m.facts.read(n.history, message, n.kinds)
	n.list = append(n.list, m)
}

// Adopt gives a new state that adopting the files makes, for a reader of a folder that nobody adopted. noted has the notes of
// files, by their names; of those no byte is read before a message is asked for. The others are read. What cannot
// be read is in the state's problems.
func (s *State) Adopt(e Adopted, noted map[string]*Notes) {
	s.UpdatedAt = max(s.UpdatedAt, e.CreatedAt)
	if err := s.adoptNoted(e, journal.Commit{At: e.CreatedAt}, noted); err != nil {
		s.Problems = append(s.Problems, Problem{Reason: "adopt the files: " + err.Error()})
	}
	s.trim()
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
	n.list, n.free = nil, nil
	return true
}
