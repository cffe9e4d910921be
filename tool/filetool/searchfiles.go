package filetool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/search"
)

// SearchFiles gives the tool search_files. Patterns are RE2, which Rust's syntax
// is nearly the same as; line by line, letter case counts. Hidden files, what
// .gitignore and .rooignore hide and binary files are not searched, links not
// followed.
func SearchFiles() tool.Tool { return searchFiles{} }

type searchFiles struct{}

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

func (searchFiles) Spec() tool.Spec { return searchFilesSpec }

func (searchFiles) Plan(ctx context.Context, env tool.Env, raw json.RawMessage) (tool.Plan, error) {
	in, err := parseInput("search_files", raw)
	if err != nil {
		return nil, err
	}
	path, err := in.need(false, "path", "dir_path", "directory")
	if err != nil {
		return nil, err
	}
	pattern, err := in.need(false, "regex", "pattern")
	if err != nil {
		return nil, err
	}
	glob, hasGlob := in.text("file_pattern", "filePattern", "include")
	hasGlob = hasGlob && glob != ""
	re, err := regexp.Compile(pattern)
	if err != nil {
		var bad *syntax.Error
		errors.As(err, &bad)
		return nil, in.wrong(fmt.Sprintf("the regex %q cannot be used: %v. Look-around and back-references do not exist "+
			"here; escape characters that are meant literally.", pattern, err))
	}
	files, err := search.CompileGlob(glob)
	if err != nil {
		return nil, in.wrong(err.Error())
	}
	p, err := in.resolve(env, path)
	if err != nil {
		return nil, err
	}
	d := &done{ask: tool.Ask{Kind: "tool", Title: "search_files " + tool.SafeName(p.Readable) + " /" +
		tool.SafeName(pattern) + "/", Paths: p.RulePaths(), Outside: p.Outside, Ignored: p.Ignored}}
	found := ""
	if p.Ignored {
		d.result = denied(p.Readable)
	} else if found, err = search.Files(ctx, env.Workspace, p.Real, re, files); err == nil {
		d.result = tool.Result{Text: found}
	} else {
		why, err := explainFolder(p.Readable, p.Real, err)
		if err != nil {
			return nil, err
		}
		d.result = failed("%s", why)
	}
	var o esjson.Object
	o.String("tool", "searchFiles")
	o.String("path", p.Readable)
	o.String("regex", pattern)
	if hasGlob {
		o.String("filePattern", glob)
	}
	o.Bool("isOutsideWorkspace", p.Outside)
	o.String("content", found)
	d.ask.Text = string(o.Bytes())
	return d, nil
}
