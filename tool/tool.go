// Package tool holds the tools a model may call: reading, writing, searching,
// running commands, asking, finishing. Names and parameters are Roo's.
//
// A call goes through two steps. Plan examines the input and the workspace and describes what would happen, without
// doing it: a person approves this description, and the journal records it as intent. Run does it. After a crash a
// resume plans the call again and never reuses a plan.
package tool

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/shell"
)

// Replay states what a resume does with a call whose outcome is unknown after a crash.
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
	// OptIn tools are not offered to the model, since they do what an offered tool does. They run when they are
	// called, as histories of other programs hold calls of them.
	OptIn bool
}

// Env holds what a call may use.
type Env struct {
	Workspace *workspace.Workspace
	Mode      string // the slug of the task's mode, "" when it has none
	// Mark is a word in the environment of a command's processes, recorded before Run. By it shell.FindMarked finds
	// the processes if the engine dies before it could record one. "" = a new one.
	Mark string
	// SpoolDir is a private folder for output that does not fit in memory.
	SpoolDir string
	// ArtifactID returns the name under which the engine will keep a command's whole output (e.g.
	// "cmd-1776200002500.txt"); Result.Text tells it to the model. It is a function because the name comes from the
	// row of the question, which is written between Plan and Run; Run calls it at most once, when Result.Full is set.
	// nil = the text contains no name.
	ArtifactID func() string
	// Kept returns the whole output of an earlier command, by the name that ArtifactID gave, and its size in bytes.
	// nil = no output is kept.
	Kept func(artifact string) (output io.ReaderAt, size int64, ok bool)
	// Seen returns what the model last saw or made of a file, by its name as in FileTouch. nil = nothing is known.
	// Any goroutine may call it.
	Seen func(path string) (seen Seen, ok bool)
}

// Tool is one tool.
type Tool interface {
	Spec() Spec
	// Plan checks the input. An *InputError is the model's mistake and becomes an error result; any other error is
	// Roost's.
	Plan(ctx context.Context, env Env, input json.RawMessage) (Plan, error)
}

// Plan is a call that was checked and has not run yet.
type Plan interface {
	// Ask describes the call for approval and for the UI history.
	Ask() Ask
	// Run makes the call. Output may be called many times while it runs, from any goroutine but never concurrently.
	// When Run returns, the files it wrote are synced to disk.
	Run(ctx context.Context, out Output) (Result, error)
}

// Ask describes a call to the person who approves it.
type Ask struct {
	Tool          string   // the tool's name, for approvals; "" = the first word of Title
	Kind          string   // Roo's ask kind: "tool", "command", "followup", "completion_result"
	Text          string   // Roo's ask text: JSON of ClineSayTool for "tool", the command line for "command"
	Title         string   // for a terminal, e.g. "read_file src/a.go"; for a command all its lines, as Visible shows them
	Diff          string   // unified diff of a write, "" otherwise
	Paths         []string // workspace paths that the call touches, as Resolve returns them
	Command       string   // the command line of a command
	Dir           string   // the folder where a command runs, absolute, links followed
	Outside       bool     // touches something outside the workspace, symlinks followed
	LinkedOutside bool     // the call touches something outside through a link in the workspace, which its path does not show
	Protected     bool     // touches a write-protected file
	Ignored       bool     // touches what .rooignore hides
	Mode          string   // the mode in which the task continues, "" = unchanged
	Agreed        string   // the settings of a server that allow the call without asking, "" = none do
	Git           string   // why no git command may run there without asking, "" = each may
	GitHooks      string   // why no git command that runs hooks or contacts other repositories may, "" = each may
	// Before maps the files that a write will change, named as in FileTouch, to the hash of their content at planning
	// time; "" for a file that does not exist. A tool that cannot derive a file's new content from its input adds a
	// blank and the hash of the new content.
	Before map[string]string
}

// Output receives the output of a running call as it appears.
type Output interface {
	// Started reports a process that now runs. The engine records it, so that a resume can find a process that
	// outlives Roost.
	Started(p Process)
	// Write is called with raw output bytes.
	Write(p []byte) (int, error)
}

// Process identifies a running command, even after the system reuses its process number.
type Process = shell.Process

// Result is the answer of a call to the model, with facts that the engine records beside it.
type Result struct {
	Text     string            // the tool result's text
	Images   []json.RawMessage // image blocks that follow the result
	IsError  bool
	Files    []FileTouch // files that the call read or wrote
	Full     *Spool      // the whole output, when Text holds only part of it
	Exit     *int        // a command's exit code
	TimedOut bool
	// Control tools:
	Question  string   // ask_followup_question: what to ask
	Choices   []Choice // its suggested answers
	Completed bool     // attempt_completion: Text is the final result
	Mode      string   // the slug of the mode in which the task continues; with switch_mode, Text is the reason
	Todos     *string  // update_todo_list: the whole checklist
	Subtask   *Subtask // new_task: the task to start
}

// Subtask is a task that the model asks to start.
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
	Source string // "read_tool", "roo_edited", "file_mentioned"; "user_edited": the user or another program changed it before
}

// Spool is output kept outside memory.
type Spool struct {
	Path string
	Size int64
}

// InputError is a mistake of the model in a call.
type InputError struct {
	Tool   string
	Reason string // in words the model can act on
}

func (e *InputError) Error() string { return e.Tool + ": " + e.Reason }

// Finding is the verdict on a write that a crash interrupted, reached by looking at the files.
type Finding string

// The findings.
const (
	Done    Finding = "done"
	NotDone Finding = "not_done"
	Unclear Finding = "unclear"
)

// Inspector is a writing tool that can find out from the files whether a call whose outcome is unknown took effect.
// It changes none of the user's files, and removes the temporary file that a killed call may have left.
type Inspector interface {
	// Inspect judges the call with this input. before is Ask.Before of the plan that was started; it may be nil or
	// lack paths, and then Inspect can distinguish fewer cases.
	Inspect(ctx context.Context, env Env, input json.RawMessage, before map[string]string) (Finding, error)
}

// made is a tool that consists of its specification and a function that plans a call.
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

// Known is a plan whose result is known before it runs: a refusal, or data that Plan had to read for the question.
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

// Prepared is a plan that consists of its question and a function that makes the call.
type Prepared struct {
	Of Ask
	Do func(ctx context.Context, out Output) (Result, error)
}

// Ask implements Plan.
func (p Prepared) Ask() Ask { return p.Of }

// Run implements Plan.
func (p Prepared) Run(ctx context.Context, out Output) (Result, error) { return p.Do(ctx, out) }

// Failed is the result of a call that could not be made, with the reason.
func Failed(format string, args ...any) Result {
	return Result{Text: "Error: " + fmt.Sprintf(format, args...), IsError: true}
}

// ImageBlock returns an image as a content block.
func ImageBlock(media string, data []byte) json.RawMessage {
	return esjson.ObjectOf("type", "image",
		"source", esjson.ObjectOf("type", "base64", "media_type", media,
			"data", base64.StdEncoding.EncodeToString(data)))
}

// MCP is the class of the tools of MCP servers: only the server knows what such a call reads, writes or sends.
const MCP Class = "mcp"

// Web is the class of calls that send a request to a site. The first element of Ask.Paths names the site: the host,
// with ":PORT" unless the port is the usual one of the URL's scheme. If it has a port, the second element is the host
// alone.
const Web Class = "web"

// Seen is the state of a file that the model last saw or made.
type Seen struct {
	Hash string // SHA-256 of the content, hex; "" when it knows that there is no file
	Data []byte // the content, nil when it is not kept
}

// StaleError: a call would overwrite a file that the user or another program changed after the model saw it. It is
// not the model's mistake; Reason describes the change.
type StaleError struct {
	Now    FileTouch // the file as it is now, without Source
	Reason string    // in words the model can act on, with the difference where it is small
	Shown  bool      // Reason holds the whole change, so the model knows the content now
}

func (e *StaleError) Error() string { return e.Reason }

// Offer selects the tools that a request describes to a model, by their names or older names. The zero value selects
// all that are not opt-in.
type Offer struct {
	Include []string // tools that the user wants offered
	Exclude []string // tools that the user has switched off: a call is refused too
	Wants   []string // tools with which the model does better
	Spares  []string // tools that the model does not need; a call runs
}

// Excludes reports whether the user has switched a tool off.
func (o Offer) Excludes(s Spec) bool { return o.Exclude != nil && named(o.Exclude, s) }

// Offers reports whether a request describes a tool to the model. The user's choice overrides what is known of the
// model.
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

// ContextError returns err if it is the context's, else nil: a stopped tool returns that error, and turns any other
// failure into words for the model.
func ContextError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// Input reads a call's parameters. null counts as missing; numbers and booleans
// may come as strings, as small models like to send them.
type Input struct {
	Tool   string // the tool that is called
	Object []byte
}

// ReadInput checks that a call's input is a JSON object.
func ReadInput(name string, raw json.RawMessage) (Input, error) {
	in := Input{Tool: name, Object: raw}
	if !esjson.Valid(raw) || esjson.TypeOf(raw) != esjson.TypeObject {
		return in, in.Wrong("the input must be a JSON object")
	}
	return in, nil
}

// Wrong returns an error for a mistake of the model in this call.
func (in Input) Wrong(format string, args ...any) error {
	return &InputError{Tool: in.Tool, Reason: fmt.Sprintf(format, args...)}
}

// Raw returns the first of the named parameters that is present and not null.
func (in Input) Raw(names ...string) ([]byte, bool) {
	for _, n := range names {
		if v, ok := esjson.Get(in.Object, n); ok && esjson.TypeOf(v) != esjson.TypeNull {
			return v, true
		}
	}
	return nil, false
}

// Text returns the first of the named parameters that is present, if it is a string.
func (in Input) Text(names ...string) (string, bool) {
	v, ok := in.Raw(names...)
	if !ok || esjson.TypeOf(v) != esjson.TypeString {
		return "", false
	}
	s, err := esjson.Unquote(v)
	return s, err == nil
}

// Need returns a required text, which may be empty only if empty is true.
func (in Input) Need(empty bool, names ...string) (string, error) {
	s, ok := in.Text(names...)
	if !ok {
		return "", in.Wrong("the parameter %q is missing; give it as a string", names[0])
	}
	if s == "" && !empty {
		return "", in.Wrong("the parameter %q is empty", names[0])
	}
	return s, nil
}

// Optional returns a parameter that may be missing; any value but a string is a mistake.
func (in Input) Optional(name string) (string, error) {
	s, ok := in.Text(name)
	if _, given := in.Raw(name); given && !ok {
		return "", in.Wrong("the parameter %q must be a string", name)
	}
	return s, nil
}

// Number returns a parameter that is a number, without its fraction; other if it is missing.
func (in Input) Number(other int, names ...string) (int, error) {
	f, err := in.float(float64(other), names)
	return int(f), err
}

// Whole returns a parameter that is a whole number; other if it is missing.
func (in Input) Whole(other int64, names ...string) (int64, error) {
	f, err := in.float(float64(other), names)
	if err == nil && f != math.Trunc(f) {
		err = in.Wrong("the parameter %q must be a whole number", names[0])
	}
	return int64(f), err
}

func (in Input) float(other float64, names []string) (float64, error) {
	v, ok := in.Raw(names...)
	if !ok {
		return other, nil
	}
	s := string(v)
	if esjson.TypeOf(v) == esjson.TypeString {
		s, _ = esjson.Unquote(v)
		if s = strings.TrimSpace(s); s == "" || s == "null" {
			return other, nil
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 1e15 {
		return 0, in.Wrong("the parameter %q must be a whole number, not %s", names[0], s)
	}
	return f, nil
}

// Boolean returns a parameter that is true or false; other if it is missing.
func (in Input) Boolean(other bool, names ...string) (bool, error) {
	v, ok := in.Raw(names...)
	if !ok {
		return other, nil
	}
	switch strings.ToLower(strings.Trim(string(v), `" `)) {
	case "true", "1", "yes":
		return true, nil
	case "false", "0", "no":
		return false, nil
	}
	return false, in.Wrong("the parameter %q must be true or false", names[0])
}

const (
	// markBlanks is the number of consecutive blanks or line breaks at which Visible writes their count instead.
	markBlanks = 10
	markBreaks = 4
)

// Visible returns a command so that a person sees what runs: between « and » it names each character outside
// printable ASCII, and counts long runs of blanks and of empty lines. A command cannot write such a mark itself:
// Visible would name its «.
func Visible(command string) string {
	var out strings.Builder
	out.Grow(len(command))
	for s := command; s != ""; {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, "«byte 0x%02X»", s[0])
		case r == ' ' || r == '\n' || r == '\t':
			n = blank(&out, s, r)
		case r > ' ' && r < 0x7f:
			out.WriteRune(r)
		default:
			n = foreign(&out, s)
		}
		s = s[n:]
	}
	return out.String()
}

// blank writes the run of one blank character at the beginning of s, and returns its length.
func blank(out *strings.Builder, s string, r rune) int {
	n := len(s) - len(strings.TrimLeft(s, string(r)))
	switch {
	case r == '\t' && n == 1:
		out.WriteString("«tab»")
	case r == '\t':
		fmt.Fprintf(out, "«%d tabs»", n)
	case r == ' ' && n >= markBlanks:
		fmt.Fprintf(out, "«%d blanks»", n)
	case r == '\n' && n >= markBreaks:
		fmt.Fprintf(out, "\n«%d empty lines»\n", n-1)
	default:
		out.WriteString(s[:n])
	}
	return n
}

// foreign writes the run of non-ASCII or control characters at the beginning of s: first those that a terminal shows,
// then the names of all. It returns the run's length.
func foreign(out *strings.Builder, s string) int {
	var shown, names strings.Builder
	end := 0
	for end < len(s) {
		r, n := utf8.DecodeRuneInString(s[end:])
		if r == utf8.RuneError && n == 1 || r >= ' ' && r < 0x7f || r == '\n' || r == '\t' {
			break
		}
		if r > 0x9f && unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.IsMark(r) && !rightToLeft(r) {
			shown.WriteRune(r)
		}
		fmt.Fprintf(&names, " U+%04X", r)
		end += n
	}
	out.WriteString("«" + strings.TrimPrefix(shown.String()+names.String(), " ") + "»")
	return end
}

// rightToLeft reports whether a terminal may show the neighbours of r in another order.
func rightToLeft(r rune) bool {
	return r >= 0x590 && r <= 0x8ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff ||
		r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}

// SafeName returns a file name in a form that is safe in lines of text, for the model and for a person. It quotes a
// name with line ends, escape sequences, characters that change the direction of text or bytes that are not UTF-8:
// such a name could look like other lines, or control the terminal on which a person decides.
func SafeName(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, misleading) {
		return name
	}
	return strconv.Quote(name)
}

// misleading reports whether a character controls a terminal or changes the direction of text.
func misleading(r rune) bool {
	return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Bidi_Control, r)
}

// OneLine makes text from a model fit for Ask.Title, the line by which a person decides. It returns the first line
// that is not empty, with U+FFFD in place of characters that control a terminal or change the direction of text.
func OneLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(s, "\r\n"), "\n")
	return strings.Map(func(r rune) rune {
		if misleading(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(strings.TrimRight(line, "\r"), "\uFFFD"))
}
