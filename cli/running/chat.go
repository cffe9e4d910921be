package running

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/chat"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/view"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/shell"
	"github.com/roost-dev/roost/workspace/skill"
	"github.com/roost-dev/roost/workspace/slash"
)

func (a *commands) chatCommand() *cobra.Command {
	var r app.RunFlags
	var prompt string
	cmd := help.Command("chat", func(cmd *cobra.Command, args []string) error {
		if a.Flags.JSON {
			return failure.Usage("roost chat --json", "a chat is for people; programs run and send",
				"roost run --json PROMPT, roost send ID TEXT --json")
		}
		for name, why := range pointless {
			if cmd.Flags().Changed(name) {
				return failure.Usage("roost chat --"+name, why[0], why[1])
			}
		}
		o, err := a.chatOptions(cmd, &r, args)
		if err != nil {
			return err
		}
		v := &chatOutput{out: a.Err}
		if runtime.GOOS != "windows" {
			v.in, v.screen = a.Drawable()
		}
		a.Err = v // before another goroutine writes to it
		if v.screen != nil && o.Task == "" {
			if err := a.setUp(cmd.Context(), o); err != nil { // before the engine reads the keys
				return err
			}
		}
		return a.WithClient(cmd.Context(), func(c *client.Client, e *engine.Engine) error { return a.chat(cmd.Context(), c, e, v, o, prompt) })
	})
	a.AddRunFlags(cmd, &r)
	for name := range pointless {
		_ = cmd.Flags().MarkHidden(name) // each is a flag of a run
	}
	cmd.Flags().StringVar(&prompt, "prompt", "", "begin with this `text`, as if it had been typed")
	return cmd
}

// pointless are the flags of roost run that make no sense in a chat, each with the reason and the alternative.
var pointless = map[string][2]string{
	"detach": {"a chat stays with its task", "roost run --detach PROMPT"},
	"output": {"a chat shows each result when it comes", "roost run --output json PROMPT"},
	"stream": {"a chat always shows text as it comes", "roost chat"},
	"task":   {"the task is an argument of chat", "roost chat ID"},
}

// chatOptions returns the options from the flags and, for a new task, from the settings. A continued task keeps its
// settings that were not given.
func (a *commands) chatOptions(cmd *cobra.Command, r *app.RunFlags, args []string) (chat.Options, error) {
	o := chat.Options{Ask: a.Interactive()}
	given, err := a.Options(cmd, r, nil)
	if err != nil {
		return o, err
	}
	if given.Message != nil {
		names, _ := cmd.Flags().GetStringArray("image") // the flag exists
		for i, url := range given.Message.Images {
			o.Images = append(o.Images, chat.Image{Name: display.OneLine(filepath.Base(names[i])), URL: url})
		}
	}
	given.Message, given.Unattended, given.Yes = nil, false, false
	o.Again = given.NewRun
	if len(args) > 0 {
		o.Task = args[0]
	}
	given.Workspace = cmp.Or(given.Workspace, a.Dir)
	if given.Settings, err = a.AsNew(given.Settings); err != nil {
		return o, err
	}
	o.New, o.Now = given.NewTask(), a.Now
	o.Display = a.DisplayOptions()
	state, err := a.Home("XDG_STATE_HOME", ".local/state")
	o.History = filepath.Join(state, "chat_history") // the lines that the user typed
	return o, err
}

// chat runs a chat until the user leaves, and then prints how to continue.
func (a *commands) chat(ctx context.Context, c *client.Client, e *engine.Engine, v *chatOutput, o chat.Options, prompt string) error {
	if out, is := a.Out.(*app.Output); is && !a.OutTTY {
		o.Result = out.W // at once; a chat continues without a reader
	}
	stop := a.Stopper(ctx)
	defer stop.Undo()
	o.Editor, o.Away = cmp.Or(a.Env("VISUAL"), a.Env("EDITOR"), "vi"), stop.ReleaseInterrupt
	backend := &chatBackend{Client: c, a: a}
	if o.Ask {
		o.Facts = backend.Facts(stop.Ctx, o.Task, o.New, o.Again)
		for _, line := range o.Facts.Welcome() {
			for _, part := range app.Wrap(line, a.Width) {
				a.Say("%s", part)
			}
		}
	}
	s := chat.New(stop.Ctx, backend, o)
	if prompt != "" {
		s.Line(prompt)
	}
	err := a.Prompter().Aside(func() error {
		if v.screen == nil {
			return s.Plain(stop.Ctx, a.In, a.Err, o.Ask)
		}
		v.through(s.Note)
		defer v.through(nil)
		return s.Screen(stop.Ctx, v.in, v.screen)
	})
	id, working := s.Task(), s.Working()
	s.Close()
	if word := api.ShellWord(id); id != "" {
		switch {
		case working && e == nil:
			a.Say("the run continues at the server; follow it: roost chat %s", word)
		case working:
			a.Say("the run is stopped, and all is saved; go on: roost chat %s, or roost resume %s", word, word)
		default:
			a.Say("all is saved; go on: roost chat %s, or roost resume %s", word, word)
		}
	}
	var waiting *chat.WaitingError
	var line *chat.LineError
	switch {
	case stop.Exit() != 0:
		return failure.New(stop.Exit(), "cancelled", "the chat was stopped", "a signal stopped it; all is saved",
			"roost chat "+api.ShellWord(id)).OfTask(id)
	case errors.As(err, &waiting):
		return failure.New(failure.ExitInput, "input_needed", "the run of task "+id+" waits for an answer",
			"there is no terminal to ask on, and the next input line is not an answer to it",
			"roost answer "+api.ShellWord(id)+` "your answer"  # in the chat: /answer WORDS`).OfTask(id)
	case errors.As(err, &line):
		return failureOfLine(line, id)
	case err != nil:
		return err
	case o.Ask:
		return nil // the person saw how each run ended
	}
	last := s.Last()
	if last.Outcome == "" {
		return nil
	}
	if f := failure.OfOutcome(id, engine.Outcome{State: last.Outcome, Code: last.Code, Reason: last.Reason}, 0); f != nil {
		return f
	}
	return nil
}

// failureOfLine returns the failure for a line that ended a chat.
func failureOfLine(e *chat.LineError, id string) *failure.Failure {
	f := *failure.Of(e.Err)
	var unknown *chat.UnknownError
	switch code := e.Exit(); {
	case code != 0:
		f.Exit, f.What = code, "run "+short(e.Line) // the chat has already printed why
	case errors.As(e.Err, &unknown):
		f = *failure.Usage("run "+short(e.Line), unknown.Error(), "echo /help | roost chat")
	case f.Code == "failed":
		if whole := f.What + ": " + f.Why; whole == e.Err.Error() { // the whole error is the reason
			f.Why = whole
		}
		f.What = "run the line " + short(e.Line)
	}
	f.Task = id
	return &f
}

// short returns a line in the form for an error.
func short(line string) string { return display.Cut(display.OneLine(line), 40) }

// chatBackend is the Backend of a chat: a client of a server, of another process or of this one, and the commands of
// roost, so that a chat does the same as the shell.
type chatBackend struct {
	*client.Client
	a  *commands
	mu sync.Mutex // guards the settings, which App reads without a lock
}

func (d *chatBackend) EditQueued(ctx context.Context, id, input string, text *string) error {
	at := app.PathOf(id, "queue", url.PathEscape(input))
	method, body := http.MethodDelete, any(nil)
	if text != nil {
		method, body = http.MethodPatch, map[string]string{"text": *text}
	}
	return d.Do(ctx, method, at, nil, body, nil)
}

// Command runs a command of roost as the shell would, on the same tasks, without asking the user.
func (d *chatBackend) Command(ctx context.Context, args ...string) chat.Said {
	var out, errs, whole bytes.Buffer
	a := d.a
	sub := &app.App{
		In:    strings.NewReader(""),
		Out:   io.MultiWriter(&out, &whole),
		Err:   io.MultiWriter(&errs, &whole),
		Env:   a.Env,
		Dir:   a.Dir,
		Now:   a.Now,
		Width: a.Width,
	}
	global := []string{"--no-input", "--no-color"}
	for flag, value := range a.Place().Flags {
		if value != "" {
			global = append(global, "--"+flag+"="+value)
		}
	}
	code := a.parts.Run(ctx, sub, append(global, args...))
	return chat.Said{Out: out.String(), Err: errs.String(), Whole: whole.String(), Code: code}
}

// Shell runs a command line of the user as Roost runs an agent's command: the command has no terminal, can ask
// nothing, and leaves no process behind. It fails when the server, and so the workspace, is on another machine.
func (d *chatBackend) Shell(ctx context.Context, dir, line string, out io.Writer) (chat.Ran, error) {
	if base, err := d.a.Global("server"); err != nil {
		return chat.Ran{}, err
	} else if base != "" && !app.Near(base) {
		return chat.Ran{}, fmt.Errorf("run a command in %s: the folder is at the server %s, and your commands run on this machine", dir, base)
	}
	return shell.Run(ctx, shell.Command{Line: line, Dir: dir, Output: out})
}

// Mask masks the keys of the settings, and text that looks like a secret.
func (d *chatBackend) Mask(text string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var known []redact.Known
	if c, err := d.a.EngineConfig(); err == nil {
		known = c.KnownKeys()
	}
	masked, _ := redact.New(known...).String(text)
	return masked
}

// Image reads a picture that a person named.
func (d *chatBackend) Image(path string) (string, error) { return app.Image(d.a.Abs(path)) }

// messagesOffered is the number of a task's newest messages that the chat offers after a #.
const messagesOffered = 60

// messages returns the newest messages of a task, as #12 with the beginning of their text, the newest first.
func (d *chatBackend) messages(ctx context.Context, id string) (out []chat.Word) {
	page, err := client.Get[struct {
		Items []json.RawMessage
		Total int
	}](ctx, d.Client, app.PathOf(id, "messages"),
		url.Values{"limit": {strconv.Itoa(messagesOffered)}})
	if err != nil {
		return nil // completion prints no error
	}
	first := page.Total - len(page.Items) + 1
	for i, raw := range slices.Backward(page.Items) {
		it := view.UI(raw, first+i)
		text := display.Cut(display.OneLine(it.Title+" "+it.Body), 60)
		if text != "" && (it.Class == view.User || it.Class == view.Model) {
			out = append(out, chat.Word{Text: "#" + strconv.Itoa(first+i), About: text})
		}
	}
	return out
}

// Words completes words: by the server, except for messages, tasks and policies.
func (d *chatBackend) Words(ctx context.Context, kind chat.Kind, dir, begun string) (out []chat.Word) {
	switch kind {
	case chat.Messages:
		return d.messages(ctx, dir)
	case chat.Tasks:
		page, err := d.Tasks(ctx, url.Values{"limit": {"100"}})
		if err != nil {
			return nil // completion prints no error
		}
		for _, t := range page.Items {
			out = append(out, chat.Word{Text: t.ID, About: t.Title})
		}
		return out
	case chat.Policies:
		return api.Each(app.Policies, func(policy string) chat.Word { return chat.Word{Text: policy} })
	}
	page, err := client.Get[api.Page[api.Completion]](ctx, d.Client, "/v1/completions",
		url.Values{"kind": {string(kind)}, "workspace": {dir}, "text": {begun}})
	if err != nil {
		return nil
	}
	return page.Items
}

// Passes reports whether a slash command or a skill has the name, so that the chat sends the line to the model.
func (d *chatBackend) Passes(ctx context.Context, dir, mode, name string) bool {
	commands, skills := slash.Set{Home: d.a.Env("HOME")}, skill.Set{Home: d.a.Env("HOME")}
	if w, err := workspace.Open(dir); dir != "" && err == nil {
		commands.Workspace, skills.Workspace = w, dir
	}
	if _, err := commands.Find(ctx, name); err == nil {
		return true
	}
	_, _, err := skills.Find(mode, name)
	return err == nil
}

// chatOutput prints messages of other parts of the program: about a lost server, or a signal. While the chat draws a
// screen, the messages go through the chat.
type chatOutput struct {
	mu  sync.Mutex
	out io.Writer
	say func(text string) // nil while nothing is drawn

	in, screen *os.File // the terminal that the chat draws on; nil = it prints lines
}

// Write prints a text.
func (v *chatOutput) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.say == nil {
		return v.out.Write(p)
	}
	v.say(string(p))
	return len(p), nil
}

// through sends all messages to say; nil ends that.
func (v *chatOutput) through(say func(string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.say = say
}
