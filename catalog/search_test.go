package catalog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"pgregory.net/rapid"
)

// hits are the hits of one task, the first ones of many.
func (db *DB) hits(t testing.TB, key string, q Query, most int) []Hit {
	t.Helper()
	ctx := context.Background()
	s, err := db.Snapshot(ctx)
	fixture.NoError(t, err)
	defer s.Close()
	tasks, err := s.Tasks(ctx)
	fixture.NoError(t, err)
	parts, err := s.Parts(ctx, q)
	fixture.NoError(t, err)
	hits, err := s.Hits(ctx, parts[tasks[key].ID], q, most)
	fixture.NoError(t, err)
	return hits
}

// naive are the hits of a task by looking into every message, in the order of Rank.
func naive(q Query, list []Message) (out []Hit) {
	for _, m := range list {
		if hit, ok := q.Match(m); ok {
			out = append(out, hit)
		}
	}
	slices.SortFunc(out, Rank)
	return out
}

// kept is a task with these messages.
func kept(t testing.TB, db *DB, key string, list []Message) {
	t.Helper()
	var b Builder
	for _, m := range list {
		b.Add(m)
	}
	fixture.NoError(t, db.Put(context.Background(), []Entry{b.Entry(key, "stamp")}))
}

// Of a task with many parts, texts that repeat, all classes and both histories, the
// hits are those of looking into every message: kind, snippet, score and order; and
// asking for the first few gives the first of all.
func TestHitsAreThoseOfEveryMessage(t *testing.T) {
	if testing.Short() {
		t.Skip("does nothing at the same time, and is slow when watched for races")
	}
	ctx := context.Background()
	db := opened(t, t.TempDir())
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		key := fmt.Sprint("task", n)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		long := make([]string, 6)
		for i := range long {
			long[i] = prose(random, 300+random.IntN(20_000))
		}
		var list []Message
		for i := range rapid.IntRange(1, 40).Draw(r, "messages") {
			m := Message{History: []string{HistoryUI, HistoryAPI}[random.IntN(2)], Number: 1 + i/2, Place: i, TS: int64(i)}
			for range random.IntN(4) {
				text := prose(random, 1+random.IntN(200))
				switch random.IntN(4) {
				case 0:
					text = long[random.IntN(len(long))]
				case 1:
					text = []string{"Needle in the hay", "needles", "a needle_x", "登录 ЁЖ ё", "straße needle hay", "e\u0301 é 🙂👨‍👩‍👧"}[random.IntN(6)]
				}
				m.Pieces = append(m.Pieces, Piece{[]Class{Words, Tool, Path, Called}[random.IntN(4)], fmt.Sprint("kind", random.IntN(5)), text})
			}
			list = append(list, m)
		}
		kept(t, db, key, list)
		for _, text := range []string{"needle", `"needle in"`, "hay needle", "登", "ё", "🙂", "\u0301", "É", "s", strings.Fields(long[0])[0], long[1][100:180], `"` + long[2][:200] + `"`} {
			for _, in := range [][]string{nil, {"tool"}, {"path", "ui"}} {
				q, err := Parse(text, in...)
				fixture.NoError(t, err)
				want := naive(q, list)
				for _, most := range []int{0, 1, 7} {
					part := want
					if most > 0 {
						part = want[:min(most, len(want))]
					}
					if diff := cmp.Diff(part, db.hits(t, key, q, most)); diff != "" {
						r.Fatalf("%.40q in %v, the first %d: -all +catalogue\n%.1500s", text, in, most, diff)
					}
				}
			}
		}
		fixture.NoError(t, db.Drop(ctx, []string{key}))
	})
}

// When the page is full with the best there can be, parts behind it are not read.
func TestEnoughIsEnough(t *testing.T) {
	ctx := context.Background()
	db := opened(t, t.TempDir())
	texts := make([]string, 400)
	for i := range texts {
		texts[i] = "the needle " + strings.Repeat(fmt.Sprintf("hay %d ", i), 100)
	}
	put(t, db, "long", texts...)
	_, err := db.sql.ExecContext(ctx, "UPDATE body SET text = x'00' WHERE part NOT IN (SELECT id FROM part ORDER BY id LIMIT 1)")
	fixture.NoError(t, err)
	q, err := Parse("needle")
	fixture.NoError(t, err)
	if got := db.hits(t, "long", q, 5); len(got) != 5 || got[4].Number != 5 {
		t.Errorf("got %+v, want len(got) = 5 and got[4].Number = 5", got)
	}
	s, err := db.Snapshot(ctx)
	fixture.NoError(t, err)
	defer s.Close()
	parts, err := s.Parts(ctx, q)
	fixture.NoError(t, err)
	for _, list := range parts {
		if _, err := s.Hits(ctx, list, q, 0); !Damaged(err) {
			t.Errorf("all hits, of parts that cannot be read: error %v", err)
		}
		if ok, err := s.Any(ctx, list, q); !ok || err != nil {
			t.Errorf("any hit: %v, %v", ok, err)
		}
	}
}

// Tokens without end, a line of many megabytes, and bytes that are no text are kept,
// and found.
func TestHugeAndHostileTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	size := 13 << 20
	if testing.Short() {
		size = 2 << 20 // the race detector takes ten times as long for each byte
	}
	noise := make([]byte, size)
	for i := range noise {
		noise[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/"[random.IntN(64)]
	}
	bytes := make([]byte, size/13)
	for i := range bytes {
		bytes[i] = byte(random.IntN(256))
	}
	list := []Message{
		said(1, "before"), said(2, string(noise)), said(3, string(bytes)), said(4, strings.Repeat("登", size/13)),
		said(5, strings.Repeat("e\u0301", size/52)), said(6, "behind"), said(7, "\xed\xa0\x80 half of a pair"),
	}
	db := opened(t, t.TempDir())
	kept(t, db, "huge", list)
	for _, text := range []string{"before", "behind", string(noise[size/2 : size/2+20]), string(noise[size/3*2 : size/3*2+3000]), "登登", "e\u0301e", "half", "\ufffd"} {
		q, err := Parse(text)
		fixture.NoError(t, err)
		want := naive(q, list)
		if len(want) == 0 {
			t.Errorf("%.20q is in no message", text)
		}
		if diff := cmp.Diff(want, db.hits(t, "huge", q, 0)); diff != "" {
			t.Errorf("%.20q: %.500s", text, diff)
		}
	}
}

// A query goes to the parts that have it, and not to all.
func TestPartsAreFew(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about one goroutine, and the race detector takes ten times as long")
	}
	random := rand.New(rand.NewPCG(4, 4))
	db := opened(t, t.TempDir())
	var list []Message
	for i := range 1500 {
		text := prose(random, 1200)
		if i == 700 {
			text += " the Needle_Count of src/hay/stack.go 登录错误 "
		}
		list = append(list, said(i+1, text))
	}
	kept(t, db, "long", list)
	all := db.count(t, "SELECT count(*) FROM part")
	s, err := db.Snapshot(context.Background())
	fixture.NoError(t, err)
	defer s.Close()
	for _, text := range []string{"needle", "eedl", "needle_count", "edle_cou", "src/hay/stack.go", "hay/st", "登录", "错", `"the needle_count of"`, "of src/hay", "needle hay"} {
		q, err := Parse(text)
		fixture.NoError(t, err)
		parts, err := s.Parts(context.Background(), q)
		fixture.NoError(t, err)
		n := 0
		for _, p := range parts {
			n += len(p)
		}
		if n == 0 || n > 1+all/10 {
			t.Errorf("%q: %d of %d parts are read for one hit", text, n, all)
		}
	}
}

func TestUsedAndTouched(t *testing.T) {
	db := opened(t, t.TempDir())
	list := []Message{
		UI([]byte(`{"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\",\"path\":\"src/Garden/fence.ts\"}"}`), 1),
		API([]byte(`{"role":"assistant","content":[{"type":"tool_use","name":"write_to_file","input":{"path":"docs/a b.md"}}]}`), 2),
		API([]byte("{\"role\":\"assistant\",\"content\":\"read it\\n<search_files>\\n<path>lib</path>\\n</search_files>\"}"), 3),
		UI([]byte(`{"type":"say","say":"text","text":"please read_file and execute_command"}`), 4),
		UI([]byte(`{"type":"ask","ask":"command","text":"make"}`), 5),
	}
	for i := range list {
		list[i].Place = i
	}
	kept(t, db, "a", list)
	for _, c := range []struct {
		q    Query
		want []int
	}{
		{Used("read_file"), []int{1}}, {Used("readFile"), []int{1}}, {Used("READ-FILE"), []int{1}}, {Used("write_to_file"), []int{2}},
		{Used("search_files"), []int{3}}, {Used("execute_command"), []int{5}}, {Used("file"), nil}, {Used("write"), nil},
		{Touched("garden/FENCE"), []int{1}}, {Touched("a b.md"), []int{2}}, {Touched("lib"), []int{3}}, {Touched("please"), nil},
	} {
		var got, looked []int
		for _, h := range db.hits(t, "a", c.q, 0) {
			got = append(got, h.Number)
		}
		for _, h := range naive(c.q, list) {
			looked = append(looked, h.Number)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q: got %s, want diff = \"\"", c.q.phrase, diff)
		}
		if diff := cmp.Diff(c.want, looked); diff != "" {
			t.Errorf("%q, looking: %s", c.q.phrase, diff)
		}
	}
	q, err := Parse("readfile")
	fixture.NoError(t, err)
	if hits := db.hits(t, "a", q, 0); len(hits) != 1 || hits[0].Number != 1 {
		t.Errorf("names that are kept for filters are found as text: %+v", hits)
	}
}
