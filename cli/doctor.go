package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/view"
)

func (a *App) doctorCommand() *cobra.Command {
	var o store.CheckOptions
	cmd := &cobra.Command{
		Use:   "doctor [ID...]",
		Short: "Verify tasks; change nothing unless told to", ValidArgsFunction: a.taskIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.open()
			if err != nil {
				return err
			}
			found, err := s.Check(cmd.Context(), args, o)
			if err != nil {
				return err
			}
			if a.flags.json {
				err = encode(a.Out, found, false)
			} else {
				err = a.showReport(found)
			}
			if err != nil && !readerGone(err) || len(found.Damaged) == 0 {
				return err
			}
			return damage(found, o)
		},
	}
	cmd.Flags().BoolVar(&o.Repair, "repair", false, "mend what can be mended, after a copy")
	cmd.Flags().BoolVar(&o.Rebuild, "rebuild", false, "build derived data again from the journals")
	return cmd
}

// damage is what is left to tell after a check: what was done about it depends on
// what was asked for.
func damage(r store.Report, o store.CheckOptions) *Failure {
	f := &Failure{Exit: ExitDamaged, Code: "damaged", What: damagedTasks(r),
		Why: "nothing was changed; what can be read is shown and can be continued", Try: "roost show ID, or roost doctor --repair"}
	switch {
	case o.Repair:
		f.Why = "this could not be mended and is as it was; what can be read is shown and can be continued"
		f.Try = "roost show ID"
	case o.Rebuild:
		f.Why = "derived data was built again; nothing else was changed"
	}
	return f
}

func damagedTasks(r store.Report) string {
	n, verb := r.Tasks-r.OK, "are"
	if n == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%d of %d task%s %s damaged", n, r.Tasks, plural(r.Tasks), verb)
}

func (a *App) showReport(r store.Report) error {
	style := a.outStyle()
	for _, d := range r.Damaged {
		lines := []struct {
			style view.Style
			text  string
		}{
			{view.Bad, d.ID + "  " + d.File + ": " + d.Problem},
			{view.Dim, "  " + d.Path},
			{view.Dim, "  recovered: " + orDash(d.Recovered) + "; lost: " + orDash(d.Lost)},
		}
		for _, l := range lines {
			if _, err := fmt.Fprintln(a.Out, style.Paint(l.style, display.OneLineIndented(l.text))); err != nil {
				return fmt.Errorf("print the report: %w", err)
			}
		}
	}
	for _, d := range r.Repaired {
		line := "repaired: " + d.ID + "  " + d.File + ": " + d.Problem
		if d.Copy != "" {
			line += "; as it was: " + d.Copy
		}
		if _, err := fmt.Fprintln(a.Out, style.Paint(view.Good, display.OneLine(line))); err != nil {
			return fmt.Errorf("print the report: %w", err)
		}
	}
	a.say("%d task%s checked, %d whole, %d damaged", r.Tasks, plural(r.Tasks), r.OK, r.Tasks-r.OK)
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
