package store

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/dirstat"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task/codec"
)

// entry is a task in a list: what lists filter and sort it by, and where the rest is.
type entry struct {
	row      *catalog.Row
	base     *catalog.Row // without the overlay's labels; nil when it has none
	sum      *api.Summary // when this list read the task
	src      int32        // index of its source
	lost     bool         // its source cannot be reached; the row is what the last list knew
	fresh    bool         // this list read it, and the row can be kept
	verified bool         // this list compared the row with the files and learned something that is to be kept
	stale    bool         // the row does not show the task as it is now
	hidden   bool         // it was deleted in Roost, or vanished during this list
}

// lines are all tasks of all sources, while a list is made.
type lines struct {
	s       *Store
	known   *reading // the rows that earlier lists kept
	srcs    []Source
	states  []api.SourceState
	marks   overlay.Table
	all     []entry
	from    []int               // the index of each source's first line, and the end of the last source's
	begun   time.Time           // when this list began to compare files
	doctor  bool                // the list compares every file of every source
	every   []bool              // of each source: the list compares every file of it
	dirs    []*taskDirs         // of each source; nil when none of its rows can be kept
	indexes []uint64            // digests of the indexes of each source; nil until stale
	filled  int                 // sources that have any tasks
	copies  map[*entry][]string // other places of a task
	cold    atomic.Bool         // the last tasks came from the disk, and not from the system's cache
}

// lines looks for the tasks of every source and reads those that changed since the
// last list. The caller closes them, also after an error.
func (s *Store) lines(ctx context.Context, known *reading, closely bool) (*lines, error) {
	l, err := s.linesKnown(ctx, known)
	if err != nil {
		return l, err
	}
	l.doctor = closely
	l.read(ctx, l.stale(ctx))
	return l, ctx.Err()
}

// linesKnown returns the tasks of every source as they were known. The caller closes them, also after an error.
func (s *Store) linesKnown(ctx context.Context, known *reading) (*lines, error) {
	l := &lines{s: s, known: known, copies: map[*entry][]string{}}
	var err error
	if l.srcs, err = s.sourcesKnown(ctx, l.known); err != nil {
		return l, err
	}
	if l.marks, err = s.Overlay(ctx); err != nil {
		l.marks = nil // no titles and tags of theirs, but all tasks
	}
	for i, src := range l.srcs {
		l.from = append(l.from, len(l.all))
		l.place(i, src)
	}
	l.from = append(l.from, len(l.all))
	return l, nil
}

func (l *lines) close() {
	for _, d := range l.dirs {
		if d != nil {
			d.close()
		}
	}
	l.known.Close()
}

// knownOf returns the cached rows of a source; nil when none of them can be used.
func (l *lines) knownOf(i int) *catalog.SourceRows {
	src, sources := l.srcs[i], l.known.Sources()
	at := slices.IndexFunc(sources, func(k catalog.SourceRows) bool {
		return k.Name == src.Name && k.Tool == src.Tool && k.Tasks == src.Tasks
	})
	if at < 0 {
		return nil
	}
	return &sources[at]
}

// place adds the tasks of one source, as they were known.
func (l *lines) place(i int, src Source) {
	state := src.state()
	var dirs *taskDirs
	if l.known.DB() != nil && src.err == nil && src.gone == nil {
		if got, err := l.s.taskDirs(src); err == nil {
			dirs = &got
		} else {
			got.close()
		}
	}
	l.dirs = append(l.dirs, dirs)
	known := l.knownOf(i)
	rows := map[string]*catalog.Row{}
	if known != nil {
		for j := range known.Rows {
			rows[known.Rows[j].ID] = &known.Rows[j]
		}
	}
	l.all = slices.Grow(l.all, len(src.ids))
	if len(src.ids) > 0 {
		l.filled++
	}
	for _, id := range src.ids {
		ln := entry{src: int32(i), row: rows[id], hidden: len(l.marks) > 0 && l.marks.Hidden(src.Name, id)}
		if ln.row == nil {
			ln.row = &catalog.Row{ID: id}
		}
		if !ln.hidden {
			state.Tasks++
		}
		l.all = append(l.all, ln)
	}
	if src.err != nil && known != nil {
		l.filled++
		here := api.SetOf(src.ids)
		for j := range known.Rows {
			row := &known.Rows[j]
			if here[row.ID] || l.marks.Hidden(src.Name, row.ID) {
				continue // what we continued is here
			}
			l.all = append(l.all, entry{row: row, src: int32(i), lost: true})
			state.Tasks++
		}
	}
	l.states = append(l.states, state)
}

// stale returns the indexes, in l.all, of the lines whose rows do not show the tasks as they are now.
func (l *lines) stale(ctx context.Context) []int {
	l.begun = time.Now()
	l.indexes, l.every = make([]uint64, len(l.srcs)), make([]bool, len(l.srcs))
	for i, src := range l.srcs {
		l.index(i, src)
		l.every[i] = l.compareClosely(i, len(l.of(i)))
	}
	Parallel(context.WithoutCancel(ctx), runtime.GOMAXPROCS(0), len(l.all), func(i int) {
		ln := &l.all[i]
		ln.stale = !ln.hidden && !ln.lost && !l.holds(ctx, ln)
	})
	var out []int
	for i := range l.all {
		if l.all[i].stale {
			out = append(out, i)
		}
	}
	return out
}

// index examines the indexes of a source for problems. Doctor checks the indexes of our own root, which are derived.
func (l *lines) index(i int, src Source) {
	if l.dirs[i] != nil {
		l.indexes[i] = l.s.indexDigest(src.Tasks)
		if known := l.knownOf(i); known != nil && !src.One && known.Indexes != 0 && known.Indexes == l.indexes[i] {
			l.states[i].Problem = known.Problem
			return
		}
	}
	if src.Own || src.One || src.err != nil || src.gone != nil {
		return
	}
	l.states[i].Problem = l.s.rows.problem(src.Tasks)
}

// indexDigest returns a digest of the indexes beside the task folders; 0 when they changed just now.
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

// holds reports whether a line's row shows the task as it is now.
func (l *lines) holds(ctx context.Context, ln *entry) bool {
	dirs, row := l.dirs[ln.src], ln.row
	if dirs == nil || !row.Known {
		return false
	}
	closely := l.closely(ln)
	now := dirs.fingerprint(row.ID, row.Files, closely)
	if now.failed || closely && now.digest != row.Digest || !closely && now.folders != row.Folders {
		return false
	}
	if row.Unfinished {
		if l.held(ctx, ln) {
			return false
		}
	}
	indexes := l.indexes[ln.src]
	if row.Item == 0 || indexes != 0 && row.Indexes == indexes {
		return true
	}
	if l.s.itemDigest(l.ref(ln).Dir) != row.Item {
		return false
	}
	row.Indexes, ln.verified = indexes, indexes != 0
	return true
}

// held reports whether a process owned the task when the list began, or owns it now.
func (l *lines) held(ctx context.Context, ln *entry) bool {
	if journals := l.srcs[ln.src].journals; journals != nil {
		return journals[ln.row.ID].Held
	}
	return l.s.Held(ctx, l.ref(ln))
}

// itemDigest returns a digest of a task's entry in an index.
func (s *Store) itemDigest(dir string) uint64 {
	return catalog.MixText(1, string(s.rows.row(dir))) | 1
}

func (l *lines) ref(ln *entry) Ref { return l.s.ref(l.srcs[ln.src], ln.row.ID) }

// tasksAhead is how many tasks this list prefetches when they come from a disk. The disk then works on the two histories
// of each of them, beside the files that are being read.
const tasksAhead = 4

// read reads tasks on all cores. It ends early when ctx does.
func (l *lines) read(ctx context.Context, places []int) {
	Parallel(ctx, runtime.GOMAXPROCS(0), len(places), func(n int) {
		progress.Report(ctx, progress.State{What: "reading", Done: n, Of: len(places)})
		if ahead := n + tasksAhead; l.cold.Load() && ahead < len(places) {
			l.cold.Store(roofmt.Ahead(l.ref(&l.all[places[ahead]]).Dir))
		}
		l.readOne(ctx, &l.all[places[n]])
	})
	for _, i := range places {
		ln := &l.all[i]
		if ln.sum != nil && ln.sum.Gone {
			ln.hidden = true
			l.states[ln.src].Tasks--
		}
	}
}

// readOne reads a task. It keeps the row if a later list would notice every later change of the task.
func (l *lines) readOne(ctx context.Context, ln *entry) {
	ref, dirs := l.ref(ln), l.dirs[ln.src]
	var files string
	var before fingerprint
	var item uint64
	keep, begun := dirs != nil, l.s.clock()
	if keep {
		files, keep = dirs.files(ref)
	}
	if keep {
		before, item = dirs.fingerprint(ref.ID, files, true), l.s.itemDigest(ref.Dir)
	}
	sum, from := l.s.derive(ctx, ref)
	if from.cold {
		l.cold.Store(true)
	}
	row := rowOf(&sum)
	row.Logged = from.logged
	ln.row, ln.sum = &row, &sum
	if !keep || from.failed || from.held || before.failed || ctx.Err() != nil {
		return
	}
	row.Files, row.Digest, row.Written = files, before.digest, before.written/int64(time.Second)
	if !writtenInPlace(files) {
		row.Folders = before.folders
	}
	row.Unfinished = from.unfinished
	row.Sizes = dirs.sizes(ref.ID)
	if from.indexed {
		row.Item, row.Indexes = item, l.indexes[ln.src]
		keep = item == l.s.itemDigest(ref.Dir)
	}
	after := dirs.fingerprint(ref.ID, files, true)
	// When a file changed just before the first fingerprint, a second change after the fingerprint may have left no trace,
	// however long ago that is by now.
	if !keep || after != before || !l.s.calm(before.newest, begun) {
		return
	}
	w := codec.NewWriter(nil)
	w.Value(sum)
	row.Summary, row.Known, ln.fresh = w.Out, true, true
}

// derivation describes what a task's row was derived from, beyond what the task's files show.
type derivation struct {
	failed     bool
	logged     bool // it has a journal
	held       bool // a process is writing the journal
	unfinished bool // its run has no end
	indexed    bool // an index beside its folder may have an entry of it
	cold       bool // its histories had to come from the disk
}

// derive reads one task, without its labels in the overlay. A task that cannot be read is a damaged task, not an error.
func (s *Store) derive(ctx context.Context, ref Ref) (api.Summary, derivation) {
	var from derivation
	from.held = s.Held(ctx, ref)
	v, err := s.read(ctx, ref, false)
	if err != nil {
		return api.Summary{
			ID: ref.ID, Source: ref.Source, Tool: ref.Tool, Path: ref.Dir, Status: "idle",
			Damaged: []api.Damage{{File: ref.Dir, Problem: ReadProblem(ref, err)}}, Gone: s.vanished(ctx, ref),
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
		sum.Damaged = append(sum.Damaged, api.Damage{File: ref.Dir, Problem: err.Error()})
		from.failed = true
	}
	if !from.held {
		from.held = s.Held(ctx, ref)
	}
	return sum, from
}

// rowOf returns what a list needs of a row to choose and order it.
func rowOf(t *api.Summary) catalog.Row {
	return catalog.Row{
		ID: t.ID, Title: t.Title, TS: t.TS, Cost: t.Usage.Micros(), Priced: t.Usage.Cost != nil,
		Tokens: t.Usage.Tokens(), Size: t.Size, Empty: t.Empty, Damaged: len(t.Damaged) > 0, Pinned: t.Pinned,
		Tool: t.Tool, Status: t.Status, Workspace: t.Workspace, Model: t.Model, Parent: t.ParentID, Tags: t.Tags,
		Access: t.Access,
	}
}

// mark puts the overlay's labels into the lines.
func (l *lines) mark() {
	if len(l.marks) == 0 {
		return
	}
	for i := range l.all {
		ln := &l.all[i]
		if _, ok := l.marks[overlay.Key{Source: l.srcs[ln.src].Name, ID: ln.row.ID}]; !ok {
			continue
		}
		t := api.Summary{ID: ln.row.ID, Source: l.srcs[ln.src].Name, Title: ln.row.Title, Tags: ln.row.Tags, Pinned: ln.row.Pinned}
		ApplyLabels(&t, l.marks)
		row := *ln.row
		ln.base = ln.row
		row.Title, row.Tags, row.Pinned = t.Title, t.Tags, t.Pinned
		ln.row = &row
	}
}

// summaries returns the rows of some lines as they are shown. All cores decode them: one takes tens of microseconds.
func (l *lines) summaries(ctx context.Context, list []*entry) []api.Summary {
	l.load(ctx, list)
	out := make([]api.Summary, len(list))
	Parallel(ctx, runtime.GOMAXPROCS(0), len(list), func(i int) { out[i] = l.summary(ctx, list[i]) })
	return out
}

// load reads the kept summaries of some lines. What cannot be read stays nil.
func (l *lines) load(ctx context.Context, list []*entry) {
	if l.known.DB() == nil {
		return
	}
	rows := make([][]*catalog.Row, len(l.srcs))
	for _, ln := range list {
		if ln.sum == nil && ln.row.Known && ln.row.Summary == nil {
			rows[ln.src] = append(rows[ln.src], ln.row)
		}
	}
	for i, some := range rows {
		if len(some) > 0 && l.known.DB().Summaries(ctx, l.s.build(), l.srcs[i].Name, some) != nil {
			return // the tasks are read instead
		}
	}
}

// summary returns the row of a line as it is shown. When the kept row cannot be read, it reads the task again.
func (l *lines) summary(ctx context.Context, ln *entry) api.Summary {
	var t api.Summary
	switch {
	case ln.sum != nil:
		t = *ln.sum
	case ln.row.Summary != nil && decoded(ln.row.Summary, &t):
	case ln.lost:
		ref := l.ref(ln)
		t = api.Summary{ID: ref.ID, Source: ref.Source, Tool: ref.Tool, Path: ref.Dir, Status: "idle"}.Filled()
	default:
		t, _ = l.s.derive(ctx, l.ref(ln))
	}
	if ln.lost {
		t.Damaged = append(t.Damaged, api.Damage{
			File: t.Path, Problem: "its storage cannot be reached: " + l.srcs[ln.src].err.Error(), Recovered: "what the last list knew of it",
		})
	}
	ApplyLabels(&t, l.marks)
	t.Copies = append([]string{}, l.copies[ln]...)
	return t
}

// decoded reads the summary that a row keeps.
func decoded(data []byte, to *api.Summary) bool {
	u := codec.Reader{In: data}
	u.Value(to)
	*to = to.Filled()
	return !u.Bad
}

// tally counts the tasks of each source.
func (l *lines) tally() []api.SourceState {
	for i := range l.all {
		if ln := &l.all[i]; !ln.hidden {
			l.states[ln.src].Bytes += ln.row.Size
			ln.count(&l.states[ln.src])
		}
	}
	for i := range l.states {
		judge(&l.states[i])
	}
	return l.states
}

// count adds a task to the counts of its source, if it counts as a task already.
func (ln *entry) count(src *api.SourceState) {
	switch {
	case ln.row.Empty:
		src.Empty++
		src.Tasks--
	case ln.row.Damaged && !ln.lost:
		src.Damaged++
	}
}

// united puts the copies of a task into one line, see groups. That line is the first one by rank that the filter
// keeps.
func (l *lines) united(ctx context.Context, m *matcher) []*entry {
	keeps := func(ln *entry) bool { return m.keeps(ln.row, l.srcs[ln.src].Name) }
	out := make([]*entry, 0, len(l.all))
	at := map[string][]int{}
	if l.filled > 1 { // in one folder names are unique
		for i := range l.all {
			if !l.all[i].hidden {
				at[l.all[i].row.ID] = append(at[l.all[i].row.ID], i)
			}
		}
	}
	for i := range l.all {
		ln := &l.all[i]
		places := at[ln.row.ID]
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

// first returns the first line of a group of copies that the filter keeps; nil when it keeps none.
func (l *lines) first(group []*entry, keeps func(*entry) bool) *entry {
	i := slices.IndexFunc(group, keeps)
	if i < 0 {
		return nil
	}
	for j, ln := range group {
		if j != i {
			l.copies[group[i]] = append(l.copies[group[i]], l.ref(ln).Dir)
		}
	}
	return group[i]
}

// groups is Store.groups for lines: it compares rows before it reads files.
func (l *lines) groups(ctx context.Context, places []int) [][]*entry {
	list := api.Each(places, func(at int) *entry { return &l.all[at] })
	return grouped(list, func(ln *entry) int { return l.rank(ctx, ln) }, func(a, b *entry) bool { return l.equal(ctx, a, b) })
}

func (l *lines) rank(ctx context.Context, ln *entry) int {
	switch {
	case l.srcs[ln.src].Own:
		return 0
	case ln.row.Known && ln.row.Logged:
		return 1
	case ln.row.Known:
		return 2
	}
	return l.s.rank(ctx, l.ref(ln))
}

// equal is sameTask for lines. It keeps what it compared as a digest.
func (l *lines) equal(ctx context.Context, a, b *entry) bool {
	if a.lost || b.lost {
		return false
	}
	if !a.row.Known || !b.row.Known || a.row.Sizes == 0 || b.row.Sizes == 0 {
		return l.s.sameTask(ctx, l.ref(a), l.ref(b))
	}
	if a.row.Logged && b.row.Logged || a.row.Sizes != b.row.Sizes {
		return false
	}
	for _, ln := range []*entry{a, b} {
		row := ln.kept()
		if row.Content == [16]byte{} {
			sum, err := contentOf(ctx, l.ref(ln))
			if err != nil {
				return l.s.sameTask(ctx, l.ref(a), l.ref(b))
			}
			row.Content, ln.verified = sum, true
		}
	}
	return a.kept().Content == b.kept().Content && a.kept().Content != noContent
}

// kept returns the row as the catalogue keeps it: without the overlay's labels.
func (ln *entry) kept() *catalog.Row {
	if ln.base != nil {
		return ln.base
	}
	return ln.row
}

// Ten thousand tasks have fifty thousand files. To stat each of them takes 30 to 70 ms,
// nearly all that a list may take, and nothing cheaper shows that a file was written in
// place. The folders alone take 5 ms. So:
//
//   - Of a source with up to pace.few tasks every list compares every file.
//   - Of a larger one every list compares each task's folder, which shows each file that
//     is replaced, made or deleted in it, and its journal, to which we append. Roo, its
//     relatives and classic Cline replace histories by renaming, and we rename what we
//     project.
//   - It compares all files of those tasks whose files may be written in place: when one
//     was written in the last day; when its tool writes that kind of file in place, as
//     Cline does with sessions; all of a source when the tool's own index has changed
//     since, because a tool that continues a task writes that too.
//   - What is left is a file in an old task that another program writes in place, and a
//     damaged blob. A list sees those when every file was last compared pace.every ago.
//     So no row is wrong for longer, and a list after a pause is never wrong.
//
// Rejected: longer pauses, and a part of the files in each list by turns. Both show a
// stale row to a user who waited and looked again. A process that watches: a list, which
// only shows something, would have to start it.
type pace struct {
	few   int
	every time.Duration
	warm  time.Duration // time after a write in which a file may be written in place again
}

var usualPace = pace{few: 2000, every: 30 * time.Second, warm: 24 * time.Hour}

// compareClosely reports whether this list compares every file of a source.
func (l *lines) compareClosely(i, tasks int) bool {
	known := l.knownOf(i)
	if l.doctor || known == nil || !dirstat.FoldersShowNames || tasks <= l.s.pace.few {
		return true
	}
	if !l.srcs[i].Own && (l.indexes[i] == 0 || l.indexes[i] != known.Indexes) {
		return true
	}
	since := l.begun.Sub(time.UnixMilli(known.Compared))
	return since < 0 || since >= l.s.pace.every
}

// closely reports whether this list compares all files of a task.
func (l *lines) closely(ln *entry) bool {
	return l.every[ln.src] || ln.row.Folders == 0 || time.Unix(ln.row.Written, 0).Add(l.s.pace.warm).After(l.begun)
}

// comparedAt returns the time at which every file of a source was last compared, to be kept for the next list.
func (l *lines) comparedAt(i int) int64 {
	known := l.knownOf(i)
	switch {
	case !l.every[i] && known != nil:
		return known.Compared
	case !l.every[i], slices.ContainsFunc(l.of(i), func(ln entry) bool { return ln.stale && ln.sum == nil }):
		return 0
	case known != nil && len(l.of(i)) <= l.s.pace.few:
		return known.Compared // no list asks
	}
	return l.begun.UnixMilli()
}

// renamedFiles are the files that every known writer today replaces by renaming. Classic Cline does not rename the
// last three, but writes each of them beside one that it renames.
var renamedFiles = []string{
	roofmt.UIName, roofmt.APIName, roofmt.ItemName, projection.Name,
	roofmt.MetadataName, "context_history.json", "settings.json",
}

// writtenInPlace reports whether a tool may write one of these files in place.
func writtenInPlace(files string) bool {
	names := strings.FieldsFunc(files, func(r rune) bool { return r == 0 || r == '/' })
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.HasSuffix(name, ".json") && name[0] != '.' && !slices.Contains(renamedFiles, name)
	})
}

// of returns the lines of a source.
func (l *lines) of(i int) []entry { return l.all[l.from[i]:l.from[i+1]] }
