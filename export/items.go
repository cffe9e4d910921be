package export

import (
	"context"
	"io"
	"iter"
	"slices"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// Items reads messages of a task for a page: each row with the result of its call, and what the task recorded about
// files behind it.
type Items struct {
	state   *task.State
	item    func([]byte, int) view.Item
	results map[uint64]*task.Call
	answers func([]Element) map[int]view.Item // of rows of another tool; nil for the history that the model sees
	notices map[int][]view.Notice             // by the number of the message before them
	mask    *mask
}

// NewItems reads messages of a task, which must stay open. Of the options, Whole means nothing here.
func NewItems(v *store.View, o LinesOptions) *Items { return newItems(v, o, &mask{}) }

func newItems(v *store.View, o LinesOptions, m *mask) *Items {
	l := &Items{state: v.State, item: view.API, mask: m}
	if !o.API && !o.Effective {
		l.item, l.answers = view.UI, answersTo(v)
		l.results, l.notices = resultsByRow(v.State), view.ByRow(view.Notices(v.State))
	}
	return l
}

// Of yields each of consecutive messages, at most Together, and the notices behind it.
func (l *Items) Of(batch []Element) iter.Seq2[int, []view.Item] {
	return func(yield func(int, []view.Item) bool) {
		var known map[int]view.Item
		if l.answers != nil {
			known = l.answers(batch)
		}
		for i, e := range batch {
			if !yield(i, l.one(e, known, i)) {
				return
			}
		}
	}
}

func (l *Items) one(e Element, known map[int]view.Item, i int) []view.Item {
	it := l.item(l.mask.json(e.Raw), e.Number)
	if l.answers == nil {
		nameResults(it.Parts, l.state)
		return []view.Item{it}
	}
	answer, ok := known[i]
	if e.Message != nil && l.results[e.Message.ID] != nil {
		answer, ok = l.result(l.results[e.Message.ID]), true
	}
	if ok {
		it.Parts = append(it.Parts, answer)
	}
	all := []view.Item{it}
	for _, n := range l.notices[e.Number] {
		it := n.Item()
		if n.Checkpoint != nil {
			it.Kind = "say:checkpoint" // as a row of Roo's
		}
		all = append(all, it)
	}
	return all
}

// result is the result of a tool for the row that called it.
func (l *Items) result(c *task.Call) view.Item {
	raw, err := c.Result()
	if err != nil {
		return view.Item{Class: view.Failure, Title: "its result cannot be read", Body: err.Error()}
	}
	it := view.ToolResult(l.mask.json(raw))
	if c.Finished.Outcome != "ok" {
		it.Class, it.Title = view.Failure, c.Finished.Outcome
	}
	return it
}

// Prompts are the beginnings of what a person said in a task, the newest ones, and how many there are in all. It reads
// only those rows.
func Prompts(ctx context.Context, v *store.View, most int) (numbers []int, texts []string, total int) {
	rows := v.State.UI()
	for i, m := range rows {
		if isPrompt(i, m) {
			total++
		}
	}
	skip := max(total-most, 0)
	said := newPage(io.Discard, nil).chosen(ctx, v, rows, most, func(i int, m *task.Message) bool {
		if !isPrompt(i, m) {
			return false
		}
		skip--
		return skip < 0
	})
	return said.numbers, said.texts, total
}

func isPrompt(i int, m *task.Message) bool { return i == 0 || slices.Contains(prompts, m.Kind()) }
