package store

import (
	"context"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/money"
)

// Filter narrows and orders a list. Zero members do not filter.
type Filter struct {
	Workspace string // the folder, by whichever path it was reached
	Status    string
	Source    string // a source's or a tool's name
	Tag       string // one that the person gave it
	Query     string // words that the title or id must hold
	Model     string // words that the model's name must hold
	MinCost   *money.USD
	MaxCost   *money.USD // a task whose cost is unknown passes neither
	Since     int64      // Unix milliseconds
	Until     int64
	Sort      string   // newest (default; pinned ones first), oldest, cost, tokens
	Damaged   bool     // only damaged ones
	Logged    bool     // only those that Roost has a journal of
	Statuses  []string // any of them; none = all
	Empty     bool     // also folders without message bytes
	Tree      bool     // subtasks behind their parents; a page has whole families, and Limit or some more tasks
	Limit     int
	Cursor    string // begins behind the last task of the page that gave it

	closely bool // compare every file of every task, however long that takes
}

// Listing is one page of a list and what was found in all.
type Listing struct {
	Items      []api.Summary
	Depths     []int // of a tree: how many parents above each task are listed
	NextCursor string
	Sources    []api.SourceState
	Copies     int // places that hold a copy of a task which the filter keeps in another place
}

// List shows every task of every source. One that cannot be parsed is listed as
// damaged; nothing breaks the list and nothing is written but the cache. A task that
// looks as it did when the last list read it is not read again: see fingerprint.go. The
// result is the same whatever the cache holds, but for tasks of a storage that
// cannot be reached: those are known from nowhere else.
func (s *Store) List(ctx context.Context, f Filter) (Listing, error) {
	after, err := f.after()
	if err != nil {
		return Listing{}, err
	}
	known := s.newListCache(catalog.ReadRows(ctx, s.opt.Cache, build(), f.Limit <= 0))
	defer known.close()
	l, err := s.lines(ctx, known, f.closely)
	if err != nil {
		l.keep(ctx) // what was read need not be read again
		return Listing{}, err
	}
	l.mark()
	m := f.matcher()
	all := l.united(ctx, func(ln *entry) bool { return m.keeps(ln.row, l.srcs[ln.src].Name) })
	out := Listing{Sources: l.tally()}
	for _, ln := range all {
		out.Copies += len(l.copies[ln])
	}
	var page []*entry
	page, out.Depths, out.NextCursor = l.pageOf(f, all, after)
	out.Items = l.summaries(ctx, page)
	l.keep(ctx)
	return out, ctx.Err()
}

// SummaryOf reads one task, without its labels in the overlay. A task that cannot be read is a damaged task, not
// an error.
func (s *Store) SummaryOf(ctx context.Context, ref Ref) api.Summary {
	sum, _ := s.derive(ctx, ref)
	return sum
}

// matcher is a filter at work: what all tasks are compared with is made once.
type matcher struct {
	Filter
	folder string
	same   map[string]bool // whether a workspace is the one that was asked for
}

func (f Filter) matcher() *matcher {
	out := &matcher{Filter: f, same: map[string]bool{}}
	if f.Workspace != "" {
		out.folder = clean(f.Workspace)
	}
	return out
}

// Keeps reports whether a task passes the filter.
func (f Filter) Keeps(t api.Summary) bool {
	if t.Gone {
		return false
	}
	row := rowOf(&t)
	return f.matcher().keeps(&row, t.Source)
}

func (f *matcher) keeps(t *catalog.Row, source string) bool {
	usd := costOf(t)
	switch {
	case t.Empty && !f.Empty, !t.Empty && f.Empty && f.Damaged:
		return false
	case f.Damaged && !t.Damaged, f.Logged && !t.Logged:
		return false
	case f.Workspace != "" && !f.in(t.Workspace):
		return false
	case f.Tag != "" && !slices.Contains(t.Tags, f.Tag):
		return false
	case f.Status != "" && t.Status != f.Status:
		return false
	case len(f.Statuses) > 0 && !slices.Contains(f.Statuses, t.Status):
		return false
	case f.Source != "" && source != f.Source && t.Tool != f.Source:
		return false
	case f.Since != 0 && t.TS < f.Since, f.Until != 0 && t.TS >= f.Until:
		return false
	case f.MinCost != nil && (usd == nil || *usd < *f.MinCost), f.MaxCost != nil && (usd == nil || *usd > *f.MaxCost):
		return false
	}
	return holds(t.Model, f.Model) && (f.Query == "" || holds(t.Title+" "+t.ID, f.Query))
}

func (f *matcher) in(workspace string) bool {
	same, ok := f.same[workspace]
	if !ok {
		same = clean(workspace) == f.folder
		f.same[workspace] = same
	}
	return same
}

// holds reports whether a text has all words of a query in it, in either case.
func holds(text, query string) bool {
	if query == "" {
		return true
	}
	text = strings.ToLower(text)
	for _, word := range strings.Fields(strings.ToLower(query)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
