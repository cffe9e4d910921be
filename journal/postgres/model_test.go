package postgres_test

import (
	"fmt"
	"hash/fnv"
	"math"

	"github.com/anishathalye/porcupine"
)

// The kinds of operations of a history.
const (
	kindOwn    = "own"    // take the lease, and commit epoch.opened
	kindAppend = "append" // commit something
	kindAnswer = "answer" // commit the answer to a question, when the log has none
	kindHeld   = "held"   // ask whether the lease lasts
	kindRead   = "read"   // read the whole log
	kindFollow = "follow" // a follower has come to a commit
	kindClose  = "close"  // give the lease back
)

// How an operation ended.
const (
	resultOK      = "ok"
	resultUnknown = "unknown"  // it may have happened, or may happen still
	resultNone    = "none"     // nothing was done
	resultFenced  = "fenced"   // another owner was there
	resultLate    = "answered" // the question had an answer
	resultDamaged = "damaged"  // the log has a gap, or epochs that fall
)

// state is what a journal is in the model: a log that only the newest owner appends to.
type state struct {
	epoch    uint64
	owner    string // the newest one: the own operation that made it
	head     uint64
	log      uint64 // a hash of the commits and their epochs, in order
	answered uint64 // a bit a question
}

// extended is the hash of a log with one more commit.
func extended(log uint64, by string, epoch uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %d", log, by, epoch)
	return h.Sum64()
}

// step is one operation on the model. take and append are apart, because an owner that has taken the lease may die before
// it commits epoch.opened.
type step struct {
	kind     string // kindOwn takes the lease; its epoch.opened is a kindAppend
	journal  string
	op       string
	owner    string
	question int // of kindAnswer
}

// outcome of a step.
type result struct {
	what  string
	seq   uint64 // of the commit, or the head that was found
	epoch uint64 // of a lease that was taken, 0 = not known
	log   uint64 // that was read
}

// next is what the step makes of a journal; false when it cannot have ended like this.
func next(s state, in step, out result) (bool, state) {
	owns := s.owner == in.owner
	switch {
	case out.what == resultFenced:
		return !owns, s
	case out.what == resultLate:
		return s.answered>>in.question&1 == 1, s
	}
	switch in.kind {
	case kindOwn:
		s.epoch++
		s.owner = in.op
		return out.what == resultUnknown || out.seq == s.head && (out.epoch == 0 || out.epoch == s.epoch), s
	case kindHeld:
		return owns, s
	case kindRead:
		return s.head == out.seq && s.log == out.log, s
	}
	closed := in.kind == kindAnswer && s.answered>>in.question&1 == 1
	if out.what == resultUnknown && (!owns || closed) {
		return true, s // it has not happened
	}
	s.head++
	s.log = extended(s.log, in.op, s.epoch)
	if in.kind == kindAnswer {
		s.answered |= 1 << in.question
	}
	return owns && !closed && (out.what == resultUnknown || out.seq == s.head), s
}

var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		at := map[string]int{}
		for _, op := range history {
			name := op.Input.(step).journal
			if _, ok := at[name]; !ok {
				at[name] = len(parts)
				parts = append(parts, nil)
			}
			parts[at[name]] = append(parts[at[name]], op)
		}
		return parts
	},
	Init: func() any { return state{} },
	Step: func(s, in, out any) (bool, any) {
		ok, after := next(s.(state), in.(step), out.(result))
		return ok, after
	},
	Hash:              func(s any) uint64 { return s.(state).log },
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
	DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
}

// operations makes a history of what the servers have printed.
func operations(events []event) (list []porcupine.Operation) {
	type told struct{ call, taken, done *event }
	all, order := map[string]*told{}, []*told{}
	closed := map[string]int64{} // by owner: since when it may give its lease back
	for i := range events {
		e := &events[i]
		switch e.Phase {
		case "call":
			all[e.Op] = &told{call: e}
			order = append(order, all[e.Op])
			if e.Kind == kindClose {
				closed[e.Owner] = e.At
			}
		case "taken":
			all[e.Op].taken = e
		case "done":
			all[e.Op].done = e
		}
	}
	for _, o := range order {
		add := func(from, to int64, in step, out result) {
			list = append(list, porcupine.Operation{ClientId: o.call.Server, Call: from, Return: to, Input: in, Output: out})
		}
		c, in := o.call, step{kind: o.call.Kind, journal: o.call.Journal, op: o.call.Op, owner: o.call.Owner, question: o.call.Question}
		end, out := int64(math.MaxInt64), result{what: resultUnknown}
		if o.done != nil && o.done.Result != resultUnknown {
			end, out = o.done.At, result{what: o.done.Result, seq: o.done.Seq, epoch: o.done.Epoch, log: o.done.Log}
		}
		switch {
		case c.Kind == kindOwn && o.taken != nil:
			opened := step{kind: kindAppend, journal: c.Journal, op: c.Op, owner: c.Op}
			if out.what != resultOK {
				out, end = result{what: resultUnknown}, math.MaxInt64
			}
			add(c.At, o.taken.At, in, result{what: resultOK, seq: o.taken.Seq, epoch: out.epoch})
			add(o.taken.At, end, opened, out)
		case out.what == resultNone, c.Kind == kindClose:
		case c.Kind == kindHeld && out.what == resultOK:
			add(c.At, end, in, out)
			// It has promised that no other owner comes until then.
			promised := c.At + int64(c.Margin)
			if since, ok := closed[c.Owner]; end <= promised && (!ok || since > promised) {
				add(promised, promised, in, out)
			}
		case out.what == resultUnknown && (c.Kind == kindHeld || c.Kind == kindRead):
		default:
			add(c.At, end, in, out)
		}
	}
	return list
}
