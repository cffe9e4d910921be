package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

func (a *App) rewindCommand() *cobra.Command {
	var o store.RewindOptions
	var remove string
	var f withFiles
	cmd := &cobra.Command{
		Use:   "rewind ID",
		Short: "Take a task's histories back to a message, edit a message or take one out",
		Long: "Take both histories of a task back: what the person sees and what the model sees, with the\n" +
			"questions, the queued input, and what was known of files. It is one step, and nothing is\n" +
			"destroyed: roost undo ID takes it back, and what was there stays as a branch\n" +
			"(roost show ID --branches). What was spent stays counted. Files in the workspace stay as\n" +
			"they are, unless --files is given: then those that the task changed are put back as well,\n" +
			"as they were before that message, and one undo takes both back. See roost checkpoint\n" +
			"restore --help; the files alone go back with that. With --json its result is in restore.\n\n" +
			"--to names the first message that goes: #12 as roost show prints it, ~2 or -2 for the last\n" +
			"two turns (a turn is one reply of the model with its tool results), a checkpoint such as c3\n" +
			"for what came behind it, or a ts. --edit puts new words in its place: the next roost\n" +
			"resume ID sends them. --delete takes one message out and leaves the rest; a reply goes\n" +
			"with its calls and their results.",
		Example: "  roost rewind 0199\n  roost rewind 0199 --to '#12' --dry-run\n  roost rewind 0199 --to '#12' --edit \"use the other file\"\n" +
			"  roost rewind 0199 --delete '#7'\n  roost rewind 0199 --to '#12' --files --dry-run",
		Args: count(1, 1, "roost rewind ID"), ValidArgsFunction: first(a.taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			fl := cmd.Flags()
			if fl.Changed("delete") {
				if fl.Changed("to") || fl.Changed("edit") || fl.Changed("keep-target") {
					return usage("roost rewind --delete", "it takes one message out, and goes with no other change", "roost rewind "+args[0]+" --delete '"+remove+"'")
				}
				o.To, o.Remove = remove, true
			}
			if fl.Changed("edit") && (strings.TrimSpace(o.Edit) == "" || !fl.Changed("to") || o.Keep) {
				return usage("roost rewind --edit", "want the message whose place the new words take, and the words", "roost rewind "+args[0]+" --to '#12' --edit \"new words\"")
			}
			if err := f.check(a, cmd, args[0]); err != nil {
				return err
			}
			if f.files {
				return a.rewindFiles(cmd.Context(), args[0], o, f)
			}
			return a.rewind(cmd.Context(), args[0], o)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&o.To, "to", "~1", "the first `MESSAGE` that goes: #12, ~2 (turns), c3 (a checkpoint), or a ts")
	fl.BoolVar(&o.Keep, "keep-target", false, "keep the message itself")
	fl.StringVar(&o.Edit, "edit", "", "put this `TEXT` in its place, for the next run")
	fl.StringVar(&remove, "delete", "", "take only this `MESSAGE` out, with what belongs to it")
	fl.BoolVar(&o.DryRun, "dry-run", false, "only say what would go")
	f.add(cmd)
	for _, name := range []string{"to", "edit", "delete"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

func (a *App) rewind(ctx context.Context, id string, o store.RewindOptions) error {
	if done, err := a.remotely(func(c *client.Client) error { return a.farRewind(ctx, c, id, o, nil) }); done {
		return err
	}
	return a.withEngine(ctx, func(s *store.Store, e *engine.Engine) error { return a.rewindBy(ctx, s, e, id, o) })
}

func (a *App) rewindBy(ctx context.Context, s *store.Store, e *engine.Engine, id string, o store.RewindOptions) error {
	ref, err := s.Find(ctx, id)
	if err != nil {
		return err
	}
	if !o.DryRun { // nothing else is done to a task whose files are being put back
		finished, err := e.Finish(ctx, id)
		if err != nil {
			return err
		}
		if finished != "" {
			a.say("%s", finished)
		}
	}
	r, finish, err := s.Rewind(ctx, ref, o)
	if err != nil {
		return a.refFailure("rewind task "+id, ref.ID, err)
	}
	told := a.tellRewind(r)
	if err := finish(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("the histories went back, and that is saved; Roo's files of it are not written yet: %w", err)
	}
	return told
}

// tellRewind says what went, or would.
func (a *App) tellRewind(r store.Rewind) error {
	if a.flags.json {
		return encode(a.Out, r, false)
	}
	verb := map[string]string{"rewind": "took back", "edit": "took back", "remove": "took out"}[r.Kind]
	if r.DryRun {
		verb = "would take " + strings.TrimPrefix(verb, "took ")
	}
	line := fmt.Sprintf("%s %s  %s", verb, display.OneLine(r.ID), messagesText(r.Gone, r.Turns))
	if r.To != nil {
		line += "  from " + rowText(*r.To)
		if r.Kept {
			line = strings.Replace(line, "  from ", "  behind the kept message, from ", 1)
		}
	}
	if err := a.println(line); err != nil {
		return err
	}
	for _, c := range r.Calls {
		what := "  call "
		if c.Stays {
			what = "  outcome of "
		}
		if err := a.println(what + display.OneLine(c.Name+"  "+c.Outcome)); err != nil {
			return err
		}
	}
	for _, f := range r.Files {
		if err := a.println("  not known any more: " + display.OneLine(f)); err != nil {
			return err
		}
	}
	if r.Forked != "" {
		a.say("  it continues %s, whose files cannot be written", r.Forked)
	}
	if r.Asked+r.Queued > 0 {
		a.say("  with %d question%s and %d queued input%s", r.Asked, plural(r.Asked), r.Queued, plural(r.Queued))
	}
	if r.Restored > 0 {
		a.say("  %d older message%s sent again", r.Restored, wereSent(r.Restored))
	}
	if r.Unmatched > 0 {
		a.say("  %d message%s could not be matched to rows: look with roost show %s --api", r.Unmatched, plural(r.Unmatched), shellWord(r.ID))
	}
	if r.Spent.TokensIn+r.Spent.TokensOut > 0 {
		a.say("  what it cost stays counted: %s in, %s out, %s", view.Count(r.Spent.TokensIn), view.Count(r.Spent.TokensOut), dollars(r.Spent.Cost))
	}
	if r.DryRun {
		return nil
	}
	if r.Kind == "edit" {
		a.say("  go on with the new words: roost resume %s", shellWord(r.ID))
	}
	a.say("  back: roost undo %s", shellWord(r.ID))
	return nil
}

func wereSent(n int) string {
	if n == 1 {
		return " is"
	}
	return "s are"
}

// messagesText says how many messages of both histories.
func messagesText(n store.MessageCounts, turns int) string {
	text := fmt.Sprintf("%d message%s, %d for the model", n.UI, plural(n.UI), n.API)
	if turns > 0 {
		text += fmt.Sprintf(" (%d turn%s)", turns, plural(turns))
	}
	return text
}

// rowText names a message.
func rowText(r store.Row) string {
	text := fmt.Sprintf("#%d %s", r.Number, display.OneLine(strings.TrimPrefix(strings.TrimPrefix(r.Kind, "say:"), "ask:")))
	if r.Text != "" {
		text += ` "` + display.Cut(display.OneLine(r.Text), 60) + `"`
	}
	return text
}

// refFailure says why a message or a branch was not found, and which there are.
func (a *App) refFailure(what, id string, err error) error {
	var ref *store.RefError
	var branch *store.BranchError
	f := &Failure{Task: id, What: what, Why: err.Error()}
	switch {
	case errors.As(err, &ref):
		f.Exit, f.Status, f.Code, f.Try = ExitNotFound, 404, "message_not_found", "roost show "+shellWord(id)
		if ref.Malformed || ref.Ambiguous {
			f.Exit, f.Status, f.Code = ExitUsage, 422, "bad_reference"
		}
		for _, c := range ref.Candidates {
			f.Suggestions = append(f.Suggestions, rowText(c))
		}
	case errors.As(err, &branch):
		f.Exit, f.Status, f.Code, f.Try = ExitNotFound, 404, "branch_not_found", "roost show "+shellWord(id)+" --branches"
		f.Suggestions = branch.Candidates
	case errors.Is(err, task.ErrNothingToCut):
		f.Exit, f.Status, f.Code, f.Try = ExitNotFound, 404, "nothing_to_rewind", "roost show "+shellWord(id)
	case errors.Is(err, task.ErrFirstMessage), errors.Is(err, task.ErrShared):
		f.Exit, f.Status, f.Code, f.Try = ExitBusy, 409, "not_alone", "roost rewind "+shellWord(id)+" --to MESSAGE"
	default:
		return err
	}
	return f
}
