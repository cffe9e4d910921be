package catalog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func opened(t testing.TB, dir string) *DB {
	t.Helper()
	db, err := Open(context.Background(), dir)
	fixture.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// put keeps one task with these texts, one a message.
func put(t testing.TB, db *DB, key string, texts ...string) {
	t.Helper()
	fixture.NoError(t, db.Put(context.Background(), []Entry{entry(key, texts...)}))
}

func entry(key string, texts ...string) Entry {
	var b Builder
	for i, text := range texts {
		b.Add(said(i+1, text))
	}
	return b.Entry(key, "stamp of "+key)
}

func said(number int, text string) Message {
	return Message{History: HistoryUI, Number: number, Place: number, TS: int64(number), Pieces: []Piece{{Words, "say:text", text}}}
}

// found are the hits of a query as KEY#NUMBER, by the catalogue.
func found(t testing.TB, db *DB, query string) map[string]bool {
	t.Helper()
	ctx := context.Background()
	s, err := db.Snapshot(ctx)
	fixture.NoError(t, err)
	defer s.Close()
	q, err := Parse(query)
	fixture.NoError(t, err)
	parts, err := s.Parts(ctx, q)
	fixture.NoError(t, err)
	tasks, err := s.Tasks(ctx)
	fixture.NoError(t, err)
	out := map[string]bool{}
	for key, task := range tasks {
		hits, err := s.Hits(ctx, parts[task.ID], q, 0)
		fixture.NoError(t, err)
		for _, h := range hits {
			out[fmt.Sprint(key, "#", h.Number)] = true
		}
	}
	return out
}

// prose makes text that looks like a coding agent's: words, identifiers and paths.
func prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		switch r.IntN(12) {
		case 0:
			fmt.Fprintf(&b, "src/%s/%s.go:%d ", testWords[r.IntN(400)], testWords[r.IntN(4000)], r.IntN(900))
		case 1:
			fmt.Fprintf(&b, "%s_%s(%d) ", testWords[r.IntN(4000)], testWords[r.IntN(4000)], r.IntN(90))
		default:
			b.WriteString(testWords[int(r.ExpFloat64()*300)%4000] + " ")
		}
	}
	return b.String()
}

var testWords = func() []string {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]string, 4000)
	for i := range out {
		for range 2 + r.IntN(3) {
			out[i] += string("bcdfglmnprst"[r.IntN(12)]) + string("aeiou"[r.IntN(5)])
		}
	}
	return out
}()
