package editing

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
)

func (a *commands) tagCommand() *cobra.Command {
	var remove []string
	cmd := &cobra.Command{
		Use:   "tag ID [+TAG|-TAG]...",
		Short: "Add and remove tags of a task; without any, print them",
		Long: "Add and remove tags of a task. +TAG or TAG adds, -TAG or --remove TAG removes; without\n" +
			"any, the tags are printed. Those of another tool's task are kept in Roost's own root.\n" +
			"roost list --tag TAG shows what has a tag.",
		Example: "  roost tag 0199 +work -later\n  roost tag 0199 --remove q",
		// -later is no row of flags.
		DisableFlagParsing: true,
		ValidArgsFunction:  app.First(a.TaskIDs),
	}
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "remove this `tag`; for those that look like a flag")
	app.Complete(cmd, "remove", cobra.NoFileCompletions)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.DisableFlagParsing = false
		if err := cmd.ParseFlags(removals(args)); errors.Is(err, pflag.ErrHelp) {
			return cmd.Help()
		} else if err != nil {
			return failure.FlagError(cmd, err)
		}
		if help, _ := cmd.Flags().GetBool("help"); help {
			return cmd.Help()
		}
		args = cmd.Flags().Args()
		if err := failure.Arguments(1, -1, "roost tag ID +work")(cmd, args); err != nil {
			return err
		}
		l := labels{remove: remove}
		for _, word := range args[1:] {
			if tag, ok := strings.CutPrefix(word, "-"); ok { // behind --
				l.remove = append(l.remove, tag)
				continue
			}
			l.add = append(l.add, strings.TrimPrefix(word, "+"))
		}
		return a.label(cmd.Context(), args[:1], l, func(t api.Summary) string { return orDash(strings.Join(t.Tags, " ")) })
	}
	return cmd
}

// removals spells -TAG as the flag that it is short for. -q, -v and -h stay what
// they are everywhere.
func removals(args []string) []string {
	var out []string
	for i, word := range args {
		if word == "--" {
			return append(out, args[i:]...)
		}
		tag, ok := strings.CutPrefix(word, "-")
		if ok && tag != "" && tag[0] != '-' && strings.Trim(tag, "qvh") != "" {
			word = "--remove=" + tag
		}
		out = append(out, word)
	}
	return out
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
