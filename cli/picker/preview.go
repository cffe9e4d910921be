package picker

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/view"
)

// previewOf returns the name of a preview: it changes when the task or the hit changes.
func (m *Model) previewOf(t Task) string {
	h := m.query.hits[t.Key()]
	return fmt.Sprintf("%s\x00%d\x00%d\x00%s\x00%d", t.Key(), t.TS, t.Messages.UI, h.History, h.Number)
}

// previewLines returns the preview's lines on the screen: facts about the task, then the end of its messages.
func (m *Model) previewLines(columns, height int) []string {
	t, ok := m.current()
	if !ok {
		return nil
	}
	out := m.facts(t, columns)
	out = out[:min(len(out), height/2)]
	out = append(out, m.paint(view.Dim, strings.Repeat("─", columns)))
	room := height - len(out)
	text, ok := m.look.kept[m.look.want]
	if !ok {
		return append(out, m.paint(view.Dim, "reading ..."))
	}
	if l := &m.look; l.linesOf != l.want || l.columns != columns || l.words != m.query.text {
		l.lines, l.linesOf, l.columns, l.words = nil, l.want, columns, m.query.text
		for _, line := range text {
			for _, part := range wrap(line.Text, columns) {
				l.lines = append(l.lines, m.marked(line.Style, part))
			}
		}
	}
	body := m.look.lines
	m.look.up = max(min(m.look.up, len(body)-room), 0)
	end := len(body) - m.look.up
	return append(out, body[max(end-room, 0):end]...)
}

// facts returns the lines about a task for which its messages need not be read.
func (m *Model) facts(t Task, columns int) []string {
	var out []string
	add := func(style view.Style, text string, most int) {
		lines := wrap(clean(text), columns)
		out = append(out, api.Each(lines[:min(len(lines), most)], func(line string) string { return m.paint(style, line) })...)
	}
	add(view.Head, cmp.Or(clean(t.Title), "(no title)"), 2)
	facts := []string{t.Status, m.age(t.TS), api.Plural(t.Messages.UI, "message")}
	if t.Usage.Cost != nil {
		facts = append(facts, dollars(t))
	}
	where := t.Where
	for _, c := range t.Also {
		where += ", also in " + c.Where
	}
	for _, more := range []string{t.Model, where} {
		if more != "" {
			facts = append(facts, more)
		}
	}
	add(view.Dim, strings.Join(facts, " · "), 2)
	if t.Workspace != "" {
		folder := t.Workspace
		if slices.Contains(t.Inferred, "workspace") {
			folder += " (its messages name it)"
		}
		add(view.Dim, folder, 1)
	}
	id := t.ID
	for _, tag := range t.Tags {
		id += " #" + tag
	}
	add(view.Dim, id, 1)
	for _, d := range t.Damaged[:min(len(t.Damaged), 2)] {
		d.File = filepath.Base(d.File)
		add(view.Bad, "damaged: "+d.Text(), 2)
	}
	if more := len(t.Damaged) - 2; more > 0 {
		add(view.Bad, fmt.Sprintf("and %d more", more), 1)
	}
	if t.waits() {
		add(view.Asked, "waits for your answer: r asks it again", 1)
	}
	if h := m.hit(t); h != nil {
		text := fmt.Sprintf("#%d: %s", h.Number, clean(h.Snippet))
		if n := m.query.count[t.Key()]; n > 1 {
			text = fmt.Sprintf("%d hits, the first in #%d: %s", n, h.Number, clean(h.Snippet))
		}
		lines := wrap(text, columns)
		for _, line := range lines[:min(len(lines), 3)] {
			out = append(out, m.marked(view.Asked, line))
		}
	}
	return out
}
