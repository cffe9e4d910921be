package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	feedlog "github.com/roost-dev/roost/store/feed"
)

// unseenFor is how long is waited for commits that a line tells of and the journal does
// not show yet. An owner tells behind its sync, so that is next to never.
const unseenFor = 2 * time.Second

// player gives the events that lines of the feed make known. What it gives depends on the
// feed and the journals alone, so that everybody finds the same behind a cursor. It keeps
// some tapes open: lines of a few tasks come turn about. It is for one goroutine.
type player struct {
	store *store.Store
	most  int
	tapes []*playing // the one used last comes last
}

type playing struct {
	task feedlog.Task
	tape *engine.Tape
}

// play gives the events of an entry, commit by commit. A journal that is not there any
// more, or cannot be read, gives none: its task's own stream says why.
func (p *player) play(ctx context.Context, e feedlog.Entry, give func([]engine.Event) error) error {
	task := feedlog.Task{Source: e.Source, ID: e.Task}
	if e.End {
		defer p.drop(task)
	}
	ref, ok := p.store.LogRef(e.Source, e.Task)
	if !ok || e.New.To < max(e.New.From, 1) {
		return nil
	}
	from, err := p.from(ctx, ref, e)
	if err != nil {
		return ctx.Err()
	}
	if store.IsOverlay(ref) {
		return p.playOverlay(ctx, e, ref, from, give)
	}
	until := time.Now().Add(unseenFor)
	for again := false; ; {
		tape, err := p.tape(ctx, task, ref, from-1)
		if err != nil {
			return ctx.Err()
		}
		for events, err := range tape.Read(ctx) {
			if err != nil {
				p.drop(task)
				if errors.Is(err, journal.ErrReplaced) && !again {
					again = true
					break
				}
				return ctx.Err()
			}
			if len(events) == 0 || events[0].Seq < from {
				continue
			}
			if events[0].Seq > e.New.To {
				break
			}
			from = events[0].Seq + 1
			if err := give(events); err != nil {
				return err
			}
			if from > e.New.To {
				break
			}
		}
		switch {
		case from > e.New.To || tape.Seq() >= e.New.To:
			return nil
		case again:
			continue
		case time.Now().After(until) || !p.store.Held(ref):
			return nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// from is the first commit that an entry makes known.
func (p *player) from(ctx context.Context, ref store.Ref, e feedlog.Entry) (uint64, error) {
	if e.New.From > 0 {
		return e.New.From, nil
	}
	log, err := p.store.Follow(ref)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	first, err := store.FirstSince(ctx, log, e.Birth)
	return max(min(first, e.Line.From), 1), err
}

// tape is a task's tape behind a commit.
func (p *player) tape(ctx context.Context, task feedlog.Task, ref store.Ref, after uint64) (*engine.Tape, error) {
	i := slices.IndexFunc(p.tapes, func(one *playing) bool { return one.task == task })
	if i >= 0 && p.tapes[i].tape.Seq() == after {
		one := p.tapes[i]
		p.tapes = append(slices.Delete(p.tapes, i, i+1), one)
		return one.tape, nil
	}
	p.drop(task)
	if len(p.tapes) >= p.most {
		p.drop(p.tapes[0].task)
	}
	tape, err := engine.OpenTape(ctx, p.store, ref, after)
	if err == nil {
		p.tapes = append(p.tapes, &playing{task, tape})
	}
	return tape, err
}

func (p *player) drop(task feedlog.Task) {
	p.tapes = slices.DeleteFunc(p.tapes, func(one *playing) bool {
		if one.task == task {
			_ = one.tape.Close() // it was only read
		}
		return one.task == task
	})
}

func (p *player) close() {
	for _, one := range p.tapes {
		_ = one.tape.Close() // it was only read
	}
	p.tapes = nil
}
