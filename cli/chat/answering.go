package chat

import (
	"fmt"
	"strings"

	display "github.com/roost-dev/roost/cli/term"
)

// arming returns from when keys answer the open question.
func (m *model) arming() display.Arming { return display.Arming{Shown: m.shown, Key: m.pressed} }

// letter handles a key while letters answer the question, and reports whether it used the key.
func (m *model) letter(key, text, letters string) bool {
	now, armed := m.now(), m.arming()
	m.pressed = now
	low := strings.ToLower(text)
	switch {
	case m.reason && key == "esc":
		m.reason = false
		m.ed.clear()
	case m.reason && key == "enter":
		m.reply(strings.TrimSpace("n " + m.ed.String()))
	case m.reason:
		return false
	case armed.Takes(now, m.ed.String()) && len(low) == 1 && strings.Contains(letters, low):
		m.hint = ""
		if m.reason = low == "n" && strings.Contains(letters, "d"); m.reason { // a question without a diff takes no reason
			m.ed.clear()
			break
		}
		m.reply(low)
		m.shown = now // d shows the question again
	case !m.ed.empty() || armed.In(now) == 0:
		return false
	case key == "enter", text != "", key == "backspace": // the user types on: the key answers no question
		m.hint = "a question came: what you type comes back after it; wait a moment to answer"
		m.toDraft(key, text)
	default:
		return false
	}
	return true
}

// reply answers the open question.
func (m *model) reply(text string) {
	if !m.s.state().Asking {
		return // the question has closed, and its answer is for nothing else
	}
	m.reason = false
	m.ed.clear()
	_, _ = fmt.Fprintln(m.s.out, " > "+text) // where a terminal would have shown it
	m.s.Reply(text)
}
