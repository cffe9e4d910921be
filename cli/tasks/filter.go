package tasks

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/money"
)

// filter holds the flags with which list and search choose tasks.
type filter struct {
	*api.TaskFilter
	since, until, minCost, maxCost string
}

// addTo adds the flags that list and search share.
func (f *filter) addTo(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.Workspace, "workspace", "", "only tasks of this `folder`")
	fl.StringVar(&f.Status, "status", "", "only tasks with this `status`")
	fl.StringVar(&f.Source, "source", "", "only tasks of this `source`: a tool (roo, cline, claude) or a name that roost sources prints")
	fl.StringVar(&f.Model, "model", "", "only tasks whose model's name holds these `words`")
	fl.StringVar(&f.minCost, "min-cost", "", "only tasks that cost this `AMOUNT` of US dollars or more")
	fl.StringVar(&f.maxCost, "max-cost", "", "only tasks that cost this `AMOUNT` or less; one of unknown cost is in neither")
	fl.StringVar(&f.Tag, "tag", "", "only tasks with this `tag`")
	fl.StringVar(&f.since, "since", "", "only tasks changed after this `time`: 2026-01-31, RFC 3339, or an age such as 7d")
	fl.StringVar(&f.until, "until", "", "only tasks changed before this `time`")
	fl.StringVar(&f.Cursor, "cursor", "", "go on where the last page ended")
	app.Complete(cmd, "status", app.Words(api.Statuses...))
	app.Complete(cmd, "model", cobra.NoFileCompletions) // words of it
}

// read checks the flags and sets the filter. An advice is a command line with a flag, and with what after the flag.
func (f *filter) read(a *commands, command, what string) (err error) {
	if f.Since, f.Until, err = a.span(command, f.since, f.until); err != nil {
		return err
	}
	f.Workspace = a.GivenFolder(f.Workspace)
	for _, cost := range []struct {
		to         **money.USD
		flag, text string
	}{{&f.MinCost, "min-cost", f.minCost}, {&f.MaxCost, "max-cost", f.maxCost}} {
		if cost.text == "" {
			continue
		}
		usd, err := money.Parse(strings.TrimPrefix(cost.text, "$"))
		if err != nil || usd < 0 {
			return failure.Usage(command+" --"+cost.flag+" "+cost.text, "want an amount of US dollars such as 0.50",
				command+" --"+cost.flag+" 0.50"+what)
		}
		*cost.to = &usd
	}
	if f.Limit < 0 {
		return failure.Usage(command+" --limit", "a limit cannot be negative", command+" --limit 20"+what)
	}
	return oneOf(command, "status", f.Status, "there is no such status", api.Statuses, what)
}

// oneOf checks the value of a flag that takes one of some words, or nothing.
func oneOf(command, flag, word, why string, words []string, what string) error {
	if word == "" || slices.Contains(words, word) {
		return nil
	}
	command += " --" + flag + " "
	return failure.Usage(command+word, why, command+strings.Join(words, "|")+what)
}

// span parses the times of --since and --until.
func (a *commands) span(command, since, until string) (from, to int64, err error) {
	if from, err = a.moment(command+" --since", since); err == nil {
		to, err = a.moment(command+" --until", until)
	}
	return from, to, err
}

// moment reads a time as Unix milliseconds; 0 when text is empty.
func (a *commands) moment(flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if at, ok := api.Moment(text, a.Now()); ok {
		return at, nil
	}
	return 0, failure.Usage(flag+" "+text, "it is neither a time nor an age", flag+" 7d")
}

// noSource is the message when nothing was found because no source has the given name.
func (a *commands) noSource(name string, sources []api.SourceState) {
	if name == "" || slices.ContainsFunc(sources, func(s api.SourceState) bool { return name == s.Name || name == s.Tool }) {
		return
	}
	names := api.Each(sources, func(s api.SourceState) string { return s.Name })
	a.Say("no source is called %s; there are: %s", name, strings.Join(names, ", "))
}
