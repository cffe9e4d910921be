package task_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/task"
)

func micros(n int64) *int64 { return &n }

func TestUsageTotalsAddsUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []task.Event
		want  task.UsageTotals
	}{
		{"nothing", []task.Event{task.TurnStarted{Turn: 1}}, task.UsageTotals{}},
		{"known prices", []task.Event{
			task.UsageChanged{Input: 10, Output: 2, CacheRead: 5, CacheWrite: 7, CostMicros: micros(1)},
			task.UsageChanged{Input: 1, Output: 1, CostMicros: micros(2)},
		}, task.UsageTotals{Requests: 2, Input: 11, Output: 3, CacheRead: 5, CacheWrite: 7, CostMicros: 3}},
		{"free is known", []task.Event{task.UsageChanged{Input: 1, CostMicros: micros(0)}}, task.UsageTotals{Requests: 1, Input: 1}},
		{"one price is unknown", []task.Event{
			task.UsageChanged{Input: 1, CostMicros: micros(4)}, task.UsageChanged{Input: 1}, task.UsageChanged{Input: 1, CostMicros: micros(4)},
		}, task.UsageTotals{Requests: 3, Input: 3, CostMicros: 8, CostUnknown: true}},
		{"a rewind takes nothing back", []task.Event{
			ui(1, say(1, "a")), task.UsageChanged{Request: 1, Input: 3, CostMicros: micros(9)}, hidden("rewind", 1),
		}, task.UsageTotals{Requests: 1, Input: 3, CostMicros: 9}},
		{"what is less than nothing is nothing", []task.Event{
			task.UsageChanged{Input: 5, Output: 5, CostMicros: micros(5)}, task.UsageChanged{Input: -3, Output: -1, CacheRead: -1, CacheWrite: -9, CostMicros: micros(-4)},
		}, task.UsageTotals{Requests: 2, Input: 5, Output: 5, CostMicros: 5}},
		{"more than can be counted", []task.Event{
			task.UsageChanged{Input: math.MaxInt64, CostMicros: micros(math.MaxInt64 - 1)}, task.UsageChanged{Input: 1, CostMicros: micros(7)},
		}, task.UsageTotals{Requests: 2, Input: math.MaxInt64, CostMicros: math.MaxInt64}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := tell(t, c.lines...)
			if d := cmp.Diff(c.want, w.Usage); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.want, w.restored(0).Usage); d != "" {
				t.Errorf("restored: %s", d)
			}
		})
	}
}

// Sums of micro-dollars do not depend on the order, as sums of doubles would.
func TestUsageTotalsOnlyGrowsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lines []task.Event
		for range rapid.IntRange(1, 12).Draw(t, "lines") {
			e := task.UsageChanged{Input: rapid.Int64().Draw(t, "in"), Output: rapid.Int64Range(0, 1000).Draw(t, "out")}
			if rapid.Bool().Draw(t, "known") {
				e.CostMicros = micros(rapid.Int64Range(0, 1<<40).Draw(t, "cost"))
			}
			lines = append(lines, e)
		}
		sum := func(lines []task.Event) task.UsageTotals {
			s := task.New(nil)
			var last task.UsageTotals
			for i, e := range lines {
				if err := s.Apply(encode(t, uint64(i+1), e)); err != nil {
					t.Fatal(err)
				}
				if u := s.Usage; u.Input < last.Input || u.CostMicros < last.CostMicros || u.Requests != last.Requests+1 {
					t.Fatalf("from %+v to %+v", last, u)
				}
				last = s.Usage
			}
			return last
		}
		if d := cmp.Diff(sum(lines), sum(rapid.Permutation(lines).Draw(t, "order"))); d != "" {
			t.Fatal(d)
		}
	})
}

func TestFileRecordsCarryTheNewestDates(t *testing.T) {
	at := func(seq uint64, path, source string) task.Event {
		return task.FileChanged{Path: path, Source: source, Size: int64(seq)}
	}
	w := tell(t, at(1, "a", "read_tool")).then(at(2, "a", "user_edited"), at(2, "./a", "file_mentioned"))
	w.then(at(3, "a", "roo_edited")).then(at(4, "a", "something new"))
	type row struct {
		Path, State      string
		Read, Edit, User int64
	}
	rows := func(s *task.State) (out []row) {
		for _, f := range s.Files {
			out = append(out, row{f.Path, f.State, f.RooRead, f.RooEdit, f.UserEdit})
		}
		return out
	}
	want := []row{
		{"a", "stale", 1001, 0, 0}, {"a", "stale", 1001, 0, 1002}, {"./a", "active", 1002, 0, 0},
		{"a", "stale", 1003, 1003, 1002}, {"a", "active", 1003, 1003, 1002},
	}
	if d := cmp.Diff(want, rows(w.State)); d != "" {
		t.Error(d)
	}
	// A restored state knows the dates of the records that it did not fold.
	s := w.restored(0)
	for _, both := range []*task.State{w.State, s} {
		if err := both.Apply(encode(t, 5, at(5, "a", "read_tool"))); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(w.Files, s.Files); d != "" {
		t.Error(d)
	}
	want[4].State = "stale"
	if d := cmp.Diff(append(want, row{"a", "active", 1005, 1003, 1002}), rows(s)); d != "" {
		t.Error(d)
	}
}

func TestOnePathHasOneActiveRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := task.New(nil)
		paths := map[string]bool{}
		for i := range rapid.IntRange(1, 20).Draw(t, "changes") {
			e := task.FileChanged{Path: rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "path"), Source: rapid.SampledFrom([]string{"read_tool", "user_edited", "roo_edited"}).Draw(t, "source")}
			paths[e.Path] = true
			c := encode(t, uint64(i+1), e)
			c.At = rapid.Int64Range(1, 100).Draw(t, "at") // clocks go back
			if err := s.Apply(c); err != nil {
				t.Fatal(err)
			}
			active := map[string]int{}
			for _, f := range s.Files {
				if f.State == "active" {
					active[f.Path]++
				}
			}
			for p := range paths {
				if active[p] != 1 {
					t.Fatalf("%q has %d active records", p, active[p])
				}
			}
		}
	})
}

func TestMetadataOfNothingAndOfOddNames(t *testing.T) {
	if got := string(task.MetadataJSON(nil)); got != `{"files_in_context":[]}` {
		t.Error(got)
	}
	got := string(task.MetadataJSON([]task.FileRecord{{Path: "a\"\u2028<b>", State: "active", Source: "read_tool", RooRead: 5}}))
	want := "{\"files_in_context\":[{\"path\":\"a\\\"\u2028<b>\",\"record_state\":\"active\",\"record_source\":\"read_tool\",\"roo_read_date\":5,\"roo_edit_date\":null,\"user_edit_date\":null}]}"
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
