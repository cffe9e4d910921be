// Package failure turns errors into what the command line prints of them: three lines or a
// problem object, with advice, and the exit code. Exit codes are decided here alone.
package failure

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/client"
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
func Usage(what, why, try string) *Failure { return New(ExitUsage, "usage", what, why, try) }

// New is a failure with the advice what to do about it.
func New(exit int, code, what, why, try string) *Failure {
	return &Failure{Exit: exit, Code: code, What: what, Why: why, Try: try}
}

// Config is the failure of a setting, or of what this machine has to have.
func Config(what, why, try string) *Failure { return New(ExitConfig, "configuration", what, why, try) }

// NotFound is the failure of a name that nothing has.
func NotFound(code, what, why, try string) *Failure {
	f := New(ExitNotFound, code, what, why, try)
	f.Status = 404
	return f
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

// Group is a command that only holds others; alone it prints its help.
func Group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return UnknownCommand(cmd, args[0])
		}
		return cmd.Help()
	}
	cmd.AddCommand(subs...)
	return cmd
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

// closestFlag is the flag that a mistyped name most likely means, "" when none is near.
func closestFlag(cmd *cobra.Command, name string) string {
	best, least := "", 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := config.Distance(name, f.Name); d < least && 2*d < len(name) {
			best, least = f.Name, d
		}
	})
	return best
}

// problemExits are the exit codes of server problems whose status alone would give another
// exit code than the same failure in this process.
var problemExits = map[string]int{
	"ambiguous_id":       ExitUsage,
	"workspace_missing":  ExitConfig,
	"workspace_moved":    ExitConfig,
	"workspace_refused":  ExitConfig,
	"unknown_profile":    ExitConfig,
	"configuration":      ExitConfig,
	"provider_auth":      ExitConfig,
	"provider_error":     ExitProvider,
	"too_short":          ExitFailed,
	"rolled_back":        ExitFailed,
	"restoring":          ExitFailed,
	"damaged":            ExitDamaged,
	"store_unavailable":  ExitConfig,
	"root_unusable":      ExitConfig,
	"input_needed":       ExitInput,
	"untrusted_settings": ExitInput,
	"other_model":        ExitInput,
	"untrusted_locks":    ExitConfig,
	"draining":           ExitBusy,
	"queue_full":         ExitBusy,
	"stopping":           ExitBusy,
	"import_busy":        ExitBusy,
	"usage":              ExitUsage,
}

// failureOfProblem is the failure that a server's problem document stands for.
func failureOfProblem(p *client.Problem) *Failure {
	why, settings := against(p)
	f := &Failure{Exit: ExitFailed, Code: p.Code, Status: p.Status, What: p.Title, Why: why, Task: p.Task, Retryable: p.Retryable}
	switch exit, own := problemExits[p.Code]; {
	case own:
		f.Exit = exit
	case settings:
		f.Exit = ExitConfig
	case p.Status == http.StatusUnauthorized:
		f.Exit, f.Try = ExitConfig, "ROOST_TOKEN=... roost ...  # the token is in server/token below the server's root"
	case p.Status == http.StatusForbidden && (p.Code == "denied" || strings.Contains(p.Code, "approval")):
		f.Exit = ExitDenied
	case p.Status == http.StatusNotFound, p.Status == http.StatusGone:
		f.Exit = ExitNotFound
	case p.Status == http.StatusConflict, p.Status == http.StatusPreconditionFailed, p.Status == http.StatusTooManyRequests:
		f.Exit = ExitBusy
	case p.Status == http.StatusBadRequest, p.Status == http.StatusUnprocessableEntity, p.Status == http.StatusRequestEntityTooLarge:
		f.Exit = ExitUsage
	}
	const list = "roost list"
	if p.Code == "task_not_found" && f.Why != "" && !slices.ContainsFunc(p.Suggestions, func(s string) bool {
		return strings.HasPrefix(s, "roost ") && s != list
	}) {
		f.What, f.Try = "find the task", list
	}
	for _, s := range p.Suggestions {
		switch method, _, _ := strings.Cut(s, " "); method {
		case http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete:
			continue // for programs that speak HTTP
		}
		if s == f.Try {
			continue
		}
		if _, ours := flagAdvice[s]; f.Try == "" && (ours || strings.HasPrefix(s, "roost ")) {
			f.Try = s
		} else {
			f.Suggestions = append(f.Suggestions, s)
		}
	}
	if (p.Code == "permission_denied" || p.Status == 0) && len(p.Suggestions) > 0 { // without a status it is of this machine
		f.Try, f.Suggestions = p.Suggestions[0], p.Suggestions[1:]
	}
	if p.Code == "unknown_mode" {
		f.What, f.Try = "use the mode", "roost modes"
	}
	if f.Try == "" && p.Code == "ambiguous_id" && len(f.Suggestions) > 0 {
		f.What, f.Try = "find the task", "roost show "+f.Suggestions[0]
	}
	if f.Try == "" && slices.ContainsFunc(p.Errors, func(e api.Wrong) bool { return e.Parameter == "/workspace" }) {
		f.Try = nameFolder
	}
	if p.Code == "internal" && len(p.Suggestions) > 0 {
		f.Try, f.Suggestions = p.Suggestions[0], nil
	} else if what, why, ok := divide(f.Why); ok && p.Code == "internal" {
		f.What, f.Why = what, why
	}
	if f.Try == "" {
		f.Try = nothing
	}
	if p.Code == "configuration" {
		if what, why, ok := strings.Cut(f.Why, ": "); ok { // as the engine words it here
			f.What, f.Why = what, why
		}
	}
	return f
}

// OfServer is the failure of a client's error; nil when it is none.
func OfServer(err error) *Failure {
	var p *client.Problem // also of an act in this process
	var un *client.Unreachable
	switch {
	case errors.As(err, &p):
		return failureOfProblem(p)
	case errors.As(err, &un):
		return &Failure{Exit: ExitServer, Code: "server_unreachable", What: "reach the server " + un.Base, Why: un.Err.Error(),
			Retryable: true,
			Try:       "roost serve  # or leave --server and ROOST_SERVER out"}
	}
	return nil
}
