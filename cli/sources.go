package cli

import (
	"fmt"

	"github.com/roost-dev/roost/api"
)

// sumUp prints what was found to stderr, and, when nothing was, where it looked.
func (a *App) sumUp(got api.Found, shown int) {
	tasks, damaged, empty, sources := 0, 0, 0, 0
	for _, src := range got.Sources {
		tasks += src.Tasks
		damaged += src.Damaged
		empty += src.Empty
		if src.Tasks > 0 {
			sources++
		}
	}
	if tasks == 0 {
		a.say("no tasks found; looked in:")
		for _, src := range got.Sources {
			line := fmt.Sprintf("  %s (%s)%s", src.Path, src.Name, unreachable(src))
			if src.Empty > 0 {
				line += fmt.Sprintf(", %d empty", src.Empty)
			}
			a.say("%s", line)
		}
		return
	}
	for _, src := range got.Sources {
		if why := unreachable(src); why != "" {
			a.warn(src.Path + " (" + src.Name + ")" + why)
		}
	}
	line := fmt.Sprintf("%d task%s in %d source%s", tasks, plural(tasks), sources, plural(sources))
	if got.Copies > 0 {
		line += fmt.Sprintf(", %d of them %s", got.Copies, map[bool]string{
			true:  "a copy of another",
			false: "copies of others",
		}[got.Copies == 1])
	}
	if damaged > 0 {
		line += fmt.Sprintf(", %d damaged (details: roost doctor)", damaged)
	}
	if empty > 0 {
		line += fmt.Sprintf(", %d empty", empty)
	}
	if shown < tasks {
		line += fmt.Sprintf("; %d shown", shown)
	}
	a.say("%s", line)
}

// unreachable is why a source cannot be read, "" when it can. Such a source is never just
// shown as empty.
func unreachable(src api.SourceState) string {
	if src.State == "" || src.State == "readable" {
		return ""
	}
	if src.Problem != "" {
		return " is " + src.State + ": " + src.Problem
	}
	if src.Damaged > 0 {
		return "" // its damaged tasks are counted, and shown as such
	}
	return " is " + src.State
}

// bySource prints what each source holds, without the empty ones.
func (a *App) bySource(sources []api.SourceState) {
	for _, src := range sources {
		if src.Tasks+src.Empty == 0 {
			continue
		}
		line := fmt.Sprintf("%5d  %s", src.Tasks, src.Name)
		if src.Tool != "" && src.Tool != src.Name {
			line += " (" + src.Tool + ")"
		}
		line += "  " + src.Path
		if src.Damaged > 0 {
			line += fmt.Sprintf("  %d damaged", src.Damaged)
		}
		if src.Empty > 0 {
			line += fmt.Sprintf("  %d empty", src.Empty)
		}
		a.say("%s", line)
	}
}
