package store

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// position is where a task is in the order of a list. No two tasks have the same one, so a
// cursor that names a position stays right when tasks before it come or go.
type position struct {
	pinned     bool
	ts         int64
	amount     int64 // what an order by cost or tokens compares
	source, id string
}

func (l *lines) position(f Filter, ln *entry) position {
	p := position{pinned: ln.row.Pinned, ts: ln.row.TS, source: l.srcs[ln.src].Name, id: ln.row.ID}
	switch f.Sort {
	case "cost":
		p.amount = ln.row.Cost
	case "tokens":
		p.amount = ln.row.Tokens
	}
	return p
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
	switch { // an order by cost or age is strict, this one is for people
	case a.pinned && !b.pinned:
		return -1
	case b.pinned && !a.pinned:
		return 1
	}
	return cmp.Compare(b.ts, a.ts)
}

// sortName is what a cursor calls the order of a list. In a tree a place means another thing.
func (f Filter) sortName() string {
	name := cmp.Or(f.Sort, "newest")
	if f.Tree {
		name += "-tree"
	}
	return name
}

// cursor names a position: the order, what the order compares, and the task, whose name may
// hold any byte. It has only letters, digits and -_. in it.
func (f Filter) cursor(p position) string {
	pinned := 0
	if p.pinned {
		pinned = 1
	}
	task := base64.RawURLEncoding.EncodeToString([]byte(p.source + "\x00" + p.id))
	return fmt.Sprintf("%s.%d.%d.%d.%s", f.sortName(), pinned, p.ts, p.amount, task)
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
	p := &position{pinned: n[0] != 0, ts: n[1], amount: n[2]}
	p.source, p.id, _ = strings.Cut(string(task), "\x00")
	return p, nil
}

// fewLines is up to how many lines are found without ordering all others.
const fewLines = 256

// sorted orders lines, and gives the first so many, or more; 0 is all.
func (l *lines) sorted(f Filter, list []*entry, first int) []*entry {
	type placed struct {
		position
		ln *entry
	}
	order := func(a, b placed) int { return f.order(a.position, b.position) }
	var places []placed
	if first > 0 && first <= fewLines && first < len(list) {
		places = make([]placed, 0, first+1)
		for _, ln := range list {
			p := placed{l.position(f, ln), ln}
			if len(places) == first && order(p, places[first-1]) > 0 {
				continue
			}
			at, _ := slices.BinarySearchFunc(places, p, order)
			places = slices.Insert(places, at, p)
			places = places[:min(first, len(places))]
		}
	} else {
		places = make([]placed, len(list))
		for i, ln := range list {
			places[i] = placed{l.position(f, ln), ln}
		}
		slices.SortFunc(places, order)
	}
	out := make([]*entry, len(places))
	for i, p := range places {
		out[i] = p.ln
	}
	return out
}

// asTree puts subtasks below their parents, as far as those are listed. Where damaged folders
// name each other as parents, the one that comes first in the order is the parent. The first
// task of each family keeps its place in the order.
func asTree(list []*entry) ([]*entry, []int) {
	listed := make(map[string]bool, len(list))
	for _, ln := range list {
		listed[ln.row.ID] = true
	}
	top := func(ln *entry) bool { return !listed[ln.row.Parent] || ln.row.Parent == ln.row.ID }
	children := map[string][]*entry{}
	for _, ln := range list {
		if !top(ln) {
			children[ln.row.Parent] = append(children[ln.row.Parent], ln)
		}
	}
	reached := make(map[*entry]bool, len(list)) // from a task that has no parent here
	var reach func(ln *entry)
	reach = func(ln *entry) {
		if !reached[ln] {
			reached[ln] = true
			for _, child := range children[ln.row.ID] {
				reach(child)
			}
		}
	}
	for _, ln := range list {
		if top(ln) {
			reach(ln)
		}
	}
	out, depths := make([]*entry, 0, len(list)), make([]int, 0, len(list))
	seen := make(map[*entry]bool, len(list))
	var add func(ln *entry, depth int)
	add = func(ln *entry, depth int) {
		if seen[ln] {
			return
		}
		seen[ln] = true
		out, depths = append(out, ln), append(depths, depth)
		for _, child := range children[ln.row.ID] {
			add(child, depth+1)
		}
	}
	for _, ln := range list {
		if top(ln) || !reached[ln] {
			add(ln, 0)
		}
	}
	return out, depths
}

// pageOf orders the lines of a list and takes one page of them: what is behind a position. A
// page of a tree has whole families, so a subtask is never on another page than its parent.
// next is the cursor of the next page, "" when there is none.
func (l *lines) pageOf(f Filter, all []*entry, after *position) (rows []*entry, depths []int, next string) {
	behind := func(ln *entry) bool { return after == nil || f.order(l.position(f, ln), *after) > 0 }
	if f.Tree {
		rows, depths = asTree(l.sorted(f, all, 0))
		from, last := len(rows), 0 // where the page begins, and the first task of its last family
		for i, ln := range rows {
			switch {
			case depths[i] > 0:
				continue
			case from == len(rows) && behind(ln):
				from = i
			case from < i && f.Limit > 0 && i-from >= f.Limit:
				return rows[from:i], depths[from:i:i], f.cursor(l.position(f, rows[last]))
			}
			last = i
		}
		return rows[from:], depths[from:], ""
	}
	if after != nil {
		all = slices.DeleteFunc(slices.Clone(all), func(ln *entry) bool { return !behind(ln) })
	}
	rows = l.sorted(f, all, f.Limit)
	if f.Limit > 0 && len(all) > f.Limit {
		rows = rows[:f.Limit]
		next = f.cursor(l.position(f, rows[f.Limit-1]))
	}
	return rows, nil, next
}
