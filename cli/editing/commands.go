// Package editing holds the commands that change stored tasks without a model's turn, or take such a change back: rewind,
// fork, undo, checkpoints, trash, titles, tags, pins, condensing and imports. A command that cannot be undone asks first,
// and does nothing where no person can be asked.
package editing

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
)

// commands are the commands of this package with the invocation that they belong to.
type commands struct{ *app.App }

// Commands returns the commands of this package.
func Commands(app *app.App) []*cobra.Command {
	a := &commands{app}
	return []*cobra.Command{
		a.renameCommand(),
		a.tagCommand(),
		a.pinCommand("pin", "pinned", true),
		a.pinCommand("unpin", "not pinned", false),
		a.deleteCommand(),
		a.trashCommand(),
		a.rewindCommand(),
		a.forkCommand(),
		a.undoCommand("undo"),
		a.undoCommand("redo"),
		a.condenseCommand(),
		a.checkpointCommand(),
		a.importCommand(),
	}
}

// posted changes a task and shows the result.
func posted[T any](ctx context.Context, a *commands, c *client.Client, id, what string, body any, show func(T)) error {
	return app.Exchange(ctx, a.App, c, client.Request{Method: http.MethodPost, Path: app.PathOf(id, what), Body: body}, show)
}

// restoring is a request that restores files.
type restoring struct {
	path string                          // the request's
	what string                          // the act, for error texts
	try  string                          // its command line
	ask  bool                            // the user decides, where there is a terminal
	body func(dry bool, plan string) any // the request's body: for a dry run, and then with its plan
}

// agreed sends a request that restores files, and shows the result. On a terminal it first shows the result of a dry
// run and asks; the real request names the plan of that dry run, so that the server does exactly that.
func agreed[T any](ctx context.Context, a *commands, c *client.Client, r restoring, files func(T) api.RestoreResult,
	show func(T)) error {
	send := func(dry bool, plan string) (T, json.RawMessage, error) {
		return app.Asked[T](ctx, c, client.Request{Method: http.MethodPost, Path: r.path, Body: r.body(dry, plan)})
	}
	plan := ""
	if r.ask && a.Interactive() {
		done, _, err := send(true, "")
		if err != nil {
			return err
		}
		if would := files(done); len(would.Files) > 0 {
			if err := a.agree(ctx, r.what, would, r.try); err != nil {
				return err
			}
			plan = would.Plan
		}
	}
	done, doc, err := send(false, plan)
	switch {
	case err != nil:
		return err
	case a.Flags.JSON:
		err = a.PrintRaw(doc)
	default:
		show(done)
		err = a.Flush()
	}
	return errors.Join(err, restoreFailure(files(done)))
}

// checkpointPath returns the path of a checkpoint; without a name, of the one before the newest change.
func checkpointPath(id, c, what string) string {
	return app.PathOf(id, "checkpoints", url.PathEscape(cmp.Or(c, "newest")), what)
}

func (a *commands) renameCommand() *cobra.Command {
	var reset bool
	cmd := help.Command("rename", func(cmd *cobra.Command, args []string) error {
		want, try := 2, `roost rename ID "new title"`
		if reset {
			want, try = 1, "roost rename ID --reset"
		}
		if err := failure.Arguments(want, want, try)(cmd, args); err != nil {
			return err
		}
		patch := api.TaskPatch{Title: api.Maybe[string]{Given: true}} // null: the task's own title
		if !reset {
			patch.Title.Value = new(strings.TrimSpace(args[1]))
		}
		return a.label(cmd.Context(), args[:1], &patch, func(t api.Summary) string { return t.Title })
	})
	cmd.Flags().BoolVar(&reset, "reset", false, "back to the title that the task has by itself")
	return cmd
}

func pathOf(t api.Summary) string { return t.Path }

// label changes the labels of tasks and prints each; without a patch it only prints. It finds all tasks before it changes
// one. show returns the text of a task's line.
func (a *commands) label(ctx context.Context, ids []string, patch *api.TaskPatch, show func(api.Summary) string) error {
	return a.Connect(ctx, func(c *client.Client) error {
		found, err := api.TryEach(ids, func(id string) (api.Summary, error) { return c.Task(ctx, id) })
		if err != nil {
			return err
		}
		for _, t := range api.Distinct(found, pathOf) {
			if patch != nil {
				r := client.Request{Method: http.MethodPatch, Path: app.PathOf(t.Key()), Body: patch, Repeatable: true}
				if _, err := c.Ask(ctx, r, &t); err != nil {
					return err
				}
			}
			if a.Flags.JSON {
				if err := a.PrintJSON(t); err != nil {
					return err
				}
				continue
			}
			if err := a.Println(display.OneLine(t.ID) + "  " + display.OneLine(show(t))); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *commands) tagCommand() *cobra.Command {
	var remove []string
	cmd := help.Command("tag", nil)
	cmd.DisableFlagParsing = true // -later is a tag to remove, not the flags -l -a -t -e -r
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "remove this `tag`; for those that look like a flag")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.DisableFlagParsing = false
		if err := cmd.ParseFlags(removals(args)); errors.Is(err, pflag.ErrHelp) {
			return cmd.Help()
		} else if err != nil {
			return failure.FlagError(cmd, err)
		}
		if wanted, _ := cmd.Flags().GetBool("help"); wanted {
			return cmd.Help()
		}
		args = cmd.Flags().Args()
		if err := failure.Arguments(1, -1, "roost tag ID +work")(cmd, args); err != nil {
			return err
		}
		var add []string
		for _, word := range args[1:] {
			if tag, ok := strings.CutPrefix(word, "-"); ok { // behind --
				remove = append(remove, tag)
				continue
			}
			add = append(add, strings.TrimPrefix(word, "+"))
		}
		var patch *api.TaskPatch
		if len(add)+len(remove) > 0 {
			patch = &api.TaskPatch{AddTags: add, RemoveTags: remove}
		}
		return a.label(cmd.Context(), args[:1], patch,
			func(t api.Summary) string { return cmp.Or(strings.Join(t.Tags, " "), "-") })
	}
	return cmd
}

// removals replaces -TAG by --remove=TAG. -q, -v and -h keep their usual meaning.
func removals(args []string) []string {
	var out []string
	for i, word := range args {
		if word == "--" {
			return append(out, args[i:]...)
		}
		tag, ok := strings.CutPrefix(word, "-")
		if ok && tag != "" && tag[0] != '-' && strings.Trim(tag, "qvh") != "" {
			word = "--remove=" + tag
		}
		out = append(out, word)
	}
	return out
}

// pinCommand returns the command pin or unpin.
func (a *commands) pinCommand(name, done string, pinned bool) *cobra.Command {
	return help.Command(name, func(cmd *cobra.Command, args []string) error {
		patch := api.TaskPatch{Pinned: api.Maybe[bool]{Given: true, Value: &pinned}}
		return a.label(cmd.Context(), args, &patch, func(api.Summary) string { return done })
	})
}

func (a *commands) importCommand() *cobra.Command {
	var n api.NewImport
	var maps []string
	cmd := help.Command("import", a.Connected(func(ctx context.Context, c *client.Client, args []string) error {
		return a.importTasks(ctx, c, args, n, maps)
	}))
	fl := cmd.Flags()
	fl.StringArrayVar(&n.Sources, "from", nil, "the tasks of a `source`: its name, a tool, or all; may be given again")
	fl.BoolVar(&n.DryRun, "dry-run", false, "show what would be done, and create nothing")
	app.OneOf(cmd, &n.Clash, "on-conflict", api.ConflictSkip, "for an id that other content has: skip or fork (a new id)",
		api.ConflictSkip, api.ConflictFork)
	fl.BoolVar(&n.Trust, "trust-settings", false, "take over the approvals, base URL and limits that Roost's tasks come with")
	fl.StringArrayVar(&maps, "map", nil, "`OLD=NEW`: workspaces below OLD lie below NEW here; may be given again")
	app.Complete(cmd, "from", a.SourceNames)
	return cmd
}

func (a *commands) importTasks(ctx context.Context, c *client.Client, paths []string, n api.NewImport, maps []string) error {
	const try = "roost import --from all --dry-run  # or roost import PATH..."
	if len(paths)+len(n.Sources) == 0 || slices.Contains(paths, "") {
		return failure.Usage("run roost import", "no task or source to import was named", try)
	}
	n.Paths = append(n.Paths, api.Each(paths, a.Abs)...)
	for _, text := range maps {
		from, to, ok := strings.Cut(text, "=")
		if !ok || from == "" || to == "" {
			return failure.Usage("roost import --map "+text, "want OLD=NEW, two folders", "roost import --map /home/old=/home/new")
		}
		n.Map = append(n.Map, [2]string{from, to})
	}
	watched, shown := a.Watched(ctx)
	r, err := client.Post[api.Import](watched, c, "/v1/imports", n)
	shown()
	if err != nil {
		return err
	}
	for _, src := range r.Unreachable {
		a.Warn(src.Path + " (" + src.Name + ") is " + src.State)
	}
	if err := app.Show(a.App, r, a.showImport); err != nil {
		return err
	}
	if r.Problem != nil {
		return r.Problem
	}
	return importFailure(r)
}

// importFailure returns nil when all tasks with messages are imported.
func importFailure(r api.Import) error {
	verb := "was"
	if r.DryRun {
		verb = "would be"
	}
	why := ""
	if r.Failed > 0 {
		why += fmt.Sprintf("%d of %d tasks could not be imported; ", r.Failed, r.Tasks)
	}
	if unreachable := len(r.Unreachable); unreachable > 0 {
		why += fmt.Sprintf("%s could not be reached; ", api.Plural(unreachable, "source"))
	}
	switch {
	case why != "":
		return failure.New(failure.ExitFailed, "import_incomplete", "import everything",
			why+"the rest "+verb+" imported", "the same command again, when what is named above is mended")
	case r.Conflicts > 0:
		return failure.New(failure.ExitBusy, "import_conflict", "import everything",
			fmt.Sprintf("%d of %d tasks have ids that other content has; they are left alone, the rest %s imported",
				r.Conflicts, r.Tasks, verb),
			"roost import --on-conflict fork ...")
	}
	return nil
}

func (a *commands) showImport(r api.Import) {
	line := func(s view.Style, text string) { a.Styled(s, display.OneLineIndented(text)) }
	for _, t := range r.Items {
		paint, id, proof := view.Plain, t.ID, ""
		switch {
		case t.Outcome == api.TaskEmpty:
			continue
		case t.Outcome == api.TaskFailed:
			paint = view.Bad
		case t.Outcome == api.TaskConflict:
			paint = view.Asked
		case t.Outcome == api.TaskSame || r.DryRun:
		case t.ByteEqual:
			proof = ", byte-equal"
		default:
			proof = ", all else byte-equal"
		}
		if id == "" || id != t.Name {
			id = strings.TrimSpace(id + " [" + t.Name + "]")
		}
		outcome := t.Outcome
		if r.DryRun && (outcome == api.TaskImported || outcome == api.TaskForked) {
			outcome = "would be " + outcome
		}
		line(paint, fmt.Sprintf("%s: %s (%s%s) from %s", outcome, id, api.SizeText(t.Bytes), proof, t.From))
		if t.Problem != "" {
			line(paint, "  "+t.Problem)
		}
		for _, d := range t.Differs {
			line(view.Dim, "  differs: "+d.File+": "+d.What)
		}
		for _, d := range t.LeftOut {
			line(view.Dim, "  left out: "+d.File+": "+d.What)
		}
		for _, note := range t.Notes {
			line(view.Asked, "  "+note)
		}
	}
	a.Flush()
	did, end := "imported", "nothing was changed where they came from"
	if r.DryRun {
		did, end = "to import", "nothing was done"
	}
	text := fmt.Sprintf("%s %s (%s, %s)", api.Plural(r.Imported+r.Forked, "task"), did, api.Plural(r.Files, "file"), api.SizeText(r.Bytes))
	text += display.Also(r.Forked, "of them under new ids") + display.Also(r.Same, "there already") +
		display.Also(r.Conflicts, "in conflict") + display.Also(r.Empty, "empty") + display.Also(r.Failed, "failed")
	a.Say("%s; %s", text, end)
}
