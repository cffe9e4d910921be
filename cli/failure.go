package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
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

// problem is an RFC 9457 problem object.
type problem struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Status      int      `json:"status,omitempty"`
	Code        string   `json:"code"`
	Detail      string   `json:"detail"`
	Task        string   `json:"task_id,omitempty"`
	Suggestions []string `json:"suggestions"`
	Retryable   bool     `json:"retryable"`
}

// tell writes a failure to stderr.
func (a *App) tell(f *Failure) {
	if a.flags.json {
		p := problem{
			Type: "about:blank#" + f.Code, Title: f.What, Status: f.Status, Code: f.Code, Detail: f.Why,
			Task: f.Task, Suggestions: f.Suggestions, Retryable: f.Retryable,
		}
		if f.Try != "" {
			p.Suggestions = append([]string{f.Try}, p.Suggestions...)
		}
		if p.Suggestions == nil {
			p.Suggestions = []string{}
		}
		_ = encode(a.errJSON(), p, false) // no other place is left for a message
		return
	}
	style := display.Style{On: a.colour()}
	fmt.Fprintln(a.Err, style.Paint(view.Bad, "roost: "+display.OneLine(f.What)))
	fmt.Fprintln(a.Err, "  "+display.OneLine(f.Why))
	if f.Try != "" {
		fmt.Fprintln(a.Err, "  try: "+display.Safe(f.Try))
	}
	for i, s := range f.Suggestions {
		if i == 0 && len(f.Suggestions) == 1 && f.Try != "" {
			break
		}
		fmt.Fprintln(a.Err, "    "+display.OneLine(s))
	}
}

// encode writes v as JSON without HTML escapes.
func encode(w interface{ Write([]byte) (int, error) }, v any, indent bool) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if indent {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// usage is the failure of a command line that has too little, too much or the wrong thing.
func usage(what, why, try string) *Failure {
	return &Failure{Exit: ExitUsage, Code: "usage", What: what, Why: why, Try: try}
}

func unknownCommand(cmd *cobra.Command, name string) error {
	f := usage("run the command "+name, "there is no such command", cmd.CommandPath()+" --help")
	cmd.SuggestionsMinimumDistance = 2
	for _, known := range cmd.SuggestionsFor(name) {
		f.Suggestions = append(f.Suggestions, cmd.CommandPath()+" "+known)
	}
	if len(f.Suggestions) > 0 {
		f.Try = f.Suggestions[0]
	}
	return f
}

// flagError turns a flag that cobra cannot read into a Failure.
func flagError(cmd *cobra.Command, err error) error {
	f := usage("read the flags of "+cmd.CommandPath(), err.Error(), cmd.CommandPath()+" --help")
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

// oneOf allows at most one of some flags: each asks for another answer.
func oneOf(cmd *cobra.Command, names ...string) error {
	var given []string
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) < 2 {
		return nil
	}
	return usage(cmd.CommandPath()+" "+strings.Join(given, " "), "only one of them can be shown at a time",
		cmd.CommandPath()+" ID "+given[0])
}

// count checks how many arguments a command got.
func count(low, high int, try string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < low:
			return usage("run "+cmd.CommandPath(), "an argument is missing", try)
		case high >= 0 && len(args) > high:
			return usage("run "+cmd.CommandPath(), fmt.Sprintf("%q is one argument too many", args[high]), try)
		}
		return nil
	}
}
