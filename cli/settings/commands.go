// Package settings holds the commands that show and change what Roost works with: the settings
// file, keys, MCP servers, models, modes, skills, approvals and sources. A key is never printed;
// a change of one setting leaves every other byte of the file.
package settings

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/view"
	"github.com/roost-dev/roost/workspace/skill"
)

// commands are the commands of this package with the invocation that they belong to.
type commands struct{ *app.App }

// Commands are the commands of this package.
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
	parent := &cobra.Command{
		Use:   "approvals",
		Short: "Try out what commands may run, and take over Roo's settings",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failure.UnknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	var allow, deny []string
	test := &cobra.Command{
		Use:     "test [--allow WORDS]... [--deny WORDS]... -- COMMAND",
		Short:   "Show whether a command would be allowed, asked for or denied",
		Example: "  roost approvals test --allow \"git status\" -- \"git status && rm -rf x\"",
		Args:    failure.Arguments(1, 1, `roost approvals test --allow "git status" -- "git status -s"`),
		RunE: func(_ *cobra.Command, args []string) error {
			v := approval.Command(args[0], allow, deny)
			if a.Flags.JSON {
				return app.Encode(a.Out, v, false)
			}
			_, err := fmt.Fprintf(a.Out, "%s: %s\n", v.State, v.Reason)
			for _, p := range v.Parts {
				rule := ""
				if p.Rule != "" {
					rule = "  (" + p.Rule + ")"
				}
				if err == nil {
					_, err = fmt.Fprintf(a.Out, "  %-5s %s%s\n", p.State, p.Text, rule)
				}
			}
			if err != nil {
				return fmt.Errorf("print the decision: %w", err)
			}
			return nil
		},
	}
	test.Flags().StringArrayVar(&allow, "allow", nil, "allow commands that begin with `WORDS`")
	test.Flags().StringArrayVar(&deny, "deny", nil, "deny commands that begin with `WORDS`")
	var dry bool
	imports := &cobra.Command{
		Use:   "import [--dry-run] FILE",
		Short: "Take over the auto-approval of Roo's exported settings",
		Long: "Take over the auto-approval of Roo's exported settings into settings for new tasks.\n" +
			"Nothing becomes free that Roo would ask for. Settings that you have made already are left as they are.",
		Example: "  roost approvals import --dry-run ~/roo-code-settings.json",
		Args:    failure.Arguments(1, 1, "roost approvals import FILE"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.importApprovals(a.Abs(args[0]), dry) },
	}
	imports.Flags().BoolVar(&dry, "dry-run", false, "show what would be set, and set nothing")
	parent.AddCommand(test, imports)
	return parent
}

// importApprovals takes over the settings in Roo's file that are not set here.
func (a *commands) importApprovals(file string, dry bool) error {
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
	number, amount := []string{}, []string{}
	if requests > 0 {
		number = []string{strconv.Itoa(requests)}
	}
	if micros > 0 {
		amount = []string{money.USD(micros).String()}
	}
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
		case !dry:
			if err := a.ConfigSet(set.key, set.values); err != nil {
				return err
			}
		}
		if err := a.Println(line); err != nil {
			return err
		}
	}
	return nil
}

func (a *commands) skillsCommand() *cobra.Command {
	var dir, slug string
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "Show the skills that a task may use, and where each comes from",
		Long: "Show the skills that a task in this folder (or -C DIR) may use in a mode. A skill is a\n" +
			"folder with a SKILL.md that begins with name and description; it is in .roo/skills,\n" +
			".agents/skills, or for one mode in skills-MODE beside them, of the workspace or of your\n" +
			"home folder. A model gets names and descriptions, and gets the text when it asks for\n" +
			"it; /NAME in your words gives it. A skill that cannot be used is named with the reason.",
		Args: failure.Arguments(0, 0, "roost skills"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error { return a.skills(dir, slug) },
	}
	cmd.Flags().StringVarP(&dir, "workspace", "C", "", "the workspace `folder` (default: the current one)")
	cmd.Flags().StringVar(&slug, "mode", mode.Default, "the mode")
	app.Complete(cmd, "workspace", app.Folders)
	app.Complete(cmd, "mode", a.ModeNames)
	return cmd
}

func (a *commands) skills(dir, slug string) error {
	dir = a.Abs(dir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return &failure.Failure{
			Exit: failure.ExitConfig,
			Code: "configuration",
			What: "look for the skills of " + dir,
			Why:  "there is no such folder",
			Try:  "roost skills -C DIR",
		}
	}
	c, err := a.EngineConfig()
	if err != nil {
		return err
	}
	modes, _ := c.Modes(dir)
	if _, err := modes.Lookup(slug); err != nil {
		return failure.Usage("roost skills --mode "+slug, err.Error(), "roost modes")
	}
	list, problems := c.Skills(dir).In(slug)
	if a.Flags.JSON {
		if list == nil {
			list = []skill.Skill{}
		}
		for i := range list {
			if list[i].Modes == nil {
				list[i].Modes = []string{}
			}
		}
		if problems == nil {
			problems = []string{}
		}
		return app.Encode(a.Out, struct {
			Items    []skill.Skill `json:"items"`
			Problems []string      `json:"problems"`
		}{list, problems}, false)
	}
	rows := [][]string{{"SKILL", "MODES", "FROM", "DESCRIPTION"}}
	for _, k := range list {
		only := strings.Join(k.Modes, ", ")
		if only == "" {
			only = "all"
		}
		rows = append(rows, []string{k.Name, only, k.Source, k.Description})
	}
	if err := a.inColumns(rows, "skills"); err != nil {
		return err
	}
	for _, p := range problems {
		a.Warn(p)
	}
	return nil
}

func (a *commands) modesCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "modes",
		Short: "Show the modes that a task may be in, and where each comes from",
		Long: "Show the modes that a task in this folder (or -C DIR) may be in, which tools each allows,\n" +
			"and where it comes from: built in, the workspace's .roomodes, custom_modes.yaml beside\n" +
			"Roost's settings or in an editor's storage, or an import of Roo Code's. A mode that cannot be used is named with the\n" +
			"reason, and costs no other one.",
		Args: failure.Arguments(0, 0, "roost modes"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error { return a.modes(dir) },
	}
	cmd.Flags().StringVarP(&dir, "workspace", "C", "", "the workspace `folder` (default: the current one)")
	app.Complete(cmd, "workspace", app.Folders)
	return cmd
}

func (a *commands) modes(dir string) error {
	dir = a.Abs(dir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return &failure.Failure{
			Exit: failure.ExitConfig,
			Code: "configuration",
			What: "look for the modes of " + dir,
			Why:  "there is no such folder",
			Try:  "roost modes -C DIR",
		}
	}
	c, err := a.EngineConfig()
	if err != nil {
		return err
	}
	set, problems := c.Modes(dir)
	if a.Flags.JSON {
		if problems == nil {
			problems = []string{}
		}
		return app.Encode(a.Out, struct {
			Items    []mode.Mode `json:"items"`
			Problems []string    `json:"problems"`
		}{set.All(), problems}, false)
	}
	if err := a.modeTable(set.All()); err != nil {
		return err
	}
	for _, p := range problems {
		a.Warn(p)
	}
	return nil
}

// modeTable writes a line a mode.
func (a *commands) modeTable(modes []mode.Mode) error {
	rows := [][]string{{"MODE", "NAME", "TOOLS", "FROM"}}
	for _, m := range modes {
		from := m.Source
		if m.Path != "" {
			from += " " + m.Path
		}
		rows = append(rows, []string{m.Slug, m.Name, toolsOf(m), from})
	}
	return a.inColumns(rows, "modes")
}

// inColumns writes rows under the first one, which is their head. what they are is for an
// error.
func (a *commands) inColumns(rows [][]string, what string) error {
	style := a.OutStyle()
	wide := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = display.OneLine(cell)
			wide[i] = max(wide[i], display.Columns(row[i]))
		}
	}
	out := bufio.NewWriter(a.Out)
	for i, row := range rows {
		var line strings.Builder
		for j, cell := range row[:len(row)-1] {
			line.WriteString(cell + strings.Repeat(" ", wide[j]-display.Columns(cell)+2))
		}
		s := view.Plain
		if i == 0 {
			s = view.Dim
		}
		fmt.Fprintln(out, style.Paint(s, line.String()+row[len(row)-1]))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the %s: %w", what, err)
	}
	return nil
}

// toolsOf are the groups of a mode, with what limits them.
func toolsOf(m mode.Mode) string {
	var words []string
	for _, g := range m.Groups {
		word := g.Name
		if g.FileRegex != "" && g.Name == "edit" {
			word += " (" + g.FileRegex + ")"
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, ", ")
}

// pricesItem are US dollars for a million tokens; null is unknown, or not sold.
type pricesItem struct {
	Input      *string `json:"input"`
	Output     *string `json:"output"`
	CacheRead  *string `json:"cache_read"`
	CacheWrite *string `json:"cache_write"`
}

func pricesOf(p catalogue.Prices) pricesItem {
	text := func(micro *int64) *string {
		if micro == nil {
			return nil
		}
		s := money.USD(*micro).String()
		return &s
	}
	return pricesItem{text(p.Input), text(p.Output), text(p.CacheRead), text(p.CacheWrite)}
}

type longItem struct {
	Above  int64      `json:"above"` // tokens of the whole input
	Prices pricesItem `json:"prices"`
}

// modelItem is a model as --json shows it.
type modelItem struct {
	Provider  string     `json:"provider"`
	ID        string     `json:"id"`
	Context   int        `json:"context"`
	MaxOutput int        `json:"max_output"`
	Prices    pricesItem `json:"prices"`
	Long      *longItem  `json:"long"` // dearer for long requests; null = one price
	Checked   string     `json:"checked"`
}

func (a *commands) modelsCommand() *cobra.Command {
	var provider string
	cmd := &cobra.Command{
		Use: "models [--provider NAME]", Short: "List the models that are known, with window and price",
		Long: "List the models that are known: window and longest reply in tokens, prices in US\n" +
			"dollars for a million tokens, and when its provider's pages last showed them. A model\n" +
			"that is not listed works too; what it costs is then unknown.",
		Args: failure.Arguments(0, 0, "roost models --provider anthropic"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error { return a.models(provider) },
	}
	cmd.Flags().StringVar(&provider, "provider", "", "only those of this provider")
	app.Complete(cmd, "provider", app.Words(knownProviders()...))
	return cmd
}

// knownProviders are those whose models are listed.
func knownProviders() []string {
	var out []string
	for _, m := range catalogue.Models() {
		if !slices.Contains(out, m.Provider) {
			out = append(out, m.Provider)
		}
	}
	return out
}

func (a *commands) models(provider string) error {
	known := knownProviders()
	if provider != "" && !slices.Contains(known, provider) {
		why := "no models of it are known; there are those of " + strings.Join(known, ", ")
		if slices.Contains(app.Providers, provider) {
			why = "its server decides which models it has; for " + strings.Join(known, ", ") + " they are known"
		}
		return failure.Usage("roost models --provider "+provider, why, "roost models --provider "+known[0])
	}
	items := []modelItem{}
	for _, m := range catalogue.Models() {
		if provider != "" && provider != m.Provider {
			continue
		}
		for _, id := range m.IDs {
			item := modelItem{
				Provider: m.Provider, ID: id, Context: m.Context, MaxOutput: m.MaxOutput, Prices: pricesOf(m.Prices), Checked: m.Checked,
			}
			if m.Long != nil {
				item.Long = &longItem{m.Long.Above, pricesOf(m.Long.Prices)}
			}
			items = append(items, item)
		}
	}
	if a.Flags.JSON {
		return app.Encode(a.Out, struct {
			Date  string      `json:"date"`
			Items []modelItem `json:"items"`
		}{catalogue.Date(), items}, false)
	}
	wide := len("model")
	for _, i := range items {
		wide = max(wide, len(i.Provider)+1+len(i.ID))
	}
	line := func(name, window, reply, in, out, read, write, checked string) string {
		return fmt.Sprintf("%-*s  %9s  %7s  %8s  %8s  %8s  %8s  %s", wide, name, window, reply, in, out, read, write, checked)
	}
	head := line("model", "window", "reply", "in", "out", "cached", "caching", "checked")
	if _, err := fmt.Fprintln(a.Out, a.OutStyle().Paint(view.Head, head)); err != nil {
		return fmt.Errorf("print the models: %w", err)
	}
	for _, i := range items {
		rows := []string{line(i.Provider+" "+i.ID, strconv.Itoa(i.Context), strconv.Itoa(i.MaxOutput),
			price(i.Prices.Input, "unknown"), price(i.Prices.Output, "unknown"), price(i.Prices.CacheRead, "unknown"),
			price(i.Prices.CacheWrite, "-"), i.Checked)}
		if l := i.Long; l != nil {
			rows = append(rows, line("", fmt.Sprintf("> %d", l.Above), "", price(l.Prices.Input, "unknown"),
				price(l.Prices.Output, "unknown"),
				price(l.Prices.CacheRead, "unknown"), price(l.Prices.CacheWrite, "-"), ""))
		}
		for _, row := range rows {
			if err := a.Println(strings.TrimRight(row, " ")); err != nil {
				return err
			}
		}
	}
	a.Say("US dollars for a million tokens: written, read from a cache, put into it (- is unknown or not sold). " +
		"Above the tokens after > a request costs more.")
	return nil
}

func price(usd *string, unknown string) string {
	if usd == nil {
		return unknown
	}
	return *usd
}
