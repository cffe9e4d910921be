package filetool

import (
	"context"
	"regexp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/search"
)

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
	Class:  tool.Read,
	Replay: tool.Again,
}

func planSearch(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
	path, err := in.Need(false, "path", "dir_path", "directory")
	if err != nil {
		return nil, err
	}
	pattern, err := in.Need(false, "regex", "pattern")
	if err != nil {
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
	var o esjson.Object
	o.String("tool", "searchFiles")
	o.String("path", p.Readable)
	o.String("regex", pattern)
	if glob != "" {
		o.String("filePattern", glob)
	}
	return planFolder(ask, p, &o, func() (string, error) {
		return search.Files(ctx, env.Workspace, p.Real, re, files)
	})
}
