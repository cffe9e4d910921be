// Package failure turns errors into the output and the exit code of a command: three lines or a problem object, with
// advice. No other package decides exit codes.
package failure

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/report"
)

// Failure is the output of a command that fails: three lines, or a problem object with --json.
type Failure struct {
	Exit        int
	Code        string // for programs, e.g. "task_not_found"
	Status      int    // the HTTP status of the same failure, 0 = none corresponds
	What        string // the act that failed, and its object
	Why         string
	Try         string // what to do
	Task        string
	Suggestions []string
	Candidates  []api.Candidate // the tasks that an ambiguous id matches
	Retryable   bool
}

func (f *Failure) Error() string { return f.What + ": " + f.Why }

// New makes a failure, with the HTTP status that its exit code implies, if any.
func New(exit int, code, what, why, try string) *Failure {
	status := map[int]int{ExitNotFound: http.StatusNotFound, ExitBusy: http.StatusConflict}[exit]
	return &Failure{Exit: exit, Code: code, Status: status, What: what, Why: why, Try: try}
}

// OfTask names the task that the failure is about.
func (f *Failure) OfTask(id string) *Failure {
	f.Task = id
	return f
}

// Document returns the failure as a problem object (RFC 9457).
func (f *Failure) Document() any {
	p := api.Problem{
		Type: "about:blank#" + f.Code, Title: f.What, Code: f.Code, Detail: f.Why, Task: f.Task, Suggestions: []string{},
		Retryable: f.Retryable, Candidates: f.Candidates,
	}
	if f.Try != "" {
		p.Suggestions = append(p.Suggestions, f.Try)
	}
	p.Suggestions = append(p.Suggestions, f.Suggestions...)
	return struct {
		api.Problem
		Status int `json:"status,omitempty"` // in place of the problem's own, which a server always has
	}{p, f.Status}
}

// Usage returns the failure of a wrong command line.
func Usage(what, why, try string) *Failure { return New(ExitUsage, "usage", what, why, try) }

// Config returns the failure of a setting, or of something that this machine lacks.
func Config(what, why, try string) *Failure { return New(ExitConfig, "configuration", what, why, try) }

// NotFound returns the failure of a name that does not exist.
func NotFound(code, what, why, try string) *Failure { return New(ExitNotFound, code, what, why, try) }

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

// FlagError turns a flag that cobra cannot read into a Failure.
func FlagError(cmd *cobra.Command, err error) error {
	f := Usage("run "+cmd.CommandPath(), err.Error(), cmd.CommandPath()+" --help")
	if invalid, is := errors.AsType[*pflag.InvalidValueError](err); is {
		f.What = cmd.CommandPath() + " --" + invalid.GetFlag().Name + " " + invalid.GetValue()
		kind := invalid.GetFlag().Value.Type()
		f.Why = "want " + cmp.Or(wanted[kind], "a "+kind)
		if bad, is := errors.AsType[*ValueError](err); is {
			use, _, _ := strings.Cut(cmd.Use, "|")
			f.Why = bad.Why
			f.Try = cmd.CommandPath() + strings.Join(needed().FindAllString(use, -1), "") + " --" + invalid.GetFlag().Name + " " + bad.Example
		}
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

// needed matches the arguments in a command's usage that cannot be left out.
var needed = lazyregexp.New(` [A-Z]+`)

// ValueError is why a flag does not take a value, and a value that it takes, with other flags that it needs.
type ValueError struct{ Why, Example string }

func (e *ValueError) Error() string { return e.Why }

// wanted describes the values of a flag, by its type.
var wanted = map[string]string{"int": "a whole number such as 20", "duration": "a time such as 90s, 10m or 2h", "bool": "true or false"}

// OneOf allows at most one of some flags, each of which chooses another output.
func OneOf(cmd *cobra.Command, names ...string) error {
	given := api.Some(names, func(name string) (string, bool) { return "--" + name, cmd.Flags().Changed(name) })
	if len(given) < 2 {
		return nil
	}
	return Usage(cmd.CommandPath()+" "+strings.Join(given, " "), "the command shows only one of them at a time",
		cmd.CommandPath()+" ID "+given[0])
}

// Arguments checks how many arguments a command got. An empty id or folder counts as missing: it would name the
// tasks of a whole list, or the current folder.
func Arguments(low, high int, try string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch empty := slices.Index(args, ""); {
		case len(args) < low, empty == 0 && (strings.Contains(cmd.Use, "ID") || strings.Contains(cmd.Use, "DIR")),
			empty > 0 && strings.Contains(cmd.Use, "ID..."):
			return Usage("run "+cmd.CommandPath(), "an argument is missing", try)
		case high >= 0 && len(args) > high:
			return Usage("run "+cmd.CommandPath(), fmt.Sprintf("%q is one argument too many", args[high]), try)
		}
		return nil
	}
}

// closestFlag returns the flag that a mistyped name most likely means, "" when none is near.
func closestFlag(cmd *cobra.Command, name string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return api.Nearest(name, names)
}

// problemExits are the exit codes of server problems that have, in this process, another exit code than their status
// implies.
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
	"import_failed":      ExitFailed,
	"usage":              ExitUsage,
}

// failureOfProblem makes the failure of a server's problem document.
func failureOfProblem(p *client.Problem) *Failure {
	why, settings := against(p)
	f := &Failure{Exit: ExitFailed, Code: p.Code, Status: p.Status, What: p.Title, Why: why, Task: p.Task, Retryable: p.Retryable,
		Candidates: p.Candidates}
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
	local := p.Status == 0 || slices.Contains([]string{"permission_denied", "file_unreadable", "internal"}, p.Code) // a problem without a status is of this machine
	if local && len(p.Suggestions) > 0 {
		f.Try, f.Suggestions = p.Suggestions[0], p.Suggestions[1:]
	}
	if p.Code == "unknown_mode" {
		f.What, f.Try = "use the mode", "roost modes"
		if len(p.Suggestions) > 0 {
			f.Try += "  # or --mode " + p.Suggestions[0]
		}
	}
	if p.Code == "ambiguous_id" && len(p.Candidates) > 0 {
		f.What, f.Try = "find the task", "roost show "+api.ShellWord(p.Candidates[0].Name)
	}
	if f.Try == "" && slices.ContainsFunc(p.Errors, func(e api.Wrong) bool { return e.Parameter == "/workspace" }) {
		f.Try = nameFolder
	}
	if what, why, ok := divide(f.Why); ok && p.Code == "internal" && len(p.Suggestions) == 0 {
		f.What, f.Why = what, why
	}
	f.Try = cmp.Or(f.Try, nothing)
	resume := "roost resume " + api.ShellWord(p.Task)
	switch p.Code { // problems of a run, in the words of a command line
	case "disk_full":
		f.Try = "df -h  # make room where the tasks are, then do it again"
	case "untrusted_settings":
		f.What, f.Why = "continue task "+p.Task, "it "+strings.TrimPrefix(f.Why, "task "+p.Task+" ")
		f.Try = "roost root trust  # if the root is yours; or " + resume + " on a terminal, which asks"
	case "other_model":
		f.What = "continue task " + p.Task
		f.Try = resume + " --model " + api.ShellWord(p.Model) + "  # or another model or --provider that has it"
	case "unknown_profile":
		f.What, f.Why = "use the profile of task "+p.Task, f.Why+"; the editor's settings hold it"
		f.Try = "the same command with --profile NAME or --provider NAME; or " + f.Try
	}
	if p.Code == "configuration" || p.Code == "workspace_missing" {
		if what, why, ok := strings.Cut(f.Why, ": "); ok { // as the engine in this process words the error
			f.What, f.Why = what, why
		} else if p.Title != "" {
			f.What = strings.ToLower(p.Title[:1]) + p.Title[1:]
		}
	}
	return f
}

// Exit codes. Only this file decides them.
const (
	ExitDone       = 0
	ExitFailed     = 1
	ExitUsage      = 2
	ExitDenied     = 4
	ExitNotFound   = 5
	ExitTimeout    = 6
	ExitCancelled  = 7
	ExitConfig     = 10
	ExitInput      = 11
	ExitLimit      = 12
	ExitProvider   = 13
	ExitBusy       = 14
	ExitDamaged    = 15
	ExitServer     = 16
	ExitHangup     = 129
	ExitInterrupt  = 130
	ExitTerminated = 143
)

// settingsExits are the exit codes of errors about settings.
var settingsExits = map[config.Kind]int{
	config.Misused: ExitUsage, config.Broken: ExitConfig, config.Missing: ExitNotFound, config.Taken: ExitBusy,
}

// Of returns the failure for an error.
func Of(err error) *Failure {
	var own *Failure
	var p *client.Problem // also of an act in this process
	var un *client.Unreachable
	var settings *config.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &settings):
		f := New(settingsExits[settings.Kind], settings.Code, settings.What, settings.Why, settings.Try)
		f.Suggestions = settings.Suggestions
		return f
	case errors.As(err, &p):
		return failureOfProblem(p)
	case errors.As(err, &un):
		f := &Failure{Exit: ExitServer, Code: "server_unreachable", What: "reach the server " + un.Base, Why: un.Err.Error(),
			Retryable: true,
			Try:       "roost serve  # or, to work without a server, leave out --server and unset ROOST_SERVER"}
		if _, untrusted := errors.AsType[*tls.CertificateVerificationError](un.Err); untrusted {
			f.Try = "roost help topics server  # how this machine comes to trust a certificate"
		}
		return f
	}
	f := &Failure{Exit: ExitFailed, Code: "failed", What: itFailed, Why: err.Error(), Try: nothing}
	switch near := report.LocalProblem(err); {
	case near != nil:
		return failureOfProblem(near)
	case errors.Is(err, context.DeadlineExceeded):
		f.Exit, f.Code, f.What = ExitTimeout, "timeout", "finish within the time limit"
	case errors.Is(err, context.Canceled):
		f.Exit, f.Code, f.What = ExitCancelled, "cancelled", "finish"
	case errors.Is(err, os.ErrPermission):
		f.Code = "permission_denied"
		f.place(err)
	case f.disk(err): // it gives the advice
	default:
		f.place(err)
	}
	if f.What == itFailed {
		if what, why, ok := divide(f.Why); ok {
			f.What, f.Why = what, why
		}
	}
	return f
}

// place names the file that cannot be opened, or the folder that is missing, and gives advice.
func (f *Failure) place(err error) {
	var at *fs.PathError
	if !errors.As(err, &at) || !filepath.IsAbs(at.Path) || at.Op != "open" && at.Op != "stat" && at.Op != "lstat" {
		return
	}
	dir := filepath.Dir(at.Path)
	if _, err := os.Lstat(at.Path); err == nil {
		f.What, f.Try = "open "+at.Path, "ls -ld "+api.ShellWord(at.Path)+"  # what it is, and who may read it"
	} else if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && errors.Is(at, fs.ErrNotExist) {
		f.What, f.Try = "use the folder "+dir, "mkdir -p "+api.ShellWord(dir)
	}
}

// OfOutcome returns the failure for a run's outcome; nil when the run completed. stopped is the exit code of the
// signal that stopped the run, 0 = no signal did.
func OfOutcome(task string, o engine.Outcome, stopped int) *Failure {
	resume := "roost resume " + api.ShellWord(task)
	f := &Failure{Exit: ExitFailed, Code: "run_failed", Task: task, What: "the run of task " + task + " failed", Why: o.Reason, Try: resume}
	if f.Why == "" && o.Err != nil {
		f.Why = o.Err.Error()
	}
	if try, why := providerAdvice(task, o.Err); try != "" {
		f.Try, f.Why = try, f.Why+why
	}
	if p, is := errors.AsType[*llm.Error](o.Err); is && p.Try != "" {
		f.Why = strings.Replace(f.Why, llm.TryMark+p.Try, "", 1)
	}
	switch o.State {
	case "completed":
		if o.Err == nil {
			return nil
		}
		f.What, f.Why = "task "+task+" completed, but its end could not be saved", o.Err.Error()
	case "waiting":
		f.Exit, f.Code, f.What = ExitInput, "input_needed", "the run of task "+task+" waits for an answer"
		f.Try = resume + ` "your answer"`
	case "denied":
		f.Exit, f.Code, f.What = ExitDenied, "denied", "the run of task "+task+" stopped because it was denied what it needs"
	case "limit":
		f.Exit, f.Code, f.What = ExitLimit, "limit_reached", "the run of task "+task+" stopped at a limit"
		if o.Code == "timeout" {
			f.Exit, f.Code = ExitTimeout, "timeout"
		}
		f.Try += limitFlags[o.Code]
	case "cancelled", "interrupted":
		f.Exit, f.Code, f.What = ExitCancelled, "cancelled", "the run of task "+task+" was stopped; everything is saved"
		if stopped != 0 {
			f.Exit = stopped
		}
	default:
		if is, ok := failedRuns[o.Code]; ok {
			f.Exit, f.Code, f.Retryable = is.exit, is.code, is.retryable
		}
		if p, is := errors.AsType[*llm.Error](o.Err); is {
			f.Retryable = f.Retryable && p.Tries(2) > 1
		}
	}
	return f
}

// limitFlags are the flags that raise the limit at which a run stopped, by the code of its outcome.
var limitFlags = map[string]string{
	"turns":     " --max-turns N",
	"cost":      " --max-cost AMOUNT",
	"cost_task": " --max-cost-task AMOUNT",
	"cost_day":  " --max-cost-day AMOUNT  # or continue tomorrow",
}

// failedRuns are the failures of runs, by the code of the outcome.
var failedRuns = map[string]struct {
	exit      int
	code      string
	retryable bool
}{
	"provider":      {ExitProvider, "provider_error", true},
	"context":       {ExitProvider, "provider_error", false},
	"auth":          {ExitConfig, "provider_auth", false},
	"fenced":        {ExitBusy, "task_fenced", false},
	"busy":          {ExitBusy, "task_busy", true},
	"configuration": {ExitConfig, "configuration", false},
	"save":          {ExitFailed, "not_saved", true},
}

// Codes are the exit codes with their meanings, in order.
var Codes = []struct {
	Code    int
	Meaning string
}{
	{ExitDone, "done"},
	{ExitFailed, "failed"},
	{ExitUsage, "wrong command line"},
	{ExitDenied, "denied"},
	{ExitNotFound, "not found"},
	{ExitTimeout, "out of time"},
	{ExitCancelled, "cancelled"},
	{ExitConfig, "a setting, key or folder is missing or wrong"},
	{ExitInput, "the run needs an answer, and there is no terminal to ask on"},
	{ExitLimit, "a limit was reached: turns, cost, mistakes"},
	{ExitProvider, "the provider failed after retries"},
	{ExitBusy, "the task or server is busy, or a change conflicts"},
	{ExitDamaged, "damaged or stale data was found"},
	{ExitServer, "the server cannot be reached"},
	{ExitHangup, "ended by SIGHUP"},
	{ExitInterrupt, "ended by Ctrl-C"},
	{ExitTerminated, "ended by SIGTERM"},
}

// nothing is the advice of a failure without advice of its own.
const nothing = "roost help"

// itFailed is the text for an error that does not name what failed.
const itFailed = "it failed"

// taskAdvice is the advice for a failed act on a task, by the problem's code. The task's id follows the command, and a
// flag may follow the id.
var taskAdvice = map[string][2]string{
	"message_not_found":    {"roost show"},
	"task_locked":          {"roost show"},
	"task_busy":            {"roost wait", " # or roost cancel"},
	"bad_reference":        {"roost show"},
	"nothing_to_rewind":    {"roost show"},
	"branch_not_found":     {"roost show", "--branches"},
	"too_short":            {"roost show", "--context"},
	"checkpoint_not_found": {"roost checkpoint list"},
	"no_checkpoints":       {"roost show"},
	"not_alone":            {"roost rewind", "--to MESSAGE"},
	"workspace_moved":      {"roost checkpoint restore", "C -C DIR"},
	"workspace_refused":    {"roost checkpoint list"},
	"damaged":              {"roost doctor", "--repair"},
	"rolled_back":          {"roost checkpoint restore", "--dry-run  # after removing what is in its way"},
	"restoring":            {"roost checkpoint restore", "--dry-run  # after removing what is in its way"},
	"id_taken":             {"roost delete"},
	"changed_meanwhile":    {"roost undo --list"},
	"file_not_known":       {"roost files"},
	"nothing_to_undo":      {"roost undo --list"},
	"nothing_to_redo":      {"roost undo --list"},
	"question_not_found":   {"roost questions"},
}

// nameFolder is the engine's advice for a missing workspace.
const nameFolder = "name the folder with -C DIR"

// flagAdvice is the advice for a missing flag, by the error text of packages that know no command line.
var flagAdvice = map[string]string{
	nameFolder:        "-C DIR",
	report.NameFolder: "-C DIR",
	report.NameScript: "--provider script --model FILE",
}

// Advise turns a failure's advice into a command line, in the words of the command that failed: errors of a server or the
// engine know no command line.
func (f *Failure) Advise(cmd *cobra.Command, args []string) {
	if f.What == itFailed {
		f.What = cmd.CommandPath()
	}
	if flags, ok := flagAdvice[f.Try]; ok {
		if dir := cmd.Flags().Lookup("workspace"); f.Code == "validation_failed" && dir != nil { // a server does not repeat its input in an error
			whole, _ := filepath.Abs(dir.Value.String()) // "" when the working directory is gone
			f.What = "open the workspace " + cmp.Or(whole, dir.Value.String())
		}
		f.Try = retry(cmd, args, f.Task) + " " + flags
		return
	}
	if f.Try != nothing {
		return
	}
	if to, ok := taskAdvice[f.Code]; ok {
		f.Try = to[0]
		if f.Task != "" {
			f.Try += " " + api.ShellWord(f.Task)
		}
		if to[1] != "" {
			f.Try += " " + to[1]
		}
		return
	}
	if cmd.HasParent() {
		f.Try = cmd.CommandPath() + " --help"
		if f.Code == "validation_failed" {
			f.What = cmd.CommandPath()
		}
	}
}

// retry returns the beginning of a command line that repeats the command with other flags. If the command takes no
// folder, that is the command resume.
func retry(cmd *cobra.Command, args []string, task string) string {
	path := cmd.CommandPath()
	if cmd.Flags().ShorthandLookup("C") == nil {
		path = "roost resume"
	}
	fields := strings.Fields(cmd.Use)
	if task == "" && len(args) > 0 && len(fields) > 1 && strings.Trim(fields[1], "[].") == "ID" {
		task = args[0]
	}
	if task != "" && path != "roost run" && path != "roost continue" {
		path += " " + api.ShellWord(task)
	}
	if cmd.Name() == "show" {
		path += " --context"
	}
	return path
}

// ofSettings matches the members of a request's body whose faults are faults of configuration.
var ofSettings = lazyregexp.New(`^/(workspace|provider|model|base_url|(allow|ask|deny)_tools/.*)$`)

// against returns the server's complaint about members of a request, without the pointers, which only programs read.
// settings reports that a setting is wrong.
func against(p *client.Problem) (why string, settings bool) {
	why = p.Detail
	for _, e := range p.Errors {
		why = strings.TrimPrefix(why, e.Parameter+": ")
		if p.Detail != e.Parameter+": "+e.Detail && p.Detail != e.Detail {
			why += "; " + e.Detail
		}
		settings = settings || ofSettings().MatchString(e.Parameter)
	}
	return strings.TrimPrefix(why, "; "), settings
}

// divide splits an error's text into what failed and why: in "export task x: write y: no space left" what is "export
// task x". It does not split inside quotation marks. If the first part is too long, ok is false.
func divide(text string) (what, why string, ok bool) {
	const headline = 160
	quoted := false
	for i := 0; i < len(text) && i < headline; i++ {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case !quoted && i > 0 && strings.HasPrefix(text[i:], ": ") && len(text) > i+2:
			return text[:i], text[i+2:], true
		}
	}
	return "", text, false
}

// disk makes f the failure of a full or read-only disk, and reports whether err is one.
func (f *Failure) disk(err error) bool {
	var todo string
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		f.Code, f.Status, f.Retryable = "disk_full", 507, true
		todo = "make room, then do it again"
	case errors.Is(err, syscall.EROFS):
		f.Code = "read_only"
		todo = "mount it writable, or name another place"
	default:
		return false
	}
	f.Try = "df -h"
	if at, is := errors.AsType[*fs.PathError](err); is && filepath.IsAbs(at.Path) && filepath.Dir(at.Path) != "/dev" {
		f.Try += " " + api.ShellWord(filepath.Dir(at.Path))
	}
	f.Try += "  # " + todo
	return true
}
