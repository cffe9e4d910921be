package running

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
)

func (a *commands) runCommand() *cobra.Command {
	var r app.RunFlags
	cmd := help.Command("run", func(cmd *cobra.Command, args []string) error {
		req, err := a.Options(cmd, &r, args)
		if err != nil {
			return err
		}
		if (req.Message == nil || strings.TrimSpace(req.Message.Text) == "") && req.Task == "" {
			return failure.Usage("roost run", "there is no prompt", `roost run "what to do"`)
		}
		if req.Task == "" && req.Workspace == "" {
			req.Workspace = a.Dir
		}
		return a.begin(cmd, &r, func(*client.Client) (app.Request, error) { return req, nil })
	})
	a.AddRunFlags(cmd, &r)
	return cmd
}

func (a *commands) resumeCommand() *cobra.Command {
	var r app.RunFlags
	var branch string
	cmd := help.Command("resume", func(cmd *cobra.Command, args []string) error {
		if r.Task != "" && len(args) > 0 {
			return failure.Usage("roost resume --task", "the task is named by the flag and by an argument", "roost resume ID PROMPT")
		} else if r.Task != "" {
			args = []string{r.Task}
		}
		req, err := a.Options(cmd, &r, args[min(1, len(args)):])
		if err != nil {
			return err
		}
		if len(args) > 0 {
			req.Task = args[0]
		} else {
			var folder string
			if req.Task, folder, err = a.parts.Pick(cmd.Context(), a.App, "resume"); err != nil {
				return err
			}
			if req.Workspace == "" && folder != "" {
				req.Workspace = a.Abs(folder)
			}
		}
		return a.begin(cmd, &r, func(c *client.Client) (app.Request, error) {
			if branch == "" {
				return req, nil
			}
			return req, c.Do(cmd.Context(), http.MethodPost, app.PathOf(req.Task, "head"), nil, api.NewHead{Branch: branch}, nil)
		})
	})
	a.AddRunFlags(cmd, &r)
	cmd.Flags().StringVar(&branch, "branch", "", "go on from this branch (`NAME`, as roost show ID --branches prints it)")
	return cmd
}

func (a *commands) continueCommand() *cobra.Command {
	var r app.RunFlags
	cmd := help.Command("continue", func(cmd *cobra.Command, args []string) error {
		if r.Task != "" {
			return failure.Usage("roost continue --task", "continue takes the newest task of the folder", "roost resume ID PROMPT")
		}
		req, err := a.Options(cmd, &r, args)
		if err != nil {
			return err
		}
		return a.begin(cmd, &r, func(c *client.Client) (app.Request, error) {
			folder := cmp.Or(req.Workspace, a.Dir)
			found, err := c.Tasks(cmd.Context(), url.Values{"workspace": {folder}, "sort": {"newest"}, "limit": {"1"}})
			if err == nil && len(found.Items) == 0 {
				err = failure.NotFound("task_not_found", "find a task of "+folder, "no task has this folder as its workspace", "roost list")
			}
			if err == nil {
				req.Task = found.Items[0].Key()
			}
			return req, err
		})
	})
	a.AddRunFlags(cmd, &r)
	return cmd
}

// begin makes the request of a command and starts the run: on the server that the user named, in this process, or, with
// --detach, on a server that continues it.
func (a *commands) begin(cmd *cobra.Command, r *app.RunFlags, request func(*client.Client) (app.Request, error)) error {
	ctx := cmd.Context()
	a.document = r.Output == "json"
	prepared := func(c *client.Client, near bool) (app.Request, error) {
		req, err := request(c)
		switch {
		case err != nil:
		case req.Task == "" && !near:
			req.Settings, err = a.AsNew(req.Settings)
		case req.Task != "" && r.Profile == "":
			req.Model, err = a.ModelOf(ctx, c, req.Task, r.Provider, r.Model)
		}
		return req, err
	}
	if r.Detach {
		return a.OnServer("leave the run to a server", func(c *client.Client) error {
			req, err := prepared(c, false)
			if err != nil {
				return err
			}
			req.Unattended = false // a user may answer from elsewhere
			return a.detach(ctx, c, req)
		})
	}
	return a.WithClient(ctx, func(c *client.Client, e *engine.Engine) error {
		req, err := prepared(c, e != nil)
		if err != nil {
			return err
		}
		return a.run(ctx, c, e != nil, req)
	})
}

// run starts a run or continues a task, shows it until it ends or waits, and prints its result. Ctrl-C stops a run of
// this process; for a run of another process, it only ends the following.
func (a *commands) run(ctx context.Context, c *client.Client, near bool, req app.Request) error {
	w := watched{task: req.Task, after: "0", ask: !req.Unattended, leave: req.Unattended, fresh: req.Task == ""}
	var before api.Run // of the task, which may work already; none if it never ran
	var err error
	if req.Task != "" {
		if w.after, err = c.Mark(ctx, req.Task); err != nil {
			return err
		}
		before, _ = newestRun(ctx, c, req.Task)
	}
	tell := func() {} // of a run on a server, Ctrl-C only ends the following
	if near {
		tell = a.Stopping
	}
	stop := a.StopperWith(ctx, tell)
	undo := sync.OnceFunc(stop.Undo)
	defer undo()
	run, err := a.start(stop.Ctx, c, req)
	own := a.FirstRun()
	switch {
	case err != nil && own != nil && stop.Exit() != 0: // the signal came between the beginning of the run and the answer
	case err != nil && near && stop.Exit() != 0:
		return failure.New(stop.Exit(), "cancelled", "start the run", "it was stopped before it began", "the same command again")
	case err != nil && req.Task != "":
		undo()
		return a.join(ctx, c, req, err)
	case err != nil:
		return err
	}
	if own != nil {
		return a.concluded(a.followRun(ctx, c, own, watched{ask: !req.Unattended}, stop))
	}
	undo()
	switch w.task, w.run = run.Task, run.ID; {
	case before.ID == "" || before.Task == run.Task:
	case before.State == "running":
		// The subtask, which waited for an answer, took the words: its run continues, and then that of the task.
		w.task, w.run = before.Task, before.ID
	default:
		w = fromStart(run, w.ask, w.leave)
	}
	return a.watchOn(ctx, c, w)
}

// start requests the run. If that needs a decision of the user first (the task is not trusted, its profile is not
// known, another model would answer, its folder is missing), it asks on the terminal and then requests the run again.
func (a *commands) start(ctx context.Context, c *client.Client, req app.Request) (run api.Run, err error) {
	for {
		run, err = requested(ctx, c, req)
		p, is := errors.AsType[*client.Problem](err)
		if !is || !a.Interactive() {
			return run, err
		}
		switch {
		case p.Code == "untrusted_settings" && !req.OwnSettings:
			err = a.askTrust(ctx, p)
			req.OwnSettings = true
		case p.Code == "unknown_profile" && p.Unknown != nil && req.StandIn == "":
			req.StandIn, err = a.askProfile(ctx, p)
		case p.Code == "other_model" && p.Model != "" && req.Model == "":
			a.Say("? %s", p.Detail)
			err = a.confirm(ctx, p, "  go on with "+p.Model+"?")
			req.Model = p.Model
		case p.Code == "workspace_missing" && req.Task != "" && req.Workspace == "":
			req.Workspace, err = a.askFolder(ctx, p)
		default:
			return run, err
		}
		if err != nil {
			return run, err
		}
	}
}

// requested requests a run once: of a new task, or of the one that the request names.
func requested(ctx context.Context, c *client.Client, req app.Request) (api.Run, error) {
	if req.Task == "" {
		return c.Start(ctx, req.NewTask())
	}
	return c.Resume(ctx, req.Task, req.NewRun)
}

// followFirst follows the run that began in this process because of sent words or a sent answer.
func (a *commands) followFirst(ctx context.Context, c *client.Client, e *engine.Engine, after string) error {
	stop := a.Stopper(ctx)
	defer stop.Undo()
	w := watched{after: after, ask: a.Interactive()}
	if !w.ask {
		w.letGo = func() {
			// Drain waits: the event of the question comes before the run waits for the answer.
			_ = e.Drain(context.WithoutCancel(ctx))
		}
	}
	return a.concluded(a.followRun(ctx, c, a.FirstRun(), w, stop))
}

// joinFor is how long join tries to reach a run that is just starting or ending.
const joinFor = 2 * time.Second

// join follows the run that already works on a task in another process, and sends that run the words of the request,
// if there are any. refused is the error of the request for a run; join returns it if no run works on the task.
func (a *commands) join(ctx context.Context, c *client.Client, req app.Request, refused error) error {
	var p *client.Problem
	if !errors.As(refused, &p) || p.Code != "task_busy" { // a locked task has an owner that cannot be reached
		return refused
	}
	r, err := newestRun(ctx, c, req.Task)
	if err != nil || r.State != "queued" && r.State != "running" && r.State != "waiting" {
		return refused
	}
	if !a.Flags.JSON {
		a.Say("a run works on task %s; this follows it, and Ctrl-C only stops following", r.Task)
	}
	if req.Mode != "" || req.Provider != "" || req.Model != "" || req.Profile != "" || req.Approve != "" || req.Limits != nil {
		a.Warn("mode, model, limits and approvals of a run that works already stay as they are")
	}
	if req.Message == nil || strings.TrimSpace(req.Message.Text) == "" && len(req.Message.Images) == 0 {
		return a.watchOn(ctx, c, fromStart(r, !req.Unattended, req.Unattended))
	}
	from, err := c.Mark(ctx, r.Task)
	if err != nil {
		return err
	}
	var sent api.Sent
	once := client.Keyed(ctx, client.NewKey()) // with the same key each time, the server takes the message once
	for began := time.Now(); ; {
		sent, err = c.Send(once, r.Task, api.Message{Text: req.Message.Text, Images: req.Message.Images})
		if !errors.As(err, &p) || !p.Retryable || time.Since(began) > joinFor {
			break
		}
		if err := client.Sleep(ctx, 100*time.Millisecond); err != nil { // the run is just starting or ending
			return err
		}
	}
	if err != nil {
		return err
	}
	return a.watchOn(ctx, c, watched{task: r.Task, run: sent.Run, after: from, ask: !req.Unattended, leave: req.Unattended})
}

// askTrust asks whether to continue a task that is not proven to be this root's own, and whose open work or settings
// would take effect.
func (a *commands) askTrust(ctx context.Context, held *client.Problem) error {
	a.Say("%s", held.Detail)
	a.Say("  Continuing ends all that is open in it, and uses your own settings. If the root is yours, stop and")
	a.Say("  run: roost root trust")
	return a.confirm(ctx, held, "  go on with it?")
}

// askFolder asks for the folder of a task whose folder is missing.
func (a *commands) askFolder(ctx context.Context, gone *client.Problem) (string, error) {
	a.Say("? %s", gone.Detail)
	line, err := a.Prompter().Read(ctx, "  in which folder does it go on? (q stops) > ")
	line = strings.TrimSpace(line)
	switch {
	case err != nil:
		return "", errors.Join(gone, err)
	case line == "" || line == "q":
		return "", gone
	}
	return a.Abs(line), nil
}

// confirm returns refused unless the user answers y.
func (a *commands) confirm(ctx context.Context, refused error, question string) error {
	agreed, err := a.Agree(ctx, question)
	switch {
	case err != nil:
		return errors.Join(refused, err)
	case !agreed:
		return refused
	}
	return nil
}

// askProfile asks which profile or provider replaces a profile that is not known here, and saves the answer for the
// source.
func (a *commands) askProfile(ctx context.Context, unknown *client.Problem) (string, error) {
	c, err := a.EngineConfig()
	if err != nil {
		return "", err
	}
	var choices, texts []string
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		p := c.Profiles[name]
		choices, texts = append(choices, name), append(texts, strings.TrimSpace("profile "+name+": "+p.Provider+" "+p.Model))
	}
	for _, name := range setup.Providers() {
		if model := setup.DefaultModel(name); c.Keys[name] != "" && model != "" && c.Profiles[name].Provider == "" {
			choices, texts = append(choices, name), append(texts, name+" "+model)
		}
	}
	if len(choices) == 0 {
		return "", unknown
	}
	source := unknown.Unknown.Source
	a.Say("? the task's profile %q is known only to its editor. Which provider answers tasks of %s whose profile is not known here?",
		unknown.Unknown.Name, source)
	for i, text := range texts {
		a.Say("  %d. %s", i+1, text)
	}
	name, err := a.Choose(ctx, "  a number (q stops) > ", choices)
	if name == "" || err != nil {
		return "", errors.Join(unknown, err)
	}
	a.remember(ctx, config.SourceProfiles+"."+source, name)
	return name, nil
}

// remember stores an answer in the settings.
func (a *commands) remember(ctx context.Context, key, name string) {
	if err := a.Place().Set(ctx, key, []string{name}); err != nil {
		a.Warn("the answer is not remembered: " + err.Error())
	} else {
		a.Say("remembered; roost config set %s NAME changes it", key)
	}
	a.Loaded = nil
}

// detach starts a run at a server and prints the id of its task. The server then continues the task without this
// process.
func (a *commands) detach(ctx context.Context, c *client.Client, req app.Request) error {
	run, err := requested(ctx, c, req)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintJSON(run)
	}
	err = a.Println("task " + run.Task + "\nrun " + run.ID + " " + run.State)
	a.Say("follow it: roost attach %s  # its end: roost wait %s", run.Task, run.Task)
	return err
}
