// Package term shows a run on a terminal, or on a plain stream, and asks the user.
//
// A Display gets a run's events, durable and live, and writes lines: streamed text as it comes, one line for each
// tool with its outcome, questions, notices. It detects nothing itself: whether to use colours, and how wide the
// terminal is, are options. It makes what models and tools wrote harmless for terminals before it writes it.
//
// Limits: a Display writes line after line and never moves the cursor, so it works in logs and in every terminal, and
// it has no spinner. Progress rewrites one line, and is for terminals only.
package term

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
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

// Add counts what another run used, too.
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
func (u Totals) Text(outcome string) string {
	parts := []string{outcome}
	if u.Turns > 0 {
		parts = append(parts, Plural(u.Turns, "turn"))
	}
	if u.In+u.Out > 0 {
		parts = append(parts, fmt.Sprintf("%s in, %s out", view.Count(u.In), view.Count(u.Out)))
	}
	switch {
	case u.Unknown && u.Cost == 0:
		parts = append(parts, "cost unknown")
	case u.Unknown:
		parts = append(parts, "$"+u.Cost.String()+" and more")
	case u.Turns > 0:
		parts = append(parts, "$"+u.Cost.String())
	}
	if took := u.LastSeen - u.Started; u.Started > 0 && took > 0 {
		parts = append(parts, Duration(time.Duration(took)*time.Millisecond))
	}
	return strings.Join(parts, " · ")
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
	if !slices.Contains(shownTypes, e.Type) {
		return
	}
	f, ok := readFields(e.Data)
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
		d.grow(f.Message, int(f.Offset), f.Text)
	case "tool.started":
		d.toolStarted(e, f)
	case "tool.finished":
		d.toolFinished(e, f)
	case "turn.started":
		d.Usage.Turns++
	case "usage.changed":
		d.Usage.In += f.Input + f.CacheRead + f.CacheWrite // as lists count them
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
	if f.History != api.UI || len(f.Content) == 0 {
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

// Question writes a question with its choices, where no prompt asks it.
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

// toolStarted remembers a call's row; a command is shown at once, for it may
// take long and print.
func (d *Display) toolStarted(e Event, f fields) {
	c := call{started: e.At}
	if it, ok := d.kinds[f.Message]; ok {
		c.title = firstLine(it.Title)
		if it.Kind == "ask:command" {
			d.one(view.Head, firstLine(it.Title))
		}
	}
	d.tools[f.Call] = c
}

// toolFinished shows a call's outcome in one line.
func (d *Display) toolFinished(e Event, f fields) {
	c := d.tools[f.Call]
	mark, style := "✓", view.Plain
	var facts []string
	if f.Outcome != "ok" {
		facts = append(facts, f.Outcome)
	}
	switch f.Outcome {
	case "error":
		mark, style = "✗", view.Bad
	case "denied":
		mark, style = "⊘", view.Asked
		if rule := esjson.TextOf(f.Approval, "rule"); rule != "" {
			facts = append(facts, "rule "+rule)
		}
	case "cancelled", "unknown":
		mark, style = "?", view.Asked
	}
	if f.Exit != nil {
		facts = append(facts, fmt.Sprintf("exit %d", *f.Exit))
		if *f.Exit != 0 {
			mark, style = "✗", view.Bad
		}
	}
	text, images := view.ResultText(f.Result)
	if n := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1; n > 1 && f.Outcome == "ok" && f.Exit == nil {
		facts = append(facts, fmt.Sprintf("%d lines", n))
	}
	if images > 0 {
		facts = append(facts, fmt.Sprintf("%d images", images))
	}
	if took := e.At - c.started; c.started > 0 && took >= 100 {
		facts = append(facts, Duration(time.Duration(took)*time.Millisecond))
	}
	line := mark + " " + f.Name
	if target := targetOf(c.title); target != "" {
		line += " " + target
	}
	tail := ""
	if len(facts) > 0 {
		tail = " (" + strings.Join(facts, ", ") + ")"
	}
	if d.o.Width > 0 { // the facts are worth more than the end of a long command
		line = Cut(OneLine(line), max(d.o.Width-Columns(tail), 20))
	}
	d.one(style, line+tail)
	if f.Outcome == "error" && d.o.Verbose {
		d.some(indented(text, 10, func(string) view.Style { return view.Dim }, ""))
	}
}

// targetOf drops the verb of a title: the tool's name has it already.
func targetOf(title string) string {
	if cmd, ok := strings.CutPrefix(title, "$ "); ok {
		return cmd
	}
	_, rest, _ := strings.Cut(title, " ")
	return rest
}

// indented are the lines of a text, at most so many of them; 0 = all. rest stands behind the number of the others.
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

// Event is one event of a run as every stream shows it: a type, and the whole
// event as JSON.
type Event struct {
	Type string
	At   int64 // Unix milliseconds
	Data json.RawMessage
}

// EventOf is an event whose time is in its data.
func EventOf(typ string, data json.RawMessage) Event {
	e := Event{Type: typ, Data: data}
	text, _ := esjson.GetString(data, "at")
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		e.At = at.UnixMilli()
	}
	return e
}

// fields are the members of all events that a display looks at. One struct for
// all: the payloads are small and their names do not clash.
type fields struct {
	Message    uint64
	History    string
	Content    []byte // the message itself
	Text       string
	Offset     int64
	Call       string
	Name       string
	Outcome    string
	Exit       *int64 // nil when there is none
	Result     []byte
	Approval   []byte
	Input      int64 // tokens, like the next three
	CacheRead  int64
	CacheWrite int64
	Output     int64
	Cost       *int64 // micro-dollars; nil when unknown
	Reason     string
	Child      string
	Mode       string
	Title      string
}

// shownTypes are the types of events that are shown or counted. Events of other types may be large, and are not even
// parsed.
var shownTypes = []string{
	"message.added", "message.changed", "message.text_saved", "message.delta", "reasoning.delta",
	"tool.started", "tool.finished", "turn.started", "usage.changed", "notice", "wait.delta",
	"subtask.started", "history.condensed", "foreign.imported", "foreign.refused",
}

// readFields reads an event; a member of another kind than it should have is left out. It reports false when there is
// nothing to show: the event is not an object, or a message of the model's history.
func readFields(data []byte) (f fields, ok bool) {
	if esjson.TypeOf(data) != esjson.TypeObject || !esjson.Valid(data) {
		return f, false
	}
	_, _ = esjson.Take(data, "message", &f.Message, "history", &f.History, "content", &f.Content, "text", &f.Text,
		"offset", &f.Offset, "call", &f.Call, "name", &f.Name, "outcome", &f.Outcome, "exit", &f.Exit, "result", &f.Result,
		"approval", &f.Approval, "input", &f.Input, "cache_read", &f.CacheRead, "cache_write", &f.CacheWrite,
		"output", &f.Output, "cost_micros", &f.Cost, "reason", &f.Reason, "child", &f.Child, "mode", &f.Mode, "title", &f.Title)
	for _, text := range []*string{&f.Text, &f.Name, &f.Reason, &f.Title} {
		*text = strings.ToValidUTF8(*text, "\uFFFD")
	}
	return f, f.History == "" || f.History == api.UI
}
