package hosting

import (
	"bufio"
	"fmt"
	"path/filepath"
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

func (a *commands) doctorCommand() *cobra.Command {
	var o service.Checkup
	cmd := help.Command("doctor", func(cmd *cobra.Command, args []string) error {
		s, err := a.Open()
		if err != nil {
			return err
		}
		o.Folder, o.Temp = a.Dir, a.Env("TMPDIR")
		all := s.Service()
		defer all.Close()
		ctx, shown := a.Watched(cmd.Context())
		found, err := all.Check(ctx, args, o)
		shown()
		if err != nil {
			return err
		}
		if a.Flags.JSON {
			err = app.Encode(a.Out, found, false)
		} else {
			err = a.showReport(found)
		}
		if err != nil && !app.ReaderGone(err) || len(found.Damaged) == 0 {
			return err
		}
		return damage(found, o)
	})
	cmd.Flags().BoolVar(&o.Repair, "repair", false, "repair what can be repaired, and keep what is replaced")
	cmd.Flags().BoolVar(&o.Rebuild, "rebuild", false, "build derived data again where it is missing or wrong")
	return cmd
}

// damage is the error of a check that found damage. Its text depends on the options.
func damage(r api.Checkup, o service.Checkup) *failure.Failure {
	f := failure.New(failure.ExitDamaged, "damaged", damagedTasks(r),
		"nothing was changed; what can be read is shown and can be continued",
		"roost doctor --repair  # or roost show ID")
	switch {
	case o.Repair:
		f.Why = "this cannot be repaired and was left as it is; what can be read is shown and can be continued"
		f.Try = "roost show ID"
	case o.Rebuild:
		f.Why = "derived data was rebuilt; nothing else was changed"
	}
	return f
}

func damagedTasks(r api.Checkup) string {
	n := r.Tasks - r.OK
	verb := map[bool]string{true: "is", false: "are"}[n == 1]
	text := fmt.Sprintf("%d of %s %s damaged", n, display.Plural(r.Tasks, "task"), verb)
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
		return fmt.Sprintf("%d of the files that all tasks share are damaged", other)
	case other > 0:
		return fmt.Sprintf("%s, and %d of the files that all tasks share", text, other)
	}
	return text
}

func (a *commands) showReport(r api.Checkup) error {
	style := a.OutStyle()
	out := bufio.NewWriter(a.Out)
	print := func(s view.Style, text string) { fmt.Fprintln(out, style.Paint(s, display.OneLineIndented(text))) }
	for _, d := range r.Damaged {
		print(view.Bad, where(d)+": "+d.Problem)
		print(view.Dim, "  "+d.Path)
		if text := fate(d); text != "" {
			print(view.Dim, text)
		}
	}
	for _, list := range []struct {
		word  string
		style view.Style
		found []api.Finding
	}{{"derived", view.Dim, r.Stale}, {"left over", view.Dim, r.Leftovers}, {"not trusted", view.Asked, r.Untrusted},
		{"repaired", view.Good, r.Repaired}} {
		for _, d := range list.found {
			line := list.word + ": " + where(d) + ": " + d.Problem
			if d.Recovered != "" {
				line += "; " + d.Recovered
			}
			if d.Copy != "" {
				line += "; as it was: " + d.Copy
			}
			print(list.style, line)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	text := fmt.Sprintf("%d task%s checked, %d whole, %d damaged", r.Tasks, app.Plural(r.Tasks), r.OK, r.Tasks-r.OK)
	if n := len(r.Untrusted); n > 0 {
		text += fmt.Sprintf(", %d not trusted (roost root trust, if the root is yours)", n)
	}
	if n := len(r.Leftovers); n > 0 {
		text += fmt.Sprintf("; %d left over", n)
	}
	if n := len(r.Stale); n > 0 {
		text += fmt.Sprintf("; %d to rebuild (--rebuild)", n)
	}
	a.Say("%s", text)
	return nil
}

// where names the subject of a finding.
func where(f api.Finding) string {
	if f.ID == "" {
		return f.File
	}
	if inside, err := filepath.Rel(f.Path, f.File); err == nil && filepath.IsAbs(f.File) && filepath.IsLocal(inside) {
		if inside == "." { // the next line shows the folder
			return f.ID
		}
		return f.ID + "  " + inside
	}
	return f.ID + "  " + f.File
}

// fate describes what was recovered and what was lost, as far as it is known.
func fate(d api.Finding) string {
	var parts []string
	if d.Recovered != "" {
		parts = append(parts, "recovered: "+d.Recovered)
	}
	if d.Lost != "" {
		parts = append(parts, "lost: "+d.Lost)
	}
	if len(parts) == 0 {
		return ""
	}
	return "  " + strings.Join(parts, "; ")
}
