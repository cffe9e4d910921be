// Package search finds messages of all tasks by their words, and keeps in the catalogue what it had to read. The result is
// complete in any state of the catalogue: a task that it does not know as it is now is read. Nothing is written but the
// catalogue.
package search

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/store"
)

// Query is what to look for, and in which tasks.
type Query struct {
	Text string   // words, or phrases in double quotes; one message must have all
	In   []string // catalog.Scopes; none is everywhere

	// Filter narrows the tasks as it does lists, save for Query, Damaged, Empty and Sort.
	// Limit and Cursor page through the hits.
	Filter store.Filter
	Tool   string // only tasks in which this tool was called: read_file, or readFile
	File   string // only tasks in which a tool was asked for a path that holds this

	// Patience bounds how long a search also adds to the catalogue what it had to read;
	// 0 is as long as it takes. What is not added is read again the next time.
	Patience time.Duration
}

// Result is one page of hits. Their order is the same with any catalogue: the
// hits of the task that changed last come first (by TS), and of one task in the order
// of catalog.Rank. A cursor names the task and how many of its hits were given, so
// that tasks which come or change between pages shift nothing.
type Result struct {
	Items      []api.Hit
	NextCursor string
	Tasks      int               // that were looked through
	Read       int               // of those, how many the catalogue did not know as they are now
	Sources    []api.SourceState // where was looked; nothing is counted but tasks
	Unread     []api.Damage      // tasks that could not be read; others may be damaged in part
	Notes      []string          // why the catalogue could not be used or kept
}

// Run finds messages of all tasks. Its result is complete in any state of the
// catalogue: a task that it does not know as it is now is read. Nothing is
// written but the catalogue.
func Run(ctx context.Context, s *store.Store, q Query) (Result, error) {
	words, err := catalog.Parse(q.Text, q.In...)
	if err != nil {
		return Result{}, err
	}
	from, err := readSpot(q.Filter.Cursor)
	if err != nil {
		return Result{}, err
	}
	q.Filter.Query, q.Filter.Damaged, q.Filter.Empty = "", false, false
	tasks, err := s.Candidates(ctx, q.Filter)
	if err != nil {
		return Result{}, err
	}
	defer tasks.Close()
	var notes []string
	for try := 0; ; try++ {
		db, err := openCatalog(ctx, s, try < 2)
		if err != nil {
			notes = append(notes, err.Error())
		}
		f := search{s: s, tasks: tasks, q: q, words: words, also: alsoOf(q), db: db, began: time.Now()}
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
func openCatalog(ctx context.Context, s *store.Store, wanted bool) (*catalog.DB, error) {
	if s.CacheDir() == "" || !wanted {
		return nil, nil
	}
	return catalog.Open(ctx, s.CacheDir())
}

// search is one pass over all tasks.
type search struct {
	s     *store.Store
	tasks *store.Candidates
	q     Query
	words catalog.Query
	also  []also
	db    *catalog.DB // nil: every task is read
	began time.Time

	snap   *catalog.Snapshot
	unkept error // why something could not be added to the catalogue
}

// candidate is a task that may have hits.
type candidate struct {
	store.Candidate
	large  bool          // it has more text than the catalogue keeps of one task
	known  *catalog.Task // nil: it was read
	hits   []catalog.Hit // when it was read
	also   uint64        // which of search.also hold, when it was read
	failed *api.Damage
	name   string // see mark
}

// also is something that a task must have, beside the hit.
type also struct {
	q     catalog.Query
	parts map[int64][]catalog.Part
}

func alsoOf(q Query) (out []also) {
	if q.Tool != "" {
		out = append(out, also{q: catalog.Used(q.Tool)})
	}
	if q.File != "" {
		out = append(out, also{q: catalog.Touched(q.File)})
	}
	return out
}

func (f *search) run(ctx context.Context, from spot) (out Result, err error) {
	known := map[string]catalog.Task{}
	var parts map[int64][]catalog.Part
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
		for i := range f.also {
			if f.also[i].parts, err = f.snap.Parts(ctx, f.also[i].q); err != nil {
				return out, err
			}
		}
	}
	out.Tasks, out.Sources = len(f.tasks.Tasks), f.tasks.Sources
	all := make([]*candidate, out.Tasks)
	var unknown []*candidate
	for i, task := range f.tasks.Tasks {
		c := &candidate{Candidate: task}
		all[i] = c
		key := catalogKey(c.Ref)
		if t, ok := known[key]; ok && c.Stamp != "" && t.Stamp == c.Stamp {
			c.known = &t
		} else {
			c.large = ok && c.Stamp != "" && t.Stamp == tooLarge+c.Stamp
			unknown = append(unknown, c)
		}
		delete(known, key)
	}
	out.Read = len(unknown)
	f.scan(ctx, unknown, from)
	f.forget(ctx, known)
	if f.unkept != nil {
		out.Notes = append(out.Notes, f.unkept.Error())
	}
	slices.SortFunc(all, byTime)
	var spots []spot // of the items
	for _, c := range all {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if c.failed != nil {
			out.Unread = append(out.Unread, *c.failed)
			continue
		}
		if from.behind(c) || f.full(out) {
			continue
		}
		given := from.given(c)
		if err := f.hits(ctx, c, parts, f.most(out, given)); err != nil {
			return out, err
		}
		if len(c.hits) <= given {
			continue
		}
		sum := f.tasks.Summary(ctx, c.Candidate)
		for i, h := range c.hits[given:] {
			if f.full(out) {
				break
			}
			out.Items = append(out.Items, api.Hit{Task: sum, History: h.History, Number: h.Number, TS: h.TS, Snippet: h.Snippet, Kind: h.Kind})
			spots = append(spots, spot{c.TS, c.mark(), given + i + 1})
		}
	}
	if limit := f.q.Filter.Limit; limit > 0 && len(out.Items) > limit {
		out.Items, out.NextCursor = out.Items[:limit], spots[limit-1].String()
	}
	return out, nil
}

// full reports whether there are hits for the page, and one to know that there are more.
func (f *search) full(out Result) bool {
	return f.q.Filter.Limit > 0 && len(out.Items) > f.q.Filter.Limit
}

// most is how many hits of the next task are enough; 0 is all.
func (f *search) most(out Result, given int) int {
	if f.q.Filter.Limit <= 0 {
		return 0
	}
	return f.q.Filter.Limit + 1 - len(out.Items) + given
}

// hits fills in what a candidate has: the best first, and of more than most the first.
func (f *search) hits(ctx context.Context, c *candidate, parts map[int64][]catalog.Part, most int) error {
	if c.known == nil {
		if c.also != 1<<len(f.also)-1 {
			c.hits = nil
		}
		slices.SortFunc(c.hits, catalog.Rank)
		return nil
	}
	maybe := parts[c.known.ID]
	if len(maybe) == 0 {
		return nil
	}
	for _, a := range f.also {
		if len(a.parts[c.known.ID]) == 0 {
			return nil
		}
	}
	for _, a := range f.also {
		if ok, err := f.snap.Any(ctx, a.parts[c.known.ID], a.q); err != nil || !ok {
			return err
		}
	}
	var err error
	c.hits, err = f.snap.Hits(ctx, maybe, f.words, most)
	return err
}

// forget removes tasks whose folders are gone.
func (f *search) forget(ctx context.Context, rest map[string]catalog.Task) {
	if gone := goneOf(rest); len(gone) > 0 && f.db != nil && f.unkept == nil {
		f.unkept = f.db.Drop(ctx, gone)
	}
}

// goneOf are the keys of tasks whose folders are gone. Others that were not found now lie in storages that were not named
// this time, or cannot be reached.
func goneOf(rest map[string]catalog.Task) (gone []string) {
	for key := range rest {
		_, dir, _ := strings.Cut(key, "\x00")
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			gone = append(gone, key)
		}
	}
	return gone
}

func catalogKey(ref store.Ref) string { return ref.Source + "\x00" + ref.Dir }

// spot is a place in the order of all hits: behind so many of a task's.
type spot struct {
	ts   int64
	mark string // "" is before all
	n    int
}

func (s spot) String() string { return fmt.Sprintf("%d.%s.%d", s.ts, s.mark, s.n) }

// ValidCursor reports whether a text is a cursor as a search gives it, or none.
func ValidCursor(text string) bool {
	_, err := readSpot(text)
	return err == nil
}

func readSpot(cursor string) (s spot, err error) {
	if cursor == "" {
		return s, nil
	}
	bad := fmt.Errorf("cursor %q: not one that a search gave", cursor)
	fields := strings.Split(cursor, ".")
	if len(fields) != 3 || len(fields[1]) != 2*markBytes {
		return s, bad
	}
	ts, err1 := strconv.ParseInt(fields[0], 10, 64)
	_, err2 := hex.DecodeString(fields[1])
	n, err3 := strconv.Atoi(fields[2])
	if err1 != nil || err2 != nil || err3 != nil || n < 0 {
		return s, bad
	}
	return spot{ts, fields[1], n}, nil
}

const markBytes = 6

// mark gives tasks of the same time an order.
func (c *candidate) mark() string {
	if c.name == "" {
		sum := sha256.Sum256([]byte(catalogKey(c.Ref)))
		c.name = hex.EncodeToString(sum[:markBytes])
	}
	return c.name
}

// byTime puts the newest task first.
func byTime(a, b *candidate) int {
	return cmp.Or(cmp.Compare(b.TS, a.TS), strings.Compare(a.mark(), b.mark()))
}

// behind reports whether a place is behind all hits of a task.
func (s spot) behind(c *candidate) bool {
	return s.mark != "" && (s.ts < c.TS || s.ts == c.TS && s.mark > c.mark())
}

// given is how many hits of a task lie before a place that is not behind it.
func (s spot) given(c *candidate) int {
	if s.mark != "" && s.ts == c.TS && s.mark == c.mark() {
		return s.n
	}
	return 0
}
