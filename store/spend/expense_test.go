package spend

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/cost"
	"github.com/roost-dev/roost/task"
)

// requestRow is a request as Roo shows it.
func requestRow(i int, cost string) string {
	return fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":"{\"tokensIn\":%d,\"tokensOut\":1,\"cacheReads\":2,\"cost\":%s}"}`, storetest.TS0+i, 10*i, cost)
}

func callRow(i int, names ...string) string {
	var blocks []string
	for n, name := range names {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":"c%d_%d","name":%q,"input":{}}`, i, n, name))
	}
	return fmt.Sprintf(`{"role":"assistant","content":[%s],"ts":%d}`, strings.Join(blocks, ","), storetest.TS0+i)
}

func dear(micros int64) *int64 { return &micros }

func expenses(t *testing.T, v *store.View) []Expense {
	t.Helper()
	list, err := Expenses(context.Background(), v)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func total(list []Expense) (sum api.Usage) {
	for _, e := range list {
		sum = sum.Plus(e.Usage)
	}
	return sum
}

// Doubles that are rounded one by one would add up to something else than their sum.
func TestExpensesOfAForeignTaskAddUp(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "spent")
	cents := "0.0000004"
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(0, "do it"), requestRow(1, cents), requestRow(2, cents), requestRow(3, cents), requestRow(4, "0"),
		`{"ts":`+fmt.Sprint(storetest.TS0+5)+`,"type":"say","say":"api_req_started","text":"{}"}`))
	storetest.Write(t, dir, roofmt.APIName, storetest.Array(storetest.APIRow(0, "user", "do it"), callRow(2, "read_file", "read_file"), callRow(3, "execute_command")))
	before := storetest.Tree(t, storage)
	v := storetest.View(t, storetest.Open(t, filepath.Join(t.TempDir(), "root"), storage), "spent")
	list := expenses(t, v)
	if d := cmp.Diff(v.Summary.Usage, total(list)); d != "" {
		t.Error(d)
	}
	if got := v.Summary.Usage.Cost.String(); got != "0.000001" {
		t.Errorf("three times %s is %s", cents, got)
	}
	var tools [][]string
	for _, e := range list {
		tools = append(tools, e.Tools)
	}
	if d := cmp.Diff([][]string{nil, {"read_file", "read_file"}, {"execute_command"}, nil}, tools); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(before, storetest.Tree(t, storage)); d != "" {
		t.Error("looking changed the storage:", d)
	}
}

// Before native tool calls, only the person's rows say which tool it was.
func TestToolsOfTasksWithoutCalls(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "xml")
	row := func(i int, kind, text string) string {
		typ, name, _ := strings.Cut(kind, ":")
		return fmt.Sprintf(`{"ts":%d,"type":%q,%q:%q,"text":%q}`, storetest.TS0+i, typ, typ, name, text)
	}
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(0, "do it"), requestRow(1, "1"), row(2, "ask:tool", `{"tool":"readFile"}`), requestRow(3, "1"), row(4, "ask:command", "ls"),
		row(5, "say:command_output", "a"), requestRow(6, "1"), row(7, "ask:tool", `{"tool":"novel"}`), row(8, "ask:tool", `no JSON`), row(9, "say:completion_result", "ok")))
	v := storetest.View(t, storetest.Open(t, filepath.Join(t.TempDir(), "root"), storage), "xml")
	var tools [][]string
	for _, e := range expenses(t, v) {
		tools = append(tools, e.Tools)
	}
	if d := cmp.Diff([][]string{{"read_file"}, {"execute_command"}, {"novel", "attempt_completion"}}, tools); d != "" {
		t.Error(d)
	}
}

// A task that Roo began and Roost went on with: Roo's rows and our ledger, each
// once; and a rewind takes nothing back.
func TestWhatWasSpentStaysSpentAfterARewind(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "both")
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(0, "do it"), requestRow(1, "1.5")))
	storetest.Write(t, dir, roofmt.APIName, storetest.Array(storetest.APIRow(0, "user", "do it"), storetest.APIRow(1, "assistant", "done")))
	s := storetest.Open(t, filepath.Join(t.TempDir(), "root"), storage)
	k := storetest.Own(t, s, "both").Task
	first := k.State().NextMessage()
	storetest.Commit(t, k, task.UI, requestRow(7, "0.25"))
	storetest.Check(t, k.Commit(context.Background(), task.UsageChanged{Request: first, Provider: "p", Model: "m", Input: 70, Output: 3, CacheRead: 5, CostMicros: dear(250_000)}))
	want := "1.75"
	looks := func(when string) {
		t.Helper()
		v := storetest.View(t, s, "both")
		if got := v.Summary.Usage.Cost.String(); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
		list := expenses(t, v)
		if d := cmp.Diff(v.Summary.Usage, total(list)); d != "" || len(list) != 2 {
			t.Errorf("%s: %d requests: %s", when, len(list), d)
		}
		if last := list[len(list)-1]; last.Model != "m" || last.At != storetest.TS0+7 {
			t.Errorf("%s: got %+v, want last.Model = \"m\" and last.At = storetest.TS0+7", when, last)
		}
	}
	storetest.Check(t, k.Barrier(context.Background()))
	looks("continued")
	var all []uint64
	for _, m := range k.State().UI() {
		all = append(all, m.ID)
	}
	storetest.Check(t, k.Commit(context.Background(), task.MessageHidden{Messages: all[1:], Reason: "rewind"}))
	storetest.Check(t, k.Barrier(context.Background()))
	looks("rewound")
	storetest.Close(t, k)
	looks("closed")
}

// file is the bytes of one foreign file.
type file string

func (f file) Range(_ string, off, n int64) ([]byte, error) { return []byte(f[off : off+n]), nil }

// spentState is the state of a journal in which another program wrote rows and Roost sent requests.
func spentState(t fatal, rows []string, ledger []task.UsageChanged) *task.State {
	var all string
	e := task.ForeignImported{History: task.UI, Blob: "f"}
	for _, row := range rows {
		e.Rows = append(e.Rows, task.ForeignRow{Off: int64(len(all)), Len: int64(len(row))})
		all += row
	}
	s := task.New(file(all))
	events := []task.Event{e}
	for _, line := range ledger {
		events = append(events, line)
	}
	for i, e := range events {
		raw, err := task.Encode(e)
		if err == nil {
			err = s.Apply(journal.Commit{Seq: uint64(i + 1), Events: []journal.Event{raw}})
		}
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	return s
}

// Whatever the log holds, the expenses add up to the summary.
func TestExpensesAddUpProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ledger []task.UsageChanged
		for range rapid.IntRange(0, 6).Draw(t, "lines") {
			e := task.UsageChanged{Input: rapid.Int64Range(-5, 1<<40).Draw(t, "in"), Output: rapid.Int64Range(0, 99).Draw(t, "out"), CacheRead: rapid.Int64Range(0, 9).Draw(t, "read")}
			if rapid.Bool().Draw(t, "priced") {
				e.CostMicros = dear(rapid.Int64Range(0, 1<<40).Draw(t, "cost"))
			}
			ledger = append(ledger, e)
		}
		rows := []string{storetest.UIRow(0, "x")}
		for i := range rapid.IntRange(0, 8).Draw(t, "rows") {
			rows = append(rows, requestRow(i+1, rapid.SampledFrom([]string{"0.1", "0.2", "1e-7", "-3", "1e300", "0.0000005", `\"x\"`, "123456.7890125"}).Draw(t, "cost")))
		}
		v := &store.View{State: spentState(t, rows, ledger)}
		v.Summary = api.Summary{TS: storetest.TS0, Usage: cost.TallyOf(v.State).Usage()}
		list, err := foreignExpenses(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range ledger {
			list = append(list, expense(v, e, storetest.TS0))
		}
		if d := cmp.Diff(v.Summary.Usage, total(list)); d != "" && !(len(list) == 0 && !v.Summary.Usage.NonZero()) {
			t.Fatal(d)
		}
		n := rapid.IntRange(1, 7).Draw(t, "parts")
		var parts api.Usage
		for i := range n {
			parts = parts.Plus(v.Summary.Usage.Share(i, n))
		}
		if d := cmp.Diff(v.Summary.Usage, parts); d != "" {
			t.Fatalf("in %d parts: %s", n, d)
		}
	})
}

type fatal interface{ Fatalf(string, ...any) }

// What a request spent is its model's, and its text names the model.
func TestARequestNamesItsModel(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "a1")
	row := func(ts int, model string) string {
		text := fmt.Sprintf("<environment_details>\n# Current Mode\n<slug>code</slug>\n<model>%s</model>\n</environment_details>", model)
		inner := fmt.Sprintf(`{"request":%q,"tokensIn":10,"tokensOut":1,"cost":0.5}`, text)
		if model == "" {
			inner = `{"request":"no details","tokensIn":10,"tokensOut":1,"cost":0.5}`
		}
		return fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":%q}`, storetest.TS0+ts, inner)
	}
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(1, "paint"), row(2, "m-1"), row(3, "m-2"), row(4, "")))
	v := storetest.View(t, storetest.Open(t, filepath.Join(t.TempDir(), "root"), storage), "a1")
	got := map[string]string{}
	for _, e := range expenses(t, v) {
		got[e.Model] += e.Usage.Cost.String() + " "
	}
	if d := cmp.Diff(map[string]string{"m-1": "0.50 ", "m-2": "0.50 0.50 "}, got); d != "" {
		t.Error(d)
	}
}
