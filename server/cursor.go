package server

import (
	"strconv"
	"strings"

	"github.com/roost-dev/roost/engine"
	feedlog "github.com/roost-dev/roost/store/feed"
)

// where is the place in a task's events that a client asked for.
type where struct {
	mark  engine.Mark // Seq 0: from the start
	whole bool        // behind all of commit Seq, whatever its epoch
	live  bool        // only what comes from now on
}

// readWhere reads what a client sent: the id of the last event that it saw, 0, or the
// number of a commit. "" is live. An id is only taken as events have it, so that no two
// texts name one place.
func readWhere(text string) (where, bool) {
	if text == "" {
		return where{live: true}, true
	}
	if n, ok := number(text); ok {
		return where{mark: engine.Mark{Seq: n}, whole: true}, true
	}
	epoch, rest, ok := strings.Cut(text, ".")
	if !ok {
		return where{}, false
	}
	seq, index, ok := strings.Cut(rest, "-")
	if !ok {
		return where{}, false
	}
	e, ok1 := number(epoch)
	s, ok2 := number(seq)
	i, ok3 := number(index)
	if !ok1 || !ok2 || !ok3 || s == 0 || i > 1<<30 {
		return where{}, false
	}
	return where{mark: engine.Mark{Epoch: e, Seq: s, Index: int(i)}}, true
}

// number reads a number as it is printed: digits, no sign, no zero before them.
func number(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	return n, err == nil && strconv.FormatUint(n, 10) == text
}

// position is how far a follower is: it has all of the commits up to seq, and of the
// next one the events up to skip.
type position struct {
	seq  uint64
	skip int // how many events of commit seq+1
}

func (w where) position() position {
	if w.whole || w.mark.Seq == 0 {
		return position{seq: w.mark.Seq}
	}
	return position{seq: w.mark.Seq - 1, skip: w.mark.Index + 1}
}

// take gives what a follower does not have of a commit's events, and moves on.
func (p *position) take(events []engine.Event) []engine.Event {
	if len(events) == 0 || events[0].Seq <= p.seq {
		return nil
	}
	if events[0].Seq == p.seq+1 {
		events = events[min(p.skip, len(events)):]
	}
	if len(events) > 0 {
		p.seq = events[0].Seq
	} else {
		p.seq++
	}
	p.skip = 0
	return events
}

// place is behind what the client has.
func (w where) place() place {
	if w.whole || w.mark.Seq == 0 {
		return behind(w.mark.Seq)
	}
	return place{seq: w.mark.Seq, index: w.mark.Index}
}

// stand is a place in the stream of all tasks as a client has it: a line of the feed, and
// an event among those that it made known, or all of them when seq is 0. Clients
// take it as one word.
type stand struct {
	line  feedlog.Place
	seq   uint64
	index int
}

func (s stand) String() string {
	if s.line == (feedlog.Place{}) {
		return "0"
	}
	b := append([]byte(s.line.Feed), '.')
	b = append(strconv.AppendUint(b, s.line.Segment, 10), '.')
	b = append(strconv.AppendInt(b, s.line.Offset, 10), '.')
	b = append(strconv.AppendUint(b, uint64(s.line.Sum), 16), '.')
	b = append(strconv.AppendUint(b, s.seq, 10), '-')
	return string(strconv.AppendInt(b, int64(s.index), 10))
}

func (s stand) place() place {
	switch {
	case s.line == (feedlog.Place{}):
		return place{}
	case s.seq == 0:
		return behindLine(s.line.Segment, s.line.Offset)
	}
	return place{s.line.Segment, s.line.Offset, s.seq, s.index}
}

// readStand reads what a client sent, only as it is printed. "0" is before all that is
// kept.
func readStand(text string) (s stand, ok bool) {
	if text == "0" {
		return s, true
	}
	parts := strings.Split(text, ".")
	if len(parts) != 5 || len(text) > 200 {
		return s, false
	}
	seq, index, ok := strings.Cut(parts[4], "-")
	segment, ok1 := number(parts[1])
	offset, ok2 := number(parts[2])
	sum, err := strconv.ParseUint(parts[3], 16, 32)
	n, ok3 := number(seq)
	i, ok4 := number(index)
	s = stand{feedlog.Place{Feed: parts[0], Segment: segment, Offset: int64(offset), Sum: uint32(sum)}, n, int(i)}
	return s, ok && ok1 && ok2 && ok3 && ok4 && err == nil && i < 1<<30 && segment > 0 && s.String() == text
}
