package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/infer"
	"github.com/roost-dev/roost/store/overlay"
)

// Listing is one page of a list and what was found in all.
type Listing struct {
	Items      []api.Summary
	Refs       []Ref // of the items
	Depths     []int // of a tree: how many parents above each task are listed
	NextCursor string
	Sources    []api.SourceState
	Copies     int // places that hold only a copy of a task that the filter keeps
}

// List shows every task of every source. It shows a task that cannot be parsed as damaged. It writes nothing but the
// cache. It reads a task again only when the task's files look different from the last list: see fingerprint.go. The
// result is the same whatever the cache holds, except for the tasks of a storage that cannot be reached: only the
// cache knows them.
func (s *Store) List(ctx context.Context, f Filter) (Listing, error) {
	after, err := f.after()
	if err != nil {
		return Listing{}, err
	}
	l, err := s.lines(ctx, s.readRows(ctx, f.extent()), f.closely)
	defer l.close()
	if err != nil {
		l.keep(ctx) // what was read need not be read again
		return Listing{}, err
	}
	l.mark()
	m := f.matcher()
	all := l.united(ctx, m)
	out := Listing{Sources: l.tally()}
	for _, ln := range all {
		out.Copies += len(l.copies[ln])
	}
	var page []*entry
	page, out.Depths, out.NextCursor = f.pageOf(all, after)
	out.Items = l.summaries(ctx, page)
	out.Refs = api.Each(page, l.ref)
	l.keep(ctx)
	return out, ctx.Err()
}

// Family returns a task and all of its descendants, also empty ones: Roost saves a subtask before its first message.
func (s *Store) Family(ctx context.Context, ref Ref) (api.Family, error) {
	f := Filter{TaskFilter: api.TaskFilter{Tree: true, Empty: true, Sort: "oldest"}}
	l, err := s.lines(ctx, s.readRows(ctx, catalog.Bare), false)
	defer l.close()
	defer l.keep(ctx)
	if err != nil {
		return api.Family{}, err
	}
	l.mark()
	all, depths, _ := f.pageOf(l.united(ctx, f.matcher()), nil)
	at := slices.IndexFunc(all, func(ln *entry) bool {
		return ln.row.ID == ref.ID && (l.ref(ln).Dir == ref.Dir || slices.Contains(l.copies[ln], ref.Dir))
	})
	if at < 0 {
		return api.Family{}, cmp.Or(ctx.Err(), fmt.Errorf("%w: %q", ErrNotFound, ref.ID))
	}
	to := at + 1
	for to < len(all) && depths[to] > depths[at] {
		to++
	}
	return api.Family{Tasks: l.summaries(ctx, all[at:to]), Depths: depths[at:to]}, ctx.Err()
}

// SummaryOfDeleted returns the row of a deleted task, with its labels.
func (s *Store) SummaryOfDeleted(ctx context.Context, d DeletedTask, table overlay.Table) api.Summary {
	sum := api.Summary{ID: d.Ref.ID, Source: d.Ref.Source, Path: d.Ref.Dir, Status: "idle"}.Filled()
	if !d.missing {
		sum = s.SummaryOf(ctx, d.Ref)
	}
	ApplyLabels(&sum, table) // our own tasks have none there
	return sum
}

// SummaryOf reads one task, without its labels in the overlay. A task that cannot be read is a damaged task, not
// an error.
func (s *Store) SummaryOf(ctx context.Context, ref Ref) api.Summary {
	sum, _ := s.derive(ctx, ref)
	return sum
}

func (f Filter) position(ln *entry) position {
	p := position{ts: ln.row.TS, source: ln.src.Name, id: ln.row.ID}
	if ln.row.Pinned {
		p.pinned = 1
	}
	switch f.Sort {
	case "cost":
		if p.amount = ln.row.Cost; !ln.row.Priced {
			p.amount = -1 // unknown: after those that cost nothing
		}
	case "tokens":
		p.amount = ln.row.Tokens
	}
	return p
}

// sort orders lines.
func (f Filter) sort(list []*entry) {
	slices.SortFunc(list, func(a, b *entry) int { return f.order(f.position(a), f.position(b)) })
}

// asTree puts subtasks below their parents, as far as the parents are listed. Where damaged folders name each other as
// parents, the first one in the order is the parent. The first task of each family keeps its place in the order.
func asTree(list []*entry) ([]*entry, []int) {
	listed := make(map[string]*entry, len(list))
	for _, ln := range list {
		listed[ln.row.ID] = ln
	}
	top := func(ln *entry) bool { return listed[ln.row.Parent] == nil || ln.row.Parent == ln.row.ID }
	children := map[string][]*entry{}
	for _, ln := range list {
		if !top(ln) {
			children[ln.row.Parent] = append(children[ln.row.Parent], ln)
		}
	}
	rootless := func(ln *entry) bool { // its parents name each other
		for range list {
			if ln = listed[ln.row.Parent]; top(ln) {
				return false
			}
		}
		return true
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
		if top(ln) || rootless(ln) {
			add(ln, 0)
		}
	}
	return out, depths
}

// pageOf orders the lines of a list and takes one page of them: the lines behind a position. A page of a tree has
// whole families, so a subtask is always on the page of its parent. next is the cursor of the next page, "" when
// there is none.
func (f Filter) pageOf(all []*entry, after *position) (rows []*entry, depths []int, next string) {
	behind := func(ln *entry) bool { return after == nil || f.order(f.position(ln), *after) > 0 }
	if f.Tree {
		f.sort(all)
		rows, depths = asTree(all)
		from, last := len(rows), 0 // where the page begins, and the first task of its last family
		for i, ln := range rows {
			switch {
			case depths[i] > 0:
				continue
			case from == len(rows) && behind(ln):
				from = i
			case from < i && f.Limit > 0 && i-from >= f.Limit:
				return rows[from:i], depths[from:i:i], f.cursor(f.position(rows[last]))
			}
			last = i
		}
		return rows[from:], depths[from:], ""
	}
	rows = slices.DeleteFunc(slices.Clone(all), func(ln *entry) bool { return !behind(ln) })
	f.sort(rows)
	if f.Limit > 0 && len(rows) > f.Limit {
		rows = rows[:f.Limit]
		next = f.cursor(f.position(rows[f.Limit-1]))
	}
	return rows, nil, next
}

// streamEvery is how often a Stream yields the tasks that it has read: a user does not see faster changes.
const streamEvery = 150 * time.Millisecond

// streamChunk is how many tasks are read between two looks at the clock.
const streamChunk = 16

// Stream is List for a user who waits. It first yields how many tasks there are, then the newest tasks that the cache
// knows. Then it reads the others, first those that were probably changed last, and yields their rows as they come: once
// when the number first is reached, otherwise from time to time. The last part is the whole list, with copies put
// together. Stream writes nothing but the cache.
func (s *Store) Stream(ctx context.Context, first int) iter.Seq2[api.ListPart, error] {
	return func(yield func(api.ListPart, error) bool) {
		if sightOf(ctx) != nil { // counts of tasks that are not read yet are of all tasks
			all, err := s.List(ctx, Filter{})
			n := len(all.Items)
			yield(api.ListPart{Items: all.Items, Sources: all.Sources, Read: n, Of: n, Whole: true}, err)
			return
		}
		l, err := s.linesKnown(ctx, s.readRows(ctx, catalog.Summaries))
		defer l.close()
		if err != nil {
			yield(api.ListPart{}, err)
			return
		}
		defer l.keep(ctx) // also when the caller has left: what was read need not be read again
		if !yield(api.ListPart{Sources: l.sources(), Of: len(l.all)}, nil) {
			return
		}
		known, stale := l.parted(ctx)
		left := false // the caller has left
		give := func(list []*entry) bool {
			if ctx.Err() != nil {
				return false
			}
			left = !yield(l.partial(ctx, list, len(l.all)-len(stale)), nil)
			return !left
		}
		if n := min(first, len(known)); n > 0 && !give(known[:n]) {
			return
		}
		if len(stale) > 0 && len(known) > first && !give(known[first:]) {
			return
		}
		for given := 0; len(stale) > 0; {
			var rows []*entry
			for from := time.Now(); len(stale) > 0 && time.Since(from) < streamEvery; {
				n := min(streamChunk, len(stale))
				l.read(ctx, stale[:n])
				rows, stale = append(rows, stale[:n]...), stale[n:]
				if given < first && given+len(rows) >= first {
					break
				}
			}
			if given += len(rows); !give(rows) {
				break
			}
		}
		if left {
			return // also when the context has ended by now
		}
		if err := ctx.Err(); err != nil {
			yield(api.ListPart{}, err)
			return
		}
		l.mark()
		all := l.united(ctx, Filter{}.matcher())
		Filter{}.sort(all)
		yield(api.ListPart{
			Items: l.summaries(ctx, all), Sources: l.tally(), Read: len(l.all), Of: len(l.all), Whole: true,
		}, ctx.Err())
	}
}

// parted returns two lists: the tasks whose rows are up to date, the newest first, and the tasks that must be read, in the
// best order for reading.
func (l *lines) parted(ctx context.Context) (known, stale []*entry) {
	stale = l.stale(ctx)
	known = api.Some(l.all, func(ln *entry) (*entry, bool) { return ln, !ln.stale && !ln.hidden })
	slices.SortStableFunc(known, func(a, b *entry) int { return cmp.Compare(b.row.TS, a.row.TS) })
	l.byChange(stale)
	return known, stale
}

// partial returns the rows of some tasks, and counts of the tasks known so far.
func (l *lines) partial(ctx context.Context, list []*entry, read int) api.ListPart {
	out := api.ListPart{Read: read, Of: len(l.all)}
	for _, src := range l.srcs {
		state := src.state
		for _, ln := range src.tasks {
			if !ln.hidden && (ln.sum != nil || ln.row.Known) {
				ln.count(&state)
			}
		}
		out.Sources = append(out.Sources, state)
	}
	for _, ln := range list {
		if !ln.hidden && !ln.row.Empty {
			out.Items = append(out.Items, l.summary(ctx, ln))
		}
	}
	return out
}

// byChange orders tasks by when their tasks probably changed last, the newest first. The order is a guess that reads
// one file for each storage: by the time in the storage's index, else the time in the task's id, else the time of the
// folder. The times of all files would be exact; on a cold disk they take seconds. A wrong guess only changes the
// order in which rows come.
func (l *lines) byChange(list []*entry) {
	indexes := map[string]*roofmt.Rows{} // by tasks folder
	changed := make(map[*entry]int64, len(list))
	for _, ln := range list {
		ref := l.ref(ln)
		tasks := filepath.Dir(ref.Dir)
		rows := indexes[tasks]
		if rows == nil {
			rows, _ = roofmt.ReadRows(tasks) // of a damaged index it returns the whole rows
			indexes[tasks] = rows
		}
		ts := esjson.IntOf(rows.Row(filepath.Base(ref.Dir)), "ts")
		if ts <= 0 {
			ts = infer.TimeOfID(ref.ID)
		}
		if ts <= 0 {
			ts = changedAt(ref.Dir)
		}
		if dirs := ln.src.dirs; dirs != nil && dirs.has[ref.ID] { // it was continued here
			ts = max(ts, changedAt(filepath.Join(ref.Log, JournalName)))
		}
		changed[ln] = ts
	}
	slices.SortStableFunc(list, func(a, b *entry) int { return cmp.Compare(changed[b], changed[a]) })
}

// changedAt is when a file or folder was written, in Unix milliseconds; 0 when that is unknown.
func changedAt(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixMilli()
}

// forgottenAfter is how long the catalogue remembers a storage that no list names.
const forgottenAfter = 100 * 24 * time.Hour

// seenEvery is how often a list notes that it saw a storage whose rows did not change.
const seenEvery = 24 * time.Hour

// keep saves what this list read for the next one, if anything is new. A failure costs the next list time and is no
// error. A list that read little does not wait long for another writer, such as a search that fills the catalogue.
func (l *lines) keep(ctx context.Context) {
	if l.begun.IsZero() || l.known.DB() == nil {
		return // nothing was compared, or nothing can be kept
	}
	var changes []catalog.Change
	wait := 20 * time.Millisecond
	for _, src := range l.srcs {
		if src.dirs == nil || src.One { // of a storage of which one task is named, the rows are those of all its tasks
			continue
		}
		if ch, changed := l.change(src); changed {
			changes = append(changes, ch)
			wait += time.Duration(len(ch.Put)) * time.Millisecond
		}
	}
	if len(changes) == 0 {
		return
	}
	forget := l.s.opt.Now() - forgottenAfter.Milliseconds()
	err := l.known.DB().Keep(context.WithoutCancel(ctx), l.s.build(), changes, forget, min(wait, 5*time.Second))
	if catalog.Damaged(err) {
		_ = l.known.DB().SetAside() // the next list begins a new one
	}
}

// change returns what this list found out about a source; false when nothing of it is new.
func (l *lines) change(src *listed) (ch catalog.Change, changed bool) {
	ch.Source = catalog.Source{
		Name: src.Name, Tool: src.Tool, ByPath: src.byPath, Path: src.Path, Tasks: src.Tasks,
		Problem: src.state.Problem, Indexes: src.index, Seen: l.s.opt.Now(), Compared: l.comparedAt(src),
	}
	there := make(map[string]bool, len(src.ids))
	for _, ln := range src.tasks {
		row := ln.kept()
		there[row.ID] = true
		switch {
		case ln.fresh:
			ch.Put = append(ch.Put, row)
		case ln.verified:
			ch.Update = append(ch.Update, row)
		}
	}
	if src.known == nil {
		ch.Reset = true
		return ch, len(ch.Put) > 0
	}
	for j := range src.known.Rows {
		if id := src.known.Rows[j].ID; !there[id] {
			ch.Gone = append(ch.Gone, id)
		}
	}
	was, now := src.known.Source, ch.Source
	seen := time.Duration(now.Seen-was.Seen) * time.Millisecond
	was.Seen = now.Seen
	return ch, was != now || seen > seenEvery || len(ch.Put)+len(ch.Update)+len(ch.Gone) > 0
}

// Candidates are the tasks that a search looks through: those that a list has, each in the first of its places that
// the filter keeps. Each of their files was compared with the state that the catalogue was derived from. The caller
// closes them.
type Candidates struct {
	Tasks   []Candidate
	Sources []api.SourceState // with no counts but the number of tasks

	lines *lines
}

// Candidate is a task to look through.
type Candidate struct {
	Ref   Ref
	TS    int64  // of its row
	Size  int64  // of Roo's files
	Title string // with the order "best"
	Stamp string // the task's messages are unchanged while it is the same; "" = unknown

	line *entry
}

// Candidates finds the tasks that a filter keeps. It ignores the filter's Limit, Cursor and Sort, but reads titles
// for the order "best".
func (s *Store) Candidates(ctx context.Context, f Filter) (*Candidates, error) {
	extent := catalog.Bare
	if f.Sort == api.SortBest {
		extent = catalog.Titles
	}
	l, err := s.lines(ctx, s.readRows(ctx, extent), true)
	if err != nil {
		l.keep(ctx)
		l.close()
		return nil, err
	}
	l.mark()
	out := &Candidates{Sources: l.sources(), lines: l}
	for _, ln := range l.united(ctx, f.matcher()) {
		if ln.lost {
			continue
		}
		c := Candidate{Ref: l.ref(ln), TS: ln.row.TS, Size: ln.row.Size, Title: ln.row.Title, line: ln}
		if ln.row.Known {
			c.Stamp = fmt.Sprintf("%016x", catalog.Mix(catalog.MixText(ln.row.Digest, ln.row.Files), ln.row.Item))
		}
		out.Tasks = append(out.Tasks, c)
	}
	l.keep(ctx)
	return out, nil
}

// Listed returns all tasks that a list has, also those that the filter leaves out.
func (c *Candidates) Listed() iter.Seq[Ref] {
	return func(yield func(Ref) bool) {
		for _, ln := range c.lines.all {
			if !yield(c.lines.ref(ln)) {
				return
			}
		}
	}
}

// Summary returns a candidate's row as it is shown.
func (c *Candidates) Summary(ctx context.Context, of Candidate) api.Summary {
	return c.lines.summaries(ctx, []*entry{of.line})[0]
}

// Unchanged reports whether a candidate's stamp is still that of the task.
func (c *Candidates) Unchanged(ctx context.Context, of Candidate) bool {
	return of.Stamp != "" && c.lines.holds(ctx, of.line)
}

// Close releases the folders and the catalogue.
func (c *Candidates) Close() { c.lines.close() }
