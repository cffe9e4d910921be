package picker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/term"
)

// key handles one key. An open question gets it first, then the search field, then the list.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	key := k.String()
	switch key {
	case "ctrl+c":
		m.choice = Choice{Interrupted: true}
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	}
	if m.help {
		if !m.scrollHelp(key) {
			m.help = false
		}
		return nil
	}
	if m.look.full {
		m.scroll(key)
		return nil
	}
	switch m.act.ask {
	case askDelete, askForm:
		return m.answer(key)
	case askImport:
		if !m.query.typing && m.act.note == "" && m.act.doing == "" {
			switch key {
			case "y":
				m.act.ask = noQuestion
				return m.importAll()
			case "n", "esc":
				m.act.ask = noQuestion
				m.act.note, m.act.bad = "not imported; roost import --from all does it later", false
				return nil
			}
		}
	}
	m.act.note = ""
	if cmd, ok := m.travel(key); ok {
		return cmd
	}
	if m.query.typing {
		return m.typed(key, k.Text)
	}
	return m.command(key)
}

// answer takes the key that answers a question. Enter is never yes.
func (m *Model) answer(key string) tea.Cmd {
	ask, t := m.act.ask, m.act.of
	m.act.ask, m.act.bad = noQuestion, false
	if ask == askDelete {
		if key == "y" || key == "Y" {
			return m.remove(t)
		}
		m.act.note = "not deleted"
		return nil
	}
	for _, f := range Forms {
		if f.Key == key {
			return m.export(t, f.Form)
		}
	}
	m.act.note = "not exported"
	return nil
}

// travel moves the cursor. It works while one types, too.
func (m *Model) travel(key string) (tea.Cmd, bool) {
	page := max(m.listHeight()-1, 1)
	if to, moves := map[string]int{
		"up": m.at - 1, "ctrl+p": m.at - 1, "down": m.at + 1, "ctrl+n": m.at + 1,
		"pgup": m.at - page, "pgdown": m.at + page, "home": 0, "end": len(m.rows) - 1,
	}[key]; moves {
		m.move(to)
		return nil, true
	}
	switch key {
	case "ctrl+b", "shift+up":
		m.look.up += 5
	case "ctrl+f", "shift+down":
		m.look.up = max(m.look.up-5, 0)
	case "enter":
		t, ok := m.current()
		switch {
		case !ok:
		case m.o.Purpose != "":
			return m.leave(Choose, t), true
		case m.free():
			return m.open(t), true
		}
	default:
		return nil, false
	}
	return nil, true
}

// scroll takes a key while the preview has the whole screen.
func (m *Model) scroll(key string) {
	const all = 1 << 30
	switch key {
	case "q", "esc", "enter", "o":
		m.look.full, m.look.up = false, 0
	default:
		m.look.up += scrolled(key, max(m.height-8, 1), all)
	}
}

// scrolled is how many lines up a key scrolls: by one, by a page, or over all.
func scrolled(key string, page, all int) int {
	return map[string]int{
		"up": 1, "k": 1, "down": -1, "j": -1, "pgup": page, "b": page, "pgdown": -page, "space": -page, " ": -page,
		"home": all, "g": all, "end": -all, "G": -all,
	}[key]
}

func (m *Model) typed(key, text string) tea.Cmd {
	q := m.query.text
	switch key {
	case "esc":
		m.query.typing = false
		return nil
	case "backspace":
		if q == "" {
			m.query.typing = false
			return nil
		}
		_, n := utf8.DecodeLastRuneInString(q)
		return m.setQuery(q[:len(q)-n])
	case "ctrl+u":
		return m.setQuery("")
	case "ctrl+w":
		q = strings.TrimRight(q, " ")
		return m.setQuery(q[:strings.LastIndex(q, " ")+1])
	}
	if text == "" {
		return nil
	}
	if text != " " {
		if text = clean(text); text == "" {
			return nil
		}
	}
	return m.setQuery(q + text)
}

func (m *Model) command(key string) tea.Cmd {
	switch key {
	case "q":
		m.choice = Choice{}
		return tea.Quit
	case "/":
		m.query.typing = true
		return nil
	case "?":
		m.help, m.helpAt = true, 0
		return nil
	case "k", "j", "g", "G":
		m.move(map[string]int{"k": m.at - 1, "j": m.at + 1, "g": 0, "G": len(m.rows) - 1}[key])
		return nil
	case "esc":
		if m.act.cancel != nil {
			m.act.cancel()
			return nil
		}
		return m.setQuery("")
	case "ctrl+r", "f5":
		return m.reload()
	case "u":
		if m.free() {
			return m.undo()
		}
		return nil
	}
	t, ok := m.current()
	if !ok || !m.free() {
		return nil
	}
	switch key {
	case "o":
		return m.open(t)
	case "r":
		if m.o.Purpose == "" {
			return m.leave(Resume, t)
		}
	case "e":
		m.act.ask, m.act.of = askForm, t
	case "d":
		m.act.ask, m.act.of = askDelete, t
	}
	return nil
}

func (m *Model) leave(v Verb, t Task) tea.Cmd {
	m.choice = Choice{Verb: v, Task: t}
	return tea.Quit
}

// question is the question on the last line. On a narrow terminal it gets shorter: the keys that answer it are never
// cut off.
func (m *Model) question() string {
	a := &m.act
	switch a.ask {
	case askDelete:
		return m.fitted(
			fmt.Sprintf("Delete %q? It goes to the trash.  y yes · n no", name(a.of)),
			fmt.Sprintf("Delete %q?  y yes · n no", name(a.of)),
			"Delete it?  y yes · n no", "Delete it?  y · n", "Delete?  y · n")
	case askForm:
		var keys, names []string
		for _, f := range Forms {
			keys, names = append(keys, f.Key), append(names, f.Key+" "+f.Name)
		}
		return m.fitted(
			"Export as "+strings.Join(names, " · ")+" · esc no",
			strings.Join(names, " · ")+" · esc no",
			"Export  "+strings.Join(keys, " ")+" · esc no",
			strings.Join(keys, " ")+" · esc")
	case askImport:
		return m.fitted(
			"Import verified copies of "+term.Plural(a.foreign, "task")+" of other tools into Roost?  y yes · n no (asked once)",
			"Import copies of "+term.Plural(a.foreign, "task")+"?  y yes · n no", "Import copies?  y yes · n no",
			"Import?  y yes · n no", "Import?  y · n")
	}
	return ""
}

// fitted is the first of several spellings that has room, else the last.
func (m *Model) fitted(spellings ...string) string {
	for _, s := range spellings {
		if width(s) <= m.width {
			return s
		}
	}
	return spellings[len(spellings)-1]
}

// said is the line that shows the present action or question, "" when there is none.
func (m *Model) said() string {
	a := &m.act
	switch {
	case a.ask == askDelete, a.ask == askForm:
		return m.question()
	case a.doing != "":
		text := a.doing
		if a.progress != nil {
			if more, _ := a.progress.Load().(string); more != "" {
				text += ": " + more
			}
		}
		return text + " ...  esc stops it"
	case a.note != "":
		return a.note
	case a.ask == askImport:
		return m.question()
	}
	return ""
}

type doneMsg struct {
	note   string
	err    error
	change func(*Model) tea.Cmd // what is different now; nil = nothing, or it failed
}

type tickMsg struct{}

// begin does something that takes time.
func (m *Model) begin(doing string, f func(context.Context) doneMsg) tea.Cmd {
	var ctx context.Context
	ctx, m.act.cancel = context.WithCancel(m.crew.Ctx)
	m.act.doing = doing
	return m.crew.Do(func() tea.Msg { return f(ctx) })
}

func (m *Model) done(msg doneMsg) tea.Cmd {
	a := &m.act
	if a.cancel != nil {
		a.cancel()
	}
	a.doing, a.cancel, a.progress = "", nil, nil
	a.note, a.bad = msg.note, msg.err != nil
	if msg.err != nil {
		if a.note = msg.err.Error(); errors.Is(msg.err, context.Canceled) {
			a.note = "stopped"
		}
	}
	var cmd tea.Cmd
	if msg.change != nil {
		a.changed = true
		cmd = msg.change(m)
		m.arrange()
	}
	return cmd
}

// free reports whether an action can begin, and shows a note when it cannot.
func (m *Model) free() bool {
	if m.act.doing != "" {
		m.act.note, m.act.bad = "still busy: "+m.act.doing, true
		return false
	}
	return true
}

func (m *Model) remove(t Task) tea.Cmd {
	return m.begin("deleting", func(ctx context.Context) doneMsg {
		token, err := m.backend.Delete(ctx, t)
		if err != nil {
			return doneMsg{err: err}
		}
		return doneMsg{note: "deleted: " + name(t) + " · u takes it back", change: func(m *Model) tea.Cmd {
			m.gone[t.Key] = true
			m.act.deleted = append(m.act.deleted, deletion{t, token})
			if t.copied() {
				return m.reload() // the same task elsewhere is a row now
			}
			return nil
		}}
	})
}

func (m *Model) undo() tea.Cmd {
	if len(m.act.deleted) == 0 {
		m.act.note, m.act.bad = "nothing was deleted here; roost trash list shows what was before", false
		return nil
	}
	last := m.act.deleted[len(m.act.deleted)-1]
	return m.begin("putting back", func(ctx context.Context) doneMsg {
		if err := m.backend.Restore(ctx, last.token); err != nil {
			return doneMsg{err: err}
		}
		return doneMsg{note: "put back: " + name(last.task), change: func(m *Model) tea.Cmd {
			delete(m.gone, last.task.Key)
			m.act.deleted = m.act.deleted[:len(m.act.deleted)-1]
			if !slices.ContainsFunc(m.all, func(t Task) bool { return t.Key == last.task.Key }) {
				m.all = sorted(append(m.all, last.task)) // the list was read while it was away
			}
			m.arrange()
			if i := m.rowOf(last.task.Key); i >= 0 {
				m.move(i)
			}
			if last.task.copied() {
				return m.reload()
			}
			return nil
		}}
	})
}

func (m *Model) export(t Task, form string) tea.Cmd {
	return m.begin("exporting", func(ctx context.Context) doneMsg {
		note, err := m.backend.Export(ctx, t, form)
		return doneMsg{note: note, err: err}
	})
}

type offerMsg struct{}

// offer asks once whether to import, when the list is whole.
func (m *Model) offer() tea.Cmd {
	n := 0
	for _, t := range m.all {
		if t.Source != api.OwnSource && !t.copied() {
			n++
		}
	}
	if m.act.offered || n == 0 || m.o.Purpose != "" {
		return nil
	}
	m.act.offered, m.act.foreign = true, n
	return m.crew.Do(func() tea.Msg {
		if m.backend.Offer() {
			return offerMsg{}
		}
		return nil
	})
}

func (m *Model) importAll() tea.Cmd {
	report := new(atomic.Value)
	cmd := m.begin("importing", func(ctx context.Context) doneMsg {
		text, err := m.backend.Import(ctx, func(text string) { report.Store(text) })
		return doneMsg{note: text, err: err, change: (*Model).reload} // what was copied before it failed is there
	})
	m.act.progress = report
	return tea.Batch(cmd, m.after(tickEvery, tickMsg{}))
}

const tickEvery = 100 * time.Millisecond

// tick redraws while an action reports its progress.
func (m *Model) tick() tea.Cmd {
	if m.act.progress == nil {
		return nil
	}
	return m.after(tickEvery, tickMsg{})
}

// open shows a task in the person's pager, and then this screen again; without a
// pager the preview takes the whole screen.
func (m *Model) open(t Task) tea.Cmd {
	if !m.o.Pager {
		m.look.full, m.look.up = true, 0
		return nil
	}
	hit := m.hit(t)
	return tea.Exec(term.Alone(func() error { return m.backend.Open(m.crew.Ctx, t, hit) }), func(err error) tea.Msg {
		return doneMsg{err: err}
	})
}

func name(t Task) string {
	return cmp.Or(cut(clean(t.Title), 40), clean(t.ID))
}
