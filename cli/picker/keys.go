package picker

import (
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
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
	switch key {
	case "up", "ctrl+p":
		m.move(m.at - 1)
	case "down", "ctrl+n":
		m.move(m.at + 1)
	case "pgup":
		m.move(m.at - page)
	case "pgdown":
		m.move(m.at + page)
	case "home":
		m.move(0)
	case "end":
		m.move(len(m.rows) - 1)
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
	page := max(m.height-8, 1)
	switch key {
	case "up", "k":
		m.look.up++
	case "down", "j":
		m.look.up--
	case "pgup", "b":
		m.look.up += page
	case "pgdown", "space", " ":
		m.look.up -= page
	case "home", "g":
		m.look.up = 1 << 30
	case "end", "G":
		m.look.up = 0
	case "q", "esc", "enter", "o":
		m.look.full, m.look.up = false, 0
	}
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
	case "k":
		m.move(m.at - 1)
		return nil
	case "j":
		m.move(m.at + 1)
		return nil
	case "g":
		m.move(0)
		return nil
	case "G":
		m.move(len(m.rows) - 1)
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
