package spend_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// prices are what requests cost in files: fractions of micro-dollars that would add up
// to something else if they were rounded one by one, and things that are no price.
var prices = []string{"0", "0.0000004", "0.0000005", "0.1", "0.2", "0.0189", "1.005", "99999.999999", "1e-7", "-0.5", "null", `"0.3"`, "1e400"}

// randomTree puts tasks of an editor and of our own under one store: any of them may be
// another's child, its own, or that of a task that is not there; some were rewound.
func randomTree(t *testing.T, r *rapid.T) *store.Store {
	dir, err := os.MkdirTemp(t.TempDir(), "")
	storetest.Check(t, err)
	storage := filepath.Join(dir, "rooveterinaryinc.roo-cline")
	names := []string{"", "a", "b", "c", "d", "e", "gone"}
	price := rapid.SampledFrom(prices)
	foreign := rapid.IntRange(1, 3).Draw(r, "foreign")
	for _, id := range names[1 : 1+foreign] {
		rows := []string{storetest.UIRow(0, id)}
		calls := []string{storetest.APIRow(0, "user", id)}
		for n := range rapid.IntRange(0, 4).Draw(r, "requests") {
			at := rapid.SampledFrom([]int{1, 2, 24 * 3600 * 1000, 48 * 3600 * 1000}).Draw(r, "at") + n
			rows = append(rows, requestRow(at, price.Draw(r, "price")))
			calls = append(calls, callRow(at, rapid.SliceOfN(rapid.SampledFrom([]string{"read_file", "list_files", "edit"}), 0, 3).Draw(r, "tools")...))
		}
		if rapid.Bool().Draw(r, "condensed") {
			rows = append(rows, fmt.Sprintf(`{"ts":%d,"type":"say","say":"condense_context","contextCondense":{"summary":"s","cost":0.0000016,"prevContextTokens":9,"newContextTokens":1}}`, storetest.TS0+9))
		}
		if rapid.Bool().Draw(r, "rewound by Roo") {
			rows = append(rows, fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_deleted","text":"{\"tokensIn\":5,\"tokensOut\":1,\"cost\":0.25}"}`, storetest.TS0+10))
		}
		at := filepath.Join(rapid.SampledFrom([]string{storage, filepath.Join(dir, "root")}).Draw(r, "at home or away"), "tasks", id)
		storetest.Write(t, at, roofmt.UIName, storetest.Array(rows...))
		storetest.Write(t, at, roofmt.APIName, storetest.Array(calls...))
		storetest.Write(t, at, roofmt.ItemName, fmt.Sprintf(`{"id":%q,"number":1,"ts":%d,"task":%q,"workspace":%q,"parentTaskId":%q}`,
			id, storetest.TS0+5, id, rapid.SampledFrom([]string{"/w", "/v"}).Draw(r, "workspace"), rapid.SampledFrom(names).Draw(r, "parent")))
	}
	s := storetest.Open(t, filepath.Join(dir, "root"), storage)
	for _, id := range names[4 : 4+rapid.IntRange(0, 2).Draw(r, "own")] {
		k, err := s.Create(context.Background(), task.Created{
			Task: id, Title: id, Number: 1, CreatedAt: storetest.TS0, Parent: rapid.SampledFrom(names).Draw(r, "parent"), Settings: task.Settings{Workspace: "/w"},
		})
		storetest.Check(t, err)
		first := k.State().NextMessage()
		for n := range rapid.IntRange(0, 3).Draw(r, "requests") {
			request := k.State().NextMessage()
			storetest.Commit(t, k, task.UI, requestRow(n, "0.5")) // our own rows repeat the ledger
			e := task.UsageChanged{Request: request, Provider: "p", Model: rapid.SampledFrom([]string{"m", "n"}).Draw(r, "model"), Input: 7, Output: 3, CacheRead: 5, CacheWrite: 1}
			if rapid.Bool().Draw(r, "priced") {
				e.CostMicros = new(rapid.Int64Range(0, 3_000_000).Draw(r, "micros"))
			}
			storetest.Check(t, k.Commit(context.Background(), e))
		}
		if k.State().NextMessage() > first && rapid.Bool().Draw(r, "rewound") {
			storetest.Check(t, k.Commit(context.Background(), task.MessageHidden{Messages: []uint64{first}, Reason: "rewind"}))
		}
		storetest.Close(t, k)
	}
	return s
}

// Whatever was spent, in whichever tasks: the list, each task, its requests and every
// grouping say the same, to the micro-dollar and to the token.
func TestEveryScreenSaysTheSame(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := randomTree(t, r)
		list, err := s.List(context.Background(), store.Filter{})
		storetest.Check(t, err)
		var listed api.Usage
		own := map[string]api.Usage{}
		parents := map[string]string{}
		for _, item := range list.Items {
			listed = listed.Plus(item.Usage)
			own[item.Source+" "+item.ID], parents[item.Source+" "+item.ID] = item.Usage, item.Source+" "+item.ParentID
			ref, err := s.Find(context.Background(), item.Source+":"+item.ID)
			storetest.Check(t, err)
			v, err := s.Read(context.Background(), ref)
			storetest.Check(t, err)
			shown, spent := v.Summary.Usage, sumOf(t, v)
			storetest.Check(t, v.Close())
			if d := cmp.Diff(item.Usage, shown); d != "" {
				r.Fatalf("task %s as listed and as shown: %s", item.ID, d)
			}
			if d := cmp.Diff(known(item.Usage), known(spent)); d != "" {
				r.Fatalf("task %s and its requests: %s", item.ID, d)
			}
		}
		for _, by := range api.Groupings {
			got := spending(t, s, by, api.TaskFilter{})
			var sum api.Usage
			for _, g := range got.Items {
				sum = sum.Plus(g.Usage)
				if by == api.ByTask {
					checkWithChildren(r, g, own, parents)
				}
			}
			if d := cmp.Diff(known(listed), known(got.Total.Usage)); d != "" {
				r.Fatalf("the total by %s: %s", by, d)
			}
			if d := cmp.Diff(known(listed), known(sum)); d != "" {
				r.Fatalf("the groups by %s: %s", by, d)
			}
			// Two stretches of time add up to the whole.
			at := int64(storetest.TS0 + rapid.SampledFrom([]int{0, 2, 3, 24 * 3600 * 1000, 72 * 3600 * 1000}).Draw(r, "cut"))
			before, after := spending(t, s, by, api.TaskFilter{Until: at}).Total.Usage, spending(t, s, by, api.TaskFilter{Since: at}).Total.Usage
			if d := cmp.Diff(known(listed), known(before.Plus(after))); d != "" {
				r.Fatalf("by %s, before and after %d: %s", by, at, d)
			}
		}
	})
}

// known is a usage in which nothing and an unknown cost are the same: a total of both is
// nothing that is known.
func known(u api.Usage) [5]int64 {
	return [5]int64{u.TokensIn, u.TokensOut, u.CacheWrites, u.CacheReads, u.Micros()}
}

// checkWithChildren adds up a task and its descendants in another way: by asking each
// task for its ancestors.
func checkWithChildren(r *rapid.T, g api.SpendingGroup, own map[string]api.Usage, parents map[string]string) {
	me := g.Source + " " + g.Key
	var sum api.Usage
	children := 0
	for id := range own {
		seen := []string{}
		for at := id; own[at] != (api.Usage{}) || parents[at] != ""; at = parents[at] {
			if at == me {
				sum = sum.Plus(own[id])
				if id != me || len(seen) > 0 {
					children++
				}
				break
			}
			if slices.Contains(seen, at) {
				break
			}
			seen = append(seen, at)
		}
	}
	if g.WithChildren == nil {
		if children > 0 {
			r.Fatalf("task %s has %d descendants, and no sum with them", g.Key, children)
		}
		return
	}
	if d := cmp.Diff(known(sum), known(*g.WithChildren)); d != "" {
		r.Fatalf("task %s with its descendants: %s", g.Key, d)
	}
}
