package filetool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/patch"
	"github.com/roost-dev/roost/workspace"
)

// WriteToFile returns the tool write_to_file.
func WriteToFile() tool.Tool { return writing{reading(writeFileSpec, planWrite), inspectWrite} }

// writeFileSpec is built once: every turn needs it.
var writeFileSpec = tool.Spec{
	Name:    "write_to_file",
	Aliases: []string{"write_file"},
	Description: "Write a whole file: make a new one, with the folders it needs, or replace an existing one. Give the " +
		"complete content; nothing of the old content stays. For changes to an existing file apply_diff is quicker and safer.",
	Schema: schema([]string{"path", "content"},
		"path", property("string", "File to write, relative to the workspace."),
		"content", property("string", "The complete content, without line numbers and without anything left out.")),
	Class: tool.Write, Replay: tool.Inspect,
}

// readChange returns the file of a call, and its change: the whole content, which may be empty, or a diff.
func readChange(env tool.Env, in tool.Input, name string) (p workspace.Path, text string, err error) {
	path, noPath := in.Need(false, "path", "file_path")
	text, noText := in.Need(name == "content", name)
	p, bad := resolve(env, path)
	if name == "content" {
		text = strings.ToValidUTF8(stripFence(text), "\uFFFD")
	}
	return p, text, cmp.Or(noPath, noText, bad)
}

func planWrite(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
	p, content, err := readChange(env, in, "content")
	if err != nil {
		return nil, err
	}
	e := &rewrite{env: env, ask: asks(in.Tool, p)}
	if p.Ignored {
		e.ask.Text = editText("editedExistingFile", p, "")
		return e.refused(p), nil
	}
	old, state, err := env.Workspace.Read(ctx, p, MaxEdit)
	var large *workspace.TooLargeError
	if errors.As(err, &large) {
		// Replaced without being shown; its hash is all that is needed of it.
		state, err = env.Workspace.StatPath(ctx, p)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.note = deletedSince(env, p)
	case err != nil:
		return nil, explain(p, err)
	}
	if stale := notOverwritten(env, p, state, old); stale != nil && state.Hash != workspace.HashOf([]byte(content)) {
		return nil, stale
	}
	before, c, ok := decodeText(old)
	if !ok {
		before, c = string(old), codedUTF8
	}
	content = likeBefore(content, before)
	data, missing, ok := c.encode(content)
	if !ok {
		// The whole file is new, so nothing of the old text is spoiled by this.
		data = []byte(content)
		e.note += fmt.Sprintf("\n<notice>The file was not UTF-8 (read as Windows-1252), which has no %q (%U). It is UTF-8 "+
			"now.</notice>", missing, missing)
		e.ask.Title += ", which becomes UTF-8"
	}
	e.replace(p, state, data, before, content)
	if large != nil {
		e.ask.Diff = fmt.Sprintf("--- a/%[1]s\n+++ b/%[1]s\n@@ too large for a diff: %d bytes before, %d after @@\n",
			tool.SafeName(p.Readable), state.Size, len(content))
	}
	kind := "editedExistingFile"
	if !state.Exists() {
		kind = "newFileCreated"
	}
	e.ask.Text = editText(kind, p, hunks(e.ask.Diff))
	return e, nil
}

// likeBefore gives a new text the byte order mark and the line ends of the old one: a model sees neither, and writes
// plain line feeds. If the file has both kinds of line ends, the new text keeps those of content.
func likeBefore(content, old string) string {
	if ends := strings.Count(old, "\n"); ends > 0 && strings.Count(old, "\r\n") == ends && !strings.Contains(content, "\r") {
		content = strings.ReplaceAll(content, "\n", "\r\n")
	}
	if strings.HasPrefix(old, byteOrderMark) && !strings.HasPrefix(content, byteOrderMark) {
		content = byteOrderMark + content
	}
	return content
}

// stripFence takes off the code fence that models like to put around a file: the one on the first line and the one on the
// last line, if they hold the whole file, or one of them that has no other end. Blocks of code in a file of Markdown stay.
func stripFence(s string) string {
	n, body := strings.Count("\n"+s, "\n```"), strings.TrimRight(s, "\r\n")
	last := strings.HasSuffix("\n"+body, "\n```")
	_, second, _ := strings.Cut(s, "\n```")
	word, _, _ := strings.Cut(second, "\n")
	around := strings.HasPrefix(s, "```") && (n < 3 || strings.TrimSpace(word) != "") // the second one opens a block inside
	if last && around == (n%2 == 0) {
		s = strings.TrimSuffix(body, "```")
	}
	if around && (last || n%2 == 1) {
		_, s, _ = strings.Cut(s, "\n")
	}
	return s
}

func inspectWrite(ctx context.Context, env tool.Env, in tool.Input, before map[string]string) (tool.Finding, error) {
	p, content, err := readChange(env, in, "content")
	if err != nil {
		return tool.Unclear, err
	}
	state, err := look(ctx, env, p)
	if err != nil {
		return tool.Unclear, err
	}
	hashes, known := before[p.Readable]
	if strings.Contains(hashes, " ") {
		return tool.Unclear, nil // it is neither what it was nor what it was to be
	}
	for _, like := range []string{"", "\r\n", byteOrderMark, byteOrderMark + "\r\n"} {
		for c := codedUTF8; c <= codedSingle; c++ {
			data, _, ok := c.encode(likeBefore(content, like))
			if ok && state.Hash == workspace.HashOf(data) {
				return tool.Done, nil
			}
		}
	}
	return finding(false, !known && !state.Exists()), nil
}

// rewrite is a planned change of files, each of which is known before and after.
type rewrite struct {
	env     tool.Env
	changes []workspace.Change
	result  string           // of a call that took effect
	note    string           // added to the result
	other   []tool.FileTouch // what others had changed before the call
	ask     tool.Ask
}

func (e *rewrite) Ask() tool.Ask { return e.ask }

func (e *rewrite) Run(ctx context.Context, _ tool.Output) (tool.Result, error) {
	for _, c := range e.changes {
		now, err := e.env.Workspace.Resolve(c.Path.Given)
		if err != nil {
			return tool.Result{}, err
		}
		if now.Ignored {
			return denied(now.Readable), nil
		}
	}
	states, err := e.env.Workspace.Apply(ctx, e.changes)
	switch {
	case errors.Is(err, workspace.ErrPartly):
		return tool.Failed("only some of the files were written: %v. Read the files before you go on.", err), nil
	case errors.Is(err, workspace.ErrChanged):
		return tool.Failed("%v, after this change was prepared; nothing was written. Read the file again and make the change on "+
			"what is there now.", err), nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, workspace.ErrNotRegular), errors.Is(err, fs.ErrNotExist):
		return tool.Failed("nothing was written: %v", err), nil
	case err != nil:
		return tool.Result{}, err
	}
	touched := api.Each(states, func(s workspace.FileState) tool.FileTouch { return touchOf(s, editedSource) })
	return tool.Result{Text: e.result + e.note, Files: append(e.other, touched...)}, nil
}

// refused returns the plan for a file that .rooignore hides.
func (e *rewrite) refused(p workspace.Path) tool.Plan {
	return tool.Known{Of: e.ask, Result: denied(p.Readable)}
}

// noteOthers adds a notice, if others changed a file since the model saw it.
func (e *rewrite) noteOthers(p workspace.Path, state workspace.FileState, data []byte) {
	if note := othersChanged(e.env, p, state, data); note != "" {
		e.note += note
		e.other = append(e.other, touchOf(state, otherSource))
	}
}

// replace plans the change of one file, from old to content, whose bytes are data.
func (e *rewrite) replace(p workspace.Path, state workspace.FileState, data []byte, old, content string) {
	e.changes = []workspace.Change{{Path: p, Data: data, Expect: state.Hash}}
	e.ask.Before = map[string]string{p.Readable: planned(state.Hash, workspace.HashOf(data))}
	name, operation := tool.SafeName(p.Readable), "modified"
	from := "a/" + name
	if !state.Exists() {
		from, operation = noFile, "created"
	}
	e.ask.Diff = unified(from, "b/"+name, old, content)
	e.result = string(esjson.ObjectOf("path", p.Readable, "operation", operation,
		"notice", "The file is written. There is no need to read it again; go on with the task."))
}

// change plans a new text for a file.
func (e *rewrite) change(s source, text string) error {
	text = s.mark + strings.TrimPrefix(text, s.mark) // the model may have given the mark, too
	data, missing, ok := s.coding.encode(text)
	if !ok {
		return inexpressible(s.path, missing)
	}
	e.noteOthers(s.path, s.state, []byte(s.whole()))
	e.replace(s.path, s.state, data, s.whole(), text)
	return nil
}

func editText(kind string, p workspace.Path, diff string) string {
	return string(esjson.ObjectOf("tool", kind, "path", p.Readable, "content", diff, "isOutsideWorkspace", p.Outside,
		"isProtected", p.Protected, "diffStats", stats(diff)))
}

// ApplyDiff returns the tool apply_diff.
func ApplyDiff() tool.Tool { return writing{reading(applyDiffSpec, planDiff), inspectDiff} }

// applyDiffSpec is built once: every turn needs it.
var applyDiffSpec = tool.Spec{
	Name: "apply_diff",
	Description: "Change parts of an existing file. Each block names the lines as they are now and the lines that replace " +
		"them; put all changes of a file into one call. " +
		"Copy the lines to be replaced exactly. Give :start_line: so that the right place is found when text repeats.\n\n" +
		patch.BlockForm,
	Schema: schema([]string{"path", "diff"},
		"path", property("string", "File to change, relative to the workspace."),
		"diff", property("string", "One or more SEARCH/REPLACE blocks.")),
	Class: tool.Write, Replay: tool.Inspect,
}

func planDiff(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
	p, diff, err := readChange(env, in, "diff")
	if err != nil {
		return nil, err
	}
	e := &rewrite{env: env, ask: asks(in.Tool, p)}
	if p.Ignored {
		e.ask.Text = diffText(p, diff, "", "")
		return e.refused(p), nil
	}
	s, err := editable(ctx, env, p)
	if err != nil {
		return nil, err
	}
	res, bad, err := patch.ApplyDiff(ctx, s.text, diff, patch.Exact)
	switch {
	case err != nil:
		return nil, err
	case bad != nil:
		return nil, refusal(bad.Reason)
	case res.Applied == 0:
		return nil, refuse("nothing in %s was changed.\n\n%s", tool.SafeName(p.Readable), failures(res.Failures))
	}
	if len(res.Failures) > 0 {
		e.note = fmt.Sprintf("\n<notice>%d of %d blocks were applied. These failed:\n\n%s</notice>", res.Applied,
			res.Applied+len(res.Failures), failures(res.Failures))
	}
	if err := e.change(s, strings.ToValidUTF8(res.Content, "\uFFFD")); err != nil {
		return nil, err
	}
	e.ask.Text = diffText(p, diff, hunks(e.ask.Diff), s.whole())
	return e, nil
}

func failures(fails []patch.BlockFailure) string {
	return strings.Join(api.Each(fails, func(f patch.BlockFailure) string { return f.Message }), "\n\n")
}

func diffText(p workspace.Path, diff, content, old string) string {
	return string(esjson.ObjectOf("tool", "appliedDiff", "path", p.Readable, "diff", diff, "content", content,
		"originalContent", old, "diffStats", stats(content), "isProtected", p.Protected))
}

// inspectDiff reports whether the replacements are in the file and the searched lines gone.
func inspectDiff(ctx context.Context, env tool.Env, in tool.Input, _ map[string]string) (tool.Finding, error) {
	p, diff, err := readChange(env, in, "diff")
	if err != nil {
		return tool.Unclear, err
	}
	blocks, bad := patch.ParseDiff(diff)
	if bad != nil {
		return tool.NotDone, nil // it never came to a change
	}
	return inspectText(ctx, env, p, func(text string) (done, open bool) {
		olds, news := patch.DiffState(text, blocks)
		return news == len(blocks), olds == len(blocks)
	})
}

// Edit returns the tool edit: it replaces one place, or all of them. Roo has three tools that replace one text by
// another.
func Edit() tool.Tool { return replacing(editSpec) }

// EditFile returns the tool edit_file: it replaces the expected number of places, which it also finds when only the
// blanks differ; an empty old text makes a new file.
func EditFile() tool.Tool { return replacing(editFileSpec) }

// SearchReplace returns the tool search_replace: it replaces one place.
func SearchReplace() tool.Tool { return replacing(searchReplaceSpec) }

func replacing(s tool.Spec) tool.Tool { return writing{reading(s, planReplace), inspectReplace} }

const copyExactly = " Copy the old text exactly, with its blanks, and enough lines of it that there is no second place like it."

// The specifications are built once, since every turn needs them.
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
	list, err := api.TryEach(slices.Collect(esjson.Array(steps)), func(raw []byte) (patch.Replacement, error) {
		step, err := tool.ReadInput(in.Tool, raw)
		if err != nil {
			return patch.Replacement{}, err
		}
		return replacement(step)
	})
	if err == nil && len(list) == 0 {
		err = in.Wrong("the parameter \"operations\" is empty")
	}
	return list, err
}

func replacement(in tool.Input) (r patch.Replacement, err error) {
	var noOld, noNew error
	r.Old, noOld = in.Need(in.Tool == editFileSpec.Name, "old_string", "old_str", "search")
	r.New, noNew = in.Need(true, "new_string", "new_str", "replace")
	if err := cmp.Or(noOld, noNew); err != nil {
		return r, err
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
	e := &rewrite{env: env, ask: asks(in.Tool, p)}
	e.ask.Text = changeRow("appliedDiff", p, "")
	if p.Ignored {
		return e.refused(p), nil
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
	if !s.state.Exists() {
		kind = "newFileCreated"
	}
	e.ask.Text = changeRow(kind, p, hunks(e.ask.Diff))
	return e, nil
}

// changeRow builds the row that Roo writes for a file that these tools change.
func changeRow(kind string, p workspace.Path, diff string, more ...any) string {
	return string(esjson.ObjectOf(append([]any{"tool", kind, "path", p.Readable, "diff", diff,
		"isOutsideWorkspace", p.Outside,
		"content", diff, "isProtected", p.Protected, "diffStats", stats(diff)}, more...)...))
}

// inspectReplace reports which of the two texts the file holds.
func inspectReplace(ctx context.Context, env tool.Env, in tool.Input, _ map[string]string) (tool.Finding, error) {
	p, list, err := readReplace(env, in)
	if err != nil {
		return tool.Unclear, err
	}
	if list[0].Old == "" {
		state, err := look(ctx, env, p)
		if err != nil {
			return tool.Unclear, err
		}
		return finding(state.Hash == workspace.HashOf([]byte(list[0].New)), !state.Exists()), nil
	}
	return inspectText(ctx, env, p, func(text string) (done, open bool) {
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
