// Package catalogtest is the behaviour that every backend of the catalogue must show: a search finds the same as a
// look into every message, rows come back as they were kept, and several users of one catalogue see each change as a
// whole. Damage of a backend's own medium is tested next to the backend.
package catalogtest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// Catalog is the tested interface.
type Catalog interface {
	Rows(ctx context.Context, build uint64, extent catalog.Extent) ([]catalog.SourceRows, error)
	Summaries(ctx context.Context, build uint64, source string, rows []*catalog.Row) error
	Keep(ctx context.Context, build uint64, changes []catalog.Change, forget int64, wait time.Duration) error
	ForgetRows(ctx context.Context) error
	Snapshot(ctx context.Context) (*catalog.Snapshot, error)
	Put(ctx context.Context, list []catalog.Entry) error
	Drop(ctx context.Context, keys []string) error
}

// Backend is a place for one catalogue, empty at first.
type Backend struct {
	// Open opens it again, like another process or server.
	Open func(t testing.TB) Catalog
	// Leftover returns how many rows belong to no task.
	Leftover func(t testing.TB) int
	// Lists returns how many lists of words there are.
	Lists func(t testing.TB) int
}

// mostLists is how many lists of words a catalogue may have.
const mostLists = 16

// Run runs the suite. open is called once per test and gives a fresh Backend.
func Run(t *testing.T, open func(t *testing.T) Backend) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Backend)
	}{
		{"FindsWhatMatches", testFindsWhatMatches},
		{"ChangingCatalogueFindsWhatMatches", testChangingCatalogueFindsWhatMatches},
		{"ManyPartsOfOneTask", testManyPartsOfOneTask},
		{"ReplaceAndDrop", testReplaceAndDrop},
		{"RowsKeepWhatTheyWereGiven", testRowsKeepWhatTheyWereGiven},
		{"TasksKeepTheirOrder", testTasksKeepTheirOrder},
		{"SnapshotStands", testSnapshotStands},
		{"Cancelled", testCancelled},
		{"WritersAndReadersTogether", testWritersAndReadersTogether},
		{"WritesUnderReaders", testWritesUnderReaders},
		{"HitsAreThoseOfEveryMessage", testHitsAreThoseOfEveryMessage},
		{"HugeAndHostileTexts", testHugeAndHostileTexts},
		{"PartsAreFew", testPartsAreFew},
		{"UsedAndTouched", testUsedAndTouched},
		{"RowsComeBack", testRowsComeBack},
		{"RowsChange", testRowsChange},
		{"UpdatedRowsKeepTheirPages", testUpdatedRowsKeepTheirPages},
		{"RowsOfTwoBuilds", testRowsOfTwoBuilds},
		{"RowsUnderConcurrentWriters", testRowsUnderConcurrentWriters},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// put keeps one task with these texts, one in each message.
func put(t testing.TB, db Catalog, key string, texts ...string) {
	t.Helper()
	fixture.NoError(t, db.Put(context.Background(), []catalog.Entry{entry(key, texts...)}))
}

func entry(key string, texts ...string) catalog.Entry {
	var b catalog.Builder
	for i, text := range texts {
		b.Add(said(i+1, text))
	}
	return b.Entry(key, "stamp of "+key)
}

func said(number int, text string) catalog.Message {
	return catalog.Message{
		History: catalog.HistoryUI, Number: number, Place: number, TS: int64(number),
		Pieces: []catalog.Piece{{Class: catalog.Words, Kind: "say:text", Text: text}},
	}
}

// kept is a task with these messages.
func kept(t testing.TB, db Catalog, key string, list []catalog.Message) {
	t.Helper()
	var b catalog.Builder
	for _, m := range list {
		b.Add(m)
	}
	fixture.NoError(t, db.Put(context.Background(), []catalog.Entry{b.Entry(key, "stamp")}))
}

// empty removes all tasks.
func empty(t testing.TB, db Catalog) {
	t.Helper()
	s := begin(t, db)
	var keys []string
	for key := range s.tasks {
		keys = append(keys, key)
	}
	s.Close()
	fixture.NoError(t, db.Drop(context.Background(), keys))
}

// search is a snapshot and its tasks.
type search struct {
	*catalog.Snapshot
	tasks map[string]catalog.Task
}

func begin(t testing.TB, db Catalog) search {
	t.Helper()
	s, err := db.Snapshot(context.Background())
	fixture.NoError(t, err)
	tasks, err := s.Tasks(context.Background())
	if err != nil {
		s.Close()
	}
	fixture.NoError(t, err)
	return search{s, tasks}
}

// hits returns the hits of one task; with most, only the first ones.
func (s search) hits(t testing.TB, key string, q catalog.Query, most int) []catalog.Hit {
	t.Helper()
	parts, err := s.Parts(context.Background(), q)
	fixture.NoError(t, err)
	hits, err := s.Hits(context.Background(), parts[s.tasks[key].ID], q, most)
	fixture.NoError(t, err)
	return hits
}

func hits(t testing.TB, db Catalog, key string, q catalog.Query, most int) []catalog.Hit {
	t.Helper()
	s := begin(t, db)
	defer s.Close()
	return s.hits(t, key, q, most)
}

// found returns the hits of a query in the catalogue, as KEY#NUMBER.
func found(t testing.TB, db Catalog, query string) map[string]bool {
	t.Helper()
	q, err := catalog.Parse(query)
	fixture.NoError(t, err)
	s := begin(t, db)
	defer s.Close()
	out := map[string]bool{}
	for key := range s.tasks {
		for _, h := range s.hits(t, key, q, 0) {
			out[fmt.Sprint(key, "#", h.Number)] = true
		}
	}
	return out
}

// naive finds the hits of a task by matching every message, in the order of Rank.
func naive(q catalog.Query, list []catalog.Message) (out []catalog.Hit) {
	for _, m := range list {
		if hit, ok := q.Match(m); ok {
			out = append(out, hit)
		}
	}
	slices.SortFunc(out, catalog.Rank)
	return out
}

// matching finds the hits of a query in texts by matching every message, as KEY#NUMBER.
func matching(q catalog.Query, all map[string][]string) map[string]bool {
	out := map[string]bool{}
	for key, texts := range all {
		for i, text := range texts {
			if _, ok := q.Match(said(i+1, text)); ok && text != "" {
				out[fmt.Sprint(key, "#", i+1)] = true
			}
		}
	}
	return out
}

// sorted returns rows by their names.
func sorted(rows []catalog.Row) []*catalog.Row {
	out := make([]*catalog.Row, len(rows))
	for i := range rows {
		out[i] = &rows[i]
	}
	slices.SortFunc(out, func(a, b *catalog.Row) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// prose makes text that looks like a coding agent's: words, identifiers and paths.
func prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		switch r.IntN(12) {
		case 0:
			fmt.Fprintf(&b, "src/%s/%s.go:%d ", words[r.IntN(400)], words[r.IntN(4000)], r.IntN(900))
		case 1:
			fmt.Fprintf(&b, "%s_%s(%d) ", words[r.IntN(4000)], words[r.IntN(4000)], r.IntN(90))
		default:
			b.WriteString(words[int(r.ExpFloat64()*300)%4000] + " ")
		}
	}
	return b.String()
}

var words = func() []string {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]string, 4000)
	for i := range out {
		for range 2 + r.IntN(3) {
			out[i] += string("bcdfglmnprst"[r.IntN(12)]) + string("aeiou"[r.IntN(5)])
		}
	}
	return out
}()
