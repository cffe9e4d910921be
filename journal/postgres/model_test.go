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
	s.head++
	s.log = extended(s.log, in.op, s.epoch)
	if in.kind == kindAnswer {
		s.answered |= 1 << in.question
	}
	return owns && !closed && out.seq == s.head, s
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

// kept is what a journal holds in the end. It decides what became of an operation whose server got no answer: a log only
// grows, so a commit that is not there never was. (That it only grows is what the readings in the history show.)
type kept struct {
	log   []uint64          // its hash after each commit
	seq   map[string]uint64 // by operation: its commit
	epoch map[string]uint64 // by operation that owned: what it got
	last  uint64            // the newest epoch
	seen  []int64           // by commit: when somebody had read it
}

// see notes when the commits were read for the first time.
func (k *kept) see(events []event, journal string) {
	k.seen = make([]int64, len(k.log)+2)
	for i := range k.seen {
		k.seen[i] = math.MaxInt64
	}
	for _, e := range events {
		if e.Journal == journal && (e.Kind == kindFollow || e.Kind == kindRead && e.Result == resultOK) {
			k.seen[e.Seq] = min(k.seen[e.Seq], e.At)
		}
	}
	for i := len(k.log); i >= 0; i-- {
		k.seen[i] = min(k.seen[i], k.seen[i+1])
	}
}

// told is what the servers have printed about an operation.
type told struct{ call, taken, done *event }

// operations makes a history of what the servers have printed, and of what the journals hold.
func operations(events []event, journals map[string]*kept) (list []porcupine.Operation) {
	all, order := map[string]*told{}, []*told{}
	closed := map[string]int64{} // by owner: since when it may give its lease back
	lost := map[string]int{}     // by journal: epochs that no operation is known to have got
	for name, k := range journals {
		k.see(events, name)
		lost[name] = int(k.last) - len(k.epoch)
	}
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
			if journals[e.Journal].epoch[e.Op] == 0 {
				lost[e.Journal]--
			}
		case "done":
			all[e.Op].done = e
		}
	}
	for _, o := range order {
		c, k := o.call, journals[o.call.Journal]
		add := func(from, to int64, kind string, out result) {
			in := step{kind: kind, journal: c.Journal, op: c.Op, owner: c.Owner, question: c.Question}
			if c.Kind == kindOwn {
				in.owner = c.Op
			}
			list = append(list, porcupine.Operation{ClientId: c.Server, Call: from, Return: to, Input: in, Output: out})
		}
		end, out := int64(math.MaxInt64), result{what: resultUnknown}
		if o.done != nil && o.done.Result != resultUnknown {
			end, out = o.done.At, result{what: o.done.Result, seq: o.done.Seq, log: o.done.Log}
		}
		switch seq, there := k.seq[c.Op]; {
		case there && out.what == resultUnknown:
			end, out = k.seen[seq], result{what: resultOK, seq: seq}
		case out.what == resultOK && !there && (c.Kind == kindAppend || c.Kind == kindAnswer || c.Kind == kindOwn):
			// It is acknowledged and not there: the model refuses that.
		case out.what == resultUnknown && c.Kind != kindOwn, out.what == resultNone, c.Kind == kindClose:
			continue
		}
		switch {
		case c.Kind == kindOwn && o.taken != nil:
			add(c.At, o.taken.At, kindOwn, result{what: resultOK, seq: o.taken.Seq, epoch: k.epoch[c.Op]})
			if out.what == resultOK {
				add(o.taken.At, end, kindAppend, out)
			}
		case c.Kind == kindOwn:
			if lost[c.Journal] > 0 { // else it got no epoch
				add(c.At, math.MaxInt64, kindOwn, out)
			}
		case c.Kind == kindHeld && out.what == resultOK:
			add(c.At, end, kindHeld, out)
			// It has promised that no other owner comes until then.
			promised := c.At + int64(c.Margin)
			if since, ok := closed[c.Owner]; end <= promised && (!ok || since > promised) {
				add(promised, promised, kindHeld, out)
			}
		default:
			add(c.At, end, c.Kind, out)
		}
	}
	return list
}
