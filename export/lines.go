package export

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// Element is one message of a history to show. Message is nil when the bytes belong to no stored message: what would be
// sent is built for the request.
type Element struct {
	Number  int // from 1
	Raw     json.RawMessage
	Message *task.Message
}

// LinesOptions are how messages are shown.
type LinesOptions struct {
	API       bool // the history that the model sees
	Effective bool // what would be sent
	Whole     bool // reasoning unfolded, output not cut
}

// bodyLines bounds the lines of each tool output.
const bodyLines = 12

// Lines renders messages of a task as lines, with the results of calls below the rows that they answer. A terminal adds
// colours and wraps.
type Lines struct {
	options LinesOptions
	state   *task.State
	item    func([]byte, int) view.Item
	results map[uint64]*task.Call
	answers func([]Element) map[int]view.Item // of rows of another tool
	notices map[int][]view.Notice             // by the number of the message before them
}

// NewLines renders messages of a task, which must stay open.
func NewLines(v *store.View, o LinesOptions) *Lines {
	l := &Lines{options: o, state: v.State, item: view.UI, results: resultsByRow(v.State), answers: answersTo(v)}
	if o.API || o.Effective {
		l.item = view.API
	} else {
		l.notices = view.ByRow(view.Notices(v.State))
	}
	return l
}

// Together is how many messages Of takes at most: it looks for their answers among them. Each may hold megabytes.
const Together = 16

// Of yields the lines of consecutive messages, one message at a time, as each may hold megabytes.
func (l *Lines) Of(batch []Element) iter.Seq2[int, []view.Line] {
	return func(yield func(int, []view.Line) bool) {
		var answers map[int]view.Item
		if l.notices != nil { // the history that the user sees
			answers = l.answers(batch)
		}
		for i, one := range batch {
			answer, ok := answers[i]
			if !yield(i, l.one(one, answer, ok)) {
				return
			}
		}
	}
}

func (l *Lines) one(one Element, answer view.Item, answered bool) []view.Line {
	it := l.item(one.Raw, one.Number)
	if l.options.API {
		nameResults(it.Parts, l.state)
	}
	lines := view.Fold(it, l.room)
	switch {
	case one.Message != nil && !l.options.API && l.results[one.Message.ID] != nil:
		lines = append(lines, l.result(l.results[one.Message.ID])...)
	case answered:
		lines = append(lines, below(view.Fold(answer, l.room))...)
	}
	if one.Message != nil {
		for _, n := range l.notices[one.Number] {
			lines = append(lines, view.Fold(n.Item(), l.room)...)
		}
	}
	return lines
}

// room bounds the lines of a body: 0 = all of them, -1 = folded.
func (l *Lines) room(c view.Class) int {
	if l.options.Whole {
		return 0
	}
	switch c {
	case view.Reasoning, view.Appended:
		return -1
	case view.User, view.Model, view.Result, view.Question, view.Failure:
		return 0
	}
	return bodyLines
}

func (l *Lines) result(c *task.Call) []view.Line {
	result, err := c.Result()
	if err != nil {
		return []view.Line{{Style: view.Bad, Text: "  its result cannot be read: " + err.Error()}}
	}
	it := view.ToolResult(result)
	it.Title = c.Finished.Outcome
	if c.Finished.Outcome != "ok" {
		it.Class = view.Failure
	}
	if c.Finished.Exit != nil {
		it.Title += fmt.Sprintf(", exit %d", *c.Finished.Exit)
	}
	return below(view.Lines(it, l.room(view.Output)))
}

// below are lines below the row that they answer.
func below(lines []view.Line) []view.Line {
	for i := range lines {
		lines[i].Text = "  " + lines[i].Text
	}
	return lines
}

// nameResults adds to each result the name of its tool.
func nameResults(parts []view.Item, s *task.State) {
	for i := range parts {
		p := &parts[i]
		if p.Kind != "tool_result" || strings.Contains(p.Title, " of ") {
			continue
		}
		if c := s.Call(p.Call); c != nil && c.Name != "" {
			p.Title = strings.Replace(p.Title, "result", "result of "+c.Name, 1)
		}
	}
}
