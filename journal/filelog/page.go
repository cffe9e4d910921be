package filelog

import (
	"bytes"
	"context"
	"iter"

	"github.com/roost-dev/roost/journal"
)

// ReadBackward implements journal.Reader. It takes the log in the stretches between known spots, from the end on.
// Whether a line counts depends on the lines before it, so each stretch is walked forward and yielded backward; a
// search for newlines from the end was rejected for that reason.
func (r *reader) ReadBackward(ctx context.Context, before uint64) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		if err := r.backward(ctx, before, yield); err != nil {
			yield(journal.Commit{}, err)
		}
	}
}

func (r *reader) backward(ctx context.Context, before uint64, yield func(journal.Commit, error) bool) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	limit, head, err := r.visible()
	if err != nil {
		return err
	}
	r.idx.Lock()
	err = r.refresh(ctx, limit)
	spots := r.idx.spots // only ever appended to
	i := len(spots) - 1
	if before > 0 {
		_, i = r.idx.before(before - 1)
	}
	r.idx.Unlock()
	if err != nil {
		return err
	}
	for ; i >= -1; i-- {
		sp, end, next := spot{seq: 1}, limit, uint64(0)
		if i >= 0 {
			sp = spots[i]
		}
		if i+1 < len(spots) {
			end, next = spots[i+1].off, spots[i+1].seq
		}
		if sp.off >= end && i < 0 && next <= 1 { // else the first commits are lost
			return nil
		}
		steps, err := r.stretch(ctx, cursorAt(sp, i, 1), end, next, head)
		if err != nil {
			return err
		}
		for k := len(steps) - 1; k >= 0; k-- {
			st := steps[k]
			if before > 0 && st.seq >= before {
				continue
			}
			if st.damage != nil {
				if !yield(journal.Commit{}, &journal.DamageError{Damage: *st.damage}) {
					return nil
				}
			} else if !yield(decode(st.line)) {
				return nil
			}
		}
	}
	return nil
}

// step is a commit or a lost one.
type step struct {
	seq    uint64
	line   rawLine
	damage *journal.Damage
}

// stretch reads [c.off, end). next is the sequence of the commit at end, 0 if end
// is the end of the log.
func (r *reader) stretch(ctx context.Context, c cursor, end int64, next, head uint64) ([]step, error) {
	var out []step
	lost := func(ds []journal.Damage) {
		for _, d := range ds {
			out = append(out, step{seq: d.Seq, damage: &d})
		}
	}
	err := r.walk(ctx, &c.off, &c.order, end, func(it item) bool {
		lost(it.lost)
		if it.commit {
			it.raw.text = bytes.Clone(it.raw.text)
			out = append(out, step{seq: it.seq, line: it.raw})
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if next > 0 {
		ds, _ := c.order.settle(next, end)
		lost(ds)
	} else {
		lost(c.order.end(end, head))
	}
	return out, nil
}
