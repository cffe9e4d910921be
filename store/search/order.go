package search

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
)

const (
	// mostWeighed is the number of tasks that the order "best" compares by their best hits: tasks whose title holds
	// the words come first, then the newest. The other tasks follow by their times: to compare all would read all
	// tasks for a common word.
	mostWeighed = 200
	// mostCounted bounds the parts of the catalogue that are read only to count hits.
	mostCounted = 1500
)

// spot is a place in the order of all hits: behind the first n hits of a task.
type spot struct {
	title, score int // of the order "best"
	ts           int64
	mark         string // of the task; "" = the spot before all tasks
	n            int
	best         bool // the order is "best"
}

// compare returns the order of tasks: those whose title holds the words, those with the better hits, the newest.
func (s spot) compare(b spot) int {
	return cmp.Or(cmp.Compare(b.title, s.title), cmp.Compare(b.score, s.score), cmp.Compare(b.ts, s.ts), strings.Compare(s.mark, b.mark))
}

func (s spot) String() string {
	text := fmt.Sprintf("%d.%s.%d", s.ts, s.mark, s.n)
	if s.best {
		text = fmt.Sprintf("%s.%d.%d.%s", api.SortBest, s.title, s.score, text)
	}
	return text
}

// ValidCursor reports whether a text is empty, or a cursor that a search in this order gives.
func ValidCursor(text, sort string) bool {
	_, err := readSpot(text, sort)
	return err == nil
}

func readSpot(cursor, sort string) (s spot, err error) {
	if s.best = sort == api.SortBest; cursor == "" {
		return s, nil
	}
	bad := fmt.Errorf("cursor %q: no search in this order gave it", cursor)
	fields := strings.Split(cursor, ".")
	if s.best {
		if len(fields) != 6 || fields[0] != api.SortBest {
			return s, bad
		}
		var err1, err2 error
		s.title, err1 = strconv.Atoi(fields[1])
		s.score, err2 = strconv.Atoi(fields[2])
		if err1 != nil || err2 != nil {
			return s, bad
		}
		fields = fields[3:]
	}
	if len(fields) != 3 || len(fields[1]) != 2*markBytes {
		return s, bad
	}
	var err1, err2 error
	s.ts, err1 = strconv.ParseInt(fields[0], 10, 64)
	_, err3 := hex.DecodeString(fields[1])
	s.n, err2 = strconv.Atoi(fields[2])
	if err1 != nil || err2 != nil || err3 != nil || s.n < 0 {
		return s, bad
	}
	s.mark = fields[1]
	return s, nil
}

const markBytes = 6

// mark returns a text that orders tasks of the same time.
func (c *candidate) mark() string {
	if c.name == "" {
		sum := sha256.Sum256([]byte(catalogKey(c.Ref)))
		c.name = hex.EncodeToString(sum[:markBytes])
	}
	return c.name
}

// behind reports whether a place is behind all hits of a task.
func (s spot) behind(c *candidate) bool { return s.mark != "" && s.compare(c.place) > 0 }

// given returns how many hits of a task come before a spot; the spot is not behind all of them.
func (s spot) given(c *candidate) int {
	if s.mark != "" && s.ts == c.TS && s.mark == c.mark() {
		return s.n
	}
	return 0
}

// titleScore scores a title by the words of the search, for the order of tasks.
func (f *search) titleScore(title string) int {
	if f.q.Filter.Sort != api.SortBest {
		return 0
	}
	return f.words.TitleScore(title)
}

// page is a page that is being filled.
type page struct {
	*search
	parts map[int64][]catalog.Part
	from  spot
	out   *Result
	spots []spot // of the items
	tasks int    // on the page
}

// full reports whether the page has all its hits, and one more, which shows that further hits follow.
func (p *page) full() bool {
	return p.search.full(*p.out) || p.q.Tasks > 0 && p.tasks > p.q.Tasks
}

// fill puts the hits of tasks on the page. The tasks come in the order of the scores of their titles, and the newest first.
func (p *page) fill(ctx context.Context, all []*candidate) error {
	best := p.q.Filter.Sort == api.SortBest
	var held []*candidate // tasks of one title score: a later one may have better hits
	weighed := 0
	release := func() error {
		slices.SortStableFunc(held, func(a, b *candidate) int { return a.place.compare(b.place) })
		for _, c := range held {
			if err := p.give(ctx, c); err != nil {
				return err
			}
		}
		held = nil
		return nil
	}
	for i, c := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.failed != nil {
			p.out.Unread = append(p.out.Unread, *c.failed)
			continue
		}
		if !best || weighed >= mostWeighed {
			if err := release(); err != nil {
				return err
			}
			if best { // behind those that were weighed
				c.place.score = -1
			}
			if err := p.give(ctx, c); err != nil {
				return err
			}
			continue
		}
		if i > 0 && all[i-1].place.title != c.place.title {
			if err := release(); err != nil {
				return err
			}
		}
		if p.full() {
			continue
		}
		// Any of its hits may come first.
		if err := p.find(ctx, c, p.most(*p.out, p.from.given(c))); err != nil {
			return err
		}
		if len(c.hits) == 0 {
			continue
		}
		weighed++
		if c.place.score = c.hits[0].Score; c.place.score < catalog.BestScore {
			held = append(held, c)
		} else if err := p.give(ctx, c); err != nil {
			return err
		}
	}
	return release()
}

// find fills in the hits of a task, the best first: the first most of them, or all when most is 0.
func (p *page) find(ctx context.Context, c *candidate, most int) (err error) {
	if c.found {
		return nil
	}
	if c.known != nil {
		c.hits, err = p.known(ctx, c.known.ID, most)
	} else {
		if c.also != 1<<len(p.also)-1 {
			c.hits = nil
		}
		slices.SortFunc(c.hits, catalog.Rank)
	}
	c.count, c.found = len(c.hits), err == nil
	return err
}

// known returns the hits of a task that the catalogue holds.
func (p *page) known(ctx context.Context, task int64, most int) ([]catalog.Hit, error) {
	maybe := p.parts[task]
	if len(maybe) == 0 || slices.ContainsFunc(p.also, func(a also) bool { return len(a.parts[task]) == 0 }) {
		return nil, nil
	}
	for _, a := range p.also {
		if ok, err := p.snap.Any(ctx, a.parts[task], a.q); err != nil || !ok {
			return nil, err
		}
	}
	return p.snap.Hits(ctx, maybe, p.words, most)
}

// give puts the hits of a task on the page.
func (p *page) give(ctx context.Context, c *candidate) error {
	if p.full() || p.from.behind(c) {
		return nil
	}
	given := p.from.given(c)
	if err := p.find(ctx, c, p.most(*p.out, given)); err != nil {
		return err
	}
	hits := c.hits
	if p.q.Each > 0 && len(hits) > p.q.Each {
		hits = hits[:p.q.Each]
	}
	if len(hits) <= given {
		return nil
	}
	p.tasks++
	sum := p.search.tasks.Summary(ctx, c.Candidate)
	if p.q.Each > 0 {
		if p.out.Hits == nil {
			p.out.Hits = map[string]int{}
		}
		p.out.Hits[sum.Key()] = c.count
	}
	for i, h := range hits[given:] {
		if p.search.full(*p.out) {
			break
		}
		at := c.place
		at.n, at.best = given+i+1, p.q.Filter.Sort == api.SortBest
		p.out.Items = append(p.out.Items, api.Hit{Task: sum, History: h.History, Number: h.Number, TS: h.TS, Snippet: h.Snippet,
			Kind: h.Kind, Tool: h.Tool, Also: h.Also})
		p.spots = append(p.spots, at)
	}
	return nil
}

// cut removes from the page the hits that fill read only to know whether more follow.
func (p *page) cut() {
	keep := len(p.out.Items)
	if limit := p.q.Filter.Limit; limit > 0 {
		keep = min(keep, limit)
	}
	if p.q.Tasks > 0 {
		tasks, last := 0, spot{}
		for i, at := range p.spots[:keep] {
			if at.mark != last.mark || at.ts != last.ts {
				tasks++
				last = at
			}
			if tasks > p.q.Tasks {
				keep = i
				break
			}
		}
	}
	if keep < len(p.out.Items) {
		p.out.NextCursor = p.spots[keep-1].String()
		p.out.Items = p.out.Items[:keep]
	}
	maps.DeleteFunc(p.out.Hits, func(key string, _ int) bool {
		return !slices.ContainsFunc(p.out.Items, func(h api.Hit) bool { return h.Task.Key() == key })
	})
}

// total counts all hits of all tasks; nil when that would read much.
func (p *page) total(ctx context.Context, all []*candidate) (*api.HitTotal, error) {
	parts := 0
	for _, c := range all {
		if !c.found && c.known != nil {
			parts += len(p.parts[c.known.ID])
		}
	}
	if parts > mostCounted {
		return nil, nil
	}
	sum := &api.HitTotal{}
	for _, c := range all {
		if c.failed != nil {
			continue
		}
		if err := p.find(ctx, c, 0); err != nil {
			return nil, err
		}
		if c.count > 0 {
			sum.Tasks++
			sum.Hits += c.count
		}
		c.hits = nil
	}
	return sum, ctx.Err()
}
