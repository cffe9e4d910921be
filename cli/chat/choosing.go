package chat

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	display "github.com/roost-dev/roost/cli/term"
)

// finding is a search of the history.
type finding struct {
	words string
	at    int // the shown entry, -1 = none
	draft string
}

// wordsMsg holds the words that a search found for a wish; n is the number of the search.
type wordsMsg struct {
	n    int
	wish wish
	list []Word
}

// take inserts the chosen word of the pop-up. After a folder or a command the next pop-up opens.
func (m *model) take() tea.Cmd {
	m.ed.take(m.choice)
	m.choice = choice{}
	return m.suggest()
}

// suggest starts a search for completions of the word at the cursor, while the user continues to type.
func (m *model) suggest() tea.Cmd {
	m.wish++
	w, ok := wanted(m.ed.text, m.ed.at)
	if !ok || w.from+1 == m.closed || m.asking && w.kind != commandWords || m.away {
		if m.choice = (choice{}); !ok {
			m.closed = 0
		}
		return nil
	}
	n := m.wish
	m.stale, m.choice.at = true, -1 // the list belongs to the earlier text
	return m.crew.Do(func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.crew.Ctx, 3*time.Second)
		defer cancel()
		return wordsMsg{n, w, m.s.words(ctx, w)}
	})
}

// pick handles a key while a pop-up is open, and reports whether it used the key. Enter takes a word only when the arrows
// chose one: a command that was typed whole runs.
func (m *model) pick(key string) (cmd tea.Cmd, done bool) {
	switch key {
	case "up", "ctrl+p":
		m.choice.move(-1)
	case "down", "ctrl+n":
		m.choice.move(1)
	case "tab":
		if m.looking = m.stale; !m.looking {
			cmd = m.take()
		}
	case "enter":
		if m.choice.at < 0 {
			m.choice = choice{}
			return nil, false
		}
		cmd = m.take()
	case "esc":
		m.closed, m.choice = m.choice.from+1, choice{}
	default:
		return nil, false
	}
	return cmd, true
}

// search handles a key while the user searches the history, and reports whether the key is done with.
func (m *model) search(key, text string) bool {
	f, h := m.find, m.ed.history
	again := func(before int) {
		if at := h.Search(f.words, before); at >= 0 {
			f.at = at
			m.ed.set(h.At(at))
			return
		}
		if f.at < 0 {
			m.ed.set(f.draft)
		}
		m.hint = "no older line contains that"
	}
	switch key {
	case "ctrl+r":
		before := h.Len()
		if f.at >= 0 {
			before = f.at
		}
		again(before)
	case "backspace", "ctrl+h":
		f.words, f.at = withoutLast(f.words), -1
		again(h.Len())
	case "esc", "ctrl+g", "ctrl+c":
		m.ed.set(f.draft)
		m.find = nil
	default:
		if key == "enter" || text == "" {
			m.adopt()
			return key == "enter" // another key edits the line that was found
		}
		f.words, f.at = f.words+display.Safe(text), -1
		again(h.Len())
	}
	return true
}

// adopt ends a search with the line that it found. The earlier text of the editor becomes the draft at the end of the
// history, as if the user had gone there with Up.
func (m *model) adopt() {
	f := m.find
	m.find = nil
	if f.at < 0 {
		return
	}
	if m.ed.place == m.ed.history.Len() {
		m.ed.draft = f.draft
	}
	m.ed.place = f.at
}
