package search

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
)

// Whatever happens to the tasks and to the catalogue, a search gives what one without
// a catalogue gives, whole and in pages.
func TestSearchAgreesWithReadingAll(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		agreesWithReadingAll(t, 6, func(t *testing.T, root, storage string) (with *store.Store, spoil func(*rand.Rand)) {
			cache := t.TempDir()
			return searching(t, root, cache, storage), func(r *rand.Rand) {
				storetest.Check(t, os.WriteFile(filepath.Join(cache, catalog.Name), []byte(strings.Repeat("x", r.IntN(9000))), 0o600))
			}
		})
	})
	t.Run("database", func(t *testing.T) {
		agreesWithReadingAll(t, 3, func(t *testing.T, root, storage string) (with *store.Store, spoil func(*rand.Rand)) {
			db, shared := inDatabase(t)
			with = storetest.OpenWith(t, store.Options{Root: root, Sources: []string{storage}, Catalog: shared})
			with.TrustTimesAfter(calmHere)
			return with, func(r *rand.Rand) {
				sql := []string{
					"TRUNCATE roost.catalog_turns", "TRUNCATE roost.catalog_sources", "TRUNCATE roost.catalog_rows", "TRUNCATE roost.catalog_tasks",
					"TRUNCATE roost.catalog_parts", "TRUNCATE roost.catalog_words", "UPDATE roost.catalog_parts SET body = ''",
					"TRUNCATE roost.catalog_words RESTART IDENTITY", "UPDATE roost.catalog_words SET words = 'x'", "UPDATE roost.catalog_rows SET body = 'x'",
					"UPDATE roost.catalog_rows SET summary = 'x'", "UPDATE roost.catalog_sources SET body = 'x'",
				}[r.IntN(12)]
				_, err := db.Exec(t.Context(), sql)
				storetest.Check(t, err)
			}
		})
	})
}

func agreesWithReadingAll(t *testing.T, seeds uint64, open func(t *testing.T, root, storage string) (with *store.Store, spoil func(*rand.Rand))) {
	t.Helper()
	said := []string{"red fence", "the red hedge", "登录 错误 red", "handle_click(x)", "src/red/fence.go", strings.Repeat("red ", 3000), "\\ud83d\\ude42 red", "nothing"}
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		storage, root := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline"), t.TempDir()
		without := searching(t, root, "", storage)
		with, spoil := open(t, root, storage)
		change := func() {
			dir := filepath.Join(storage, "tasks", fmt.Sprint("task", r.IntN(8)))
			var ui, api []string
			for i := range r.IntN(6) {
				text := said[r.IntN(len(said))]
				ui = append(ui, fmt.Sprintf(`{"ts":%d,"type":"say","say":"text","text":"%s"}`, storetest.TS0+r.IntN(50), text))
				api = append(api, fmt.Sprintf(`{"role":"user","content":"%s","ts":%d}`, said[r.IntN(len(said))], storetest.TS0+i*10))
			}
			switch r.IntN(6) {
			case 0:
				storetest.Check(t, os.RemoveAll(dir))
			case 1:
				storetest.Write(t, dir, roofmt.UIName, "["+strings.Join(ui, ",")+`,{"torn`)
			case 2:
				spoil(r)
			default:
				storetest.Write(t, dir, roofmt.UIName, storetest.Array(ui...))
				storetest.Write(t, dir, roofmt.APIName, storetest.Array(api...))
			}
			if r.IntN(2) == 0 {
				aged(t, storage)
			}
		}
		for range 12 {
			for range 1 + r.IntN(5) {
				change()
			}
			text := []string{"red", `"red fence"`, "ed", "录 错", "click(", "🙂", "d f"}[r.IntN(7)]
			sort, each := []string{"", api.SortBest}[r.IntN(2)], r.IntN(3)
			all := api.SearchQuery{Text: text, Each: each, Filter: api.TaskFilter{Sort: sort}}
			want, known := search1(t, without, all), search1(t, with, all)
			want.Read, want.Notes, known.Read, known.Notes = 0, nil, 0, nil
			if diff := cmp.Diff(want, known, cmp.AllowUnexported(api.SourceState{})); diff != "" {
				t.Fatalf("seed %d, %q %s: -read +catalogue\n%.2000s", seed, text, sort, diff)
			}
			limit := 1 + r.IntN(4)
			paged := all
			paged.Filter.Limit = limit
			if paged.Each > 0 && r.IntN(2) == 0 { // a page has the hits of a task that it begins
				paged.Filter.Limit, paged.Tasks = 0, limit
			}
			for name, s := range map[string]*store.Store{"read": without, "catalogue": with} {
				if diff := cmp.Diff(want.Items, inPages(t, s, paged)); diff != "" {
					t.Fatalf("seed %d, %q %s in pages of %d, %s: -whole +pages\n%.2000s", seed, text, sort, limit, name, diff)
				}
			}
		}
	}
}

// inPages follows cursors to the end.
func inPages(t testing.TB, s *store.Store, q api.SearchQuery) (all []api.Hit) {
	t.Helper()
	for {
		r := search1(t, s, q)
		if all = append(all, r.Items...); r.NextCursor == "" {
			return all
		}
		if q.Filter.Limit > 0 && len(r.Items) != q.Filter.Limit || r.NextCursor == q.Filter.Cursor {
			t.Fatalf("a page of %d that goes on at %s", len(r.Items), r.NextCursor)
		}
		q.Filter.Cursor = r.NextCursor
	}
}

// A task that comes between two pages shifts nothing of what follows.
func TestPagesStandWhileTasksCome(t *testing.T) {
	storage := garden(t)
	aged(t, storage)
	s := searching(t, t.TempDir(), t.TempDir(), storage)
	all := places(search1(t, s, api.SearchQuery{Text: "a"}))
	first := search1(t, s, api.SearchQuery{Text: "a", Filter: api.TaskFilter{Limit: 3}})
	newer := storetest.Array(storetest.UIRow(9000, "a"), storetest.UIRow(9001, "a a"))
	storetest.Write(t, filepath.Join(storage, "tasks", "newer"), roofmt.UIName, newer)
	rest := search1(t, s, api.SearchQuery{Text: "a", Filter: api.TaskFilter{Cursor: first.NextCursor}})
	if diff := cmp.Diff(all, append(places(first), places(rest)...)); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"3", "1.2.3", "x.0123456789ab.1", "1.0123456789ab.-1", "1.0123456789ab", "1.0123456789zz.1"} {
		if _, err := Run(context.Background(), s, api.SearchQuery{Text: "a", Filter: api.TaskFilter{Cursor: bad}}); err == nil || ValidCursor(bad, "") {
			t.Errorf("cursor %q was taken", bad)
		}
	}
}

// Tasks are chosen by what they used, touched, cost and who made them, read or known.
func TestSearchByWhatTasksDid(t *testing.T) {
	storage := garden(t)
	dir := filepath.Join(storage, "tasks", "paid")
	request := fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":"{\"tokensIn\":5,\"cost\":0.25}"}`, storetest.TS0+90)
	row := fmt.Sprintf(`{"ts":%d,"type":"ask","ask":"tool","text":"{\"tool\":\"appliedDiff\",\"path\":\"lib/pond.go\"}"}`, storetest.TS0+91)
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(89, "dig a pond again"), request, row))
	aged(t, storage)
	s := searching(t, t.TempDir(), t.TempDir(), storage)
	cost := func(f float64) *money.USD { usd := money.FromFloat(f); return &usd }
	for _, round := range []string{"read", "known"} {
		for _, c := range []struct {
			name string
			q    api.SearchQuery
			want []string
		}{
			{"no filter", api.SearchQuery{Text: "pond", In: []string{"ui"}}, []string{"paid ui#1", "paid ui#3", "task0 ui#1"}},
			{"tool", api.SearchQuery{Text: "pond", Tool: "readFile", In: []string{"ui"}}, []string{"task0 ui#1"}},
			{"tool of rows", api.SearchQuery{Text: "pond", Tool: "applied_diff", In: []string{"ui"}}, []string{"paid ui#1", "paid ui#3"}},
			{"part of a tool's name", api.SearchQuery{Text: "pond", Tool: "read"}, []string{}},
			{"file", api.SearchQuery{Text: "pond", File: "PLANS/0", In: []string{"ui"}}, []string{"task0 ui#1"}},
			{"file that nobody touched", api.SearchQuery{Text: "pond", File: "garden"}, []string{}},
			{"file and tool of two tasks", api.SearchQuery{Text: "pond", File: "plans", Tool: "applied_diff"}, []string{}},
			{"cost", api.SearchQuery{Text: "pond", In: []string{"ui"}, Filter: api.TaskFilter{MinCost: cost(0.2)}}, []string{"paid ui#1", "paid ui#3"}},
			{"at most", api.SearchQuery{Text: "pond", In: []string{"ui"}, Filter: api.TaskFilter{MinCost: cost(0.01), MaxCost: cost(0.2)}}, []string{}},
			{"model", api.SearchQuery{Text: "pond", Filter: api.TaskFilter{Model: "nobody's"}}, []string{}},
			{"tag", api.SearchQuery{Text: "pond", Filter: api.TaskFilter{Tag: "garden"}}, []string{}},
		} {
			if diff := cmp.Diff(c.want, places(search1(t, s, c.q))); diff != "" {
				t.Errorf("got %s, %s: %s, want diff = \"\"", round, c.name, diff)
			}
		}
	}
}

// A hit's JSON has of its task what says which it is, and no more.
func TestHitJSON(t *testing.T) {
	storage := garden(t)
	hit := search1(t, searching(t, t.TempDir(), "", storage), api.SearchQuery{Text: "pond"}).Items[0]
	raw, err := json.Marshal(hit)
	storetest.Check(t, err)
	want := fmt.Sprintf(`{"task":{"id":"task0","source":%q,"title":"dig a pond","workspace":"/w0","status":"interrupted","updated_at":%q,"ts":%d},`+
		`"history":"ui","number":1,"ts":%d,"snippet":"dig a pond","kind":"say:text",`+
		`"also":[{"history":"api","number":1,"kind":"user"}]}`, hit.Task.Source, *hit.Task.UpdatedAt, hit.Task.TS, hit.TS)
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Error(diff)
	}
	var back api.Hit
	storetest.Check(t, json.Unmarshal(raw, &back))
	if again, err := json.Marshal(back); err != nil || string(again) != want {
		t.Errorf("what was read again: %s, %v", again, err)
	}
}

// What both histories say of one thing stands together, and every message is there.
func TestMessagesInTheOrderOfTheirTimes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline", "tasks", "a")
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(
		storetest.UIRow(1, "u1"),
		storetest.UIRow(5, "u2"),
		`{"type":"say","say":"text","text":"u3"}`,
		storetest.UIRow(9, "u4"),
	))
	storetest.Write(t, dir, roofmt.APIName, storetest.Array(
		storetest.APIRow(1, "user", "a1"),
		`{"role":"assistant","content":"a2"}`,
		storetest.APIRow(6, "user", "a3"),
		storetest.APIRow(7, "assistant", "a4"),
	))
	s := searching(t, t.TempDir(), "", dir)
	refs := storetest.Must[[]store.Ref](t)(s.Refs(context.Background()))
	v, err := s.ReadUnlabelled(context.Background(), refs[0])
	storetest.Check(t, err)
	defer v.Close()
	var got []string
	for m, err := range texts(context.Background(), v.State) {
		storetest.Check(t, err)
		if m.Place != len(got) {
			t.Errorf("place %d of %d", m.Place, len(got))
		}
		got = append(got, m.Pieces[0].Text)
	}
	if diff := cmp.Diff([]string{"u1", "a1", "a2", "u2", "u3", "a3", "a4", "u4"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestSearchAsChild is no test: the process that others limit and kill.
func TestSearchAsChild(t *testing.T) {
	dir := os.Getenv("STORE_SEARCH_DIR")
	if dir == "" {
		t.Skip("only as a child")
	}
	s := searching(t, filepath.Join(dir, "root"), filepath.Join(dir, "cache"), filepath.Join(dir, "rooveterinaryinc.roo-cline"))
	fmt.Println("\nbegun")
	r, err := Run(context.Background(), s, api.SearchQuery{Text: "needle"})
	fmt.Println("\nfound", len(r.Items), len(r.Notes) > 0, err)
}

// large is a folder with a storage whose text makes a catalogue of some megabytes.
func large(t testing.TB) (home, storage string) {
	t.Helper()
	home = t.TempDir()
	storage = filepath.Join(home, "rooveterinaryinc.roo-cline")
	r := rand.New(rand.NewPCG(5, 5))
	for i := range 24 {
		var rows []string
		for j := range 60 {
			noise := make([]byte, 3000)
			for k := range noise {
				noise[k] = "abcdefghijklmnopqrstuvwxyz  0123456789"[r.IntN(38)]
			}
			rows = append(rows, storetest.UIRow(i*100+j, string(noise)))
		}
		rows = append(rows, storetest.UIRow(i*100+99, "the needle"))
		storetest.Write(t, filepath.Join(storage, "tasks", fmt.Sprint("task", i)), roofmt.UIName, storetest.Array(rows...))
	}
	aged(t, storage)
	return home, storage
}

func searchChild(home string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestSearchAsChild$", "-test.v")
	cmd.Env = append(os.Environ(), "STORE_SEARCH_DIR="+home)
	return cmd
}

// Searches that are killed while they fill the catalogue leave one that the next
// search uses, and none of their hits is missing.
func TestSearchAfterKills(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	home, storage := large(t)
	s := searching(t, filepath.Join(home, "root"), filepath.Join(home, "cache"), storage)
	for round := range 5 {
		cmd := searchChild(home)
		out, err := cmd.StdoutPipe()
		storetest.Check(t, err)
		storetest.Check(t, cmd.Start())
		buf := make([]byte, 4096)
		for seen := ""; !strings.Contains(seen, "begun"); {
			n, err := out.Read(buf)
			storetest.Check(t, err)
			seen += string(buf[:n])
		}
		path := filepath.Join(home, "cache", catalog.Name)
		for wait := 0; wait < 1_000_000*round; wait++ { // at other moments, without a clock
			if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > int64(round)<<18 {
				break
			}
		}
		storetest.Check(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		r := search1(t, s, api.SearchQuery{Text: "needle"})
		if len(r.Items) != 24 || len(r.Notes) > 0 {
			t.Errorf("round %d: %d hits, %v", round, len(r.Items), r.Notes)
		}
		if again := search1(t, s, api.SearchQuery{Text: "needle"}); again.Read != 0 {
			t.Errorf("round %d: %d tasks are not kept", round, again.Read)
		}
		storetest.Check(t, os.RemoveAll(filepath.Join(home, "cache")))
	}
}

// Where no file may grow, as on a full disk, a search finds all, says what is wrong,
// and leaves nothing that is in the way later.
func TestSearchWithAFullDisk(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil || testing.Short() {
		t.Skip("needs a shell that limits files")
	}
	home, storage := large(t)
	for _, blocks := range []int{0, 8, 64, 512, 1500} {
		self := searchChild(home)
		cmd := exec.Command(shell, append([]string{"-c", fmt.Sprintf(`trap '' XFSZ; ulimit -f %d; exec "$0" "$@" | cat`, blocks)}, self.Args...)...)
		cmd.Env = self.Env
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "found 24 true <nil>") {
			t.Errorf("%d blocks: %v\n%s", blocks, err, out)
		}
	}
	s := searching(t, filepath.Join(home, "root"), filepath.Join(home, "cache"), storage)
	for _, read := range []bool{true, false} {
		r := search1(t, s, api.SearchQuery{Text: "needle"})
		if len(r.Items) != 24 || !read && r.Read > 0 || slices.ContainsFunc(r.Notes, func(n string) bool { return !strings.Contains(n, "begun anew") }) {
			t.Errorf("with room again: %d hits, %d read, %v", len(r.Items), r.Read, r.Notes)
		}
	}
}
