package picker

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// menu is a list to choose from, in the place of the tasks.
type menu struct {
	title string
	stays bool // several may be on: space switches one, enter switches one and closes
	items []menuItem
	at    int
}

type menuItem struct {
	kind, text, count string
	on                func() bool
	choose            func(*Model)
}

// menuKey handles a key while a menu is open.
func (m *Model) menuKey(key string) {
	menu := m.menu
	switch key {
	case "esc", "q":
		m.menu = nil
	case "enter", "space", " ":
		menu.items[menu.at].choose(m)
		if key == "enter" || !menu.stays {
			m.menu = nil
		}
	default:
		menu.at = max(min(menu.at-scrolled(key, max(m.bodyHeight()-2, 1), len(menu.items)), len(menu.items)-1), 0)
	}
}

// field is a line that the user types, in the place of the keys.
type field struct {
	label string // above it
	text  string
	done  func(m *Model, text string) (cmd tea.Cmd, note string) // if it returns a note, the field stays open
}

// fieldKey handles a key while the person types into the menu's field.
func (m *Model) fieldKey(key, typed string) tea.Cmd {
	f := m.field
	m.act.note = ""
	switch key {
	case "esc":
		m.field = nil
	case "enter":
		cmd, note := f.done(m, strings.TrimSpace(f.text))
		if note != "" {
			m.act.note, m.act.bad = note, true
			return nil
		}
		m.field = nil
		return cmd
	default:
		f.text = edited(f.text, key, typed)
	}
	return nil
}
