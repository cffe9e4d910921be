package picker

import (
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/roost-dev/roost/view"
)

// menu is a list to choose from, in the place of the tasks.
type menu struct {
	title string
	stays bool // several may be on: space switches one, enter switches and closes
	items []menuItem
	at    int
}

type menuItem struct {
	kind, text, count string
	on                func() bool
	choose            func(*Model)
}

// menuKey takes a key while a menu is open.
func (m *Model) menuKey(key string) {
	menu := m.menu
	switch key {
	case "esc", "q":
		m.menu = nil
	case "enter":
		menu.items[menu.at].choose(m)
		m.menu = nil
	case "space", " ":
		menu.items[menu.at].choose(m)
		if !menu.stays {
			m.menu = nil
		}
	default:
		menu.at = max(min(menu.at-scrolled(key, max(m.bodyHeight()-2, 1), len(menu.items)), len(menu.items)-1), 0)
	}
}

// lines draws the menu in so many columns and lines.
func (menu *menu) lines(m *Model, columns, height int) []string {
	out := []string{m.paint(view.Head, cut(menu.title, columns))}
	room := max(height-1, 1)
	top := max(min(menu.at-room/2, len(menu.items)-room), 0)
	for i := top; i < min(top+room, len(menu.items)); i++ {
		item, cursor, on := menu.items[i], "  ", "  "
		if i == menu.at {
			cursor = "> "
		}
		if item.on() {
			on = "● "
		}
		line := cursor + on + fit(item.kind, 8) + clean(item.text)
		if item.count != "" {
			line = fit(line, max(columns-8, 0)) + strings.Repeat(" ", max(7-len(item.count), 1)) + item.count
		}
		out = append(out, m.chosenLine(fit(line, columns), i == menu.at))
	}
	return out[:min(len(out), height)]
}

// keys names the keys of the menu.
func (menu *menu) keys() string {
	if menu.stays {
		return "space switches · enter switches and closes · ↑↓ move · esc closes"
	}
	return "enter chooses · ↑↓ move · esc closes"
}

// field is a line that the person types, in the place of the keys.
type field struct {
	label string // above it
	text  string
	done  func(m *Model, text string) (cmd tea.Cmd, note string) // a note keeps the field open
}

// fieldKey takes a key while a line is typed.
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

// edited is a line after a key that changes it.
func edited(line, key, typed string) string {
	switch key {
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(line)
		return line[:len(line)-n]
	case "ctrl+u":
		return ""
	case "ctrl+w":
		line = strings.TrimRight(line, " ")
		return line[:strings.LastIndex(line, " ")+1]
	}
	if typed != " " {
		typed = clean(typed)
	}
	return line + typed
}
