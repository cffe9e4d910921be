package web

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/view"
)

// usageData is the data of the page that shows the spend.
type usageData struct {
	Spans  []span
	Kinds  []span
	Total  api.SpendingGroup
	Chart  chart
	Groups []spent
	Left   int // groups that are left out
	By     api.Grouping
	Column string // the name of the first column
}

type span struct {
	Name, Link string
	Here       bool
}

// spent is a row of the table.
type spent struct {
	api.SpendingGroup
	Name string
	Link string
}

// groupsMost bounds the rows of the table, barsMost the bars of a chart that is not over time.
const (
	groupsMost = 60
	barsMost   = 10
)

// spans are the periods that the page offers, in days; 0 = all. Longer periods group the spend by week or month.
var spans = []struct {
	name string
	days int
	by   api.Grouping
}{{"7 days", 7, api.ByDay}, {"30 days", 30, api.ByDay}, {"90 days", 90, api.ByDay}, {"a year", 365, api.ByWeek}, {"all", 0, api.ByMonth}}

// kinds are the groupings that the page offers: their names, and those of their columns.
var kinds = []struct {
	by           api.Grouping
	name, column string
}{{api.ByDay, "By day", "Day"}, {api.ByModel, "By model", "Model"}, {api.ByWorkspace, "By folder", "Folder"}, {api.ByTool, "By tool", "Tool"}}

// usage shows what all tasks spent, by day, model, folder or tool.
func (w *Web) usage(a *asked) (*page, error) {
	d, err := w.spending(a)
	return &page{Kind: "usage", Title: "Usage", Body: usagePage(d)}, err
}

func (w *Web) spending(a *asked) (usageData, error) {
	d := usageData{By: api.ByDay}
	days, over, past := 30, api.ByDay, "the last 30 days"
	given, by := a.URL.Query().Get("days"), a.URL.Query().Get("by")
	for _, s := range spans {
		if given == itoa(s.days) {
			days, over, past = s.days, s.by, "the last "+strings.TrimPrefix(s.name, "a ")
		}
	}
	if days == 0 {
		past = "all time"
	}
	for _, k := range kinds {
		here := by == string(k.by)
		if here {
			d.By, d.Column = k.by, k.column
		}
		d.Kinds = append(d.Kinds, span{k.name, address("/usage", url.Values{"by": {string(k.by)}, "days": {itoa(days)}}), here})
	}
	if d.Column == "" {
		d.Column, d.Kinds[0].Here = kinds[0].column, true
	}
	for _, s := range spans {
		d.Spans = append(d.Spans, span{s.name, address("/usage", url.Values{"by": {string(d.By)}, "days": {itoa(s.days)}}), s.days == days})
	}
	now := w.opt.Now()
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC) // days count in UTC, where each has a midnight
	var f api.TaskFilter
	var since time.Time
	if days > 0 {
		since = today.AddDate(0, 0, 1-days)
		f.Since = time.Date(since.Year(), since.Month(), since.Day(), 0, 0, 0, 0, now.Location()).UnixMilli()
	}
	if d.By == api.ByDay && over != api.ByDay {
		d.By, d.Column = over, map[api.Grouping]string{api.ByWeek: "Week", api.ByMonth: "Month"}[over]
	}
	got, err := w.opt.Reader.Spending(a.Context(), d.By, f)
	if err != nil {
		return d, err
	}
	d.Total = got.Total
	d.Groups = append(d.Groups, api.Each(got.Items, func(g api.SpendingGroup) spent { return w.spentBy(d.By, g, since) })...)
	if d.By.OverTime() {
		d.Chart = w.overTime(d.Groups, d.By, since, today)
	} else {
		d.Chart = largest(d.Groups)
	}
	d.Chart.Title = d.Chart.What + " by " + strings.ToLower(d.Column) + ", " + past
	if len(d.Groups) > groupsMost { // the newest, or the largest
		d.Left = len(d.Groups) - groupsMost
		d.Groups = d.Groups[:groupsMost]
	}
	return d, nil
}

// spentBy returns a group with its name on the page, and the address of its tasks. since is the start of the period;
// zero: there is no start.
func (w *Web) spentBy(by api.Grouping, g api.SpendingGroup, since time.Time) spent {
	out := spent{SpendingGroup: g, Name: redact.Marked(g.Key)}
	if g.Key == "" {
		out.Name = "not known"
		return out
	}
	q := url.Values{}
	if !since.IsZero() {
		q.Set("since", since.Format(time.DateOnly))
	}
	switch {
	case by.OverTime():
		from, to, ok := stretchOf(by, g.Key)
		if !ok {
			return out
		}
		q = url.Values{"since": {from.Format(time.DateOnly)}, "until": {to.Format(time.DateOnly)}}
	case by == api.ByModel:
		_, model, both := strings.Cut(g.Key, "/")
		if !both {
			model = g.Key
		}
		q.Set("model", model)
	case by == api.ByWorkspace:
		q.Set("workspace", g.Key)
	case by == api.ByTool:
		q.Set("tool", g.Key)
	}
	out.Link = address("/", q)
	return out
}

// stretchOf returns the period that a key names: its first day, and the day after its last one.
func stretchOf(by api.Grouping, key string) (from, to time.Time, ok bool) {
	switch by {
	case api.ByDay:
		at, err := time.Parse(time.DateOnly, key)
		return at, at.AddDate(0, 0, 1), err == nil
	case api.ByMonth:
		at, err := time.Parse("2006-01", key)
		return at, at.AddDate(0, 1, 0), err == nil
	case api.ByWeek:
		var year, week int
		if _, err := fmt.Sscanf(key, "%d-W%d", &year, &week); err != nil {
			return from, to, false
		}
		at := time.Date(year, 1, 4, 0, 0, 0, 0, time.UTC) // 4 January is in the first week
		at = at.AddDate(0, 0, 7*(week-1)-(int(at.Weekday())+6)%7)
		return at, at.AddDate(0, 0, 7), true
	}
	return from, to, false
}

// chart shows the spend as bars. Places and widths are percents of the chart's width, so that the chart fits every window
// without a script, and its words keep their size.
type chart struct {
	Title   string
	What    string // Cost, Tokens
	Desc    string
	Columns []column // by time, the oldest first
	Rows    []column // otherwise, the largest first
	Lines   []line   // across the columns
	Height  int
}

// column is a bar, with the area in which a click follows its link.
type column struct {
	Link, Name, Label string
	Value             string
	X, Width          string // of the bar
	At, Room          string
	Anchor            string // start, middle or end
	Y, Height, Base   int
}

// labelX returns the place of the label.
func (c column) labelX() string {
	switch c.Anchor {
	case "start":
		return "0"
	case "end":
		return "100%"
	}
	return c.X
}

// line is a value beside the columns.
type line struct {
	Y     int
	Label string
}

// Sizes of a chart, in pixels.
const (
	columnsTop    = 18
	columnsHeight = 170
	labelsHeight  = 22
	rowHeight     = 44
	columnsMost   = 400
)

// measure returns the number that a chart shows of each group: the cost, or the tokens if no cost is known at all.
func measure(groups []spent) (what string, size func(spent) int64, words func(int64) string) {
	if slices.ContainsFunc(groups, func(g spent) bool { return g.Usage.Micros() > 0 }) {
		return "Cost", func(g spent) int64 { return g.Usage.Micros() }, func(n int64) string { return dollars(new(money.USD(n))) }
	}
	return "Tokens", func(g spent) int64 { return g.Usage.Tokens() }, view.Count
}

// overTime makes a chart with a column for each period, even if nothing was spent in it.
func (w *Web) overTime(groups []spent, by api.Grouping, since, today time.Time) chart {
	var c chart
	what, size, words := measure(groups)
	c.What, c.Height = what, columnsTop+columnsHeight+labelsHeight
	known := map[string]spent{}
	for _, g := range groups {
		known[g.Key] = g
		if at, _, ok := stretchOf(by, g.Key); ok && since.IsZero() || ok && at.Before(since) {
			since = at
		}
	}
	if len(groups) == 0 || since.IsZero() {
		return c
	}
	var all []spent
	for at := since; !at.After(today) && len(all) < columnsMost; {
		key := by.KeyAt(at)
		g, there := known[key]
		if !there {
			g = w.spentBy(by, api.SpendingGroup{Key: key}, time.Time{})
		}
		all = append(all, g)
		_, at, _ = stretchOf(by, key)
	}
	var most int64
	peak := spent{}
	for _, g := range all {
		if n := size(g); n > most {
			most, peak = n, g
		}
	}
	if most == 0 {
		return c
	}
	top := above(max(most, 2)) // a line is at its half
	for _, part := range []int64{2, 1} {
		c.Lines = append(c.Lines, line{columnsTop + columnsHeight - int(columnsHeight*part/2), words(top * part / 2)})
	}
	each := 100 / float64(len(all))
	marks := marksOf(len(all))
	for i, g := range all {
		n := size(g)
		one := column{Link: g.Link, Name: g.Name, Value: words(n), Room: percent(each), At: percent(each * float64(i)), Base: columnsTop,
			X: percent(each * (float64(i) + .14)), Width: percent(each * .72), Y: columnsTop + columnsHeight, Anchor: "middle"}
		if n > 0 {
			one.Height = max(int(float64(n)/float64(top)*columnsHeight), 2)
			one.Y -= one.Height
		}
		if slices.Contains(marks, i) {
			one.Label = labelOf(by, g.Key)
			switch i {
			case 0:
				one.Anchor = "start"
			case len(all) - 1:
				one.Anchor = "end"
			}
		}
		c.Columns = append(c.Columns, one)
	}
	c.Desc = "The most is " + words(most) + ": " + peak.Name + ". The table has all numbers."
	return c
}

func labelOf(by api.Grouping, key string) string {
	at, _, _ := stretchOf(by, key)
	if by == api.ByMonth {
		return at.Format("Jan 2006")
	}
	return at.Format("2 Jan")
}

// marksOf returns the columns with a label below them: no more than fit on a phone.
func marksOf(n int) []int {
	if n < 4 {
		return []int{0, n - 1}
	}
	return []int{0, (n - 1) / 3, 2 * (n - 1) / 3, n - 1}
}

// above returns the smallest round number that is at least n.
func above(n int64) int64 {
	for step := int64(1); ; step *= 10 {
		for _, k := range []int64{1, 2, 3, 4, 5, 6, 8} {
			if k*step >= n || step > 1e17 {
				return k * step
			}
		}
	}
}

func percent(f float64) string { return fmt.Sprintf("%.3f%%", f) }

// largest makes a chart with a row for each of the largest groups.
func largest(groups []spent) chart {
	var c chart
	what, size, words := measure(groups)
	c.What = what
	sorted := slices.Clone(groups)
	slices.SortStableFunc(sorted, func(a, b spent) int { return cmp.Compare(size(b), size(a)) })
	for i, g := range sorted[:min(len(sorted), barsMost)] {
		n := size(g)
		if n <= 0 {
			break
		}
		c.Rows = append(c.Rows, column{Link: g.Link, Name: g.Name, Label: shortEnd(g.Name, 36), Value: words(n), Y: i * rowHeight,
			Width: percent(max(float64(n)/float64(size(sorted[0]))*100, .4))})
	}
	c.Height = len(c.Rows) * rowHeight
	if len(c.Rows) > 0 {
		c.Desc = "The most is " + c.Rows[0].Value + ": " + c.Rows[0].Name + ". The table has all numbers."
	}
	return c
}

// shortEnd returns the end of a long name, because folders usually differ there.
func shortEnd(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return s
}
