package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/infer"
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
	l, err := s.lines(ctx, catalog.ReadRows(ctx, s.opt.Cache, build(), f.extent()), f.closely)
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

// extent is what a list reads of all rows; the summaries of a page are read by themselves.
func (f Filter) extent() catalog.Extent {
	switch {
	case f.Limit <= 0:
		return catalog.Summaries
	case f.Query != "":
		return catalog.Titles
	}
	return catalog.Bare
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

func (f *matcher) keeps(t *catalog.Row, source string) bool {
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
	case f.MinCost != nil && (!t.Priced || t.Cost < int64(*f.MinCost)), f.MaxCost != nil && (!t.Priced || t.Cost > int64(*f.MaxCost)):
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
	text = strings.ToLower(text)
	lacks := func(word string) bool { return !strings.Contains(text, word) }
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(query)), lacks)
}

// position is where a task is in the order of a list. No two tasks have the same one, so a
// cursor that names a position stays right when tasks before it come or go.
type position struct {
	pinned     int64 // 1 for a pinned task
	ts         int64
	amount     int64 // what an order by cost or tokens compares
	source, id string
}

func (l *lines) position(f Filter, ln *entry) position {
	p := position{ts: ln.row.TS, source: l.srcs[ln.src].Name, id: ln.row.ID}
	if ln.row.Pinned {
		p.pinned = 1
	}
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
	// An order by cost or age is strict, this one is for people.
	return cmp.Or(cmp.Compare(b.pinned, a.pinned), cmp.Compare(b.ts, a.ts))
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

// sort orders lines.
func (l *lines) sort(f Filter, list []*entry) {
	slices.SortFunc(list, func(a, b *entry) int { return f.order(l.position(f, a), l.position(f, b)) })
}

// asTree puts subtasks below their parents, as far as those are listed. Where damaged folders
// name each other as parents, the one that comes first in the order is the parent. The first
// task of each family keeps its place in the order.
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

// pageOf orders the lines of a list and takes one page of them: what is behind a position. A
// page of a tree has whole families, so a subtask is never on another page than its parent.
// next is the cursor of the next page, "" when there is none.
func (l *lines) pageOf(f Filter, all []*entry, after *position) (rows []*entry, depths []int, next string) {
	behind := func(ln *entry) bool { return after == nil || f.order(l.position(f, ln), *after) > 0 }
	if f.Tree {
		l.sort(f, all)
		rows, depths = asTree(all)
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
	rows = slices.DeleteFunc(slices.Clone(all), func(ln *entry) bool { return !behind(ln) })
	l.sort(f, rows)
	if f.Limit > 0 && len(rows) > f.Limit {
		rows = rows[:f.Limit]
		next = f.cursor(l.position(f, rows[f.Limit-1]))
	}
	return rows, nil, next
}

// streamEvery is how often a Stream tells what it has read meanwhile: a person does
// not see more.
const streamEvery = 150 * time.Millisecond

// streamChunk is how many tasks are read between two looks at the clock.
const streamChunk = 16

// Stream is List for a person who waits: it gives how many tasks there are before
// one is opened, then the newest of those that the cache knows, reads those first
// that were probably changed last, and gives rows as they come: once when the first
// so many are there, else from time to time. The last partial is the whole list, with
// copies put together. Nothing is written but the cache.
func (s *Store) Stream(ctx context.Context, first int) iter.Seq2[api.ListPart, error] {
	return func(yield func(api.ListPart, error) bool) {
		l, err := s.linesKnown(ctx, catalog.ReadRows(ctx, s.opt.Cache, build(), catalog.Summaries))
		defer l.close()
		if err != nil {
			yield(api.ListPart{}, err)
			return
		}
		defer l.keep(ctx) // also when the caller has left: what was read need not be read again
		if !yield(api.ListPart{Sources: slices.Clone(l.states), Of: len(l.all)}, nil) {
			return
		}
		known, stale := l.parted()
		left := false // the caller has left
		give := func(places []int) bool {
			if ctx.Err() != nil {
				return false
			}
			left = !yield(l.partial(ctx, places, len(l.all)-len(stale)), nil)
			return !left
		}
		if n := min(first, len(known)); n > 0 && !give(known[:n]) {
			return
		}
		if len(stale) > 0 && len(known) > first && !give(known[first:]) {
			return
		}
		for given := 0; len(stale) > 0; {
			var rows []int
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
		l.sort(Filter{}, all)
		yield(api.ListPart{
			Items: l.summaries(ctx, all), Sources: l.tally(), Read: len(l.all), Of: len(l.all), Whole: true,
		}, ctx.Err())
	}
}

// parted are the places of the tasks that are known as they are now, the newest
// first, and of those that must be read, in the order in which that is best done.
func (l *lines) parted() (known, stale []int) {
	stale = l.stale()
	read := make(map[int]bool, len(stale))
	for _, i := range stale {
		read[i] = true
	}
	for i := range l.all {
		if !read[i] && !l.all[i].hidden {
			known = append(known, i)
		}
	}
	slices.SortStableFunc(known, func(a, b int) int { return cmp.Compare(l.all[b].row.TS, l.all[a].row.TS) })
	l.byChange(stale)
	return known, stale
}

// partial are the rows of some places, and the counts as far as tasks are known.
func (l *lines) partial(ctx context.Context, places []int, read int) api.ListPart {
	out := api.ListPart{Sources: slices.Clone(l.states), Read: read, Of: len(l.all)}
	for i := range l.all {
		ln := &l.all[i]
		src := &out.Sources[ln.src]
		switch {
		case ln.hidden || ln.sum == nil && !ln.row.Known:
		case ln.row.Empty:
			src.Empty++
			src.Tasks--
		case ln.row.Damaged && !ln.lost:
			src.Damaged++
		}
	}
	for _, i := range places {
		if ln := &l.all[i]; !ln.hidden && !ln.row.Empty {
			out.Items = append(out.Items, l.summary(ctx, ln))
		}
	}
	return out
}

// byChange orders places by when their tasks probably changed last, the newest first.
// It is a guess for the price of one file for each storage: what its index says, else
// the time that is in an id, and only without both the folder's own time. Looking at
// each file would be surer; on a cold disk it takes seconds. Where the guess is wrong
// rows only come in another order.
func (l *lines) byChange(places []int) {
	indexes := map[string]*roofmt.Rows{} // by tasks folder
	changed := make(map[int]int64, len(places))
	for _, i := range places {
		ref := l.ref(&l.all[i])
		tasks := filepath.Dir(ref.Dir)
		rows := indexes[tasks]
		if rows == nil {
			rows, _ = roofmt.ReadRows(tasks) // of a damaged one there is what is whole
			indexes[tasks] = rows
		}
		ts, _ := esjson.GetInt(rows.Row(filepath.Base(ref.Dir)), "ts")
		if ts <= 0 {
			ts = infer.TimeOfID(ref.ID)
		}
		if ts <= 0 {
			ts = changedAt(ref.Dir)
		}
		if dirs := l.dirs[l.all[i].src]; dirs != nil && dirs.has[ref.ID] { // it was continued here
			ts = max(ts, changedAt(filepath.Join(ref.Log, "journal.jsonl")))
		}
		changed[i] = ts
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(changed[b], changed[a]) })
}

// changedAt is when a file or folder was written, in Unix milliseconds; 0 when that
// is unknown.
func changedAt(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixMilli()
}

// rowsVersion is raised when rows are derived in another way. The program's file is
// part of the number as well, see build.
const rowsVersion = 4

// build is a number for each program that may derive rows in its own way. Developers forget
// to raise a version, so every other program file counts as one: the first list after
// an update reads every task once.
var build = sync.OnceValue(func() uint64 {
	digest := catalog.Mix(rowsVersion, uint64(os.PathSeparator))
	path, err := os.Executable()
	if err != nil {
		return digest
	}
	if info, err := os.Stat(path); err == nil {
		digest = catalog.Mix(catalog.Mix(digest, uint64(info.Size())), uint64(info.ModTime().UnixNano()))
	}
	return digest
})

// lostSources are the known storages at or below a path that cannot be read now. A source's
// name follows from where it really is, which cannot be found out now.
func lostSources(rows *catalog.Reading, src Source) (out []Source) {
	if src.err == nil {
		return nil
	}
	below := strings.TrimSuffix(src.Path, string(filepath.Separator)) + string(filepath.Separator)
	for _, known := range rows.Sources() {
		if known.Path == src.Path || strings.HasPrefix(known.Path, below) {
			out = append(out, Source{
				Name: known.Name, Tool: known.Tool, byPath: known.ByPath, Path: known.Path, Tasks: known.Tasks, err: src.err,
			})
		}
	}
	return out
}

// forgottenAfter is how long the catalogue remembers a storage that no list names.
const forgottenAfter = 100 * 24 * time.Hour

// seenEvery is how often a list notes that it saw a storage whose rows did not change.
const seenEvery = 24 * time.Hour

// keep gives the next list what this one read, if anything is new. A failure to keep
// it costs the next list time and is no error. A list that read little does not wait
// long for another writer, such as a search that fills the catalogue.
func (l *lines) keep(ctx context.Context) {
	if l == nil || l.indexes == nil || l.known.DB() == nil {
		return // nothing was compared, or nothing can be kept
	}
	var changes []catalog.Change
	wait := 20 * time.Millisecond
	for i := range l.srcs {
		if l.dirs[i] == nil || l.srcs[i].One { // of a storage of which one task is named, the rows are those of all its tasks
			continue
		}
		if ch, changed := l.change(i); changed {
			changes = append(changes, ch)
			wait += time.Duration(len(ch.Put)) * time.Millisecond
		}
	}
	if len(changes) == 0 {
		return
	}
	forget := l.s.opt.Now() - forgottenAfter.Milliseconds()
	err := l.known.DB().Keep(context.WithoutCancel(ctx), build(), changes, forget, min(wait, 5*time.Second))
	if catalog.Damaged(err) {
		_ = l.known.DB().SetAside() // the next list begins a new one
	}
}

// change is what this list found out about a source; false when that is nothing new.
func (l *lines) change(i int) (ch catalog.Change, changed bool) {
	src, known := l.srcs[i], l.knownOf(i)
	ch.Source = catalog.Source{
		Name: src.Name, Tool: src.Tool, ByPath: src.byPath, Path: src.Path, Tasks: src.Tasks,
		Problem: l.states[i].Problem, Indexes: l.indexes[i], Seen: l.s.opt.Now(), Compared: l.comparedAt(i),
	}
	there := make(map[string]bool, len(src.ids))
	of := l.of(i)
	for j := range of {
		ln := &of[j]
		row := ln.kept()
		there[row.ID] = true
		switch {
		case ln.fresh:
			ch.Put = append(ch.Put, row)
		case ln.verified:
			ch.Update = append(ch.Update, row)
		}
	}
	if known == nil {
		ch.Reset = true
		return ch, len(ch.Put) > 0
	}
	for j := range known.Rows {
		if id := known.Rows[j].ID; !there[id] {
			ch.Gone = append(ch.Gone, id)
		}
	}
	was, now := known.Source, ch.Source
	seen := time.Duration(now.Seen-was.Seen) * time.Millisecond
	was.Seen = now.Seen
	return ch, was != now || seen > seenEvery || len(ch.Put)+len(ch.Update)+len(ch.Gone) > 0
}

// indexDigest is a digest of the indexes beside the task folders; 0 when they changed
// just now.
func (s *Store) indexDigest(tasks string) uint64 {
	digest, now := uint64(1), s.clock()
	for _, p := range roofmt.RowPrints(tasks) {
		if p.Exists && !s.calm(p.MTime, now) {
			return 0
		}
		for _, n := range []int64{p.Size, p.MTime, int64(p.Inode)} {
			digest = catalog.Mix(digest, uint64(n))
		}
	}
	return digest | 1
}

// itemDigest is a digest of a task's entry in an index.
func (s *Store) itemDigest(dir string) uint64 {
	return catalog.MixText(1, string(s.rows.row(dir))) | 1
}
