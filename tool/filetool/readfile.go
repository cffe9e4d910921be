package filetool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// ReadFile gives the tool read_file.
func ReadFile() tool.Tool { return readFile{} }

type readFile struct{}

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

func (readFile) Spec() tool.Spec { return readFileSpec }

func (readFile) Plan(ctx context.Context, env tool.Env, raw json.RawMessage) (tool.Plan, error) {
	in, err := parseInput("read_file", raw)
	if err != nil {
		return nil, err
	}
	reqs, err := in.requests()
	if err != nil {
		return nil, err
	}
	plan := &readPlan{env: env, reqs: reqs}
	a := &plan.ask
	a.Kind = "tool"
	var names []string
	for _, r := range reqs {
		p, err := in.resolve(env, r.path)
		if err != nil {
			return nil, err
		}
		plan.paths = append(plan.paths, p)
		names = append(names, p.Readable)
		a.Paths = append(a.Paths, p.RulePaths()...)
		a.Outside = a.Outside || p.Outside
		a.Protected = a.Protected || p.Protected
		a.Ignored = a.Ignored || p.Ignored
	}
	a.Title = "read_file " + tool.SafeNames(names)
	a.Text = plan.askText()
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
	batch := []byte{'['}
	for i, p := range r.paths {
		if i > 0 {
			batch = append(batch, ',')
		}
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
		batch = append(batch, f.Bytes()...)
	}
	o.Raw("batchFiles", append(batch, ']'))
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
		text, ok := "", false
		// Judged again: what a path leads to may have changed since it was asked for.
		now, err := r.env.Workspace.Resolve(p.Given)
		switch {
		case err != nil:
			return tool.Result{}, err
		case now.Ignored:
			text = "Error: " + denied(now.Readable).Text
		case now.Outside && !p.Outside:
			text = "Error: the path now leads out of the workspace. Call the tool again."
		default:
			if text, ok, err = r.read(ctx, r.reqs[i], now, &res); err != nil {
				return tool.Result{}, err
			}
		}
		if !ok {
			bad++
		}
		texts = append(texts, "File: "+tool.SafeName(p.Readable)+"\n"+text)
	}
	res.Text = strings.Join(texts, "\n\n---\n\n")
	res.IsError = bad == len(r.paths)
	return res, nil
}

func (r *readPlan) read(ctx context.Context, req request, p workspace.Path, res *tool.Result) (string, bool, error) {
	f, state, err := r.env.Workspace.Open(p)
	if err != nil {
		why, err := explain(p, err)
		return "Error: " + why, false, err
	}
	defer f.Close()
	head := make([]byte, 8192)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		why, err := explain(p, err)
		return "Error: " + why, false, err
	}
	head = head[:n]
	if media := imageType(p.Real, head); media != "" {
		return r.image(ctx, p, media, state, res)
	}
	coded := wideCoding(head)
	if state.Size > MaxEdit {
		coded = codedUTF8
	}
	if coded == codedUTF8 && bytes.IndexByte(head, 0) >= 0 {
		return fmt.Sprintf("Error: %s is a binary file of %d bytes and cannot be shown as text. Use a command that "+
			"understands its format.", tool.SafeName(p.Readable), state.Size), false, nil
	}
	// One pass hashes the file and picks the lines out of it.
	sum := sha256.New()
	body := io.TeeReader(io.MultiReader(bytes.NewReader(head), workspace.NewContextReader(ctx, f)), sum)
	text, note := "", ""
	if coded != codedUTF8 {
		decoded, err := decodeBody(body, coded)
		switch {
		case errors.Is(err, errNoText):
			return fmt.Sprintf("Error: %s begins like UTF-16 and is none; it cannot be shown as text.",
				tool.SafeName(p.Readable)), false, nil
		case err != nil:
			why, err := explain(p, err)
			return "Error: " + why, false, err
		}
		body, note = decoded, wideNote
	} else if isNotebook(p.Real) && state.Size <= MaxEdit {
		var all []byte
		if all, err = io.ReadAll(body); err != nil {
			why, err := explain(p, err)
			return "Error: " + why, false, err
		}
		body = bytes.NewReader(all)
		if cells, ok := notebookText(all); ok {
			body, note = strings.NewReader(cells), notebookNote
		}
	}
	switch {
	case req.indentation || len(req.ranges) > 1:
		var all []byte
		if state.Size > MaxEdit {
			return fmt.Sprintf("Error: %s has %d bytes, too many to be read as a whole. Read parts of it with offset and "+
				"limit.", tool.SafeName(p.Readable), state.Size), false, nil
		}
		if all, err = io.ReadAll(body); err == nil && req.indentation {
			text = indentLines(string(all), req.options).toolText(true, req.offset, req.limit)
		} else if err == nil {
			text, err = rangesText(all, req.ranges)
		}
	case len(req.ranges) == 1:
		g := req.ranges[0]
		var e excerpt
		e, err = sliceLines(body, g[0]-1, g[1]-g[0]+1)
		text = e.rangeText(g)
	default:
		var e excerpt
		e, err = sliceLines(body, req.offset-1, req.limit)
		text = e.toolText(false, req.offset, req.limit)
	}
	if err != nil {
		why, err := explain(p, err)
		return "Error: " + why, false, err
	}
	state.Hash = hex.EncodeToString(sum.Sum(nil))
	res.Files = append(res.Files, touchOf(state, readSource))
	text, odd := shownText(text)
	return note + odd + text, true, nil
}

func rangesText(all []byte, ranges [][2]int) (string, error) {
	var parts []string
	for _, g := range ranges {
		e, err := sliceLines(bytes.NewReader(all), g[0]-1, g[1]-g[0]+1)
		if err != nil {
			return "", err
		}
		parts = append(parts, e.rangeText(g))
	}
	return strings.Join(parts, "\n\n"), nil
}

func (r *readPlan) image(ctx context.Context, p workspace.Path, media string, state workspace.FileState,
	res *tool.Result) (string, bool, error) {
	if state.Size > MaxImage {
		return fmt.Sprintf("Note: %s is an image of %d bytes; images over %d bytes are not shown.",
			tool.SafeName(p.Readable), state.Size, MaxImage), true, nil
	}
	data, state, err := r.env.Workspace.Read(ctx, p, MaxImage)
	if err != nil {
		why, err := explain(p, err)
		return "Error: " + why, false, err
	}
	var source, block esjson.Object
	source.String("type", "base64")
	source.String("media_type", media)
	source.String("data", base64.StdEncoding.EncodeToString(data))
	block.String("type", "image")
	block.Raw("source", source.Bytes())
	res.Images = append(res.Images, block.Bytes())
	res.Files = append(res.Files, touchOf(state, readSource))
	return fmt.Sprintf("Note: image (%s, %d bytes) follows.", media, state.Size), true, nil
}

// imageType goes by name and first bytes: a text file called x.png stays text.
func imageType(name string, head []byte) string {
	var media, magic string
	switch strings.ToLower(filepath.Ext(name)) {
	case ".png":
		media, magic = "image/png", "\x89PNG"
	case ".jpg", ".jpeg":
		media, magic = "image/jpeg", "\xff\xd8\xff"
	case ".gif":
		media, magic = "image/gif", "GIF8"
	case ".webp":
		media, magic = "image/webp", "RIFF"
	}
	if media != "" && bytes.HasPrefix(head, []byte(magic)) {
		return media
	}
	return ""
}
