package web

import (
	"slices"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
)

func spentOn(key string, micros int64) spent {
	return spent{SpendingGroup: api.SpendingGroup{Key: key, Usage: api.Usage{Cost: new(money.USD(micros))}}, Name: key}
}

// A chart over time has a column for each day, week or month of its stretch, also for one without spending, and the
// weeks and months hold the days that their links name.
func TestChartOverTime(t *testing.T) {
	w := New(Options{Now: func() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }})
	today := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	first := spentOn("2026-03-01", 1_200_000)
	first = w.spentBy(api.ByDay, first.SpendingGroup, time.Time{})
	c := w.overTime([]spent{first, spentOn("2026-02-27", 10)}, api.ByDay, today.AddDate(0, 0, -6), today)
	if len(c.Columns) != 7 || c.What != "Cost" {
		t.Fatalf("got %d columns of %s, want 7 of Cost", len(c.Columns), c.What)
	}
	var heights []int
	for _, one := range c.Columns {
		heights = append(heights, one.Height)
	}
	if want := []int{0, 0, 0, 2, 0, 102, 0}; !slices.Equal(heights, want) {
		t.Errorf("got the heights %v, want %v: the least is seen, and nothing has no bar", heights, want)
	}
	if got, want := c.Columns[5].Link, "/?since=2026-03-01&until=2026-03-02"; got != want {
		t.Errorf("got the link %s, want %s", got, want)
	}
	for by, want := range map[api.Grouping][]string{
		api.ByWeek:  {"2025-W52", "2026-W01", "2026-W10"},
		api.ByMonth: {"2025-12", "2026-01", "2026-03"},
	} {
		c := w.overTime([]spent{spentOn(want[0], 5)}, by, time.Time{}, today)
		if first, second, last := c.Columns[0].Name, c.Columns[1].Name, c.Columns[len(c.Columns)-1].Name; first != want[0] || second != want[1] || last != want[2] {
			t.Errorf("by %s: got the columns %s, %s … %s, want %v", by, first, second, last, want)
		}
	}
	for day := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2031; day = day.AddDate(0, 0, 1) {
		for _, by := range []api.Grouping{api.ByDay, api.ByWeek, api.ByMonth} {
			if from, to, ok := stretchOf(by, keyOf(by, day), time.UTC); !ok || from.After(day) || !to.After(day) {
				t.Fatalf("the %s of %s is from %s to %s", by, day, from, to)
			}
		}
	}
}

// A chart of groups has the largest ones, each with a bar that can be seen.
func TestChartOfGroups(t *testing.T) {
	var groups []spent
	for i := range 25 {
		groups = append(groups, spentOn(itoa(i), int64(i*i*i)))
	}
	c := largest(groups)
	if len(c.Rows) != barsMost || c.Rows[0].Name != "24" || c.Rows[0].Width != "100.000%" {
		t.Errorf("got %d rows, the first %+v", len(c.Rows), c.Rows[0])
	}
	if c := largest([]spent{spentOn("", 0)}); len(c.Rows) != 0 {
		t.Errorf("got %+v, want no bar for nothing", c.Rows)
	}
}
