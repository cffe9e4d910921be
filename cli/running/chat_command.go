package running

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/chat"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
)

func (a *commands) chatCommand() *cobra.Command {
	var r app.RunFlags
	cmd := &cobra.Command{
		Use: "chat [ID]", ValidArgsFunction: app.First(a.TaskIDs),
		Short: "Talk with a model in one task, prompt after prompt",
		Long: "Talk with a model in one task, prompt after prompt: a new one, or the task ID of any source.\n\n" +
			"A line is a command only with a leading / (/help lists them; // begins a line that is none).\n" +
			"Alt+Enter, Ctrl+J, a \\ at the end or ``` begins another line; what is pasted stays whole.\n" +
			"Up and Down and Ctrl+R go through what was typed before, Tab completes commands, @files,\n" +
			"#tasks and modes. Esc stops the run; words that are typed while it works are queued. Ctrl-C\n" +
			"twice, or Ctrl-D on an empty line, leaves: the task is saved, and roost chat ID continues it.\n" +
			"Ctrl-G writes the message in $VISUAL or $EDITOR; Shift+Tab changes what the next run may do\n" +
			"unasked (ask, read, edits; all only when it was named before).\n\n" +
			"!COMMAND runs a command of your own in the task's workspace, on this machine, without any\n" +
			"question. Its output is shown and goes along with your next words, secrets masked; that of\n" +
			"!!COMMAND is only shown. ! alone shows what goes along, !! leaves it out, Esc stops it.\n\n" +
			"Lines that begin with a blank are not kept in the history ($XDG_STATE_HOME/roost).\n" +
			"Without a terminal, or with TERM=dumb, it reads lines and prints lines; each prompt is sent\n" +
			"when the run before it has ended. Without a terminal a line that cannot be done ends the chat,\n" +
			"and so does a question (exit 11), unless the next line is /answer WORDS.",
		Example: "  roost chat\n" +
			"  roost chat 0199\n" +
			"  roost chat --mode ask --approve read\n" +
			"  printf 'hello\\n" +
			"and now the tests\\n" +
			"' | roost chat",
		Args: failure.Arguments(0, 1, "roost chat ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.Flags.JSON {
				return failure.Usage("roost chat --json", "a chat is for people; programs run and send",
					"roost run --json PROMPT, roost send ID TEXT --json")
			}
			o, err := a.chatOptions(cmd, &r, args)
			if err != nil {
				return err
			}
			v := &chatOutput{out: a.Err}
			a.Err = v // before anything works beside us
			return a.WithClient(cmd.Context(), func(c *client.Client, e *engine.Engine) error { return a.chat(cmd.Context(), c, e, v, o) })
		},
	}
	f := cmd.Flags()
	f.StringVarP(&r.Dir, "workspace", "C", "", "the `folder` to work in (default: the current one, or the task's)")
	f.StringVar(&r.Mode, "mode", "", "the mode, e.g. code or ask (see roost modes)")
	f.StringVar(&r.Provider, "provider", "", "the model's provider: anthropic, openai, openai-compatible, google, script")
	f.StringVar(&r.Model, "model", "", "the model; for script: the file to play")
	f.StringVar(&r.BaseURL, "base-url", "", "the provider's address")
	f.StringVar(&r.Profile, "profile", "", "provider, model and settings of this `NAME` in the settings file")
	f.StringVar(&r.Approve, "approve", "", "what is allowed without asking: ask, read, edits, all")
	f.BoolVarP(&r.Yes, "yes", "y", false, "allow everything that is not denied or protected (--approve all)")
	f.StringArrayVar(&r.Allow, "allow", nil, "allow commands that begin with `WORDS`")
	f.StringArrayVar(&r.Deny, "deny", nil, "never allow commands that begin with `WORDS`")
	f.IntVar(&r.MaxTurns, "max-turns", 0, "stop a run after this many requests to the model (0 = no limit)")
	f.StringVar(&r.MaxCost, "max-cost", "", "stop when this `AMOUNT` of US dollars is spent")
	f.DurationVar(&r.Idle, "idle-timeout", 0, "stop a run when nothing happens for this long")
	f.DurationVar(&r.Total, "total-timeout", 0, "stop a run after this long")
	app.Complete(cmd, "workspace", app.Folders)
	app.Complete(cmd, "mode", a.ModeNames)
	app.Complete(cmd, "provider", app.Words(app.Providers...))
	app.Complete(cmd, "model", app.Models)
	app.Complete(cmd, "profile", a.ProfileNames)
	app.Complete(cmd, "approve", app.Words(app.Policies...))
	for _, name := range []string{"base-url", "allow", "deny", "max-turns", "max-cost", "idle-timeout", "total-timeout"} {
		app.Complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

// chatOptions are the options from the flags and, for a new task, from the settings. A
// task that is continued keeps what was not given.
func (a *commands) chatOptions(cmd *cobra.Command, r *app.RunFlags, args []string) (chat.Options, error) {
	o := chat.Options{Ask: a.InTTY && a.ErrTTY && !a.Flags.NoInput}
	given, err := a.Options(cmd, r)
	if err != nil {
		return o, err
	}
	o.Again = api.NewRun{Workspace: given.Workspace, Settings: apiSettings(given)}
	if len(args) > 0 {
		o.Task = args[0]
	}
	if given.Workspace == "" {
		given.Workspace = a.Dir
	}
	if given, err = a.AsNew(given); err != nil {
		return o, err
	}
	o.New = api.NewTask{Workspace: given.Workspace, Settings: apiSettings(given), Origin: "cli"}
	o.Display = display.Options{Colour: a.Colour(), Width: a.Width, Quiet: a.Flags.Quiet, Verbose: a.Flags.Verbose, Live: a.ErrTTY}
	o.History, err = a.chatHistory()
	return o, err
}

// chatHistory is the path of the file with the lines that the user typed.
func (a *commands) chatHistory() (string, error) {
	dir, err := a.Home("XDG_STATE_HOME", ".local/state")
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "chat_history"), nil
}

// chat runs a chat until the user leaves, and then prints how to continue.
func (a *commands) chat(ctx context.Context, c *client.Client, e *engine.Engine, v *chatOutput, o chat.Options) error {
	in, inFile := a.In.(*os.File)
	out, outFile := v.out.(*os.File)
	draw := o.Ask && inFile && outFile && chat.CanDraw(a.Env("TERM"))
	if outFile && a.ErrTTY {
		o.Width = func() int {
			width, _, err := term.GetSize(int(out.Fd()))
			if err != nil {
				return a.Width
			}
			return width
		}
	}
	if !a.OutTTY {
		o.Result = a.Out
	}
	stop := a.Stopper(ctx)
	defer stop.Undo()
	o.Editor, o.Away = cmp.Or(a.Env("VISUAL"), a.Env("EDITOR"), "vi"), stop.ReleaseInterrupt
	s := chat.New(stop.Ctx, &chatBackend{Client: c, a: a}, o)
	var err error
	if draw {
		a.Say("roost chat: words for the model, /help for commands; Ctrl-D leaves")
		v.through(s.Note)
		err = s.Screen(stop.Ctx, in, out)
		v.through(nil)
	} else {
		err = s.Plain(stop.Ctx, a.In, a.Err, o.Ask)
	}
	id, working := s.Task(), s.Working()
	s.Close()
	if id != "" {
		switch {
		case working && e == nil:
			a.Say("the run continues at the server; follow it: roost chat %s", id)
		case working:
			a.Say("the run is stopped, and all is saved; go on: roost chat %s, or roost resume %s", id, id)
		default:
			a.Say("all is saved; go on: roost chat %s, or roost resume %s", id, id)
		}
	}
	var waiting *chat.WaitingError
	var line *chat.LineError
	switch {
	case stop.Exit() != 0:
		return &failure.Failure{
			Exit: stop.Exit(),
			Code: "cancelled",
			Task: id,
			What: "the chat was stopped",
			Why:  "a signal stopped it; all is saved",
			Try:  "roost chat " + id,
		}
	case errors.As(err, &waiting):
		return &failure.Failure{Exit: failure.ExitInput, Code: "input_needed", Task: id, What: "the run of task " + id + " waits for an answer",
			Why: "there is no terminal to ask on, and the next input line is not an answer to it",
			Try: "roost answer " + id + ` "your answer"  # in the chat: /answer WORDS`}
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

// failureOfLine is the failure of a line that ended a chat.
func failureOfLine(e *chat.LineError, id string) *failure.Failure {
	f := *failure.Of(e.Err)
	var unknown *chat.UnknownError
	switch code := e.Exit(); {
	case code != 0:
		f.Exit, f.What = code, "run "+short(e.Line) // the chat has already printed why
	case errors.As(e.Err, &unknown):
		f = *failure.Usage("run "+short(e.Line), unknown.Error(), "echo /help | roost chat")
	case f.Code == "failed":
		if whole := f.What + ": " + f.Why; whole == e.Err.Error() { // all of it is why
			f.Why = whole
		}
		f.What = "do what " + short(e.Line) + " says"
	}
	f.Task = id
	return &f
}

// short is a line as an error names it.
func short(line string) string { return display.Cut(display.OneLine(line), 40) }
