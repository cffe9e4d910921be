package failure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/report"
)

// Exit codes. They are decided in this file and nowhere else.
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

// Of is what an error means for the user and for the exit code.
func Of(err error) *Failure {
	var own *Failure
	if errors.As(err, &own) {
		return own
	}
	if far := OfServer(err); far != nil {
		return far
	}
	f := &Failure{Exit: ExitFailed, Code: "failed", What: itFailed, Why: err.Error(), Try: nothing}
	var (
		config   *setup.Error
		unknown  *setup.UnknownProfileError
		provider *llm.Error
		held     *engine.UntrustedError
		other    *setup.OtherModelError
		noMode   *mode.UnknownError
	)
	switch cause := report.CauseOf(err); {
	case errors.As(err, &held):
		f.Exit, f.Code, f.Status, f.Task = ExitInput, "untrusted_settings", 409, held.Task
		f.What, f.Why = "go on with task "+held.Task, "it "+strings.TrimPrefix(held.Error(), "task "+held.Task+" ")
		f.Try = "roost root trust  # if the root is yours; or roost resume " + held.Task + " on a terminal, which asks"
	case errors.As(err, &other):
		f.Exit, f.Code, f.Status, f.Task = ExitInput, "other_model", 409, other.Task
		f.What, f.Why = "go on with task "+other.Task, other.Error()
		f.Try = "roost resume " + other.Task + " --model " + ShellWord(other.Model) + "  # or another model or --provider that has it"
	case cause.Code == report.CauseTrashed:
		f.Exit, f.Code, f.Status, f.What = ExitNotFound, "task_not_found", 404, "find the task"
		f.Why, f.Try = cause.Detail, "roost trash restore "+ShellWord(cause.Name)
	case cause.Code == report.CauseAmbiguous:
		f.Exit, f.Code, f.What, f.Why = ExitUsage, "ambiguous_id", "find task "+cause.Name, fmt.Sprintf("%q fits %d tasks",
			cause.Name, len(cause.Names))
		f.Suggestions = cause.Names
		f.Try = "roost show SOURCE:ID"
		if len(f.Suggestions) > 0 {
			f.Try = "roost show " + f.Suggestions[0]
		}
	case cause.Code == report.CauseNotFound:
		f.Exit, f.Code, f.Status, f.What, f.Try = ExitNotFound, "task_not_found", 404, "find the task", "roost list"
	case cause.Code == report.CauseBusy:
		f.Exit, f.Code, f.Status, f.Retryable = ExitBusy, "task_busy", 409, true
		f.What, f.Try = "own the task", "roost show ID  # or wait until the other program is done"
	case cause.Code == report.CauseForeignBusy:
		f.Exit, f.Code, f.Status, f.Retryable = ExitBusy, "task_busy", 409, true
		f.What, f.Try = "own the task", "roost show ID  # and again when the other program has finished"
	case cause.Code == report.CauseFenced:
		f.Exit, f.Code, f.Status, f.What, f.Try = ExitBusy, "task_fenced", 409, "go on with the task", "roost list"
	case cause.Code == report.CauseRoot:
		f.Exit, f.Code, f.What, f.Why = ExitConfig, "root_unusable", "use the root "+cause.Path, cause.Detail
		f.Try = "roost --root DIR ..."
	case errors.As(err, &unknown):
		f.Exit, f.Code, f.Task, f.What = ExitConfig, "unknown_profile", unknown.Task, "continue the task "+unknown.Task+" with its profile"
		f.Why = unknown.Error() + "; the editor's settings hold it"
		f.Try = "roost resume " + unknown.Task + " --profile NAME  # or --provider NAME; for all such tasks of its source: " +
			"roost config set source_profiles." + unknown.Source + " NAME"
	case errors.As(err, &config):
		f.Exit, f.Code, f.What, f.Why, f.Try = ExitConfig, "configuration", config.What, config.Why, config.Try
	case errors.As(err, &noMode):
		f.Exit, f.Code, f.Status, f.What, f.Suggestions = ExitUsage, "unknown_mode", 422, "use the mode "+noMode.Slug, noMode.Closest
		if f.Try = "roost modes"; len(noMode.Closest) > 0 {
			f.Try += "  # or --mode " + noMode.Closest[0]
		}
	case cause.Code == report.CauseUntrustedLocks:
		f.Exit, f.Code, f.What, f.Try = ExitConfig, "untrusted_locks", "own the task", "roost --root DIR ... on a local disk"
	case errors.As(err, &provider):
		f.Exit, f.Code, f.What, f.Retryable = ExitProvider, "provider_error", "ask the model", provider.Retryable()
		if provider.Kind == llm.Auth {
			f.Exit, f.Code = ExitConfig, "provider_auth"
		}
	case errors.Is(err, context.DeadlineExceeded):
		f.Exit, f.Code, f.What = ExitTimeout, "timeout", "finish in time"
	case errors.Is(err, context.Canceled):
		f.Exit, f.Code, f.What = ExitCancelled, "cancelled", "finish"
	case cause.Code == report.CauseUnread:
		f.Code, f.What, f.Why = "file_unreadable", "read "+cause.Path, cause.Detail+
			"; the task does not continue without it, and nothing was changed"
		f.Try = "ls -l " + ShellWord(cause.Path)
		if cause.Denied {
			f.Code, f.Status = "permission_denied", 403
			f.Try = "chmod u+r " + ShellWord(cause.Path) + "  # or chown it, or run roost as its owner"
		}
	case errors.Is(err, os.ErrPermission):
		f.Code = "permission_denied"
		f.place(err)
	default:
		if !f.disk(err) {
			f.place(err)
		}
	}
	if f.What == itFailed {
		if what, why, ok := divide(f.Why); ok {
			f.What, f.Why = what, why
		}
	}
	return f
}

// place adds the file that cannot be opened, or the folder that is missing, and
// what to do about it.
func (f *Failure) place(err error) {
	var at *fs.PathError
	if !errors.As(err, &at) || !filepath.IsAbs(at.Path) || at.Op != "open" && at.Op != "stat" && at.Op != "lstat" {
		return
	}
	dir := filepath.Dir(at.Path)
	if _, err := os.Lstat(at.Path); err == nil {
		f.What, f.Try = "open "+at.Path, "ls -ld "+ShellWord(at.Path)+"  # what it is, and who may read it"
	} else if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && errors.Is(at, fs.ErrNotExist) {
		f.What, f.Try = "use the folder "+dir, "mkdir -p "+ShellWord(dir)
	}
}

// OfOutcome is nil when the run completed. stopped is the exit code of the
// signal that stopped it, 0 when none did.
func OfOutcome(task string, o engine.Outcome, stopped int) *Failure {
	resume := "roost resume " + task
	f := &Failure{Exit: ExitFailed, Code: "run_failed", Task: task, What: "the run of task " + task + " failed", Why: o.Reason, Try: resume}
	if f.Why == "" && o.Err != nil {
		f.Why = o.Err.Error()
	}
	if try, why := providerAdvice(task, o.Err); try != "" {
		f.Try, f.Why = try, f.Why+why
	}
	switch o.State {
	case "completed":
		if o.Err == nil {
			return nil
		}
		f.What = "task " + task + " completed, but its end could not be saved"
	case "waiting":
		f.Exit, f.Code, f.What = ExitInput, "input_needed", "the run of task "+task+" waits for an answer"
		f.Try = resume + ` "your answer"`
	case "denied":
		f.Exit, f.Code, f.What = ExitDenied, "denied", "the run of task "+task+" was denied what it needs"
	case "limit":
		f.Exit, f.Code, f.What = ExitLimit, "limit_reached", "the run of task "+task+" stopped at a limit"
		switch o.Code {
		case "timeout":
			f.Exit, f.Code = ExitTimeout, "timeout"
		case "turns":
			f.Try = resume + " --max-turns N"
		case "cost":
			f.Try = resume + " --max-cost AMOUNT"
		case "cost_task":
			f.Try = resume + " --max-cost-task AMOUNT"
		case "cost_day":
			f.Try = resume + " --max-cost-day AMOUNT  # or go on tomorrow"
		}
	case "cancelled", "interrupted":
		f.Exit, f.Code, f.What = ExitCancelled, "cancelled", "the run of task "+task+" was stopped; all is saved"
		if stopped != 0 {
			f.Exit = stopped
		}
	default:
		switch o.Code {
		case "provider", "context":
			f.Exit, f.Code, f.Retryable = ExitProvider, "provider_error", o.Code == "provider"
		case "auth":
			f.Exit, f.Code = ExitConfig, "provider_auth"
		case "fenced":
			f.Exit, f.Code = ExitBusy, "task_fenced"
		case "busy":
			f.Exit, f.Code, f.Retryable = ExitBusy, "task_busy", true
		case "configuration":
			f.Exit, f.Code = ExitConfig, "configuration"
		case "save":
			f.Code, f.Retryable = "not_saved", true
		}
	}
	if o.Err != nil && o.State == "completed" {
		f.Why = o.Err.Error()
	}
	return f
}

// Codes are the codes with their meaning, in order.
var Codes = []struct {
	Code    int
	Meaning string
}{
	{ExitDone, "done"},
	{ExitFailed, "failed"},
	{ExitUsage, "wrong usage"},
	{ExitDenied, "denied"},
	{ExitNotFound, "not found"},
	{ExitTimeout, "time-out"},
	{ExitCancelled, "cancelled"},
	{ExitConfig, "configuration"},
	{ExitInput, "an answer is needed and no user can be asked"},
	{ExitLimit, "a limit was reached: turns, cost, mistakes"},
	{ExitProvider, "the provider failed after retries"},
	{ExitBusy, "busy, or a conflict"},
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

// taskAdvice is what helps where a task lacks what was asked of it, by a problem's code.
// The task's id follows the command, and a flag may follow the id.
var taskAdvice = map[string][2]string{
	"message_not_found":    {"roost show"},
	"task_locked":          {"roost show"},
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

// flagAdvice is the advice for a missing flag, by the error text of packages that know no
// command line.
var flagAdvice = map[string]string{
	nameFolder:                      "-C DIR",
	"name a YAML file with --model": "--provider script --model FILE",
	report.NameFolder:               "-C DIR",
	report.NameScript:               "--provider script --model FILE",
}

// Advise turns a failure's advice into a command line, in the words of the command that
// failed: errors of a server or the engine know no command line.
func (f *Failure) Advise(cmd *cobra.Command, args []string) {
	if f.What == itFailed {
		f.What = cmd.CommandPath()
	}
	if flags, ok := flagAdvice[f.Try]; ok {
		if dir := cmd.Flags().Lookup("workspace"); f.Code == "validation_failed" && dir != nil { // a server does not repeat its input
			f.What = "open the workspace " + dir.Value.String()
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
			f.Try += " " + ShellWord(f.Task)
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

// retry is the beginning of a command line that repeats the command with other flags; that of
// resume where the command takes no folder.
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
		path += " " + ShellWord(task)
	}
	if cmd.Name() == "show" {
		path += " --context"
	}
	return path
}

// ofSettings are the members of a request's body whose fault is one of configuration.
var ofSettings = []string{"/workspace", "/provider", "/model", "/base_url"}

// against is the server's complaint about members of a request, without the pointer that
// only programs read.
func against(p *client.Problem) (why string, settings bool) {
	why = p.Detail
	for _, e := range p.Errors {
		why = strings.TrimPrefix(why, e.Parameter+": ")
		if p.Detail != e.Parameter+": "+e.Detail && p.Detail != e.Detail {
			why += "; " + e.Detail
		}
		settings = settings || slices.Contains(ofSettings, e.Parameter)
	}
	return strings.TrimPrefix(why, "; "), settings
}

// providerAdvice is what helps a run that a provider ended, when another try would fail in
// the same way: another key or another model. why is added to the provider's message;
// both are "" when another try may help.
func providerAdvice(task string, err error) (try, why string) {
	var p *llm.Error
	if !errors.As(err, &p) {
		return "", ""
	}
	said := strings.ToLower(p.Message)
	resume := "roost resume " + ShellWord(task)
	switch {
	case p.Kind == llm.Auth:
		variable := strings.ToUpper(strings.ReplaceAll(p.Provider, "-", "_")) + "_API_KEY"
		return "roost auth set " + p.Provider + " && " + resume + "  # a key in " + variable + " goes before it", ""
	case p.Kind != llm.Invalid:
		return "", ""
	case toolless(said):
		return resume + " --model NAME", "; Roost works only with models that call tools"
	case p.Status == 404 || strings.Contains(said, "model") && (strings.Contains(said, "not exist") || strings.Contains(said, "not found")):
		return resume + " --model NAME  # roost models --provider " + p.Provider + " lists those that are known", ""
	}
	return "", ""
}

// toolless reports whether a server's message means that its model calls no tools, in the
// words of Ollama, OpenRouter, vLLM and llama.cpp.
func toolless(said string) bool {
	for _, words := range []string{
		"not support tools", "support tool use", "not support function calling", "not support tool",
		"enable-auto-tool-choice", "tools param requires --jinja",
	} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}

// divide separates what failed from why in an error's text: "export task x: write y:
// no space left" is about exporting task x. It does not divide text in quotation marks;
// a text that is too long for a headline has none.
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

// disk makes f the failure of a disk that is full or may not be written to, where err is one.
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
	var at *fs.PathError
	if errors.As(err, &at) && filepath.IsAbs(at.Path) && !strings.HasPrefix(at.Path, "/dev/") {
		f.Try += " " + ShellWord(filepath.Dir(at.Path))
	}
	f.Try += "  # " + todo
	return true
}
