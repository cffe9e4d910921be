// Package historytool holds the tools that look back: read_command_output reads the
// kept output of an earlier command of the task, list_tasks lists other tasks.
//
// Both only read, and neither knows where the data lies: the output comes through tool.Env, the tasks through a
// Lister. Output is shown in pieces of at most MaxPiece bytes that end between characters; a search reads all of it,
// line by line, in bounded memory.
package historytool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/linetext"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/terminal"
)

// ReadOutputName is the name of the tool that reads a command's kept output.
const ReadOutputName = "read_command_output"

// Sizes of one answer in bytes.
const (
	Piece    = 40 << 10 // when the call sets no size
	MaxPiece = 1 << 20
	maxLine  = 64 << 10 // of a line that is searched and shown
)

// ReadOutput returns read_command_output.
func ReadOutput() tool.Tool { return tool.Make(readOutputSpec, planOutput) }

// readOutputSpec is built once: every turn needs it.
var readOutputSpec = tool.Spec{
	Name: ReadOutputName,
	Description: "Read more of the output of an earlier command whose result shows only a part of it and names an artifact id. " +
		"Either a piece of it, by offset and limit in bytes, or the lines that match a search.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"artifact_id":{"type":"string","description":"As the command's result names it, e.g. cmd-1706119234567.txt"},` +
		`"search":{"type":["string","null"],"description":"Show only lines that match this regular expression, in upper or lower case"},` +
		`"offset":{"type":["integer","null"],"description":"First byte to read, from 0"},` +
		`"limit":{"type":["integer","null"],"description":"How many bytes at most; 40960 if not given"}` +
		`},"required":["artifact_id"],"additionalProperties":false}`),
	Class: tool.Read, Replay: tool.Again,
}

var artifactID = lazyregexp.New(`^cmd-[0-9]+\.txt$`)

func planOutput(_ context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
	p := &outputPlan{env: env}
	var wrong [4]error
	p.id, wrong[0] = in.Optional("artifact_id")
	p.search, wrong[1] = in.Optional("search")
	p.offset, wrong[2] = in.Whole(0, "offset")
	p.limit, wrong[3] = in.Whole(Piece, "limit")
	if err := errors.Join(wrong[:]...); err != nil {
		return nil, err
	}
	switch {
	case p.id == "":
		return nil, in.Wrong(`"artifact_id" is missing: give the name that the command's result tells`)
	case !artifactID().MatchString(p.id):
		return nil, in.Wrong("Invalid artifact_id format: %q. Expected format: cmd-{timestamp}.txt", p.id)
	case p.limit <= 0:
		return nil, in.Wrong(`"limit" must be at least 1`)
	}
	p.limit = min(p.limit, MaxPiece)
	if env.Kept != nil {
		p.kept, p.size, p.found = env.Kept(p.id)
	}
	if p.found && p.search == "" && (p.offset < 0 || p.offset > 0 && p.offset >= p.size) {
		return nil, in.Wrong("Invalid offset: %d. The output has %d bytes", p.offset, p.size)
	}
	return p, nil
}

type outputPlan struct {
	env           tool.Env
	id, search    string
	offset, limit int64
	kept          io.ReaderAt
	size          int64
	found         bool
}

func (p *outputPlan) Ask() tool.Ask {
	from, to := p.offset, min(p.offset+p.limit, p.size)
	if p.search != "" {
		from, to = 0, p.size
	}
	row := esjson.ObjectOf("tool", "readCommandOutput", "readStart", from, "readEnd", to, "totalBytes", p.size,
		"searchPattern", esjson.Given(p.search))
	title := ReadOutputName + " " + p.id
	if p.search != "" {
		title += " " + tool.OneLine(p.search)
	}
	return tool.Ask{Tool: ReadOutputName, Kind: "tool", Text: string(row), Title: title}
}

func (p *outputPlan) Run(ctx context.Context, _ tool.Output) (tool.Result, error) {
	if !p.found {
		return tool.Failed("Artifact not found: %q. An output is kept under an artifact id when a command's result shows "+
			"only a part of it.", p.id), nil
	}
	text, err := "", error(nil)
	if p.search != "" {
		text, err = p.find(ctx)
	} else {
		text, err = p.piece()
	}
	return tool.Result{Text: text}, err
}

// piece reads one piece. It ends between characters, so that the next one begins at a character.
func (p *outputPlan) piece() (string, error) {
	data := make([]byte, min(p.limit, p.size-p.offset))
	n, err := p.kept.ReadAt(data, p.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	data = data[:n]
	from, to := p.offset, p.offset+int64(n)
	if to < p.size {
		if whole := terminal.WholeEnd(data); len(whole) > 0 {
			data, to = whole, from+int64(len(whole))
		}
	}
	first := 1
	if from > 0 {
		if first, err = p.linesBefore(from); err != nil {
			return "", err
		}
	}
	state := "COMPLETE"
	if to < p.size {
		state = "TRUNCATED"
	}
	lines := strings.Split(strings.ToValidUTF8(string(data), "\uFFFD"), "\n")
	return fmt.Sprintf("[Command Output: %s]\nTotal size: %s | Showing bytes %d-%d | %s\n%s",
		p.id, terminal.Size(p.size), from, to, state, terminal.Number(lines, first)), nil
}

// linesBefore returns the number of the line that contains an offset.
func (p *outputPlan) linesBefore(offset int64) (int, error) {
	n, buf := 1, make([]byte, 64<<10)
	r := io.NewSectionReader(p.kept, 0, offset)
	for {
		k, err := r.Read(buf)
		n += bytes.Count(buf[:k], []byte{'\n'})
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// find returns the matching lines, as many as fit.
func (p *outputPlan) find(ctx context.Context) (string, error) {
	pattern, err := regexp.Compile("(?i)" + p.search)
	if err != nil {
		pattern = regexp.MustCompile("(?i)" + regexp.QuoteMeta(p.search))
	}
	var shown []string
	size, total, number, full := 0, 0, 0, false
	whole := workspace.NewContextReader(ctx, io.NewSectionReader(p.kept, 0, p.size))
	for raw, err := range linetext.Lines(whole, maxLine) {
		if err != nil {
			return "", err
		}
		line := strings.TrimRight(strings.ToValidUTF8(string(raw), "\uFFFD"), "\r\n")
		number++
		if !pattern.MatchString(line) {
			continue
		}
		total++
		line = fmt.Sprintf("%5d | %s", number, line)
		if full = full || size+len(line) > int(p.limit) && len(shown) > 0; !full {
			size += len(line) + 1
			shown = append(shown, line)
		}
	}
	head := fmt.Sprintf("[Command Output: %s] (search: %q)\n", p.id, p.search)
	if total == 0 {
		return head + "Total size: " + terminal.Size(p.size) + "\n\nNo matches found for the search pattern.", nil
	}
	return head + fmt.Sprintf("Total matches: %d | Showing first %d\n\n", total, len(shown)) + strings.Join(shown, "\n"), nil
}

// outputFolder is the folder, inside the task's folder, in which Roo keeps the whole outputs of commands.
const outputFolder = "command-output"

// ForeignOutputs finds the outputs that another program kept in a task's folder, by artifact name, for tool.Env.Kept.
// It looks up only valid artifact names; a link, or anything but a plain file, counts as missing. It opens the file
// for each read: no caller reports that a call is done with it, and Roo removes these files when its window closes
// the task.
func ForeignOutputs(taskFolder string) func(artifact string) (io.ReaderAt, int64, bool) {
	return func(artifact string) (io.ReaderAt, int64, bool) {
		if taskFolder == "" || !artifactID().MatchString(artifact) {
			return nil, 0, false
		}
		f := foreignFile{taskFolder, path.Join(outputFolder, artifact)}
		file, info, err := f.open()
		if err != nil {
			return nil, 0, false
		}
		file.Close()
		return f, info.Size(), true
	}
}

type foreignFile struct{ folder, name string }

var errNoOutput = errors.New("not a file of its own")

// open opens the file inside the folder only, wherever a link may lead.
func (f foreignFile) open() (*os.File, os.FileInfo, error) {
	root, err := inputfile.OpenDir(f.folder)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	for _, name := range []string{path.Dir(f.name), f.name} {
		if info, err := root.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, nil, fmt.Errorf("%s: %w", name, errNoOutput)
		}
	}
	return inputfile.OpenIn(root, f.name)
}

func (f foreignFile) ReadAt(p []byte, off int64) (int, error) {
	file, _, err := f.open()
	if err != nil {
		return 0, fmt.Errorf("read the kept output: %w", err)
	}
	defer file.Close()
	return file.ReadAt(p, off)
}

// ListTasksName is the name of the tool that lists tasks.
const ListTasksName = "list_tasks"

// Lister lists tasks, newest first, and reports whether there are more.
type Lister func(ctx context.Context, q api.TaskFilter) (list []api.Summary, more bool, err error)

// ListTasks returns list_tasks for a run of the task self.
func ListTasks(self string, l Lister) tool.Tool {
	return tool.Make(listTasksSpec, func(_ context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
		return planTasks(self, l, env, in)
	})
}

// Limits of a list.
const (
	defaultTasks = 20
	maxTasks     = 200
	maxTitle     = 200 // characters
)

// listTasksSpec is built once: every turn needs it.
var listTasksSpec = tool.Spec{
	Name: ListTasksName,
	Description: "List earlier tasks of this workspace, newest first: id, status, when, cost and what they were about. " +
		"Use it when the user speaks of earlier work. Tasks of other workspaces need the user's consent.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"query":{"type":["string","null"],"description":"Words that the title or the id holds"},` +
		`"status":{"type":["string","null"],"enum":[null,` + string(esjson.Strings(api.Statuses)[1:]) + `,"description":"Only tasks in this state"},` +
		`"all_workspaces":{"type":["boolean","null"],"description":"Also tasks of other workspaces"},` +
		`"limit":{"type":["integer","null"],"description":"How many at most; 20 if not given, 200 at most"}` +
		`},"required":[],"additionalProperties":false}`),
	Class: tool.Read, Replay: tool.Again,
}

func planTasks(self string, l Lister, env tool.Env, in tool.Input) (tool.Plan, error) {
	var q api.TaskFilter
	var wrong [2]error
	q.Words, wrong[0] = in.Optional("query")
	q.Status, wrong[1] = in.Optional("status")
	limit, noNumber := in.Whole(defaultTasks, "limit")
	if err := errors.Join(wrong[0], wrong[1], noNumber); err != nil {
		return nil, err
	}
	all, _ := in.Boolean(false, "all_workspaces")
	if limit < 1 {
		return nil, in.Wrong(`"limit" must be at least 1`)
	}
	q.Limit = int(min(limit, maxTasks))
	if !all {
		if env.Workspace == nil {
			return nil, in.Wrong(`there is no workspace: set "all_workspaces"`)
		}
		q.Workspace = env.Workspace.Root()
	}
	return tool.Prepared{Of: askTasks(q, all), Do: func(ctx context.Context, _ tool.Output) (tool.Result, error) {
		return listTasks(ctx, self, l, q)
	}}, nil
}

func askTasks(q api.TaskFilter, all bool) tool.Ask {
	title := ListTasksName
	if q.Words != "" {
		title += " " + tool.OneLine(q.Words)
	}
	if q.Status != "" {
		title += " (" + tool.OneLine(q.Status) + ")"
	}
	if all {
		title += " of all workspaces"
	}
	row := esjson.ObjectOf("tool", "listTasks", "query", esjson.Given(q.Words),
		"status", esjson.Given(q.Status),
		"isOutsideWorkspace", all)
	return tool.Ask{Tool: ListTasksName, Kind: "tool", Text: string(row), Title: title, Outside: all}
}

func listTasks(ctx context.Context, self string, l Lister, q api.TaskFilter) (tool.Result, error) {
	list, more, err := l(ctx, q)
	if err != nil {
		return tool.Result{}, err
	}
	if len(list) == 0 {
		return tool.Result{Text: "No tasks found."}, nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d tasks, newest first:\n", len(list))
	for _, t := range list {
		fmt.Fprintf(&b, "\n- %s | %s", tool.OneLine(t.ID), t.Status)
		if t.UpdatedAt != nil {
			fmt.Fprintf(&b, " | %s", *t.UpdatedAt)
		}
		if t.Mode != "" {
			fmt.Fprintf(&b, " | mode %s", tool.OneLine(t.Mode))
		}
		if t.Usage.Cost != nil {
			fmt.Fprintf(&b, " | $%s", t.Usage.Cost)
		}
		if t.ID == self {
			b.WriteString(" | this task")
		}
		if q.Workspace == "" && t.Workspace != "" {
			fmt.Fprintf(&b, "\n  in %s", tool.OneLine(t.Workspace))
		}
		fmt.Fprintf(&b, "\n  %s\n", title(t.Title))
	}
	if more {
		b.WriteString("\n(There are more: give a query, or a higher limit.)")
	}
	return tool.Result{Text: strings.TrimRight(b.String(), "\n")}, nil
}

// title returns a task's title as one line. The title comes from another task and may hold any text, so it is quoted.
func title(s string) string {
	r := []rune(tool.OneLine(strings.TrimSpace(s)))
	if len(r) > maxTitle {
		r = append(r[:maxTitle], '…')
	}
	return fmt.Sprintf("%q", string(r))
}
