// Package tool holds the tools a model may call: reading, writing, searching,
// running commands, asking, finishing. Names and parameters are Roo's.
//
// A call goes through two steps. Plan examines the input and the workspace and
// describes what would happen, without doing it: that is what a person approves and
// what the journal records as intent. Run does it. A Plan that was made before a
// crash is made again on resume, never reused.
package tool

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/shell"
)

// Replay is what may happen to a call whose outcome is unknown after a crash.
type Replay string

// The replay classes.
const (
	Again   Replay = "again"   // reads only: run it again
	Inspect Replay = "inspect" // writes files: look at the files to see whether it happened
	Never   Replay = "never"   // has effects elsewhere: never run again by itself
)

// Class is the kind of permission that a call needs.
type Class string

// The permission classes.
const (
	Read    Class = "read"
	Write   Class = "write"
	Command Class = "command"
	Control Class = "control" // asking and finishing: needs no permission
)

// Spec describes a tool to the model and to the engine.
type Spec struct {
	Name        string
	Aliases     []string
	Description string
	Schema      json.RawMessage // JSON Schema of the input, as offered to the model
	Class       Class
	Replay      Replay
	// OptIn tools run when they are called, as histories of other programs hold calls
	// of them, but are not offered: they do what an offered tool does.
	OptIn bool
}

// Env is what a call may touch.
type Env struct {
	Workspace *workspace.Workspace
	Mode      string // the slug of the task's mode, "" when it has none
	// CommandTimeoutMS ends a command that runs longer; 0 = no limit.
	CommandTimeoutMS int64
	// Mark is what the processes of a command are found by if the engine dies before
	// it could record one (see shell.FindMarked); recorded before Run. "" = a new one.
	Mark string
	// SpoolDir is a private folder for output that does not fit in memory.
	SpoolDir string
	// ArtifactID gives the name under which a command's whole output will be kept
	// (e.g. "cmd-1776200002500.txt"), as Result.Text gives it to the model. It is a
	// function because the name comes from the row that asked, which is written
	// between Plan and Run; Run calls it at most once, when Result.Full is set. nil
	// = the text names none.
	ArtifactID func() string
	// Kept finds the whole output of an earlier command by that name, and its size in
	// bytes. nil = nothing is kept.
	Kept func(artifact string) (output io.ReaderAt, size int64, ok bool)
	// Seen gives what the model last saw or made of a file, by its name as in FileTouch.
	// nil = nothing is known. It may be asked from any goroutine.
	Seen func(path string) (seen Seen, ok bool)
}

// Tool is one tool.
type Tool interface {
	Spec() Spec
	// Plan checks the input. A *InputError is the model's mistake and becomes an
	// error result; any other error is ours.
	Plan(ctx context.Context, env Env, input json.RawMessage) (Plan, error)
}

// Plan is a call that has been checked and not been run.
type Plan interface {
	// Ask describes the call for approval and for the UI history.
	Ask() Ask
	// Run does it. Output may be called many times while it runs, from any
	// goroutine but never concurrently. Files it wrote are synced when it returns.
	Run(ctx context.Context, out Output) (Result, error)
}

// Ask is what a person sees of a call.
type Ask struct {
	Tool          string   // the tool's name, for approvals; "" = the first word of Title
	Kind          string   // Roo's ask kind: "tool", "command", "followup", "completion_result"
	Text          string   // Roo's ask text: JSON of ClineSayTool for "tool", the command line for "command"
	Title         string   // for a terminal, e.g. "read_file src/a.go"; of a command all lines, as Visible shows them
	Diff          string   // unified diff of a write, "" otherwise
	Paths         []string // workspace paths it touches, as given by Resolve
	Command       string   // the command line of a command
	Dir           string   // the folder where a command runs, absolute, links followed
	Outside       bool     // touches something outside the workspace, symlinks followed
	LinkedOutside bool     // and its path does not show it: a link in the workspace leads there
	Protected     bool     // touches a write-protected file
	Ignored       bool     // touches what .rooignore hides
	Mode          string   // the mode that the task continues in afterwards, "" = as it is
	Agreed        string   // the settings of a server that agree to the call beforehand, "" = none do
	Git           string   // why no git command runs there unasked, "" = nothing speaks against it
	GitHooks      string   // why none does that runs hooks or talks to other repositories
	// Before maps the files that a write will change, as in FileTouch, to the hash of
	// their content at planning time; "" for a file that does not exist. A tool that
	// cannot derive from its input what a file will hold adds a blank and the hash of that.
	Before map[string]string
}

// Output receives what a running call shows, as it appears.
type Output interface {
	// Started reports a process that now runs: the engine records it so that a resume
	// can find it if it outlives us.
	Started(p Process)
	// Write is called with raw output bytes.
	Write(p []byte) (int, error)
}

// Process identifies a running command beyond the reuse of its number.
type Process = shell.Process

// Result is what the model gets back, and what the engine records beside it.
type Result struct {
	Text     string            // the tool result's text
	Images   []json.RawMessage // image blocks that follow the result
	IsError  bool
	Files    []FileTouch // files it read or wrote
	Full     *Spool      // the whole output, when Text holds only part of it
	Exit     *int        // a command's exit code
	TimedOut bool
	// Control tools:
	Question  string   // ask_followup_question: what to ask
	Choices   []Choice // its suggested answers
	Completed bool     // attempt_completion: Text is the final result
	Mode      string   // the slug of the mode to go on in; of switch_mode, Text is the reason
	Todos     *string  // update_todo_list: the whole checklist
	Subtask   *Subtask // new_task: what is to be started
}

// Subtask is a task that the model wants started.
type Subtask struct {
	Mode    string // a slug
	Message string
	Todos   string // a checklist in Markdown, "" for none
}

// Choice is one suggested answer.
type Choice struct {
	Answer string `json:"answer"`
	Mode   string `json:"mode,omitempty"`
}

// FileTouch records what the model now knows of a file.
type FileTouch struct {
	workspace.FileState
	Source string // "read_tool", "roo_edited", "file_mentioned"; "user_edited": what the user or another program had changed before
}

// Spool is output kept outside memory.
type Spool struct {
	Path string
	Size int64
}

// InputError is a call that the model got wrong.
type InputError struct {
	Tool   string
	Reason string // in words the model can act on
}

func (e *InputError) Error() string { return e.Tool + ": " + e.Reason }

// Finding is what the files show of a write that a crash interrupted.
type Finding string

// The findings.
const (
	Done    Finding = "done"
	NotDone Finding = "not_done"
	Unclear Finding = "unclear"
)

// Inspector is a writing tool that can find out from the files whether a call whose
// outcome is unknown took effect. It changes nothing of the user's, and removes the
// temporary file that the call may have left when it was killed.
type Inspector interface {
	// Inspect judges the call with this input. before is Ask.Before of the plan that
	// was started; it may be nil or lack paths, and then fewer cases can be
	// distinguished.
	Inspect(ctx context.Context, env Env, input json.RawMessage, before map[string]string) (Finding, error)
}

// made is a tool that is no more than its specification and what plans a call of it.
type made struct {
	spec Spec
	plan func(ctx context.Context, env Env, in Input) (Plan, error)
}

// Make makes a tool of a specification and a function that plans a call with an input that is a JSON object.
func Make(s Spec, plan func(ctx context.Context, env Env, in Input) (Plan, error)) Tool {
	return made{s, plan}
}

func (m made) Spec() Spec { return m.spec }

func (m made) Plan(ctx context.Context, env Env, raw json.RawMessage) (Plan, error) {
	in, err := ReadInput(m.spec.Name, raw)
	if err != nil {
		required, _ := esjson.Get(m.spec.Schema, "required")
		keys := bytes.ReplaceAll(bytes.Trim(required, "[]"), []byte(","), []byte(", "))
		return nil, in.Wrong("the input must be a JSON object with the keys %s", keys)
	}
	return m.plan(ctx, env, in)
}

// Known is a plan whose result is known beforehand: a refusal, or what was read to be able to ask.
type Known struct {
	Of     Ask
	Result Result
}

// Ask implements Plan.
func (k Known) Ask() Ask { return k.Of }

// Run implements Plan.
func (k Known) Run(ctx context.Context, _ Output) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	return k.Result, nil
}

// ImageBlock is an image as a block of content.
func ImageBlock(media string, data []byte) json.RawMessage {
	return esjson.ObjectOf("type", "image",
		"source", esjson.ObjectOf("type", "base64", "media_type", media,
			"data", base64.StdEncoding.EncodeToString(data)))
}

// MCP is the class of what MCP servers offer: what such a call reads, writes or sends
// is known to the server alone.
const MCP Class = "mcp"

// Seen is what the model last saw or made of a file.
type Seen struct {
	Hash string // SHA-256 of the content, hex; "" when it knows that there is no file
	Data []byte // the content, nil when it is not at hand
}

// StaleError: a call would overwrite a file that the user or another program changed after
// the model saw it. It is not the model's mistake; Reason describes what changed.
type StaleError struct {
	Now    FileTouch // the file as it is; its Source is not set
	Reason string    // in words the model can act on, with the difference where it is small
	Shown  bool      // Reason holds all that changed: the model knows the content now
}

func (e *StaleError) Error() string { return e.Reason }

// Offer is which tools a request describes to a model, by their names or older names. The zero
// value is all that are not opt-in.
type Offer struct {
	Include []string // the user wants them offered
	Exclude []string // the user has switched them off: a call is refused, too
	Wants   []string // the model does better with them
	Spares  []string // the model does without them; a call runs
}

// Excludes reports whether the user has switched a tool off.
func (o Offer) Excludes(s Spec) bool { return o.Exclude != nil && named(o.Exclude, s) }

// Offers reports whether a request describes a tool to the model. The user's choice goes before
// what is known of the model.
func (o Offer) Offers(s Spec) bool {
	switch {
	case o.Excludes(s):
		return false
	case named(o.Include, s):
		return true
	case named(o.Spares, s):
		return false
	}
	return !s.OptIn || named(o.Wants, s)
}

func named(list []string, s Spec) bool {
	return slices.Contains(list, s.Name) || slices.ContainsFunc(s.Aliases, func(alias string) bool { return slices.Contains(list, alias) })
}

// ContextError returns err if it is the context's, else nil: a tool that was stopped reports
// that, and turns any other failure into words for the model.
func ContextError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
