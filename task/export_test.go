package task

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

// Notes is how many notes the state keeps of what is in memory.
func (s *State) Notes() int { return len(s.held) }
