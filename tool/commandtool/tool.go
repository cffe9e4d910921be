package commandtool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/usergit"
)

// Name is the tool's name.
const Name = "execute_command"

// Sizes of a preview in bytes, head and tail together.
const (
	SmallPreview  = 5 << 10
	MediumPreview = 10 << 10
	LargePreview  = 20 << 10
)

// maxLine is the longest command line in bytes: Linux takes no longer single
// argument, the NUL at its end included.
const maxLine = 128<<10 - 1

// Options change what the tool does; the zero value is good.
type Options struct {
	PreviewBytes int // what the model sees of a long output; 0 = MediumPreview
}

// New returns the tool.
func New(o Options) tool.Tool {
	if o.PreviewBytes <= 0 {
		o.PreviewBytes = MediumPreview
	}
	spec := tool.Spec{Name: Name, Description: description, Schema: json.RawMessage(schema), Class: tool.Command, Replay: tool.Never}
	return tool.Make(spec, func(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
		return o.plan(ctx, env, in)
	})
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

func (o Options) plan(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
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
	dir := "."
	if _, given := in.Raw("cwd"); given {
		if dir, ok = in.Text("cwd"); !ok {
			return nil, in.Wrong("\"cwd\" must be a string or null")
		}
		if strings.TrimSpace(dir) == "" {
			dir = "."
		}
	}
	limit := time.Duration(env.CommandTimeoutMS) * time.Millisecond
	if _, given := in.Raw("timeout"); given {
		s, ok := esjson.GetFloat(in.Object, "timeout")
		if !ok || s < 0 || math.IsNaN(s) {
			return nil, in.Wrong("\"timeout\" must be a number of seconds, 0 or more, or null")
		}
		if d := seconds(s); d > 0 && (limit <= 0 || d < limit) {
			limit = d
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
	p := &plan{options: o, env: env, line: line, where: where, limit: limit}
	if strings.Contains(line, "git") {
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

func seconds(s float64) time.Duration {
	if s > 1e9 {
		return 0 // 30 years: no limit
	}
	return time.Duration(s * float64(time.Second))
}
