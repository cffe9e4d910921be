package picker

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
)

// order is one way to sort the list.
type order struct {
	name    string
	compare func(a, b Task) int
}

// orders are all orders. A screen begins with the first one.
var orders = []order{
	{"newest first", func(a, b Task) int { return cmp.Compare(b.TS, a.TS) }},
	{"oldest first", func(a, b Task) int { return cmp.Compare(a.TS, b.TS) }},
	{"by cost", func(a, b Task) int { return cmp.Compare(cost(b), cost(a)) }},
	{"by tokens", func(a, b Task) int { return cmp.Compare(b.Usage.Tokens(), a.Usage.Tokens()) }},
	{"by title", func(a, b Task) int { return cmp.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)) }},
}

const byCost, byTokens = 2, 3 // their indexes in orders

// cost returns the cost of a task, in micro-dollars; -1 = unknown.
func cost(t Task) int64 {
	if t.Usage.Cost == nil {
		return -1
	}
	return int64(*t.Usage.Cost)
}

// sort puts all tasks into the order of the list: those that wait for the user first, then pinned ones.
func (m *Model) sort() {
	first := map[bool]int{true: -1}
	slices.SortStableFunc(m.all, func(a, b Task) int {
		return cmp.Or(first[a.waits()]-first[b.waits()], first[a.Pinned]-first[b.Pinned], orders[m.sorts].compare(a, b))
	})
	m.arrange()
}

// arrange fills rows with the tasks that match the search and the filters. The cursor stays on its task.
func (m *Model) arrange() {
	before, had := m.current()
	words := strings.Fields(strings.ToLower(m.query.text))
	m.rows = m.rows[:0:0]
	for _, t := range m.all {
		if m.gone[t.Key()] || !m.narrow.passes(t, m.o.Dir) {
			continue
		}
		lacks := func(word string) bool { return !strings.Contains(t.row, word) }
		if _, hit := m.query.hits[t.Key()]; hit || !slices.ContainsFunc(words, lacks) {
			m.rows = append(m.rows, t)
		}
	}
	if !had || !m.moved {
		m.at = 0
		return
	}
	if i := m.rowOf(before.Key()); i >= 0 {
		m.at = i
	} else {
		m.at = max(min(m.at, len(m.rows)-1), 0)
	}
}

// chosen returns the selected tasks that are listed, else the one under the cursor.
func (m *Model) chosen() []Task {
	out := api.Some(m.rows, func(t Task) (Task, bool) { return t, m.picked[t.Key()] })
	if t, ok := m.current(); ok && len(out) == 0 {
		out = []Task{t}
	}
	return out
}

// kinds are the filters of the list besides the folder.
var kinds = []struct {
	name   string
	values func(Task) []string
}{
	{"tool", func(t Task) []string {
		return append([]string{t.Where}, api.Each(t.Also, func(c Copy) string { return c.Where })...)
	}},
	{"status", func(t Task) []string { return []string{t.Status} }},
	{"tag", func(t Task) []string { return t.Tags }},
	{"model", func(t Task) []string { return []string{t.Model} }},
}

// filter narrows the list: a task passes if it has one of the values of each kind that has values.
type filter struct {
	folder bool // only tasks of the current folder and those below it
	only   [4]map[string]bool
}

func (f *filter) passes(t Task, dir string) bool {
	if f.folder && !below(t.Workspace, dir) {
		return false
	}
	for i, values := range f.only {
		if len(values) > 0 && !slices.ContainsFunc(kinds[i].values(t), func(v string) bool { return values[v] }) {
			return false
		}
	}
	return true
}

// below reports whether folder is dir or inside it.
func below(folder, dir string) bool {
	if folder == "" || dir == "" {
		return false
	}
	rel, err := filepath.Rel(dir, folder)
	return err == nil && (rel == "." || filepath.IsLocal(rel))
}

// toggle adds a value to those that are listed, or removes it.
func (f *filter) toggle(kind int, value string) {
	if f.only[kind][value] {
		delete(f.only[kind], value)
		return
	}
	if f.only[kind] == nil {
		f.only[kind] = map[string]bool{}
	}
	f.only[kind][value] = true
}

// on reports whether any filter is set.
func (f *filter) on() bool {
	return f.folder || slices.ContainsFunc(f.only[:], func(values map[string]bool) bool { return len(values) > 0 })
}

// names describes the filters in words.
func (f *filter) names() []string {
	var out []string
	if f.folder {
		out = append(out, "this folder")
	}
	for _, values := range f.only {
		out = append(out, slices.Sorted(maps.Keys(values))...)
	}
	return out
}

// filterMenu returns the menu of all values that tasks have, with the number of tasks for each.
func (m *Model) filterMenu() *menu {
	menu := &menu{title: "Show only", stays: true}
	add := func(kind, value string, n int, on func() bool, toggle func()) {
		menu.items = append(menu.items, menuItem{kind, value, fmt.Sprint(n), on, func(m *Model) {
			toggle()
			m.arrange()
		}})
	}
	f := &m.narrow
	here := 0
	counts := make([]map[string]int, len(kinds))
	for i := range counts {
		counts[i] = map[string]int{}
	}
	all := 0
	for _, t := range m.all {
		if m.gone[t.Key()] {
			continue
		}
		all++
		if below(t.Workspace, m.o.Dir) {
			here++
		}
		for i, kind := range kinds {
			for _, v := range kind.values(t) {
				if v != "" {
					counts[i][v]++
				}
			}
		}
	}
	add("", "all tasks", all, func() bool { return !f.on() }, func() { *f = filter{} })
	add("folder", "this folder and below: "+m.o.Dir, here, func() bool { return f.folder }, func() { f.folder = !f.folder })
	for i, kind := range kinds {
		values := slices.SortedFunc(maps.Keys(counts[i]), func(a, b string) int {
			return cmp.Or(counts[i][b]-counts[i][a], strings.Compare(a, b))
		})
		for _, v := range values {
			add(kind.name, v, counts[i][v], func() bool { return f.only[i][v] }, func() { f.toggle(i, v) })
		}
	}
	return menu
}

// sortMenu returns the menu of orders.
func (m *Model) sortMenu() *menu {
	menu := &menu{title: "Sort the list", at: m.sorts}
	for i, o := range orders {
		menu.items = append(menu.items, menuItem{"", o.name, "", func() bool { return m.sorts == i }, func(m *Model) {
			m.sorts, m.moved = i, false
			m.sort()
		}})
	}
	return menu
}
