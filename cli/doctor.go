package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/agent/spool"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/view"
)

func (a *App) doctorCommand() *cobra.Command {
	var o store.CheckOptions
	cmd := &cobra.Command{
		Use:   "doctor [ID...]",
		Short: "Verify tasks; change nothing unless told to",
		Long: "Verify tasks: every commit and payload of their journals, Roo's files, calls and their\n" +
			"results, what their checkpoints keep, and whether what is derived of them agrees. Without an ID also the trash, the\n" +
			"overlay, the history index, the catalogue, and what interrupted work left.\n\n" +
			"--repair mends what can be mended, after a copy of what was there, and removes what dead\n" +
			"processes of Roost's left half written. --rebuild makes derived data again where it is\n" +
			"missing, behind or wrong. Both may be given; doing it again changes nothing more.",
		ValidArgsFunction: a.taskIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.open()
			if err != nil {
				return err
			}
			o.Spill = a.Dir
			ctx, shown := a.watched(cmd.Context())
			found, err := s.Check(ctx, args, o)
			var kept engine.CheckedContents
			if err == nil {
				e := engine.New(s, engine.Options{Now: a.millis, Config: engine.ConfigFromEnv(a.Env)})
				kept, err = e.CheckContents(ctx, args, o.Repair)
			}
			shown()
			if err != nil {
				return err
			}
			addContents(&found, kept)
			if len(args) == 0 {
				spools(&found, a.Env("TMPDIR"), o.Repair)
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
	cmd.Flags().BoolVar(&o.Rebuild, "rebuild", false, "build derived data again where it is missing or wrong")
	return cmd
}

// addContents adds what the contents of checkpoints were found to be.
func addContents(r *store.Report, kept engine.CheckedContents) {
	bad := map[string]bool{}
	for _, f := range r.Damaged {
		bad[f.ID] = true
	}
	for _, f := range kept.Damaged {
		if !bad[f.ID] {
			bad[f.ID] = true
			r.OK--
		}
	}
	r.Damaged, r.Repaired = append(r.Damaged, kept.Damaged...), append(r.Repaired, kept.Repaired...)
	r.Contents, r.ContentBytes = kept.Objects, kept.Bytes
}

// spools adds the folders for command output that killed runs left.
func spools(r *store.Report, dir string, remove bool) {
	left := spool.Left(dir)
	if remove && len(left) > 0 {
		spool.Sweep(dir)
	}
	still := map[string]bool{}
	for _, path := range spool.Left(dir) {
		still[path] = true
	}
	for _, path := range left {
		f := store.Finding{Path: path, File: path, Problem: "output of commands of a run that was killed", Recovered: "what was kept of it is in the task"}
		if still[path] {
			r.Leftovers = append(r.Leftovers, f)
		} else {
			f.Recovered = "removed"
			r.Repaired = append(r.Repaired, f)
		}
	}
}

// damage is what is left to tell after a check: what was done about it depends on
// what was asked for.
func damage(r store.Report, o store.CheckOptions) *Failure {
	f := &Failure{Exit: ExitDamaged, Code: "damaged", What: damagedTasks(r),
		Why: "nothing was changed; what can be read is shown and can be continued", Try: "roost doctor --repair  # or roost show ID"}
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
	text := fmt.Sprintf("%d of %d task%s %s damaged", n, r.Tasks, plural(r.Tasks), verb)
	other := 0
	for _, f := range r.Damaged {
		if f.ID == "" {
			other++
		}
	}
	switch {
	case n == 0 && other == 0: // of tasks that are not among those that were counted
		return fmt.Sprintf("%d deleted or hidden tasks or rows of the catalogue are damaged", len(r.Damaged))
	case n == 0:
		return fmt.Sprintf("%d of the files that are kept for all tasks are damaged", other)
	case other > 0:
		return fmt.Sprintf("%s, and %d of the files that are kept for all tasks", text, other)
	}
	return text
}

func (a *App) showReport(r store.Report) error {
	style := a.outStyle()
	print := func(s view.Style, text string) error {
		if _, err := fmt.Fprintln(a.Out, style.Paint(s, display.OneLineIndented(text))); err != nil {
			return fmt.Errorf("print the report: %w", err)
		}
		return nil
	}
	for _, d := range r.Damaged {
		for _, l := range []struct {
			style view.Style
			text  string
		}{
			{view.Bad, where(d) + ": " + d.Problem},
			{view.Dim, "  " + d.Path},
			{view.Dim, fate(d)},
		} {
			if l.text == "" {
				continue
			}
			if err := print(l.style, l.text); err != nil {
				return err
			}
		}
	}
	for _, list := range []struct {
		word  string
		style view.Style
		found []store.Finding
	}{{"derived", view.Dim, r.Stale}, {"left over", view.Dim, r.Leftovers}, {"not trusted", view.Asked, r.Untrusted}, {"repaired", view.Good, r.Repaired}} {
		for _, d := range list.found {
			line := list.word + ": " + where(d) + ": " + d.Problem
			if d.Recovered != "" {
				line += "; " + d.Recovered
			}
			if d.Copy != "" {
				line += "; as it was: " + d.Copy
			}
			if err := print(list.style, line); err != nil {
				return err
			}
		}
	}
	text := fmt.Sprintf("%d task%s checked, %d whole, %d damaged", r.Tasks, plural(r.Tasks), r.OK, r.Tasks-r.OK)
	if n := len(r.Untrusted); n > 0 {
		text += fmt.Sprintf(", %d not trusted (roost root trust, if the root is yours)", n)
	}
	if n := len(r.Leftovers); n > 0 {
		text += fmt.Sprintf("; %d left over", n)
	}
	if n := len(r.Stale); n > 0 {
		text += fmt.Sprintf("; %d to be built again (--rebuild)", n)
	}
	a.say("%s", text)
	return nil
}

// where names what a finding is about.
func where(f store.Finding) string {
	if f.ID == "" {
		return f.File
	}
	if inside, err := filepath.Rel(f.Path, f.File); err == nil && filepath.IsAbs(f.File) && filepath.IsLocal(inside) {
		if inside == "." { // the folder stands below
			return f.ID
		}
		return f.ID + "  " + inside
	}
	return f.ID + "  " + f.File
}

// fate says what came back of what is damaged, and what did not, as far as that is known.
func fate(d store.Finding) string {
	var said []string
	if d.Recovered != "" {
		said = append(said, "recovered: "+d.Recovered)
	}
	if d.Lost != "" {
		said = append(said, "lost: "+d.Lost)
	}
	if len(said) == 0 {
		return ""
	}
	return "  " + strings.Join(said, "; ")
}
