package search

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

const (
	scanners  = 2        // tasks that are read at the same time
	keepAtOne = 16 << 20 // bytes of text that go into the catalogue in one transaction

	// bytes of files; of tasks with more, one is read at a time: what is known of each of its
	// messages stays in memory
	largeFiles = 256 << 20
)

// scan reads tasks, finds their hits, and adds them to the catalogue as long as there
// is patience for that.
func (f *search) scan(ctx context.Context, list []*candidate, from spot) {
	var k keeper
	store.Parallel(ctx, scanners, len(list), func(i int) {
		f.read(ctx, list[i], &k, from)
		progress.Report(ctx, progress.State{What: "reading for the search", Done: i + 1, Of: len(list)})
	})
	f.keep(ctx, &k, true)
	f.unkept = k.err
}

// keeper collects entries until a transaction is worth its cost. While one is written
// the other tasks are read.
type keeper struct {
	mu   sync.Mutex
	list []catalog.Entry
	text int

	large sync.Mutex // held while a task of many bytes is read

	writing sync.Mutex
	err     error // under writing
}

// keep writes what was collected, when there is enough of it or it is the last.
func (f *search) keep(ctx context.Context, k *keeper, last bool) {
	k.mu.Lock()
	if len(k.list) == 0 || !last && k.text < keepAtOne && len(k.list) < 1000 {
		k.mu.Unlock()
		return
	}
	list := k.list
	k.list, k.text = nil, 0
	k.mu.Unlock()
	k.writing.Lock()
	defer k.writing.Unlock()
	if k.err == nil {
		k.err = f.db.Put(ctx, list)
	}
}

// read looks through one task. A failure is reported and does not end the search.
func (f *search) read(ctx context.Context, c *candidate, k *keeper, from spot) {
	if c.Size > largeFiles {
		k.large.Lock()
		defer k.large.Unlock()
	}
	v, err := f.s.ReadUnlabelled(ctx, c.Ref)
	if err != nil {
		c.failed = &api.Damage{File: c.Ref.Dir, Problem: store.ReadProblem(c.Ref, err)}
		return
	}
	var text *catalog.Builder
	patient := f.q.Patience <= 0 || time.Since(f.began) < f.q.Patience
	if f.db != nil && c.Stamp != "" && !c.large && patient {
		text = new(catalog.Builder)
	}
	whole := true
	for m, err := range texts(ctx, v.State) {
		if err != nil {
			whole = false // one message is lost, or the file was cut while it was read
			continue
		}
		f.judge(c, m, from)
		if text != nil && !c.large {
			text.Add(m)
			c.large = text.TooLarge()
		}
	}
	// The stamp is older than what was read: a change since makes it stale.
	if err := v.Close(); text == nil || err != nil || !whole || ctx.Err() != nil || !f.tasks.Unchanged(c.Candidate) {
		return
	}
	stamp := c.Stamp
	if c.large {
		text, stamp = new(catalog.Builder), tooLarge+stamp
	}
	e := text.Entry(catalogKey(c.Ref), stamp)
	k.mu.Lock()
	k.list = append(k.list, e)
	k.text += e.Text()
	k.mu.Unlock()
	f.keep(ctx, k, false)
}

// tooLarge is put before the stamp of a task of which nothing is kept but that it has too
// much text. It is read each time.
const tooLarge = "too large "

// judge matches a message of a task.
func (f *search) judge(c *candidate, m catalog.Message, from spot) {
	for i, a := range f.also {
		if c.also&(1<<i) == 0 {
			if _, ok := a.q.Match(m); ok {
				c.also |= 1 << i
			}
		}
	}
	hit, ok := f.words.Match(m)
	if !ok {
		return
	}
	c.hits = append(c.hits, hit)
	// Of a task with a great many hits only those that can come onto the page are held.
	if most := f.most(Result{}, from.given(c)); most > 0 && len(c.hits) > 2*most+1000 {
		slices.SortFunc(c.hits, catalog.Rank)
		c.hits = c.hits[:most]
	}
}

// texts are the messages of both histories as what can be found of them. They come in the order of their times, so
// that both histories' messages about one thing are adjacent. A message that cannot be read gives an error, and the next
// one follows.
func texts(ctx context.Context, s *task.State) iter.Seq2[catalog.Message, error] {
	return func(yield func(catalog.Message, error) bool) {
		list := inOrder(s)
		messages := make([]*task.Message, len(list))
		for i, t := range list {
			messages[i] = t.message
		}
		place := 0
		for raw, err := range fold.Raws(ctx, s, messages) {
			m := catalog.Message{}
			if err == nil {
				m = list[place].of(raw, list[place].number)
				m.Place = place
			}
			place++
			if !yield(m, err) {
				return
			}
		}
	}
}

// saying is a message in its history.
type saying struct {
	message *task.Message
	number  int // from 1
	of      func([]byte, int) catalog.Message
}

// inOrder are the messages of both histories in the order of their times. One without a
// time stays behind the one before it; at the same time the person's history is first.
func inOrder(s *task.State) []saying {
	ui, api := s.UI(), s.API()
	out := make([]saying, 0, len(ui)+len(api))
	var now int64 // in the other history
	for a, u := 0, 0; a < len(api) || u < len(ui); {
		if a < len(api) {
			now = max(now, api[a].TS())
		}
		if u < len(ui) && (a == len(api) || ui[u].TS() <= now) {
			out = append(out, saying{ui[u], u + 1, catalog.UI})
			u++
		} else {
			out = append(out, saying{api[a], a + 1, catalog.API})
			a++
		}
	}
	return out
}
