package editing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/view"
)

func (a *commands) importCommand() *cobra.Command {
	var o service.Import
	var conflict string
	var maps []string
	cmd := help.Command("import", func(cmd *cobra.Command, args []string) error {
		return a.importTasks(cmd.Context(), args, o, conflict, maps)
	})
	fl := cmd.Flags()
	fl.StringArrayVar(&o.Sources, "from", nil, "the tasks of a `source`: its name, a tool, or all; may be given again")
	fl.BoolVar(&o.DryRun, "dry-run", false, "show what would be done, and create nothing")
	fl.StringVar(&conflict, "on-conflict", api.ConflictSkip, "for an id that other content has: `skip` or fork (a new id)")
	fl.BoolVar(&o.Trust, "trust-settings", false, "take over the approvals, base URL and limits that Roost's tasks come with")
	fl.StringArrayVar(&maps, "map", nil, "`OLD=NEW`: workspaces below OLD lie below NEW here; may be given again")
	app.Complete(cmd, "from", a.SourceNames)
	app.Complete(cmd, "on-conflict", app.Words(api.ConflictSkip, api.ConflictFork))
	return cmd
}

func (a *commands) importTasks(ctx context.Context, paths []string, o service.Import, conflict string, maps []string) error {
	const try = "roost import --from all --dry-run  # or roost import PATH..."
	if len(paths)+len(o.Sources) == 0 {
		return failure.Usage("run roost import", "nothing to import was named", try)
	}
	unreachable := 0
	o.Fork = conflict == api.ConflictFork
	o.Unread = func(state api.SourceState) {
		a.Warn(state.Path + " (" + state.Name + ") is " + state.State)
		unreachable++
	}
	for _, path := range paths {
		o.Paths = append(o.Paths, a.Abs(path))
	}
	if conflict != api.ConflictSkip && conflict != api.ConflictFork {
		return failure.Usage("roost import --on-conflict "+conflict, "a conflict is skipped or forked",
			"roost import --on-conflict skip|fork")
	}
	for _, text := range maps {
		from, to, ok := strings.Cut(text, "=")
		if !ok || from == "" || to == "" {
			return failure.Usage("roost import --map "+text, "want OLD=NEW, two folders", "roost import --map /home/old=/home/new")
		}
		o.Map = append(o.Map, [2]string{from, to})
	}
	s, err := a.Open()
	if err != nil {
		return err
	}
	all := s.Service()
	defer all.Close()
	watched, shown := a.Watched(ctx)
	r, err := all.Import(watched, o)
	shown()
	if err != nil && len(r.Items) == 0 {
		return err
	}
	if a.Flags.JSON {
		err = errors.Join(err, app.Encode(a.Out, r, false))
	} else {
		err = errors.Join(err, a.showImport(r))
	}
	if err != nil {
		return err
	}
	return importFailure(r, unreachable)
}

// importFailure is nil when everything that holds messages is there now.
func importFailure(r api.Import, unreachable int) error {
	verb := "was"
	if r.DryRun {
		verb = "would be"
	}
	why := ""
	if r.Failed > 0 {
		why += fmt.Sprintf("%d of %d tasks could not be imported; ", r.Failed, r.Tasks)
	}
	if unreachable > 0 {
		why += fmt.Sprintf("%d source%s could not be reached; ", unreachable, app.Plural(unreachable))
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

func (a *commands) showImport(r api.Import) error {
	out := bufio.NewWriter(a.Out)
	style := a.OutStyle()
	line := func(s view.Style, text string) { fmt.Fprintln(out, style.Paint(s, display.OneLineIndented(text))) }
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
		line(paint, fmt.Sprintf("%s: %s (%s%s) from %s", outcome, id, app.BytesText(t.Bytes), proof, t.From))
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
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	did, end := "imported", "nothing was changed where they came from"
	if r.DryRun {
		did, end = "to import", "nothing was done"
	}
	text := fmt.Sprintf("%d task%s %s (%d file%s, %s)", r.Imported+r.Forked, app.Plural(r.Imported+r.Forked), did, r.Files,
		app.Plural(r.Files), app.BytesText(r.Bytes))
	for _, n := range []struct {
		n    int
		what string
	}{{r.Forked, "of them under new ids"}, {r.Same, "there already"}, {r.Conflicts, "in conflict"}, {r.Empty, "empty"},
		{r.Failed, "failed"}} {
		if n.n > 0 {
			text += fmt.Sprintf(", %d %s", n.n, n.what)
		}
	}
	a.Say("%s; %s", text, end)
	return nil
}
