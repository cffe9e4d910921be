package running

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/local"
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
			if r.Detach {
				if req.Task == "" && req.Workspace == "" {
					req.Workspace = a.Dir
				}
				return a.detach(cmd.Context(), req)
			}
			if done, err := a.Remotely(func(c *client.Client) error { return a.farRun(cmd.Context(), c, req) }); done {
				return err
			}
			return a.WithEngine(cmd.Context(), func(s *local.Roost) error {
				if req.Task != "" {
					return a.resume(cmd, &r, s, req)
				}
				if req.Workspace == "" {
					req.Workspace = a.Dir
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
			words := args
			if len(words) > 0 {
				words = words[1:]
			}
			if err := a.farFlags(cmd, &r); err != nil {
				return err
			}
			req, err := a.Request(cmd, &r, words)
			if err != nil {
				return err
			}
			if r.Detach {
				if len(args) == 0 || branch != "" {
					return failure.Usage("roost resume --detach", "name a task, and no branch", "roost resume --detach ID")
				}
				req.Task = args[0]
				return a.detach(cmd.Context(), req)
			}
			if r.Far {
				if len(args) == 0 || branch != "" {
					return failure.Usage("roost resume --server", "name a task, and no branch",
						"roost resume ID  # roost fork ID --branch NAME makes a task of a branch")
				}
				req.Task = args[0]
			}
			if done, err := a.Remotely(func(c *client.Client) error { return a.farRun(cmd.Context(), c, req) }); done {
				return err
			}
			return a.WithEngine(cmd.Context(), func(s *local.Roost) error {
				if len(args) > 0 {
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
			folder := a.Dir
			if req.Workspace != "" {
				folder = req.Workspace
			}
			if r.Detach {
				if err := a.farFlags(cmd, &r); err != nil {
					return err
				}
				if req.Task, err = a.newestOf(cmd.Context(), folder); err != nil {
					return err
				}
				return a.detach(cmd.Context(), req)
			}
			if err := a.farFlags(cmd, &r); err != nil {
				return err
			}
			if r.Far {
				if req.Task, err = a.newestOf(cmd.Context(), folder); err != nil {
					return err
				}
			}
			if done, err := a.Remotely(func(c *client.Client) error { return a.farRun(cmd.Context(), c, req) }); done {
				return err
			}
			return a.WithEngine(cmd.Context(), func(s *local.Roost) error {
				found, _, err := app.Newest(cmd.Context(), s, folder, 1)
				if err != nil {
					return err
				}
				if len(found) == 0 {
					return &failure.Failure{Exit: failure.ExitNotFound, Code: "task_not_found", Status: 404,
						What: "find a task of " + folder, Why: "no task has this folder as its workspace", Try: "roost list"}
				}
				req.Task = found[0].Source + ":" + found[0].ID
				return a.resume(cmd, &r, s, req)
			})
		},
	}
	a.AddRunFlags(cmd, &r)
	return cmd
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
	var unknown *setup.UnknownProfileError
	if errors.As(err, &unknown) && a.Interactive() {
		if req, err = a.askProfile(stop.Ctx, unknown, req); err == nil {
			run, err = s.Engine().Start(stop.Ctx, req)
		}
	}
	var other *setup.OtherModelError
	if errors.As(err, &other) && a.Interactive() {
		if err = a.askModel(stop.Ctx, other); err == nil {
			req.Model = other.Model
			run, err = s.Engine().Start(stop.Ctx, req)
		}
	}
	if err != nil && stop.Exit() != 0 {
		return &failure.Failure{
			Exit: stop.Exit(),
			Code: "cancelled",
			What: "start the run",
			Why:  "it was stopped before it began",
			Try:  "the same command again",
		}
	}
	if err != nil {
		return err
	}
	c, end, err := a.Local(s)
	if err != nil {
		return err
	}
	defer end()
	f, outcome, err := a.followRun(ctx, c, run, req.Interactive, stop)
	if err != nil {
		return err
	}
	if failure := f.failure(outcome); failure != nil {
		return failure
	}
	if !a.Flags.JSON && outcome.Reason != "" {
		if _, err := fmt.Fprintln(a.Out, a.Result(outcome.Reason)); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
	}
	return nil
}
