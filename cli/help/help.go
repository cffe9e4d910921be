// Package help has a page for each command: its usage, its summary, how many arguments it takes, what it does, and
// examples. Commands are made from their pages, so that what a person reads about a command is in one place.
package help

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/failure"
)

//go:embed *.txt
var pages embed.FS

// Command makes a command from its page and a function. The page of `roost trash purge` is trash-purge.txt. The first
// lines of a page are the usage, the summary and, if the number of arguments is checked, their least and greatest
// number (-1: any number) with a command line that an error suggests. A blank line precedes the description; the line
// "Examples:" precedes the examples.
func Command(name string, run func(*cobra.Command, []string) error) *cobra.Command {
	data, err := pages.ReadFile(strings.ReplaceAll(name, " ", "-") + ".txt")
	if err != nil {
		panic(err) // a command without a page; each run makes all commands
	}
	head, about, _ := strings.Cut(strings.TrimSuffix(string(data), "\n"), "\n\n")
	lines := strings.Split(head, "\n")
	cmd := &cobra.Command{Use: lines[0], Short: lines[1], RunE: run}
	if len(lines) > 2 {
		var least, most int
		_, _ = fmt.Sscan(lines[2], &least, &most) // a test reads all pages
		cmd.Args = failure.Arguments(least, most, strings.SplitN(lines[2], " ", 3)[2])
	}
	about, cmd.Example, _ = strings.Cut(about, "Examples:\n")
	cmd.Long = strings.TrimSpace(about)
	return cmd
}

// CommandFor is Command with a completion of the arguments, for a usage that does not determine it.
func CommandFor(name string, arguments cobra.CompletionFunc, run func(*cobra.Command, []string) error) *cobra.Command {
	cmd := Command(name, run)
	cmd.ValidArgsFunction = arguments
	return cmd
}

// Group makes a command that has only subcommands; without one it prints its help.
func Group(name string, subs ...*cobra.Command) *cobra.Command {
	cmd := Command(name, func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return failure.UnknownCommand(cmd, args[0])
		}
		return cmd.Help()
	})
	cmd.AddCommand(subs...)
	return cmd
}
