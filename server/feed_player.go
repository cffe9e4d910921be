package server

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	feedlog "github.com/roost-dev/roost/store/feed"
)

// unseenLooks is how often is looked for commits that a line tells of and the journal does
// not show yet, and unseenPause how long is waited in between. An owner tells behind its sync,
// and what it published of that can be read at once, unless it writes there at that very moment.
// Looks are counted and not time: a process that stood still for long has not looked.
const (
	unseenLooks = 400
	unseenPause = 5 * time.Millisecond
)

// player gives the events that lines of the feed make known. What it gives depends on the
// feed and the journals alone, so that everybody finds the same behind a cursor. It keeps
// some tapes open: lines of a few tasks come turn about. It is for one goroutine.
type player struct {
	store *store.Store
	most  int
	tapes []*playing // the one used last comes last
	pause func()     // between looks at what is not shown yet; nil: unseenPause
}

// look counts looks at a journal that does not show yet what a line tells of.
type look struct {
	n    int
	last bool
}

// again waits for what is not shown, and reports whether to look once more. When its owner has
// let go of the journal one look more shows all that there will be: the look before may have
// come while the owner was still there.
func (p *player) again(ctx context.Context, ref store.Ref, l *look) (bool, error) {
	if l.n++; l.last || l.n >= unseenLooks {
		return false, nil
	}
	if p.pause != nil {
		p.pause()
	} else {
		select {
		case <-time.After(unseenPause):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	l.last = !p.store.Held(ref)
	return true, nil
}

// passOver is for a journal that cannot be read: what is gone or damaged is passed over. That
// this process has too many files open is no trouble of the journal and will pass: to go on
// would be to lose its events.
func passOver(ctx context.Context, err error) error {
	for _, passing := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, passing) {
			return err
		}
	}
	return ctx.Err()
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
		return passOver(ctx, err)
	}
	if store.IsOverlay(ref) {
		return p.playOverlay(ctx, e, ref, from, give)
	}
	var looks look
	for again := true; ; {
		tape, err := p.tape(ctx, task, ref, from-1)
		if err != nil {
			return passOver(ctx, err)
		}
		replaced := false
		for events, err := range tape.Read(ctx) {
			if err != nil {
				p.drop(task)
				if replaced = again && errors.Is(err, journal.ErrReplaced); replaced {
					again = false // another one that is put there meanwhile is looked for no more
					break
				}
				return passOver(ctx, err)
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
		case replaced:
			continue
		case from > e.New.To || tape.Seq() >= e.New.To:
			return nil
		}
		if more, err := p.again(ctx, ref, &looks); err != nil || !more {
			return err
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
	// A journal that does not show what the line tells of looks younger than it is.
	for looks := (look{}); ; {
		if head, err := log.Head(ctx); err != nil || head >= e.New.To {
			break
		}
		if more, err := p.again(ctx, ref, &looks); err != nil {
			return 0, err
		} else if !more {
			break
		}
	}
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
