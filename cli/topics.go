package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/chat"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	"github.com/roost-dev/roost/cli/picker"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/docs"
	"github.com/roost-dev/roost/engine/setup"
)

// topicsName is the argument of help that lists the topics, and that precedes a topic with the name of a command.
const topicsName = "topics"

// lists are topics that the program makes from its own tables, so that they are complete.
var lists = []struct {
	docs.Page
	text func() string
}{
	{docs.Page{Name: "environment", Summary: "The variables that Roost reads."}, environmentTopic},
	{docs.Page{Name: "exit-codes", Summary: "The exit codes and their meanings."}, exitCodesTopic},
	{docs.Page{Name: "keys", Summary: "The keys of the chat and of the picker."}, keysTopic},
}

// helpCommand prints the help of a command or a topic. An unknown one is an error; cobra's own command would print the
// whole help and exit with 0.
func (a *commands) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "Explain a command or a topic; roost help topics lists the guides",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var out []string
			at, _, err := cmd.Root().Find(args)
			if err == nil && (at.HasParent() || len(args) == 0) { // nothing follows a topic
				for _, c := range at.Commands() {
					if c.IsAvailableCommand() {
						out = append(out, c.Name()+"\t"+c.Short)
					}
				}
			}
			if len(args) == 0 {
				out = append(out, topicsName)
			}
			if len(args) == 0 || len(args) == 1 && args[0] == topicsName {
				for _, p := range topics() {
					if !slices.ContainsFunc(out, func(line string) bool { return strings.HasPrefix(line, p.Name+"\t") }) {
						out = append(out, p.Name+"\t"+p.Summary)
					}
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == topicsName {
				return a.topic(cmd, args[1:])
			}
			at, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) == 0 {
				return at.Help()
			}
			return a.topic(cmd, args)
		},
	}
}

// topics returns the pages of the manual and the lists, by name.
func topics() []docs.Page {
	out := docs.Pages()
	for _, l := range lists {
		out = append(out, l.Page)
	}
	slices.SortFunc(out, func(x, y docs.Page) int { return strings.Compare(x.Name, y.Name) })
	return out
}

// topic prints a topic, or the list of all of them.
func (a *commands) topic(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return a.listTopics()
	case len(args) > 1:
	case help.Topic(args[0]) != nil:
		return a.Paged(cmd.Context(), func() error {
			fmt.Fprintln(a.Out, a.layout().Page(help.Topic(args[0]).Text))
			return a.Flush()
		})
	default:
		for _, l := range lists {
			if l.Name == args[0] {
				return a.Println(l.text())
			}
		}
	}
	return failure.Usage("explain "+strings.Join(args, " "), "there is no such command or topic", "roost help "+topicsName)
}

func (a *commands) listTopics() error {
	all, wide := topics(), 0
	if a.Flags.JSON {
		items := api.Each(all, func(p docs.Page) map[string]string {
			return map[string]string{"name": p.Name, "title": p.Title, "summary": p.Summary}
		})
		return a.Items(items)
	}
	for _, p := range all {
		wide = max(wide, len(p.Name))
	}
	lines := []string{"Print one with: roost help topics NAME", ""}
	for _, p := range all {
		lines = append(lines, a.layout().Row(display.Pad(p.Name, wide)+"  ", p.Summary))
	}
	return a.Println(lines...)
}

// layout returns the layout of help on stdout.
func (a *commands) layout() help.Layout {
	l := help.Layout{Style: a.OutStyle()}
	if a.OutTTY {
		l.Width = a.Width
	}
	return l
}

func keysTopic() string {
	return "Keys of roost chat:\n" + strings.TrimRight(chat.Keys(), "\n") + "\n\nKeys of the picker:\n" + strings.TrimRight(picker.Keys(), "\n")
}

func exitCodesTopic() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, c := range failure.Codes {
		fmt.Fprintf(&b, "  %3d  %s\n", c.Code, c.Meaning)
	}
	return strings.TrimRight(b.String(), "\n")
}

func environmentTopic() string {
	var b strings.Builder
	b.WriteString("Variables override the settings file, and flags override both:\n")
	row := func(name, doc string) { fmt.Fprintf(&b, "  %-33s %s\n", name, doc) }
	row("ROOST_CONFIG", "the settings file")
	row("ROOST_PLAIN", "not empty: lines only, nothing drawn, no single keys (for screen readers)")
	for _, k := range config.Keys {
		row(k.Env, k.Doc)
	}
	for _, p := range setup.Providers() {
		for _, name := range setup.KeyVariables(p) {
			if !slices.ContainsFunc(config.Keys, func(k config.Key) bool { return k.Env == name }) {
				row(name, "the key for "+p+", too")
			}
		}
	}
	row("AWS_ACCESS_KEY_ID", "with AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN if it is temporary: the keys for bedrock")
	row("GOOGLE_APPLICATION_CREDENTIALS", "the file with the credentials for vertex")
	row("NO_COLOR", "no colours")
	return strings.TrimRight(b.String(), "\n")
}
