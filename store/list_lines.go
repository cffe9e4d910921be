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
	src      *listed
	lost     bool // its source cannot be reached; the row is what the last list knew
	fresh    bool // this list read it, and the row can be kept
	verified bool // this list compared the row with the files and learned something that is to be kept
	stale    bool // the row does not show the task as it is now
	hidden   bool // it was deleted in Roost, vanished during this list, or the caller may not find it
}

// listed is a source while a list is made.
type listed struct {
	Source
	state api.SourceState
	tasks []*entry
	known *catalog.SourceRows // what earlier lists kept; nil when nothing of it can be used
	dirs  *taskDirs           // nil when none of its rows can be kept
	index uint64              // a digest of its indexes
	every bool                // the list compares every file of it
}

// lines are all tasks of all sources, while a list is made.
type lines struct {
	s      *Store
	known  *reading // the rows that earlier lists kept
	srcs   []*listed
	marks  overlay.Table
	all    []*entry
	begun  time.Time           // when this list began to compare files
	doctor bool                // the list compares every file of every source
	filled int                 // sources that have any tasks
	copies map[*entry][]string // other places of a task
	cold   atomic.Bool         // the last tasks came from the disk, and not from the system's cache
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
	srcs, err := s.sourcesKnown(ctx, l.known)
	if err != nil {
		return l, err
	}
	if l.marks, err = s.Overlay(ctx); err != nil {
		l.marks = nil // no titles and tags of theirs, but all tasks
	}
	for _, src := range srcs {
		l.place(src)
	}
	return l, nil
}

func (l *lines) close() {
	for _, src := range l.srcs {
		if src.dirs != nil {
			src.dirs.close()
		}
	}
	l.known.Close()
}

// rowsOf returns the rows of a source that earlier lists kept; nil when none of them can be used.
func (r *reading) rowsOf(src Source) *catalog.SourceRows {
	sources := r.Sources()
	at := slices.IndexFunc(sources, func(k catalog.SourceRows) bool {
		return k.Name == src.Name && k.Tool == src.Tool && k.Tasks == src.Tasks
	})
	if at < 0 {
		return nil
	}
	return &sources[at]
}

// place adds the tasks of one source, as they were known.
func (l *lines) place(of Source) {
	src := &listed{Source: of, state: of.state(), known: l.known.rowsOf(of)}
	l.srcs = append(l.srcs, src)
	if l.known.DB() != nil && src.err == nil && src.gone == nil {
		if got, err := l.s.taskDirs(of); err == nil {
			src.dirs = &got
		} else {
			got.close()
		}
	}
	rows := map[string]*catalog.Row{}
	if src.known != nil {
		for j := range src.known.Rows {
			rows[src.known.Rows[j].ID] = &src.known.Rows[j]
		}
	}
	for _, id := range src.ids {
		ln := &entry{src: src, row: rows[id], hidden: len(l.marks) > 0 && l.marks.Hidden(src.Name, id)}
		delete(rows, id)
		if ln.row == nil {
			ln.row = &catalog.Row{ID: id}
		}
		if !ln.hidden {
			src.state.Tasks++
		}
		src.tasks = append(src.tasks, ln)
	}
	lost := src.err != nil && src.known != nil
	if lost {
		for j := range src.known.Rows {
			row := &src.known.Rows[j]
			if rows[row.ID] != nil && !l.marks.Hidden(src.Name, row.ID) { // what we continued is here, and counted above
				src.tasks = append(src.tasks, &entry{row: row, src: src, lost: true})
				src.state.Tasks++
			}
		}
	}
	if len(src.ids) > 0 || lost {
		l.filled++
	}
	l.all = append(l.all, src.tasks...)
}

// sources describes the sources of the list.
func (l *lines) sources() []api.SourceState {
	return api.Each(l.srcs, func(src *listed) api.SourceState { return src.state })
}

// stale returns the lines whose rows do not show the tasks as they are now.
func (l *lines) stale(ctx context.Context) []*entry {
	l.begun = time.Now()
	for _, src := range l.srcs {
		l.index(src)
		src.every = l.compareClosely(src)
	}
	Parallel(context.WithoutCancel(ctx), runtime.GOMAXPROCS(0), len(l.all), func(i int) {
		ln := l.all[i]
		ln.stale = !ln.hidden && !ln.lost && !l.holds(ctx, ln)
	})
	return api.Some(l.all, func(ln *entry) (*entry, bool) { return ln, ln.stale })
}

// index examines the indexes of a source for problems. Doctor checks the indexes of our own root, which are derived.
func (l *lines) index(src *listed) {
	if src.dirs != nil {
		src.index = l.s.indexDigest(src.Tasks)
		if known := src.known; known != nil && !src.One && known.Indexes != 0 && known.Indexes == src.index {
			src.state.Problem = known.Problem
			return
		}
	}
	if src.Own || src.One || src.err != nil || src.gone != nil {
		return
	}
	src.state.Problem = l.s.rows.problem(src.Tasks)
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
	dirs, row := ln.src.dirs, ln.row
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
	indexes := ln.src.index
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
	if journals := ln.src.journals; journals != nil {
		return journals[ln.row.ID].Held
	}
	return l.s.Held(ctx, l.ref(ln))
}

// itemDigest returns a digest of a task's entry in an index.
func (s *Store) itemDigest(dir string) uint64 {
	return catalog.MixText(1, string(s.rows.row(dir))) | 1
}

func (l *lines) ref(ln *entry) Ref { return l.s.ref(ln.src.Source, ln.row.ID) }

// tasksAhead is how many tasks this list prefetches when they come from a disk. The disk then works on the two histories
// of each of them, beside the files that are being read.
const tasksAhead = 4

// read reads tasks on all cores, and hides those that vanished, or that the caller may not find. It ends early when ctx
// does.
func (l *lines) read(ctx context.Context, list []*entry) {
	Parallel(ctx, runtime.GOMAXPROCS(0), len(list), func(n int) {
		progress.Report(ctx, progress.State{What: "reading", Done: n, Of: len(list)})
		if ahead := n + tasksAhead; l.cold.Load() && ahead < len(list) {
			l.cold.Store(roofmt.Ahead(l.ref(list[ahead]).Dir))
		}
		l.readOne(ctx, list[n])
	})
	sight := sightOf(ctx)
	for _, ln := range l.all {
		gone := ln.sum != nil && ln.sum.Gone
		if sight != nil && !gone {
			seen, _ := sight(ln.row.Access)
			gone = !seen
		}
		if gone && !ln.hidden {
			ln.hidden = true
			ln.src.state.Tasks--
		}
	}
}

// readOne reads a task. It keeps the row if a later list would notice every later change of the task.
func (l *lines) readOne(ctx context.Context, ln *entry) {
	ref, dirs := l.ref(ln), ln.src.dirs
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
		row.Item, row.Indexes = item, ln.src.index
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
	for _, ln := range l.all {
		if _, ok := l.marks[overlay.Key{Source: ln.src.Name, ID: ln.row.ID}]; !ok {
			continue
		}
		t := api.Summary{ID: ln.row.ID, Source: ln.src.Name, Title: ln.row.Title, Tags: ln.row.Tags, Pinned: ln.row.Pinned}
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
	rows := map[*listed][]*catalog.Row{}
	for _, ln := range list {
		if ln.sum == nil && ln.row.Known && ln.row.Summary == nil {
			rows[ln.src] = append(rows[ln.src], ln.row)
		}
	}
	for src, some := range rows {
		if l.known.DB().Summaries(ctx, l.s.build(), src.Name, some) != nil {
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
			File: t.Path, Problem: "its storage cannot be reached: " + ln.src.err.Error(), Recovered: "what the last list knew of it",
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
	for _, src := range l.srcs {
		for _, ln := range src.tasks {
			if !ln.hidden {
				src.state.Bytes += ln.row.Size
				ln.count(&src.state)
			}
		}
		judge(&src.state)
	}
	return l.sources()
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
	keeps := func(ln *entry) bool { return m.keeps(ln.row, ln.src.Name) }
	out := make([]*entry, 0, len(l.all))
	at := map[string][]*entry{}
	if l.filled > 1 { // in one folder names are unique
		for _, ln := range l.all {
			if !ln.hidden {
				at[ln.row.ID] = append(at[ln.row.ID], ln)
			}
		}
	}
	for _, ln := range l.all {
		places := at[ln.row.ID]
		switch {
		case ln.hidden:
		case len(places) < 2:
			if keeps(ln) {
				out = append(out, ln)
			}
		case places[0] == ln:
			for _, group := range l.groups(ctx, slices.Clone(places)) {
				if first := l.first(group, keeps); first != nil {
					out = append(out, first)
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
func (l *lines) groups(ctx context.Context, places []*entry) [][]*entry {
	return grouped(places, func(ln *entry) int { return l.rank(ctx, ln) }, func(a, b *entry) bool { return l.equal(ctx, a, b) })
}

func (l *lines) rank(ctx context.Context, ln *entry) int {
	switch {
	case ln.src.Own:
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
func (l *lines) compareClosely(src *listed) bool {
	known := src.known
	if l.doctor || known == nil || !dirstat.FoldersShowNames || len(src.tasks) <= l.s.pace.few {
		return true
	}
	if !src.Own && (src.index == 0 || src.index != known.Indexes) {
		return true
	}
	since := l.begun.Sub(time.UnixMilli(known.Compared))
	return since < 0 || since >= l.s.pace.every
}

// closely reports whether this list compares all files of a task.
func (l *lines) closely(ln *entry) bool {
	return ln.src.every || ln.row.Folders == 0 || time.Unix(ln.row.Written, 0).Add(l.s.pace.warm).After(l.begun)
}

// comparedAt returns the time at which every file of a source was last compared, to be kept for the next list.
func (l *lines) comparedAt(src *listed) int64 {
	switch {
	case !src.every && src.known != nil:
		return src.known.Compared
	case !src.every, slices.ContainsFunc(src.tasks, func(ln *entry) bool { return ln.stale && ln.sum == nil }):
		return 0
	case src.known != nil && len(src.tasks) <= l.s.pace.few:
		return src.known.Compared // no list asks
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
