package filetool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/search"
	"github.com/roost-dev/roost/workspace"
)

// ReadFile returns the tool read_file.
func ReadFile() tool.Tool { return reading(readFileSpec, planRead) }

// readFileSpec is built once: every turn needs it.
var readFileSpec = tool.Spec{
	Name: "read_file",
	Description: "Read a text file or a notebook, or look at an image. Lines come with their numbers. Mode \"slice\" reads " +
		"up to limit lines from offset on. Mode \"indentation\" reads the whole block of code around anchor_line: use it when " +
		"you know a line, from a search or an error, and want the function or class it belongs to.",
	Schema: schema([]string{"path"},
		"path", property("string", "File to read, relative to the workspace."),
		"mode", `{"type":"string","enum":["slice","indentation"],"description":"How to choose lines; slice if not given."}`,
		"offset", property("integer", "First line to read, from 1. Slice mode."),
		"limit", property("integer", "How many lines at most; 2000 if not given."),
		"indentation", string(schema(nil,
			"anchor_line", property("integer", "A line, from 1, in the block that is wanted."),
			"max_levels", property("integer", "How many levels outwards; 0 for all."),
			"include_siblings", property("boolean", "Also read the other blocks at the outermost level."),
			"include_header", property("boolean", "Also read the comments above the block."),
			"max_lines", property("integer", "How many lines at most, beside limit.")))),
	Class: tool.Read, Replay: tool.Again,
}

func planRead(_ context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
	reqs, err := readRequests(in)
	if err != nil {
		return nil, err
	}
	plan := &readPlan{env: env, reqs: reqs}
	plan.paths, err = api.TryEach(reqs, func(r request) (workspace.Path, error) { return resolve(env, r.path) })
	if err != nil {
		return nil, err
	}
	ask := asks(in.Tool, plan.paths...)
	ask.Text = plan.askText()
	return tool.Prepared{Of: ask, Do: plan.run}, nil
}

type readPlan struct {
	env   tool.Env
	reqs  []request
	paths []workspace.Path
}

func (r *readPlan) askText() string {
	if len(r.reqs) == 1 {
		p := r.paths[0]
		line := any(nil)
		if n := r.reqs[0].first(); n > 0 {
			line = int64(n)
		}
		return string(esjson.ObjectOf("tool", "readFile", "path", p.Readable, "isOutsideWorkspace", p.Outside,
			"content", p.Abs,
			"reason", r.reqs[0].snippet(), "startLine", line))
	}
	var batch [][]byte
	for i, p := range r.paths {
		key, snippet := p.Readable, r.reqs[i].snippet()
		if snippet != "" {
			key += " (" + snippet + ")"
		}
		batch = append(batch, esjson.ObjectOf("path", p.Readable, "lineSnippet", snippet,
			"isOutsideWorkspace", p.Outside, "key", key,
			"content", p.Abs))
	}
	return string(esjson.ObjectOf("tool", "readFile", "batchFiles", esjson.List(batch)))
}

func (r *readPlan) run(ctx context.Context, _ tool.Output) (tool.Result, error) {
	if len(r.paths) == 1 && r.paths[0].Ignored {
		return denied(r.paths[0].Readable), nil
	}
	var res tool.Result
	var texts []string
	bad, size := 0, 0
	for i, p := range r.paths {
		// Judge the path again: a link in it may have changed since Plan.
		now, err := r.env.Workspace.Resolve(p.Given)
		if err != nil {
			return tool.Result{}, err
		}
		text := ""
		switch {
		case now.Ignored:
			err = refusal(denied(now.Readable).Text)
		case now.Outside && !p.Outside:
			err = refusal("the path now leads out of the workspace. Call the tool again.")
		case size >= maxShown:
			err = refusal("it was not read: the answer is full. Read it in another call.")
		default:
			text, err = r.read(ctx, r.reqs[i], now, &res)
		}
		if why, ok := errors.AsType[refusal](err); ok {
			text = "Error: " + string(why)
			bad++
		} else if err != nil {
			return tool.Result{}, err
		}
		texts = append(texts, "File: "+tool.SafeName(p.Readable)+"\n"+text)
		size += len(text)
	}
	res.Text = strings.Join(texts, "\n\n---\n\n")
	res.IsError = bad == len(r.paths)
	return res, nil
}

func (r *readPlan) read(ctx context.Context, req request, p workspace.Path, res *tool.Result) (string, error) {
	c, err := openFile(ctx, r.env.Workspace, p)
	if err != nil {
		return "", err
	}
	defer c.file.Close()
	name := tool.SafeName(p.Readable)
	switch {
	case c.media != "" && c.state.Size > MaxImage:
		return fmt.Sprintf("Note: %s is an image of %d bytes; images over %d bytes are not shown.", name, c.state.Size, MaxImage), nil
	case c.media != "":
		block, state, err := c.picture(ctx, r.env.Workspace)
		if err != nil {
			return "", err
		}
		res.Images = append(res.Images, block)
		res.Files = append(res.Files, touchOf(state, readSource))
		return fmt.Sprintf("Note: image (%s, %d bytes) follows.", c.media, state.Size), nil
	case c.text == nil && c.wide:
		return "", refuse("%s begins like UTF-16 and is none; it cannot be shown as text.", name)
	case c.text == nil:
		return "", refuse("%s is a binary file of %d bytes and cannot be shown as text. Use a command that "+
			"understands its format.", name, c.state.Size)
	case len(req.ranges) > maxRanges:
		return "", refuse("%d line ranges of %s are too many. Read at most %d at once.", len(req.ranges), name, maxRanges)
	case (req.indentation || len(req.ranges) > 1) && c.state.Size > MaxEdit:
		return "", refuse("%s has %d bytes, too many to be read as a whole. Read parts of it with offset and "+
			"limit.", name, c.state.Size)
	}
	text, err := req.choose(ctx, c.text)
	if err != nil {
		return "", explain(p, err)
	}
	res.Files = append(res.Files, c.touch(readSource))
	text, odd := shownText(text)
	return c.note + odd + text, nil
}

// choose returns the wanted lines of a text.
func (r request) choose(ctx context.Context, body io.Reader) (string, error) {
	switch {
	case !r.indentation && len(r.ranges) == 0:
		e, err := sliceLines(body, r.offset-1, r.limit)
		return e.toolText(false, r.offset, r.limit), err
	case !r.indentation && len(r.ranges) == 1:
		return sliceRange(body, r.ranges[0])
	}
	all, err := io.ReadAll(body)
	if err != nil {
		return "", err
	}
	if r.indentation {
		return indentLines(string(all), r.options).toolText(true, r.offset, r.limit), nil
	}
	var parts []string
	size := 0
	for _, g := range r.ranges {
		text := fmt.Sprintf("[... lines %d-%d are not shown: the answer is full]", g[0], g[1])
		if size < maxShown {
			if text, err = sliceRange(workspace.NewContextReader(ctx, bytes.NewReader(all)), g); err != nil {
				return "", err
			}
		}
		size += len(text)
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n\n"), nil
}

func sliceRange(body io.Reader, g [2]int) (string, error) {
	e, err := sliceLines(body, g[0]-1, g[1]-g[0]+1)
	if err != nil {
		return "", err
	}
	return e.rangeText(g), nil
}

// request is one file that a call of read_file asks for.
type request struct {
	path        string
	indentation bool
	offset      int // 1-based
	limit       int
	hasLimit    bool
	options     indentOptions
	ranges      [][2]int // older calls ask for several ranges of a file
}

// snippet names the wanted part in a few words, as the approval shows it.
func (r request) snippet() string {
	switch {
	case len(r.ranges) > 0:
		return strings.Join(api.Each(r.ranges, func(g [2]int) string { return fmt.Sprintf("lines %d-%d", g[0], g[1]) }), ", ")
	case r.indentation:
		return fmt.Sprintf("indentation mode at line %d", r.options.anchor)
	case r.offset > 1:
		return fmt.Sprintf("lines %d-%d", r.offset, r.offset+r.limit-1)
	case r.hasLimit:
		return fmt.Sprintf("up to %d lines", r.limit)
	}
	return ""
}

// first returns the line at which an editor opens the file, 0 = any.
func (r request) first() int {
	switch {
	case len(r.ranges) > 0:
		return r.ranges[0][0]
	case r.indentation:
		return r.options.anchor
	case r.offset > 1:
		return r.offset
	}
	return 0
}

// requests understands today's shape {path, mode, ...}, {files: [...]},
// {path, start_line, end_line} and the XML text in args.
func readRequests(in tool.Input) ([]request, error) {
	if raw, ok := in.Raw("files"); ok && esjson.TypeOf(raw) == esjson.TypeArray {
		all, err := api.TryEach(slices.Collect(esjson.Array(raw)), func(f []byte) (request, error) {
			if esjson.TypeOf(f) == esjson.TypeString {
				f = esjson.ObjectOf("path", f)
			}
			return readRequest(tool.Input{Tool: in.Tool, Object: f})
		})
		if err == nil && len(all) == 0 {
			err = in.Wrong("\"files\" names no file")
		}
		return all, err
	}
	if args, ok := in.Text("args"); ok {
		if all := xmlRequests(args); len(all) > 0 {
			return all, nil
		}
		return nil, in.Wrong("\"args\" names no file; call with {\"path\": ...} instead")
	}
	r, err := readRequest(in)
	return []request{r}, err
}

func readRequest(in tool.Input) (r request, _ error) {
	if esjson.TypeOf(in.Object) != esjson.TypeObject {
		return r, in.Wrong("each file must be an object with a \"path\"")
	}
	var bad [3]error
	r.path, bad[0] = in.Need(false, "path", "file_path")
	r.offset, bad[1] = in.Number(1, "offset")
	r.limit, bad[2] = in.Number(defaultLines, "limit")
	if err := cmp.Or(bad[:]...); err != nil {
		return r, err
	}
	_, r.hasLimit = in.Raw("limit")
	if r.offset < 1 || r.limit < 1 {
		return r, in.Wrong("offset and limit count from 1")
	}
	if mode, _ := in.Text("mode"); mode == "indentation" {
		r.indentation = true
		if err := r.readIndentation(in); err != nil {
			return r, err
		}
	}
	return r, r.readOlderRanges(in)
}

func (r *request) readIndentation(in tool.Input) error {
	// The options are nested today and were beside "mode" before.
	from := in
	if raw, ok := in.Raw("indentation"); ok && esjson.TypeOf(raw) == esjson.TypeObject {
		from = tool.Input{Tool: in.Tool, Object: raw}
	}
	o := &r.options
	o.limit = r.limit
	var bad [5]error
	o.anchor, bad[0] = from.Number(r.offset, "anchor_line")
	o.levels, bad[1] = from.Number(0, "max_levels")
	o.maxLines, bad[2] = from.Number(0, "max_lines")
	o.siblings, bad[3] = from.Boolean(false, "include_siblings")
	o.header, bad[4] = from.Boolean(true, "include_header")
	if err := cmp.Or(bad[:]...); err != nil {
		return err
	}
	if o.levels < 0 || o.maxLines < 0 {
		return in.Wrong("max_levels and max_lines cannot be negative")
	}
	return nil
}

// maxRanges bounds the ranges of one file: each costs a pass over it.
const maxRanges = 100

var rangePattern = lazyregexp.New(`(\d+)\s*-\s*(\d+)`)

func (r *request) readOlderRanges(in tool.Input) error {
	if raw, ok := in.Raw("lineRanges", "line_ranges"); ok {
		for g := range esjson.Array(raw) {
			start, end := 0, 0
			switch esjson.TypeOf(g) {
			case esjson.TypeObject:
				o := tool.Input{Tool: in.Tool, Object: g}
				start, _ = o.Number(0, "start")
				end, _ = o.Number(0, "end")
			case esjson.TypeArray:
				for n := range esjson.Array(g) {
					v, _ := strconv.Atoi(string(n))
					start, end = end, v
				}
			case esjson.TypeString:
				if m := rangePattern().FindStringSubmatch(string(g)); m != nil {
					start, _ = strconv.Atoi(m[1])
					end, _ = strconv.Atoi(m[2])
				}
			}
			r.ranges = append(r.ranges, [2]int{start, end})
		}
	}
	start, badStart := in.Number(0, "start_line")
	end, badEnd := in.Number(0, "end_line")
	if err := cmp.Or(badStart, badEnd); err != nil {
		return err
	}
	if start > 0 && end > 0 {
		r.ranges = append(r.ranges, [2]int{start, end})
	} else if start > 0 {
		r.offset = start
	}
	for _, g := range r.ranges {
		if g[0] < 1 || g[1] < g[0] {
			return in.Wrong("the line range %d-%d of %s is not one; lines count from 1 and the end is not before "+
				"the start", g[0], g[1], r.path)
		}
	}
	return nil
}

var (
	filePattern = lazyregexp.New(`(?s)<file>(.*?)</file>`)
	pathPattern = lazyregexp.New(`(?s)<path>\s*(.*?)\s*</path>`)
	linePattern = lazyregexp.New(`<line_range>\s*(\d+)\s*-\s*(\d+)\s*</line_range>`)
)

func xmlRequests(args string) []request {
	var all []request
	for _, f := range filePattern().FindAllStringSubmatch(args, -1) {
		p := pathPattern().FindStringSubmatch(f[1])
		if p == nil || p[1] == "" {
			continue
		}
		r := request{path: p[1], offset: 1, limit: defaultLines}
		for _, m := range linePattern().FindAllStringSubmatch(f[1], -1) {
			start, _ := strconv.Atoi(m[1])
			end, _ := strconv.Atoi(m[2])
			if start >= 1 && end >= start {
				r.ranges = append(r.ranges, [2]int{start, end})
			}
		}
		all = append(all, r)
	}
	return all
}

// ShowSource is the recorded source of a file that a person showed to the model.
const ShowSource = "file_mentioned"

// Shown is the beginning of a file as read_file shows it, for callers that show a file without a call of the model.
type Shown struct {
	Text      string // numbered lines; "" when the file is no text
	Lines     int    // of the file; a final line feed counts as one more, empty
	Returned  int    // the number of lines in Text, from the first
	Truncated bool
	Binary    bool            // neither text nor a picture of a kind that is shown
	Image     json.RawMessage // the image block, when the file is a picture
	Media     string
	Touch     tool.FileTouch
}

// Show reads the beginning of a file at a judged path. problem states why it is not shown, in words for the model and
// the person; an error is always the context's.
func Show(ctx context.Context, w *workspace.Workspace, p workspace.Path) (s Shown, problem string, err error) {
	s, err = show(ctx, w, p)
	if why, ok := errors.AsType[refusal](err); ok {
		return s, string(why), nil
	}
	return s, "", err
}

func show(ctx context.Context, w *workspace.Workspace, p workspace.Path) (Shown, error) {
	c, err := openFile(ctx, w, p)
	if err != nil {
		return Shown{}, err
	}
	defer c.file.Close()
	switch {
	case c.media != "" && c.state.Size <= MaxImage:
		block, state, err := c.picture(ctx, w)
		return Shown{Image: block, Media: c.media, Touch: touchOf(state, ShowSource)}, err
	case c.text == nil:
		return Shown{Binary: true, Touch: touchOf(c.state, ShowSource)}, nil
	}
	e, err := sliceLines(c.text, 0, defaultLines)
	if err != nil {
		return Shown{}, explain(p, err)
	}
	text, odd := shownText(e.text)
	return Shown{
		Text:      c.note + odd + text,
		Lines:     e.total,
		Returned:  e.returned,
		Truncated: e.truncated,
		Touch:     c.touch(ShowSource),
	}, nil
}

// ListFiles returns the tool list_files. It names folders of build products, of packages and hidden folders, and does
// not enter them; it obeys .gitignore.
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

// planFolder lists or searches a folder with find while planning, because the row of the call holds the result.
func planFolder(ask tool.Ask, p workspace.Path, row []any, find func() (string, error)) (tool.Plan, error) {
	ask.Protected = false // the call only reads
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
		k.Result = tool.Failed("%s", explainFolder(p, err))
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

// SearchFiles returns the tool search_files. Patterns are RE2, nearly the same syntax as Rust's; they match line by
// line, and letter case counts. It does not search hidden files, binary files, and files that .gitignore or
// .rooignore hides, and follows no links.
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
