// Package hook runs the user's own commands before and after tool calls, and at the start and the end of runs. They
// come from the user's settings alone: no workspace, task or mode can name one.
//
// A hook gets a JSON document on stdin (see Input) and answers by its exit code. With 0 the call or the run continues,
// unless a hook that runs before it prints {"decision":"deny","reason":"..."} or, before a call, "ask". 2 denies: the
// reason is the text on stderr. After a call, 2 gives the text on stderr to the model. Any other end (another code, a
// time-out, an answer that cannot be read) is a failure: the user sees a warning, and Roost does what Hook.Failure asks
// for. No answer permits anything: a hook can only make things stricter.
//
// A hook runs like a command of a model: /bin/sh -c in the workspace, with the same environment, in a process group
// that is ended with everything in it. Of its output the first 64 KiB count. The hooks of one event run one after
// another, in the order of the settings; the first denial ends that.
//
// Nothing records that a hook ran. The call that a hook is about is on disk before the hook starts, and its answer is
// kept with the outcome of the call. When Roost is killed meanwhile, the next run asks the same hooks again: a hook has
// to bear that it runs twice for one call. A process that a killed Roost left is found by Set.Mark and ended.
package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/shell"
)

// The events that hooks are for.
const (
	BeforeTool = "before_tool"
	AfterTool  = "after_tool"
	RunStart   = "run_start"
	RunEnd     = "run_end"
)

// Events lists the events in the order in which they come in a run.
var Events = []string{RunStart, BeforeTool, AfterTool, RunEnd}

// What a hook's failure does to the call or the run that it is about.
const (
	Warn = "warn" // nothing: the user sees a warning
	Ask  = "ask"  // the user is asked about the call; elsewhere as Warn
	Deny = "deny"
)

// Failures lists the values of Hook.Failure.
var Failures = []string{Warn, Ask, Deny}

const (
	// DefaultTimeout bounds a hook whose settings name no time.
	DefaultTimeout = time.Minute
	// MaxTimeout is the longest time that the settings may name.
	MaxTimeout = 10 * time.Minute
	// endTimeout bounds a hook once its run is cancelled: a cancel is over within two seconds.
	endTimeout = time.Second

	outputLimit = 64 << 10 // of each output of a hook, in bytes
	reasonLimit = 4 << 10  // of the reason that becomes part of a result
	exitDeny    = 2
)

// Hook is one command of the user.
type Hook struct {
	Name    string
	On      string        // one of the events
	Tool    string        // names or kinds of tools with "|" between them, each a glob; "" = all. Only for calls.
	Command string        // a command line
	Timeout time.Duration // 0 = DefaultTimeout
	Failure string        // warn, ask or deny; "" = warn
}

// Check reports what is wrong with a hook, "" when nothing is.
func (h Hook) Check() string {
	for _, pattern := range h.tools() {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Sprintf("its tool %q is no pattern", h.Tool)
		}
	}
	switch {
	case strings.TrimSpace(h.Command) == "":
		return "it has no command"
	case !slices.Contains(Events, h.On):
		return "its on must be one of " + strings.Join(Events, ", ")
	case h.Failure != "" && !slices.Contains(Failures, h.Failure):
		return "its on_failure must be one of " + strings.Join(Failures, ", ")
	case h.Failure == Ask && h.On != BeforeTool, h.Failure == Deny && h.On != BeforeTool && h.On != RunStart:
		return "its on_failure " + h.Failure + " does not fit " + h.On + ", which cannot " + h.Failure
	case h.Timeout < 0 || h.Timeout > MaxTimeout:
		return fmt.Sprintf("its timeout must be at most %s", MaxTimeout)
	}
	return ""
}

func (h Hook) tools() []string {
	if h.Tool == "" {
		return nil
	}
	return api.Each(strings.Split(h.Tool, "|"), strings.TrimSpace)
}

// covers reports whether the hook is for an event. A kind of tool ("write", "command") covers all tools of it.
func (h Hook) covers(in Input) bool {
	list := h.tools()
	return h.On == in.Event && (in.Tool == "" || list == nil || slices.ContainsFunc(list, func(pattern string) bool {
		is, _ := path.Match(pattern, in.Tool)
		return is || pattern == in.Kind
	}))
}

// Input is what a hook reads on its stdin. Secrets in it are masked.
type Input struct {
	Event     string          `json:"event"`
	Hook      string          `json:"hook"`
	Task      string          `json:"task_id"`
	Run       string          `json:"run_id"`
	Workspace string          `json:"workspace"`
	Tool      string          `json:"tool,omitempty"`
	Kind      string          `json:"kind,omitempty"` // read, write, command, mcp, web
	Call      string          `json:"call_id,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Result    *string         `json:"result,omitempty"`   // after a call
	IsError   *bool           `json:"is_error,omitempty"` // after a call
	Outcome   string          `json:"outcome,omitempty"`  // of a run: completed, failed, cancelled, waiting, ...
	Reason    string          `json:"reason,omitempty"`   // of the outcome
}

// Set is the hooks of a run. A nil Set has none.
type Set struct {
	Hooks         []Hook
	TaskID, RunID string
	Workspace     string // the folder that hooks run in
	Spool         string // a private folder
	Mark          string // is in the environment of hooks, so that they are found again
}

// Answer is the combined answer of all hooks of an event.
type Answer struct {
	Decision string // Deny, Ask or ""
	Hook     string // that decided
	Reason   string
	Feedback []string // for the model, after a call
	Warnings []string // for the user: hooks that failed
}

// Covers reports whether any hook is for an event; only its Event, Tool and Kind count.
func (s *Set) Covers(in Input) bool {
	return s != nil && slices.ContainsFunc(s.Hooks, func(h Hook) bool { return h.covers(in) })
}

// Run runs the hooks of an event. mask hides secrets in what they wrote. An error is the context's, or that of a disk
// that takes no file.
func (s *Set) Run(ctx context.Context, in Input, mask func(string) string) (Answer, error) {
	var all Answer
	if !s.Covers(in) {
		return all, nil
	}
	for _, h := range s.Hooks {
		if !h.covers(in) {
			continue
		}
		one, err := s.run(ctx, h, in, mask)
		if err != nil {
			return all, err
		}
		all.Warnings, all.Feedback = append(all.Warnings, one.Warnings...), append(all.Feedback, one.Feedback...)
		if one.Decision == Deny || all.Decision == "" {
			all.Decision, all.Hook, all.Reason = one.Decision, one.Hook, one.Reason
		}
		if all.Decision == Deny {
			break
		}
	}
	return all, nil
}

// run runs one hook.
func (s *Set) run(ctx context.Context, h Hook, in Input, mask func(string) string) (Answer, error) {
	in.Hook, in.Task, in.Run, in.Workspace = h.Name, s.TaskID, s.RunID, s.Workspace
	file, err := spool(s.Spool, in)
	if err != nil {
		return Answer{}, fmt.Errorf("run the hook %s: %w", h.Name, err)
	}
	defer file.Close()
	limit := cmp.Or(h.Timeout, DefaultTimeout)
	if ctx.Err() != nil && h.On == RunEnd { // the end of a cancelled run
		limit = min(limit, endTimeout)
		ctx = context.WithoutCancel(ctx)
	}
	out, complaints := shell.Beginning{Most: outputLimit}, shell.Beginning{Most: outputLimit}
	ran, err := shell.Run(ctx, shell.Command{
		Line: h.Command, Dir: s.Workspace, Timeout: limit, Mark: s.Mark, Input: file, Output: &out, Errors: &complaints,
		Started: func(shell.Process) { failpoint.Hit("hook.started") },
	})
	failpoint.Hit("hook.ran")
	switch {
	case err == nil && ran.Cancelled:
		return Answer{}, context.Cause(ctx)
	case err != nil:
		return h.failed(err.Error()), nil
	case ran.TimedOut:
		return h.failed(fmt.Sprintf("it was ended after %s, its time limit", limit)), nil
	}
	return h.answer(ran.Exit, mask(out.Text()), mask(complaints.Text())), nil
}

// Exec runs a command line of the user's outside of any run, as a hook runs: sh -c in a folder, with a JSON document on its
// stdin. complaints is what it wrote to stderr, shortened.
func Exec(ctx context.Context, line, dir string, limit time.Duration, document any) (ran shell.Result, complaints string, err error) {
	file, err := spool(dir, document)
	if err != nil {
		return ran, "", fmt.Errorf("run the command: %w", err)
	}
	defer file.Close()
	said := shell.Beginning{Most: outputLimit}
	ran, err = shell.Run(ctx, shell.Command{Line: line, Dir: dir, Timeout: limit, Input: file, Errors: &said})
	return ran, tool.OneLine(shortened(said.Text())), err //nolint:wrapcheck // the caller names what the command is for
}

// spool writes the document for a hook into a file, and removes the name of the file.
func spool(dir string, in any) (*os.File, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the hook
	}
	file, err := os.CreateTemp(dir, "hook-*.json") // mode 0600
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	_ = os.Remove(file.Name()) // not everywhere while it is open; then it goes with the folder
	if _, err = file.Write(append(data, '\n')); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, err //nolint:wrapcheck // it names the file
	}
	return file, nil
}

// answer reads how a hook ended.
func (h Hook) answer(exit int, out, complaints string) Answer {
	reason := shortened(complaints)
	before := h.On == BeforeTool || h.On == RunStart
	switch {
	case exit == exitDeny && before:
		return Answer{Decision: Deny, Hook: h.Name, Reason: reason}
	case exit == exitDeny && h.On == AfterTool:
		return Answer{Feedback: []string{fmt.Sprintf("[The user's hook %s: %s]", h.Name, reason)}}
	case exit != 0:
		return h.failed(fmt.Sprintf("exit code %d: %s", exit, reason))
	case !before || !strings.HasPrefix(strings.TrimSpace(out), "{") && !strings.Contains(out, `"decision"`):
		return Answer{}
	}
	var said struct{ Decision, Reason string }
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		return h.failed("its answer is no JSON: " + err.Error())
	}
	switch {
	case said.Decision == "":
		return Answer{}
	case said.Decision == Deny, said.Decision == Ask && h.On == BeforeTool:
		return Answer{Decision: said.Decision, Hook: h.Name, Reason: shortened(said.Reason)}
	}
	return h.failed(fmt.Sprintf("its decision %q means nothing here; a hook denies, asks about a call, and permits nothing",
		tool.OneLine(said.Decision)))
}

// failed returns the answer for a hook that gave none.
func (h Hook) failed(why string) Answer {
	a := Answer{Warnings: []string{fmt.Sprintf("the hook %s failed: %s", h.Name, tool.OneLine(why))}}
	if h.Failure == Deny || h.Failure == Ask {
		a.Decision, a.Hook, a.Reason = h.Failure, h.Name, "the hook failed: "+tool.OneLine(why)
	}
	return a
}

// shortened returns what a hook wrote, cut to the length of a reason.
func shortened(text string) string {
	return cmp.Or(api.Shorten(strings.TrimSpace(text), reasonLimit), "it gave no reason")
}
