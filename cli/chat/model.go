package chat

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
)

// Screen serves the user on a terminal until they leave, ctx ends, or it fails. It leaves the terminal as it found
// it; later output of the chat goes to out.
func (s *Session) Screen(ctx context.Context, in, out *os.File) error {
	history, err := OpenHistory(s.o.History)
	if err != nil {
		s.complain(err)
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("take the terminal: %w", err)
	}
	s.locked(func() { s.st.echoes, s.st.byKey = true, true })
	const pasteOn, pasteOff = "\x1b[?2004h", "\x1b[?2004l"
	m := &model{
		s: s, crew: display.NewCrew(s.ctx), ed: newEditor(history), paint: painter{w: out}, now: time.Now, in: in, tty: out,
		size: func() (int, int) { return sizeOf(out) },
	}
	m.cook = func() {
		_, _ = io.WriteString(out, pasteOff)
		_ = term.Restore(int(in.Fd()), before)
	}
	m.raw = func() error {
		if _, err := term.MakeRaw(int(in.Fd())); err != nil {
			return fmt.Errorf("take the terminal: %w", err)
		}
		_, _ = io.WriteString(out, pasteOn)
		m.paint.drawn = false
		return nil
	}
	_, _ = io.WriteString(out, pasteOn) // a lost terminal is noticed at the next read
	err = display.RunScreen(ctx, m, in, out, func(ctx context.Context, p *tea.Program) {
		for ctx.Err() == nil {
			select {
			case <-s.out.wake:
				p.Send(wakeMsg{})
				_ = client.Sleep(ctx, drawEvery) // what comes meanwhile is drawn at once; a key is drawn when it comes
			case <-ctx.Done():
			}
		}
	}, tea.WithoutRenderer(), tea.WithColorProfile(colorprofile.ANSI))
	m.crew.Close()
	for _, text := range m.unsent() {
		_ = history.Add(text) // for the next chat; the start of the chat warns when the history cannot be kept
	}
	width, _ := m.size()
	m.paint.leave(width)
	m.cook()
	s.out.through(out)
	return cmp.Or(err, m.failed)
}

// sizeOf returns a terminal's size; one that does not report its size counts as an old one.
func sizeOf(f *os.File) (width, height int) {
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// Most rows of the parts below what is printed.
const (
	tailRows   = 6
	queueRows  = 5
	choiceRows = 8
)

// drawEvery is the least time between two redraws while a run writes.
const drawEvery = 20 * time.Millisecond

// twice is the longest time between the two Ctrl-C that leave the chat; typing is the longest time between two keys
// of one text.
const (
	twice  = 2 * time.Second
	typing = 600 * time.Millisecond
)

// model is the editor and the rows around it. It is for the goroutine of the program.
type model struct {
	s     *Session
	ed    *editor
	paint painter
	size  func() (width, height int)
	now   func() time.Time

	asking  bool
	draft   string    // what the user was typing when a question came
	kept    []string  // words that could not be sent; they come back into an empty editor
	due     bool      // draft or kept come back as soon as the user stops typing
	late    bool      // what is in the editor was typed for a question that has closed
	burst   bool      // a question came while the user typed words, and the user types on
	shown   time.Time // when the question appeared
	reason  bool      // the line is the reason for a "no"
	sure    bool      // the next Enter gives words to the run although a question waits
	pressed time.Time // when the last key was pressed
	hint    string
	stopped time.Time // when the last Ctrl-C was pressed
	find    *finding
	choice  choice
	wish    int               // number of the newest search for words
	closed  int               // 1 + the start of the word whose pop-up Esc closed; 0 = no word
	early   []tea.KeyPressMsg // keys that were typed after a Tab whose search has not ended
	looking bool              // a Tab waits for the end of its search
	stale   bool              // the pop-up belongs to an earlier text: the search for the present text has not ended
	ticking bool              // a tickMsg is on its way
	failed  error             // why the screen could not take the terminal again
	away    bool              // another program has the terminal: nothing is drawn

	in  io.Reader // the terminal, for the user's editor
	tty io.Writer

	crew *display.Crew
	raw  func() error // gives the terminal to the screen again
	cook func()       // gives it to another program for a while
}

type (
	wakeMsg  struct{}
	sizeMsg  struct{}
	tickMsg  struct{} // what changes with time alone is to be drawn again
	imageMsg struct { // how attaching a pasted path as a picture ended
		text string
		err  error
	}
)

func (m *model) pollSize() tea.Cmd {
	return tea.Tick(400*time.Millisecond, func(time.Time) tea.Msg { return sizeMsg{} })
}

// news applies changes of the chat's state, and reports whether the chat is over.
func (m *model) news() bool {
	st := m.s.state()
	if st.Asking != m.asking {
		m.turned(st.Asking)
	}
	if n := len(st.Back); n > 0 {
		for _, line := range st.Back {
			m.hold(line)
		}
		m.s.change(func(st *state) { st.Back = st.Back[n:] })
	}
	if st.Retype != "" && st.Asking {
		why, no := strings.CutPrefix(st.Retype, "n ")
		switch letters := st.Letters != ""; {
		case m.ed.empty() && letters && no:
			m.reason = true
			m.ed.set(why)
		case m.ed.empty() && !letters:
			m.ed.set(st.Retype)
		default:
			m.hold(st.Retype)
		}
		m.s.change(func(st *state) { st.Retype = "" })
	}
	// While the user still types, the next keys would follow the text that comes back.
	if m.due && m.ed.empty() && !m.asking && !m.away && m.now().Sub(m.pressed) >= typing {
		m.due = false
		m.back()
	}
	return st.Over
}

// hold keeps a line that failed in the history of this chat alone, where Up finds it.
func (m *model) hold(line string) {
	if last := m.ed.place == m.ed.history.Len(); strings.TrimSpace(line) != "" && m.ed.history.put(line) && last {
		m.ed.place = m.ed.history.Len()
	}
}

// turned reacts to a question that was opened or closed.
func (m *model) turned(asking bool) {
	m.asking, m.shown, m.sure = asking, m.now(), false
	if m.reason { // the line belonged to the question that is gone
		m.hold(m.ed.String())
		m.reason = false
		m.ed.clear()
	}
	if m.find != nil {
		m.ed.set(m.find.draft)
	}
	m.find, m.choice = nil, choice{}
	switch {
	case asking: // a half line is no answer
		// A user who looks elsewhere notices it; a lost terminal is no reason to stop.
		_, _ = fmt.Fprint(m.paint.w, display.Attention(m.s.o.Display.Notify, "Roost asks"))
		if m.draft != "" {
			m.kept = append(m.kept, m.draft)
		}
		m.late, m.draft = false, m.ed.String()
		m.ed.clear()
		if m.s.state().Letters != "" {
			m.burst = false
		} else if m.burst = m.draft != "" && m.now().Sub(m.pressed) < typing; m.burst {
			m.hint = "a question came: what you type comes back after it; wait a moment to answer"
		}
	case m.ed.empty():
		m.due = true
	default: // an answer is no prompt
		m.late = true
		m.kept, m.draft = keep(m.draft, m.kept...), ""
	}
}

// keep returns rest with text in front, unless text is empty.
func keep(text string, rest ...string) []string {
	if text == "" {
		return rest
	}
	return append([]string{text}, rest...)
}

// back puts a waiting text into an empty editor: first the text that the user was typing when a question came, then
// words that could not be sent. It is not called when the user empties the editor by hand: what they type next must
// not follow other words.
func (m *model) back() (some bool) {
	if m.asking || m.away || !m.ed.empty() {
		return false
	}
	if all := keep(m.draft, m.kept...); len(all) > 0 {
		m.ed.set(all[0])
		m.draft, m.kept, some = "", all[1:], true
	}
	return some
}

// unsent returns the texts that wait for the editor, and its own text unless that answers a question.
func (m *model) unsent() []string {
	all := keep(m.draft, m.kept...)
	if !m.asking {
		all = append(all, m.ed.String())
	}
	return all
}

// draw prints new lines, and then the rows at the bottom of the screen.
func (m *model) draw() {
	if m.away {
		return
	}
	width, height := m.size()
	above, tail := m.s.out.take()
	m.paint.draw(above, m.rows(tail, width, height), width)
}

// rows returns the rows below the printed lines.
func (m *model) rows(tail string, width, height int) rows {
	st, style := m.s.state(), m.s.style
	var r rows
	dim := func(text string) {
		if text != "" {
			r.list = append(r.list, cut(style, view.Dim, text, width))
		}
	}
	prompt, more := "› ", "  "
	if m.find != nil {
		prompt = style.Paint(view.Dim, "(search: "+display.Cut(m.find.words, max(width/2, 4))+") ")
	}
	if m.reason {
		prompt = "  reason for the model (Enter for none, Esc goes back) > "
	}
	if tail != "" {
		list := hard(tail, width)
		list = list[max(len(list)-tailRows, 0):]
		if last := list[len(list)-1]; m.asking && m.find == nil && !m.reason && last.columns() < width-12 {
			prompt, list = string(last), list[:len(list)-1]
			if st.Letters != "" && m.arming().Takes(m.now(), m.ed.String()) {
				prompt += " > "
			} else if st.Letters != "" {
				prompt += " … "
			}
		}
		r.list = append(r.list, list...)
	}
	for i, q := range st.Queue[:min(len(st.Queue), queueRows)] {
		dim(fmt.Sprintf("  queued %d: %s", i+1, m.s.short(q.Text)))
	}
	if over := len(st.Queue) - queueRows; over > 0 {
		dim(fmt.Sprintf("  and %d more", over))
	}
	if !m.asking {
		dim(st.unasked())
	}
	dim(m.s.along())
	switch {
	case st.Command:
		dim("· your command runs; Esc stops it")
	case m.asking:
	case st.Working:
		dim("· working; Esc stops it, words are queued")
	case st.Busy:
		dim("· one moment; Esc stops it")
	}
	parts := hard(prompt, width)
	r.list, prompt = append(r.list, parts[:len(parts)-1]...), string(parts[len(parts)-1])
	below := m.below(width)
	most := max(height-len(r.list)-len(below)-1, 3)
	e := typed(prompt, more, m.ed, width, most)
	r.y, r.x = len(r.list)+e.y, e.x
	r.list = append(append(r.list, e.list...), below...)
	from := min(r.y, max(len(r.list)-height, 0))
	r.list, r.y = r.list[from:min(from+height, len(r.list))], r.y-from
	return r
}

// below returns the rows under the editor: the pop-up, a hint, and the status line at the bottom.
func (m *model) below(width int) (out []row) {
	style := m.s.style
	out = m.choice.rows(style, width)
	if m.hint != "" {
		out = append(out, cut(style, view.Dim, "  "+m.hint, width))
	}
	if line := m.s.state().status(m.now(), max(width-1, 1)); line != "" {
		out = append(out, row(style.Paint(view.Dim, line)))
	}
	return out
}

// tick schedules a redraw for changes that only time causes: the spinner, and a question that becomes armed. Without
// these, time alone does not wake the screen.
func (m *model) tick() tea.Cmd {
	st := m.s.state()
	wait := time.Duration(0)
	switch {
	case st.Asking && st.Letters != "":
		wait = m.arming().In(m.now())
	case st.Working && !st.Asking:
		wait = frame
	}
	if wait <= 0 || m.ticking {
		return nil
	}
	m.ticking = true
	return tea.Tick(wait, func(time.Time) tea.Msg { return tickMsg{} })
}

// Init starts to poll the terminal's size, because no event reports a change of it.
func (m *model) Init() tea.Cmd { return m.pollSize() }

// Update applies one message, and draws.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	m.news() // a key applies to what is on the screen now
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		cmd = m.typed(msg)
	case tea.PasteMsg:
		cmd = m.pasted(msg.Content)
	case imageMsg:
		if msg.err != nil { // a path that names no picture becomes text
			m.ed.insert(msg.text)
			m.hint = "not attached: " + display.OneLine(msg.err.Error())
		}
	case tickMsg:
		m.ticking = false
	case composedMsg:
		if m.wrote(msg); m.failed != nil {
			return m, tea.Quit
		}
	case tea.ResumeMsg:
		m.away, m.due, m.shown = false, true, m.now()
		if err := m.raw(); err != nil {
			m.failed = err
			return m, tea.Quit
		}
	case sizeMsg:
		cmd = m.pollSize()
	case wordsMsg:
		cmd = m.found(msg)
	}
	if m.news() {
		cmd = tea.Quit
	}
	m.draw()
	if next := m.tick(); next != nil {
		cmd = tea.Batch(cmd, next)
	}
	return m, cmd
}

// pasted inserts pasted text. A pasted path, or that of a file dropped on the terminal, may name a picture. (A
// terminal does not pass on a picture itself.)
func (m *model) pasted(text string) tea.Cmd {
	m.find, m.choice, m.pressed = nil, choice{}, m.now()
	path, ok := imagePath(text)
	if !ok || m.asking {
		m.ed.insert(text)
		return nil
	}
	return m.crew.Do(func() tea.Msg { return imageMsg{text, m.s.attach(path)} })
}

// View is not used: the painter draws.
func (m *model) View() tea.View { return tea.NewView("") }

// typedOn handles a key of words during which a question came. Such keys do not answer the question: the words "a file"
// would allow it for good. typedOn reports whether it used the key.
func (m *model) typedOn(key, text string) bool {
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
		m.hint = "a question came: what you typed comes back after it"
		return true
	case key == "backspace", text != "":
		m.toDraft(key, text)
		return true
	}
	m.burst = false
	return false
}

// toDraft applies a key to the draft, which comes back after the question.
func (m *model) toDraft(key, text string) {
	if key == "backspace" {
		m.draft = withoutLast(m.draft)
	}
	m.draft += display.Safe(text)
}

// withoutLast removes the last character of a text.
func withoutLast(text string) string {
	_, n := utf8.DecodeLastRuneInString(text)
	return text[:len(text)-n]
}

// typed handles a key. Keys after a Tab wait for the end of its search; Esc and Ctrl-C end that wait.
func (m *model) typed(k tea.KeyPressMsg) tea.Cmd {
	if st := m.s.state(); m.asking && st.Letters != "" {
		if m.letter(k.String(), k.Text, st.Letters) {
			return nil
		}
	} else if m.typedOn(k.String(), k.Text) {
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

// found opens the pop-up with the words that a search found. A Tab that waits takes the first word; the keys that were
// typed since then follow.
func (m *model) found(msg wordsMsg) tea.Cmd {
	if msg.n != m.wish {
		return nil
	}
	m.choice, m.stale = m.ed.open(msg.wish, msg.list), false
	if !m.looking {
		return nil
	}
	m.looking = false
	var cmds []tea.Cmd
	switch {
	case len(m.choice.list) > 0:
		cmds = append(cmds, m.take())
	case len(msg.list) == 0:
		m.hint = "no completion fits that"
	}
	for len(m.early) > 0 && !m.looking {
		k := m.early[0]
		m.early = m.early[1:]
		cmds = append(cmds, m.key(k.String(), k.Text))
	}
	return tea.Batch(cmds...)
}

// key handles a key that neither a question nor a waiting Tab used.
func (m *model) key(key, text string) (cmd tea.Cmd) {
	m.hint = ""
	if m.find != nil && m.search(key, text) {
		return nil
	}
	if len(m.choice.list) > 0 {
		if cmd, done := m.pick(key); done {
			return cmd
		}
	}
	before := string(m.ed.text)
	defer func() {
		switch changed := string(m.ed.text) != before; {
		case changed && (text != "" || key == "backspace" || key == "ctrl+h"):
			cmd = tea.Batch(cmd, m.suggest())
		case changed || key == "left" || key == "right" || key == "home" || key == "end":
			m.wish++ // the result of a running search is of no use now
			m.choice, m.closed = choice{}, 0
		}
	}()
	switch key {
	case "enter":
		m.enter()
	case "tab":
		if cmd = m.suggest(); cmd != nil {
			m.looking = true
		}
		return cmd
	case "esc":
		m.s.Interrupt()
	case "ctrl+c":
		return m.interrupt()
	case "ctrl+d":
		if m.ed.empty() && m.back() {
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
	case "?":
		if m.ed.empty() {
			m.s.out.block(keysPage)
			return nil
		}
		m.ed.insert(text)
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
	words := !isCommand(text) && !isShell(text)
	if st := m.s.state(); m.asking && words && st.Letters != "" && strings.TrimSpace(text) != "" {
		if !m.sure {
			m.sure = true
			m.hint = "a question waits: Ctrl-U clears this line to answer it; Enter again gives these words to the run"
			return
		}
		m.sure = false
		_ = m.ed.history.Add(text) // as below
		m.ed.clear()
		m.s.Line("/steer " + text)
		return
	}
	if m.asking && words {
		if !m.s.state().Asking {
			return // the question has closed, and its answer is for nothing else
		}
		m.ed.set("")
		_, _ = fmt.Fprintln(m.s.out, text) // where a terminal would have shown it
		m.s.Reply(text)
		return
	}
	if m.late && words && strings.TrimSpace(text) != "" {
		m.late = false
		m.hint = "the question has closed: Enter again sends this as words"
		return
	}
	m.late = false
	if words && unfinished(text) {
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

// interrupt handles Ctrl-C: it removes the line, which Ctrl-Y inserts again. A second Ctrl-C leaves the chat.
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
