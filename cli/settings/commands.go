// Package settings holds the commands that show and change the settings file, keys, MCP servers, models, modes, skills,
// approvals and sources. They never print a key; a change of one setting leaves every other byte of the file.
package settings

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/view"
)

// commands are the commands of this package with the invocation that they belong to.
type commands struct{ *app.App }

// Commands returns the commands of this package.
func Commands(app *app.App) []*cobra.Command {
	a := &commands{app}
	return []*cobra.Command{
		a.sourcesCommand(),
		a.OnlyHere(a.approvalsCommand()),
		a.modesCommand(),
		a.skillsCommand(),
		a.mcpCommand(),
		a.OnlyHere(a.configCommand()),
		a.OnlyHere(a.authCommand()),
		a.modelsCommand(),
	}
}

func (a *commands) approvalsCommand() *cobra.Command {
	var allow, deny []string
	test := help.Command("approvals test", func(_ *cobra.Command, args []string) error {
		v := approval.Command(args[0], allow, deny)
		if a.Flags.JSON {
			return a.PrintJSON(v)
		}
		lines := []string{string(v.State) + ": " + v.Reason}
		for _, p := range v.Parts {
			rule := ""
			if p.Rule != "" {
				rule = "  (" + p.Rule + ")"
			}
			lines = append(lines, fmt.Sprintf("  %-5s %s%s", p.State, p.Text, rule))
		}
		return a.Println(lines...)
	})
	test.Flags().StringArrayVar(&allow, "allow", nil, "allow commands that begin with `WORDS`")
	test.Flags().StringArrayVar(&deny, "deny", nil, "deny commands that begin with `WORDS`")
	var dry bool
	imports := help.Command("approvals import", func(cmd *cobra.Command, args []string) error {
		return a.importApprovals(cmd.Context(), a.Abs(args[0]), dry)
	})
	imports.Flags().BoolVar(&dry, "dry-run", false, "show what would be set, and set nothing")
	return help.Group("approvals", test, imports)
}

// importApprovals imports settings from Roo's file that are not set here.
func (a *commands) importApprovals(ctx context.Context, file string, dry bool) error {
	data, err := inputfile.Read(file)
	var roo approval.Roo
	if err == nil {
		roo, err = approval.ReadRoo(data)
	}
	if err != nil {
		return failure.Usage("read Roo's settings "+file, err.Error(), "export them in Roo: Settings, About, Export")
	}
	s, err := a.Settings()
	if err != nil {
		return err
	}
	p := roo.Policy()
	requests, micros := roo.Limits()
	var number, amount []string
	if requests > 0 {
		number = []string{strconv.Itoa(requests)}
	}
	if micros > 0 {
		amount = []string{money.USD(micros).String()}
	}
	var lines []string
	change := map[string][]string{}
	for _, set := range []struct {
		key    string
		values []string
	}{
		{"approve", []string{p.Mode}}, {"allow", p.Allow}, {"deny", p.Deny}, {"allow_tools", p.AllowTools}, {"ask_tools", p.AskTools},
		{"ask_after_requests", number}, {"ask_after_cost", amount},
	} {
		line := set.key + " = " + strings.Join(set.values, ", ")
		switch {
		case len(set.values) == 0:
			continue
		case s.Values[set.key].Set():
			line = "# " + line + "   (left: " + s.Values[set.key].Origin + " says otherwise)"
		default:
			change[set.key] = set.values
		}
		lines = append(lines, line)
	}
	if !dry && len(change) > 0 { // in one write: what Roo denies must not come after what it allows
		if err := a.Place().Change(ctx, change, nil); err != nil {
			return err
		}
	}
	return a.Outcome(map[string]any{"dry_run": dry, "set": change}, strings.Join(lines, "\n"))
}

func (a *commands) skillsCommand() *cobra.Command {
	var dir, slug string
	cmd := help.Command("skills", func(*cobra.Command, []string) error { return a.skills(dir, slug) })
	cmd.Flags().StringVarP(&dir, "workspace", "C", "", "the workspace `folder` (default: the current one)")
	cmd.Flags().StringVar(&slug, "mode", mode.Default, "the mode")
	return cmd
}

func (a *commands) skills(dir, slug string) error {
	c, err := a.inFolder("skills", a.Abs(dir))
	if err != nil {
		return err
	}
	modes, _ := c.Modes(a.Abs(dir))
	if _, err := modes.Lookup(slug); err != nil {
		return failure.Usage("roost skills --mode "+slug, err.Error(), "roost modes")
	}
	list, problems := c.Skills(a.Abs(dir)).In(slug)
	list = notNil(list)
	rows := [][]string{{"SKILL", "MODES", "FROM", "DESCRIPTION"}}
	for i, k := range list {
		list[i].Modes = notNil(k.Modes)
		rows = append(rows, []string{k.Name, cmp.Or(strings.Join(k.Modes, ", "), "all"), k.Source, k.Description})
	}
	return a.listed(list, problems, rows)
}

// inFolder checks that a folder exists, and returns the configuration of the engine. what describes the act in an
// error.
func (a *commands) inFolder(what, dir string) (setup.Config, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return setup.Config{}, failure.Config("look for the "+what+" of "+dir, "there is no such folder", "roost "+what+" -C DIR")
	}
	return a.EngineConfig()
}

// listed prints a list and the problems of its files: as JSON with --json, else as a table and warnings.
func (a *commands) listed(items any, problems []string, rows [][]string) error {
	if a.Flags.JSON {
		return a.PrintJSON(map[string]any{"items": items, "problems": notNil(problems)})
	}
	err := a.Grid(rows)
	a.warnAll(problems)
	return err
}

// notNil returns a list that JSON writes as [] when it is empty.
func notNil[T any](list []T) []T {
	return append([]T{}, list...)
}

func (a *commands) modesCommand() *cobra.Command {
	var dir string
	cmd := help.Command("modes", func(*cobra.Command, []string) error { return a.modes(dir) })
	cmd.Flags().StringVarP(&dir, "workspace", "C", "", "the workspace `folder` (default: the current one)")
	return cmd
}

func (a *commands) modes(dir string) error {
	c, err := a.inFolder("modes", a.Abs(dir))
	if err != nil {
		return err
	}
	set, problems := c.Modes(a.Abs(dir))
	rows := [][]string{{"MODE", "NAME", "TOOLS", "FROM"}}
	for _, m := range set.All() {
		rows = append(rows, []string{m.Slug, m.Name, toolsOf(m), strings.TrimSuffix(m.Source+" "+m.Path, " ")})
	}
	return a.listed(set.All(), problems, rows)
}

// toolsOf returns the groups of a mode, with their limits.
func toolsOf(m mode.Mode) string {
	var words []string
	for _, g := range m.Groups {
		word := g.Name
		if g.FileRegex != "" && g.Name == "edit" {
			word += " (" + g.FileRegex + ")"
		}
		words = append(words, word)
	}
	return cmp.Or(strings.Join(words, ", "), "-")
}

func (a *commands) modelsCommand() *cobra.Command {
	var provider string
	cmd := help.Command("models", func(*cobra.Command, []string) error { return a.models(provider) })
	cmd.Flags().StringVar(&provider, "provider", "", "only those of this provider")
	app.Complete(cmd, "provider", func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		return app.Words(knownProviders()...)(cmd, args, begun) // reading the catalogue takes a twentieth of the time that a command takes to start
	})
	return cmd
}

// knownProviders returns the providers whose models are listed.
func knownProviders() []string {
	return slices.Compact(api.Each(catalogue.Offers(), func(m api.Model) string { return m.Provider }))
}

func (a *commands) models(provider string) error {
	known := knownProviders()
	if provider != "" && !slices.Contains(known, provider) {
		why := "Roost knows no models of it, only those of " + strings.Join(known, ", ")
		switch {
		case provider == "azure":
			why = "its models have the names that you deployed them under; Roost knows those of " + strings.Join(known, ", ")
		case slices.Contains(app.Providers, provider):
			why = "its server decides which models it has; Roost knows those of " + strings.Join(known, ", ")
		}
		return failure.Usage("roost models --provider "+provider, why, "roost models --provider "+known[0])
	}
	items := config.Models(provider).Items
	if a.Flags.JSON {
		return a.PrintJSON(map[string]any{"date": catalogue.Date(), "items": items})
	}
	rows := [][]string{{"model", "window", "reply", "in", "out", "cached", "caching", "checked"}}
	add := func(name, window, reply string, p api.Prices, checked string) {
		rows = append(rows, []string{name, window, reply, price(p.Input, "unknown"), price(p.Output, "unknown"),
			price(p.CacheRead, "unknown"), price(p.CacheWrite, "-"), checked})
	}
	for _, i := range items {
		add(i.Provider+" "+i.ID, strconv.Itoa(i.Context), strconv.Itoa(i.MaxOutput), i.Prices, i.Checked)
		if l := i.Long; l != nil {
			add("", fmt.Sprintf("> %d", l.Above), "", l.Prices, "")
		}
	}
	styles := make([]view.Style, len(rows))
	styles[0] = view.Head
	err := a.Sheet(rows, styles, 1, len(rows[0])-1, 0)
	a.Say("Prices are US dollars per million tokens; cached is read from a cache, caching is written to one; - is unknown or not sold. " +
		"A request with more tokens than the number after > costs more.")
	return err
}

func price(usd *money.USD, unknown string) string {
	if usd == nil {
		return unknown
	}
	return usd.String()
}

func (a *commands) sourcesCommand() *cobra.Command {
	parent := help.Command("sources", func(cmd *cobra.Command, _ []string) error {
		return a.Connect(cmd.Context(), func(c *client.Client) error {
			return app.DocumentOf(cmd.Context(), a.App, c, "/v1/sources", nil, func(got struct{ Items []api.SourceState }) {
				a.sourceTable(got.Items)
			})
		})
	})
	parent.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return failure.UnknownCommand(cmd, args[0])
		}
		return nil
	}
	add := help.CommandFor("sources add", app.First(app.Folders), func(cmd *cobra.Command, args []string) error {
		return a.sourcesAdd(cmd.Context(), args[0])
	})
	remove := help.CommandFor("sources remove", app.First(a.addedSources), func(cmd *cobra.Command, args []string) error {
		return a.sourcesRemove(cmd.Context(), args[0])
	})
	parent.AddCommand(a.OnlyHere(add), a.OnlyHere(remove))
	return parent
}

// sourceTable prints a line for each source. The reason in a state may be long, so it follows below the table.
func (a *commands) sourceTable(sources []api.SourceState) {
	rows := [][]string{{"SOURCE", "TOOL", "TASKS", "DAMAGED", "EMPTY", "SIZE", "STATE"}}
	for _, src := range sources {
		state, _, _ := strings.Cut(src.State, ":") // the reason follows below
		rows = append(rows, []string{
			display.OneLine(src.Name), display.OneLine(src.Tool), strconv.Itoa(src.Tasks), strconv.Itoa(src.Damaged),
			strconv.Itoa(src.Empty), api.SizeText(src.Bytes), state,
		})
	}
	counts := 6 // the first column behind those that are numbers
	for _, n := range []int{4, 3} {
		dull := !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[n] != "0" })
		if room := a.Columns(); room > 0 && dull && display.Columns(app.Cells(rows[0], app.Widths(rows), 2, counts)) > room {
			counts--
			for i := range rows {
				rows[i] = slices.Delete(rows[i], n, n+1)
			}
		}
	}
	wide := app.Widths(rows)
	line := func(row []string) string { return app.Cells(row, wide, 2, counts) + "  " }
	// A path that does not fit in the line gets a line of its own.
	below := a.Columns() > 0 && slices.ContainsFunc(sources, func(src api.SourceState) bool {
		return display.Columns(line(rows[0])+display.OneLine(src.Path)) > a.Width
	})
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
		lines := []string{line(row) + path}
		if below {
			lines[0] = strings.TrimRight(line(row), " ")
		}
		if below && i > 0 {
			lines = append(lines, app.Wrap("  "+a.Folder(path), a.Columns())...)
		}
		for _, text := range lines {
			a.Styled(s, text)
		}
	}
	a.Flush()
	a.WarnUnreachable(sources)
}

// sourcesAdd adds a folder to the setting sources, and prints the number of its tasks.
func (a *commands) sourcesAdd(ctx context.Context, given string) error {
	dir := a.Abs(given)
	found, added, err := a.Place().AddSource(ctx, dir)
	if err != nil {
		return err
	}
	if !added {
		a.Say("%s is a source already", dir)
	}
	if a.Flags.JSON {
		return a.PrintJSON(map[string]any{"path": dir, "tool": found.Tool, "tasks": found.Tasks, "added": added})
	}
	if found.Tasks == 0 {
		a.Warn("there is no task in " + dir + " yet; a storage keeps its task folders in tasks/")
	}
	return a.Println(fmt.Sprintf("%s: %s (%s)", display.OneLine(dir), api.Plural(found.Tasks, "task"), found.Shape))
}

// sourcesRemove removes a folder from the setting sources, also a folder that no longer exists.
func (a *commands) sourcesRemove(ctx context.Context, given string) error {
	dir := a.Abs(given)
	if err := a.Place().RemoveSource(ctx, dir); err != nil {
		return err
	}
	return a.Outcome(map[string]any{"path": dir, "removed": true},
		display.OneLine(dir)+": no longer a source; nothing in it was changed")
}

// addedSources completes the folders that were added.
func (a *commands) addedSources(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	named, _ := a.Place().NamedSources() // a setting that cannot be read completes nothing
	return slices.DeleteFunc(named, func(word string) bool { return word == "auto" || word == "none" }), cobra.ShellCompDirectiveNoFileComp
}
