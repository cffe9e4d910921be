package term

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/view"
)

// screenLines is how many lines of a diff or of a command are shown before the user must press `d` for the rest.
const screenLines = 20

// commandIndent is what the lines of a command begin with where it takes several.
const commandIndent = "    "

// Reply is what the user answered at a prompt.
type Reply struct {
	Approve *bool
	Text    string
	Always  bool
	Stop    bool // stop and save
}

// ErrNoInput: the input ended before the user answered.
var ErrNoInput = errors.New("the input ended")

// Prompter asks the person on a terminal.
//
// A read of a terminal cannot be cancelled, so lines are read by a goroutine
// that lives as long as the process; a prompt itself ends with its context.
type Prompter struct {
	d     *Display
	typed *typed       // shared, as stale is, by all that ask here
	lines chan string  // when another reader has the terminal; typed is nil
	stale *atomic.Bool // what was typed may be meant for a question that has closed
}

// NewPrompter asks through d and reads answers from in.
func NewPrompter(d *Display, in io.Reader) *Prompter {
	return &Prompter{d: d, typed: newTyped(in), stale: new(atomic.Bool)}
}

// LinePrompter asks through d; the reader of the terminal gives it the answers. A line may
// hold line breaks.
func LinePrompter(d *Display, lines chan string) *Prompter {
	return &Prompter{d: d, lines: lines, stale: new(atomic.Bool)}
}

// On is the prompter for questions that are shown on another display.
func (p *Prompter) On(d *Display) *Prompter {
	other := *p
	other.d = d
	return &other
}

// Ask puts a question of a run to the person. Enter alone is never an answer.
func (p *Prompter) Ask(ctx context.Context, q api.QuestionOpened) (Reply, error) {
	switch q.Kind {
	case "approval":
		return p.approval(ctx, q)
	case "damage", "limit":
		return p.consent(ctx, q)
	}
	return p.words(ctx, q)
}

// consent asks for a plain yes or no.
func (p *Prompter) consent(ctx context.Context, q api.QuestionOpened) (Reply, error) {
	p.whole(q.Text)
	return p.until(ctx, "  y go on, n do not, q stop > ", func(line string) (r Reply, again bool) {
		switch strings.ToLower(line) {
		case "y", "yes":
			r.Approve = new(true)
		case "n", "no":
			r.Approve = new(false)
		case "q", "quit":
			r.Stop = true
		default:
			p.say("  answer with one of the letters")
			return r, true
		}
		return r, false
	})
}

// until reads lines until take has an answer of one.
func (p *Prompter) until(ctx context.Context, prompt string,
	take func(line string) (r Reply, again bool)) (Reply, error) {
	for {
		line, err := p.Read(ctx, prompt)
		if err != nil {
			return Reply{}, err
		}
		if line = strings.TrimSpace(line); line == "" {
			p.say("  Enter alone is not an answer")
		} else if r, again := take(line); !again {
			return r, nil
		}
	}
}

func (p *Prompter) approval(ctx context.Context, q api.QuestionOpened) (Reply, error) {
	p.whole(p.screenful(q))
	p.diff(q.Diff, screenLines)
	prompt := "  y once, n no (reason), d diff, q stop > "
	if q.Command != "" {
		prompt = strings.Replace(prompt, "d diff", "d whole command", 1)
	}
	if q.Always != "" {
		p.say("  a = always allow " + q.Always)
		prompt = strings.Replace(prompt, "once,", "once, a always,", 1)
	}
	var failed error
	r, err := p.until(ctx, prompt, func(line string) (r Reply, again bool) {
		word, rest, _ := strings.Cut(line, " ")
		r.Text = strings.TrimSpace(rest)
		switch strings.ToLower(word) {
		case "y", "yes":
			r.Approve = new(true)
		case "a", "always":
			if r.Approve, r.Always = new(true), true; q.Always == "" {
				p.say("  nothing that always allows this would hold: y allows it once")
				return r, true
			}
		case "n", "no":
			if r.Approve = new(false); r.Text == "" {
				rest, failed = p.Read(ctx, "  reason for the model (Enter for none) > ")
				r.Text = strings.TrimSpace(rest)
			}
		case "d", "diff":
			switch {
			case q.Command != "":
				p.whole(q.Text)
			case q.Diff == "":
				p.say("  there is no diff: " + q.Text)
			}
			p.diff(q.Diff, 0)
			return r, true
		case "q", "quit":
			r = Reply{Stop: true}
		default:
			p.say("  answer with one of the letters; words for the model go behind them, as in: n use the other file")
			return r, true
		}
		return r, false
	})
	if err = cmp.Or(err, failed); err != nil {
		return Reply{}, err
	}
	return r, nil
}

// screenful is the text of a question in which a long command is cut to a screenful. A line
// that is wider than the screen counts for as many as it takes.
func (p *Prompter) screenful(q api.QuestionOpened) string {
	if q.Command == "" {
		return q.Text
	}
	width := 100
	if p.d.o.Width > 0 {
		width = max(p.d.o.Width-len("  "), 20)
	}
	var out []string
	room, left := screenLines, 0
	for _, line := range strings.Split(q.Text, "\n") {
		if !strings.HasPrefix(line, commandIndent) {
			if left > 0 {
				out, left = append(out, more(left)), 0
			}
			out = append(out, line)
			continue
		}
		shown := line
		if room*width < Columns(line) {
			if shown = Cut(line, max(room, 0)*width); room <= 0 {
				shown = ""
			}
			left++
		}
		if shown != "" {
			out = append(out, shown)
		}
		room -= (Columns(line) + width - 1) / width
	}
	if left > 0 {
		out = append(out, more(left))
	}
	return strings.Join(out, "\n")
}

func more(lines int) string {
	return fmt.Sprintf("... %d more lines, d shows all", lines)
}

// whole shows what is to be approved: never cut, its line breaks kept, and with a
// word on characters that a terminal would not show.
func (p *Prompter) whole(text string) {
	var lines []view.Line
	for i, l := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		lead := "  "
		if i == 0 {
			lead = "? "
		}
		lines = append(lines, view.Line{Style: view.Asked, Text: lead + l})
	}
	if Safe(text) != text {
		lines = append(lines, view.Line{Style: view.Bad, Text: "  it holds invisible or control characters, left out here: " +
			"" + strconv.QuoteToASCII(text)})
	}
	p.d.Lines(lines)
}

// words asks for free text; a number stands for the suggestion beside it.
func (p *Prompter) words(ctx context.Context, q api.QuestionOpened) (Reply, error) {
	p.d.Question(q)
	prompt := "  your answer (q alone stops) > "
	if len(q.Choices) > 0 {
		prompt = "  a number or your own words (q alone stops) > "
	}
	return p.until(ctx, prompt, func(line string) (r Reply, again bool) {
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(q.Choices) {
			line = q.Choices[n-1]
		} else if line == "q" {
			return Reply{Stop: true}, false
		}
		return Reply{Text: line}, false
	})
}

// InMode is the note at a choice that continues in another mode.
func InMode(q api.QuestionOpened, choice int) string {
	if choice >= len(q.Modes) || q.Modes[choice] == "" {
		return ""
	}
	return " (" + OneLine(q.Modes[choice]) + ")"
}

func (p *Prompter) say(text string) {
	p.d.Lines([]view.Line{{Style: view.Dim, Text: OneLineIndented(text)}})
}

func (p *Prompter) diff(diff string, most int) {
	if diff != "" {
		p.d.Lines(indented(diff, most, view.DiffStyle, ", d shows all"))
	}
}

// OneLineIndented is OneLine that keeps the blanks in front.
func OneLineIndented(text string) string {
	trimmed := strings.TrimLeft(text, " ")
	return text[:len(text)-len(trimmed)] + OneLine(trimmed)
}

// Read shows a prompt and returns the next line. It returns ctx's error when ctx
// ends first, and ErrNoInput when there is no more input.
func (p *Prompter) Read(ctx context.Context, prompt string) (string, error) {
	p.settle(ctx)
	shown := time.Now()
	for {
		p.d.prompt(prompt)
		line, err := p.next(ctx)
		p.d.answered(err != nil)
		if err != nil {
			return "", err
		}
		if !p.stale.Swap(false) || time.Since(shown) >= afterglow { // a later line is for this question
			return line, nil
		}
		p.say("  that was typed for the earlier question; type it again if it is for this one")
	}
}

// next is the next line that the user types.
func (p *Prompter) next(ctx context.Context) (string, error) {
	if p.typed != nil {
		return p.typed.next(ctx)
	}
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case line, ok := <-p.lines:
		if !ok {
			return "", ErrNoInput
		}
		return line, nil
	}
}

// Forget drops what was typed while nothing was asked: it answers no question that comes
// later. Whether it was read already, or the terminal holds it still, makes no difference.
func (p *Prompter) Forget() {
	if p.typed != nil {
		p.typed.drop()
		return
	}
	select {
	case <-p.lines:
	default:
	}
}

// A question may disappear from the terminal while the user is typing: another client has answered it. What was typed
// for it must not answer the next one, which may be about something else, and may appear at once.

// afterglow is how soon after a question comes a line that was begun for the one before.
const afterglow = time.Second

// Dismiss marks a question that left the terminal before it was answered there. It drops what was typed by then, and
// a line that comes right after the next question.
func (p *Prompter) Dismiss() {
	p.stale.Store(true)
	p.Forget()
}

// settle drops input that the user typed between a dismissed question and the next one.
func (p *Prompter) settle(ctx context.Context) {
	if p.typed == nil || !p.stale.Load() {
		return
	}
	for {
		p.Forget()
		select {
		case <-p.typed.news:
		case <-time.After(20 * time.Millisecond): // the reader has given all that it had
			return
		case <-ctx.Done():
			return
		}
	}
}

// typed is what a user types. A goroutine reads it, one line ahead and no more: the input after that belongs to the
// next program that has the terminal.
//
// Dropped input must be dropped wherever it is: in the terminal, on its way, or here. So a terminal is read only when
// it holds input, and no goroutine drops anything during the read.
type typed struct {
	in      io.Reader
	news    chan struct{} // held or over changed since the last look
	reading chan struct{} // its holder reads the terminal, or empties it

	mu     sync.Mutex
	taken  sync.Cond // the last line that was held
	held   []byte    // what was read and not taken yet
	over   bool      // the input ended
	drops  int       // how often all was dropped
	reader bool      // it reads
}

func newTyped(in io.Reader) *typed {
	t := &typed{in: in, news: make(chan struct{}, 1), reading: make(chan struct{}, 1)}
	t.taken.L = &t.mu
	return t
}

// next is the next line.
func (t *typed) next(ctx context.Context) (string, error) {
	t.open()
	for {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if line, ok, over := t.take(); ok {
			return line, nil
		} else if over {
			return "", ErrNoInput
		}
		select {
		case <-ctx.Done():
		case <-t.news:
		}
	}
}

// take removes and returns the first line, if there is one.
func (t *typed) take() (line string, ok, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.tell() // another goroutine that waits
	whole, rest, ok := bytes.Cut(t.held, []byte("\n"))
	if !ok && (!t.over || len(t.held) == 0) {
		return "", false, t.over
	}
	t.held = rest
	if !t.waiting() {
		t.taken.Signal()
	}
	return strings.TrimRight(string(whole), "\r\n"), true, false
}

// waiting reports whether there is something to take. The caller holds mu.
func (t *typed) waiting() bool { return t.over || bytes.IndexByte(t.held, '\n') >= 0 }

// tell wakes a goroutine that waits for a line, if a line has come. The caller holds mu.
func (t *typed) tell() {
	if t.waiting() {
		select {
		case t.news <- struct{}{}:
		default:
		}
	}
}

// open begins to read.
func (t *typed) open() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.reader {
		t.reader = true
		go t.read()
	}
}

// read reads until the input ends, which may be as late as the process.
func (t *typed) read() {
	buf := make([]byte, 4096)
	keys := terminal(t.in)
	for over := false; !over; {
		t.mu.Lock()
		for t.waiting() {
			t.taken.Wait()
		}
		t.mu.Unlock()
		if keys == nil {
			n, err := t.in.Read(buf)
			over = t.got(t.count(), buf[:n], err)
			continue
		}
		keys.wait()
		t.reading <- struct{}{}
		if keys.has() {
			before := t.count()
			n, err := t.in.Read(buf)
			over = t.got(before, buf[:n], err)
		}
		<-t.reading
	}
}

func (t *typed) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drops
}

// got adds what was read, if nothing was dropped since the read began. It reports whether
// it was the last.
func (t *typed) got(drops int, read []byte, err error) (over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if drops == t.drops {
		t.held = append(t.held, read...)
	}
	t.over = err != nil
	t.tell()
	return t.over
}

// stuck bounds a read after the terminal reported input. A read that takes longer lost its input to another process, and
// callers do not wait for it.
const stuck = time.Second

// drop drops what was typed so far.
func (t *typed) drop() {
	late := time.NewTimer(stuck)
	defer late.Stop()
	select {
	case t.reading <- struct{}{}:
		defer func() { <-t.reading }()
		dropTyped(t.in)
	case <-late.C: // what it brings is dropped when it comes
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = nil
	t.drops++
	t.taken.Signal()
}
