// Package search finds messages of all tasks by their words, and keeps in the catalogue what it had to read. The
// result is complete in any state of the catalogue: the search reads each task whose present state the catalogue does
// not hold. It writes nothing but the catalogue.
package search

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/task"
)

// Result is one page of hits, those of one task together and in the order of catalog.Rank. The order of tasks is the
// same with any catalogue: newest first (by TS) or, with api.SortBest, as rank says. A cursor names the place of the task
// in that order and how many of its hits were given, so that tasks which come or change between pages shift nothing.
type Result struct {
	Items      []api.Hit
	NextCursor string
	Read       int // tasks among Tasks whose present state the catalogue did not hold
	api.Found      // Sources are those that were searched; only their tasks are counted
}

// Run finds messages of all tasks, or of the one that q names by SOURCE:ID. Its result is complete in any state of the
// catalogue: Run reads each task whose present state the catalogue does not hold. It writes nothing but the catalogue.
// One message must hold all of the query's text; without text, Run finds the calls of Tool, or the calls for File. Words,
// Damaged and Empty of the filter are ignored. Sort is api.SortBest or api.SortNew; "" = api.SortNew. Limit and Cursor
// page through the hits.
func Run(ctx context.Context, s *store.Store, q api.SearchQuery) (Result, error) {
	words, err := wordsOf(q)
	if err != nil {
		return Result{}, err
	}
	from, err := readSpot(q.Filter.Cursor, q.Filter.Sort)
	if err != nil {
		return Result{}, err
	}
	q.Filter.Words, q.Filter.Damaged, q.Filter.Empty = "", false, false
	tasks, err := s.Candidates(ctx, store.Filter{TaskFilter: q.Filter, Task: q.Task})
	if err != nil {
		return Result{}, err
	}
	defer tasks.Close()
	var notes []string
	for try := 0; ; try++ {
		var db store.Catalog // nil: the store keeps no catalogue, or it was damaged twice
		var err error
		if try < 2 {
			db, err = s.OpenCatalog(ctx)
		}
		if err != nil {
			notes = append(notes, err.Error())
		}
		f := search{s: s, tasks: tasks, q: q, words: words.Joined(), also: alsoOf(q), db: db, began: time.Now()}
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

// wordsOf returns the words that messages must hold. Without words, a search for a tool or a file finds calls of the
// tool, or calls for the file.
func wordsOf(q api.SearchQuery) (catalog.Query, error) {
	switch {
	case strings.TrimSpace(q.Text) != "" || q.Tool+q.File == "":
		return catalog.Parse(q.Text, q.In...)
	case q.Tool != "":
		return catalog.Used(q.Tool), nil
	}
	return catalog.Touched(q.File), nil
}

// search is one pass over all tasks.
type search struct {
	s     *store.Store
	tasks *store.Candidates
	q     api.SearchQuery
	words catalog.Query
	also  []also
	db    store.Catalog // nil: every task is read
	began time.Time

	snap   *catalog.Snapshot
	unkept error // why something could not be added to the catalogue
}

// candidate is a task that may have hits.
type candidate struct {
	store.Candidate
	large  bool // it has more text than the catalogue keeps of one task
	read   bool
	known  *catalog.Task // nil: it was read
	hits   []catalog.Hit // when it was read
	also   uint64        // which conditions of search.also the task meets, when it was read
	failed *api.Damage
	name   string // see mark
	place  spot
	count  int  // of its hits
	found  bool // its hits are counted
}

// also is a condition that the task of a hit must meet.
type also struct {
	q     catalog.Query
	parts map[int64][]catalog.Part
}

func alsoOf(q api.SearchQuery) (out []also) {
	if q.Tool != "" {
		out = append(out, also{q: catalog.Used(q.Tool)})
	}
	if q.File != "" {
		out = append(out, also{q: catalog.Touched(q.File)})
	}
	return out
}

func (f *search) run(ctx context.Context, from spot) (out Result, err error) {
	out.Tasks, out.Sources = len(f.tasks.Tasks), f.tasks.Sources
	all := api.Each(f.tasks.Tasks, func(task store.Candidate) *candidate { return &candidate{Candidate: task} })
	defer func() { f.end() }()
	for first := true; ; first = false {
		known, err := f.begin(ctx)
		if err != nil {
			return out, err
		}
		unknown := unknownOf(all, known)
		if gone := goneOf(known, f.tasks); first && len(gone) > 0 && f.db != nil {
			f.unkept = f.db.Drop(ctx, gone)
		}
		if len(unknown) == 0 {
			break
		}
		out.Read += len(unknown)
		if len(unknown) > mostWhileOpen {
			f.end()
		}
		f.scan(ctx, unknown, from)
		if f.snap != nil || f.db == nil {
			break
		}
	}
	var parts map[int64][]catalog.Part
	if f.snap != nil {
		if parts, err = f.snap.Parts(ctx, f.words); err != nil {
			return out, err
		}
		for i := range f.also {
			if f.also[i].parts, err = f.snap.Parts(ctx, f.also[i].q); err != nil {
				return out, err
			}
		}
	}
	if f.unkept != nil {
		out.Notes = append(out.Notes, f.unkept.Error())
	}
	p := &page{search: f, parts: parts, from: from, out: &out}
	for _, c := range all {
		c.place = spot{title: f.titleScore(c.Title), ts: c.TS, mark: c.mark()}
	}
	slices.SortFunc(all, func(a, b *candidate) int { return a.place.compare(b.place) })
	if err := p.fill(ctx, all); err != nil {
		return out, err
	}
	p.cut()
	if f.q.Each > 0 {
		out.Total, err = p.total(ctx, all)
	}
	return out, err
}

// mostWhileOpen limits how many tasks are read while a snapshot stays open. An old snapshot blocks cleaning up: the
// log of the file grows, and a database keeps replaced rows of all its tables.
const mostWhileOpen = 50

// begin opens a snapshot, and returns the tasks that the catalogue knows.
func (f *search) begin(ctx context.Context) (known map[string]catalog.Task, err error) {
	if f.db == nil {
		return nil, nil
	}
	if f.snap, err = f.db.Snapshot(ctx); err != nil {
		return nil, err
	}
	return f.snap.Tasks(ctx)
}

func (f *search) end() {
	if f.snap != nil {
		f.snap.Close()
		f.snap = nil
	}
}

// unknownOf returns the candidates that were not read and whose present state the catalogue does not hold. It removes
// all other candidates from known.
func unknownOf(all []*candidate, known map[string]catalog.Task) (unknown []*candidate) {
	for _, c := range all {
		key := catalogKey(c.Ref)
		t, ok := known[key]
		delete(known, key)
		if c.known = nil; c.read {
			continue
		}
		if ok && c.Stamp != "" && t.Stamp == c.Stamp {
			c.known = &t
			continue
		}
		c.large = ok && c.Stamp != "" && t.Stamp == tooLarge+c.Stamp
		c.read = true
		unknown = append(unknown, c)
	}
	return unknown
}

// full reports whether the page has all its hits, and one more, which shows that further hits follow.
func (f *search) full(out Result) bool {
	return f.q.Filter.Limit > 0 && len(out.Items) > f.q.Filter.Limit
}

// most returns how many hits of the next task are enough; 0 = all of them.
func (f *search) most(out Result, given int) int {
	if f.q.Filter.Limit <= 0 || f.q.Each > 0 {
		return 0
	}
	return f.q.Filter.Limit + 1 - len(out.Items) + given
}

// goneOf returns the keys of tasks whose folders are gone, and of those that had no folder and are not listed. Other
// tasks that were not found are in storages that this list left out, or that cannot be reached.
func goneOf(rest map[string]catalog.Task, tasks *store.Candidates) (gone []string) {
	var listed map[string]bool
	for key := range rest {
		_, dir, _ := strings.Cut(key, "\x00")
		if filepath.IsAbs(dir) {
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				gone = append(gone, key)
			}
			continue
		}
		if listed == nil {
			listed = map[string]bool{}
			for ref := range tasks.Listed() {
				listed[catalogKey(ref)] = true
			}
		}
		if !listed[key] {
			gone = append(gone, key)
		}
	}
	return gone
}

func catalogKey(ref store.Ref) string { return ref.Source + "\x00" + cmp.Or(ref.Dir, ref.ID) }

const (
	scanners  = 2        // tasks that are read at the same time
	keepAtOne = 16 << 20 // bytes of text that go into the catalogue in one transaction

	// the size of files in bytes above which tasks are read one at a time: the results for all messages of a task
	// stay in memory
	largeFiles = 256 << 20
)

// scan reads tasks, finds their hits, and adds them to the catalogue until the patience of the query is used up.
func (f *search) scan(ctx context.Context, list []*candidate, from spot) {
	var k keeper
	store.Parallel(ctx, scanners, len(list), func(i int) {
		f.read(ctx, list[i], &k, from)
		progress.Report(ctx, progress.State{What: "reading for the search", Done: i + 1, Of: len(list)})
	})
	f.keep(ctx, &k, true)
	f.unkept = errors.Join(f.unkept, k.err)
}

// keeper collects entries until there are enough for one transaction. While a transaction is written, the other tasks
// are read.
type keeper struct {
	mu   sync.Mutex
	list []catalog.Entry
	text int

	large sync.Mutex // held while a task with many bytes is read

	writing sync.Mutex
	err     error // guarded by writing
}

// keep writes the collected entries when there are enough of them, or with last.
func (f *search) keep(ctx context.Context, k *keeper, last bool) {
	k.mu.Lock()
	if len(k.list) == 0 || !last && k.text < keepAtOne && len(k.list) < 1000 {
		k.mu.Unlock()
		return
	}
	list := k.list
	k.list, k.text = nil, 0
	k.mu.Unlock()
	k.writing.Lock()
	defer k.writing.Unlock()
	if k.err == nil {
		k.err = f.db.Put(ctx, list)
	}
}

// read looks through one task. A failure is reported and does not end the search.
func (f *search) read(ctx context.Context, c *candidate, k *keeper, from spot) {
	if c.Size > largeFiles {
		k.large.Lock()
		defer k.large.Unlock()
	}
	v, err := f.s.ReadUnlabelled(ctx, c.Ref)
	if err != nil {
		c.failed = &api.Damage{File: c.Ref.Dir, Problem: store.ReadProblem(c.Ref, err)}
		return
	}
	var text *catalog.Builder
	patient := f.q.Patience <= 0 || time.Since(f.began) < f.q.Patience
	if f.db != nil && c.Stamp != "" && !c.large && patient {
		text = new(catalog.Builder)
	}
	whole := true
	for m, err := range texts(ctx, v.State) {
		if err != nil {
			whole = false // one message is lost, or the file was cut while it was read
			continue
		}
		f.judge(c, m, from)
		if text != nil && !c.large {
			text.Add(m)
			c.large = text.TooLarge()
		}
	}
	// The stamp is older than what was read: a change since makes it stale.
	if err := v.Close(); text == nil || err != nil || !whole || ctx.Err() != nil || !f.tasks.Unchanged(ctx, c.Candidate) {
		return
	}
	stamp := c.Stamp
	if c.large {
		text, stamp = new(catalog.Builder), tooLarge+stamp
	}
	e := text.Entry(catalogKey(c.Ref), stamp)
	k.mu.Lock()
	k.list = append(k.list, e)
	k.text += e.Text()
	k.mu.Unlock()
	f.keep(ctx, k, false)
}

// tooLarge precedes the stamp of a task with too much text: the catalogue keeps nothing else of the task, and it is
// read each time.
const tooLarge = "too large "

// judge decides whether a message of a task is a hit.
func (f *search) judge(c *candidate, m catalog.Message, from spot) {
	for i, a := range f.also {
		if c.also&(1<<i) == 0 {
			if _, ok := a.q.Match(m); ok {
				c.also |= 1 << i
			}
		}
	}
	hit, ok := f.words.Match(m)
	if !ok {
		return
	}
	c.hits = f.words.Collect(c.hits, hit)
	// Of a task with a great many hits only those that can come onto the page are held.
	if most := f.most(Result{}, from.given(c)); most > 0 && len(c.hits) > 2*most+1000 {
		slices.SortFunc(c.hits, catalog.Rank)
		c.hits = c.hits[:most]
		slices.SortFunc(c.hits, func(a, b catalog.Hit) int { return cmp.Compare(a.Place, b.Place) }) // as Collect wants them
	}
}

// texts yields the searchable texts of the messages of both histories. They come in the order of their times, so that
// both histories' messages about one thing are adjacent. A message that cannot be read gives an error, and the next
// one follows.
func texts(ctx context.Context, s *task.State) iter.Seq2[catalog.Message, error] {
	return func(yield func(catalog.Message, error) bool) {
		list := inOrder(s)
		messages := api.Each(list, func(t saying) *task.Message { return t.message })
		place := 0
		for raw, err := range fold.Raws(ctx, s, messages) {
			m := catalog.Message{}
			if err == nil {
				m = list[place].of(raw, list[place].number)
				m.Place = place
			}
			place++
			if !yield(m, err) {
				return
			}
		}
	}
}

// saying is a message in its history.
type saying struct {
	message *task.Message
	number  int // from 1
	of      func([]byte, int) catalog.Message
}

// inOrder returns the messages of both histories in the order of their times. A message without a time stays behind
// the one before it; at the same time the UI history comes first.
func inOrder(s *task.State) []saying {
	ui, api := s.UI(), s.API()
	out := make([]saying, 0, len(ui)+len(api))
	var now int64 // the time that the other history has reached
	for a, u := 0, 0; a < len(api) || u < len(ui); {
		if a < len(api) {
			now = max(now, api[a].TS())
		}
		if u < len(ui) && (a == len(api) || ui[u].TS() <= now) {
			out = append(out, saying{ui[u], u + 1, catalog.UI})
			u++
		} else {
			out = append(out, saying{api[a], a + 1, catalog.API})
			a++
		}
	}
	return out
}

// Verify compares the texts in the catalogue with the folders; store.VerifyRows compares the rows. The text of a task
// that has changed since is stale: the next search reads the task again. A text that counts as up to date and differs
// misleads searches.
func Verify(ctx context.Context, s *store.Store) []store.Mismatch {
	out, err := verify(ctx, s)
	if err != nil {
		return []store.Mismatch{s.CatalogMismatch(err.Error(), catalog.Refused(err))}
	}
	return out
}

// verify is Verify; its error is the reason why the catalogue cannot be compared.
func verify(ctx context.Context, s *store.Store) (out []store.Mismatch, err error) {
	about := s.CatalogMismatch
	db, err := s.VerifyCatalog(ctx)
	if db != nil {
		defer db.Close() //nolint:errcheck // it is only read
	}
	switch {
	case err != nil || db == nil && !s.KeepsCatalog():
		return nil, err
	case db == nil:
		if refs, err := s.Refs(ctx); err != nil || len(refs) > 0 {
			out = append(out, about("it is missing; every search reads all tasks", true))
		}
		return out, nil
	}
	tasks, err := s.Candidates(ctx, store.Filter{})
	if err != nil {
		return nil, err
	}
	defer tasks.Close()
	snap, err := db.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	known, err := snap.Tasks(ctx)
	if err != nil {
		return nil, err
	}
	behind := 0
	for i, t := range tasks.Tasks {
		progress.Report(ctx, progress.State{What: "comparing the catalogue", Done: i, Of: len(tasks.Tasks)})
		key := catalogKey(t.Ref)
		row, ok := known[key]
		delete(known, key)
		if !ok || t.Stamp == "" || t.Stamp != row.Stamp {
			behind++
			continue
		}
		problem, err := compareText(ctx, s, tasks, t, snap, row)
		if ctx.Err() != nil {
			return out, nil
		}
		if err != nil {
			problem = err.Error()
		}
		if problem != "" {
			m := about(problem, false)
			m.ID, m.Path = t.Ref.ID, t.Ref.Dir
			out = append(out, m)
		}
	}
	if behind > 0 {
		text := fmt.Sprintf("%d of %d tasks are not in it as they are now; searches read them", behind, len(tasks.Tasks))
		out = append(out, about(text, true))
	}
	if n := len(goneOf(known, tasks)); n > 0 {
		out = append(out, about(fmt.Sprintf("%d of its tasks are gone", n), true))
	}
	return out, nil
}

// Rebuild fills the catalogue, after setting a damaged one aside.
func Rebuild(ctx context.Context, s *store.Store, damaged bool) error {
	if damaged {
		if db, _ := s.VerifyCatalog(ctx); db != nil { // what is wrong with it is known
			if err := db.SetAside(); err != nil {
				return err
			}
		}
	}
	if err := waitUntilCalm(ctx, s); err != nil {
		return err
	}
	if _, err := s.List(ctx, store.Filter{}); err != nil {
		return err
	}
	found, err := Run(ctx, s, api.SearchQuery{Text: "catalogue", Filter: api.TaskFilter{Limit: 1}})
	if err == nil && len(found.Notes) > 0 {
		err = errors.New(strings.Join(found.Notes, "; "))
	}
	return err
}

// waitUntilCalm waits for a bounded time until the last change of every task is old enough: the catalogue does not
// keep a task that changed a moment ago.
func waitUntilCalm(ctx context.Context, s *store.Store) error {
	for end := time.Now().Add(10 * intake.ClockTick); time.Now().Before(end); {
		tasks, err := s.Candidates(ctx, store.Filter{})
		if err != nil {
			return err
		}
		tasks.Close()
		if !slices.ContainsFunc(tasks.Tasks, func(t store.Candidate) bool { return t.Stamp == "" }) {
			return nil
		}
		if !sleep.For(ctx, intake.ClockTick/5) {
			return ctx.Err()
		}
	}
	return nil // another program is at work; searches read those tasks until they are calm
}

// compareText describes how the searchable messages of a task in the catalogue differ from those in its folder; ""
// when they do not.
func compareText(ctx context.Context, s *store.Store, tasks *store.Candidates, t store.Candidate, snap *catalog.Snapshot,
	row catalog.Task) (string, error) {
	v, err := s.ReadUnlabelled(ctx, t.Ref)
	if err != nil {
		return "", nil //nolint:nilerr // the check of the task reports that it cannot be read
	}
	defer v.Close()
	var fresh catalog.Builder
	for m, err := range texts(ctx, v.State) {
		if err != nil {
			return "", ctx.Err() // a damaged task is not kept in the catalogue
		}
		fresh.Add(m)
	}
	want := fresh.Entry("", "").Digest()
	have, err := snap.Digest(ctx, row.ID)
	if err != nil {
		return "its text cannot be read: " + err.Error(), ctx.Err()
	}
	if !bytes.Equal(have, want) && tasks.Unchanged(ctx, t) { // else it changed just now
		return "its text differs from its folder", nil
	}
	return "", nil
}
