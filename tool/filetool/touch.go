package filetool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// What a touch is recorded as.
const (
	readSource   = "read_tool"
	editedSource = "roo_edited"
	otherSource  = "user_edited"
)

func touchOf(s workspace.FileState, source string) tool.FileTouch {
	return tool.FileTouch{Path: s.Path, Source: source, Hash: s.Hash, Size: s.Size, MTime: s.MTime, CTime: s.CTime,
		Inode: s.Inode, Device: s.Device}
}

// resolve judges a path; one that no file can have is the model's mistake.
func (in input) resolve(env tool.Env, path string) (workspace.Path, error) {
	p, err := env.Workspace.Resolve(path)
	if errors.Is(err, workspace.ErrPath) {
		return p, in.wrong(err.Error())
	}
	return p, err
}

// denied is the result for a path that .rooignore hides.
func denied(path string) tool.Result {
	var o esjson.Object
	o.String("status", "error")
	o.String("type", "access_denied")
	o.String("message", "Access blocked by .rooignore")
	o.String("path", path)
	o.String("suggestion", "Go on without this file, or ask the user to change .rooignore.")
	return tool.Result{Text: string(o.Bytes()), IsError: true}
}

func failed(format string, args ...any) tool.Result {
	return tool.Result{Text: "Error: " + fmt.Sprintf(format, args...), IsError: true}
}

// explain describes for the model what is wrong with a file, or returns an
// error that is not about the file.
func explain(p workspace.Path, err error) (string, error) {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "", err
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("%s does not exist. Use list_files to see what is there.", tool.SafeName(p.Readable)), nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("%s may not be opened: permission denied.", tool.SafeName(p.Readable)), nil
	case errors.Is(err, workspace.ErrNotRegular):
		return fmt.Sprintf("%s is not a file. If it is a folder, use list_files.", tool.SafeName(p.Readable)), nil
	}
	var large *workspace.TooLargeError
	if errors.As(err, &large) {
		return large.Error(), nil
	}
	return fmt.Sprintf("%s cannot be read: %v", tool.SafeName(p.Readable), err), nil
}

// done is a plan whose result is known: a refusal, or what was read to be able to
// ask.
type done struct {
	ask    tool.Ask
	result tool.Result
}

func (d *done) Ask() tool.Ask { return d.ask }

func (d *done) Run(ctx context.Context, _ tool.Output) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	return d.result, nil
}

// schema builds a JSON schema in a fixed key order, so that requests keep the
// same bytes. Properties come as name, JSON pairs.
func schema(required []string, properties ...string) json.RawMessage {
	var props, o esjson.Object
	for i := 0; i < len(properties); i += 2 {
		props.Raw(properties[i], []byte(properties[i+1]))
	}
	names := []byte{'['}
	for i, r := range required {
		if i > 0 {
			names = append(names, ',')
		}
		names = esjson.Quote(names, r)
	}
	o.String("type", "object")
	o.Raw("properties", props.Bytes())
	o.Raw("required", append(names, ']'))
	o.Bool("additionalProperties", false)
	return o.Bytes()
}

func property(kind, description string) string {
	var o esjson.Object
	if kind[0] == '[' {
		o.Raw("type", []byte(kind))
	} else {
		o.String("type", kind)
	}
	o.String("description", description)
	return string(o.Bytes())
}
