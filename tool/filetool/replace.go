package filetool

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/patch"
	"github.com/roost-dev/roost/workspace"
)

// replaceTool puts a text in the place of another. Roo has three tools for it, which
// differ in how many places there may be.
type replaceTool struct{ spec *tool.Spec }

// Edit gives the tool edit: one place, or all of them.
func Edit() tool.Tool { return replaceTool{&editSpec} }

// EditFile gives the tool edit_file: as many places as are expected, found by their
// words where the blanks are other ones; no old text makes a new file.
func EditFile() tool.Tool { return replaceTool{&editFileSpec} }

// SearchReplace gives the tool search_replace: one place.
func SearchReplace() tool.Tool { return replaceTool{&searchReplaceSpec} }

const copyExactly = " Copy the old text exactly, with its blanks, and enough lines of it that there is no second place like it."

// The specifications are made once: they are asked for at every turn.
var (
	editSpec = replaceSpec("edit", []string{"search_and_replace"},
		"Replace a text in a file by another one, at its only place or, with replace_all, everywhere."+copyExactly,
		"replace_all", property("boolean", "Replace every occurrence; false if not given."))
	editFileSpec = replaceSpec("edit_file", nil,
		"Replace a text in a file by another one. With an empty old_string a new file is made."+copyExactly,
		"expected_replacements", property("integer", "How often the old text occurs; 1 if not given."))
	searchReplaceSpec = replaceSpec("search_replace", nil,
		"Replace a text that occurs once in a file by another one."+copyExactly)
)

func replaceSpec(name string, aliases []string, description string, more ...string) tool.Spec {
	return tool.Spec{
		Name: name, Aliases: aliases, Description: description, OptIn: true,
		Schema: schema([]string{"file_path", "old_string", "new_string"}, append([]string{
			"file_path", property("string", "File to change, relative to the workspace."),
			"old_string", property("string", "The text as it is now."),
			"new_string", property("string", "The text that takes its place."),
		}, more...)...),
		Class: tool.Write, Replay: tool.Inspect,
	}
}

func (r replaceTool) Spec() tool.Spec { return *r.spec }

func (r replaceTool) parse(env tool.Env, raw json.RawMessage) (in input, p workspace.Path, list []patch.Replacement, err error) {
	if in, err = parseInput(r.spec.Name, raw); err != nil {
		return
	}
	path, err := in.need(false, "file_path", "path")
	if err != nil {
		return
	}
	// The old search_and_replace could do more. What it meant is not guessed at.
	for _, name := range []string{"use_regex", "ignore_case", "start_line", "end_line"} {
		if v, ok := in.raw(name); ok && string(v) != "false" {
			err = in.wrong("the parameter \"" + name + "\" is not understood; give the exact text as old_string")
			return
		}
	}
	if steps, ok := in.raw("operations"); ok && esjson.TypeOf(steps) == esjson.TypeArray {
		list, err = in.operations(steps)
	} else {
		var one patch.Replacement
		one, err = in.replacement()
		list = []patch.Replacement{one}
	}
	if err != nil {
		return
	}
	p, err = in.resolve(env, path)
	return
}

func (in input) operations(steps []byte) ([]patch.Replacement, error) {
	var list []patch.Replacement
	for raw := range esjson.Array(steps) {
		step, err := parseInput(in.tool, raw)
		if err != nil {
			return nil, err
		}
		one, err := step.replacement()
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	if len(list) == 0 {
		return nil, in.wrong("the parameter \"operations\" is empty")
	}
	return list, nil
}

func (in input) replacement() (r patch.Replacement, err error) {
	if r.Old, err = in.need(in.tool == editFileSpec.Name, "old_string", "old_str", "search"); err != nil {
		return
	}
	if r.New, err = in.need(true, "new_string", "new_str", "replace"); err != nil {
		return
	}
	r.Old, r.New = patch.PlainEnds(r.Old), patch.PlainEnds(strings.ToValidUTF8(r.New, "\uFFFD"))
	r.Old = strings.TrimPrefix(r.Old, byteOrderMark)
	if r.Old == r.New && r.Old != "" {
		return r, in.wrong("the old and the new text are the same")
	}
	r.Times = 1
	if in.tool == editSpec.Name {
		all, err := in.boolean(false, "replace_all")
		if all {
			r.Times = 0
		}
		return r, err
	}
	if in.tool == editFileSpec.Name {
		r.Tolerant = true
		if r.Times, err = in.number(1, "expected_replacements"); err == nil && r.Times < 1 {
			err = in.wrong("the parameter \"expected_replacements\" must be at least 1")
		}
	}
	return r, err
}

func (r replaceTool) Plan(ctx context.Context, env tool.Env, raw json.RawMessage) (tool.Plan, error) {
	in, p, list, err := r.parse(env, raw)
	if err != nil {
		return nil, err
	}
	e := &edit{env: env, path: p, ask: editAsk(r.spec.Name, p)}
	e.ask.Text = string(changeRow("appliedDiff", p, "").Bytes())
	if p.Ignored {
		return e, nil
	}
	s, why := source{path: p}, ""
	if list[0].Old == "" {
		s.state, err = env.Workspace.StatPath(ctx, p)
		if s.state.Size > 0 {
			return nil, in.wrong(tool.SafeName(p.Readable) + " exists already; an empty old_string makes a new file only")
		}
		if err != nil {
			why, err = explain(p, err)
		}
	} else {
		s, why, err = editable(ctx, env, p)
	}
	switch {
	case err != nil:
		return nil, err
	case why != "":
		return nil, in.wrong(why)
	}
	text, kind := s.text, "appliedDiff"
	for _, step := range list {
		before := text
		if text, why = step.Apply(text, tool.SafeName(p.Readable)); why != "" {
			return nil, in.wrong(why + " Nothing was changed.")
		}
		if step.Tolerant && step.Old != "" && !strings.Contains(patch.PlainEnds(before), step.Old) {
			e.note = "\n<notice>The old text is in the file with other blanks or line ends than given. It was replaced, with " +
				"the file's indentation.</notice>"
		}
	}
	e.expect, e.creates = s.state.Hash, !s.state.Exists()
	if text == s.text && !e.creates {
		return nil, in.wrong("nothing would change in " + tool.SafeName(p.Readable))
	}
	if e.content, why = s.bytes(text); why != "" {
		return nil, in.wrong(why)
	}
	e.noteOthers(s)
	if e.creates {
		kind = "newFileCreated"
	}
	e.ask.Before = map[string]string{p.Readable: planned(s.state.Hash, workspace.HashOf([]byte(e.content)))}
	e.ask.Diff = unified(p.Readable, s.whole(), s.mark+text, e.creates)
	e.ask.Text = string(changeRow(kind, p, hunks(e.ask.Diff)).Bytes())
	return e, nil
}

// changeRow is the row that Roo writes for a file that is changed by these tools.
func changeRow(kind string, p workspace.Path, diff string) *esjson.Object {
	var o esjson.Object
	o.String("tool", kind)
	o.String("path", p.Readable)
	o.String("diff", diff)
	o.Bool("isOutsideWorkspace", p.Outside)
	o.String("content", diff)
	o.Bool("isProtected", p.Protected)
	addStats(&o, diff)
	return &o
}

// Inspect goes by the hashes that were kept when the call was planned. Without them,
// for a call that another program left, it looks which of the texts is there.
func (r replaceTool) Inspect(ctx context.Context, env tool.Env, raw json.RawMessage, before map[string]string) (tool.Finding, error) {
	_, p, list, err := r.parse(env, raw)
	if err != nil {
		return tool.Unclear, err
	}
	if found, ok, err := inspectPlanned(ctx, env, before); ok || err != nil {
		return found, err
	}
	state, err := look(ctx, env, p)
	if err != nil {
		return tool.Unclear, err
	}
	if list[0].Old == "" {
		switch {
		case !state.Exists():
			return tool.NotDone, nil
		case state.Hash == workspace.HashOf([]byte(list[0].New)):
			return tool.Done, nil
		}
		return tool.Unclear, nil
	}
	s, why, err := editable(ctx, env, p)
	if err != nil || why != "" {
		return tool.Unclear, err
	}
	olds, news := 0, 0
	for _, step := range list {
		plain := patch.PlainEnds(s.text)
		hasOld, hasNew := strings.Contains(plain, step.Old), step.New != "" && strings.Contains(plain, step.New)
		switch {
		case hasNew && !hasOld:
			news++
		case hasOld && !hasNew:
			olds++
		}
	}
	switch len(list) {
	case news:
		return tool.Done, nil
	case olds:
		return tool.NotDone, nil
	}
	return tool.Unclear, nil
}
