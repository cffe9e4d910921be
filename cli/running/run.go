package running

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/server/peer"
)

func (a *commands) runCommand() *cobra.Command {
	var r app.RunFlags
	cmd := &cobra.Command{
		Use: "run [flags] PROMPT|-", ValidArgsFunction: cobra.NoFileCompletions,
		Short: "Start a task and follow it",
		Example: "  roost run \"fix the failing test\"\n" +
			"  git diff | roost run --approve read -\n" +
			"  roost run --provider script --model demo.yaml hello",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.farFlags(cmd, &r); err != nil {
				return err
			}
			req, err := a.Request(cmd, &r, args)
			if err != nil {
				return err
			}
			if strings.TrimSpace(req.Text) == "" && req.Task == "" {
				return failure.Usage("roost run", "there is no prompt", `roost run "what to do"`)
			}
			if req.Task == "" {
				req.Workspace = cmp.Or(req.Workspace, a.Dir)
			}
			return a.place(cmd.Context(), &r, req, func(s *local.Roost) error {
				if req.Task != "" {
					return a.resume(cmd, &r, s, req)
				}
				return a.start(cmd.Context(), s, req)
			})
		},
	}
	a.AddRunFlags(cmd, &r)
	return cmd
}

func (a *commands) resumeCommand() *cobra.Command {
	var r app.RunFlags
	var branch string
	cmd := &cobra.Command{
		Use: "resume [ID] [PROMPT|-]", ValidArgsFunction: app.First(a.TaskIDs),
		Short: "Continue a task, of any source",
		Long: "Continue a task, wherever it stopped and whichever tool made it.\n\n" +
			"PROMPT answers the open question, or adds instructions. Without it the task continues\n" +
			"where it stopped; a question that is still open is asked again, or without a\n" +
			"terminal ends the run as waiting. A task keeps workspace, mode, provider, model,\n" +
			"base URL, limits and approvals unless they are given again.\n\n" +
			"A task that runs in another process is joined: PROMPT answers its question or is queued, and\n" +
			"its run is followed to its end here, too. Ctrl-C only stops following; roost cancel stops it.\n\n" +
			"A task that waits for a subtask continues that one first. PROMPT answers the\n" +
			"question that the subtask asks; if it asks none, the subtask is given up, and the\n" +
			"task continues without it. Resumed by itself, a subtask that completes wakes the task\n" +
			"that waits for it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && r.Task != "" {
				args = []string{r.Task}
			}
			words := args[min(1, len(args)):]
			if err := a.farFlags(cmd, &r); err != nil {
				return err
			}
			req, err := a.Request(cmd, &r, words)
			if err != nil {
				return err
			}
			named := len(args) > 0
			switch {
			case named && (branch == "" || !r.Detach && !r.Far):
				req.Task = args[0]
			case r.Detach:
				return failure.Usage("roost resume --detach", "name a task, and no branch", "roost resume --detach ID")
			case r.Far:
				return failure.Usage("roost resume --server", "name a task, and no branch",
					"roost resume ID  # roost fork ID --branch NAME makes a task of a branch")
			}
			return a.place(cmd.Context(), &r, req, func(s *local.Roost) error {
				if named {
					req.Task = args[0]
				} else if req.Task, err = a.parts.Pick(cmd.Context(), a.App, s, "resume"); err != nil {
					return err
				}
				if branch != "" {
					if err := a.switchBranch(cmd.Context(), s, req.Task, branch); err != nil {
						return err
					}
				}
				return a.resume(cmd, &r, s, req)
			})
		},
	}
	a.AddRunFlags(cmd, &r)
	cmd.Flags().StringVar(&branch, "branch", "", "go on from this branch (`NAME`, as roost show ID --branches prints it)")
	app.Complete(cmd, "branch", cobra.NoFileCompletions)
	return cmd
}

func (a *commands) continueCommand() *cobra.Command {
	var r app.RunFlags
	cmd := &cobra.Command{
		Use: "continue [PROMPT|-]", ValidArgsFunction: cobra.NoFileCompletions,
		Short: "Continue the newest task of this folder",
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := a.Request(cmd, &r, args)
			if err != nil {
				return err
			}
			folder := cmp.Or(req.Workspace, a.Dir)
			if err := a.farFlags(cmd, &r); err != nil {
				return err
			}
			if r.Detach || r.Far {
				if req.Task, err = a.newestOf(cmd.Context(), folder); err != nil {
					return err
				}
			}
			return a.place(cmd.Context(), &r, req, func(s *local.Roost) error {
				found, _, err := app.Newest(cmd.Context(), s, folder, 1)
				if err != nil {
					return err
				}
				if len(found) == 0 {
					return noTaskOf(folder)
				}
				req.Task = found[0].Source + ":" + found[0].ID
				return a.resume(cmd, &r, s, req)
			})
		},
	}
	a.AddRunFlags(cmd, &r)
	return cmd
}

// place leaves a request to a server if that is wanted, follows it on a server that the person named, or else does it
// in this process, as here says.
func (a *commands) place(ctx context.Context, r *app.RunFlags, req engine.Request, here func(*local.Roost) error) error {
	if r.Detach {
		return a.detach(ctx, req)
	}
	if done, err := a.Remotely(func(c *client.Client) error { return a.farRun(ctx, c, req) }); done {
		return err
	}
	return a.WithEngine(ctx, here)
}

// resumeHere continues a task, which keeps what was not given again. The path of a
// scripted model's file is relative to the current folder, also where the task names the
// provider.
func (a *commands) resumeHere(ctx context.Context, r *app.RunFlags, s *local.Roost, req engine.Request) error {
	if r.Model == "" || r.Provider != "" || r.Profile != "" {
		return a.start(ctx, s, req)
	}
	all := s.Service()
	defer all.Close()
	t, err := all.Find(ctx, req.Task)
	if err != nil {
		return err
	}
	row, _, err := t.Document(ctx)
	if err != nil {
		return err
	}
	req.Model = a.ModelName(row.Provider, r.Model)
	return a.start(ctx, s, req)
}

// start runs a task, shows it until it ends or waits, and prints its result.
func (a *commands) start(ctx context.Context, s *local.Roost, req engine.Request) error {
	stop := a.Stopper(ctx)
	defer stop.Undo()
	run, err := s.Engine().Start(stop.Ctx, req)
	if unknown, is := errors.AsType[*setup.UnknownProfileError](err); is && a.Interactive() {
		if req, err = a.askProfile(stop.Ctx, unknown, req); err == nil {
			run, err = s.Engine().Start(stop.Ctx, req)
		}
	}
	if other, is := errors.AsType[*setup.OtherModelError](err); is && a.Interactive() {
		if err = a.askModel(stop.Ctx, other); err == nil {
			req.Model = other.Model
			run, err = s.Engine().Start(stop.Ctx, req)
		}
	}
	if err != nil && stop.Exit() != 0 {
		return failure.New(stop.Exit(), "cancelled", "start the run", "it was stopped before it began",
			"the same command again")
	}
	if err != nil {
		return err
	}
	c, end, err := a.Local(s)
	if err != nil {
		return err
	}
	defer end()
	return a.concluded(a.followRun(ctx, c, run, req.Interactive, stop))
}

// farFlags refuses flags that a run on a server cannot have; see refuseLocalFlags.
func (a *commands) farFlags(cmd *cobra.Command, r *app.RunFlags) error {
	base, err := a.Global(a.Flags.Server, "server")
	if err != nil {
		return err
	}
	r.Far = base != ""
	return r.RefuseLocalFlags(cmd)
}

// farRun starts a task on a server, or continues one there, and follows it. Ctrl-C
// only stops following.
func (a *commands) farRun(ctx context.Context, c *client.Client, req engine.Request) error {
	w := watched{task: req.Task, after: "0", ask: req.Interactive}
	var run api.Run
	var err error
	if req.Task == "" {
		if req, err = a.AsNew(req); err != nil {
			return err
		}
		body := newTaskOf(req)
		body.Unattended = !req.Interactive
		w.fresh = true
		run, err = c.Start(ctx, body)
	} else {
		if w.after, err = c.Mark(ctx, req.Task); err != nil {
			return err
		}
		body := newRunOf(req)
		body.Unattended = !req.Interactive
		run, err = c.Resume(ctx, req.Task, body)
	}
	if err != nil {
		return err
	}
	w.task, w.run = run.Task, run.ID
	return a.watchOn(ctx, c, w)
}

// joinTries is how often join tries to reach a run whose owner is just changing.
const joinTries = 20

// resume continues a task: here, or where another process works on it.
func (a *commands) resume(cmd *cobra.Command, r *app.RunFlags, s *local.Roost, req engine.Request) error {
	joined, err := a.join(cmd.Context(), s, req)
	if joined || err != nil {
		return err
	}
	if req, err = a.receive(cmd.Context(), s.Engine(), req); err == nil {
		err = a.resumeHere(cmd.Context(), r, s, req)
	}
	if report.CauseOf(err).Code == report.CauseBusy { // another process was faster
		if joined, err := a.join(cmd.Context(), s, req); joined {
			return err
		}
	}
	return err
}

// join continues a task that another process works on: it sends the words there, and
// follows the run here. joined is false when no other process works on the task, or it
// cannot be reached: then the error names the process that owns the task.
//
// join runs before the setup of a run in this process: another process's run may have what
// this one lacks, for example a key.
func (a *commands) join(ctx context.Context, s *local.Roost, req engine.Request) (joined bool, err error) {
	all := s.Service()
	defer all.Close()
	t, err := all.FindLatest(ctx, req.Task)
	if err != nil {
		return false, nil //nolint:nilerr // the start of the run reports it, too
	}
	held, alive := t.Holder()
	if !alive || held.Address == "" {
		return false, nil
	}
	conn, err := peer.Dial(ctx, held.Address)
	if err != nil {
		return false, nil //nolint:nilerr // it is as good as none; see above
	}
	if err := conn.Close(); err != nil {
		return false, fmt.Errorf("reach the process that works on task %s: %w", t.ID(), err)
	}
	if !a.Flags.JSON {
		a.Say("%s works on task %s; this follows it, and Ctrl-C only stops following", held.Who, t.ID())
	}
	if asksMore(req) {
		a.Warn("mode, model, limits and approvals of a run that works already stay as they are")
	}
	c, end, err := a.Local(s)
	if err != nil {
		return false, err
	}
	defer end()
	return true, a.follows(ctx, c, s.Engine(), t.ID(), req)
}

// asksMore reports whether the request is for another run than the one at work.
func asksMore(r engine.Request) bool {
	return r.Mode != "" || r.Provider != "" || r.Model != "" || r.Profile != "" || r.Approve != "" || r.Limits != nil
}

// follows sends the words of a request, if it has any, and follows the run that gets
// them, or else the one that works on the task.
func (a *commands) follows(ctx context.Context, c *client.Client, e *engine.Engine, id string, req engine.Request) error {
	if strings.TrimSpace(req.Text) == "" && len(req.Images) == 0 {
		r, err := newestRun(ctx, c, id)
		if err != nil {
			return err
		}
		return a.watchOn(ctx, c, fromStart(r, req.Interactive))
	}
	from, err := c.Mark(ctx, id)
	if err != nil {
		return err
	}
	var sent api.Sent
	send := client.Request{
		Method: http.MethodPost,
		Path:   app.PathOf(id, "messages"),
		Body:   api.Message{Text: req.Text, Images: req.Images},
		Key:    uuid.NewString(),
	}
	for try := 1; ; try++ {
		_, err = c.Ask(ctx, send, &sent) // the same key each time: it is taken once
		var p *client.Problem
		if !errors.As(err, &p) || !p.Retryable || try == joinTries {
			break
		}
		if err := waitFor(ctx, 100*time.Millisecond); err != nil { // it is just coming or going
			return err
		}
	}
	if err != nil {
		return err
	}
	return a.watchOn(ctx, c, watched{
		task: id, run: sent.Run, after: from, ask: req.Interactive,
		here: sent.Delivered == "started" && runsHere(e), // the other run has just ended
	})
}

// receive lets a task continue that is not proven to be this root's own. If the task holds
// open work or settings that would take effect, it first asks the user, on a terminal.
func (a *commands) receive(ctx context.Context, e *engine.Engine, req engine.Request) (engine.Request, error) {
	_, err := e.Receive(ctx, req)
	var held *engine.UntrustedError
	if !errors.As(err, &held) || !a.Interactive() {
		return req, err
	}
	a.Say("%s", held.Error())
	a.Say("  Continuing ends all that is open in it, and uses your own settings. If the root is yours, stop and")
	a.Say("  run: roost root trust")
	answer, err := a.Prompter().Read(ctx, "  go on with it? (y, or anything else) > ")
	if err != nil {
		return req, err
	}
	if strings.TrimSpace(answer) != "y" {
		return req, held
	}
	req.OwnSettings = true
	_, err = e.Receive(ctx, req)
	return req, err
}

// askProfile asks which provider replaces a profile that is not known here, and
// remembers it for the source.
func (a *commands) askProfile(ctx context.Context, unknown *setup.UnknownProfileError, req engine.Request) (engine.Request, error) {
	c, err := a.EngineConfig()
	if err != nil {
		return req, err
	}
	type choice struct{ name, text string }
	var choices []choice
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		p := c.Profiles[name]
		choices = append(choices, choice{name, strings.TrimSpace("profile " + name + ": " + p.Provider + " " + p.Model)})
	}
	for _, name := range setup.Providers() {
		if model := setup.DefaultModel(name); c.Keys[name] != "" && model != "" && c.Profiles[name].Provider == "" {
			choices = append(choices, choice{name, name + " " + model})
		}
	}
	if len(choices) == 0 {
		return req, unknown
	}
	lines := fmt.Sprintf("? the task's profile %q is known only to its editor. "+
		"Which provider answers tasks of %s whose profile is not known here?\n",
		unknown.Profile, unknown.Source)
	for i, one := range choices {
		lines += fmt.Sprintf("  %d. %s\n", i+1, one.text)
	}
	a.Say("%s", strings.TrimRight(lines, "\n"))
	for {
		line, err := a.Prompter().Read(ctx, "  a number (q stops) > ")
		if err != nil {
			return req, errors.Join(unknown, err)
		}
		line = strings.TrimSpace(line)
		n, err := strconv.Atoi(line)
		for i, one := range choices {
			if err == nil && n == i+1 || line == one.name {
				return a.chosen(unknown, req, one.name), nil
			}
		}
		if line == "q" || line == "quit" {
			return req, unknown
		}
		a.Say("  one of the numbers, please; Enter alone is not an answer")
	}
}

func (a *commands) chosen(unknown *setup.UnknownProfileError, req engine.Request, name string) engine.Request {
	key := config.SourceProfiles + "." + unknown.Source
	if err := a.ConfigSet(key, []string{name}); err != nil {
		a.Warn("the answer is not remembered: " + err.Error())
	} else {
		a.Say("remembered; roost config set %s NAME changes it", key)
	}
	a.Loaded = nil
	req.StandIn = name
	return req
}

// askModel asks whether another tool's task continues with another model than it was made with.
func (a *commands) askModel(ctx context.Context, other *setup.OtherModelError) error {
	a.Say("? %s", other.Error())
	answer, err := a.Prompter().Read(ctx, "  go on with "+other.Model+"? (y, or anything else) > ")
	if err != nil {
		return errors.Join(other, err)
	}
	if strings.TrimSpace(answer) != "y" {
		return other
	}
	return nil
}

// switchBranch makes a branch of a task its head.
func (a *commands) switchBranch(ctx context.Context, s *local.Roost, id, branch string) error {
	c, end, err := a.Local(s)
	if err != nil {
		return err
	}
	defer end()
	_, err = c.Do(ctx, http.MethodPost, app.PathOf(id, "head"), nil, api.NewHead{Branch: branch}, nil)
	return err
}
