package help

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// section is a titled list of names: of commands, or of flags.
type section struct{ title, names string }

// commandSections are the sections of the list of commands. A command without a section is listed last.
var commandSections = []section{
	{"Start and steer tasks", "run resume continue chat try attach send answer cancel wait"},
	{"Find and read", "list search show questions runs files usage"},
	{"Go back", "rewind undo redo fork condense checkpoint"},
	{"Keep and tidy", "export import rename tag pin unpin delete trash"},
	{"Look after Roost", "open serve server devices team migrate sources doctor root"},
	{"Configure", "auth config models modes skills mcp approvals"},
	{"More", "help completion version"},
}

// runSections are the flags of commands that start or continue a run; findSections are those of lists of tasks.
var (
	runSections = []section{
		{"What to work on", "workspace mode image stale no-checkpoints task"},
		{"Model", "provider model profile base-url effort max-tokens condense-at"},
		{"Approvals", "approve yes allow deny allow-tool ask-tool deny-tool trust-settings"},
		{"Limits", "max-turns max-cost max-cost-task max-cost-day ask-after-requests ask-after-cost idle-timeout total-timeout"},
		{"Output", "output detach stream"},
	}
	findSections = []section{
		{"Which tasks", "query in source status tag workspace model since until min-cost max-cost damaged empty"},
		{"Order and pages", "sort limit cursor group tree"},
	}
)

// values holds explanations of the values of flags, which follow the flag's own line.
var values = map[string]string{"approve": `
ask    read and search the workspace (default)
read   also read elsewhere, not protected files
edits  also write inside the workspace
all    everything but protected files and --deny`}

// Layout formats help for a terminal, or for other readers.
type Layout struct {
	Style display.Style
	Width int // of the terminal, 0 when there is none
}

// Install makes a root command and all commands below it print their help in this layout.
func (l Layout) Install(root *cobra.Command) {
	show := func(cmd *cobra.Command) error {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), l.Text(cmd))
		return err
	}
	root.SetUsageFunc(show)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { _ = show(cmd) }) // the caller keeps the error of its writer
}

// Text returns the help of a command: its usage, examples, description and flags.
func (l Layout) Text(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	part := func(title, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			fmt.Fprintf(&b, "\n%s\n%s\n", l.Style.Paint(view.Head, title+":"), text)
		}
	}
	about, rest := cmd.Short, cmd.Long
	if !cmd.HasParent() || strings.HasPrefix(rest, about) { // its first paragraph is a longer summary
		about, rest, _ = strings.Cut(rest, "\n\n")
	}
	b.WriteString(l.wrap(about) + "\n")
	if cmd.HasAvailableSubCommands() {
		part("Usage", "  "+cmd.CommandPath()+" COMMAND")
	} else {
		part("Usage", "  "+cmd.UseLine())
	}
	part("Examples", cmd.Example)
	if rest != "" {
		b.WriteString("\n" + l.wrap(rest) + "\n")
	}
	l.commands(cmd, part)
	l.flags(cmd, part)
	if !cmd.HasParent() {
		part("Flags of every command", l.usages(cmd.PersistentFlags()))
		b.WriteString("\nroost help COMMAND explains one command. roost help topics lists the guides.")
		return b.String()
	}
	var names []string
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	b.WriteString("\n" + l.wrap("Every command also takes "+strings.Join(names, ", ")+" (roost help)."))
	if Topic(cmd.CommandPath()[len("roost "):]) != nil {
		b.WriteString("\nGuide: roost help topics " + cmd.Name())
	}
	return b.String()
}

// commands prints the subcommands of a command: those of the root in their sections.
func (l Layout) commands(cmd *cobra.Command, part func(title, text string)) {
	rest := slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() && c.Name() != "help" })
	wide := 0
	for _, c := range rest {
		wide = max(wide, len(c.Name()))
	}
	list := func(commands []*cobra.Command) string {
		lines := api.Each(commands, func(c *cobra.Command) string {
			return l.Row("  "+display.Pad(c.Name(), wide)+"  ", c.Short)
		})
		return strings.Join(lines, "\n")
	}
	if !cmd.HasParent() {
		for _, s := range commandSections {
			var in []*cobra.Command
			for _, name := range strings.Fields(s.names) {
				if i := slices.IndexFunc(rest, func(c *cobra.Command) bool { return c.Name() == name }); i >= 0 {
					in = append(in, rest[i])
					rest = slices.Delete(rest, i, i+1)
				}
			}
			part(s.title, list(in))
		}
	}
	part("Commands", list(rest))
}

// flags prints the flags of a command, in sections if there are many.
func (l Layout) flags(cmd *cobra.Command, part func(title, text string)) {
	own := cmd.LocalNonPersistentFlags()
	var sections []section
	switch {
	case own.Lookup("approve") != nil:
		sections = runSections
	case own.Lookup("since") != nil:
		sections = findSections
	}
	shown := map[string]bool{"help": true}
	usages := func(names []string) string {
		in := pflag.NewFlagSet("", pflag.ContinueOnError)
		in.SortFlags = false
		for _, name := range names {
			if f := own.Lookup(name); f != nil && !shown[name] {
				with := *f
				with.Usage += values[name]
				in.AddFlag(&with)
				shown[name] = true
			}
		}
		return l.usages(in)
	}
	for _, s := range sections {
		part(s.title, usages(strings.Fields(s.names)))
	}
	var all []string
	own.VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	title := "Flags"
	if sections != nil {
		title = "More flags"
	}
	part(title, usages(all))
}

func (l Layout) usages(f *pflag.FlagSet) string { return f.FlagUsagesWrapped(l.Width) }

// narrow is the width of a terminal below which the lines of the pages would break in bad places.
const narrow = 100

// wrap fits the paragraphs of a page into a narrow terminal. Indented lines stay as they are.
func (l Layout) wrap(text string) string {
	if l.Width <= 0 || l.Width >= narrow {
		return text
	}
	parts := strings.Split(text, "\n\n")
	for i, p := range parts {
		if !strings.Contains("\n"+p, "\n ") {
			p = strings.ReplaceAll(p, "\n", " ")
		}
		parts[i] = wordwrap(p, l.Width)
	}
	return strings.Join(parts, "\n\n")
}

// wordwrap wraps only at blanks: a hyphen begins a flag.
func wordwrap(text string, width int) string {
	const hard = "\u2011" // as wide as a hyphen; Wordwrap does not break behind it
	return strings.ReplaceAll(ansi.Wordwrap(strings.ReplaceAll(text, "-", hard), width, ""), hard, "-")
}

// Row returns a line of a list: its text is wrapped below itself.
func (l Layout) Row(lead, text string) string { return lead + l.hang(text, len(lead)) }

// hang wraps a text that begins in a column, so that its other lines begin there too.
func (l Layout) hang(text string, column int) string {
	if l.Width <= column+20 {
		return text
	}
	return strings.ReplaceAll(wordwrap(text, l.Width-column), "\n", "\n"+strings.Repeat(" ", column))
}
