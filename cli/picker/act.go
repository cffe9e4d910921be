package picker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/term"
)

// deleteText describes a deletion: which copies go where, and which stay. keys are the keys that answer.
func deleteText(list []Task) (text, keys string) {
	trash, hidden := tally(deletions(list, false))
	also := len(deletions(list, true)) - len(list)
	keys = "y yes · n no"
	if also > 0 {
		keys = "y only what is shown · a all copies · n no"
	}
	t := list[0]
	switch {
	case len(list) > 1:
		var parts []string
		if trash > 0 {
			parts = append(parts, fmt.Sprintf("%d of Roost: into the trash", trash))
		}
		if hidden > 0 {
			parts = append(parts, fmt.Sprintf("%d of other tools: hidden here, their folders stay where they are", hidden))
		}
		if also > 0 {
			parts = append(parts, fmt.Sprintf("%d copies elsewhere stay", also))
		}
		text = fmt.Sprintf("Delete %d tasks? %s.", len(list), strings.Join(parts, "; "))
	case also > 0:
		places := api.Each(t.Also, func(c Copy) string { return c.Where })
		text = fmt.Sprintf("Delete %q? The one in %s goes to the trash", name(t), t.Where)
		if hidden > 0 {
			text = fmt.Sprintf("Delete %q? The one in %s is hidden here, its folder stays", name(t), t.Where)
		}
		text += "; the copy in " + strings.Join(places, ", ") + " stays and is listed then."
	case hidden > 0:
		text = fmt.Sprintf("Delete %q? It is hidden here; its folder in %s stays where it is.", name(t), t.Where)
	default:
		text = fmt.Sprintf("Delete %q? It goes to the trash.", name(t))
	}
	return text, keys
}

// question returns the question for the last line. On a narrow terminal it is shorter: the keys that answer it are
// never cut off.
func (m *Model) question() string {
	a := &m.act
	switch a.ask {
	case askDelete:
		_, keys := deleteText(a.of)
		return m.fitted("Delete?  "+keys+" (u takes it back)", "Delete?  "+keys, "Delete?  y · n")
	case askForm:
		var keys, names []string
		for _, f := range Forms {
			keys, names = append(keys, f.Key), append(names, f.Key+" "+f.Name)
		}
		what := "Export as "
		if len(a.of) > 1 {
			what = fmt.Sprintf("Export %d tasks as ", len(a.of))
		}
		return m.fitted(
			what+strings.Join(names, " · ")+" · esc no",
			strings.Join(names, " · ")+" · esc no",
			"Export  "+strings.Join(keys, " ")+" · esc no",
			strings.Join(keys, " ")+" · esc")
	}
	return ""
}

// answer handles the key that answers a question. Enter is never yes.
func (m *Model) answer(key string) tea.Cmd {
	ask, list := m.act.ask, m.act.of
	m.act.ask, m.act.bad = noQuestion, false
	if ask == askDelete {
		switch key {
		case "y", "Y":
			return m.remove(list, false)
		case "a", "A":
			if slices.ContainsFunc(list, func(t Task) bool { return len(t.Also) > 0 }) {
				return m.remove(list, true)
			}
		}
		m.act.note = "not deleted"
		return nil
	}
	for _, f := range Forms {
		if f.Key == key {
			return m.export(list, f.Form)
		}
	}
	m.act.note = "not exported"
	return nil
}

// said returns the line about the present action or question, "" when there is none.
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
	}
	return a.note
}

// doneMsg ends an action.
type doneMsg struct {
	note   string
	err    error
	change func(*Model) tea.Cmd // applies the effect of the action to the list; nil = it had none
}

type tickMsg struct{}

// begin runs an action in the background.
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

// deletions returns the deletions for the listed copies of tasks, or for all copies.
func deletions(list []Task, all bool) (copies []deletion) {
	for _, t := range list {
		copies = append(copies, deletion{task: t, key: t.Key()})
		for _, c := range t.Also {
			if all {
				copies = append(copies, deletion{task: t, key: c.Key})
			}
		}
	}
	return copies
}

// remove deletes the listed copies of tasks, or all copies.
func (m *Model) remove(list []Task, all bool) tea.Cmd {
	return m.begin("deleting", func(ctx context.Context) doneMsg {
		var gone []deletion
		var err error
		for _, d := range deletions(list, all) {
			if d.token, err = m.backend.Delete(ctx, d.key); err != nil {
				break
			}
			gone = append(gone, d)
		}
		if len(gone) == 0 {
			return doneMsg{err: err}
		}
		// The copies that were deleted before the failure can be taken back.
		return doneMsg{note: deletedNote(gone, list), err: err, change: func(m *Model) tea.Cmd {
			again := false
			for _, d := range gone {
				m.gone[d.key] = true
				delete(m.picked, d.task.Key())
				again = again || foreign(d.key) || len(d.task.Also) > 0 // the same task elsewhere is a row now
			}
			m.act.deleted = append(m.act.deleted, gone)
			if again {
				return m.reload()
			}
			return nil
		}}
	})
}

// deletedNote returns the note about a finished deletion.
func deletedNote(gone []deletion, list []Task) string {
	trash, hidden := tally(gone)
	const back = " · u takes it back"
	t := list[0]
	switch {
	case len(list) > 1:
		return fmt.Sprintf("%d in the trash, %d hidden (their folders stay)%s", trash, hidden, back)
	case len(gone) <= len(t.Also):
		return "deleted in " + t.Where + ": " + name(t) + "; it stays in " + t.Also[0].Where + back
	case hidden > 0 && trash == 0:
		return "hidden: " + name(t) + "; its folder stays" + back
	}
	return "deleted: " + name(t) + back
}

// tally counts the deletions into the trash and the hidden tasks.
func tally(list []deletion) (trash, hidden int) {
	for _, d := range list {
		if foreign(d.key) {
			hidden++
		} else {
			trash++
		}
	}
	return trash, hidden
}

func (m *Model) undo() tea.Cmd {
	n := len(m.act.deleted)
	if n == 0 {
		m.act.note, m.act.bad = "nothing was deleted here; roost trash list shows what was before", false
		return nil
	}
	last := m.act.deleted[n-1]
	return m.begin("putting back", func(ctx context.Context) doneMsg {
		for i, d := range last {
			if err := m.backend.Restore(ctx, d.token); err != nil {
				return doneMsg{err: err, change: func(m *Model) tea.Cmd { return m.back(last[:i], last[i:]) }}
			}
		}
		return doneMsg{note: backNote(last), change: func(m *Model) tea.Cmd { return m.back(last, nil) }}
	})
}

// back lists restored tasks again. The rest of their deletion can still be undone.
func (m *Model) back(list, rest []deletion) tea.Cmd {
	m.act.deleted = m.act.deleted[:len(m.act.deleted)-1]
	if len(rest) > 0 {
		m.act.deleted = append(m.act.deleted, rest)
	}
	again := false
	for _, d := range list {
		delete(m.gone, d.key)
		m.all = slices.DeleteFunc(m.all, func(t Task) bool { // a copy that was listed in its place
			return slices.ContainsFunc(d.task.Also, func(c Copy) bool { return c.Key == t.Key() })
		})
		if !slices.ContainsFunc(m.all, func(t Task) bool { return t.Key() == d.task.Key() }) {
			m.all = append(m.all, d.task) // the list was read while it was away
		}
		again = again || foreign(d.key) || len(d.task.Also) > 0
	}
	m.sort()
	if len(list) > 0 {
		if i := m.rowOf(list[0].task.Key()); i >= 0 {
			m.move(i)
		}
	}
	if again {
		return m.reload()
	}
	return nil
}

// backNote returns the note about restored tasks.
func backNote(list []deletion) string {
	trash, hidden := tally(list)
	switch {
	case len(list) > 1:
		return fmt.Sprintf("back again: %d from the trash, %d that were hidden", trash, hidden)
	case hidden > 0:
		return "shown again: " + name(list[0].task)
	}
	return "put back: " + name(list[0].task)
}

func (m *Model) export(list []Task, form string) tea.Cmd {
	clear(m.picked)
	return m.begin("exporting", func(ctx context.Context) doneMsg {
		var notes []string
		for i, t := range list {
			note, err := m.backend.Export(ctx, t, form)
			if err != nil && i > 0 {
				err = fmt.Errorf("%d of %d exported; %s: %w", i, len(list), name(t), err)
			}
			if err != nil {
				return doneMsg{err: err}
			}
			notes = append(notes, note)
		}
		if len(list) > 1 {
			notes = append([]string{fmt.Sprintf("%d tasks exported", len(list))}, notes...)
		}
		return doneMsg{note: strings.Join(notes, "; ")}
	})
}

// askTags asks for the tags of tasks.
func (m *Model) askTags(list []Task) {
	what := fmt.Sprintf("%d tasks", len(list))
	if len(list) == 1 {
		what = fmt.Sprintf("%q", name(list[0]))
		if tags := list[0].Tags; len(tags) > 0 {
			what += " (#" + strings.Join(tags, " #") + ")"
		}
	}
	m.field = &field{label: "Tags for " + what + ": work adds one, -work removes it (enter keeps, esc stays here)", done: func(m *Model, text string) (tea.Cmd, string) {
		var add, remove []string
		for _, word := range strings.Fields(text) {
			if tag, ok := strings.CutPrefix(word, "-"); ok {
				remove = append(remove, tag)
			} else {
				add = append(add, strings.TrimLeft(word, "+#"))
			}
		}
		if len(add)+len(remove) == 0 {
			return nil, ""
		}
		return m.tag(list, add, remove), ""
	}}
}

func (m *Model) tag(list []Task, add, remove []string) tea.Cmd {
	clear(m.picked)
	return m.begin("tagging", func(ctx context.Context) doneMsg {
		tags := map[string][]string{}
		var err error
		for _, t := range list {
			var now []string
			if now, err = m.backend.Tag(ctx, t, add, remove); err != nil {
				break
			}
			tags[t.Key()] = now
		}
		return doneMsg{note: "tagged: " + api.Plural(len(tags), "task"), err: err, change: func(m *Model) tea.Cmd {
			for i := range m.all {
				if now, ok := tags[m.all[i].Key()]; ok {
					m.all[i].Tags = now
					m.all[i].row = rowText(m.all[i])
				}
			}
			return nil
		}}
	})
}

type offerMsg struct{}

// single counts the tasks that have no copy in Roost, and their bytes.
func (m *Model) single() (tasks int, bytes int64) {
	for _, t := range m.all {
		if foreign(t.Key()) && len(t.Also) == 0 && !m.gone[t.Key()] {
			tasks, bytes = tasks+1, bytes+t.Size
		}
	}
	return tasks, bytes
}

// offer asks once whether to import, when the list is complete.
func (m *Model) offer() tea.Cmd {
	if n, _ := m.single(); m.act.offered || n == 0 || m.o.Purpose != "" {
		return nil
	}
	m.act.offered = true
	return m.crew.Do(func() tea.Msg {
		if m.backend.Offer() {
			return offerMsg{}
		}
		return nil
	})
}

// askImport offers the import again.
func (m *Model) askImport() {
	if n, _ := m.single(); n == 0 || m.o.Purpose != "" {
		m.act.note, m.act.bad = "every task has a copy in Roost", false
		return
	}
	m.act.ask = askImport
}

// offering reports whether the screen shows the offer of an import.
func (m *Model) offering() bool {
	return m.act.ask == askImport && m.act.doing == "" && m.field == nil && m.menu == nil
}

// The approximate speed of an import, which copies, syncs and verifies.
const (
	importBytes = 20 << 20              // in a second
	importTask  = 15 * time.Millisecond // for each task, besides its bytes
)

// offerLines returns the offer of an import: the reason, the amount, the originals, and the keys that answer.
func (m *Model) offerLines(most int) []string {
	n, bytes := m.single()
	seconds := 1 + int64(time.Duration(n)*importTask/time.Second) + bytes/importBytes
	text := fmt.Sprintf("%s (%s) of other tools are only in their own folders. A copy in Roost is safe when the editor deletes, rewinds or "+
		"shortens a task. It takes about %d s and leaves the originals as they are. All can be read and resumed without it.",
		api.Plural(n, "task"), api.SizeText(bytes), seconds)
	keys := m.fitted("Import copies?  y yes · n not now (I asks again)", "Import copies?  y yes · n not now", "Import?  y yes · n no", "Import?  y · n")
	lines := wrap(text, m.width)
	if len(lines) >= most {
		lines = lines[:0]
		if most > 1 {
			lines = append(lines, cut(fmt.Sprintf("%s (%s) of other tools have no copy in Roost.", api.Plural(n, "task"), api.SizeText(bytes)), m.width))
		}
	}
	return append(lines, keys)
}

func (m *Model) importAll() tea.Cmd {
	report := new(atomic.Value)
	cmd := m.begin("importing", func(ctx context.Context) doneMsg {
		text, err := m.backend.Import(ctx, func(text string) { report.Store(text) })
		return doneMsg{note: text, err: err, change: (*Model).reload} // the copies from before a failure are there
	})
	m.act.progress = report
	return tea.Batch(cmd, m.after(tickEvery, tickMsg{}))
}

const tickEvery = 100 * time.Millisecond

// open shows a task in the user's pager, and then this screen again. Without a pager the preview takes the whole screen.
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
