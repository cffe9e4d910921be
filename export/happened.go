package export

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/spend"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// Bounds of the lists in the head of a page; further entries are only counted.
const (
	maxPrompts  = 200
	maxListed   = 50
	promptRunes = 100
)

// prompts are the kinds of rows, apart from the first row, that hold a person's words; commandRows those that hold
// commands.
var (
	prompts     = []string{"say:user_feedback", "say:task"}
	commandRows = []string{"ask:command", "say:command"}
)

// happened writes the head of a page: the task's duration, its changed files, the commands that it asked for, the
// cost of each model, and the person's prompts as links. It reads only the rows that it lists.
func (p *page) happened(ctx context.Context, v *store.View) {
	before := p.mask.count // what is listed here is on the page again, and counts there
	defer func() { p.mask.count = before }()
	rows := v.State.UI()
	p.print("<table class=\"happened\">\n")
	line := func(name, html string) {
		if html != "" {
			p.print("<tr><th>%s</th><td>%s</td></tr>\n", name, html)
		}
	}
	line("Time", period(rows))
	line("Files changed", p.list(changedFiles(v.State)))
	line("Commands", p.list(p.mask.chosen(ctx, v, rows, maxListed, isCommand)))
	line("Cost", p.costs(ctx, v))
	p.print("</table>\n")
	said := p.mask.chosen(ctx, v, rows, maxPrompts, isPrompt)
	if said.total > 1 {
		p.print("<div class=\"prompts\"><b>%d prompts</b><ol>\n", said.total)
		for i, text := range said.texts {
			p.print("<li><a href=\"#ui-%d\">%s</a></li>\n", said.numbers[i], p.set.Title(text))
		}
		p.print("</ol></div>\n")
	}
}

// listing is the beginning of a list and the number of entries in all.
type listing struct {
	texts   []string
	numbers []int // of rows
	total   int
}

// list returns a listing as HTML, folded when it is long.
func (p *page) list(l listing) string {
	if l.total == 0 {
		return ""
	}
	var b strings.Builder
	fold := l.total > 5
	if fold {
		fmt.Fprintf(&b, "<details><summary>%d</summary>", l.total)
	}
	b.WriteString("<ul>")
	for i, text := range l.texts {
		entry := "<code>" + p.set.Title(text) + "</code>"
		if l.numbers != nil {
			entry = fmt.Sprintf("<a href=\"#ui-%d\">%s</a>", l.numbers[i], entry)
		}
		b.WriteString("<li>" + entry + "</li>")
	}
	if more := l.total - len(l.texts); more > 0 {
		fmt.Fprintf(&b, "<li>and %d more</li>", more)
	}
	b.WriteString("</ul>")
	if fold {
		b.WriteString("</details>")
	}
	return b.String()
}

// chosen returns the texts of some rows, each with its first line only.
func (m *mask) chosen(ctx context.Context, v *store.View, rows []*task.Message, most int, is func(int, *task.Message) bool) (l listing) {
	var some []*task.Message
	var numbers []int
	for i, row := range rows {
		if !is(i, row) {
			continue
		}
		if l.total++; len(some) < most {
			some, numbers = append(some, row), append(numbers, i+1)
		}
	}
	for e := range elements(ctx, v, "ui", some, 0, &api.Exported{}) { // what cannot be read is reported with its row
		it := view.UI(m.json(e.Raw), numbers[e.Number-1])
		text := strings.TrimSpace(it.Body)
		if it.Class == view.Tool {
			_, text = view.Verb(it.Title)
		}
		text, _, _ = strings.Cut(text, "\n")
		if r := []rune(text); len(r) > promptRunes {
			text = string(r[:promptRunes]) + "…"
		}
		text = cmp.Or(text, "#"+fmt.Sprint(numbers[e.Number-1]))
		l.texts, l.numbers = append(l.texts, text), append(l.numbers, numbers[e.Number-1])
	}
	return l
}

// changedFiles lists the files that the task's agent changed, by path.
func changedFiles(s *task.State) (l listing) {
	for _, f := range s.FilesEver() {
		if (f.RooEdit > 0 || f.Source == "roo_edited") && !slices.Contains(l.texts, f.Path) {
			l.texts = append(l.texts, f.Path)
		}
	}
	slices.Sort(l.texts)
	l.total = len(l.texts)
	l.texts = l.texts[:min(l.total, maxListed)]
	return l
}

// period returns the times of the first and the last row, "" when they have no times.
func period(rows []*task.Message) string {
	var first, last int64
	for _, m := range rows {
		if ts := m.TS(); ts > 0 {
			first = cmp.Or(first, ts)
			last = max(last, ts)
		}
	}
	if first == 0 {
		return ""
	}
	from, to := time.UnixMilli(first).UTC(), time.UnixMilli(last).UTC()
	end := to.Format("15:04")
	if from.Format(time.DateOnly) != to.Format(time.DateOnly) {
		end = to.Format("2006-01-02 15:04")
	}
	return from.Format("2006-01-02 15:04") + " to " + end + " UTC (" + lasted(to.Sub(from)) + ")"
}

// lasted returns a duration in the two units that matter.
func lasted(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%s %d h", api.Plural(int(d.Hours())/24, "day"), int(d.Hours())%24)
}

// costs returns the cost of each model, as HTML.
func (p *page) costs(ctx context.Context, v *store.View) string {
	list, err := spend.Expenses(ctx, v)
	if err != nil {
		return "" // the sum is in the line of facts
	}
	sums := map[string]api.Usage{}
	var names []string
	for _, e := range list {
		if !e.Usage.NonZero() {
			continue
		}
		name := strings.Trim(e.Provider+"/"+e.Model, "/")
		if _, known := sums[name]; !known {
			names = append(names, name)
		}
		sums[name] = sums[name].Plus(e.Usage)
	}
	slices.SortStableFunc(names, func(a, b string) int { return int(sums[b].Micros() - sums[a].Micros()) })
	var lines []string
	for _, name := range names {
		u, cost := sums[name], "unknown price"
		if u.Cost != nil {
			cost = dollars(*u.Cost)
		}
		text := fmt.Sprintf("%s, %s tokens in, %s out", cost, view.Count(u.TokensIn), view.Count(u.TokensOut))
		if name != "" {
			text = name + ": " + text
		}
		lines = append(lines, p.set.Plain(text))
	}
	return strings.Join(lines, "<br>")
}

// dollars returns an amount to the cent, and below a cent to the millionth.
func dollars(u money.USD) string {
	if u > 0 && u < 10_000 {
		return "$" + u.String()
	}
	return "$" + u.Cents().String()
}

// Prompts returns the newest messages that a person wrote in a task, each cut to its beginning, and the total number
// of such messages. It reads only those rows.
func Prompts(ctx context.Context, v *store.View, most int) (numbers []int, texts []string, total int) {
	rows := v.State.UI()
	for i, m := range rows {
		if isPrompt(i, m) {
			total++
		}
	}
	skip := max(total-most, 0)
	said := new(mask).chosen(ctx, v, rows, most, func(i int, m *task.Message) bool {
		if !isPrompt(i, m) {
			return false
		}
		skip--
		return skip < 0
	})
	return said.numbers, said.texts, total
}

func isPrompt(i int, m *task.Message) bool { return i == 0 || slices.Contains(prompts, m.Kind()) }

func isCommand(_ int, m *task.Message) bool { return slices.Contains(commandRows, m.Kind()) }
