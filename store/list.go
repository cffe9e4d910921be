package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
	Cursor    string

	closely bool // look at every file of every task, however long that takes
}

// SourceState is what one storage holds.
type SourceState struct {
	Name    string `json:"name"`
	Tool    string `json:"tool"`
	Path    string `json:"path"`
	State   string `json:"state"` // readable, partly damaged, or "unreachable: why": never just empty
	Tasks   int    `json:"tasks"`
	Damaged int    `json:"damaged"`
	Empty   int    `json:"empty"`
	Bytes   int64  `json:"bytes"` // of the tasks' files

	// Problem is what is wrong with the tool's own index of its tasks. All of them are
	// listed without it; what only the index knows may be missing.
	Problem string `json:"problem,omitempty"`

	tasks string // the folder of task folders
}

// Listing is one page of a list and what was found in all.
type Listing struct {
	Items      []Summary
	Depths     []int // of a tree: how far below its first parent each task stands
	NextCursor string
	Sources    []SourceState
	Copies     int // places that hold a copy of a task which the filter keeps in another place
}

// List shows every task of every source. One that cannot be parsed is listed as
// damaged; nothing breaks the list and nothing is written but the cache. A task that
// looks as it did when the last list read it is not read again: see glance.go. The
// result is the same whatever the cache holds, but for tasks of a storage that
// cannot be reached: those are known from nowhere else.
func (s *Store) List(ctx context.Context, f Filter) (out Listing, err error) {
	err = s.page(ctx, f, func(l *lines, list []*entry, page Listing) error {
		out = page
		out.Items = l.wholes(ctx, list)
		return ctx.Err()
	})
	return out, err
}

// page calls show with the lines of one page of a list, and with all that is said of the
// list but its tasks.
func (s *Store) page(ctx context.Context, f Filter, show func(*lines, []*entry, Listing) error) error {
	from := 0
	if f.Cursor != "" {
		var err error
		if from, err = strconv.Atoi(f.Cursor); err != nil || from < 0 {
			return fmt.Errorf("cursor %q: not one that a list gave", f.Cursor)
		}
	}
	k := s.shelves()
	defer k.close()
	l, err := s.lines(ctx, k, f.Query != "", f.closely)
	if err != nil {
		l.keep() // what was read need not be read again
		return err
	}
	l.mark()
	sieve := f.sieve()
	all := l.united(ctx, func(ln *entry) bool { return sieve.keeps(ln.row, l.srcs[ln.src].Name) })
	copies := 0
	for _, ln := range all {
		copies += len(l.copies[ln])
	}
	count := len(all)
	var depths []int
	ends := func(n int) int { return n }
	if f.Tree {
		all, depths = asTree(f.sorted(all, 0))
		ends = families(depths)
	} else {
		first := 0 // all
		if f.Limit > 0 && from < len(all) {
			first = from + f.Limit
		}
		all = f.sorted(all, first)
	}
	out := Listing{Sources: l.tally(), Copies: copies}
	from = min(from, count)
	to := count
	if f.Limit > 0 {
		to = min(ends(from+f.Limit), to)
	}
	if to < count {
		out.NextCursor = strconv.Itoa(to)
	}
	if f.Tree && from < to {
		out.Depths = depths[from:to:to]
	}
	if l.known != nil && (to-from)*4 > len(l.all) {
		l.known.rows.Hold() // one look into the file for all of them
	}
	err = show(l, all[from:to], out)
	l.keep()
	return err
}

// summary reads one task, without what the overlay says of it; what fails to be
// read is a damaged task, not an error.
func (s *Store) summary(ctx context.Context, ref Ref) Summary {
	sum, _ := s.derive(ctx, ref)
	return sum
}

// sieve is a filter at work: what all tasks are compared with is made once.
type sieve struct {
	Filter
	folder string
	same   map[string]bool // whether a workspace is the one that was asked for
}

func (f Filter) sieve() *sieve {
	out := &sieve{Filter: f, same: map[string]bool{}}
	if f.Workspace != "" {
		out.folder = clean(f.Workspace)
	}
	return out
}

func (f Filter) keeps(t Summary) bool {
	if t.Gone {
		return false
	}
	row := rowOf(&t)
	return f.sieve().keeps(&row, t.Source)
}

func (f *sieve) keeps(t *catalog.Row, source string) bool {
	usd := cost(t)
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

func (f *sieve) in(workspace string) bool {
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

// standing is what tasks are ordered by.
type standing struct {
	pinned           bool
	ts, cost, tokens int64
}

func standingOf(t *catalog.Row) standing {
	return standing{pinned: t.Pinned, ts: t.TS, cost: t.Cost, tokens: t.Tokens}
}

func (f Filter) compare(a, b standing) int {
	switch f.Sort {
	case "oldest":
		return cmp.Compare(a.ts, b.ts)
	case "cost":
		return cmp.Compare(b.cost, a.cost)
	case "tokens":
		return cmp.Compare(b.tokens, a.tokens)
	}
	switch { // an order by cost or age is strict, this one is for people
	case a.pinned && !b.pinned:
		return -1
	case b.pinned && !a.pinned:
		return 1
	}
	return cmp.Compare(b.ts, a.ts)
}

// fewLines is up to how many lines are found without ordering all others.
const fewLines = 256

// sorted orders lines, and gives the first so many, or more; 0 is all. Those that are
// equal stay in the order of their sources and names.
func (f Filter) sorted(list []*entry, first int) []*entry {
	type place struct {
		standing
		at int
	}
	order := func(a, b place) int { return cmp.Or(f.compare(a.standing, b.standing), a.at-b.at) }
	var places []place
	if first > 0 && first <= fewLines && first < len(list) {
		places = make([]place, 0, first+1)
		for i, ln := range list {
			p := place{standingOf(ln.row), i}
			if len(places) == first && order(p, places[first-1]) > 0 {
				continue
			}
			at, _ := slices.BinarySearchFunc(places, p, order)
			places = slices.Insert(places, at, p)
			places = places[:min(first, len(places))]
		}
	} else {
		places = make([]place, len(list))
		for i, ln := range list {
			places[i] = place{standingOf(ln.row), i}
		}
		slices.SortFunc(places, order)
	}
	out := make([]*entry, len(places))
	for i, p := range places {
		out[i] = list[p.at]
	}
	return out
}

// asTree puts subtasks below their parents, as far as those are listed.
func asTree(list []*entry) ([]*entry, []int) {
	listed := make(map[string]bool, len(list))
	for _, ln := range list {
		listed[ln.row.ID] = true
	}
	children := map[string][]*entry{}
	for _, ln := range list {
		parent := ln.row.Parent
		if !listed[parent] || parent == ln.row.ID {
			parent = ""
		}
		children[parent] = append(children[parent], ln)
	}
	out, depths := make([]*entry, 0, len(list)), make([]int, 0, len(list))
	seen := make(map[*entry]bool, len(list)) // damaged folders may name each other as parents
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		for _, ln := range children[parent] {
			if seen[ln] {
				continue
			}
			seen[ln] = true
			out, depths = append(out, ln), append(depths, depth)
			walk(ln.row.ID, depth+1)
		}
	}
	walk("", 0)
	for _, ln := range list { // those in a circle
		if !seen[ln] {
			seen[ln] = true
			out, depths = append(out, ln), append(depths, 0)
			walk(ln.row.ID, 1)
		}
	}
	return out, depths
}

// families gives for a place in a tree the next one where no family is cut: a
// subtask never stands on another page than its parent.
func families(depths []int) func(int) int {
	return func(n int) int {
		for n < len(depths) && depths[n] > 0 {
			n++
		}
		return n
	}
}

func (u Usage) micros() int64 {
	if u.Cost == nil {
		return 0
	}
	return int64(*u.Cost)
}

func (u Usage) tokens() int64 { return u.TokensIn + u.TokensOut + u.CacheReads + u.CacheWrites }
