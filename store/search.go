package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/catalog"
)

// SearchQuery is what is looked for, and in which tasks.
type SearchQuery struct {
	Text string   // words, or phrases in double quotes; all must stand in one message
	In   []string // catalog.Scopes; none is everywhere

	// Filter narrows the tasks: Workspace, Status, Source, Tag, Since and Until. Limit
	// and Cursor page through the hits.
	Filter Filter

	// Patience bounds how long a search also adds to the catalogue what it had to read;
	// 0 is as long as it takes. What is not added is read again the next time.
	Patience time.Duration
}

// Hit is a message that holds a query.
type Hit struct {
	Task    Summary `json:"task"`
	History string  `json:"history"` // ui or api
	Number  int     `json:"number"`  // its place in the visible history, from 1
	TS      int64   `json:"ts"`      // Unix milliseconds, 0 when the message has none
	Snippet string  `json:"snippet"` // one line
	Kind    string  `json:"kind"`
}

// SearchResult is one page of hits: of the newest task first, of one task the best
// first.
type SearchResult struct {
	Items      []Hit
	NextCursor string
	Tasks      int           // that were looked through
	Read       int           // of those, how many the catalogue did not know as they are now
	Sources    []SourceState // where was looked; nothing is counted but tasks
	Unread     []Damage      // tasks that could not be read; others may be damaged in part
	Notes      []string      // why the catalogue could not be used or kept
}

// Search finds messages of all tasks. Its result is complete whatever state the
// catalogue is in: a task that it does not know as it is now is read. Nothing is
// written but the catalogue.
func (s *Store) Search(ctx context.Context, q SearchQuery) (SearchResult, error) {
	words, err := catalog.Parse(q.Text, q.In...)
	if err != nil {
		return SearchResult{}, err
	}
	from := 0
	if q.Filter.Cursor != "" {
		if from, err = strconv.Atoi(q.Filter.Cursor); err != nil || from < 0 {
			return SearchResult{}, fmt.Errorf("cursor %q: not one that a search gave", q.Filter.Cursor)
		}
	}
	q.Filter.Query, q.Filter.Damaged, q.Filter.Empty = "", false, false
	var notes []string
	for try := 0; ; try++ {
		db, err := s.openCatalog(ctx, try < 2)
		if err != nil {
			notes = append(notes, err.Error())
		}
		f := search{s: s, q: q, words: words, db: db, began: time.Now()}
		found, err := f.run(ctx, from)
		if db != nil {
			if broken := errors.Join(err, f.unkept); catalog.Damaged(broken) && ctx.Err() == nil {
				notes = append(notes, "the catalogue was damaged and was begun anew: "+broken.Error())
				err = errors.Join(err, db.SetAside())
			} else {
				_ = db.Close() // what was kept is kept
			}
		}
		if err == nil || db == nil || ctx.Err() != nil {
			found.Notes = append(notes, found.Notes...)
			return found, err
		}
	}
}

// openCatalog gives nil when there is no place for one, or it is not wanted.
func (s *Store) openCatalog(ctx context.Context, wanted bool) (*catalog.DB, error) {
	if s.opt.Cache == "" || !wanted {
		return nil, nil
	}
	return catalog.Open(ctx, s.opt.Cache)
}

// search is one pass over all tasks.
type search struct {
	s     *Store
	q     SearchQuery
	words catalog.Query
	db    *catalog.DB // nil: every task is read
	began time.Time
	marks Marks

	snap   *catalog.Snapshot
	unkept error // why something could not be added to the catalogue
}

// candidate is a task that may have hits.
type candidate struct {
	ref    Ref
	copies []string
	ts     int64
	known  *catalog.Task // nil: it was read
	sum    Summary       // when it was read
	hits   []catalog.Hit // when it was read
	failed *Damage
}

func (f *search) run(ctx context.Context, from int) (out SearchResult, err error) {
	known := map[string]catalog.Task{}
	var parts map[int64][]int64
	if f.db != nil {
		if f.snap, err = f.db.Snapshot(ctx); err != nil {
			return out, err
		}
		defer f.snap.Close()
		if known, err = f.snap.Tasks(ctx); err != nil {
			return out, err
		}
		if parts, err = f.snap.Parts(ctx, f.words); err != nil {
			return out, err
		}
	}
	if f.marks, err = f.s.Marks(ctx); err != nil {
		f.marks = nil // tasks are shown as they are without
	}
	all, sources, err := f.candidates(ctx)
	if err != nil {
		return out, err
	}
	out.Tasks, out.Sources = len(all), sources
	var unknown []*candidate
	for _, c := range all {
		stamp, _ := f.s.stampOf(c.ref)
		if t, ok := known[catalogKey(c.ref)]; ok && stamp != "" && t.Stamp == stamp {
			c.known, c.ts = &t, t.TS
		} else {
			unknown = append(unknown, c)
		}
		delete(known, catalogKey(c.ref))
	}
	out.Read = len(unknown)
	f.scan(ctx, unknown)
	f.forget(ctx, known)
	if f.unkept != nil {
		out.Notes = append(out.Notes, f.unkept.Error())
	}
	slices.SortStableFunc(all, func(a, b *candidate) int { return cmp.Compare(b.ts, a.ts) })
	for _, c := range all {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if c.failed != nil {
			out.Unread = append(out.Unread, *c.failed)
			continue
		}
		if f.full(out, from) {
			continue
		}
		if err := f.hits(ctx, c, parts); err != nil {
			return out, err
		}
		for _, h := range c.hits {
			out.Items = append(out.Items, Hit{Task: c.sum, History: h.History, Number: h.Number, TS: h.TS, Snippet: h.Snippet, Kind: h.Kind})
		}
	}
	out.Items = out.Items[min(from, len(out.Items)):]
	if limit := f.q.Filter.Limit; limit > 0 && len(out.Items) > limit {
		out.Items, out.NextCursor = out.Items[:limit], strconv.Itoa(from+limit)
	}
	return out, nil
}

// full reports whether there are hits for the page, and one to know that there are more.
func (f *search) full(out SearchResult, from int) bool {
	return f.q.Filter.Limit > 0 && len(out.Items) > from+f.q.Filter.Limit
}

// candidates are the tasks to look through, each in one place.
func (f *search) candidates(ctx context.Context) ([]*candidate, []SourceState, error) {
	refs, sources, err := f.s.refs(ctx)
	if err != nil {
		return nil, nil, err
	}
	at := map[string][]Ref{}
	for _, r := range refs {
		at[r.ID] = append(at[r.ID], r)
	}
	var out []*candidate
	for _, r := range refs {
		places, ok := at[r.ID]
		if !ok {
			continue // with the first of its id
		}
		groups := [][]Ref{places}
		if len(places) > 1 {
			groups = f.s.groups(ctx, places)
			delete(at, r.ID)
		}
		for _, g := range groups {
			if place := f.place(g); place >= 0 {
				c := &candidate{ref: g[place]}
				for i, r := range g {
					if i != place {
						c.copies = append(c.copies, r.Dir)
					}
				}
				out = append(out, c)
			}
		}
	}
	return out, sources, ctx.Err()
}

// place is the first of a task's places that the source which was asked for can have.
// What the tool of a task is may only be known when it has been read.
func (f *search) place(group []Ref) int {
	want := f.q.Filter.Source
	return slices.IndexFunc(group, func(r Ref) bool {
		return want == "" || want == r.Source || want == r.Tool || r.Tool == "" || r.Own
	})
}

// hits fills in what a candidate has, when its row passes the filter.
func (f *search) hits(ctx context.Context, c *candidate, parts map[int64][]int64) error {
	if c.known != nil {
		maybe := parts[c.known.ID]
		if len(maybe) == 0 {
			return nil
		}
		raw, err := f.snap.Summary(ctx, c.known.ID)
		if err == nil {
			err = json.Unmarshal(raw, &c.sum)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", catalog.ErrDamaged, err)
		}
		if !f.keeps(c) {
			return nil
		}
		if c.hits, err = f.snap.Hits(ctx, maybe, f.words); err != nil {
			return err
		}
	} else if !f.keeps(c) {
		c.hits = nil
	}
	slices.SortStableFunc(c.hits, func(a, b catalog.Hit) int {
		return cmp.Or(b.Score-a.Score, strings.Compare(b.History, a.History), a.Number-b.Number)
	})
	return nil
}

func (f *search) keeps(c *candidate) bool {
	f.marks.Apply(&c.sum)
	c.sum.Copies = append([]string{}, c.copies...)
	return f.q.Filter.keeps(c.sum)
}

// forget removes tasks whose folders are gone. Others that were not found now lie in
// storages that were not named this time, or cannot be reached.
func (f *search) forget(ctx context.Context, rest map[string]catalog.Task) {
	var gone []string
	for key := range rest {
		_, dir, _ := strings.Cut(key, "\x00")
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			gone = append(gone, key)
		}
	}
	if len(gone) > 0 && f.db != nil && f.unkept == nil {
		f.unkept = f.db.Drop(ctx, gone)
	}
}

func catalogKey(ref Ref) string { return ref.Source + "\x00" + ref.Dir }
