package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Init begins to poll the terminal's size: it sends no event when it changes.
func (m *model) Init() tea.Cmd { return m.look() }

// Update takes one message in, and draws.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	m.news() // a key applies to what is on the screen now
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		cmd = m.typed(msg)
	case tea.PasteMsg:
		m.find, m.choice = nil, choice{}
		m.ed.insert(msg.Content)
	case composedMsg:
		if m.wrote(msg); m.failed != nil {
			return m, tea.Quit
		}
	case tea.ResumeMsg:
		m.away, m.due = false, true
		if err := m.raw(); err != nil {
			m.failed = err
			return m, tea.Quit
		}
	case sizeMsg:
		cmd = m.look()
	case wordsMsg:
		cmd = m.found(msg)
	}
	if m.news() {
		cmd = tea.Quit
	}
	m.draw()
	return m, cmd
}

// View is not used: the painter draws.
func (m *model) View() tea.View { return tea.NewView("") }

// goesOn takes in a key of words in whose middle a question came: they were not typed for
// it, and "a file" would allow it for good. It reports whether that was all.
func (m *model) goesOn(key, text string) bool {
	now := m.now()
	soon := now.Sub(m.pressed) < typing
	m.pressed = now
	if !m.burst {
		return false
	}
	m.burst = soon && m.asking
	switch {
	case !m.burst:
	case key == "enter":
		m.burst = false
		m.hint = "a question came: what you typed comes back behind it"
		return true
	case key == "backspace":
		if r := []rune(m.draft); len(r) > 0 {
			m.draft = string(r[:len(r)-1])
		}
		return true
	case text != "":
		m.draft += Safe(text)
		return true
	}
	m.burst = false
	return false
}

// typed takes a key in. What is typed behind a Tab waits for what that finds; Esc and
// Ctrl-C do not.
func (m *model) typed(k tea.KeyPressMsg) tea.Cmd {
	if m.goesOn(k.String(), k.Text) {
		return nil
	}
	if m.looking {
		if s := k.String(); s != "esc" && s != "ctrl+c" {
			m.early = append(m.early, k)
			return nil
		}
		m.looking, m.early = false, nil
	}
	return m.key(k.String(), k.Text)
}

// found puts in what Tab found, and takes in what was typed since.
func (m *model) found(msg wordsMsg) tea.Cmd {
	if msg.n != m.wish || !m.looking {
		return nil
	}
	m.looking = false
	m.choice = m.ed.offer(msg.wish, msg.list)
	if len(msg.list) == 0 {
		m.hint = "nothing begins like that"
	}
	var cmds []tea.Cmd
	for len(m.early) > 0 && !m.looking {
		k := m.early[0]
		m.early = m.early[1:]
		cmds = append(cmds, m.key(k.String(), k.Text))
	}
	return tea.Batch(cmds...)
}

// key takes a key in.
func (m *model) key(key, text string) tea.Cmd {
	m.hint = ""
	m.wish++ // what was asked for before is of no use now
	if m.find != nil && m.search(key, text) {
		return nil
	}
	if len(m.choice.list) > 0 {
		switch key {
		case "tab":
			m.ed.next(&m.choice, 1)
			return nil
		case "shift+tab":
			m.ed.next(&m.choice, -1)
			return nil
		case "esc":
			m.choice = choice{}
			return nil
		}
		m.choice = choice{}
	}
	switch key {
	case "enter":
		m.enter()
	case "tab":
		return m.complete()
	case "esc":
		m.s.Interrupt()
	case "ctrl+c":
		return m.interrupt()
	case "ctrl+d":
		if m.kept = slices.DeleteFunc(m.kept, isCommand); m.ed.empty() && m.back() {
			m.hint = "this was not sent"
			return nil
		}
		if m.ed.empty() {
			return tea.Quit
		}
		m.ed.edit("delete")
	case "shift+tab":
		m.hint = m.s.cycle()
	case "ctrl+r":
		m.find = &finding{at: -1, draft: m.ed.String()}
	case "ctrl+l":
		_, _ = fmt.Fprint(m.paint.w, "\x1b[2J\x1b[H") // a lost terminal is no reason to stop
		m.paint.drawn = false
	case "ctrl+z":
		m.paint.leave(m.paint.width)
		m.cook()
		m.away = true
		return tea.Suspend
	case "ctrl+g":
		return m.compose()
	default:
		if !m.ed.edit(key) && text != "" {
			m.ed.insert(text)
		}
	}
	return nil
}

// enter sends what was typed, or begins another line of it.
func (m *model) enter() {
	text := m.ed.String()
	if m.asking && !isCommand(text) && !isShell(text) {
		if !m.s.state().Asking {
			return // it has closed, and what was typed for it is for nothing else
		}
		m.ed.set("")
		_, _ = fmt.Fprintln(m.s.out, text) // where a terminal would have shown it
		m.s.Reply(text)
		return
	}
	if m.late && !isCommand(text) && !isShell(text) && strings.TrimSpace(text) != "" {
		m.late = false
		m.hint = "the question has closed: Enter again sends this as words"
		return
	}
	m.late = false
	if !isCommand(text) && !isShell(text) && unfinished(text) {
		m.ed.move(len(m.ed.text))
		m.ed.insert("\n")
		return
	}
	if strings.TrimSpace(text) == "" {
		m.ed.clear()
		m.back()
		return
	}
	if err := m.ed.history.Add(text); err != nil {
		m.hint = err.Error()
	}
	m.ed.clear()
	m.s.Line(text)
	m.due = true
}

// interrupt is Ctrl-C: it takes the line away, where Ctrl-Y finds it, and twice it leaves.
func (m *model) interrupt() tea.Cmd {
	now := m.now()
	if now.Sub(m.stopped) < twice {
		return tea.Quit
	}
	m.stopped = now
	m.ed.kill(0, len(m.ed.text))
	m.ed.clear()
	m.hint = "Ctrl-C again leaves"
	if m.s.state().Working {
		m.hint += "; Esc stops the run"
	}
	return nil
}

// complete asks for what may be meant. It comes when it is found.
func (m *model) complete() tea.Cmd {
	w, ok := wanted(m.ed.text, m.ed.at)
	if !ok {
		return nil
	}
	n := m.wish
	m.looking = true
	return m.crew.Do(func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.crew.Ctx, 3*time.Second)
		defer cancel()
		return wordsMsg{n, w, m.s.words(ctx, w)}
	})
}

// search takes a key in while the history is searched, and reports whether that was all.
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
		m.hint = "no older line holds that"
	}
	switch key {
	case "ctrl+r":
		before := h.Len()
		if f.at >= 0 {
			before = f.at
		}
		again(before)
	case "backspace", "ctrl+h":
		if r := []rune(f.words); len(r) > 0 {
			f.words = string(r[:len(r)-1])
		}
		f.at = -1
		again(h.Len())
	case "esc", "ctrl+g", "ctrl+c":
		m.ed.set(f.draft)
		m.find = nil
	case "enter":
		m.take()
	default:
		if text == "" {
			m.take()
			return false // a key that edits the line that was found
		}
		f.words += Safe(text)
		f.at = -1
		again(h.Len())
	}
	return true
}

// take ends a search with the line that it found. The earlier text of the editor becomes the draft at the end of the
// history, as if the user had gone there with Up.
func (m *model) take() {
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
