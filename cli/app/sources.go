package app

import (
	"fmt"

	"github.com/roost-dev/roost/api"
)

// SumUp prints what was found to stderr, and, when nothing was, where it looked.
func (a *App) SumUp(got api.Found, shown int) {
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
		a.Say("no tasks found; looked in:")
		for _, src := range got.Sources {
			line := fmt.Sprintf("  %s (%s)%s", src.Path, src.Name, Unreachable(src))
			if src.Empty > 0 {
				line += fmt.Sprintf(", %d empty", src.Empty)
			}
			a.Say("%s", line)
		}
		return
	}
	for _, src := range got.Sources {
		if why := Unreachable(src); why != "" {
			a.Warn(src.Path + " (" + src.Name + ")" + why)
		}
	}
	line := fmt.Sprintf("%d task%s in %d source%s", tasks, Plural(tasks), sources, Plural(sources))
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
	a.Say("%s", line)
}

// BySource prints what each source holds, without the empty ones.
func (a *App) BySource(sources []api.SourceState) {
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
		a.Say("%s", line)
	}
}
