package chat

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/mention"
	"github.com/roost-dev/roost/workspace/terminal"
)

// Bounds of a command's output: how much is shown as it comes, how much of its end is shown, and how much a message
// carries.
const (
	shownLines   = 400
	lastLines    = 20
	lineLength   = 4 << 10 // bytes; a longer one is shown in pieces
	keptOutput   = 1 << 20 // bytes of each end
	carriedLines = 400     // unless carriedChars is reached before
	carriedChars = 16 << 10
)

// isShell reports whether a text is a command line for a shell: one line after a "!". A pasted text of many lines is
// not, so that no user runs a copied text by mistake. A line with a blank before the "!" is a prompt.
func isShell(text string) bool { return strings.HasPrefix(text, "!") && !strings.Contains(text, "\n") }

// shell runs a command line of the user in the workspace. It shows the output, and sends it along with the next
// words; after "!!" it only shows the output. "!" alone lists the outputs that wait for the next words, and "!!"
// alone drops them.
func (s *Session) shell(ctx context.Context, text string) error {
	line, apart := strings.CutPrefix(text[1:], "!")
	if line = strings.TrimSpace(line); line == "" {
		s.outputs(apart)
		return nil
	}
	dir := s.workspace(ctx)
	if dir == "" {
		return errors.New("the task has no workspace to run it in")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.running(cancel)
	out := &output{show: func(text string) { s.out.block(text) }}
	ran, err := s.backend.Shell(ctx, dir, line, out)
	out.end()
	s.running(nil)
	if err != nil {
		return err
	}
	how := ending(ran)
	if apart || s.ctx.Err() != nil {
		s.tell("· %s", strings.Join(how, ", "))
		return nil
	}
	carried := carriedOutput{line, s.carry(dir, line, out.text(), ran)}
	s.locked(func() { s.carried = append(s.carried, carried) })
	s.tell("· %s", strings.Join(append(how, "goes along with your next words (!! leaves it out)"), ", "))
	return nil
}

// running records the function that ends the present command line; nil when none runs.
func (s *Session) running(end context.CancelFunc) {
	s.change(func(st *state) { st.Command, s.command = end != nil, end })
}

// ending describes in words how a command line ended.
func ending(r Ran) []string {
	how := []string{"done"}
	switch {
	case r.Cancelled:
		how[0] = "stopped"
	case r.Exit != 0:
		how[0] = fmt.Sprintf("exit code %d", r.Exit)
	}
	if n := len(r.Ended); n > 0 {
		how = append(how, fmt.Sprintf("%d of its processes were left behind and ended", n))
	}
	if r.Duration >= time.Second {
		how = append(how, display.Duration(r.Duration))
	}
	return how
}

// carry returns the text about a command line and its output for the model. It hides secrets as in the output of a
// tool, and escapes mentions and slash commands: the user has not typed them.
func (s *Session) carry(dir, line, output string, r Ran) string {
	output = terminal.Erase(terminal.Overwrite(terminal.Plain(strings.ToValidUTF8(output, "\uFFFD"))))
	output = terminal.Truncate(strings.TrimRight(output, " \t\r\n"), carriedLines, carriedChars)
	head := "$ " + line
	text := s.backend.Mask(output)
	if text != "" {
		text += "\n"
	}
	end := fmt.Sprintf("exit code %d", r.Exit)
	if r.Cancelled {
		end = "stopped by the person"
	}
	fence := "```"
	for strings.Contains(text, fence) || strings.Contains(head, fence) {
		fence += "`"
	}
	return "What I ran in " + dir + ", and its output:\n" + fence + "\n" + literally(head) + "\n" + literally(text) + "(" +
		end + ")\n" + fence
}

// literally puts a "\" before each mention and slash command. A mention with an escaped blank may hide another one
// behind that blank, so literally repeats until it finds none.
func literally(text string) string {
	for {
		marks := api.SetOf(api.Each(mention.Scan(text), func(m mention.Mention) int { return m.At }))
		for _, c := range mention.Commands(text) {
			marks[c.At] = true
		}
		if len(marks) == 0 {
			return text
		}
		var out strings.Builder
		for i := range len(text) {
			if marks[i] {
				out.WriteByte('\\')
			}
			out.WriteByte(text[i])
		}
		text = out.String()
	}
}

// outputs lists the outputs that wait for the next words, or drops them.
func (s *Session) outputs(drop bool) {
	var list []carriedOutput
	verb := "goes along"
	s.locked(func() {
		if list = s.carried; drop {
			s.carried, verb = nil, "left out"
		}
	})
	if len(list) == 0 {
		s.tell("no output goes along with the next words; !COMMAND runs one in the workspace")
	}
	for _, c := range list {
		s.tell("%s: $ %s", verb, c.line)
	}
}

// output takes the output of a command. It shows lines as they end, and keeps both ends of the whole output.
type output struct {
	show func(string)

	mu    sync.Mutex
	line  []byte // the unfinished line
	lines int    // how many lines were printed
	last  []string
	head  []byte
	tail  []byte
	cut   bool
}

// Write takes a piece of output.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep(p)
	var ready []string
	for rest := p; len(rest) > 0; {
		line, more, whole := bytes.Cut(rest, []byte("\n"))
		o.line, rest = append(o.line, line...), more
		if whole || len(o.line) > lineLength {
			if text, ok := o.next(); ok {
				ready = append(ready, text)
			}
		}
	}
	if len(ready) > 0 {
		o.show(strings.Join(ready, "\n"))
	}
	return len(p), nil
}

// next returns the next finished line that can be shown now.
func (o *output) next() (string, bool) {
	text := display.Safe(strings.TrimRight(terminal.Erase(terminal.Overwrite(terminal.Plain(string(o.line)))), " \r"))
	o.line = o.line[:0]
	o.lines++
	if o.lines <= shownLines {
		return cmp.Or(text, " "), true // an empty block is none
	}
	if o.last = append(o.last, text); len(o.last) > lastLines {
		o.last = o.last[1:]
	}
	return "", false
}

func (o *output) keep(p []byte) {
	if room := keptOutput - len(o.head); room > 0 {
		n := min(room, len(p))
		o.head, p = append(o.head, p[:n]...), p[n:]
	}
	o.tail = append(o.tail, p...)
	if over := len(o.tail) - keptOutput; over > keptOutput { // not for each piece
		o.tail = append(o.tail[:0], o.tail[over:]...)
		o.cut = true
	}
}

// end shows the unfinished line, and the last lines of a long output.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.line) > 0 {
		if text, ok := o.next(); ok {
			o.show(text)
		}
	}
	if left := o.lines - shownLines - len(o.last); left > 0 {
		o.show(fmt.Sprintf("… %d lines are not shown …", left))
	}
	if len(o.last) > 0 {
		o.show(strings.Join(o.last, "\n"))
	}
}

// text returns the whole output, or both ends of a long one.
func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.cut {
		return string(o.head) + string(o.tail)
	}
	return string(o.head) + "\n[... much output is left out ...]\n" + string(o.tail)
}

// along returns the row above the editor about the pictures and outputs that wait for the next words.
func (s *Session) along() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := pictures(s.images)
	if n := len(s.carried); n > 0 {
		what += api.Plural(n, "output")
	}
	switch what = strings.TrimSpace(what); {
	case what == "":
		return ""
	case len(s.carried)+len(s.images) == 1:
		return "· " + what + " goes along with your next words"
	}
	return "· " + what + " go along with your next words"
}

// prompt sends words to the task: as the first words of a new task, into the queue of the working run, or to a new run.
func (s *Session) prompt(ctx context.Context, text string) error {
	st := s.state()
	return s.deliver(ctx, st.Task, text, func(ctx context.Context, w api.Words) error {
		if st.Working {
			return s.queue(ctx, st.Task, w)
		}
		s.echo(s.short(w.Text))
		if st.Task == "" {
			return s.begin(ctx, w)
		}
		return s.goOn(ctx, st.Task, w)
	})
}

// echo shows words that the user typed here. Plain needs no echo: its terminal shows the typed text.
func (s *Session) echo(text string) {
	if s.state().echoes {
		s.quote(text)
	}
}

// begin starts a task.
func (s *Session) begin(ctx context.Context, w api.Words) error {
	n := s.o.New
	n.Message = &w
	s.shown(w.Text)
	run, err := s.backend.Start(ctx, n)
	if err != nil {
		s.shown("")
		return err
	}
	s.came = true
	s.locked(func() { s.st.again.OneRun = n.OneRun })
	s.tell("task %s", run.Task)
	if err := s.follow(ctx, run.Task, "0"); err != nil {
		return err
	}
	s.started(run.ID)
	return nil
}

// goOn continues a task on which no run works, with the changed settings.
func (s *Session) goOn(ctx context.Context, id string, w api.Words) error {
	if err := s.found(ctx, id); err != nil {
		return err
	}
	again := s.state().again
	s.shown(w.Text)
	run, err := "", error(nil)
	if reflect.DeepEqual(again, api.NewRun{}) {
		var sent api.Sent
		sent, err = s.backend.Send(ctx, id, api.Message{Text: w.Text, Images: w.Images})
		run = sent.Run
	} else {
		again.Message = &w
		run, err = s.resume(ctx, id, again)
	}
	if busy, is := errors.AsType[*client.Problem](err); is && busy.Status == http.StatusConflict && busy.Code == "task_busy" {
		return s.queue(client.Keyed(ctx, client.KeyOf(ctx)+"-queued"), id, w) // another client was faster
	}
	if err != nil {
		s.shown("")
		return err
	}
	s.started(run)
	return nil
}

// resume starts a run with the changed settings, which the task then keeps.
func (s *Session) resume(ctx context.Context, id string, n api.NewRun) (string, error) {
	run, err := s.backend.Resume(ctx, id, n)
	if err != nil {
		return "", err
	}
	s.locked(func() { s.st.again = api.NewRun{OneRun: s.o.New.OneRun} }) // settings for one run hold for each run of a chat
	return run.ID, nil
}

// queue sends words to the working run, which takes them with its next request.
func (s *Session) queue(ctx context.Context, id string, w api.Words) error {
	s.shown("") // they may be the words that started the run
	sent, err := s.backend.Send(ctx, id, api.Message{Text: w.Text, Images: w.Images, Delivery: "queue"})
	if err == nil && sent.Delivered == "started" { // the run had ended
		s.started(sent.Run)
	}
	return err
}

// deliver sends the text that the user typed, with the outputs and pictures that wait. Outputs and pictures that came
// later wait for the next words.
func (s *Session) deliver(ctx context.Context, task, text string, send func(ctx context.Context, w api.Words) error) error {
	w, outputs, images := s.message(text)
	err := s.once(ctx, task, w.Text, func(ctx context.Context) error { return send(ctx, w) })
	if err == nil {
		s.locked(func() {
			s.carried = s.carried[min(outputs, len(s.carried)):]
			s.images = s.images[min(images, len(s.images)):]
		})
	}
	return err
}

// once sends words. It repeats the request of owed words; other words, or another task, clear owed: a user who types
// something else does not mean to repeat.
func (s *Session) once(ctx context.Context, task, words string, send func(context.Context) error) error {
	o := s.owed
	if o == nil || o.task != task || o.words != words {
		o = &owed{task: task, words: words, key: client.NewKey(), send: send}
	}
	err := o.send(client.Keyed(ctx, o.key))
	if s.owed = nil; client.Lost(err) {
		s.owed = o
	}
	return err
}

// steer sends words to the working run: the model gets them with its next request. They do not answer an open question.
func (s *Session) steer(ctx context.Context, id, rest string) error {
	if st := s.state(); !st.Working {
		if st.Asking || st.Waiting {
			return errors.New("no run works on the task: it waits for an answer (/answer WORDS, /reject WHY)")
		}
		return s.prompt(ctx, rest)
	}
	return s.deliver(ctx, id, rest, func(ctx context.Context, w api.Words) error { return s.queue(ctx, id, w) })
}

// interject interrupts and saves the present step of the run, and continues with the words at once.
func (s *Session) interject(ctx context.Context, id, rest string) error {
	st := s.state()
	switch {
	case st.Asking || st.Waiting:
		return errors.New("a question is open: /reject WHY or /answer WORDS")
	case !st.Working:
		return s.prompt(ctx, rest)
	}
	s.locked(func() { s.st.broken = s.st.run })
	return s.deliver(ctx, id, rest, func(ctx context.Context, w api.Words) error {
		sent, err := s.backend.Send(ctx, id, api.Message{Text: w.Text, Images: w.Images, Delivery: "interrupt"})
		if err == nil {
			s.started(sent.Run)
		}
		return err
	})
}

// reject refuses the call that a run asks about; the model gets the reason.
func (s *Session) reject(ctx context.Context, id, rest string) error {
	q, err := s.asked(ctx, id)
	if err != nil {
		return err
	}
	if display.Choices(q.QuestionOpened) == nil {
		return errors.New("the open question wants words, not a yes: /answer WORDS")
	}
	return s.decide(ctx, q, api.Answer{Approve: new(false), Text: rest, Seen: q.Event})
}

// asked returns the open question of the task: the one on the screen, or the newest.
func (s *Session) asked(ctx context.Context, id string) (api.Question, error) {
	list, err := s.backend.Questions(ctx, id)
	if err != nil {
		return api.Question{}, err
	}
	if len(list) == 0 {
		return api.Question{}, errors.New("no question is open")
	}
	now := s.state().asks
	if i := slices.IndexFunc(list, func(q api.Question) bool { return q.ID == now }); i >= 0 {
		return list[i], nil
	}
	return list[len(list)-1], nil
}

// decide answers a question by a command instead of at its prompt.
func (s *Session) decide(ctx context.Context, q api.Question, a api.Answer) error {
	s.locked(func() { s.own = q.ID })
	ends := s.state().ends
	done, err := s.backend.Answer(ctx, q.ID, a)
	if err != nil {
		s.locked(func() { s.own = "" })
		return fmt.Errorf("answer: %w", err)
	}
	s.resumed(q.ID, done.Run, ends)
	return nil
}
