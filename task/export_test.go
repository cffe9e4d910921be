package task

import "unsafe"

// Holding is how many bytes of messages and results are in memory, counted and
// not booked: what the books say is under test.
func (s *State) Holding() int {
	n := 0
	for _, m := range s.messages {
		n += m.size()
	}
	for _, c := range s.order {
		if c.Finished != nil {
			n += len(c.Finished.Result)
		}
	}
	return n
}

// FirstNote is where the oldest of those notes lies in memory, and how much it takes.
func (s *State) FirstNote() (at, size uintptr) {
	if len(s.held) == 0 {
		return 0, 0
	}
	return uintptr(unsafe.Pointer(&s.held[0])), unsafe.Sizeof(s.held[0])
}

// Notes is how many notes the state keeps of what is in memory.
func (s *State) Notes() int { return len(s.held) }

// SnapshotHead is what the snapshots of this version begin with.
const SnapshotHead = snapshotHead
