// Package term shows a run on a terminal, or on a plain stream, and asks the user.
//
// A Display gets a run's events, durable and live, and writes lines: streamed text as it comes, one line for each
// tool call with its outcome, questions, notices. It detects nothing itself: whether to use colours, and how wide the
// terminal is, are options. It makes text of models and tools safe for terminals before it writes that text.
//
// Limits: a Display writes line after line and never moves the cursor up, so it works in logs and in every terminal.
// It shows passing text, such as the present activity of the run, on the last line; the next line overwrites it.
package term

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/markdown"
	"github.com/roost-dev/roost/cli/theme"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/view"
)

// Options select how a Display writes.
type Options struct {
	Width   int  // columns, 0 = do not cut
	Quiet   bool // only questions and notices
	Verbose bool // reasoning and command output whole, also without a terminal
	Live    bool // a user is watching: show text as it arrives
	Theme   theme.Theme
	Rich    bool       // with Live: render Markdown, wrap it at words, and show the present activity of the run
	Links   bool       // with Rich: the terminal knows OSC 8
	Notify  string     // how to call the user: bell, osc9; anything else = not at all
	Size    func() int // the present width; nil = Width
}

// Style returns the style of the display's lines.
func (o Options) Style() Style { return Style{o.Theme} }

// Columns returns the present width, 0 = it is not known.
func (o Options) Columns() int {
	if o.Size != nil {
		if w := o.Size(); w > 0 {
			return w
		}
	}
	return o.Width
}

// Prose returns a whole text of a model in the form that the display shows: made safe, and on a rich display with its
// Markdown rendered and indented by indent blanks.
func (o Options) Prose(text string, indent int) string {
	if !o.Rich || !o.Live || o.Quiet {
		return Safe(text)
	}
	as := o.markdown(theme.Model)
	as.Indent = indent
	return strings.Join(markdown.Render(text, as), "\n")
}

// markdown returns the options for rendering. The width leaves out the last column: a line that fills it would wrap
// as soon as more text follows.
func (o Options) markdown(role theme.Role) markdown.Options {
	return markdown.Options{Width: max(o.Columns()-1, 0), Theme: o.Theme, Links: o.Links, Role: role}
}

// Display shows one run. Its events come from one goroutine. While a question is on the terminal, other goroutines
// may write, too; the prompt is then drawn again.
type Display struct {
	w     io.Writer
	line  *line  // shared with the displays of subtasks, which use the same terminal
	buf   []byte // the output of one call, written at once
	o     Options
	style Style
	lead  string // begins each line: a bar for each level of subtasks

	open  uint64 // the message whose text is on an unfinished line
	kinds map[uint64]view.Item
	shown map[uint64]int  // bytes of a message's text already written
	saved map[uint64]int  // bytes of it that durable events have held; only of messages whose beginning was seen
	tools map[string]call // calls by the model's id
	texts map[uint64]*prose
	last  block // the block that was written last
	atBOL bool
	asked string // the title of the call in the last question

	doing string    // the present activity of the run; "" = none
	since time.Time // when doing began; zero = the next Tick sets it
	frame int

	Usage Totals
}

// Totals is what a run used.
type Totals struct {
	Turns    int
	In, Out  int64
	Cost     money.USD
	Unknown  bool // at least one request had no known price
	Started  int64
	LastSeen int64
}

// Add adds the totals of another run.
func (u *Totals) Add(o Totals) {
	u.Turns += o.Turns
	u.In += o.In
	u.Out += o.Out
	u.Cost += o.Cost
	u.Unknown = u.Unknown || o.Unknown
	if u.Started == 0 || o.Started > 0 && o.Started < u.Started {
		u.Started = o.Started
	}
	u.LastSeen = max(u.LastSeen, o.LastSeen)
}

// Text describes how a run ended, and what it used, in one line.
func (u Totals) Text(outcome string) string { return u.text(outcome, Dollars(u.Cost)) }

// Exact is Text with the whole amount of dollars.
func (u Totals) Exact(outcome string) string { return u.text(outcome, "$"+u.Cost.String()) }

func (u Totals) text(outcome, cost string) string {
	parts := []string{outcome}
	if u.Turns > 0 {
		parts = append(parts, api.Plural(u.Turns, "turn"))
	}
	if u.In+u.Out > 0 {
		parts = append(parts, fmt.Sprintf("%s in, %s out", view.Count(u.In), view.Count(u.Out)))
	}
	switch {
	case u.Unknown && u.Cost == 0:
		parts = append(parts, "cost unknown")
	case u.Unknown:
		parts = append(parts, cost+" and more")
	case u.Turns > 0:
		parts = append(parts, cost)
	}
	if took := u.LastSeen - u.Started; u.Started > 0 && took > 0 {
		parts = append(parts, Duration(time.Duration(took)*time.Millisecond))
	}
	return strings.Join(parts, " · ")
}

// New makes a display that writes to w.
func New(w io.Writer, o Options) *Display {
	return &Display{
		w: w, line: &line{}, o: o, style: o.Style(), atBOL: true, texts: map[uint64]*prose{},
		kinds: map[uint64]view.Item{}, shown: map[uint64]int{}, saved: map[uint64]int{}, tools: map[string]call{},
	}
}

// Below makes a display for a subtask on the same terminal: a bar marks its lines. The caller flushes one display before
// it uses the other.
func (d *Display) Below() *Display {
	o := d.o
	o.Width, o.Size = 0, func() int {
		if width := d.o.Columns(); width > 0 {
			return max(width-2, 20)
		}
		return 0
	}
	sub := New(d.w, o)
	sub.line, sub.lead = d.line, d.lead+"│ "
	return sub
}

// Family shows a task and its subtasks. Each task has a display of its own, because message numbers and call ids are
// unique only within a task.
type Family struct {
	Top   *Display            // of the task itself
	below map[string]*Display // of subtasks
	last  *Display            // the one that last showed something
}

// NewFamily shows a task on a display.
func NewFamily(d *Display) *Family { return &Family{Top: d, below: map[string]*Display{}} }

// Of returns the display of a task depth levels below the top one, for what comes next. Of a subtask that is new, it
// first calls begins with the display of the subtask's parent.
func (f *Family) Of(task string, depth int, begins func(parent *Display)) *Display {
	d := f.below[task]
	if depth == 0 {
		d = f.Top
	}
	if d == nil {
		d = f.Top
		for range depth - 1 {
			d = d.Below()
		}
		begins(d)
		d = d.Below()
		f.below[task] = d
	}
	if f.last != d {
		f.Flush()
	}
	f.last = d
	return d
}

// Flush ends what the last display shows.
func (f *Family) Flush() {
	if f.last != nil {
		f.last.Flush()
	}
}

// Tick is Display.Tick of the display that last showed something.
func (f *Family) Tick(now time.Time) { cmp.Or(f.last, f.Top).Tick(now) }

// Used returns what the tasks used.
func (f *Family) Used() Totals {
	u := f.Top.Usage
	for _, d := range f.below {
		u.Add(d.Usage)
	}
	return u
}

// line is the last line of the terminal, which may hold a prompt.
type line struct {
	mu     sync.Mutex
	prompt string // "" = there is none
	broken bool   // something was written after the prompt
	count  int    // columns of the passing text on the line
}

// behind runs write. If the last line holds a prompt, it first ends that line, and draws the prompt again below the
// new lines.
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

// prompt shows a prompt on a line of its own.
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

// Show writes an event for the user: its type, and the whole event as JSON, as in every stream. Events of unknown types
// write nothing.
func (d *Display) Show(event string, data json.RawMessage) {
	f, ok := readFields(data)
	if f.At > 0 {
		d.Usage.Started, d.Usage.LastSeen = cmp.Or(d.Usage.Started, f.At), f.At
	}
	if !ok {
		return
	}
	d.behind(func() {
		d.show(event, f)
		// A log gets only whole lines; a user sees unfinished ones, too.
		if d.o.Live || d.atBOL || len(d.buf) > holdBytes {
			d.push()
		}
	})
}

// holdBytes bounds the part of an unfinished line that waits for its end.
const holdBytes = 4 << 10

func (d *Display) show(event string, f fields) {
	switch event {
	case "message.added":
		d.added(f)
	case "message.changed":
		d.changed(f)
	case "message.text_saved":
		if at, whole := d.saved[f.Message]; whole { // else message.changed brings the text
			d.grow(f.Message, at, f.Text)
			d.saved[f.Message] += len(f.Text)
		}
	case "message.delta", "reasoning.delta":
		d.begun(event, f)
		if event == "message.delta" && f.Call == "" {
			d.does("the model writes")
		} else if f.Call == "" {
			d.does("the model thinks")
		}
		d.grow(f.Message, int(f.Offset), f.Text)
	case "tool.started":
		d.started(f)
	case "tool.finished":
		d.finished(f)
	case "turn.started":
		d.Usage.Turns++
		d.asked = ""
		d.does("waiting for the model")
	case "usage.changed":
		d.Usage.In += f.Input + f.CacheRead + f.CacheWrite // as lists count them
		d.Usage.Out += f.Output
		if f.Cost == nil {
			d.Usage.Unknown = true
		} else {
			d.Usage.Cost += money.USD(*f.Cost)
		}
	case "notice":
		if f.Kind == "plan" {
			d.one(view.Dim, f.Text)
			return
		}
		d.notice(f.Text)
	case "wait.delta":
		d.countDown(f.Text)
	case "subtask.started":
		line := "· subtask " + f.Child
		if f.Mode != "" {
			line += " in " + f.Mode + " mode"
		}
		d.one(view.Head, line+": "+f.Title)
	case "history.condensed", "foreign.imported", "foreign.refused":
		d.one(view.Dim, "· "+strings.ReplaceAll(event, ".", " ")+" "+f.Reason)
	}
}

// begun records the kind of a row that no durable event has reported yet: the rows of a reply become durable at their
// first checkpoint, or at the end of the reply.
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

// added records the kind of a row, and shows rows that no other event reports.
func (d *Display) added(f fields) {
	if f.History != api.UI || len(f.Content) == 0 {
		return
	}
	n := f.Message
	it := view.UI(f.Content, int(min(n, 1<<30)))
	d.kinds[n], d.saved[n] = it, 0
	if strings.HasPrefix(it.Kind, "ask:") {
		d.asked = firstLine(it.Title)
	}
	switch it.Kind {
	case "say:error", "say:diff_error", "say:rooignore_error":
		d.one(view.Bad, "✗ "+strings.TrimSpace(it.Title+" "+it.Body))
	case "say:text", "say:reasoning":
		if it.Class != view.User {
			d.grow(n, 0, it.Body)
		}
		if partial, _ := esjson.Get(f.Content, "partial"); string(partial) == "false" {
			d.finish(n)
		}
	}
}

// changed shows the part of a text that the live stream missed.
func (d *Display) changed(f fields) {
	it, known := d.kinds[f.Message]
	if len(f.Content) > 0 && known && (it.Kind == "say:text" || it.Kind == "say:reasoning") {
		d.grow(f.Message, 0, esjson.TextOf(f.Content, "text"))
	}
	d.finish(f.Message)
}

// grow writes the part of a message's text that is not written yet: text begins at offset in it. Live and durable
// events hold the same text; the display writes it once.
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
		return // the text is shown already, or lacks a part that the durable event brings
	}
	text = text[have-offset:]
	d.shown[n] = have + len(text)
	asMarkdown := d.rich() && (it.Class == view.Model || it.Class == view.Reasoning) // output of commands is not Markdown
	if d.open != n {
		d.finishOthers(n)
		d.endLine()
		d.open = n
		if !asMarkdown {
			d.apart(rows)
		}
	}
	if asMarkdown {
		d.render(n, it.Class, text)
	} else {
		d.write(it.Class, text)
	}
}

// rich reports whether the display renders Markdown and shows the present activity.
func (d *Display) rich() bool { return d.o.Rich && d.o.Live && !d.o.Quiet }

// block is a kind of lines that a rich display keeps together: it separates blocks by a blank line.
type block uint8

const (
	nothing block = iota
	rows
	said
)

// apart begins a block, with a blank line before it if needed.
func (d *Display) apart(b block) {
	if d.rich() && d.last != nothing && (d.last != b || b == said) {
		d.buf = append(append(d.buf, strings.TrimRight(d.lead, " ")...), '\n')
	}
	d.last = b
}

// prose is a message whose Markdown is shown.
type prose struct {
	stream *markdown.Stream
	shown  string // the part of the next line that is on the screen
}

// render shows the next piece of a message: its finished lines, and the settled words of the next line.
func (d *Display) render(n uint64, class view.Class, text string) {
	p := d.texts[n]
	if p == nil {
		o := d.o.markdown(theme.Model)
		if class != view.Model {
			o.Role, o.Indent = theme.Dim, 2
		}
		d.apart(said)
		p = &prose{stream: markdown.NewStream(o)}
		d.texts[n] = p
	}
	d.lines(p, p.stream.Write(text))
	d.words(p, p.stream.Rest())
}

// lines writes finished lines; the beginning of the first one may be on the screen.
func (d *Display) lines(p *prose, lines []string) {
	for _, line := range lines {
		d.words(p, line)
		p.shown = ""
		if d.atBOL {
			d.buf = append(d.buf, d.lead...)
		}
		d.buf = append(d.buf, '\n')
		d.atBOL = true
	}
}

// words writes the part of a line that is not on the screen yet.
func (d *Display) words(p *prose, line string) {
	more := line[len(p.shown):]
	if p.shown != "" && d.atBOL { // another line came between
		more = strings.TrimPrefix(more, " ")
	}
	if p.shown = line; more == "" {
		return
	}
	if d.atBOL {
		d.buf = append(d.buf, d.lead...)
	}
	d.buf = append(d.buf, more...)
	d.atBOL = false
}

// finish ends a message and shows the rest of it.
func (d *Display) finish(n uint64) {
	if p := d.texts[n]; p != nil {
		delete(d.texts, n)
		if d.open != n {
			d.endLine()
			d.open = n
		}
		d.lines(p, p.stream.Close())
	}
	if d.open == n {
		d.endLine()
	}
}

// finishOthers ends all messages but one.
func (d *Display) finishOthers(n uint64) {
	for _, other := range slices.Sorted(maps.Keys(d.texts)) {
		if other != n {
			d.finish(other)
		}
	}
}

// write puts streamed text on the screen, dim unless the model wrote it.
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

// push writes the collected text. It ignores a lost terminal: the task holds everything that the display cannot show.
func (d *Display) push() {
	if len(d.buf) > 0 {
		d.wipe()
		d.out(string(d.buf))
		d.buf = d.buf[:0]
	}
}

// countDown shows the time until the next request to a provider as passing text, and only where a user watches.
func (d *Display) countDown(left string) {
	if !d.o.Live || d.o.Quiet {
		return
	}
	d.endLine()
	d.push()
	d.moment(Cut("  asking again in "+OneLine(left), max(d.o.Columns()-1, 0)))
	d.does("")
}

// moment shows passing text: the next output overwrites it.
func (d *Display) moment(line string) {
	d.wipe()
	d.line.count = Columns(line)
	d.out(d.style.Paint(view.Dim, line))
}

// does sets the present activity of the run, for Tick.
func (d *Display) does(what string) {
	if what != d.doing {
		d.doing, d.since = what, time.Time{}
	}
}

// TickEvery is how often Tick should be called.
const TickEvery = 200 * time.Millisecond

// Tick shows the present activity of the run and its duration on the last line of a rich display, unless that line holds
// words or a prompt.
func (d *Display) Tick(now time.Time) {
	d.line.mu.Lock()
	defer d.line.mu.Unlock()
	if !d.rich() || d.doing == "" || !d.atBOL || len(d.buf) > 0 || d.line.prompt != "" {
		return
	}
	if d.since.IsZero() {
		d.since = now
		return
	}
	line := Spinner(d.frame) + " " + d.doing
	if took := now.Sub(d.since); took >= time.Second {
		line += " · " + Seconds(took)
	}
	d.frame++
	line = Cut(line, max(d.o.Columns()-1, 0))
	if before := d.passing(); before > 0 { // one write, which does not flicker
		d.line.count = max(Columns(line), before)
		d.out("\r" + d.style.Paint(view.Dim, Pad(line, before)))
		return
	}
	d.moment(line)
}

// Attention calls the user to a question.
func (d *Display) Attention(text string) {
	if call := Attention(d.o.Notify, text); call != "" && d.o.Live {
		d.behind(func() { _, _ = io.WriteString(d.w, call) })
	}
}

// Attention returns the output that calls a user at a terminal: a bell, or a notification of the desktop (OSC 9).
func Attention(how, text string) string {
	switch how {
	case "bell":
		return "\a"
	case "osc9":
		return "\x1b]9;" + Cut(OneLine(text), 120) + "\a"
	}
	return ""
}

// wipe overwrites passing text on the line with blanks, which work on every terminal.
func (d *Display) wipe() {
	if n := d.passing(); n > 0 {
		d.line.count = 0
		d.out("\r" + strings.Repeat(" ", n) + "\r")
	}
}

// passing returns the columns of the passing text on the line. In a window that became narrower, more than a line of blanks
// over it would begin another line.
func (d *Display) passing() int {
	if width := d.o.Columns(); width > 0 {
		return min(d.line.count, width-1)
	}
	return d.line.count
}

// Question writes a question with its choices, for use without a prompt.
func (d *Display) Question(q api.QuestionOpened) {
	lines := []view.Line{{Style: view.Asked, Text: "? " + q.Text}}
	for i, c := range q.Choices {
		lines = append(lines, view.Line{Style: view.Asked, Text: fmt.Sprintf("  %d. %s%s", i+1, OneLine(c), InMode(q, i))})
	}
	d.Lines(lines)
}

// Flush ends an unfinished line and writes everything.
func (d *Display) Flush() { d.behind(d.flush) }

func (d *Display) flush() {
	d.finishOthers(0)
	d.does("")
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
	if len(d.texts) == 0 { // within a message no block begins
		d.apart(rows)
	}
	d.buf = append(d.buf, d.lead...)
	d.buf = append(append(d.buf, d.style.Paint(style, text)...), '\n')
}

// Line writes one line, cut to the width.
func (d *Display) Line(style view.Style, text string) { d.behind(func() { d.one(style, text) }) }

func (d *Display) one(style view.Style, text string) {
	if d.o.Quiet {
		return
	}
	d.endLine()
	d.put(style, Cut(OneLine(text), d.o.Columns()))
	d.push()
}

// Notice shows the user an uncut line, even with Quiet.
func (d *Display) Notice(text string) { d.behind(func() { d.notice(text) }) }

func (d *Display) notice(text string) {
	d.endLine()
	text = "! " + OneLine(text)
	if width := d.o.Columns(); d.o.Rich && width > 0 { // broken between words; a log gets one line
		text = ansi.WrapWc(text, width, "")
	}
	for line := range strings.SplitSeq(text, "\n") {
		d.put(view.Asked, line)
	}
	d.push()
}

// Aside writes a message of the program on its own line, even with Quiet. The text must be safe already.
func (d *Display) Aside(text string) {
	d.behind(func() {
		d.endLine()
		d.push()
		d.wipe()
		d.out(text + "\n")
	})
}

// Lines writes lines in their styles.
func (d *Display) Lines(lines []view.Line) { d.behind(func() { d.some(lines) }) }

func (d *Display) some(lines []view.Line) {
	d.endLine()
	for _, l := range lines {
		d.put(l.Style, Safe(l.Text))
	}
	d.push()
}

// started records the title of a call. It shows a command at once, because a command may take long and print.
func (d *Display) started(f fields) {
	c := call{title: d.asked, started: f.At}
	if it, ok := d.kinds[f.Message]; ok {
		c.title = firstLine(it.Title)
		if it.Kind == "ask:command" {
			d.finishOthers(0)
			d.one(view.Head, c.title)
		}
	}
	d.asked = ""
	d.tools[f.Call] = c
	d.does(OneLine("running " + strings.TrimSpace(f.Name+" "+targetOf(c.title))))
}

// finished shows a call's outcome in one line.
func (d *Display) finished(f fields) {
	c, known := d.tools[f.Call]
	if !known { // it was refused before it began
		c.title, d.asked = d.asked, ""
	}
	delete(d.tools, f.Call)
	d.does("waiting for the model")
	style, line, tail, text := outcome(c, f)
	if line == "" {
		return
	}
	d.finishOthers(0)
	if width := d.o.Columns(); width > 0 { // the facts are worth more than the end of a long command
		line = Cut(OneLine(line), max(width-Columns(tail), 20))
	}
	d.one(style, line+tail)
	if f.Outcome == "error" && d.o.Verbose {
		d.some(indented(Safe(text), 10, func(string) view.Style { return view.Dim }, ""))
	}
}

// indented returns the lines of a text, at most most of them; 0 = all. rest follows the number of the omitted lines.
func indented(text string, most int, style func(line string) view.Style, rest string) (out []view.Line) {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range all {
		if most > 0 && i == most {
			return append(out, view.Line{Style: view.Dim, Text: fmt.Sprintf("  ... %d more lines%s", len(all)-most, rest)})
		}
		out = append(out, view.Line{Style: style(l), Text: "  " + l})
	}
	return out
}

func firstLine(s string) string {
	first, rest, more := strings.Cut(s, "\n")
	if more && strings.TrimSpace(rest) != "" {
		return first + " …"
	}
	return first
}
