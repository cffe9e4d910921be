package web

import (
	"context"
	"net/http"
	"net/http/httptest"
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
	w := New(Options{Reader: &spends{}, Now: func() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }})
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
	for tokens, want := range map[int64][]line{0: nil, 1: {{columnsTop, "2"}, {columnsTop + columnsHeight/2, "1"}}} {
		few := []spent{{SpendingGroup: api.SpendingGroup{Key: "2026-03-01", Usage: api.Usage{TokensIn: tokens}}}}
		if c := w.overTime(few, api.ByDay, today, today); !slices.Equal(c.Lines, want) || (len(c.Columns) > 0) != (tokens > 0) {
			t.Errorf("%d tokens: got the lines %v over %d columns, want %v", tokens, c.Lines, len(c.Columns), want)
		}
	}
	for day := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2031; day = day.AddDate(0, 0, 1) {
		for _, by := range []api.Grouping{api.ByDay, api.ByWeek, api.ByMonth} {
			if from, to, ok := stretchOf(by, by.KeyAt(day)); !ok || from.After(day) || !to.After(day) {
				t.Fatalf("the %s of %s is from %s to %s", by, day, from, to)
			}
		}
	}
}

// spends answers with the spend of one day.
type spends struct {
	Reader
	asked api.TaskFilter
}

func (r *spends) Spending(_ context.Context, _ api.Grouping, f api.TaskFilter) (api.Totals, error) {
	r.asked = f
	return api.Totals{Items: []api.SpendingGroup{spentOn("2026-09-05", 5).SpendingGroup}}, nil
}

// Where the clocks go forward at midnight, a day begins at one o'clock. It has one column, as every day.
func TestUsageOfTheDayWithoutAMidnight(t *testing.T) {
	zone, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Skip(err)
	}
	reader := &spends{}
	w := New(Options{Reader: reader, Now: func() time.Time { return time.Date(2026, 9, 8, 12, 0, 0, 0, zone) }})
	data, err := w.spending(&asked{Request: httptest.NewRequest(http.MethodGet, "/usage?days=7", nil)})
	if err != nil {
		t.Fatal(err)
	}
	chart := data.Chart
	var links []string
	for _, c := range chart.Columns {
		links = append(links, c.Link)
	}
	want := []string{"/?since=2026-09-02&until=2026-09-03", "/?since=2026-09-03&until=2026-09-04", "/?since=2026-09-04&until=2026-09-05",
		"/?since=2026-09-05&until=2026-09-06", "/?since=2026-09-06&until=2026-09-07", "/?since=2026-09-07&until=2026-09-08",
		"/?since=2026-09-08&until=2026-09-09"}
	if !slices.Equal(links, want) {
		t.Errorf("got %d columns that lead to %v, want %v", len(links), links[:min(len(links), 9)], want)
	}
	if got, want := reader.asked.Since, time.Date(2026, 9, 2, 0, 0, 0, 0, zone).UnixMilli(); got != want {
		t.Errorf("asked for the spend since %d, want %d: midnight where the server is", got, want)
	}
}

// The title of a chart names the period.
func TestTitleOfTheChart(t *testing.T) {
	w := New(Options{Reader: &spends{}})
	for query, want := range map[string]string{"": "Cost by day, the last 30 days", "?days=365&by=model": "Cost by model, the last year",
		"?days=0&by=tool": "Cost by tool, all time"} {
		data, err := w.spending(&asked{Request: httptest.NewRequest(http.MethodGet, "/usage"+query, nil)})
		if err != nil {
			t.Fatal(err)
		}
		if got := data.Chart.Title; got != want {
			t.Errorf("/usage%s: got the title %q, want %q", query, got, want)
		}
	}
}

// The oldest prompts of a long task are not listed, and its turns keep their numbers.
func TestTurnsBehindPromptsThatAreNotListed(t *testing.T) {
	d := &changesData{Checkpoints: []api.Checkpoint{{Number: 1, Row: 2}, {Number: 2, Row: 12}, {Number: 3, Row: 22}}}
	var names []string
	for _, p := range turnsOf(d, api.Prompts{Items: []api.Prompt{{Number: 10}, {Number: 20}}, Total: 5}) {
		names = append(names, p.Name)
	}
	if want := []string{"Before the prompts that are listed", "Turn 4", "Turn 5", "Since then"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
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
