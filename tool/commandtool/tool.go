// Package commandtool is execute_command: the tool that runs a command line.
//
// The command runs through package workspace/shell: no terminal, no stdin, a time limit, and nothing left behind when
// it ends. Two deviations from Roo: a time-out ends the command (Roo moves it to the background, where nobody owns it
// after a restart), and a zero time-out means that there is none.
//
// Memory is bounded for any output. Output up to the preview size becomes the result's text whole. Beyond it all raw
// bytes go to a file in Env.SpoolDir, which the caller takes over as Result.Full, and the text shows head and tail,
// cut at line ends where one is near. The text is cleaned for the model: colours and other escape sequences removed,
// overwritten lines resolved. The caller, who knows the secrets, masks them.
//
// The plan refuses a command that cannot run (a missing folder, a line over the system's limit) or would show a file
// that .rooignore hides, so that the user gets no question about it; Run judges the folder again when the command
// starts.
//
// A cancelled Run returns both a Result, with the output so far, and the context's cause as error.
package commandtool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/shell"
	"github.com/roost-dev/roost/workspace/terminal"
	"github.com/roost-dev/roost/workspace/usergit"
)

// Name is the tool's name.
const Name = "execute_command"

// maxPreview is the number of bytes of a long output that the model sees, head and tail together.
const maxPreview = 10 << 10

// maxLine is the longest command line in bytes: Linux accepts no longer argument, its final NUL included.
const maxLine = 128<<10 - 1

// New returns the tool.
func New() tool.Tool {
	spec := tool.Spec{Name: Name, Description: description, Schema: json.RawMessage(schema), Class: tool.Command, Replay: tool.Never}
	return tool.Make(spec, planCommand)
}

const schema = `{"type":"object","properties":{` +
	`"command":{"type":"string","description":"The command line, as for sh -c"},` +
	`"cwd":{"type":["string","null"],"description":"Folder to run it in, relative to the workspace or absolute; null for the workspace"},` +
	`"timeout":{"type":["number","null"],"description":"Seconds after which the command is ended; null for no limit of its own"}},` +
	`"required":["command","cwd","timeout"],"additionalProperties":false}`

const description = "Run a command line with sh -c in the user's workspace and return its exit code and output (stdout and " +
	"stderr together). " +
	"There is no terminal and no input: use flags that avoid prompts. When the shell exits, processes it left in the " +
	"background are ended too. " +
	"Long output is shown in part, and kept whole under an artifact id for read_command_output."

func planCommand(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
	line, ok := in.Text("command")
	if !ok || strings.TrimSpace(line) == "" {
		return nil, in.Wrong("\"command\" is missing: give the command line as a string")
	}
	if strings.ContainsRune(line, 0) {
		return nil, in.Wrong("\"command\" holds a NUL character, which no shell takes")
	}
	if len(line) > maxLine {
		return nil, in.Wrong("\"command\" has %d bytes, and %d is the most that can be passed: write it to a file and run that", len(line), maxLine)
	}
	dir, err := in.Optional("cwd")
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(dir) == "" {
		dir = "."
	}
	var limit time.Duration
	if _, given := in.Raw("timeout"); given {
		s, ok := esjson.GetFloat(in.Object, "timeout")
		if !ok || s < 0 || math.IsNaN(s) {
			return nil, in.Wrong("\"timeout\" must be a number of seconds, 0 or more, or null")
		}
		if s <= 1e9 { // 30 years or more are no limit
			limit = time.Duration(s * float64(time.Second))
		}
	}
	where, err := env.Workspace.Resolve(dir)
	if errors.Is(err, workspace.ErrPath) {
		return nil, in.Wrong("\"cwd\" cannot be used: %v", err)
	}
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", Name, err)
	}
	if why := notFolder(where); why != "" {
		return nil, in.Wrong("%s", why) // no question to the user about a command that cannot run
	}
	hidden, err := env.Workspace.BlockedWord(line)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", Name, err)
	}
	if hidden != "" {
		return nil, in.Wrong("the command would show %q, which %s hides. Go on without this file, or ask the user to change %[2]s.",
			hidden, workspace.IgnoreFile)
	}
	p := &plan{env: env, line: line, where: where, limit: limit}
	if strings.Contains(strings.NewReplacer("'", "", `"`, "").Replace(line), "git") { // a shell drops quotes, also in a name
		p.git = usergit.Judge(ctx, env.Workspace.Root(), where.Real)
	}
	return p, nil
}

// notFolder explains to the model why a command cannot run in a folder.
func notFolder(where workspace.Path) string {
	info, err := os.Stat(where.Real)
	switch {
	case err == nil && info.IsDir():
		return ""
	case err == nil || errors.Is(err, syscall.ENOTDIR):
		return fmt.Sprintf("\"cwd\" %s is not a folder", where.Readable)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("the \"cwd\" %s does not exist", where.Readable)
	}
	return fmt.Sprintf("\"cwd\" %s cannot be used: %v", where.Readable, err)
}

type plan struct {
	env   tool.Env
	line  string
	where workspace.Path
	limit time.Duration
	git   usergit.Standing
}

func (p *plan) Ask() tool.Ask {
	return tool.Ask{
		Tool: Name, Kind: "command", Text: p.line, Command: p.line, Dir: p.where.Real, Title: p.title(),
		Paths: []string{p.where.Abs}, Outside: p.where.Outside, Ignored: p.where.Ignored,
		Protected:     p.env.Workspace.ProtectedWord(p.line, p.where.Real) != "",
		LinkedOutside: p.env.Workspace.LinkedWord(p.line, p.where.Real) != "",
		Git:           p.git.Any, GitHooks: p.git.Hooks,
	}
}

// longLine is the longest one-line command, in characters, that is shown after the tool's name.
const longLine = 400

// title shows the whole command, and the folder where it is not the workspace. A command of several lines is shown
// below the tool's name, indented, so that none of its lines looks like a line by Roost.
func (p *plan) title() string {
	title := Name
	if root, err := p.env.Workspace.Resolve("."); err != nil || root.Real != p.where.Real {
		title += " «in " + tool.OneLine(p.where.Real) + "»"
	}
	shown := strings.TrimRight(tool.Visible(p.line), "\n")
	if len(shown) <= longLine && !strings.Contains(shown, "\n") {
		return title + " " + shown
	}
	const indent = "\n    "
	return title + indent + strings.ReplaceAll(shown, "\n", indent)
}

// Run runs the command. A failed command, or one that the time limit ended, is a result and no error; so is a missing
// folder, since the model can repair that.
func (p *plan) Run(ctx context.Context, out tool.Output) (tool.Result, error) {
	now, err := p.env.Workspace.Resolve(p.where.Given)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s: %w", Name, err)
	}
	why := notFolder(now)
	if now.Real != p.where.Real {
		why = fmt.Sprintf("\"cwd\" %s leads elsewhere than when the command was asked for", p.where.Readable)
	}
	if why != "" {
		return tool.Failed("nothing was run: %s.", why), nil
	}
	kept := &capture{dir: p.env.SpoolDir, limit: maxPreview}
	ran, err := shell.Run(ctx, shell.Command{
		Line: p.line, Dir: p.where.Real, Timeout: p.limit, Mark: p.env.Mark,
		Output: io.MultiWriter(kept, out),
		Started: func(proc shell.Process) {
			out.Started(proc)
			failpoint.Hit("tool.command.started")
		},
	})
	full, spoolErr := kept.close(err != nil)
	if err = cmp.Or(err, spoolErr); err != nil {
		return tool.Result{}, fmt.Errorf("%s: %w", Name, err)
	}
	res := tool.Result{Text: p.text(ran, kept, full), Full: full, Exit: &ran.Exit, TimedOut: ran.TimedOut}
	if ran.Cancelled {
		return res, context.Cause(ctx)
	}
	return res, nil
}

// text returns the result for the model. The first line has Roo's form.
func (p *plan) text(ran shell.Result, kept *capture, full *tool.Spool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Command executed in terminal within working directory '%s'. %s\n", p.where.Real, p.outcome(ran))
	for _, note := range notes(ran) {
		b.WriteString(note + "\n")
	}
	head, tail := kept.parts()
	if full == nil {
		return b.String() + "Output:\n" + clean(head)
	}
	fmt.Fprintf(&b, "Output (%s) persisted.", terminal.Size(full.Size))
	hint := ""
	if p.env.ArtifactID != nil {
		if id := p.env.ArtifactID(); id != "" {
			b.WriteString(" Artifact ID: " + id)
			hint = "\nThe rest can be read with read_command_output and this artifact id."
		}
	}
	left := full.Size - int64(len(head)) - int64(len(tail))
	fmt.Fprintf(&b, "\nOutput:\n%s\n[...%d bytes omitted...]\n%s%s", strings.TrimSuffix(clean(head), "\n"), left, clean(tail), hint)
	return b.String()
}

func (p *plan) outcome(ran shell.Result) string {
	switch {
	case ran.TimedOut:
		return fmt.Sprintf("It was ended after %v, its time limit. Exit code: %d", p.limit, ran.Exit)
	case ran.Cancelled:
		return fmt.Sprintf("The user cancelled it before it was done. Exit code: %d", ran.Exit)
	case ran.Signal != "":
		return fmt.Sprintf("A signal (%s) ended it. Exit code: %d", ran.Signal, ran.Exit)
	default:
		return fmt.Sprintf("Exit code: %d", ran.Exit)
	}
}

func notes(ran shell.Result) []string {
	var out []string
	if ran.Exit != 0 && !ran.TimedOut && !ran.Cancelled {
		out = append(out, "The command did not succeed: find out why before you continue.")
	}
	if len(ran.Ended) > 0 {
		out = append(out, "When the shell exited it left these running in the background; they were ended: "+list(ran.Ended)+".")
	}
	if len(ran.Survivors) > 0 {
		out = append(out, "These would not end and are still there: "+list(ran.Survivors)+".")
	}
	if ran.PipeHeld {
		out = append(out, "A process outside the command still holds its output; what it writes is not shown.")
	}
	return out
}

func list(ms []shell.Member) string {
	names := api.Each(ms[:min(len(ms), 5)], func(m shell.Member) string { return fmt.Sprintf("%s (%d)", m.Name, m.PID) })
	if more := len(ms) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// clean makes raw output readable: it removes escape sequences, resolves overwritten lines, and drops or replaces
// other control characters and invalid bytes.
func clean(raw []byte) string {
	s := strings.ToValidUTF8(string(raw), "\uFFFD")
	s = terminal.Plain(s)
	return terminal.FoldRepeats(terminal.Erase(terminal.Overwrite(s)))
}

// capture keeps the head and the tail of an output in memory and, once the output is longer than both together,
// writes all of it to a file.
type capture struct {
	dir   string
	limit int // head and tail together
	head  []byte
	tail  []byte // at least the part of the end that is shown
	size  int64
	file  *os.File
	err   error
}

// Write takes the next bytes. A full disk is an error: an output that cannot be
// kept must not look whole.
func (c *capture) Write(p []byte) (int, error) {
	if c.err == nil && c.file == nil && c.size+int64(len(p)) > int64(c.limit) {
		c.err = c.spill()
	}
	if c.err == nil && c.file != nil {
		_, err := c.file.Write(p)
		c.err = api.Failed(err, "keep output in %s", c.file.Name())
	}
	if c.err != nil {
		return 0, c.err
	}
	c.size += int64(len(p))
	n := len(p)
	if room := c.limit/2 - len(c.head); room > 0 {
		take := min(room, len(p))
		c.head = append(c.head, p[:take]...)
		p = p[take:]
	}
	c.tail = append(c.tail, p...)
	if len(c.tail) > 4*c.limit {
		c.tail = append(c.tail[:0], c.lastOfTail()...)
	}
	return n, nil
}

func (c *capture) lastOfTail() []byte { return c.tail[max(0, len(c.tail)-(c.limit-c.limit/2)):] }

// spill creates the file and writes to it what memory holds, which is everything so far.
func (c *capture) spill() error {
	f, err := os.CreateTemp(c.dir, "output-*.txt") // mode 0600
	if err != nil {
		return fmt.Errorf("keep long output in %s: %w", c.dir, err)
	}
	c.file = f
	_, err = f.Write(slices.Concat(c.head, c.tail))
	return api.Failed(err, "keep output in %s", f.Name())
}

// parts returns the kept beginning and end: all of a short output, and the ends of a long one.
func (c *capture) parts() (head, tail []byte) {
	if c.size <= int64(c.limit) { // memory holds everything
		return slices.Concat(c.head, c.tail), nil
	}
	return terminal.Ends(c.head, c.lastOfTail())
}

// close closes the file and returns it, nil when there is none. With discard, close removes the file.
func (c *capture) close(discard bool) (*tool.Spool, error) {
	if c.file == nil {
		return nil, nil
	}
	name := c.file.Name()
	err := c.err
	if err == nil {
		err = c.file.Sync() // before the commit of the result that names the file
	}
	err = errors.Join(err, c.file.Close())
	if err != nil || discard {
		return nil, errors.Join(err, os.Remove(name))
	}
	return &tool.Spool{Path: name, Size: c.size}, nil
}
