package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// mask masks text and JSON, and counts the secrets.
type mask struct {
	by    *redact.Redactor
	count int
}

func (m *mask) text(s string) string {
	if m.by != nil {
		masked, n := m.by.String(s)
		m.count += n
		return masked
	}
	return s
}

// nesting bounds how deep JSON in strings of JSON is parsed: the text of a row is JSON, and may hold a tool's input,
// which is JSON again.
const nesting = 4

// json masks the strings and names of a JSON text. It decodes them first, because an escape would hide the line breaks
// of a private key. A string without a secret keeps its bytes, and so does everything between strings. raw must be
// valid.
func (m *mask) json(raw []byte) []byte {
	if m.by == nil {
		return raw
	}
	return m.strings(raw, nesting)
}

func (m *mask) strings(raw []byte, depth int) []byte {
	var out []byte
	done := 0
	for at := bytes.IndexByte(raw, '"'); at >= 0; {
		end := esjson.StringEnd(raw, at)
		if to, changed := m.literal(raw[at:end], depth); changed {
			out = append(append(out, raw[done:at]...), to...)
			done = end
		}
		next := bytes.IndexByte(raw[end:], '"')
		if next < 0 {
			break
		}
		at = end + next
	}
	if out == nil {
		return raw
	}
	return append(out, raw[done:]...)
}

func (m *mask) literal(raw []byte, depth int) ([]byte, bool) {
	s, err := esjson.Unquote(raw)
	if err != nil {
		return nil, false
	}
	masked, before := s, m.count
	inner := []byte(s)
	if typ := esjson.TypeOf(inner); depth > 0 && (typ == esjson.TypeObject || typ == esjson.TypeArray) && esjson.Valid(inner) {
		masked = string(m.strings(inner, depth-1))
	}
	masked = m.text(masked)
	if m.count == before {
		return nil, false
	}
	return esjson.Quote(nil, masked), true
}

// Element is one message of a history to show. Message is nil when the bytes belong to no stored message: the
// messages to send are built for the request.
type Element struct {
	Number  int // from 1
	Raw     json.RawMessage
	Message *task.Message
}

// LinesOptions select how messages are shown.
type LinesOptions struct {
	API       bool // the history that the model sees
	Effective bool // the messages that would be sent
	Whole     bool // reasoning unfolded, output not cut
}

// bodyLines bounds the lines of each tool output.
const bodyLines = 12

// Lines renders messages of a task as lines, with the results of calls below the rows that they answer. A terminal adds
// colours and wraps.
type Lines struct {
	source
	options LinesOptions
}

// source is a task whose messages are rendered, with the data that a rendering needs.
type source struct {
	state   *task.State
	item    func([]byte, int) view.Item
	results map[uint64]*task.Call             // of the rows that called a tool
	answers func([]Element) map[int]view.Item // results of other tools' rows; nil for the history that the model sees
	notices map[int][]view.Notice             // by the number of the message before them
}

func sourceOf(v *store.View, o LinesOptions) source {
	if o.API || o.Effective {
		return source{state: v.State, item: view.API}
	}
	return source{
		state: v.State, item: view.UI, results: resultsByRow(v.State), answers: answersTo(v),
		notices: view.ByRow(view.Notices(v.State)),
	}
}

// NewLines renders messages of a task, which must stay open.
func NewLines(v *store.View, o LinesOptions) *Lines { return &Lines{sourceOf(v, o), o} }

// Together is the largest number of messages in one call of Of, which looks for their results among them. Each may
// hold megabytes.
const Together = 16

// Of yields the lines of consecutive messages, at most Together of them.
func (l *Lines) Of(batch []Element) iter.Seq2[int, []view.Line] {
	return rendered(l.answers, batch, l.one)
}

// rendered renders consecutive messages one at a time, since each may hold megabytes. one gets the result for a row
// of another tool, if there is one.
func rendered[T any](answers func([]Element) map[int]view.Item, batch []Element,
	one func(Element, view.Item, bool) []T) iter.Seq2[int, []T] {
	return func(yield func(int, []T) bool) {
		var known map[int]view.Item
		if answers != nil {
			known = answers(batch)
		}
		for i, e := range batch {
			answer, ok := known[i]
			if !yield(i, one(e, answer, ok)) {
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
	case one.Message != nil && l.results[one.Message.ID] != nil:
		lines = append(lines, l.result(l.results[one.Message.ID], one.Number)...)
	case answered:
		if !l.options.Whole {
			answer = view.Spoken(answer)
		}
		lines = append(lines, below(view.Fold(answer, l.room))...)
	}
	if one.Message != nil {
		for _, n := range l.notices[one.Number] {
			lines = append(lines, view.Fold(n.Item(), l.room)...)
		}
	}
	return lines
}

// room returns the number of lines of a body that are shown: 0 = all of them, -1 = folded.
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

// outputBehind reports whether a row after the command's row shows the command's output.
func (l *Lines) outputBehind(number int) bool {
	for _, m := range l.state.UI()[number:] {
		switch m.Kind() {
		case "say:command_output", "ask:command_output":
			return true
		case "say:api_req_started":
			return false
		}
	}
	return false
}

// result renders the result of a call. Without Whole it leaves out lines that repeat another row or address the model.
func (l *Lines) result(c *task.Call, number int) []view.Line {
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
	if !l.options.Whole {
		if it = view.Spoken(it); c.Name == "execute_command" && l.outputBehind(number) {
			it.Body = ""
		}
		it.Title = strings.TrimPrefix(strings.TrimPrefix(it.Title, "ok"), ", ")
		if it.Title == "exit 0" {
			it.Title = ""
		}
		if it.Title == "" && it.Body == "" && it.Images == 0 {
			return nil
		}
	}
	return below(view.Lines(it, l.room(view.Output)))
}

// below indents lines below the row that they answer.
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

// Page describes the page of one task in a folder of pages.
type Page struct {
	File string // file name in the folder
	Task api.Summary
}

// Index writes the page that links to the others in its folder. It returns the number of secrets that it masked.
func Index(w io.Writer, pages []Page, o Options) (masked int, err error) {
	p := newPage(w, o.Mask)
	p.begin(api.Plural(len(pages), "task"))
	for _, one := range pages {
		t := one.Task
		title := cmp.Or(p.set.Title(t.Title), p.set.Plain(t.ID))
		p.print("<section><a href=\"%s\">%s</a>\n", html.EscapeString(url.PathEscape(one.File)), title)
		p.facts(t)
		p.print("</section>\n")
	}
	p.print("</body></html>\n")
	return p.mask.count, api.Failed(p.out.Flush(), "write the index")
}

// answersTo returns a function that looks up the results of tools that consecutive rows lack, by index. It reads the
// matching stretch of the model's history. Rows of Roost's own runs do not need it: the journal has their results. An
// unreadable message answers nothing.
func answersTo(v *store.View) func(batch []Element) map[int]view.Item {
	messages := v.State.API()
	times := api.Each(messages, (*task.Message).TS)
	return func(batch []Element) map[int]view.Item {
		if !slices.ContainsFunc(batch, func(e Element) bool { return e.Message != nil && e.Message.Foreign }) {
			return nil
		}
		rows := api.Each(batch, func(e Element) []byte { return e.Raw })
		from, to := view.Stretch(rows, times)
		if from >= to {
			return nil
		}
		part := messages[from:to]
		if slices.ContainsFunc(part, func(m *task.Message) bool { return m.Missing }) {
			return nil // the indexes would no longer match
		}
		raws, err := v.State.Raws(part)
		if err != nil {
			return nil
		}
		return view.Answers(rows, api.Each(raws, func(raw json.RawMessage) []byte { return raw }), from)
	}
}

// Items reads messages of a task for a page: each row with the result of its call, followed by what the task recorded
// about files.
type Items struct {
	source
	mask *mask
}

// NewItems reads messages of a task, which must stay open. NewItems ignores the option Whole.
func NewItems(v *store.View, o LinesOptions) *Items { return &Items{sourceOf(v, o), &mask{}} }

// Of yields consecutive messages, at most Together of them, each followed by its notices.
func (l *Items) Of(batch []Element) iter.Seq2[int, []view.Item] {
	return rendered(l.answers, batch, l.one)
}

func (l *Items) one(e Element, answer view.Item, answered bool) []view.Item {
	it := l.item(l.mask.json(e.Raw), e.Number)
	if l.answers == nil {
		nameResults(it.Parts, l.state)
		return []view.Item{it}
	}
	if e.Message != nil && l.results[e.Message.ID] != nil {
		answer, answered = l.result(l.results[e.Message.ID]), true
	}
	if answered {
		it.Parts = append(it.Parts, answer)
	}
	all := []view.Item{it}
	for _, n := range l.notices[e.Number] {
		it := n.Item()
		if n.Checkpoint != nil {
			it.Kind, it.Checkpoint = "say:checkpoint", n.Checkpoint.Number // as a row of Roo's
		}
		all = append(all, it)
	}
	return all
}

// result returns the result of a tool for the row that called it.
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

// upperCase holds the characters whose upper case is several characters (Unicode's
// unconditional special casings), except for Greek ones with an iota below.
var upperCase = map[rune]string{
	'\u00df': "SS", '\u0149': "\u02bcN", '\u01f0': "J\u030c", '\u0390': "\u0399\u0308\u0301",
	'\u03b0': "\u03a5\u0308\u0301", '\u0587': "\u0535\u0552", '\u1e96': "H\u0331", '\u1e97': "T\u0308",
	'\u1e98': "W\u030a", '\u1e99': "Y\u030a", '\u1e9a': "A\u02be", '\u1f50': "\u03a5\u0313",
	'\u1f52': "\u03a5\u0313\u0300", '\u1f54': "\u03a5\u0313\u0301", '\u1f56': "\u03a5\u0313\u0342",
	'\u1fb2': "\u1fba\u0399", '\u1fb3': "\u0391\u0399", '\u1fb4': "\u0386\u0399", '\u1fb6': "\u0391\u0342",
	'\u1fb7': "\u0391\u0342\u0399", '\u1fbc': "\u0391\u0399", '\u1fc2': "\u1fca\u0399",
	'\u1fc3': "\u0397\u0399", '\u1fc4': "\u0389\u0399", '\u1fc6': "\u0397\u0342",
	'\u1fc7': "\u0397\u0342\u0399", '\u1fcc': "\u0397\u0399", '\u1fd2': "\u0399\u0308\u0300",
	'\u1fd3': "\u0399\u0308\u0301", '\u1fd6': "\u0399\u0342", '\u1fd7': "\u0399\u0308\u0342",
	'\u1fe2': "\u03a5\u0308\u0300", '\u1fe3': "\u03a5\u0308\u0301", '\u1fe4': "\u03a1\u0313",
	'\u1fe6': "\u03a5\u0342", '\u1fe7': "\u03a5\u0308\u0342", '\u1ff2': "\u1ffa\u0399",
	'\u1ff3': "\u03a9\u0399", '\u1ff4': "\u038f\u0399", '\u1ff6': "\u03a9\u0342",
	'\u1ff7': "\u03a9\u0342\u0399", '\u1ffc': "\u03a9\u0399", '\ufb00': "FF", '\ufb01': "FI", '\ufb02': "FL",
	'\ufb03': "FFI", '\ufb04': "FFL", '\ufb05': "ST", '\ufb06': "ST", '\ufb13': "\u0544\u0546",
	'\ufb14': "\u0544\u0535", '\ufb15': "\u0544\u053b", '\ufb16': "\u054e\u0546", '\ufb17': "\u0544\u053d",
}
