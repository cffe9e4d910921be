package commandtool

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/shell"
	"github.com/roost-dev/roost/workspace/terminal"
)

// text is what the model reads. The first line has Roo's form.
func (p *plan) text(ran shell.Result, kept *capture, full *tool.Spool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Command executed in terminal within working directory '%s'. %s\n", p.where.Real, p.outcome(ran))
	for _, note := range notes(ran) {
		b.WriteString(note + "\n")
	}
	head, tail := kept.parts()
	if full == nil {
		b.WriteString("Output:\n" + clean(head))
		return b.String()
	}
	fmt.Fprintf(&b, "Output (%s) persisted.", size(full.Size))
	id := ""
	if p.env.ArtifactID != nil {
		id = p.env.ArtifactID()
	}
	if id != "" {
		fmt.Fprintf(&b, " Artifact ID: %s", id)
	}
	left := full.Size - int64(len(head)) - int64(len(tail))
	fmt.Fprintf(&b, "\nOutput:\n%s\n[...%d bytes omitted...]\n%s", strings.TrimSuffix(clean(head), "\n"), left, clean(tail))
	if id != "" {
		fmt.Fprintf(&b, "\nThe rest can be read with read_command_output and this artifact id.")
	}
	return b.String()
}

func (p *plan) outcome(ran shell.Result) string {
	switch {
	case ran.TimedOut:
		return fmt.Sprintf("It was ended after %v, its time limit. Exit code: %d", p.limit, ran.Exit)
	case ran.Cancelled:
		return fmt.Sprintf("The user cancelled it before it was done. Exit code: %d", ran.Exit)
	case ran.Signal != "":
		return fmt.Sprintf("A signal (%s) ended it. Exit code: %d", ran.Signal, ran.Exit)
	default:
		return fmt.Sprintf("Exit code: %d", ran.Exit)
	}
}

func notes(ran shell.Result) []string {
	var out []string
	if ran.Exit != 0 && !ran.TimedOut && !ran.Cancelled {
		out = append(out, "The command did not succeed: find out why before you continue.")
	}
	if len(ran.Ended) > 0 {
		out = append(out, "When the shell exited it left these running in the background; they were ended: "+list(ran.Ended)+".")
	}
	if len(ran.Survivors) > 0 {
		out = append(out, "These would not end and are still there: "+list(ran.Survivors)+".")
	}
	if ran.PipeHeld {
		out = append(out, "A process outside the command still holds its output; what it writes is not shown.")
	}
	return out
}

func list(ms []shell.Member) string {
	const most = 5
	var names []string
	for i, m := range ms {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(ms)-most))
			break
		}
		names = append(names, fmt.Sprintf("%s (%d)", m.Name, m.PID))
	}
	return strings.Join(names, ", ")
}

func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%dB", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1fKB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1fMB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1fGB", float64(n)/(1<<30))
	}
}

// clean makes raw output readable: escape sequences go, overwritten lines are
// resolved, other control characters and bad bytes are dropped or replaced.
func clean(raw []byte) string {
	s := strings.ToValidUTF8(string(raw), "\uFFFD")
	s = terminal.Plain(s)
	return terminal.FoldRepeats(terminal.Erase(terminal.Overwrite(s)))
}
