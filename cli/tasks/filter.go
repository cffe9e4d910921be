package tasks

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
)

// addFilter adds the flags that list and search share.
func (a *commands) addFilter(cmd *cobra.Command, f *api.TaskFilter) {
	fl := cmd.Flags()
	fl.StringVar(&f.Workspace, "workspace", "", "only tasks of this `folder`")
	app.OneOf(cmd, &f.Status, "status", "", "only tasks with this `status`", api.Statuses...)
	fl.StringVar(&f.Source, "source", "", "only tasks of this `source`: a tool (roo, cline, claude) or a name that roost sources prints")
	fl.StringVar(&f.Model, "model", "", "only tasks whose model's name holds these `words`")
	app.Amount(fl, &f.MinCost, "min-cost", "only tasks that cost this `AMOUNT` of US dollars or more")
	app.Amount(fl, &f.MaxCost, "max-cost", "only tasks that cost this `AMOUNT` or less; one of unknown cost is in neither")
	fl.StringVar(&f.Tag, "tag", "", "only tasks with this `tag`")
	a.Moment(fl, &f.Since, "since", "only tasks changed after this `time`: 2026-01-31, RFC 3339, or an age such as 7d")
	a.Moment(fl, &f.Until, "until", "only tasks changed before this `time`")
	fl.StringVar(&f.Cursor, "cursor", "", "go on where the last page ended")
	app.Complete(cmd, "model", cobra.NoFileCompletions) // words of it
}

// noSource is the message when nothing was found because no source has the given name.
func (a *commands) noSource(name string, sources []api.SourceState) {
	if name == "" || slices.ContainsFunc(sources, func(s api.SourceState) bool { return name == s.Name || name == s.Tool }) {
		return
	}
	names := api.Each(sources, func(s api.SourceState) string { return s.Name })
	a.Say("no source is called %s; there are: %s", name, strings.Join(names, ", "))
}
