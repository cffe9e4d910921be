package filetool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/search"
)

// ListFiles gives the tool list_files. Folders of build products and of
// packages are named and not entered, hidden folders neither; .gitignore counts.
func ListFiles() tool.Tool { return listFiles{} }

type listFiles struct{}

// listFilesSpec is built once: every turn needs it.
var listFilesSpec = tool.Spec{
	Name: "list_files",
	Description: "List the files and folders of a folder. Up to 200 entries are shown; folders end in \"/\". Use it to find " +
		"your way, not to check whether a file that you just wrote is there.",
	Schema: schema([]string{"path", "recursive"},
		"path", property("string", "Folder to list, relative to the workspace."),
		"recursive", property("boolean", "true lists everything below the folder, false only what is directly in it.")),
	Class:  tool.Read,
	Replay: tool.Again,
}

func (listFiles) Spec() tool.Spec { return listFilesSpec }

func (l listFiles) Plan(ctx context.Context, env tool.Env, raw json.RawMessage) (tool.Plan, error) {
	in, err := parseInput("list_files", raw)
	if err != nil {
		return nil, err
	}
	path, err := in.need(false, "path", "dir_path", "directory")
	if err != nil {
		return nil, err
	}
	recursive, err := in.boolean(false, "recursive")
	if err != nil {
		return nil, err
	}
	p, err := in.resolve(env, path)
	if err != nil {
		return nil, err
	}
	kind := "listFilesTopLevel"
	if recursive {
		kind = "listFilesRecursive"
	}
	d := &done{ask: tool.Ask{Kind: "tool", Title: "list_files " + tool.SafeName(p.Readable), Paths: p.RulePaths(),
		Outside: p.Outside, Ignored: p.Ignored}}
	listing := ""
	if p.Ignored {
		d.result = denied(p.Readable)
	} else if listing, err = search.List(ctx, env.Workspace, p.Real, recursive); err == nil {
		d.result = tool.Result{Text: listing}
	} else {
		why, err := explainFolder(p.Readable, p.Real, err)
		if err != nil {
			return nil, err
		}
		d.result = failed("%s", why)
	}
	var o esjson.Object
	o.String("tool", kind)
	o.String("path", p.Readable)
	o.Bool("isOutsideWorkspace", p.Outside)
	o.String("content", listing)
	d.ask.Text = string(o.Bytes())
	return d, nil
}

func explainFolder(readable, real string, err error) (string, error) {
	readable = tool.SafeName(readable)
	if ctxErr := tool.ContextError(err); ctxErr != nil {
		return "", ctxErr
	}
	info, statErr := os.Stat(real)
	switch {
	case os.IsNotExist(statErr):
		return fmt.Sprintf("the folder %s does not exist.", readable), nil
	case statErr == nil && !info.IsDir():
		return fmt.Sprintf("%s is a file, not a folder. Use read_file to see it.", readable), nil
	}
	return fmt.Sprintf("the folder %s cannot be listed: %v", readable, err), nil
}
