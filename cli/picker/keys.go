package picker

import (
	"slices"

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
		m.help = m.scrollHelp(key) // any other key closes it
		return nil
	}
	if m.look.full {
		m.scroll(key)
		return nil
	}
	switch {
	case m.menu != nil:
		m.menuKey(key)
		return nil
	case m.field != nil:
		return m.fieldKey(key, k.Text)
	case m.act.ask == askDelete, m.act.ask == askForm:
		return m.answer(key)
	case m.offering() && !m.query.typing && m.act.note == "":
		switch key {
		case "y":
			m.act.ask, m.act.note = noQuestion, ""
			return m.importAll()
		case "n", "esc":
			m.act.ask = noQuestion
			m.act.note, m.act.bad = "not imported; I offers it again", false
			return nil
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

// travel moves the cursor, also while the user types. It reports whether it used the key.
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

// scroll handles a key while the preview has the whole screen.
func (m *Model) scroll(key string) {
	const all = 1 << 30
	switch key {
	case "q", "esc", "enter", "o":
		m.look.full, m.look.up = false, 0
	default:
		m.look.up += scrolled(key, max(m.height-8, 1), all)
	}
}

func (m *Model) typed(key, text string) tea.Cmd {
	q := m.query.text
	if key == "esc" || key == "backspace" && q == "" {
		m.query.typing = false
		return nil
	}
	return m.setQuery(edited(q, key, text))
}

func (m *Model) command(key string) tea.Cmd {
	switch key {
	case "q":
		m.choice = Choice{}
		return tea.Quit
	case "/":
		m.query.typing = true
	case "?":
		m.help, m.helpAt = true, 0
	case "n":
		if m.o.Purpose == "" {
			m.field = &field{label: "A new task in " + m.o.Dir + ": what is to be done? (enter begins a chat, esc stays here)",
				done: func(m *Model, words string) (tea.Cmd, string) {
					m.choice = Choice{Verb: Begin, Words: words}
					return tea.Quit, ""
				}}
		}
	case "f":
		m.menu = m.filterMenu()
	case "s":
		m.menu = m.sortMenu()
	case ".":
		m.narrow.folder = !m.narrow.folder
		m.arrange()
	case "I":
		m.askImport()
	case "K", "J":
		m.look.up = max(m.look.up+map[string]int{"K": 5, "J": -5}[key], 0)
	case "k", "j", "g", "G":
		m.move(map[string]int{"k": m.at - 1, "j": m.at + 1, "g": 0, "G": len(m.rows) - 1}[key])
	case "esc":
		return m.escape()
	case "ctrl+r", "f5":
		return m.reload()
	case "u":
		if m.free() {
			return m.undo()
		}
	default:
		return m.commandForTask(key)
	}
	return nil
}

// commandForTask handles a key that acts on the task under the cursor, or on the selected tasks.
func (m *Model) commandForTask(key string) tea.Cmd {
	t, ok := m.current()
	if !ok || !m.free() {
		return nil
	}
	switch key {
	case "o":
		if m.o.Purpose != "" { // else Enter opens it
			return m.open(t)
		}
	case "r":
		if m.o.Purpose == "" {
			return m.leave(Resume, t)
		}
	case "space", " ":
		if m.picked[t.Key()] = !m.picked[t.Key()]; !m.picked[t.Key()] {
			delete(m.picked, t.Key())
		}
		m.move(m.at + 1)
	case "A":
		for _, t := range m.rows {
			m.picked[t.Key()] = true
		}
	case "t":
		m.askTags(m.chosen())
	case "e":
		m.act.ask, m.act.of = askForm, m.chosen()
	case "d":
		m.act.ask, m.act.of = askDelete, m.chosen()
	}
	return nil
}

// escape stops an action, or else clears the selection, the search, or the filters.
func (m *Model) escape() tea.Cmd {
	switch {
	case m.act.cancel != nil:
		m.act.cancel()
	case len(m.picked) > 0:
		clear(m.picked)
	case m.query.text != "":
		return m.setQuery("")
	case m.narrow.on():
		m.narrow = filter{}
		m.arrange()
	}
	return nil
}

// leave ends the screen with a task. A task can be resumed only in an existing folder on this machine; otherwise the
// screen asks for one.
func (m *Model) leave(v Verb, t Task) tea.Cmd {
	m.choice = Choice{Verb: v, Task: t}
	if v != Resume && m.o.Purpose != "resume" {
		return tea.Quit
	}
	return m.crew.Do(func() tea.Msg { return folderMsg{t, t.Workspace != "" && m.backend.HasFolder(t.Workspace)} })
}

// folderMsg reports whether the folder of a task exists on this machine.
type folderMsg struct {
	of   Task
	here bool
}

// resumeIn leaves the screen, or asks in which folder to resume the task.
func (m *Model) resumeIn(msg folderMsg) tea.Cmd {
	t, guess := msg.of, "."
	inferred := slices.Contains(t.Inferred, "workspace")
	label := ""
	switch {
	case t.Workspace == "":
		label = "The task does not record its folder."
	case msg.here && !inferred:
		return tea.Quit
	case msg.here:
		label, guess = "It seems to have been in this folder: its messages name it.", t.Workspace
	case inferred:
		label = "It seems to have been " + t.Workspace + ", which is not here."
	default:
		label = "Its folder " + t.Workspace + " is not here."
	}
	m.field = &field{label: label + " Folder to use (enter resumes, esc stays here):", text: guess, done: func(m *Model, dir string) (tea.Cmd, string) {
		if dir == "" || !m.backend.HasFolder(dir) {
			return nil, "there is no folder " + dir
		}
		m.choice.Folder = dir
		return tea.Quit, ""
	}}
	return nil
}
