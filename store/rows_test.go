package store

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/roofmt"
)

// Every folder is a task, whatever the indexes know: of each third the item, the
// index row or both are missing.
func TestAThousandFoldersWithoutTheirIndexes(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	var entries []string
	for i := range 1000 {
		id := fmt.Sprintf("%013d", ts0+i)
		dir := filepath.Join(storage, "tasks", id)
		row := fmt.Sprintf(`{"id":%q,"ts":%d,"task":"task %d","workspace":"/w","tokensIn":1,"tokensOut":1,"totalCost":0}`, id, ts0+i, i)
		write(t, dir, roofmt.APIName, array(`{"role":"user","content":[{"type":"text","text":"<task>\ntask `+fmt.Sprint(i)+`\n</task>"},{"type":"text","text":"<environment_details>x</environment_details>"}]}`))
		if i%3 != 0 && i%3 != 2 {
			write(t, dir, roofmt.ItemName, row)
		}
		if i%3 != 1 && i%3 != 2 {
			entries = append(entries, row)
		}
	}
	write(t, filepath.Join(storage, "tasks"), roofmt.IndexName, `{"version":1,"updatedAt":1,"entries":[`+strings.Join(entries, ",")+`]}`)
	got := listing(t, open(t, t.TempDir(), storage), Filter{TaskFilter: api.TaskFilter{Sort: "oldest"}})
	if len(got.Items) != 1000 || got.Sources[1].Tasks != 1000 || got.Sources[1].State != "readable" {
		t.Fatalf("%d tasks, %+v", len(got.Items), got.Sources)
	}
	for i, item := range got.Items {
		inferred := slices.Contains(item.Inferred, "title") && slices.Contains(item.Inferred, "ts")
		if item.Title != fmt.Sprintf("task %d", i) || item.TS != int64(ts0+i) || inferred != (i%3 == 2) || (item.Workspace != "/w") != (i%3 == 2) {
			t.Fatalf(`%d: got %+v, want item.Title = fmt.Sprintf("task %%d", i) and item.TS = int64(ts0+i) and inferred = (i%%3 == 2) and (item.Workspace != "/w") = (i%%3 == 2)`,
				i, item)
		}
	}
}

// Titles and workspaces of classic Cline's tasks stand in one list, which changes
// while we look.
func TestRowsOfClassicCline(t *testing.T) {
	storage, dir := clineStorage(t, "1776200000000")
	id := filepath.Base(dir)
	s := open(t, t.TempDir(), storage)
	row := func(title string) {
		write(t, filepath.Join(storage, "state"), "taskHistory.json", fmt.Sprintf(`[{"id":%q,"ts":5,"task":%q,"cwdOnTaskInitialization":"/shed"}]`, id, title))
	}
	if got := listing(t, s, Filter{}).Items[0]; got.Workspace != "" || !slices.Contains(got.Inferred, "title") {
		t.Errorf("no list: %+v", got)
	}
	row("mow")
	got := listing(t, s, Filter{}).Items[0]
	if got.Workspace != "/shed" || slices.Contains(got.Inferred, "title") {
		t.Errorf(`got %+v, want got.Workspace = "/shed" and not slices.Contains(got.Inferred, "title")`, got)
	}
	// The fork that it goes on as keeps what the row said.
	o := own(t, s, id)
	if o.Forked == "" || o.Task.State().Settings.Workspace != "/shed" {
		t.Errorf(`got %+v, want o.Forked != "" and o.Task.State().Settings.Workspace = "/shed"`,
			o.Task.State().Settings)
	}
	closeTask(t, o.Task)
	// A list that is cut says nothing wrong, and a task of it is no damaged one.
	write(t, filepath.Join(storage, "state"), "taskHistory.json", `[{"id":"17762`)
	for _, item := range listing(t, s, Filter{TaskFilter: api.TaskFilter{Source: "cline"}}).Items {
		if !strings.Contains(item.Path, storage) {
			continue
		}
		if len(item.Damaged) != 0 || item.Workspace != "" {
			t.Errorf("got %+v, want len(item.Damaged) = 0 and item.Workspace = \"\"", item)
		}
	}
}

// A task with an API history alone has the person's first words as its title.
func TestTitleFromTheAPIHistory(t *testing.T) {
	for _, words := range []string{"<task>dig</task>", `dig\n\n<environment_details>\n# Files`} {
		storage := t.TempDir()
		write(t, filepath.Join(storage, "tasks", "x"), roofmt.APIName, array(
			`{"role":"assistant","content":"hello"}`, `{"role":"user","content":[{"type":"image"},{"type":"text","text":"<environment_details>"},{"type":"text","text":"`+words+`"}],"ts":7}`))
		v := view(t, open(t, t.TempDir(), storage), "x")
		if v.Summary.Title != "dig" || !slices.Contains(v.Summary.Inferred, "title") || v.Summary.TS != 7 {
			t.Errorf(`got %+v, want v.Summary.Title = "dig" and slices.Contains(v.Summary.Inferred, "title") and v.Summary.TS = 7`,
				v.Summary)
		}
	}
}

// Wrong numbers in a file are large numbers, and never negative ones.
func TestSummaryOfHugeNumbers(t *testing.T) {
	storage, dir := rooStorage(t, "huge")
	request := fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":"{\"tokensIn\":1e300,\"cost\":1e300}"}`, ts0+2)
	write(t, dir, roofmt.UIName, array(uiRow(1, "do it"), request))
	sum := view(t, open(t, t.TempDir(), storage), "huge").Summary
	if sum.ContextTokens != math.MaxInt64 || sum.Usage.TokensIn != math.MaxInt64 || sum.Usage.Micros() != math.MaxInt64 {
		t.Errorf("got %+v and a context of %d tokens, want the largest numbers", sum.Usage, sum.ContextTokens)
	}
}
