package catalogtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

func testHitsAreThoseOfEveryMessage(t *testing.T, place Backend) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	ctx := context.Background()
	db := place.Open(t)
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		key := fmt.Sprint("task", n)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		long := make([]string, 6)
		for i := range long {
			long[i] = prose(random, 300+random.IntN(20_000))
		}
		var list []catalog.Message
		for i := range rapid.IntRange(1, 40).Draw(r, "messages") {
			m := catalog.Message{History: []string{catalog.HistoryUI, catalog.HistoryAPI}[random.IntN(2)], Number: 1 + i/2, Place: i, TS: int64(i)}
			for range random.IntN(4) {
				text := prose(random, 1+random.IntN(200))
				switch random.IntN(4) {
				case 0:
					text = long[random.IntN(len(long))]
				case 1:
					text = []string{"Needle in the hay", "needles", "a needle_x", "登录 ЁЖ ё", "straße needle hay", "e\u0301 é 🙂👨‍👩‍👧"}[random.IntN(6)]
				}
				m.Pieces = append(m.Pieces, catalog.Piece{Class: []catalog.Class{catalog.Words, catalog.Tool, catalog.Path, catalog.Called}[random.IntN(4)], Kind: fmt.Sprint("kind", random.IntN(5)), Text: text})
			}
			list = append(list, m)
		}
		kept(t, db, key, list)
		looking := begin(t, db)
		defer looking.Close()
		for _, text := range []string{"needle", `"needle in"`, "hay needle", "登", "ё", "🙂", "\u0301", "É", "s", strings.Fields(long[0])[0], long[1][100:180], `"` + long[2][:200] + `"`} {
			for _, in := range [][]string{nil, {"tool"}, {"path", "ui"}} {
				q, err := catalog.Parse(text, in...)
				fixture.NoError(t, err)
				want := naive(q, list)
				parts, err := looking.Parts(ctx, q)
				fixture.NoError(t, err)
				for _, most := range []int{0, 1, 7} {
					part := want
					if most > 0 {
						part = want[:min(most, len(want))]
					}
					got, err := looking.Hits(ctx, parts[looking.tasks[key].ID], q, most)
					fixture.NoError(t, err)
					if diff := cmp.Diff(part, got); diff != "" {
						r.Fatalf("%.40q in %v, the first %d: -all +catalogue\n%.1500s", text, in, most, diff)
					}
				}
			}
		}
		fixture.NoError(t, db.Drop(ctx, []string{key}))
	})
}

func testHugeAndHostileTexts(t *testing.T, place Backend) {
	random := rand.New(rand.NewPCG(9, 9))
	size := 6 << 20
	if testing.Short() {
		size = 512 << 10 // the race detector takes ten times as long for each byte
	}
	noise := make([]byte, size)
	for i := range noise {
		noise[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/"[random.IntN(64)]
	}
	bytes := make([]byte, size/13)
	for i := range bytes {
		bytes[i] = byte(random.IntN(256))
	}
	list := []catalog.Message{
		said(1, "before"), said(2, string(noise)), said(3, string(bytes)), said(4, strings.Repeat("登", size/13)),
		said(5, strings.Repeat("e\u0301", size/52)), said(6, "behind"), said(7, "\xed\xa0\x80 half of a pair"),
	}
	db := place.Open(t)
	kept(t, db, "huge", list)
	for _, text := range []string{"before", "behind", string(noise[size/2 : size/2+20]), string(noise[size/3*2 : size/3*2+3000]), "登登", "e\u0301e", "half", "\ufffd"} {
		q, err := catalog.Parse(text)
		fixture.NoError(t, err)
		want := naive(q, list)
		if len(want) == 0 {
			t.Errorf("%.20q is in no message", text)
		}
		if diff := cmp.Diff(want, hits(t, db, "huge", q, 0)); diff != "" {
			t.Errorf("%.20q: %.500s", text, diff)
		}
	}
}

func testPartsAreFew(t *testing.T, place Backend) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	random := rand.New(rand.NewPCG(4, 4))
	db := place.Open(t)
	var list []catalog.Message
	for i := range 1500 {
		text := prose(random, 1200)
		if i == 700 {
			text += " the Needle_Count of src/hay/stack.go 登录错误 "
		}
		list = append(list, said(i+1, text))
	}
	kept(t, db, "long", list)
	all := len(list) * 1200 >> 15
	s, err := db.Snapshot(context.Background())
	fixture.NoError(t, err)
	defer s.Close()
	for _, text := range []string{"needle", "eedl", "needle_count", "edle_cou", "src/hay/stack.go", "hay/st", "登录", "错", `"the needle_count of"`, "of src/hay", "needle hay"} {
		q, err := catalog.Parse(text)
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

func testUsedAndTouched(t *testing.T, place Backend) {
	db := place.Open(t)
	list := []catalog.Message{
		catalog.UI([]byte(`{"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\",\"path\":\"src/Garden/fence.ts\"}"}`), 1),
		catalog.API([]byte(`{"role":"assistant","content":[{"type":"tool_use","name":"write_to_file","input":{"path":"docs/a b.md"}}]}`), 2),
		catalog.API([]byte("{\"role\":\"assistant\",\"content\":\"read it\\n<search_files>\\n<path>lib</path>\\n</search_files>\"}"), 3),
		catalog.UI([]byte(`{"type":"say","say":"text","text":"please read_file and execute_command"}`), 4),
		catalog.UI([]byte(`{"type":"ask","ask":"command","text":"make"}`), 5),
	}
	for i := range list {
		list[i].Place = i
	}
	kept(t, db, "a", list)
	for _, c := range []struct {
		q    catalog.Query
		want []int
	}{
		{catalog.Used("read_file"), []int{1}}, {catalog.Used("readFile"), []int{1}}, {catalog.Used("READ-FILE"), []int{1}}, {catalog.Used("write_to_file"), []int{2}},
		{catalog.Used("search_files"), []int{3}}, {catalog.Used("execute_command"), []int{5}}, {catalog.Used("file"), nil}, {catalog.Used("_"), nil}, {catalog.Used("write"), nil},
		{catalog.Touched("garden/FENCE"), []int{1}}, {catalog.Touched("a b.md"), []int{2}}, {catalog.Touched("lib"), []int{3}}, {catalog.Touched("please"), nil},
	} {
		var got, looked []int
		for _, h := range hits(t, db, "a", c.q, 0) {
			got = append(got, h.Number)
		}
		for _, h := range naive(c.q, list) {
			looked = append(looked, h.Number)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v: got %s, want diff = \"\"", c.want, diff)
		}
		if diff := cmp.Diff(c.want, looked); diff != "" {
			t.Errorf("%v, looking: %s", c.want, diff)
		}
	}
	q, err := catalog.Parse("readfile")
	fixture.NoError(t, err)
	if got := hits(t, db, "a", q, 0); len(got) != 1 || got[0].Number != 1 {
		t.Errorf("names that are kept for filters are found as text: %+v", got)
	}
}
