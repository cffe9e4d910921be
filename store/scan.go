package store

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/task"
)

const (
	scanners  = 2       // tasks that are read at the same time
	keepAtOne = 8 << 20 // bytes of text that go into the catalogue in one transaction
)

// scan reads tasks, finds their hits, and adds them to the catalogue as long as there
// is patience for that.
func (f *search) scan(ctx context.Context, list []*candidate) {
	jobs := make(chan *candidate)
	var workers sync.WaitGroup
	var k keeper
	for range min(scanners, len(list)) {
		workers.Go(func() {
			for c := range jobs {
				f.read(ctx, c, &k)
			}
		})
	}
	for _, c := range list {
		jobs <- c
	}
	close(jobs)
	workers.Wait()
	f.keep(ctx, &k, true)
	f.unkept = k.err
}

// keeper collects entries until a transaction is worth its cost.
type keeper struct {
	mu   sync.Mutex
	list []catalog.Entry
	text int
	err  error
}

// keep writes what was collected, when there is enough of it or it is the last.
func (f *search) keep(ctx context.Context, k *keeper, last bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.list) == 0 || k.err != nil || !last && k.text < keepAtOne && len(k.list) < 1000 {
		return
	}
	k.err = f.db.Put(ctx, k.list)
	k.list, k.text = nil, 0
}

func (f *search) patient() bool {
	return f.q.Patience <= 0 || time.Since(f.began) < f.q.Patience
}

// read looks through one task. One that fails is told of and no reason to end.
func (f *search) read(ctx context.Context, c *candidate, k *keeper) {
	if ctx.Err() != nil {
		return // the search ends with that error
	}
	// The stamp is older than what is read: a change in between makes it stale.
	stamp, calm := f.s.stampOf(c.ref)
	v, err := f.s.read(ctx, c.ref, false)
	if err != nil {
		c.failed = &Damage{File: c.ref.Dir, Problem: cause(c.ref, err)}
		return
	}
	c.sum, c.ts = v.Summary, v.Summary.TS
	var text *catalog.Builder
	if f.db != nil && calm && stamp != "" && f.patient() {
		text = new(catalog.Builder)
	}
	whole := true
	for m, err := range texts(ctx, v.State) {
		if err != nil {
			whole = false // one message is lost, or the file was cut while it was read
			continue
		}
		if hit, ok := f.words.Match(m); ok {
			c.hits = append(c.hits, hit)
		}
		if text != nil {
			text.Add(m)
		}
	}
	// A damaged file stays as it is; one that changes meanwhile has another stamp.
	after, _ := f.s.stampOf(c.ref)
	err = v.Close()
	if text == nil || text.TooLarge() || after != stamp || err != nil || !whole || ctx.Err() != nil {
		return
	}
	row, err := json.Marshal(c.sum)
	if err != nil {
		return
	}
	e := text.Entry(catalogKey(c.ref), stamp, c.ts, row)
	k.mu.Lock()
	k.list = append(k.list, e)
	k.text += e.Text()
	k.mu.Unlock()
	f.keep(ctx, k, false)
}

// texts are the messages of both histories as what can be found of them, some at a
// time: a history may be larger than memory. A message that cannot be read gives an
// error, and the next one follows.
func texts(ctx context.Context, s *task.State) iter.Seq2[catalog.Message, error] {
	const atOnce = 100
	return func(yield func(catalog.Message, error) bool) {
		for _, history := range []struct {
			list []*task.Message
			of   func([]byte, int) catalog.Message
		}{{s.UI(), catalog.UI}, {s.API(), catalog.API}} {
			for from := 0; from < len(history.list); from += atOnce {
				if err := ctx.Err(); err != nil {
					yield(catalog.Message{}, err)
					return
				}
				part := history.list[from:min(from+atOnce, len(history.list))]
				raws, together := s.Raws(part)
				for i := range part {
					var raw json.RawMessage
					var err error
					if together == nil {
						raw = raws[i]
					} else if alone, lost := s.Raws(part[i : i+1]); lost == nil {
						raw = alone[0]
					} else {
						err = errors.Join(together, lost)
					}
					m := catalog.Message{}
					if err == nil {
						m = history.of(raw, from+i+1)
					}
					if !yield(m, err) {
						return
					}
				}
			}
		}
	}
}
