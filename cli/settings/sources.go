package settings

import (
	"bufio"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/view"
)

func (a *commands) sourcesCommand() *cobra.Command {
	parent := help.Command("sources", func(cmd *cobra.Command, _ []string) error { return a.sourcesList(cmd.Context()) })
	parent.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return failure.UnknownCommand(cmd, args[0])
		}
		return nil
	}
	add := help.CommandFor("sources add", app.First(app.Folders), func(cmd *cobra.Command, args []string) error {
		return a.sourcesAdd(cmd.Context(), args[0])
	})
	remove := help.CommandFor("sources remove", app.First(a.addedSources), func(_ *cobra.Command, args []string) error {
		return a.sourcesRemove(args[0])
	})
	parent.AddCommand(a.OnlyHere(add), a.OnlyHere(remove))
	return parent
}

func (a *commands) sourcesList(ctx context.Context) error {
	return a.Connect(ctx, func(c *client.Client) error {
		return app.DocumentOf(ctx, a.App, c, "/v1/sources", nil, func(got struct{ Items []api.SourceState }) error {
			return a.sourceTable(got.Items)
		})
	})
}

// sourceTable writes one line a source. States may be long: they hold the reason.
func (a *commands) sourceTable(sources []api.SourceState) error {
	style := a.OutStyle()
	rows := [][]string{{"SOURCE", "TOOL", "TASKS", "DAMAGED", "EMPTY", "SIZE", "STATE"}}
	for _, src := range sources {
		state, _, _ := strings.Cut(src.State, ":") // the reason follows below
		rows = append(rows, []string{
			display.OneLine(src.Name), display.OneLine(src.Tool), strconv.Itoa(src.Tasks), strconv.Itoa(src.Damaged),
			strconv.Itoa(src.Empty), app.BytesText(src.Bytes), state,
		})
	}
	wide := app.Widths(rows)
	line := func(row []string) string { return app.Cells(row, wide, 2, 6) + "  " }
	// A path that does not fit in the line gets a line of its own.
	below := a.Columns() > 0 && slices.ContainsFunc(sources, func(src api.SourceState) bool {
		return display.Columns(line(rows[0])+display.OneLine(src.Path)) > a.Width
	})
	out := bufio.NewWriter(a.Out)
	for i, row := range rows {
		s, path := view.Plain, "PATH"
		if i == 0 {
			s = view.Dim
		} else {
			path = display.OneLine(sources[i-1].Path)
			if sources[i-1].State != "readable" {
				s = view.Bad
			}
		}
		text := line(row) + path
		if below && i > 0 {
			text = strings.TrimRight(line(row), " ") + "\n  " + path
		}
		fmt.Fprintln(out, style.Paint(s, text))
	}
	if err := app.Flushed(out); err != nil {
		return err
	}
	for _, src := range sources {
		if why := app.Unreachable(src); why != "" {
			a.Warn(src.Path + " (" + src.Name + ")" + why)
		}
	}
	return nil
}

// sourcesAdd adds a folder to the setting sources. Roost still finds the sources that it found
// without the setting.
func (a *commands) sourcesAdd(ctx context.Context, given string) error {
	dir := a.Abs(given)
	what := "read the tasks of " + dir
	if strings.Contains(dir, ",") || strings.TrimSpace(dir) != dir {
		return failure.Usage(what, "the setting separates folders by commas, so a name cannot hold a comma, nor begin or end with a blank",
			"roost sources add LINK, with a symbolic link to it")
	}
	found, err := local.FindStorage(ctx, dir)
	if err != nil {
		return failure.NotFound("source_unreachable", what, err.Error(), "roost sources")
	}
	named, err := a.namedSources()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(named, isFolder(dir)) {
		a.Say("%s is a source already", dir)
		return a.sourceAdded(dir, found, false)
	}
	if len(named) == 0 {
		named = []string{"auto"} // as it was until now
	}
	named = slices.DeleteFunc(named, func(n string) bool { return n == "none" })
	if err := a.ConfigSet("sources", []string{strings.Join(append(named, dir), ",")}); err != nil {
		return err
	}
	return a.sourceAdded(dir, found, true)
}

// namedSources are the entries of the setting sources.
func (a *commands) namedSources() ([]string, error) {
	_, file, err := a.ConfigFile()
	if err != nil {
		return nil, err
	}
	if e, ok := file.Get("sources"); ok {
		return app.List(e.Value.Text), nil
	}
	return nil, nil
}

// isFolder reports of a word of that setting whether it names dir.
func isFolder(dir string) func(string) bool {
	return func(word string) bool { return word == dir || filepath.IsAbs(word) && filepath.Clean(word) == dir }
}

// sourcesRemove takes a folder out of the setting sources, also one that no longer exists.
func (a *commands) sourcesRemove(given string) error {
	dir := a.Abs(given)
	named, err := a.namedSources()
	if err != nil {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(named), isFolder(dir))
	if len(rest) == len(named) {
		f := failure.NotFound("not_found", "take out the source "+dir,
			"the setting sources does not name it; to leave out a source that Roost finds, name the others",
			"roost config set sources DIR,...")
		for _, word := range named {
			if word != "auto" && word != "none" {
				f.Suggestions = append(f.Suggestions, "roost sources remove "+failure.ShellWord(word))
			}
		}
		return f
	}
	value := []string{strings.Join(rest, ",")}
	switch {
	case len(rest) == 0: // it was the only one; all those that are found were not wanted
		value = []string{"none"}
	case len(rest) == 1 && rest[0] == "auto": // as without the setting
		value = nil
	}
	if err := a.ConfigSet("sources", value); err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintJSON(map[string]any{"path": dir, "removed": true})
	}
	return a.Println(display.OneLine(dir) + ": no source any more; nothing in it was changed")
}

// addedSources completes the folders that were added.
func (a *commands) addedSources(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	named, _ := a.namedSources() // a setting that cannot be read completes nothing
	return slices.DeleteFunc(named, func(word string) bool { return word == "auto" || word == "none" }), cobra.ShellCompDirectiveNoFileComp
}

// sourceAdded prints what the folder holds.
func (a *commands) sourceAdded(dir string, found local.Storage, added bool) error {
	if a.Flags.JSON {
		return a.PrintJSON(map[string]any{"path": dir, "tool": found.Tool, "tasks": found.Tasks, "added": added})
	}
	if found.Tasks == 0 {
		a.Warn("there is no task in " + dir + " yet; a storage has its task folders below tasks/")
	}
	return a.Println(fmt.Sprintf("%s: %d task%s (%s)", display.OneLine(dir), found.Tasks, app.Plural(found.Tasks), found.Shape))
}
