package filetool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// ReadFile gives the tool read_file.
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
	Class:  tool.Read,
	Replay: tool.Again,
}

func planRead(_ context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
	reqs, err := readRequests(in)
	if err != nil {
		return nil, err
	}
	plan := &readPlan{env: env, reqs: reqs}
	for _, r := range reqs {
		p, err := resolve(env, r.path)
		if err != nil {
			return nil, err
		}
		plan.paths = append(plan.paths, p)
	}
	plan.ask = asks(in.Tool, plan.paths...)
	plan.ask.Text = plan.askText()
	return plan, nil
}

type readPlan struct {
	env   tool.Env
	reqs  []request
	paths []workspace.Path
	ask   tool.Ask
}

func (r *readPlan) askText() string {
	var o esjson.Object
	o.String("tool", "readFile")
	if len(r.reqs) == 1 {
		p := r.paths[0]
		o.String("path", p.Readable)
		o.Bool("isOutsideWorkspace", p.Outside)
		o.String("content", p.Abs)
		o.String("reason", r.reqs[0].snippet())
		if n := r.reqs[0].first(); n > 0 {
			o.Int("startLine", int64(n))
		}
		return string(o.Bytes())
	}
	var batch [][]byte
	for i, p := range r.paths {
		var f esjson.Object
		key, snippet := p.Readable, r.reqs[i].snippet()
		if snippet != "" {
			key += " (" + snippet + ")"
		}
		f.String("path", p.Readable)
		f.String("lineSnippet", snippet)
		f.Bool("isOutsideWorkspace", p.Outside)
		f.String("key", key)
		f.String("content", p.Abs)
		batch = append(batch, f.Bytes())
	}
	o.Raw("batchFiles", array(batch...))
	return string(o.Bytes())
}

func (r *readPlan) Ask() tool.Ask { return r.ask }

func (r *readPlan) Run(ctx context.Context, _ tool.Output) (tool.Result, error) {
	if len(r.paths) == 1 && r.paths[0].Ignored {
		return denied(r.paths[0].Readable), nil
	}
	var res tool.Result
	var texts []string
	bad := 0
	for i, p := range r.paths {
		// Judged again: what a path leads to may have changed since it was asked for.
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
		default:
			text, err = r.read(ctx, r.reqs[i], now, &res)
		}
		var why refusal
		if errors.As(err, &why) {
			text = "Error: " + string(why)
			bad++
		} else if err != nil {
			return tool.Result{}, err
		}
		texts = append(texts, "File: "+tool.SafeName(p.Readable)+"\n"+text)
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
	case (req.indentation || len(req.ranges) > 1) && c.state.Size > MaxEdit:
		return "", refuse("%s has %d bytes, too many to be read as a whole. Read parts of it with offset and "+
			"limit.", name, c.state.Size)
	}
	text, err := req.choose(c.text)
	if err != nil {
		return "", explain(p, err)
	}
	res.Files = append(res.Files, c.touch(readSource))
	text, odd := shownText(text)
	return c.note + odd + text, nil
}

// choose gives the wanted lines of a text.
func (r request) choose(body io.Reader) (string, error) {
	switch {
	case !r.indentation && len(r.ranges) == 0:
		e, err := sliceLines(body, r.offset-1, r.limit)
		return e.toolText(false, r.offset, r.limit), err
	case !r.indentation && len(r.ranges) == 1:
		return rangeOf(body, r.ranges[0])
	}
	all, err := io.ReadAll(body)
	if err != nil {
		return "", err
	}
	if r.indentation {
		return indentLines(string(all), r.options).toolText(true, r.offset, r.limit), nil
	}
	return rangesText(all, r.ranges)
}

func rangesText(all []byte, ranges [][2]int) (string, error) {
	var parts []string
	for _, g := range ranges {
		text, err := rangeOf(bytes.NewReader(all), g)
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n\n"), nil
}

func rangeOf(body io.Reader, g [2]int) (string, error) {
	e, err := sliceLines(body, g[0]-1, g[1]-g[0]+1)
	if err != nil {
		return "", err
	}
	return e.rangeText(g), nil
}
