package failure

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/report"
)

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
