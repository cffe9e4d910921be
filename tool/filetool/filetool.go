// Package filetool holds the tools that read, write, list and search files:
// read_file, write_to_file, apply_diff, apply_patch, list_files and search_files, and
// the three that histories of other programs call: edit, edit_file and search_replace.
//
// Names, parameters and result texts are Roo's, older names and input shapes are
// understood. Reading tools may run again after a crash. Writing tools replace a
// file in one step and can find out afterwards whether they did (see tool.Inspector). A
// patch of several files replaces all or none; only a kill leaves a part, and then it
// is known which.
//
// Line ends, a byte order mark, the encoding and mode of a file, and the bytes of lines
// that stay are the file's and not the model's: they survive, also where the model gives
// others. A file that is not UTF-8 is UTF-16 by its byte order mark, or one byte a
// character, taken for Windows-1252. A character that this cannot hold turns a file that
// is written whole into UTF-8, which the question and the result mention; a change of some
// of its lines is refused.
//
// A plan to write remembers the content it was made for. If the file is another
// one when the plan runs, nothing is written and the result gives the reason.
//
// Names that hold line ends, control characters or bytes that are no UTF-8 are
// quoted wherever they are shown; one answer of read_file holds at most a megabyte
// of a file and names the line to continue from.
//
// Limits: files of more than MaxEdit bytes are not edited, indentation mode does
// not read files over MaxEdit, images over MaxImage are only named. Text in yet other
// encodings (UTF-8 with stray bytes, UTF-16 without its mark or over MaxEdit) is shown
// with replacement characters or not at all, and not changed by lines. search_files
// looks for UTF-8. Notebooks are shown as the text of their cells.
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

// Sizes in bytes.
const (
	MaxEdit  = 32 << 20 // largest file that is changed or read as a whole
	MaxImage = 5 << 20  // largest image that is shown
)

// All gives every tool of this package, in the order they are offered.
func All() []tool.Tool {
	return []tool.Tool{ApplyDiff(), ApplyPatch(), ListFiles(), ReadFile(), SearchFiles(), WriteToFile(), Edit(), EditFile(),
		SearchReplace()}
}

// What a touch is recorded as.
const (
	readSource   = "read_tool"
	editedSource = "roo_edited"
	otherSource  = "user_edited"
)

func touchOf(s workspace.FileState, source string) tool.FileTouch {
	return tool.FileTouch{FileState: s, Source: source}
}

// refusal is why a call cannot be planned, in words for the model: its mistake, or what is wrong with a file.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// reading makes a tool whose planning may end in a refusal.
func reading(s tool.Spec, plan func(context.Context, tool.Env, tool.Input) (tool.Plan, error)) tool.Tool {
	return tool.Make(s, func(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
		p, err := plan(ctx, env, in)
		return p, mistake(in, err)
	})
}

func mistake(in tool.Input, err error) error {
	var why refusal
	if errors.As(err, &why) {
		return in.Wrong("%s", why)
	}
	return err
}

// writing is a tool that writes, and finds out later whether it did.
type writing struct {
	tool.Tool
	inspect func(ctx context.Context, env tool.Env, in tool.Input, before map[string]string) (tool.Finding, error)
}

// Inspect implements tool.Inspector.
func (w writing) Inspect(ctx context.Context, env tool.Env, raw json.RawMessage, before map[string]string) (tool.Finding, error) {
	in, err := tool.ReadInput(w.Spec().Name, raw)
	if err != nil {
		return tool.Unclear, err
	}
	found, err := w.inspect(ctx, env, in, before)
	return found, mistake(in, err)
}

// resolve judges a path; one that no file can have is refused.
func resolve(env tool.Env, path string) (workspace.Path, error) {
	p, err := env.Workspace.Resolve(path)
	if errors.Is(err, workspace.ErrPath) {
		return p, refusal(err.Error())
	}
	return p, err
}

// denied is the result for a path that .rooignore hides.
func denied(path string) tool.Result {
	return tool.Result{IsError: true, Text: string(esjson.ObjectOf("status", "error", "type", "access_denied",
		"message", "Access blocked by .rooignore", "path", path,
		"suggestion", "Go on without this file, or ask the user to change .rooignore."))}
}

func failed(format string, args ...any) tool.Result {
	return tool.Result{Text: "Error: " + fmt.Sprintf(format, args...), IsError: true}
}

// explain refuses for what is wrong with a file, or returns an error that is not about the file.
func explain(p workspace.Path, err error) error {
	name := tool.SafeName(p.Readable)
	var large *workspace.TooLargeError
	switch {
	case tool.ContextError(err) != nil:
		return err
	case errors.Is(err, fs.ErrNotExist):
		return refuse("%s does not exist. Use list_files to see what is there.", name)
	case errors.Is(err, fs.ErrPermission):
		return refuse("%s may not be opened: permission denied.", name)
	case errors.Is(err, workspace.ErrNotRegular):
		return refuse("%s is not a file. If it is a folder, use list_files.", name)
	case errors.As(err, &large):
		return refusal(large.Error())
	}
	return refuse("%s cannot be read: %v", name, err)
}

// asks is the question for a call about files.
func asks(name string, paths ...workspace.Path) tool.Ask {
	a := tool.Ask{Kind: "tool", Tool: name}
	var names []string
	for _, p := range paths {
		names = append(names, p.Readable)
		a.Paths = append(a.Paths, p.RulePaths()...)
		a.Outside = a.Outside || p.Outside
		a.LinkedOutside = a.LinkedOutside || p.LinkedOutside
		a.Protected = a.Protected || p.Protected
		a.Ignored = a.Ignored || p.Ignored
	}
	a.Title = name + " " + tool.SafeNames(names)
	return a
}

// schema builds a JSON schema in a fixed key order, so that requests keep the
// same bytes. Properties come as name, JSON pairs.
func schema(required []string, properties ...string) json.RawMessage {
	var props esjson.Object
	for i := 0; i < len(properties); i += 2 {
		props.Raw(properties[i], []byte(properties[i+1]))
	}
	return esjson.ObjectOf("type", "object", "properties", props.Bytes(), "required", esjson.Strings(required),
		"additionalProperties", false)
}

func property(kind, description string) string {
	if kind[0] != '[' {
		kind = string(esjson.Quote(nil, kind))
	}
	return string(esjson.ObjectOf("type", []byte(kind), "description", description))
}
