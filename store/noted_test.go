package store

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
)

// largeList is a list of rows of all lengths, some 20 MB of it, and where each row ends.
func largeList(size int) (text []byte, rows []string, ends []int) {
	random := rand.New(rand.NewPCG(1, 2))
	text = []byte{'['}
	for len(text) < size {
		n := 1 + random.IntN(200)
		if len(rows)%20 == 0 {
			n *= 100 // a file that was read, or an image
		}
		if len(rows) == 700 {
			n = 30_000 // more than is held in memory at once
		}
		row := uiRow(len(rows)+1, strings.Repeat("if x { return \"é\" } // a\\b\n", n))
		if len(rows) > 0 {
			text = append(text, ',')
		}
		text = append(text, row...)
		rows, ends = append(rows, row), append(ends, len(text))
	}
	return append(text, ']'), rows, ends
}

// A list that was cut anywhere gives all rows that are whole, and says that it was cut.
func TestAListThatWasCutAnywhere(t *testing.T) {
	slow(t)
	const cuts = 50
	text, rows, ends := largeList(20 << 20)
	root := t.TempDir()
	s, dir := open(t, root), filepath.Join(root, "tasks", "cut-task")
	fixture.NoError(t, os.MkdirAll(dir, 0o700))
	write(t, dir, roofmt.UIName, string(text))
	random := rand.New(rand.NewPCG(3, 4))
	var at []int
	for range cuts {
		at = append(at, random.IntN(len(text)))
	}
	slices.Sort(at)
	for _, cut := range slices.Backward(at) { // from the end on, so that one file does
		fixture.NoError(t, os.Truncate(filepath.Join(dir, roofmt.UIName), int64(cut)))
		whole, _ := slices.BinarySearch(ends, cut+1)
		v, err := s.Read(context.Background(), fixture.Must[Ref](t)(s.Find(context.Background(), "cut-task")))
		fixture.NoError(t, err)
		ui := v.State.UI()
		if len(ui) != whole || len(v.Summary.Damaged) != 1 && cut > 0 {
			t.Fatalf("cut at %d: %d rows of %d, damaged %+v", cut, len(ui), whole, v.Summary.Damaged)
		}
		for i, m := range ui {
			if m.TS() != int64(ts0+i+1) || m.Kind() != "say:text" {
				t.Fatalf("cut at %d: row %d is %s of %d", cut, i, m.Kind(), m.TS())
			}
		}
		last := ui[max(0, whole-3):]
		raws, err := v.State.Raws(last)
		fixture.NoError(t, err)
		for i, raw := range raws {
			if string(raw) != rows[whole-len(last)+i] {
				t.Fatalf("cut at %d: row %d has other bytes", cut, whole-len(last)+i)
			}
		}
		fixture.NoError(t, v.Close())
	}
}

// Whatever is wrong with a folder, looking at its messages while they are found gives the task that finding them first and reading
// them again gives.
func TestOnePassSaysWhatTwoSay(t *testing.T) {
	slow(t)
	request := `"{\"request\":\"x\\ny\",\"tokensIn\":10,\"tokensOut\":2,\"cost\":0.25}"`
	uiPiece := rapid.Custom(func(t *rapid.T) string {
		i := rapid.IntRange(1, 90).Draw(t, "i")
		return rapid.SampledFrom([]string{
			uiRow(i, "words \"and\" more\n"), fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":%s}`, ts0+i, request),
			fmt.Sprintf(`{"ts":%d,"type":"ask","ask":"tool","text":"{}","partial":true}`, ts0+i), `{"type":7}`, `null`, uiRow(i, strings.Repeat("long ", 60_000)),
		}).Draw(t, "row")
	})
	apiPiece := rapid.Custom(func(t *rapid.T) string {
		i := rapid.IntRange(1, 90).Draw(t, "i")
		return rapid.SampledFrom([]string{
			apiRow(i, "user", "words"), apiRow(i, "assistant", "reply"), `{"role":"assistant","content":"plain"}`, `[]`,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"read_file","input":{"path":"a"}}],"ts":%d}`, i%5, ts0+i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":"b"}],"ts":%d}`, i%5, ts0+i),
		}).Draw(t, "turn")
	})
	rapid.Check(t, func(r *rapid.T) {
		root, err := os.MkdirTemp("", "store-noted-")
		fixture.NoError(t, err)
		defer os.RemoveAll(root)
		dir := filepath.Join(root, "tasks", "odd")
		fixture.NoError(t, os.MkdirAll(dir, 0o700))
		file := func(name string, piece *rapid.Generator[string]) {
			text := array(rapid.SliceOfN(piece, 0, 8).Draw(r, name)...)
			at := rapid.IntRange(0, len(text)).Draw(r, "at")
			switch rapid.SampledFrom([]string{"", "", "cut", "hole", "before", "behind", "twice", "left", "gone"}).Draw(r, "damage") {
			case "cut":
				text = text[:at]
			case "hole":
				n := min(len(text)-at, 40)
				text = text[:at] + strings.Repeat("\x00", n) + text[at+n:]
			case "before":
				text = "\ufeff" + text
			case "behind":
				text += "garbage"
			case "twice":
				text += text
			case "left": // a write was interrupted
				name = fmt.Sprintf(".%s.new_%d_abc.tmp", name, ts0)
			case "gone":
				return
			}
			write(t, dir, name, text)
		}
		file(roofmt.UIName, uiPiece)
		file(roofmt.APIName, apiPiece)
		ctx, ref := context.Background(), Ref{ID: "odd", Dir: dir}
		one, err := roofmt.ReadNoting(ctx, dir, notes)
		fixture.NoError(t, err)
		defer one.Close()
		two, err := roofmt.Read(ctx, dir)
		fixture.NoError(t, err)
		defer two.Close()
		if one.UI.Source != "" && one.UI.Notes == nil || one.API.Source != "" && one.API.Notes == nil {
			r.Fatalf("a file gave no notes: %+v %+v", one.UI, one.API)
		}
		got, want := unadopted(ctx, ref, one), unadopted(ctx, ref, two)
		a, err := got.Snapshot()
		fixture.NoError(t, err)
		b, err := want.Snapshot()
		fixture.NoError(t, err)
		if !bytes.Equal(a, b) {
			r.Fatalf("one pass:\n%q\ntwo:\n%q", a, b)
		}
		if d := cmp.Diff(rows(want), rows(got)); d != "" {
			r.Fatal(d)
		}
	})
}
