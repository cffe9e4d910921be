package editing

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/view"
)

// barWidth is how many signs the longest bar of --stat has.
const barWidth = 40

func (a *commands) checkpointDiffCommand() *cobra.Command {
	o := checkpoints.DiffOptions{}
	var stat bool
	cmd := &cobra.Command{
		Use:   "diff ID [C [C2|now]]",
		Short: "Show what differs between two checkpoints of a task, or a checkpoint and now",
		Long: "Show what differs between two checkpoints of a task, or between one and the files as they\n" +
			"are now. Without C: from before the newest change. Only files that the task changed are\n" +
			"looked at; nothing is written.\n\n" +
			"--json: {task_id, from, to, items: [{path, change: added|changed|deleted|mode, from, to,\n" +
			"added, removed, why, patch}]}; from and to of a file are {kind, mode, size, hash, blob}; added\n" +
			"and removed are lines, and why is the reason when a file is not compared by lines. With --stat there\n" +
			"is no patch.",
		Example: "  roost checkpoint diff 0199\n" +
			"  roost checkpoint diff 0199 c2 c5 --stat\n" +
			"  roost checkpoint diff 0199 0 now --path src/main.go",
		Args: failure.Arguments(1, 3, "roost checkpoint diff ID C C2"), ValidArgsFunction: a.checkpointNames("now"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				o.From = args[1]
			}
			if len(args) > 2 {
				o.To = args[2]
			}
			q := url.Values{}
			app.SetQuery(q, "to", o.To)
			app.SetQuery(q, "path", strings.Join(o.Paths, "\n"))
			if stat {
				q.Set("stat", "true")
			}
			return a.Connect(cmd.Context(), func(c *client.Client) error {
				return app.DocumentOf(cmd.Context(), a.App, c, checkpointPath(args[0], o.From, "diff"), q, func(d api.Diff) error {
					return a.showDiff(cmd.Context(), d, stat)
				})
			})
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&stat, "stat", false, "only count lines, a bar a file")
	fl.StringArrayVar(&o.Paths, "path", nil, "only this `file` or folder (repeatable)")
	return cmd
}

// showDiff prints what differs for people.
func (a *commands) showDiff(ctx context.Context, d api.Diff, stat bool) error {
	if len(d.Files) == 0 {
		a.Say("nothing differs between %s and %s", d.From, d.To)
		return nil
	}
	if stat {
		return a.printStat(d.Files)
	}
	return a.Paged(ctx, func() error { return a.printPatch(d.Files) })
}

// printPatch prints what differs as a patch. Everything in it comes from files and
// models, names included.
func (a *commands) printPatch(files []api.FileDiff) error {
	style := a.OutStyle()
	for _, f := range files {
		if f.Patch == "" || f.Why != "" {
			if err := a.Println(style.Paint(view.Head, f.Change+"  "+display.OneLine(f.Path)+"  ("+diffNote(f)+")")); err != nil {
				return err
			}
			continue
		}
		for _, line := range strings.Split(strings.TrimSuffix(f.Patch, "\n"), "\n") {
			if err := a.Println(style.Paint(lineStyle(line), display.Safe(line))); err != nil {
				return err
			}
		}
	}
	return nil
}

func lineStyle(line string) view.Style {
	switch {
	case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		return view.Head
	case strings.HasPrefix(line, "+"):
		return view.Added
	case strings.HasPrefix(line, "-"):
		return view.Removed
	case strings.HasPrefix(line, "@@"):
		return view.Dim
	}
	return ""
}

// diffNote is what a patch does not show.
func diffNote(f api.FileDiff) string {
	var notes []string
	if f.From.Kind == api.KindFile && f.To.Kind == api.KindFile && f.From.Mode != f.To.Mode {
		notes = append(notes, fmt.Sprintf("mode %03o, was %03o", f.To.Mode, f.From.Mode))
	}
	if f.From.Kind != f.To.Kind && f.From.Kind != api.KindGone && f.To.Kind != api.KindGone {
		notes = append(notes, "a "+kindText(f.To.Kind)+", was a "+kindText(f.From.Kind))
	}
	if f.Why != "" {
		notes = append(notes, "not compared by lines: "+display.OneLine(f.Why))
	}
	return strings.Join(notes, "; ")
}

func kindText(kind string) string {
	if text := map[string]string{api.KindFile: "file", api.KindLink: "link", api.KindOther: "folder or device"}[kind]; text != "" {
		return text
	}
	return display.OneLine(kind)
}

// printStat prints a line with a bar for each file.
func (a *commands) printStat(files []api.FileDiff) error {
	style, width, most, added, removed := a.OutStyle(), 0, 0, 0, 0
	for _, f := range files {
		width = max(width, min(display.Columns(display.OneLine(f.Path)), 60))
		most, added, removed = max(most, f.Added+f.Removed), added+f.Added, removed+f.Removed
	}
	for _, f := range files {
		end := diffNote(f)
		if f.Added+f.Removed > 0 {
			plus, minus := bar(f.Added, f.Removed, most)
			end = strings.TrimRight(fmt.Sprintf("%5d %s%s  %s", f.Added+f.Removed, style.Paint(view.Added, strings.Repeat("+", plus)),
				style.Paint(view.Removed, strings.Repeat("-", minus)), end), " ")
		}
		name := display.Pad(display.Cut(display.OneLine(f.Path), width), width)
		if err := a.Println(fmt.Sprintf(" %-7s  %s | %s", f.Change, name, end)); err != nil {
			return err
		}
	}
	return a.Println(fmt.Sprintf(" %d file%s, %d line%s added, %d removed", len(files), app.Plural(len(files)), added, app.Plural(added), removed))
}

// bar divides the signs of a bar between added and removed lines, in proportion. One added
// or removed line gets at least one sign.
func bar(added, removed, most int) (plus, minus int) {
	if most <= barWidth {
		return added, removed
	}
	scale := func(n int) int {
		if n == 0 {
			return 0
		}
		return max(1, n*barWidth/most)
	}
	return scale(added), scale(removed)
}
