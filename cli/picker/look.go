package picker

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// settle is how long the cursor must rest on a row before its task is read: a user who holds the arrow key down
// causes no reads.
const settle = 60 * time.Millisecond

// withPreview are the columns below which the list has the screen for itself.
const withPreview = 70

// keptPreviews is how many previews are remembered.
const keptPreviews = 24

type (
	previewMsg   struct{ turn int }
	previewedMsg struct {
		turn     int
		of, text string
		err      error
	}
)

// wantPreview asks for the preview of the row under the cursor, when it is another
// one than before and there is room for it.
func (m *Model) wantPreview() tea.Cmd {
	of := ""
	if t, ok := m.current(); ok && (m.previewWidth() > 0 || m.look.full) {
		of = m.previewOf(t)
	}
	l := &m.look
	if of == l.want {
		return nil
	}
	if l.cancel != nil {
		l.cancel()
		l.cancel = nil
	}
	l.want, l.up = of, 0
	l.turn++
	if _, ok := l.kept[of]; ok || of == "" {
		return nil
	}
	return m.after(settle, previewMsg{l.turn})
}

// previewOf names a preview: a task that changes gets a new one, and so does a hit.
func (m *Model) previewOf(t Task) string {
	h := m.query.hits[t.Key]
	return fmt.Sprintf("%s\x00%d\x00%d\x00%s\x00%d", t.Key, t.TS, t.Messages, h.History, h.Number)
}

func (m *Model) readPreview(msg previewMsg) tea.Cmd {
	t, ok := m.current()
	if l := &m.look; ok && msg.turn == l.turn {
		var ctx context.Context
		ctx, l.cancel = context.WithCancel(m.crew.Ctx)
		of, hit := l.want, m.hit(t)
		return m.crew.Do(func() tea.Msg {
			text, err := m.backend.Preview(ctx, t, hit)
			return previewedMsg{msg.turn, of, text, err}
		})
	}
	return nil
}

func (m *Model) previewed(msg previewedMsg) {
	l := &m.look
	if msg.err != nil && msg.turn != l.turn {
		return // it was cancelled because the cursor moved
	}
	if len(l.kept) >= keptPreviews {
		clear(l.kept)
	}
	if msg.err != nil {
		msg.text = m.paint(view.Bad, "it cannot be read: "+clean(msg.err.Error()))
	}
	l.kept[msg.of] = msg.text
}

// previewLines are the preview's lines on the screen: what the task is, then the end of its messages.
func (m *Model) previewLines(columns, height int) []string {
	t, ok := m.current()
	if !ok {
		return nil
	}
	out := m.facts(t, columns)
	if len(out) > height/2 {
		out = out[:height/2]
	}
	out = append(out, m.paint(view.Dim, strings.Repeat("─", columns)))
	room := height - len(out)
	text, ok := m.look.kept[m.look.want]
	if !ok {
		return append(out, m.paint(view.Dim, "reading ..."))
	}
	if l := &m.look; l.linesOf != l.want || l.columns != columns {
		l.lines, l.linesOf, l.columns = wrap(strings.TrimRight(text, "\n"), columns), l.want, columns
	}
	body := m.look.lines
	m.look.up = max(min(m.look.up, len(body)-room), 0)
	end := len(body) - m.look.up
	return append(out, body[max(end-room, 0):end]...)
}

// facts are what is known of a task without reading it.
func (m *Model) facts(t Task, columns int) []string {
	var out []string
	add := func(style view.Style, text string, most int) {
		for i, line := range wrap(clean(text), columns) {
			if i == most {
				break
			}
			out = append(out, m.paint(style, line))
		}
	}
	title := t.Title
	if clean(title) == "" {
		title = "(no title)"
	}
	add(view.Head, title, 2)
	facts := []string{t.Status, m.age(t.TS), term.Plural(t.Messages, "message")}
	if t.Cost != "" {
		facts = append(facts, "$"+t.Cost)
	}
	for _, more := range []string{t.Model, t.Source} {
		if more != "" {
			facts = append(facts, more)
		}
	}
	add(view.Dim, strings.Join(facts, " · "), 2)
	if t.Workspace != "" {
		add(view.Dim, t.Workspace, 1)
	}
	add(view.Dim, strings.TrimSpace(t.ID+" "+tags(t.Tags)), 1)
	for i, d := range t.Damaged {
		if i == 2 {
			add(view.Bad, fmt.Sprintf("and %d more", len(t.Damaged)-i), 1)
			break
		}
		add(view.Bad, "damaged: "+d, 2)
	}
	if h := m.hit(t); h != nil {
		add(view.Asked, fmt.Sprintf("#%d %s: %s", h.Number, h.History, h.Text), 3)
	}
	return out
}

func tags(list []string) string {
	var out []string
	for _, t := range list {
		out = append(out, "#"+t)
	}
	return strings.Join(out, " ")
}

// previewWidth is how many columns the preview has, 0 when there is no room for one.
func (m *Model) previewWidth() int {
	if m.width < withPreview {
		return 0
	}
	return m.width - m.listWidth() - 3
}

func (m *Model) listWidth() int {
	if m.width < withPreview {
		return m.width
	}
	return min(max(m.width*2/5, 32), 70)
}
