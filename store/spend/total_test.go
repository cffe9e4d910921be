package spend_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/spend"
	"github.com/roost-dev/roost/task"
)

// family is a storage with a parent, its child and grandchild, a circle of two and a
// folder that cannot be read as a task.
func family(t *testing.T) (s *store.Store, storage string) {
	storage, _ = storetest.RooStorage(t, "parent")
	for i, c := range []struct{ id, parent, workspace, cost string }{
		{"parent", "", "/w", "0.5"}, {"child", "parent", "/w", "0.0000016"}, {"grandchild", "child", "/v", "2"},
		{"round", "about", "/v", "0.25"}, {"about", "round", "", "0.125"},
	} {
		dir := filepath.Join(storage, "tasks", c.id)
		day := 24 * 3600 * 1000 * i
		storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(day, c.id), requestRow(day+1, c.cost), requestRow(day+2, c.cost)))
		storetest.Write(t, dir, roofmt.APIName, storetest.Array(storetest.APIRow(day, "user", c.id), callRow(day+1, "read_file", "list_files", "read_file"), callRow(day+2)))
		storetest.Write(t, dir, roofmt.ItemName, fmt.Sprintf(`{"id":%q,"number":1,"ts":%d,"task":%q,"workspace":%q,"parentTaskId":%q}`, c.id, storetest.TS0+day+2, c.id, c.workspace, c.parent))
	}
	storetest.Write(t, filepath.Join(storage, "tasks", "torn"), roofmt.UIName, `[{"ts":1,"type":`)
	return storetest.Open(t, filepath.Join(t.TempDir(), "root"), storage), storage
}

func spending(t *testing.T, s *store.Store, by api.Grouping, f api.TaskFilter, zone ...*time.Location) api.Totals {
	t.Helper()
	got, err := spend.Sum(context.Background(), s, by, f, append(zone, time.UTC)[0])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func keys(s api.Totals) (out []string) {
	for _, g := range s.Items {
		out = append(out, fmt.Sprintf("%s %s %d/%d", g.Key, g.Usage.Cost, g.Tasks, g.Requests))
	}
	return out
}

// However it is grouped, it adds up to what the list says, and nothing is written.
func TestEveryGroupingAddsUpToTheList(t *testing.T) {
	s, storage := family(t)
	before := storetest.Tree(t, storage)
	var listed api.Usage
	list, err := s.List(context.Background(), store.Filter{})
	storetest.Check(t, err)
	for _, item := range list.Items {
		listed = listed.Plus(item.Usage)
	}
	for _, by := range api.Groupings {
		got := spending(t, s, by, api.TaskFilter{})
		var sum api.Usage
		for _, g := range got.Items {
			sum = sum.Plus(g.Usage)
		}
		if d := cmp.Diff(listed, sum); d != "" {
			t.Errorf("by %s: %s", by, d)
		}
		if d := cmp.Diff(listed, got.Total.Usage); d != "" || got.Total.Tasks != 5 || got.Total.Requests != 10 {
			t.Errorf("total by %s: %d tasks, %d requests: %s", by, got.Total.Tasks, got.Total.Requests, d)
		}
	}
	if d := cmp.Diff(before, storetest.Tree(t, storage)); d != "" {
		t.Error("adding up changed the storage:", d)
	}
}

func TestGroups(t *testing.T) {
	s, _ := family(t)
	for _, c := range []struct {
		by   api.Grouping
		f    api.TaskFilter
		want []string
	}{
		{api.ByWorkspace, api.TaskFilter{}, []string{"/v 4.50 2/4", "/w 1.000003 2/4", " 0.25 1/2"}},
		{api.ByModel, api.TaskFilter{}, []string{" 5.750003 5/10"}},
		{api.ByDay, api.TaskFilter{}, []string{"2023-11-18 0.25 1/2", "2023-11-17 0.50 1/2", "2023-11-16 4.00 1/2", "2023-11-15 0.000003 1/2", "2023-11-14 1.00 1/2"}},
		// One request calls three tools, one of them twice.
		{api.ByTool, api.TaskFilter{Workspace: "/v"}, []string{" 2.25 2/2", "read_file 1.50 2/2", "list_files 0.75 2/2"}},
		{api.ByTask, api.TaskFilter{Since: storetest.TS0 + 2, Until: storetest.TS0 + 24*3600*1000 + 2}, []string{"parent 0.50 1/1", "child 0.000002 1/1"}},
		{api.ByTask, api.TaskFilter{Source: "nosuch"}, nil},
	} {
		if d := cmp.Diff(c.want, keys(spending(t, s, c.by, c.f))); d != "" {
			t.Errorf("by %s %+v: %s", c.by, c.f, d)
		}
	}
	east := spending(t, s, api.ByDay, api.TaskFilter{Workspace: "/w"}, time.FixedZone("east", 14*3600))
	if d := cmp.Diff([]string{"2023-11-16 0.000003 1/2", "2023-11-15 1.00 1/2"}, keys(east)); d != "" {
		t.Errorf("by day in the east: %s", d)
	}
	if _, err := spend.Sum(context.Background(), s, "colour", api.TaskFilter{}, time.UTC); err == nil {
		t.Error("spending by colour")
	}
}

// A task's descendants are added to it once each, also where they lead in a circle.
func TestSpendingWithChildren(t *testing.T) {
	s, _ := family(t)
	got := map[string]string{}
	for _, g := range spending(t, s, api.ByTask, api.TaskFilter{}).Items {
		got[g.Key] = "-"
		if g.WithChildren != nil {
			got[g.Key] = g.WithChildren.Cost.String()
		}
	}
	want := map[string]string{"parent": "5.000003", "child": "4.000003", "grandchild": "-", "round": "0.75", "about": "0.75"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// What a task of Roost was copied from counts its own requests, as long as it is listed; the copy counts the others.
func TestACopyCountsWhatItsOriginalDoesNot(t *testing.T) {
	for how, copied := range map[string]func(s *store.Store, dir string) *store.Task{
		"continued": func(s *store.Store, dir string) *store.Task { return storetest.Own(t, s, filepath.Base(dir)).Task },
		"imported": func(s *store.Store, dir string) *store.Task {
			ref := s.OwnRef("copy")
			storetest.Check(t, os.CopyFS(ref.Dir, os.DirFS(dir)))
			storetest.Write(t, ref.Dir, store.ImportRecord, fmt.Sprintf(`{"from":%q}`, dir))
			return storetest.Own(t, s, "copy").Task
		},
	} {
		t.Run(how, func(t *testing.T) {
			storage := filepath.Join(t.TempDir(), "saoudrizwan.claude-dev")
			dir := filepath.Join(storage, "tasks", "1730047571772")
			rows := []string{storetest.UIRow(0, "do it"), requestRow(1, "0.5"), requestRow(2, "0.25"), requestRow(2, "0.25")}
			storetest.Write(t, dir, roofmt.UIName, storetest.Array(rows...))
			storetest.Write(t, dir, roofmt.APIName, storetest.Array(storetest.APIRow(0, "user", "do it"), callRow(1, "read_file")))
			s := storetest.Open(t, t.TempDir(), storage)
			k := copied(s, dir)
			request := k.State().NextMessage()
			storetest.Commit(t, k, task.UI, requestRow(3, "0.125"))
			storetest.Check(t, k.CommitSynced(t.Context(), task.UsageChanged{Request: request, Provider: "p", Model: "m", Input: 9, CostMicros: new(int64(125_000))}))
			look := func(when string, total money.USD, tasks ...string) {
				t.Helper()
				if d := cmp.Diff(tasks, keys(spending(t, s, api.ByTask, api.TaskFilter{}))); d != "" {
					t.Errorf("%s: %s", when, d)
				}
				if own, others, err := spend.Since(t.Context(), s, 0, k.Ref.ID); own+others != total || err != nil {
					t.Errorf("%s: got %s + %s, %v, want %s", when, own, others, err, total)
				}
			}
			look("beside the original", 1_125_000, "1730047571772 1.00 1/3", k.Ref.ID+" 0.125 1/1")
			storetest.Write(t, dir, roofmt.UIName, storetest.Array(rows[:2]...))
			look("beside a shorter original", 1_125_000, k.Ref.ID+" 0.625 1/3", "1730047571772 0.50 1/1")
			storetest.Check(t, os.RemoveAll(dir))
			look("alone", 1_125_000, k.Ref.ID+" 1.125 1/4")
			storetest.Close(t, k)
		})
	}
}
