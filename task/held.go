package task

func heldMessage(m *Message) held { return held{message: m, size: m.size()} }
func heldResult(c *Call) held     { return held{call: c, size: len(c.Finished.Result)} }

// Lean makes the state keep only about room bytes of messages, the newest, and
// read the others from src when they are asked for. What is shown of a task is
// mostly its end, and what a composed message refers to is nearly always recent.
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

// hold notes what came into memory. Something that is held twice goes with its
// first note: it can be read again.
func (s *State) hold(h held) {
	if s.source == nil || h.size <= 0 {
		return
	}
	s.held = append(s.held, h)
	s.holding += h.size
}

// grew notes what came into memory of a message that had before bytes there:
// streamed text comes in many pieces, and each counts once.
func (s *State) grew(m *Message, before int) {
	s.hold(held{message: m, size: m.size() - before})
}

// trim lets the oldest bytes go until the rest fits.
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

// Load brings every visible message into memory, for good: for comparing whole
// histories, where reading one by one would take long.
func (s *State) Load() error {
	for _, list := range [][]*Message{s.ui, s.api} {
		raws, err := s.stored(list)
		if err != nil {
			return err
		}
		for i, m := range list {
			if m.rawAway {
				// Text that was streamed since is part of it now.
				m.raw, m.saved, m.rawAway = raws[i], nil, false
			}
		}
	}
	s.held, s.holding, s.room = nil, 0, int(^uint(0)>>1)
	return nil
}

// RawUI is the visible UI history as its file holds it.
func (s *State) RawUI() ([][]byte, error) { return s.bytes(s.ui) }

// RawAPI is the visible API history as its file holds it.
func (s *State) RawAPI() ([][]byte, error) { return s.bytes(s.api) }

func (s *State) bytes(list []*Message) ([][]byte, error) {
	raws, err := s.Raws(list)
	if err != nil {
		return nil, err
	}
	out := make([][]byte, len(raws))
	for i, raw := range raws {
		out[i] = raw
	}
	return out, nil
}
