package server

import (
	"strconv"
	"strings"

	"github.com/roost-dev/roost/engine"
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
