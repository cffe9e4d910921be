package engine

import (
	"fmt"
	"os"
)

const (
	// backlogAfter is how many bytes of events a run keeps in memory; what is older lies in
	// a file. Without it a long run would hold its whole log once more.
	backlogAfter = 512 << 10
	// backlogBatch is how many events a listener takes at a time.
	backlogBatch = 64
)

// backlog keeps the data of a stream's older events in a file without a name, so that
// nothing is left of it whatever happens. It holds events that are in no log too
// (questions, a child's), which is why they are not read from there again. Where there
// are no such files, or the disk refuses, everything stays in memory.
type backlog struct {
	dir     string
	file    *os.File
	end     int64  // of the file
	slots   []slot // of the events whose data is in the file: all before the others
	held    int    // bytes of the other events' data
	refused bool
}

// slot is where an event's data lies.
type slot struct {
	at   int64
	size int
}

// tidy takes the last n events in, and puts older ones away.
func (s *backlog) tidy(events []Event, n int) {
	for _, e := range events[len(events)-n:] {
		s.held += len(e.Data)
	}
	if s.held <= backlogAfter || s.dir == "" || s.refused {
		return
	}
	if s.file == nil {
		f, err := unnamed(s.dir)
		if err != nil {
			s.refused = true
			return
		}
		s.file = f
	}
	var out []byte
	var slots []slot
	first, left := len(s.slots), s.held
	for i := first; left > backlogAfter/2; i++ {
		slots = append(slots, slot{s.end + int64(len(out)), len(events[i].Data)})
		out = append(out, events[i].Data...)
		left -= len(events[i].Data)
	}
	if _, err := s.file.WriteAt(out, s.end); err != nil {
		s.refused = true // what lies there stays readable
		return
	}
	for i := range slots {
		events[first+i].Data = nil
	}
	s.slots, s.held, s.end = append(s.slots, slots...), left, s.end+int64(len(out))
}

// fill gives the first of events the data that lies in these slots. It returns those
// before the first one whose data cannot be read. It needs no lock: what lies in the
// file never changes.
func (s *backlog) fill(events []Event, slots []slot) ([]Event, error) {
	for i, p := range slots {
		data := make([]byte, p.size)
		if _, err := s.file.ReadAt(data, p.at); err != nil {
			return events[:i], fmt.Errorf("read the run's older events from the temporary folder: %w", err)
		}
		events[i].Data = data
	}
	return events, nil
}
