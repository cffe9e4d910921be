package term

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/view"
)

// screenLines is the number of lines of a diff or a command that are shown before the user must press `d` for the
// rest.
const screenLines = 20

// commandIndent begins the lines of a command that has several.
const commandIndent = "    "

// Reply is the answer of the user at a prompt.
type Reply struct {
	Approve *bool
	Text    string
	Always  bool
	Stop    bool // stop and save
}

// ErrNoInput: the input ended before the user answered.
var ErrNoInput = errors.New("the input ended")

// Prompter asks the user on a terminal.
//
// A read of a terminal cannot be cancelled, so a goroutine that lives as long as the process reads the lines; a
// prompt ends with its context.
type Prompter struct {
	d     *Display
	typed *typed       // like stale, shared by all prompters of the terminal
	lines chan string  // from another reader of the terminal; typed is nil then
	stale *atomic.Bool // the input may be meant for a question that has closed

	single bool // see ByKey
	now    func() time.Time
	after  func(time.Duration) <-chan time.Time
}

// NewPrompter makes a prompter that asks through d and reads answers from in.
func NewPrompter(d *Display, in io.Reader) *Prompter {
	return &Prompter{d: d, typed: newTyped(in), stale: new(atomic.Bool), now: time.Now, after: time.After}
}

// LinePrompter makes a prompter that asks through d and gets the answers from another reader of the terminal, which
// never closes lines. A line may hold line breaks. Forget, Dismiss and Aside are for a prompter that reads the
// terminal itself: the other reader drops its input by its own rules.
func LinePrompter(d *Display, lines chan string) *Prompter {
	return &Prompter{d: d, lines: lines, stale: new(atomic.Bool), now: time.Now, after: time.After}
}

// On returns the prompter for questions that are shown on another display.
func (p *Prompter) On(d *Display) *Prompter {
	other := *p
	other.d = d
	return &other
}

// Aside calls f, which reads the terminal itself, and reads nothing until f returns. It does not work on a system
// whose terminals cannot report waiting input: there a read that has begun continues.
func (p *Prompter) Aside(f func() error) error {
	p.typed.reading <- struct{}{}
	defer func() { <-p.typed.reading }()
	return f()
}

// Ask asks the user a question of a run. Enter alone is never an answer.
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
	return p.choose(ctx, q, func(line string) (r Reply, again bool, err error) {
		switch strings.ToLower(line) {
		case "y", "yes":
			r.Approve = new(true)
		case "n", "no":
			r.Approve = new(false)
		case "q", "quit":
			r.Stop = true
		default:
			p.say("  answer with one of the letters")
			again = true
		}
		return r, again, nil
	})
}

// taker turns a line, or the letter of a key, into an answer. again: it is none, and the question stays.
type taker func(line string) (r Reply, again bool, err error)

// until reads lines until take accepts one as an answer.
func (p *Prompter) until(ctx context.Context, prompt string, take taker) (Reply, error) {
	for {
		line, err := p.Read(ctx, prompt)
		if err != nil {
			return Reply{}, err
		}
		if line = strings.TrimSpace(line); line == "" {
			p.say("  Enter alone is not an answer")
		} else if r, again, err := take(line); !again {
			return r, err
		}
	}
}

func (p *Prompter) approval(ctx context.Context, q api.QuestionOpened) (Reply, error) {
	p.whole(p.screenful(q))
	p.diff(q.Diff, screenLines)
	if q.Always != "" {
		p.say("  a: always allow " + q.Always)
	}
	return p.choose(ctx, q, func(line string) (r Reply, again bool, err error) {
		word, rest, _ := strings.Cut(line, " ")
		r.Text = strings.TrimSpace(rest)
		switch strings.ToLower(word) {
		case "y", "yes":
			r.Approve = new(true)
		case "a", "always":
			if r.Approve, r.Always = new(true), true; q.Always == "" {
				p.say("  nothing that always allows this would hold: y allows it once")
				again = true
			}
		case "n", "no":
			if r.Approve = new(false); r.Text == "" {
				r.Text, again, err = p.reason(ctx)
			}
		case "d", "diff":
			switch {
			case q.Command != "":
				p.whole(q.Text)
			case q.Diff == "":
				p.say("  there is no diff: " + q.Text)
			}
			p.diff(q.Diff, 0)
			again = true
		case "q", "quit":
			r = Reply{Stop: true}
		default:
			p.say("  answer with one of the letters; words for the model go behind them, as in: n use the other file")
			again = true
		}
		return r, again, err
	})
}

// screenful returns the text of a question with a long command cut to a screenful. A line that is wider than the
// screen counts for as many lines as it takes.
func (p *Prompter) screenful(q api.QuestionOpened) string {
	if q.Command == "" {
		return q.Text
	}
	width := max(cmp.Or(p.d.o.Columns(), 102)-len("  "), 20)
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

// whole shows the text that the user must approve: uncut, with its line breaks, and with a warning about characters
// that a terminal does not show.
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
			strconv.QuoteToASCII(text)})
	}
	p.d.Lines(lines)
}

// words asks for free text; a number chooses one of the suggestions.
func (p *Prompter) words(ctx context.Context, q api.QuestionOpened) (Reply, error) {
	p.d.Question(q)
	prompt := "  your answer (q alone stops) > "
	if len(q.Choices) > 0 {
		prompt = "  a number or your own words (q alone stops) > "
	}
	return p.until(ctx, prompt, func(line string) (r Reply, again bool, err error) {
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(q.Choices) {
			line = q.Choices[n-1]
		} else if line == "q" {
			return Reply{Stop: true}, false, nil
		}
		return Reply{Text: line}, false, nil
	})
}

// InMode returns the note for a choice that continues in another mode.
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
		p.d.Lines(indented(redact.Marked(diff), most, view.DiffStyle, ", d shows all"))
	}
}

// OneLineIndented is OneLine, except that it keeps the blanks at the beginning.
func OneLineIndented(text string) string {
	trimmed := strings.TrimLeft(text, " ")
	return text[:len(text)-len(trimmed)] + OneLine(trimmed)
}

// Read shows a prompt and returns the next line. It returns ctx's error when ctx ends first, and ErrNoInput when there is
// no more input.
func (p *Prompter) Read(ctx context.Context, prompt string) (string, error) {
	p.settle(ctx)
	defer p.again()()
	shown := p.now()
	for {
		p.d.prompt(prompt)
		line, err := p.next(ctx)
		p.d.answered(err != nil)
		if err != nil {
			return "", err
		}
		if !p.stale.Swap(false) || p.now().Sub(shown) >= afterglow { // a later line is for this question
			return line, nil
		}
		p.say("  that was typed for the earlier question; type it again if it is for this one")
	}
}

// next returns the next line that the user types.
func (p *Prompter) next(ctx context.Context) (string, error) {
	if p.typed != nil {
		return p.typed.next(ctx)
	}
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case line := <-p.lines:
		return line, nil
	}
}

// Forget drops the input that was typed while no question was open, because it answers no later question. It drops input
// that was read already, and input that the terminal still holds.
func (p *Prompter) Forget() { p.typed.drop() }

// A question may disappear from the terminal while the user is typing: another client has answered it. What was typed
// for it must not answer the next one, which may be about something else, and may appear at once.

// afterglow is the time after a question for which a line may have been begun for the question before.
const afterglow = time.Second

// Dismiss records that a question left the terminal before the user answered it there. It drops the input so far, and
// a line that comes right after the next question.
func (p *Prompter) Dismiss() {
	p.stale.Store(true)
	p.Forget()
}

// settle drops input that the user typed between a dismissed question and the next one.
func (p *Prompter) settle(ctx context.Context) {
	if !p.stale.Load() {
		return
	}
	for {
		p.Forget()
		select {
		case <-p.typed.news:
		case <-time.After(20 * time.Millisecond): // the reader has passed on all its input
			return
		case <-ctx.Done():
			return
		}
	}
}

// lineOf returns the prompt that lists the letters.
func lineOf(choices []Choice) string {
	return "  " + strings.Join(api.Each(choices, func(c Choice) string { return c.Key + " " + c.Does }), ", ")
}

// armed follows the letters of a prompt that a single key, or a line, can answer now.
const armed = " > "

// reasonPrompt asks for the words after a "no".
const reasonPrompt = "  reason for the model (Enter for none"

// ByKey returns the prompter for a terminal on which single keys answer the questions for which Choices has letters.
// Where a terminal gives only whole lines, a letter and Enter answer.
func (p *Prompter) ByKey() *Prompter {
	other := *p
	other.single = true
	return &other
}

// choose shows the letters and passes the key that the user presses, or the line that they type, to take, until take
// accepts one as an answer.
func (p *Prompter) choose(ctx context.Context, q api.QuestionOpened, take taker) (Reply, error) {
	prompt := lineOf(Choices(q))
	if !p.single {
		return p.until(ctx, prompt+armed, take)
	}
	if p.typed == nil { // the screen that has the terminal shows when the question is armed
		return p.until(ctx, prompt, take)
	}
	end, ok := p.typed.byKey()
	if !ok {
		return p.until(ctx, prompt+armed, take)
	}
	defer end()
	defer p.again()()
	for {
		key, err := p.press(ctx, prompt)
		if err != nil {
			return Reply{}, err
		}
		if r, again, err := take(key); !again {
			return r, err
		}
	}
}

// press shows a prompt and waits for a key that comes after the question is armed. It ignores earlier keys.
func (p *Prompter) press(ctx context.Context, prompt string) (string, error) {
	p.typed.drop()
	p.stale.Store(false) // input for an earlier question is dropped
	now := p.now()
	p.d.prompt(prompt)
	a, shown := Arming{Shown: now}, false
	for {
		var soon <-chan time.Time
		if !shown {
			soon = p.after(a.In(now))
		}
		select {
		case <-ctx.Done():
			p.d.answered(true)
			return "", context.Cause(ctx)
		case <-soon:
			now = p.now()
			if shown = a.In(now) == 0; shown {
				p.d.more(armed)
			}
			continue
		case <-p.typed.news:
		}
		data, over := p.typed.bytes()
		text := string(data)
		if over || text == "\x04" {
			p.d.answered(true)
			return "", ErrNoInput
		}
		now = p.now()
		takes := a.Takes(now, "")
		a.Key = now
		switch {
		case !takes:
		case text == "\n" || text == "\r":
			p.d.answered(true)
			p.say("  Enter alone is not an answer")
			p.d.prompt(prompt)
			shown = false
		case letterOf(text):
			text = strings.TrimRight(text, "\r\n")
			p.d.more(Safe(text))
			p.d.answered(true)
			return text, nil
		}
	}
}

// letterOf reports whether input that came at once is a letter, with or without Enter, or a "no" with its reason.
// More input at once was pasted, and is no answer.
func letterOf(text string) bool {
	line, entered := strings.CutSuffix(strings.ReplaceAll(text, "\r", "\n"), "\n")
	return len(line) == 1 && unicode.IsLetter(rune(line[0])) ||
		entered && strings.HasPrefix(line, "n ") && !strings.Contains(line, "\n")
}

// reason reads the words after a "no". back: the user pressed Esc, and the question is still open.
func (p *Prompter) reason(ctx context.Context) (text string, back bool, err error) {
	if !p.single || p.typed != nil && !p.typed.alone() {
		text, err = p.Read(ctx, reasonPrompt+")"+armed)
		return strings.TrimSpace(text), false, err
	}
	if p.typed == nil { // the screen asks for the reason itself
		return "", false, nil
	}
	p.d.prompt(reasonPrompt + ", Esc goes back)" + armed)
	for {
		select {
		case <-ctx.Done():
			p.d.answered(true)
			return "", false, context.Cause(ctx)
		case <-p.typed.news:
		}
		data, over := p.typed.bytes()
		done := over && len(data) == 0
		if !done {
			done, back = p.edit(&text, string(data))
		}
		if done || back {
			p.d.answered(true)
			if over {
				err = ErrNoInput
			}
			return strings.TrimSpace(text), back, err
		}
	}
}

// edit applies keys to a line, and shows the change.
func (p *Prompter) edit(text *string, typed string) (done, back bool) {
	if strings.HasPrefix(typed, "\x1b") { // alone it is Esc, else the name of a key that moves nothing here
		return false, typed == "\x1b"
	}
	for _, r := range typed {
		switch {
		case r == '\n' || r == '\r' || r == 0x04:
			return true, false
		case r == 0x7f || r == '\b' || r == 0x15: // backspace, and Ctrl-U for all
			for *text != "" {
				_, n := utf8.DecodeLastRuneInString(*text)
				last := (*text)[len(*text)-n:]
				*text = (*text)[:len(*text)-n]
				p.d.less(last)
				if r != 0x15 {
					break
				}
			}
		case Safe(string(r)) == string(r) && !unicode.IsControl(r):
			*text += string(r)
			p.d.more(string(r))
		}
	}
	return false, false
}

// again shows the present prompt again after Ctrl-Z, until end is called. (Another reader of the terminal, if there is one,
// draws it itself.)
func (p *Prompter) again() (end func()) {
	if p.typed == nil || terminal(p.typed.in) == nil {
		return func() {}
	}
	return Continued(func() {
		p.d.line.mu.Lock()
		defer p.d.line.mu.Unlock()
		_, _ = io.WriteString(p.d.w, "\r"+p.d.line.prompt) // see push
	})
}

// more adds text to the prompt on the line.
func (d *Display) more(text string) {
	d.line.mu.Lock()
	defer d.line.mu.Unlock()
	d.line.prompt += text
	_, _ = d.w.Write([]byte(text)) // see push
}

// less removes the last character of the prompt on the line.
func (d *Display) less(last string) {
	d.line.mu.Lock()
	defer d.line.mu.Unlock()
	d.line.prompt = strings.TrimSuffix(d.line.prompt, last)
	n := Columns(last)
	_, _ = d.w.Write([]byte(strings.Repeat("\b", n) + strings.Repeat(" ", n) + strings.Repeat("\b", n))) // see push
}
