package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/store/overlay"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/roofmt"
)

// entry is a task in a list: what it is chosen and ordered by, and where the rest is.
type entry struct {
	row    *catalog.Row
	base   *catalog.Row // without what the overlay says; nil when it says nothing
	sum    *Summary     // when it was read just now
	src    int32        // place of its source
	lost   bool         // its source cannot be reached; the row is what was known last
	fresh  bool         // it was read just now, and can be kept
	was    bool         // what was kept of it is not true any more
	equal  bool         // its content was compared with a copy's just now
	hidden bool         // it was deleted in Roost, or went while it was looked for
}

// lines are all tasks of all sources, while a list is made.
type lines struct {
	s         *Store
	known     *shelves
	srcs      []Source
	states    []SourceState
	marks     overlay.Table
	all       []entry
	ground    []*grounds          // of each source; nil when nothing of it can be kept
	indexes   []indexLook         // of each source; nil until they are looked at
	filled    int                 // sources that have any
	copies    map[*entry][]string // other places of a task
	titles    bool                // they are needed, and not only those of one page
	changed   bool                // there is something to keep
	cold      atomic.Bool         // the task that was read last came from the disk
	closeness                     // how closely it is looked
}

// lines looks for the tasks of every source and reads those that changed since the
// last list.
func (s *Store) lines(ctx context.Context, k *shelves, titles, closely bool) (*lines, error) {
	l := &lines{s: s, known: k, titles: titles, closeness: closeness{closely: closely}}
	if titles && k != nil {
		k.rows.LoadAll()
	}
	var err error
	if l.srcs, err = s.sourcesKnown(ctx, k); err != nil {
		return nil, err
	}
	if l.marks, err = s.Overlay(ctx); err != nil {
		l.marks = nil // no titles and tags of theirs, but all tasks
	}
	for i, src := range l.srcs {
		l.place(i, src)
	}
	defer func() {
		for _, g := range l.ground {
			if g != nil {
				g.close()
			}
		}
	}()
	stale := l.stale()
	l.read(ctx, stale)
	return l, ctx.Err()
}

// place adds the tasks of one source, as they were known.
func (l *lines) place(i int, src Source) {
	state := SourceState{Name: src.Name, Tool: src.Tool, Path: src.Path, State: readable, tasks: src.Tasks}
	if src.err != nil {
		state.State = unreachable + src.err.Error()
	}
	var g *grounds
	var rows map[string]*catalog.Row
	var shelf *catalog.Shelf
	if l.known != nil {
		shelf = l.known.rows.Shelf(src.Name)
		if shelf != nil && (shelf.Tool != src.Tool || shelf.Tasks != src.Tasks) {
			shelf = nil
		}
	}
	if l.known != nil && src.err == nil && src.gone == nil && !src.One {
		if got, err := l.s.grounds(src); err == nil {
			g = &got
		} else {
			got.close()
		}
	}
	l.ground = append(l.ground, g)
	same := src.same && shelf != nil && len(shelf.Rows) == src.listed
	if shelf != nil && !same {
		rows = make(map[string]*catalog.Row, len(shelf.Rows))
		for j := range shelf.Rows {
			rows[shelf.Rows[j].ID] = &shelf.Rows[j]
		}
		l.changed = l.changed || src.err == nil
	}
	l.changed = l.changed || shelf == nil && g != nil && len(src.ids) > 0
	l.all = slices.Grow(l.all, len(src.ids))
	if len(src.ids) > 0 {
		l.filled++
	}
	for j, id := range src.ids {
		ln := entry{src: int32(i), hidden: len(l.marks) > 0 && l.marks.Hidden(src.Name, id)}
		if same && j < src.listed {
			ln.row = &shelf.Rows[j]
		} else if ln.row = rows[id]; ln.row == nil {
			ln.row = catalog.NewRow(id)
		}
		if !ln.hidden {
			state.Tasks++
		}
		l.all = append(l.all, ln)
	}
	if src.err != nil && shelf != nil {
		l.filled++
		for j := range shelf.Rows {
			row := &shelf.Rows[j]
			if slices.Contains(src.ids, row.ID) || l.marks.Hidden(src.Name, row.ID) {
				continue // what we continued is here
			}
			l.all = append(l.all, entry{row: row, src: int32(i), lost: true})
			state.Tasks++
		}
	}
	l.states = append(l.states, state)
}

// lookedAtOnce are how many tasks one core looks at before it takes more.
const lookedAtOnce = 256

// stale are the places of lines that are not known as they are now.
func (l *lines) stale() []int {
	l.decide()
	l.indexes = make([]indexLook, len(l.srcs))
	for i, src := range l.srcs {
		l.indexes[i].same = l.index(i, src)
	}
	found := make([][]int, (len(l.all)+lookedAtOnce-1)/lookedAtOnce)
	var next atomic.Int64 // a core that is busy with something else gets less of it
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(found)) {
		all.Go(func() {
			room := make([]byte, 0, 512)
			for {
				some := int(next.Add(1)) - 1
				if some >= len(found) {
					return
				}
				for i := some * lookedAtOnce; i < min((some+1)*lookedAtOnce, len(l.all)); i++ {
					ln := &l.all[i]
					if !ln.hidden && !ln.lost && !l.holds(ln, l.indexes[ln.src].same, room) {
						found[some] = append(found[some], i)
					}
				}
			}
		})
	}
	all.Wait()
	l.old = slices.Concat(found...)
	for _, i := range l.old {
		l.all[i].was = l.all[i].row.Known
	}
	return slices.Clone(l.old)
}

// index finds out what is wrong with the indexes of a source, and reports whether they are
// as they were. Of our own root's, which is derived, doctor tells.
func (l *lines) index(i int, src Source) (same bool) {
	var sh *catalog.Shelf
	if l.ground[i] != nil {
		sh = l.known.rows.Shelf(src.Name)
		l.indexes[i].print = l.s.indexPrint(src.Tasks)
		if sh != nil && sh.Indexes != 0 && sh.Indexes == l.indexes[i].print {
			l.states[i].Problem = sh.Problem
			return true
		}
	}
	if src.Own || src.One || src.err != nil || src.gone != nil {
		return false
	}
	l.states[i].Problem = l.s.rows.problem(src.Tasks)
	l.changed = l.changed || sh != nil // else it is read in every list
	return false
}

// holds reports whether a row is that of the task as it is now.
func (l *lines) holds(ln *entry, indexes bool, room []byte) bool {
	g, row := l.ground[ln.src], ln.row
	if g == nil || !row.Known || l.titles && row.Whole == nil {
		return false
	}
	closely := l.closelyAt(row, indexes || l.srcs[ln.src].Own)
	now := g.look(row.ID, row.Watch, room, closely)
	if now.failed || now.near != row.Near && !closely || closely && now.digest != row.Digest {
		return false
	}
	if row.Item != 0 && !indexes && l.s.itemPrint(filepath.Join(l.srcs[ln.src].Tasks, row.ID)) != row.Item {
		return false
	}
	if row.Unfinished {
		if _, held := filelog.Holder(l.ref(ln).Log); held {
			return false
		}
	}
	return true
}

func (l *lines) ref(ln *entry) Ref { return l.s.ref(l.srcs[ln.src], ln.row.ID) }

// tasksAhead is how many tasks are asked for before somebody reads them, when they have to come from a disk. It
// has that many files in hand twice over, beside those that are read.
const tasksAhead = 4

// read reads tasks on all cores. It ends early when ctx does.
func (l *lines) read(ctx context.Context, places []int) {
	jobs := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(places)) {
		workers.Go(func() {
			for i := range jobs {
				l.readOne(ctx, &l.all[i])
			}
		})
	}
	asked, worth := 0, false // up to which place tasks were asked for, and whether that was of use
	for n, i := range places {
		if ctx.Err() != nil {
			break
		}
		Tell(ctx, Progress{What: "reading", Done: n, Of: len(places)})
		jobs <- i
		if worth || l.cold.Load() {
			for asked = max(asked, n+1); asked < min(n+1+tasksAhead, len(places)); asked++ {
				worth = roofmt.Ahead(l.ref(&l.all[places[asked]]).Dir)
			}
		}
	}
	close(jobs)
	workers.Wait()
	for _, i := range places {
		ln := &l.all[i]
		l.changed = l.changed || ln.fresh || ln.was && ln.sum != nil
		if ln.sum != nil && ln.sum.Gone {
			ln.hidden = true
			l.states[ln.src].Tasks--
		}
	}
}

// readOne reads a task and keeps its row, if a change of it from now on would be seen.
func (l *lines) readOne(ctx context.Context, ln *entry) {
	ref, g := l.ref(ln), l.ground[ln.src]
	var watch string
	var before glance
	var item uint64
	keep, begun := g != nil, l.s.clock()
	if keep {
		watch, keep = g.watched(ref)
	}
	if keep {
		before, item = g.look(ref.ID, watch, nil, true), l.s.itemPrint(ref.Dir)
	}
	sum, from := l.s.derive(ctx, ref)
	l.cold.Store(from.cold)
	row := rowOf(&sum)
	row.Logged = from.logged
	ln.row, ln.sum = &row, &sum
	if !keep || from.failed || from.held || before.failed || ctx.Err() != nil {
		return
	}
	row.Traits.Watch, row.Digest, row.Wrote = watch, before.digest, before.wrote/int64(time.Second)
	if row.Near = before.near; rewritten(watch) {
		row.Near = 0
	}
	row.Unfinished = from.unfinished
	row.Sizes = g.sizes(ref.ID)
	if from.indexed {
		row.Item = item
		keep = item == l.s.itemPrint(ref.Dir)
	}
	after := g.look(ref.ID, watch, nil, true)
	// Of what changed just before the first look, a change behind it may have left no trace,
	// however long ago that is by now.
	if !keep || after != before || !l.s.calm(before.newest, begun) {
		return
	}
	whole, err := encodeSummary(sum)
	if err != nil {
		return
	}
	if bytes.Contains(whole, []byte(`\ufffd`)) { // so JSON writes what is no text
		var back Summary
		if json.Unmarshal(whole, &back) != nil || !reflect.DeepEqual(back, sum) {
			return // it would come back as another name
		}
	}
	row.Whole, row.Known, ln.fresh = whole, true, true
}

// derivation says what a row was derived from that its files do not tell.
type derivation struct {
	failed     bool
	logged     bool // it has a journal
	held       bool // which somebody is writing
	unfinished bool // its run has no end
	indexed    bool // an index beside its folder may say something of it
	cold       bool // its histories had to come from the disk
}

// derive reads one task, without what the overlay says of it; what fails to be read
// is a damaged task, not an error.
func (s *Store) derive(ctx context.Context, ref Ref) (Summary, derivation) {
	var from derivation
	_, from.held = filelog.Holder(ref.Log)
	v, err := s.read(ctx, ref, false)
	if err != nil {
		return Summary{
			ID: ref.ID, Source: ref.Source, Tool: ref.Tool, Path: ref.Dir, Status: "idle",
			Damaged: []Damage{{File: ref.Dir, Problem: ReadProblem(ref, err)}}, Gone: vanished(ref),
		}.Filled(), derivation{failed: true}
	}
	sum := v.Summary
	from.logged = v.Log != nil
	from.indexed = v.Folder != nil && len(v.Folder.Item) == 0
	from.cold = v.Folder != nil && v.Folder.Cold
	if run := v.State.Run; run != nil {
		from.unfinished = run.Waiting == "" && run.Outcome == "" && !run.Waits()
	}
	if err := v.Close(); err != nil {
		sum.Damaged = append(sum.Damaged, Damage{File: ref.Dir, Problem: err.Error()})
		from.failed = true
	}
	v.State.Release() // the row has all that was wanted of it
	if !from.held {
		_, from.held = filelog.Holder(ref.Log)
	}
	return sum, from
}

// rowOf is what a list needs of a row to choose and order it.
func rowOf(t *Summary) catalog.Row {
	return catalog.Row{
		ID: t.ID, Title: t.Title, TS: t.TS, Cost: t.Usage.Micros(), Priced: t.Usage.Cost != nil,
		Tokens: t.Usage.Tokens(), Size: t.Size, Empty: t.Empty, Damaged: len(t.Damaged) > 0, Pinned: t.Pinned,
		Traits: &catalog.Traits{Tool: t.Tool, Status: t.Status, Workspace: t.Workspace, Model: t.Model, Parent: t.ParentID, Tags: t.Tags},
	}
}

// mark puts into the lines what the overlay says of their tasks.
func (l *lines) mark() {
	if len(l.marks) == 0 {
		return
	}
	for i := range l.all {
		ln := &l.all[i]
		if _, ok := l.marks[overlay.Key{Source: l.srcs[ln.src].Name, ID: ln.row.ID}]; !ok {
			continue
		}
		t := Summary{ID: ln.row.ID, Source: l.srcs[ln.src].Name, Title: ln.row.Title, Tags: ln.row.Tags, Pinned: ln.row.Pinned}
		ApplyLabels(&t, l.marks)
		row, traits := *ln.row, *ln.row.Traits
		ln.base = ln.row
		traits.Tags = t.Tags
		row.Title, row.Traits, row.Pinned = t.Title, &traits, t.Pinned
		ln.row = &row
	}
}

// wholes are the rows of some lines as they are shown. To decode one takes tens of
// microseconds, which all cores share.
func (l *lines) wholes(ctx context.Context, list []*entry) []Summary {
	return onAllCores(list, func(ln *entry) Summary { return l.whole(ctx, ln) })
}

// onAllCores is what f makes of each line.
func onAllCores[T any](list []*entry, f func(*entry) T) []T {
	if len(list) == 0 {
		return nil
	}
	out := make([]T, len(list))
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (len(list)+3)/4) {
		all.Go(func() {
			for i := next.Add(1); i <= int64(len(list)); i = next.Add(1) {
				out[i-1] = f(list[i-1])
			}
		})
	}
	all.Wait()
	return out
}

// whole is the row of a line as it is shown. One whose bytes in the cache are
// damaged is read again.
func (l *lines) whole(ctx context.Context, ln *entry) Summary {
	var t Summary
	switch {
	case ln.sum != nil:
		t = *ln.sum
	case l.load(ln, &t):
	case ln.lost:
		ref := l.ref(ln)
		t = Summary{ID: ref.ID, Source: ref.Source, Tool: ref.Tool, Path: ref.Dir, Status: "idle"}.Filled()
	default:
		t, _ = l.s.derive(ctx, l.ref(ln))
	}
	if ln.lost {
		t.Damaged = append(t.Damaged, Damage{
			File: t.Path, Problem: "its storage cannot be reached: " + l.srcs[ln.src].err.Error(), Recovered: "what the last list knew of it",
		})
	}
	ApplyLabels(&t, l.marks)
	t.Copies = append([]string{}, l.copies[ln]...)
	return t
}

func (l *lines) load(ln *entry, t *Summary) bool {
	if !ln.row.Known || l.known == nil {
		return false
	}
	row := *ln.row
	return l.known.rows.Load(&row) == nil && json.Unmarshal(row.Whole, t) == nil
}

// tally counts what the tasks say of their sources.
func (l *lines) tally() []SourceState {
	for i := range l.all {
		ln := &l.all[i]
		if ln.hidden {
			continue
		}
		src := &l.states[ln.src]
		src.Bytes += ln.row.Size
		switch {
		case ln.row.Empty:
			src.Empty++
			src.Tasks--
		case ln.row.Damaged && !ln.lost:
			src.Damaged++
		}
	}
	for i := range l.states {
		l.states[i].judge()
	}
	return l.states
}

// united puts the copies of a task into one line, see groups. The line is that of the
// first place by rank that the filter keeps.
func (l *lines) united(ctx context.Context, keeps func(*entry) bool) []*entry {
	out := make([]*entry, 0, len(l.all))
	at := map[string][]int{}
	if l.filled > 1 { // in one folder no name stands twice
		for i := range l.all {
			if !l.all[i].hidden {
				at[l.all[i].row.ID] = append(at[l.all[i].row.ID], i)
			}
		}
	}
	for i := range l.all {
		ln := &l.all[i]
		var places []int
		if len(at) > 0 {
			places = at[ln.row.ID]
		}
		switch {
		case ln.hidden:
		case len(places) < 2:
			if keeps(ln) {
				out = append(out, ln)
			}
		case places[0] == i:
			for _, group := range l.groups(ctx, places) {
				if ln := l.first(group, keeps); ln != nil {
					out = append(out, ln)
				}
			}
		}
	}
	return out
}

// first is the line of one group of copies, nil when none is kept.
func (l *lines) first(group []*entry, keeps func(*entry) bool) *entry {
	i := slices.IndexFunc(group, keeps)
	if i < 0 {
		return nil
	}
	for j, ln := range group {
		if j != i {
			if l.copies == nil {
				l.copies = map[*entry][]string{}
			}
			l.copies[group[i]] = append(l.copies[group[i]], l.ref(ln).Dir)
		}
	}
	return group[i]
}

// groups is Store.groups for lines: what their rows say is not looked up again.
func (l *lines) groups(ctx context.Context, places []int) [][]*entry {
	list := make([]*entry, len(places))
	for i, at := range places {
		list[i] = &l.all[at]
	}
	slices.SortStableFunc(list, func(a, b *entry) int { return cmp.Compare(l.rank(a), l.rank(b)) })
	var out [][]*entry
next:
	for _, ln := range list {
		for i, group := range out {
			if l.equal(ctx, group[0], ln) {
				out[i] = append(group, ln)
				continue next
			}
		}
		out = append(out, []*entry{ln})
	}
	return out
}

func (l *lines) rank(ln *entry) int {
	switch {
	case l.srcs[ln.src].Own:
		return 0
	case ln.row.Known && ln.row.Logged:
		return 1
	case ln.row.Known:
		return 2
	}
	return rank(l.ref(ln))
}

// equal is sameTask for lines. What was compared once is kept as a digest.
func (l *lines) equal(ctx context.Context, a, b *entry) bool {
	if a.lost || b.lost {
		return false
	}
	if !a.row.Known || !b.row.Known || a.row.Sizes == 0 || b.row.Sizes == 0 {
		return sameTask(ctx, l.ref(a), l.ref(b))
	}
	if a.row.Logged && b.row.Logged || a.row.Sizes != b.row.Sizes {
		return false
	}
	for _, ln := range []*entry{a, b} {
		row := ln.kept()
		if row.Content == [16]byte{} {
			sum, err := contentOf(ctx, l.ref(ln))
			if err != nil {
				return sameTask(ctx, l.ref(a), l.ref(b))
			}
			compared := *row // others may have it in hand
			compared.Content = sum
			if ln.equal, l.changed = true, true; ln.base != nil {
				ln.base = &compared
			} else {
				ln.row = &compared
			}
		}
	}
	return a.kept().Content == b.kept().Content && a.kept().Content != noContent
}

// kept is the row as it is kept: without what the overlay says.
func (ln *entry) kept() *catalog.Row {
	if ln.base != nil {
		return ln.base
	}
	return ln.row
}

// costOf is what a filter compares; unknown is not zero.
func costOf(row *catalog.Row) *money.USD {
	if !row.Priced {
		return nil
	}
	usd := money.USD(row.Cost)
	return &usd
}
