// Package app holds what all commands need: streams, flags, settings and keys, connections to a server or to this
// process, signals, tables, the pager and completion. It knows no command. Packages of commands embed App and do not
// import each other.
package app

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/cli/theme"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/view"
)

// App is one invocation of roost: its streams, its environment and its flags.
type App struct {
	In       io.Reader
	Out, Err io.Writer // Run makes Out an Output
	Env      func(string) string
	Dir      string // the current folder
	Now      func() time.Time

	InTTY, OutTTY, ErrTTY bool
	Width, Height         int // of the terminal, 0 when there is none

	Flags  global
	Loaded *config.Settings
	Screen *display.Display
	Asker  *display.Prompter
	Muted  bool   // no message may be printed: a shell completes
	Less   string // options for the pager less, after the user's own

	colours *theme.Theme // of the terminal; nil = not read yet

	first *atomic.Pointer[engine.Run] // see FirstRun
}

// global are the flags that every command takes.
type global struct {
	Root, Cache, Sources, Server            string
	JSON, Quiet, Verbose, NoColour, NoInput bool
}

// Interactive reports whether the command can ask a user.
func (a *App) Interactive() bool { return a.InTTY && a.ErrTTY && !a.Flags.NoInput && !a.Flags.JSON }

// Say prints a message for the user to stderr, unless -q is set or a result could not be printed.
func (a *App) Say(format string, args ...any) {
	out, _ := a.Out.(*Output)
	if !a.Flags.Quiet && (out == nil || !out.failed.Load()) {
		a.aside(display.Safe(fmt.Sprintf(format, args...)))
	}
}

// aside prints a line to stderr, beside what the display shows.
func (a *App) aside(line string) {
	if a.Screen != nil && a.ErrTTY && !a.Flags.JSON {
		a.Screen.Aside(line)
		return
	}
	fmt.Fprintln(a.Err, line)
}

// ErrJSON is stderr for whole JSON documents.
func (a *App) ErrJSON() io.Writer {
	if a.ErrTTY {
		return redact.TerminalJSON(a.Err)
	}
	return a.Err
}

// Warn prints a warning, also with -q.
func (a *App) Warn(text string) {
	switch {
	case a.Muted:
	case a.Flags.JSON:
		_ = encode(a.ErrJSON(), map[string]string{"type": "notice", "kind": "warning", "text": text})
	default:
		a.aside(a.ErrStyle().Paint(view.Asked, "! "+display.OneLine(text)))
	}
}

// Millis returns the time now, in Unix milliseconds.
func (a *App) Millis() int64 { return a.Now().UnixMilli() }

// Output is stdout with a buffer, for one goroutine. The first error of a write stays: nothing is written after it, and
// each later Write and Flush returns it. So a command may ignore the errors of what it prints; Run reports the first one.
type Output struct {
	W      io.Writer
	buffer *bufio.Writer
	screen *redact.Screen // gets JSON before the buffer does; nil: W is no terminal
	json   *bool          // the output is JSON
	failed atomic.Bool
}

// NewOutput makes an output on w. For a terminal it makes JSON safe; json reports whether the output is JSON.
func NewOutput(w io.Writer, terminal bool, json *bool) *Output {
	if outer, is := w.(*Output); is { // a command that another one runs
		w = outer.W
	}
	o := &Output{W: w, buffer: bufio.NewWriter(w), json: json}
	if terminal {
		o.screen = redact.TerminalJSON(o.buffer)
	}
	return o
}

func (o *Output) Write(p []byte) (n int, err error) {
	if o.screen != nil && *o.json {
		n, err = o.screen.Write(p)
	} else {
		n, err = o.buffer.Write(p)
	}
	return n, o.noted(err)
}

// Flush writes what is buffered.
func (o *Output) Flush() error { return o.noted(o.buffer.Flush()) }

func (o *Output) noted(err error) error {
	if err != nil {
		o.failed.Store(true)
	}
	return api.Failed(err, "print the result")
}

// Close writes the rest, also of a character that is not complete.
func (o *Output) Close() error {
	if o.screen != nil {
		_ = o.screen.Close() // Flush returns the error
	}
	return o.Flush()
}

// Flush writes what is buffered of the result, and returns the first error of printing it. Everything that prints a result
// calls it at its end.
func (a *App) Flush() error {
	if out, is := a.Out.(*Output); is {
		return out.Flush()
	}
	return nil
}

// ReaderGone reports whether a write failed because the reader closed its end, as in `roost list | head -1`: that is no
// failure of the command.
func ReaderGone(err error) bool {
	const noData, brokenPipe = syscall.Errno(232), syscall.Errno(109) // on Windows
	var code syscall.Errno
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return true
	}
	return os.PathSeparator == '\\' && errors.As(err, &code) && (code == noData || code == brokenPipe)
}

// SurviveBrokenPipes turns a write to a pipe without a reader into an error of that write. By default the signal ends
// the process, and with it a run whose output has no reader. It catches the signal instead of ignoring it: commands
// that a run starts would inherit an ignored signal, and `yes | head` would not end.
func SurviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// Println prints lines of the result to stdout.
func (a *App) Println(lines ...string) error { return a.Painted(api.Each(lines, a.Result)) }

// Styled prints a line of the result in a style, without flushing it. The text must be safe for a terminal already.
func (a *App) Styled(style view.Style, text string) {
	fmt.Fprintln(a.Out, a.OutStyle().Paint(style, text))
}

// Painted prints lines of the result that have colours, and whose texts are safe for a terminal already.
func (a *App) Painted(lines []string) error {
	for _, line := range lines {
		fmt.Fprintln(a.Out, line)
	}
	return a.Flush()
}

// Result returns a text in the form for stdout: safe for a terminal, unchanged for programs.
func (a *App) Result(text string) string {
	if a.OutTTY {
		return display.Safe(text)
	}
	return text
}

// encode writes v as JSON without HTML escapes.
func encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// PrintJSON prints a document to stdout.
func (a *App) PrintJSON(v any) error {
	out := a.Out
	if a.OutTTY && !a.Flags.JSON { // with --json, Output makes everything safe for the terminal
		out = redact.TerminalJSON(out)
	}
	if err := encode(out, v); err != nil {
		return err
	}
	return a.Flush()
}

// Show prints a document to stdout: as JSON with --json, else by show.
func Show[T any](a *App, doc T, show func(T)) error {
	if a.Flags.JSON {
		return a.PrintJSON(doc)
	}
	show(doc)
	return a.Flush()
}

// Outcome prints what a command has done: as JSON with --json, else as a line.
func (a *App) Outcome(doc any, line string) error {
	return Show(a, doc, func(any) { a.Println(line) })
}

// Items prints the JSON document of a list.
func (a *App) Items(items any) error { return a.PrintJSON(map[string]any{"items": items}) }

// Age returns how long ago a time in Unix milliseconds was.
func (a *App) Age(ts int64) string { return display.AgeOf(time.UnixMilli(a.Millis()), ts) }

// Tell prints a failure to stderr.
func (a *App) Tell(f *failure.Failure) {
	if a.Flags.JSON {
		_ = encode(a.ErrJSON(), f.Document()) // an error of stderr cannot be shown anywhere
		return
	}
	style := a.ErrStyle()
	fmt.Fprintln(a.Err, style.Paint(view.Bad, "roost: "+display.OneLine(f.What)))
	fmt.Fprintln(a.Err, "  "+display.OneLine(f.Why))
	if f.Try != "" {
		fmt.Fprintln(a.Err, "  try: "+display.Safe(f.Try))
	}
	for _, c := range f.Candidates {
		line := fmt.Sprintf("    %-8s  %5s  %-6s  %s", display.OneLine(c.Name), a.Age(c.TS), display.OneLine(c.Tool), display.OneLine(c.Title))
		fmt.Fprintln(a.Err, display.Cut(line, cmp.Or(a.Width, 120)))
	}
	for i, s := range f.Suggestions {
		switch {
		case i == 0 && len(f.Suggestions) == 1 && f.Try != "", s == f.Try:
		case i < len(f.Candidates): // it is named above
		default:
			fmt.Fprintln(a.Err, "    "+display.OneLine(s))
		}
	}
}

// Watched lets work under the context show its progress on the terminal. done removes the progress, before a result is
// printed. Logs and pipes get no progress.
func (a *App) Watched(ctx context.Context) (_ context.Context, done func()) {
	if a.Flags.Quiet || a.Muted || !a.ErrTTY || a.Env("TERM") == "dumb" {
		return ctx, func() {}
	}
	p := display.NewProgress(a.Err, a.DisplayOptions().Columns, a.Now)
	return progress.With(ctx, func(at progress.State) { p.Show(at.What, at.Done, at.Of, counts(at)) }), p.Clear
}

// counts returns the progress of work as text: tasks, files, bytes.
func counts(p progress.State) string {
	text := fmt.Sprintf("%d tasks", p.Done)
	if p.Of > 0 {
		text = fmt.Sprintf("%d of %d tasks", p.Done, p.Of)
	}
	if p.Files > 0 {
		text += fmt.Sprintf(", %d files", p.Files)
	}
	if p.Bytes > 0 {
		text += ", " + api.SizeText(p.Bytes)
	}
	return text
}

// Counting is a writer that reports how many bytes were written, for the progress.
type Counting struct {
	W    io.Writer
	n    int64
	Tell func(int64)
}

func (c *Counting) Write(p []byte) (int, error) {
	n, err := c.W.Write(p)
	c.n += int64(n)
	c.Tell(c.n)
	return n, err
}

// Pager returns the command line of the user's pager for long output; "" = none. Only a terminal gets one.
func (a *App) Pager() string {
	if !a.OutTTY || !a.InTTY || a.Flags.JSON || a.Flags.NoInput || a.Env("NO_PAGER") != "" || a.Env("TERM") == "dumb" {
		return ""
	}
	line := strings.TrimSpace(a.Env("PAGER"))
	switch {
	case line == "cat":
		return ""
	case line != "":
		return line
	}
	if _, err := exec.LookPath("less"); err != nil {
		return ""
	}
	return "less"
}

// Paged runs f with its output in the user's pager, if there is one. A user who leaves the pager early has seen
// enough; that is no error.
func (a *App) Paged(ctx context.Context, f func() error) error {
	line := a.Pager()
	out, ok := a.Out.(*Output)
	if line == "" || !ok {
		return f()
	}
	cmd := pagerCommand(ctx, line)
	less := cmp.Or(a.Env("LESS"), "FRX") // leave when it fits, keep colours, leave it on the screen
	cmd.Env = append(os.Environ(), "LESS="+less+a.Less)
	if a.Env("LESSCHARSET") == "" {
		cmd.Env = append(cmd.Env, "LESSCHARSET=utf-8") // the output is UTF-8, whatever the locale
	}
	cmd.Stdout, cmd.Stderr = out.W, a.Err
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil { // without its pager the output is still shown
		a.Say("the pager did not start: %v", err)
		return f()
	}
	// An interrupt is for the pager. It is caught and not ignored, and only from here on: the pager would inherit an ignored
	// signal.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)

	var said bytes.Buffer
	stdout, stderr := a.Out, a.Err
	pipe := NewOutput(in, false, nil)
	a.Out, a.Err = pipe, &said
	err = f()
	a.Out, a.Err = stdout, stderr
	unread := pipe.Flush()
	if err == nil {
		err = unread
	}
	left := ReaderGone(unread)
	if left && ReaderGone(err) {
		err = nil
	}
	closed := in.Close()
	if ReaderGone(closed) || errors.Is(closed, os.ErrClosed) {
		closed = nil
	}
	ended := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(ended, &exit) && exit.ExitCode() == noCommand:
		a.Warn("there is no pager " + line + "; NO_PAGER=1 prints without one")
		return f() // no user has seen its first output and messages
	case exit != nil && (left || len(interrupts) > 0): // after Ctrl-C in less, the shell above it ends with that signal
		ended = nil
	}
	if _, werr := io.Copy(stderr, &said); err == nil {
		err = werr
	}
	if err == nil && errors.Join(closed, ended) != nil {
		return fmt.Errorf("show the output in the pager %s (NO_PAGER=1 prints without one): %w", line, errors.Join(closed, ended))
	}
	return err
}

// noCommand is the exit code of a shell that does not find the command.
const noCommand = 127

// pagerCommand runs a command line as git does: by the shell, where there is one.
func pagerCommand(ctx context.Context, line string) *exec.Cmd {
	if os.PathSeparator == '\\' {
		words := strings.Fields(line)
		return exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the user's own choice
	}
	return exec.CommandContext(ctx, "sh", "-c", line) //nolint:gosec // the user's own choice
}

// Stopper makes the first Ctrl-C, SIGTERM or hang-up stop a run and save it, and the second one end the process at
// once. With AskFirst, the first Ctrl-C asks the user what to stop, and stops nothing before the answer.
type Stopper struct {
	Ctx  context.Context //nolint:containedctx // ends when all should stop
	Undo func()
	tell func()
	Stop context.CancelFunc

	mu       sync.Mutex
	code     int
	first    func() bool // reports whether there is something to ask about; nil: never ask
	asked    context.Context
	ask      context.CancelFunc
	open     bool // a question is open
	halved   bool // the user chose that only a part stops
	released int  // how many programs Ctrl-C is for instead
}

// Bounce is the longest time between two signals of the same kind that count as one: a terminal sends Ctrl-C to roost
// and to a wrapper (`go run`, npm, make), which passes it on. No user presses twice that fast.
const Bounce = 300 * time.Millisecond

// signalAction is the reaction to a signal.
type signalAction int

const (
	stopAll signalAction = iota
	askWhat
	endNow
	doNothing
)

// Stopper makes a stopper that listens at once. Call it before a run starts: otherwise a signal between the start and the
// first event would end the process unsaved, and leave the run's commands behind.
func (a *App) Stopper(ctx context.Context) *Stopper { return a.StopperWith(ctx, a.Stopping) }

// StopperWith is Stopper with another message for the first signal.
func (a *App) StopperWith(ctx context.Context, tell func()) *Stopper {
	s := NewStopper(ctx, tell)
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it stays ignored
		signal.Notify(ch, syscall.SIGHUP)
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		s.listen(ch, quit, func(code int) {
			patiently(func() { fmt.Fprintln(a.Err, "ended at once; what was acknowledged is saved") })
			os.Exit(code)
		})
	}()
	s.Undo = func() {
		signal.Stop(ch)
		close(quit)
		<-gone
		s.Stop()
	}
	return s
}

// listen handles signals until quit is closed. It takes the time of a signal when it reads the signal, because handling
// one is quick.
func (s *Stopper) listen(ch <-chan os.Signal, quit <-chan struct{}, end func(code int)) {
	var last time.Time
	before := 0
	for {
		select {
		case <-quit:
			return
		case sig := <-ch:
			code := SignalExit(sig)
			if code == before && time.Since(last) < Bounce {
				continue
			}
			before, last = code, time.Now()
			if s.take(code) == endNow {
				end(code)
			}
		}
	}
}

// patience is how long a signal waits until its message is on the terminal.
const patience = time.Second

// patiently calls say, and returns when say has returned or patience is over. So a terminal or pipe that accepts no
// output does not delay the stop; the blocked write ends with the process.
func patiently(say func()) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, _ = config.Await(ctx, func() (bool, error) {
		say()
		return true, nil
	})
}

// NewStopper makes a stopper that listens to no signal yet. It calls tell at the first signal.
func NewStopper(ctx context.Context, tell func()) *Stopper {
	s := &Stopper{tell: tell}
	s.Ctx, s.Stop = context.WithCancel(ctx)
	s.asked, s.ask = context.WithCancel(s.Ctx)
	return s
}

// take handles a signal, except for ending the process.
func (s *Stopper) take(code int) signalAction {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.released > 0 && code == failure.ExitInterrupt:
		return doNothing
	case s.code != 0, s.open && code == failure.ExitInterrupt:
		return endNow
	case !s.open && code == failure.ExitInterrupt && s.first != nil && s.first():
		s.open = true
		s.ask()
		return askWhat
	}
	// A user who ends a program or closes its terminal answers no questions.
	s.all(code)
	return stopAll
}

func (s *Stopper) all(code int) {
	s.code, s.open = code, false
	patiently(s.tell) // first: the run's messages about its end follow it
	s.Stop()
}

// AskFirst makes the first Ctrl-C ask what to stop, while about reports true. The code that asks passes the answer to
// Answered. With a nil about, Ctrl-C stops at once again.
func (s *Stopper) AskFirst(about func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = about
}

// Asking returns a context that ends when the user must be asked, or when everything should stop.
func (s *Stopper) Asking() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Answered takes the user's choice of what to stop. After StopNothing and StopOne the next Ctrl-C is a first one again.
func (s *Stopper) Answered(c StopChoice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return // a signal was faster
	}
	if c == StopBoth {
		s.all(failure.ExitInterrupt)
		return
	}
	s.open = false
	s.halved = s.halved || c == StopOne
	s.ask()
	s.asked, s.ask = context.WithCancel(s.Ctx)
}

// ReleaseInterrupt leaves Ctrl-C to a program that has the terminal, until back is called. The terminal sends Ctrl-C to
// every process in the foreground, and an editor uses the key for something else.
func (s *Stopper) ReleaseInterrupt() (back func()) {
	add := func(n int) {
		s.mu.Lock()
		s.released += n
		s.mu.Unlock()
	}
	add(1)
	return func() { add(-1) }
}

// Exit returns the exit code of the signal that came, 0 when none did.
func (s *Stopper) Exit() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.code == 0 && s.halved {
		return failure.ExitInterrupt
	}
	return s.code
}

// Stopping prints that the first signal arrived.
func (a *App) Stopping() { a.OnSignal("stopping and saving; once more ends it at once") }

// OnSignal prints what a signal does. It runs on the goroutine of the signals, so it makes a single write.
func (a *App) OnSignal(text string) {
	if a.Flags.JSON {
		a.Warn(text)
		return
	}
	fmt.Fprintln(a.Err, "\n"+text)
}

// SignalExit returns the exit code for a signal, by the convention of shells.
func SignalExit(sig os.Signal) int {
	switch sig {
	case syscall.SIGTERM:
		return failure.ExitTerminated
	case syscall.SIGHUP:
		return failure.ExitHangup
	}
	return failure.ExitInterrupt
}

// StopChoice is what the user wants to stop while a subtask works.
type StopChoice int

// The values of StopChoice.
const (
	StopNothing StopChoice = iota
	StopOne                // the task alone: its subtasks continue
	StopBoth               // the task and its subtasks
)
