package engine

import (
	"fmt"
	"os"
	"sync"
)

const (
	// backlogAfter is how many bytes of events a run keeps in memory; what is older lies in
	// a file. Without it a long run would hold its whole log once more, and a server with
	// many of them as much as all the rest.
	backlogAfter = 64 << 10
	// backlogWrite is how much is put away at once.
	backlogWrite = 32 << 10
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

// rooms are for what is written at once: a moment each, of many runs.
var rooms = sync.Pool{New: func() any { room := make([]byte, 0, backlogWrite); return &room }}

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
	from := rooms.Get().(*[]byte) //nolint:errcheck,forcetypeassert // nothing else is put there
	room := *from
	defer rooms.Put(from) // as it was: one that grew for a large event is not kept
	for first := len(s.slots); s.held > backlogAfter/2; {
		// As many events as fit go at once; one that alone does not fit, goes alone.
		n, at := 0, s.end
		for room = room[:0]; ; n++ {
			if first+n == len(events) || s.held-len(room) <= backlogAfter/2 { // the last one may be large, too
				break
			}
			data := events[first+n].Data
			if n > 0 && len(room)+len(data) > backlogWrite {
				break
			}
			s.slots = append(s.slots, slot{at + int64(len(room)), len(data)})
			room = append(room, data...)
		}
		if _, err := s.file.WriteAt(room, at); err != nil {
			s.refused, s.slots = true, s.slots[:first] // what lies there stays readable
			return
		}
		for i := range n {
			events[first+i].Data = nil
		}
		first, s.held, s.end = first+n, s.held-len(room), at+int64(len(room))
	}
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
