package failure

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/api"
)

// Failure is what a command that fails prints: three lines, or a
// problem object with --json.
type Failure struct {
	Exit        int
	Code        string // for programs, e.g. "task_not_found"
	Status      int    // the HTTP status that the same failure would have, 0 = none fits
	What        string // what failed, on what
	Why         string
	Try         string // what to do
	Task        string
	Suggestions []string
	Retryable   bool
}

func (f *Failure) Error() string { return f.What + ": " + f.Why }

// New is a failure with the HTTP status that its exit code implies, if it implies one.
func New(exit int, code, what, why, try string) *Failure {
	status := map[int]int{ExitNotFound: http.StatusNotFound, ExitBusy: http.StatusConflict}[exit]
	return &Failure{Exit: exit, Code: code, Status: status, What: what, Why: why, Try: try}
}

// OfTask names the task that the failure is about.
func (f *Failure) OfTask(id string) *Failure {
	f.Task = id
	return f
}

// Problem is an RFC 9457 problem object.
type Problem struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Status      int      `json:"status,omitempty"`
	Code        string   `json:"code"`
	Detail      string   `json:"detail"`
	Task        string   `json:"task_id,omitempty"`
	Suggestions []string `json:"suggestions"`
	Retryable   bool     `json:"retryable"`
}

// Usage is the failure of a command line that has too little, too much or the wrong thing.
func Usage(what, why, try string) *Failure {
	return &Failure{Exit: ExitUsage, Code: "usage", What: what, Why: why, Try: try}
}

// UnknownCommand is the failure of a command that does not exist, with the closest ones.
func UnknownCommand(cmd *cobra.Command, name string) error {
	f := Usage("run the command "+name, "there is no such command", cmd.CommandPath()+" --help")
	cmd.SuggestionsMinimumDistance = 2
	for _, known := range cmd.SuggestionsFor(name) {
		f.Suggestions = append(f.Suggestions, cmd.CommandPath()+" "+known)
	}
	if len(f.Suggestions) > 0 {
		f.Try = f.Suggestions[0]
	}
	return f
}

// OnlySubcommands is what a command does that has only subcommands: it prints its help.
func OnlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UnknownCommand(cmd, args[0])
	}
	return cmd.Help()
}

// FlagError turns a flag that cobra cannot read into a Failure.
func FlagError(cmd *cobra.Command, err error) error {
	f := Usage("read the flags of "+cmd.CommandPath(), err.Error(), cmd.CommandPath()+" --help")
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		f.What = cmd.CommandPath() + " --" + invalid.GetFlag().Name + " " + invalid.GetValue()
		f.Why = "want " + wanted(invalid.GetFlag().Value.Type())
		return f
	}
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return f
	}
	if best := closestFlag(cmd, name); best != "" {
		f.Suggestions = []string{"--" + best}
		f.Try = cmd.CommandPath() + " --" + best
	}
	return f
}

// wanted describes what a flag of a type takes.
func wanted(kind string) string {
	switch kind {
	case "int":
		return "a whole number such as 20"
	case "duration":
		return "a time such as 90s, 10m or 2h"
	case "bool":
		return "true or false"
	}
	return "a " + kind
}

// OneOf allows at most one of some flags: each asks for another answer.
func OneOf(cmd *cobra.Command, names ...string) error {
	var given []string
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) < 2 {
		return nil
	}
	return Usage(cmd.CommandPath()+" "+strings.Join(given, " "), "only one of them can be shown at a time",
		cmd.CommandPath()+" ID "+given[0])
}

// Arguments checks how many arguments a command got.
func Arguments(low, high int, try string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < low:
			return Usage("run "+cmd.CommandPath(), "an argument is missing", try)
		case high >= 0 && len(args) > high:
			return Usage("run "+cmd.CommandPath(), fmt.Sprintf("%q is one argument too many", args[high]), try)
		}
		return nil
	}
}

// ShellWord spells a word so that a shell takes it as one.
func ShellWord(word string) string {
	if source, id, ok := strings.Cut(word, ":"); ok && api.ValidTaskID(source) && api.ValidTaskID(id) ||
		api.ValidTaskID(strings.Replace(word, "~", "-", 1)) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
