package search

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
)

// A task whose title holds the words comes before a newer one that only mentions them, and one in which the person or
// the model says them before one in which a tool has a part of them.
func TestBestFirst(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	for i, rows := range [][]string{
		{storetest.UIRow(1, "an auto deploy script")},
		{storetest.UIRow(11, "look around"), storetest.UIRow(12, "we deploy on Fridays")},
		{storetest.UIRow(21, "look here"), `{"ts":1700000000022,"type":"ask","ask":"command","text":"redeployment.sh"}`},
		{storetest.UIRow(31, "look there"), storetest.UIRow(32, "redeployments are slow")},
		{storetest.UIRow(41, "redeploy it")},
	} {
		storetest.Write(t, filepath.Join(storage, "tasks", fmt.Sprint("task", i)), roofmt.UIName, storetest.Array(rows...))
	}
	aged(t, storage)
	s := searching(t, t.TempDir(), t.TempDir(), storage)
	for _, round := range []string{"read", "known"} {
		got := places(search1(t, s, api.SearchQuery{Text: "deploy", Filter: api.TaskFilter{Sort: api.SortBest}}))
		want := []string{"task0 ui#1", "task4 ui#1", "task1 ui#2", "task3 ui#2", "task2 ui#2"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("best, %s: -want +got\n%s", round, diff)
		}
		got = places(search1(t, s, api.SearchQuery{Text: "deploy"}))
		if diff := cmp.Diff([]string{"task4 ui#1", "task3 ui#2", "task2 ui#2", "task1 ui#2", "task0 ui#1"}, got); diff != "" {
			t.Errorf("newest, %s: -want +got\n%s", round, diff)
		}
	}
}

// Of each task a page has its best hits; the numbers count all of them, and the next page begins with another task.
func TestSomeHitsOfEachTask(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	for i := range 3 {
		var rows []string
		for j := range 5 + i {
			rows = append(rows, storetest.UIRow(i*100+j, fmt.Sprintf("dig pond number %d of many", j)))
		}
		storetest.Write(t, filepath.Join(storage, "tasks", fmt.Sprint("task", i)), roofmt.UIName, storetest.Array(rows...))
	}
	s := searching(t, t.TempDir(), "", storage)
	q := api.SearchQuery{Text: "pond", Each: 2, Tasks: 2}
	first := search1(t, s, q)
	if diff := cmp.Diff([]string{"task2 ui#1", "task2 ui#2", "task1 ui#1", "task1 ui#2"}, places(first)); diff != "" {
		t.Errorf("first page: -want +got\n%s", diff)
	}
	source := first.Items[0].Task.Source
	if diff := cmp.Diff(map[string]int{source + ":task2": 7, source + ":task1": 6}, first.Hits); diff != "" {
		t.Errorf("hits: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(&api.HitTotal{Tasks: 3, Hits: 18}, first.Total); diff != "" {
		t.Errorf("total: -want +got\n%s", diff)
	}
	q.Filter.Cursor = first.NextCursor
	second := search1(t, s, q)
	if got := strings.Join(places(second), ", "); got != "task0 ui#1, task0 ui#2" || second.NextCursor != "" {
		t.Errorf("second page: got %s and cursor %q, want task0 ui#1, task0 ui#2 and none", got, second.NextCursor)
	}
}

// What both histories hold of one event is one hit: that of the user's history, with its twin. Other messages with the
// same word stay.
func TestTwinsAreOneHit(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	dir := filepath.Join(storage, "tasks", "task")
	ts := func(n int) int { return 1700000000000 + n }
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(
		storetest.UIRow(1, "deploy the shop"),
		fmt.Sprintf(`{"ts":%d,"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\",\"path\":\"shop-deploy/logo.svg\"}"}`, ts(5)),
		storetest.UIRow(9, "I will deploy it now"),
	))
	storetest.Write(t, dir, roofmt.APIName, storetest.Array(
		storetest.APIRow(1, "user", "<task>\\ndeploy the shop\\n</task>"),
		fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"read_file","input":{"path":"shop-deploy/logo.svg"}}],"ts":%d}`, ts(4)),
		storetest.APIRow(6, "user", "[read_file for 'shop-deploy/logo.svg'] Result:\\nsvg"),
		storetest.APIRow(10, "assistant", "what we deploy is another thing"),
	))
	var got []string
	for _, h := range search1(t, searching(t, t.TempDir(), "", storage), api.SearchQuery{Text: "deploy"}).Items {
		line := fmt.Sprintf("%s#%d %s", h.History, h.Number, h.Tool)
		for _, twin := range h.Also {
			line += fmt.Sprintf(" = %s#%d %s", twin.History, twin.Number, twin.Kind)
		}
		got = append(got, line)
	}
	want := []string{"ui#1  = api#1 user", "ui#3 ", "api#4 ", "ui#2 readfile = api#2 tool_use = api#3 user"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
