package store

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/inputfile"
)

// Filter narrows and orders a list. Zero members do not filter.
type Filter struct {
	api.TaskFilter
	Task     string   // only this one, by SOURCE:ID
	Logged   bool     // only those that Roost has a journal of
	Statuses []string // any of them; none = all

	closely bool // compare every file of every task, however long that takes
}

// extent returns which parts of all rows a list reads; the summaries of a page are read separately.
func (f Filter) extent() catalog.Extent {
	switch {
	case f.Limit <= 0:
		return catalog.Summaries
	case f.Words != "":
		return catalog.Titles
	}
	return catalog.Bare
}

// matcher is a filter with the values that it compares all tasks with, made once.
type matcher struct {
	Filter
	folder string
	same   map[string]bool // by workspace: whether it is the one that was asked for
}

// matcher returns a matcher that keeps the tasks which pass the filter.
func (f Filter) matcher() *matcher {
	out := &matcher{Filter: f, same: map[string]bool{}}
	if f.Workspace != "" {
		out.folder = inputfile.Resolved(f.Workspace)
	}
	return out
}

func (f *matcher) keeps(t *catalog.Row, source string) bool {
	switch {
	case t.Empty && !f.Empty, !t.Empty && f.Empty && f.Damaged:
		return false
	case f.Task != "" && source+":"+t.ID != f.Task:
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
	case f.MinCost != nil && (!t.Priced || t.Cost < int64(*f.MinCost)), f.MaxCost != nil && (!t.Priced || t.Cost > int64(*f.MaxCost)):
		return false
	}
	return holds(t.Model, f.Model) && (f.Words == "" || holds(t.Title+" "+t.ID, f.Words))
}

func (f *matcher) in(workspace string) bool {
	same, ok := f.same[workspace]
	if !ok {
		same = inputfile.Resolved(workspace) == f.folder
		f.same[workspace] = same
	}
	return same
}

// holds reports whether a text has all words of a query in it, in either case.
func holds(text, query string) bool {
	text = strings.ToLower(text)
	lacks := func(word string) bool { return !strings.Contains(text, word) }
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(query)), lacks)
}

// position is the place of a task in the order of a list. No two tasks have the same position, so a cursor that names
// a position stays valid when tasks before it come or go.
type position struct {
	pinned     int64 // 1 for a pinned task
	ts         int64
	amount     int64 // what an order by cost or tokens compares
	source, id string
}

// order compares two positions: by what the list is sorted by, then the newest first, then by
// source and id.
func (f Filter) order(a, b position) int {
	return cmp.Or(f.compare(a, b), cmp.Compare(b.ts, a.ts), strings.Compare(a.source, b.source), strings.Compare(a.id, b.id))
}

func (f Filter) compare(a, b position) int {
	switch f.Sort {
	case "oldest":
		return cmp.Compare(a.ts, b.ts)
	case "cost", "tokens":
		return cmp.Compare(b.amount, a.amount)
	}
	// Only this order puts pinned tasks first: orders by cost or age are strict.
	return cmp.Or(cmp.Compare(b.pinned, a.pinned), cmp.Compare(b.ts, a.ts))
}

// sortName returns the name of the order of a list in a cursor. A tree has names of its own, because its pages are
// made in another way.
func (f Filter) sortName() string {
	name := cmp.Or(f.Sort, "newest")
	if f.Tree {
		name += "-tree"
	}
	return name
}

// cursor returns the text of a position: the order, the values that it compares, and the task, whose name may hold
// any byte. It consists of letters, digits and -_. only.
func (f Filter) cursor(p position) string {
	task := base64.RawURLEncoding.EncodeToString([]byte(p.source + "\x00" + p.id))
	return fmt.Sprintf("%s.%d.%d.%d.%s", f.sortName(), p.pinned, p.ts, p.amount, task)
}

// ValidCursor reports whether the cursor is none, or one that a list in this order gave.
func (f Filter) ValidCursor() bool {
	_, err := f.after()
	return err == nil
}

// after reads the cursor. It is nil when there is none.
func (f Filter) after() (*position, error) {
	if f.Cursor == "" {
		return nil, nil
	}
	bad := fmt.Errorf("cursor %q: no list sorted by %q gave it", f.Cursor, f.sortName())
	fields := strings.Split(f.Cursor, ".")
	if len(fields) != 5 || fields[0] != f.sortName() {
		return nil, bad
	}
	var n [3]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(fields[i+1], 10, 64); err != nil {
			return nil, bad
		}
	}
	task, err := base64.RawURLEncoding.DecodeString(fields[4])
	if err != nil {
		return nil, bad
	}
	p := &position{pinned: n[0], ts: n[1], amount: n[2]}
	p.source, p.id, _ = strings.Cut(string(task), "\x00")
	return p, nil
}
