package filetool

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/search"
	"github.com/roost-dev/roost/workspace"
)

// ListFiles gives the tool list_files. Folders of build products and of
// packages are named and not entered, hidden folders neither; .gitignore counts.
func ListFiles() tool.Tool { return reading(listFilesSpec, planList) }

// listFilesSpec is built once: every turn needs it.
var listFilesSpec = tool.Spec{
	Name: "list_files",
	Description: "List the files and folders of a folder. Up to 200 entries are shown; folders end in \"/\". Use it to find " +
		"your way, not to check whether a file that you just wrote is there.",
	Schema: schema([]string{"path", "recursive"},
		"path", property("string", "Folder to list, relative to the workspace."),
		"recursive", property("boolean", "true lists everything below the folder, false only what is directly in it.")),
	Class: tool.Read, Replay: tool.Again,
}

func planList(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
	path, noPath := in.Need(false, "path", "dir_path", "directory")
	recursive, noBool := in.Boolean(false, "recursive")
	p, bad := resolve(env, path)
	if err := cmp.Or(noPath, noBool, bad); err != nil {
		return nil, err
	}
	kind := "listFilesTopLevel"
	if recursive {
		kind = "listFilesRecursive"
	}
	row := []any{"tool", kind, "path", p.Readable}
	return planFolder(asks(in.Tool, p), p, row, func() (string, error) {
		return search.List(ctx, env.Workspace, p.Real, recursive)
	})
}

// planFolder goes through a folder. The row of the call is complete with what it finds.
func planFolder(ask tool.Ask, p workspace.Path, row []any, find func() (string, error)) (tool.Plan, error) {
	ask.Protected = false // it is only looked at
	k := tool.Known{Of: ask}
	found := ""
	if p.Ignored {
		k.Result = denied(p.Readable)
	} else if text, err := find(); err == nil {
		found = text
		k.Result.Text = text
	} else if ctxErr := tool.ContextError(err); ctxErr != nil {
		return nil, ctxErr
	} else {
		k.Result = failed("%s", explainFolder(p, err))
	}
	k.Of.Text = string(esjson.ObjectOf(append(row, "isOutsideWorkspace", p.Outside, "content", found)...))
	return k, nil
}

func explainFolder(p workspace.Path, err error) string {
	name := tool.SafeName(p.Readable)
	info, statErr := os.Stat(p.Real)
	switch {
	case os.IsNotExist(statErr):
		return fmt.Sprintf("the folder %s does not exist.", name)
	case statErr == nil && !info.IsDir():
		return fmt.Sprintf("%s is a file, not a folder. Use read_file to see it.", name)
	}
	return fmt.Sprintf("the folder %s cannot be listed: %v", name, err)
}

// SearchFiles gives the tool search_files. Patterns are RE2, which Rust's syntax
// is nearly the same as; line by line, letter case counts. Hidden files, what
// .gitignore and .rooignore hide and binary files are not searched, links not
// followed.
func SearchFiles() tool.Tool { return reading(searchFilesSpec, planSearch) }

// searchFilesSpec is built once: every turn needs it.
var searchFilesSpec = tool.Spec{
	Name: "search_files",
	Description: "Search the files of a folder and all its subfolders with a regular expression. Shows each matching line " +
		"with its number and one line before and after it, up to 300 places.",
	Schema: schema([]string{"path", "regex", "file_pattern"},
		"path", property("string", "Folder to search in, relative to the workspace. A single file works too."),
		"regex", property("string", "Regular expression (Rust/RE2 syntax, no look-around), matched line by line. Letter case "+
			"counts; start with (?i) to ignore it."),
		"file_pattern", property(`["string","null"]`, "Glob that file names must match, such as *.go or **/*.{ts,tsx}. null "+
			"means every file.")),
	Class: tool.Read, Replay: tool.Again,
}

func planSearch(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
	path, noPath := in.Need(false, "path", "dir_path", "directory")
	pattern, noPattern := in.Need(false, "regex", "pattern")
	if err := cmp.Or(noPath, noPattern); err != nil {
		return nil, err
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, refuse("the regex %q cannot be used: %v. Look-around and back-references do not exist "+
			"here; escape characters that are meant literally.", pattern, err)
	}
	glob, _ := in.Text("file_pattern", "filePattern", "include")
	files, err := search.CompileGlob(glob)
	if err != nil {
		return nil, refusal(err.Error())
	}
	p, err := resolve(env, path)
	if err != nil {
		return nil, err
	}
	ask := asks(in.Tool, p)
	ask.Title += " /" + tool.SafeName(pattern) + "/"
	row := []any{"tool", "searchFiles", "path", p.Readable, "regex", pattern, "filePattern", esjson.Given(glob)}
	return planFolder(ask, p, row, func() (string, error) {
		return search.Files(ctx, env.Workspace, p.Real, re, files)
	})
}
