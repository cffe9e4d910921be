package term

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"github.com/roost-dev/roost/api"
)

// Crew runs the background work of a screen. bubbletea starts commands and does not wait for them; the crew ends them and
// waits for them when the screen closes, so that no goroutine reads a task or writes a file while the next command of
// roost runs.
type Crew struct {
	Ctx    context.Context //nolint:containedctx // ends when the screen closes
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	busy   sync.WaitGroup
}

// NewCrew makes the crew of a screen.
func NewCrew(ctx context.Context) *Crew {
	ctx, cancel := context.WithCancel(ctx)
	return &Crew{Ctx: ctx, cancel: cancel}
}

// panicMsg holds the value of a command's panic.
type panicMsg struct{ what any }

// Do makes a command from a function. A panic of f ends the screen, like a panic of the model (see Guard).
func (c *Crew) Do(f func() tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil
		}
		c.busy.Add(1)
		c.mu.Unlock()
		defer c.busy.Done()
		defer func() {
			if what := recover(); what != nil {
				msg = panicMsg{what}
			}
		}()
		return f()
	}
}

// Close prevents new work, cancels the running work, and waits for its end.
func (c *Crew) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.busy.Wait()
}

// ErrPanic: a bug in Roost ended the screen. The terminal is as it was.
var ErrPanic = errors.New("the screen failed")

// RunScreen shows a screen until it quits, ctx ends, or it fails. beside, which may be nil, runs meanwhile; its context
// ends with the screen. Signals are the caller's: it knows which exit code belongs to which.
func RunScreen(ctx context.Context, screen tea.Model, in, out *os.File, beside func(context.Context, *tea.Program),
	options ...tea.ProgramOption) error {
	var p *tea.Program
	var failed any
	g := &Guard{Screen: screen, Failed: func(what any) { failed = what }, Quit: func() { p.Quit() }}
	p = tea.NewProgram(g, append(options, tea.WithInput(&pasting{File: in}), tea.WithOutput(out),
		tea.WithoutSignalHandler(), tea.WithFilter(sized))...)
	running, end := context.WithCancel(ctx)
	var busy sync.WaitGroup
	// The end of the context ends the screen like the user does: if bubbletea got the context, it would leave its reader of
	// the terminal behind.
	busy.Go(func() {
		<-running.Done()
		p.Quit() // it gives up when the program has ended
	})
	if beside != nil {
		busy.Go(func() { beside(running, p) })
	}
	_, err := p.Run()
	end()
	busy.Wait()
	g.busy.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case failed != nil:
		return fmt.Errorf("%w: %v", ErrPanic, failed)
	case errors.Is(err, tea.ErrProgramPanic):
		return ErrPanic
	}
	return api.Failed(err, "show the screen")
}

// sized gives a terminal that does not report its size, such as a serial console, the size of an old one.
func sized(_ tea.Model, msg tea.Msg) tea.Msg {
	if s, is := msg.(tea.WindowSizeMsg); is && (s.Width <= 0 || s.Height <= 0) {
		return tea.WindowSizeMsg{Width: 80, Height: 24}
	}
	return msg
}

// Alone is a function that tea.Exec runs with the terminal to itself. It uses none of the streams of bubbletea.
type Alone func() error

// Run implements tea.ExecCommand, as the setters do.
func (a Alone) Run() error        { return a() }
func (Alone) SetStdin(io.Reader)  {} //nolint:revive // see Run
func (Alone) SetStdout(io.Writer) {} //nolint:revive // see Run
func (Alone) SetStderr(io.Writer) {} //nolint:revive // see Run

// Guard wraps the model of a screen. It joins torn keys (see Keys), and ends the program when the model panics. After
// a panic, bubbletea itself restores the terminal while its reader still waits for input, and that reader would take
// the next keys; the normal end of a program waits for the reader.
type Guard struct {
	Screen tea.Model
	Failed func(what any) // records the value of the panic
	Quit   func()         // ends the program after a panic in View

	keys Keys
	once sync.Once
	busy sync.WaitGroup
}

// Init implements tea.Model.
func (g *Guard) Init() (cmd tea.Cmd) {
	defer g.catch(&cmd)
	return g.Screen.Init()
}

// Update implements tea.Model. It returns g after a panic, too: a nil model would make bubbletea itself panic.
func (g *Guard) Update(msg tea.Msg) (next tea.Model, cmd tea.Cmd) {
	next = g
	defer g.catch(&cmd)
	if p, is := msg.(panicMsg); is {
		panic(p.what)
	}
	msgs, cmd := g.keys.Take(msg)
	for _, msg := range msgs {
		_, more := g.Screen.Update(msg)
		cmd = tea.Batch(cmd, more)
	}
	return g, cmd
}

// View implements tea.Model. It cannot request the end, so Quit does.
func (g *Guard) View() (v tea.View) {
	var cmd tea.Cmd
	defer func() {
		if cmd != nil {
			v = tea.NewView("")
			g.once.Do(func() { g.busy.Go(g.Quit) })
		}
	}()
	defer g.catch(&cmd)
	return g.Screen.View()
}

func (g *Guard) catch(cmd *tea.Cmd) {
	if what := recover(); what != nil {
		g.Failed(what)
		*cmd = tea.Quit
	}
}

// A terminal sends Esc as the byte that also begins the sequences of other keys: the arrows, and keys with Alt. A slow
// line splits these sequences, and a reader takes the first piece for Esc, which stops a run. So an Esc counts only when
// no other byte belongs to it.

// pasting reads a terminal. After the start of a paste, the reader of bubbletea takes all input for text until the end marker
// comes. A bad line may lose that marker; then Ctrl-C, read alone, ends the paste, so that keys work again.
//
// That reader drops the beginning of a character whose rest comes late, so pasting passes on whole characters.
type pasting struct {
	*os.File
	open bool   // the end of a paste has not come
	torn string // the beginning of a character
}

func (p *pasting) Read(b []byte) (int, error) {
	held := copy(b, p.torn)
	n, err := p.File.Read(b[held:])
	if n += held; p.open && string(b[held:n]) == "\x03" {
		n = copy(b, "\x1b[201~"+p.torn+"\x03")
	}
	i := n - 1
	for i > 0 && n-i < utf8.UTFMax && !utf8.RuneStart(b[i]) {
		i--
	}
	if p.torn = ""; n > 0 && !utf8.FullRune(b[i:n]) {
		n, p.torn = i, string(b[i:n])
	}
	begin, end := bytes.LastIndex(b[:n], []byte("\x1b[200~")), bytes.LastIndex(b[:n], []byte("\x1b[201~"))
	p.open = begin > end || p.open && end < 0
	return n, err
}

// certain is the time without a byte after which an Esc counts as the key itself.
const certain = 200 * time.Millisecond

// longest bounds the sequence after an Esc.
const longest = 16

// Keys joins sequences of bytes that a slow line has split. It is for the goroutine of one screen.
type Keys struct {
	held  []tea.KeyPressMsg // an Esc, and the keys that may belong to its sequence
	n     int               // counts the changes of held
	paste *strings.Builder  // the text of a paste whose beginning was split; nil = none
}

// restMsg: no key came for a while after an Esc.
type restMsg struct{ n int }

// Take handles a message, and returns the messages for the screen. The command begin sends an Esc to the screen a
// moment later, if no other key belongs to it.
func (k *Keys) Take(msg tea.Msg) (out []tea.Msg, begin tea.Cmd) {
	switch msg := msg.(type) {
	case restMsg:
		if msg.n == k.n {
			out = k.free()
		}
		return out, nil
	case tea.PasteMsg:
		out = k.free()
		if k.paste != nil { // its end
			k.paste.WriteString(msg.Content)
			return k.pasted(), nil
		}
		return append(out, msg), nil
	case tea.KeyPressMsg:
		return k.press(msg)
	}
	return []tea.Msg{msg}, nil
}

// press handles a key.
func (k *Keys) press(key tea.KeyPressMsg) (out []tea.Msg, begin tea.Cmd) {
	switch name := key.String(); {
	case name == "esc":
		out = k.free() // of two Esc the first one counts
		k.held = []tea.KeyPressMsg{key}
	case name == "alt+[" || name == "alt+O": // torn one byte later
		out = k.free()
		k.held = []tea.KeyPressMsg{{Code: tea.KeyEscape}, {Text: name[4:], Code: rune(name[4])}}
	case len(k.held) == 0:
		return k.plain(key), nil
	default:
		k.held = append(k.held, key)
		if whole, ok := k.whole(); ok {
			k.held = nil
			return whole, nil
		}
		if !k.partial() {
			return k.free(), nil
		}
	}
	k.n++
	n := k.n
	return out, tea.Tick(certain, func(time.Time) tea.Msg { return restMsg{n} })
}

// free returns the held keys unchanged, because they do not belong together.
func (k *Keys) free() (out []tea.Msg) {
	held := k.held
	k.held = nil
	for _, key := range held {
		out = append(out, k.plain(key)...)
	}
	return out
}

// plain handles a complete key.
func (k *Keys) plain(key tea.KeyPressMsg) []tea.Msg {
	if k.paste == nil {
		return []tea.Msg{key}
	}
	switch name := key.String(); name {
	case "ctrl+c": // for a user who waits because the end of the paste was lost
		return append(k.pasted(), key)
	case "enter", "ctrl+j":
		k.paste.WriteString("\n")
	case "tab":
		k.paste.WriteString("\t")
	default:
		k.paste.WriteString(key.Text)
	}
	return nil
}

// pasted ends the paste.
func (k *Keys) pasted() []tea.Msg {
	text := k.paste.String()
	k.paste = nil
	return []tea.Msg{tea.PasteMsg{Content: text}}
}

// behind returns the text after the Esc; false when other keys are among it.
func (k *Keys) behind() (string, bool) {
	var out strings.Builder
	for _, key := range k.held[1:] {
		if key.Text == "" {
			return "", false
		}
		out.WriteString(key.Text)
	}
	return out.String(), out.Len() <= longest
}

// partial reports whether the held keys may be the beginning of a sequence.
func (k *Keys) partial() bool {
	name, ok := k.behind()
	return ok && (name == "O" || strings.HasPrefix(name, "[") && strings.Trim(name[1:], "0123456789;:<=>?") == "")
}

// whole returns what the sequence of the held keys means: a key, or nothing that a screen knows. ok is false if the
// sequence is not complete.
func (k *Keys) whole() (out []tea.Msg, ok bool) {
	last := k.held[len(k.held)-1]
	if len(k.held) == 2 {
		switch name := last.String(); name {
		case "b", "f", "d", "enter", "backspace": // the ones that a screen knows
			return k.plain(tea.KeyPressMsg{Code: last.Code, Mod: tea.ModAlt}), true
		}
	}
	name, ok := k.behind()
	if !ok || len(name) < 2 || name[0] != '[' && name[0] != 'O' {
		return nil, false
	}
	if end := name[len(name)-1]; end < '@' || end > '~' {
		return nil, false
	}
	var decoder uv.EventDecoder
	switch _, event := decoder.Decode([]byte("\x1b" + name)); event := event.(type) {
	case uv.PasteStartEvent:
		k.paste = &strings.Builder{}
	case uv.PasteEndEvent:
		if k.paste != nil {
			return k.pasted(), true
		}
	case uv.KeyPressEvent:
		return k.plain(tea.KeyPressMsg(event)), true
	}
	return nil, true
}

const (
	progressAfter = time.Second            // quicker work shows no progress
	progressEvery = 100 * time.Millisecond // between two redraws
	progressTrust = 3 * time.Second        // before this time, no estimate of the remaining time is shown
	barWidth      = 24                     // in columns
)

// Progress is one line at the bottom of a terminal that shows how much of some work is done. It appears after a
// second, is rewritten at most ten times a second, and disappears when the work is done. Its methods may be called
// from several goroutines. Call Clear before you write anything else.
type Progress struct {
	w     io.Writer
	width func() int
	now   func() time.Time

	mu          sync.Mutex
	begun, next time.Time
	what        string
	shown, done bool
}

// NewProgress begins a piece of work. width returns the present one of the terminal, 0 when it is not known.
func NewProgress(w io.Writer, width func() int, now func() time.Time) *Progress {
	begun := now()
	return &Progress{w: w, width: width, now: now, begun: begun, next: begun.Add(progressAfter)}
}

// Show sets how much is done, and of how much; of is 0 while the total is not known. text says the same in words.
func (p *Progress) Show(what string, done, of int, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if what != p.what { // the speed of one piece of work does not predict another
		p.what, p.begun = what, now
	}
	if p.done || now.Before(p.next) {
		return
	}
	p.next = now.Add(progressEvery)
	line := OneLine(strings.TrimSpace(what + " " + text))
	if of > 0 {
		full := int(int64(barWidth) * int64(min(max(done, 0), of)) / int64(of))
		line = "[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "] " + line
		if left := remaining(now.Sub(p.begun), done, of); left != "" {
			line += ", " + left + " left"
		}
	}
	if width := p.width(); width > 1 {
		line = Cut(line, width-1) // a full line would wrap, and stay
	}
	_, err := io.WriteString(p.w, "\r"+line+"\x1b[K")
	p.shown = p.shown || err == nil
}

// Clear removes the line. Show shows nothing afterwards.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown && !p.done {
		_, _ = io.WriteString(p.w, "\r\x1b[K") // progress that cannot be removed does no harm
	}
	p.done = true
}

// remaining returns how long the rest takes at the present speed; "" when that cannot be estimated yet.
func remaining(spent time.Duration, done, of int) string {
	if spent < progressTrust || done <= 0 || done >= of {
		return ""
	}
	left := time.Duration(float64(spent) / float64(done) * float64(of-done))
	switch {
	case left < time.Minute:
		return fmt.Sprintf("%d s", max(1, int(left.Round(time.Second).Seconds())))
	case left < time.Hour:
		return fmt.Sprintf("%d min", int(left.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("%.1f h", left.Hours())
}
