package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store/actions"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/task"
)

// What moves the head is measured on a task of many small messages: the worst case for
// what costs by their number.
const (
	rewindMessages = 50_000
	rewindText     = 200
	rewindRounds   = 7
)

// rewinds measures rewind, undo and fork until they are saved, and what is read of the
// history that would be sent. The yardstick is reading the same log, from memory as all
// of them do.
func rewinds(ctx context.Context, o options) ([]row, error) {
	n := rewindMessages
	if o.quick {
		n = 2_000
	}
	s, err := store.Open(store.Options{Root: filepath.Join(o.dir, "rewinds"), Program: "bench"})
	if err != nil {
		return nil, err
	}
	ref, err := makeLong(ctx, s, n)
	if err != nil {
		return nil, err
	}
	m := moves{ctx: ctx, store: s, ref: ref, took: map[string]times{}}
	for range rewindRounds {
		if err := m.round(fmt.Sprint("#", n/4)); err != nil {
			return nil, err
		}
	}
	size, err := fileSize(filepath.Join(ref.Log, "journal.jsonl"))
	if err != nil {
		return nil, err
	}
	read := m.took["read"].at(0)
	var rows []row
	for _, what := range []struct{ name, bar string }{
		{"rewind", "< 50 ms"}, {"undo", "< 50 ms"}, {"fork", "< 50 ms"}, {"open", ""}, {"effective history", "< 20 ms"},
	} {
		best := m.took[what.name].at(0) // a busy neighbour slows some
		rows = append(rows, row{
			what: fmt.Sprintf("r %s of %d messages, best of %d", what.name, n, rewindRounds), got: ms(best),
			floor: "read " + mb(size) + " " + ms(read), ratio: over(best, read), bar: what.bar,
		})
	}
	return rows, nil
}

// moves are the measured steps and their times.
type moves struct {
	ctx   context.Context //nolint:containedctx // of one measurement
	store *store.Store
	ref   store.Ref
	took  map[string]times
}

func (m *moves) note(what string, begun time.Time) {
	m.took[what] = append(m.took[what], time.Since(begun))
}

// round rewinds to a message, takes that back, forks there and reads all.
func (m *moves) round(at string) error {
	begun := time.Now()
	if _, err := os.ReadFile(filepath.Join(m.ref.Log, "journal.jsonl")); err != nil {
		return err
	}
	m.note("read", begun)

	begun = time.Now()
	_, finish, err := history.Rewind(m.ctx, m.store, m.ref, history.RewindOptions{To: at})
	m.note("rewind", begun)
	if err == nil {
		err = finish(m.ctx)
	}
	if err != nil {
		return err
	}

	begun = time.Now()
	saved := func(api.Action, api.TaskActions) { m.note("undo", begun) }
	if _, _, err := actions.Undo(m.ctx, m.store, m.ref.ID, actions.Options{Saved: saved}); err != nil {
		return err
	}

	begun = time.Now()
	_, finish, err = history.Fork(m.ctx, m.store, m.ref, history.ForkOptions{At: at})
	m.note("fork", begun)
	if err == nil {
		err = finish(m.ctx)
	}
	if err != nil {
		return err
	}

	begun = time.Now()
	v, err := m.store.Read(m.ctx, m.ref)
	if err != nil {
		return err
	}
	m.note("open", begun)
	begun = time.Now()
	sent, _, err := v.Sent()
	m.note("effective history", begun)
	if err == nil && len(sent) == 0 {
		err = errors.New("nothing would be sent")
	}
	return errors.Join(err, v.Close())
}

// makeLong makes a task of n messages, half of them on each side.
func makeLong(ctx context.Context, s *store.Store, n int) (ref store.Ref, err error) {
	t, err := s.Create(ctx, task.Created{Task: "long", Number: 1, CreatedAt: baseTS})
	if err != nil {
		return ref, err
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()
	for i := 0; i < n/2; {
		var all []task.Event
		next := t.State().NextMessage()
		for ; i < n/2 && len(all) < 100; i++ {
			events, _ := step(next+uint64(len(all)), i, rewindText)
			all = append(all, events...)
		}
		if err := t.Commit(ctx, all...); err != nil {
			return t.Ref, err
		}
	}
	return t.Ref, t.Barrier(ctx)
}
