package filetool

import (
	"context"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/patch"
	"github.com/roost-dev/roost/workspace"
)

// Edit gives the tool edit: one place, or all of them. Roo has three tools that put a text in
// the place of another.
func Edit() tool.Tool { return replacing(editSpec) }

// EditFile gives the tool edit_file: as many places as are expected, found by their
// words where the blanks are other ones; no old text makes a new file.
func EditFile() tool.Tool { return replacing(editFileSpec) }

// SearchReplace gives the tool search_replace: one place.
func SearchReplace() tool.Tool { return replacing(searchReplaceSpec) }

func replacing(s tool.Spec) tool.Tool { return writing{reading(s, planReplace), inspectReplace} }

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

func readReplace(env tool.Env, in tool.Input) (p workspace.Path, list []patch.Replacement, err error) {
	path, err := in.Need(false, "file_path", "path")
	if err != nil {
		return p, nil, err
	}
	// The old search_and_replace could do more. What it meant is not guessed at.
	for _, name := range []string{"use_regex", "ignore_case", "start_line", "end_line"} {
		if v, ok := in.Raw(name); ok && string(v) != "false" {
			return p, nil, refuse("the parameter %q is not understood; give the exact text as old_string", name)
		}
	}
	if steps, ok := in.Raw("operations"); ok && esjson.TypeOf(steps) == esjson.TypeArray {
		list, err = operations(in, steps)
	} else {
		list = make([]patch.Replacement, 1)
		list[0], err = replacement(in)
	}
	if err != nil {
		return p, nil, err
	}
	p, err = resolve(env, path)
	return p, list, err
}

func operations(in tool.Input, steps []byte) ([]patch.Replacement, error) {
	var list []patch.Replacement
	for raw := range esjson.Array(steps) {
		step, err := tool.ReadInput(in.Tool, raw)
		if err != nil {
			return nil, err
		}
		one, err := replacement(step)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	if len(list) == 0 {
		return nil, in.Wrong("the parameter \"operations\" is empty")
	}
	return list, nil
}

func replacement(in tool.Input) (r patch.Replacement, err error) {
	if r.Old, err = in.Need(in.Tool == editFileSpec.Name, "old_string", "old_str", "search"); err != nil {
		return
	}
	if r.New, err = in.Need(true, "new_string", "new_str", "replace"); err != nil {
		return
	}
	r.Old, r.New = patch.PlainEnds(r.Old), patch.PlainEnds(strings.ToValidUTF8(r.New, "\uFFFD"))
	r.Old = strings.TrimPrefix(r.Old, byteOrderMark)
	if r.Old == r.New && r.Old != "" {
		return r, in.Wrong("the old and the new text are the same")
	}
	r.Times = 1
	if in.Tool == editSpec.Name {
		all, err := in.Boolean(false, "replace_all")
		if all {
			r.Times = 0
		}
		return r, err
	}
	if in.Tool == editFileSpec.Name {
		r.Tolerant = true
		if r.Times, err = in.Number(1, "expected_replacements"); err == nil && r.Times < 1 {
			err = in.Wrong("the parameter \"expected_replacements\" must be at least 1")
		}
	}
	return r, err
}

func planReplace(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
	p, list, err := readReplace(env, in)
	if err != nil {
		return nil, err
	}
	e := &edit{env: env, path: p, ask: asks(in.Tool, p)}
	e.ask.Text = string(changeRow("appliedDiff", p, "").Bytes())
	if p.Ignored {
		return e, nil
	}
	name, s := tool.SafeName(p.Readable), source{path: p}
	if list[0].Old == "" {
		s.state, err = env.Workspace.StatPath(ctx, p)
		if s.state.Size > 0 {
			return nil, refuse("%s exists already; an empty old_string makes a new file only", name)
		}
		if err != nil {
			err = explain(p, err)
		}
	} else {
		s, err = editable(ctx, env, p)
	}
	if err != nil {
		return nil, err
	}
	text := s.text
	for _, step := range list {
		before, why := text, ""
		if text, why = step.Apply(text, name); why != "" {
			return nil, refuse("%s Nothing was changed.", why)
		}
		if step.Tolerant && step.Old != "" && !strings.Contains(patch.PlainEnds(before), step.Old) {
			e.note = "\n<notice>The old text is in the file with other blanks or line ends than given. It was replaced, with " +
				"the file's indentation.</notice>"
		}
	}
	if text == s.text && s.state.Exists() {
		return nil, refuse("nothing would change in %s", name)
	}
	if err := e.change(s, text); err != nil {
		return nil, err
	}
	kind := "appliedDiff"
	if e.creates {
		kind = "newFileCreated"
	}
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

// inspectReplace looks which of the texts is there.
func inspectReplace(ctx context.Context, env tool.Env, in tool.Input, before map[string]string) (tool.Finding, error) {
	p, list, err := readReplace(env, in)
	if err != nil {
		return tool.Unclear, err
	}
	if list[0].Old == "" {
		if found, ok, err := inspectPlanned(ctx, env, before); ok || err != nil {
			return found, err
		}
		state, err := look(ctx, env, p)
		if err != nil {
			return tool.Unclear, err
		}
		return finding(state.Hash == workspace.HashOf([]byte(list[0].New)), !state.Exists()), nil
	}
	return inspectText(ctx, env, p, before, func(text string) (done, open bool) {
		text = patch.PlainEnds(text)
		olds, news := 0, 0
		for _, step := range list {
			hasOld, hasNew := strings.Contains(text, step.Old), step.New != "" && strings.Contains(text, step.New)
			switch {
			case hasNew && !hasOld:
				news++
			case hasOld && !hasNew:
				olds++
			}
		}
		return news == len(list), olds == len(list)
	})
}
