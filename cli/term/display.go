package term

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/view"
)

// Options are how a Display writes.
type Options struct {
	Colour  bool
	Width   int  // columns, 0 = do not cut
	Quiet   bool // only questions and notices
	Verbose bool // reasoning and command output whole, also without a terminal
	Live    bool // a person is watching: show text as it comes
}

// Display shows one run. Its events come from one goroutine. While a question is on the terminal, other goroutines
// may write in between, and the prompt is drawn again.
type Display struct {
	w     io.Writer
	line  *line  // shared with the displays below it: they have one terminal
	buf   []byte // what one call has to write: it goes out in one piece
	o     Options
	style Style
	lead  string // what each line begins with: how deep below the first task it is

	open  uint64 // the message whose text is on an unfinished line
	kinds map[uint64]view.Item
	shown map[uint64]int  // bytes of a message's text already written
	saved map[uint64]int  // bytes of it that durable events held
	tools map[string]call // calls by the model's id
	atBOL bool
	count int // columns of the count-down on the line

	Usage Totals
}

// Totals are what a run used.
type Totals struct {
	Turns    int
	In, Out  int64
	Cost     money.USD
	Unknown  bool // at least one request had no known price
	Started  int64
	LastSeen int64
}

type call struct {
	title   string
	started int64
}

// New makes a display that writes to w.
func New(w io.Writer, o Options) *Display {
	return &Display{
		w: w, line: &line{}, o: o, style: Style{On: o.Colour}, atBOL: true,
		kinds: map[uint64]view.Item{}, shown: map[uint64]int{}, saved: map[uint64]int{}, tools: map[string]call{},
	}
}

// Below makes a display for a subtask, on the same screen: its lines are marked as those
// of one. Who uses both writes out the one with Flush before the other shows anything.
func (d *Display) Below() *Display {
	o := d.o
	if o.Width > 0 {
		o.Width = max(o.Width-2, 20)
	}
	sub := New(d.w, o)
	sub.line, sub.lead = d.line, d.lead+"│ "
	return sub
}

// line is the last one of the terminal, which may hold a prompt.
type line struct {
	mu     sync.Mutex
	prompt string // "" = there is none
	broken bool   // something was written behind it
}

// behind runs write. A prompt on the last line ends before it, and is drawn again below.
func (d *Display) behind(write func()) {
	d.line.mu.Lock()
	defer d.line.mu.Unlock()
	write()
	if d.line.broken {
		d.flush()
		_, _ = io.WriteString(d.w, d.line.prompt)
		d.line.broken = false
	}
}

// prompt puts a prompt on a line of its own.
func (d *Display) prompt(text string) {
	d.line.mu.Lock()
	defer d.line.mu.Unlock()
	d.flush()
	_, _ = io.WriteString(d.w, text)
	d.line.prompt = text
}

// answered records that the user ended the prompt's line; with end, the display ends it.
func (d *Display) answered(end bool) {
	d.line.mu.Lock()
	defer d.line.mu.Unlock()
	d.line.prompt = ""
	if end {
		_, _ = io.WriteString(d.w, "\n")
	}
}

// out writes to the terminal.
func (d *Display) out(text string) {
	if d.line.prompt != "" && !d.line.broken {
		d.line.broken = true
		text = "\n" + text
	}
	_, _ = io.WriteString(d.w, text) // see push
}

// Show writes what an event means for the user. Events of unknown types write nothing.
func (d *Display) Show(e Event) {
	if e.At > 0 {
		if d.Usage.Started == 0 {
			d.Usage.Started = e.At
		}
		d.Usage.LastSeen = e.At
	}
	want := members[e.Type]
	if want == nil {
		return
	}
	f, ok := want.read(e.Data)
	if !ok {
		return
	}
	d.behind(func() {
		d.show(e, f)
		// A log gets whole lines, a person what there is.
		if d.o.Live || d.atBOL || len(d.buf) > holdBytes {
			d.push()
		}
	})
}

// holdBytes is how much of an unfinished line waits for its end.
const holdBytes = 4 << 10

func (d *Display) show(e Event, f fields) {
	switch e.Type {
	case "message.added":
		d.added(f)
	case "message.changed":
		d.changed(f)
	case "message.text_saved":
		d.grow(f.Message, d.saved[f.Message], f.Text)
		d.saved[f.Message] += len(f.Text)
	case "message.delta", "reasoning.delta":
		d.begun(e.Type, f)
		d.grow(f.Message, f.Offset, f.Text)
	case "tool.started":
		d.toolStarted(e, f)
	case "tool.finished":
		d.toolFinished(e, f)
	case "turn.started":
		d.Usage.Turns++
	case "usage.changed":
		d.Usage.In += f.Input
		d.Usage.Out += f.Output
		if f.Cost == nil {
			d.Usage.Unknown = true
		} else {
			d.Usage.Cost += money.USD(*f.Cost)
		}
	case "notice":
		d.notice(f.Text)
	case "wait.delta":
		d.countDown(f.Text)
	case "subtask.started":
		line := "· subtask " + f.Child
		if f.Mode != "" {
			line += " in " + f.Mode + " mode"
		}
		d.one(view.Head, line+": "+f.Title)
	default:
		d.one(view.Dim, "· "+strings.ReplaceAll(e.Type, ".", " ")+" "+f.Reason)
	}
}

// begun records the kind of a row that is not in the log yet: a reply's rows come there with their first checkpoint,
// or at its end.
func (d *Display) begun(event string, f fields) {
	if _, known := d.kinds[f.Message]; known || f.Call != "" {
		return
	}
	it := view.Item{Kind: "say:text", Class: view.Model}
	if event == "reasoning.delta" {
		it = view.Item{Kind: "say:reasoning", Class: view.Reasoning}
	}
	d.kinds[f.Message] = it
}

// added remembers what a row is, and shows those that no other event reports.
func (d *Display) added(f fields) {
	if f.History != "ui" || len(f.Content) == 0 {
		return
	}
	n := f.Message
	it := view.UI(f.Content, int(min(n, 1<<30)))
	d.kinds[n] = it
	switch it.Kind {
	case "say:error", "say:diff_error", "say:rooignore_error":
		d.one(view.Bad, "✗ "+joinTitle(it))
	case "say:text", "say:reasoning":
		if it.Class != view.User {
			d.grow(n, 0, it.Body)
		}
		if partial, _ := esjson.Get(f.Content, "partial"); d.open == n && string(partial) == "false" {
			d.endLine()
		}
	}
}

// changed shows what the live stream missed of a text.
func (d *Display) changed(f fields) {
	n := f.Message
	it, known := d.kinds[n]
	if len(f.Content) > 0 && known && (it.Kind == "say:text" || it.Kind == "say:reasoning") {
		text, _ := esjson.GetString(f.Content, "text")
		d.grow(n, 0, text)
	}
	if d.open == n {
		d.endLine()
	}
}

// grow writes the part of a message's text that is not written yet: text is at offset in it. Live and durable events
// hold the same text twice; the display writes it once.
func (d *Display) grow(n uint64, offset int, text string) {
	it, known := d.kinds[n]
	if !known || it.Class == view.User || d.o.Quiet || text == "" {
		return
	}
	if !d.o.Live && !d.o.Verbose && it.Class != view.Model {
		return // logs hold words and outcomes, not all of the reasoning
	}
	have := d.shown[n]
	if offset+len(text) <= have || offset > have {
		return // known already, or a gap that the durable event fills
	}
	text = text[have-offset:]
	d.shown[n] = have + len(text)
	if d.open != n {
		d.endLine()
		d.open = n
	}
	d.write(it.Class, text)
}

// write puts streamed text on the screen, dim where it is not the model's word.
func (d *Display) write(class view.Class, text string) {
	style, indent := view.Plain, ""
	if class != view.Model {
		style, indent = view.Dim, "  "
	}
	for _, part := range strings.SplitAfter(Safe(text), "\n") {
		if part == "" {
			continue
		}
		line, nl := strings.CutSuffix(part, "\n")
		if d.atBOL {
			d.buf = append(d.buf, d.lead...)
			if line != "" {
				line = indent + line
			}
		}
		d.buf = append(d.buf, d.style.Paint(style, line)...)
		d.atBOL = false
		if nl {
			d.buf = append(d.buf, '\n')
			d.atBOL = true
		}
	}
}

// push writes the collected text. What cannot be shown to the user is in the task all the same, so a lost terminal is
// no reason to stop.
func (d *Display) push() {
	if len(d.buf) > 0 {
		d.wipe()
		d.out(string(d.buf))
		d.buf = d.buf[:0]
	}
}

// countDown shows how long until the next request to a provider, in place: only a user who watches sees it, and the
// next line takes its room.
func (d *Display) countDown(left string) {
	if !d.o.Live || d.o.Quiet {
		return
	}
	d.endLine()
	d.push()
	d.wipe()
	line := Cut("  asking again in "+OneLine(left), max(d.o.Width-1, 0))
	d.count = utf8.RuneCountInString(line)
	d.out(d.style.Paint(view.Dim, line))
}

// wipe takes the count-down off the line. Blanks do it on every terminal.
func (d *Display) wipe() {
	if d.count > 0 {
		d.out("\r" + strings.Repeat(" ", d.count) + "\r")
		d.count = 0
	}
}

// Flush ends an unfinished line and writes everything.
func (d *Display) Flush() { d.behind(d.flush) }

func (d *Display) flush() {
	d.endLine()
	d.push()
	d.wipe()
}

func (d *Display) endLine() {
	if !d.atBOL {
		d.buf = append(d.buf, '\n')
		d.atBOL = true
	}
	d.open = 0
}

func (d *Display) put(style view.Style, text string) {
	d.buf = append(d.buf, d.lead...)
	d.buf = append(append(d.buf, d.style.Paint(style, text)...), '\n')
}

// Line writes one line of its own, cut to the width.
func (d *Display) Line(style view.Style, text string) { d.behind(func() { d.one(style, text) }) }

func (d *Display) one(style view.Style, text string) {
	if d.o.Quiet {
		return
	}
	d.endLine()
	d.put(style, Cut(OneLine(text), d.o.Width))
	d.push()
}

// Notice shows the user a line, quiet or not, uncut.
func (d *Display) Notice(text string) { d.behind(func() { d.notice(text) }) }

func (d *Display) notice(text string) {
	d.endLine()
	d.put(view.Asked, "! "+OneLine(text))
	d.push()
}

// Lines writes lines that view made.
func (d *Display) Lines(lines []view.Line) { d.behind(func() { d.some(lines) }) }

func (d *Display) some(lines []view.Line) {
	d.endLine()
	for _, l := range lines {
		d.put(l.Style, Safe(l.Text))
	}
	d.push()
}

func joinTitle(it view.Item) string { return strings.TrimSpace(it.Title + " " + it.Body) }

// Duration writes a time span for people: 350ms, 2.4s, 3m05s, 2h10m.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// Age writes how long ago something was: 5s, 12m, 3h, 4d, 8w, 2y.
func Age(d time.Duration) string {
	day := 24 * time.Hour
	switch {
	case d < 0:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < day:
		return fmt.Sprintf("%dh", int(d.Hours()))
	case d < 14*day:
		return fmt.Sprintf("%dd", d/day)
	case d < 365*day:
		return fmt.Sprintf("%dw", d/(7*day))
	}
	return fmt.Sprintf("%dy", d/(365*day))
}
