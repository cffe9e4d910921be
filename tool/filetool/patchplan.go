package filetool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// operation is what becomes of a file, in the words of the result.
func (f *patchedFile) operation() string {
	switch {
	case f.source() != nil:
		return "moved"
	case !f.exists:
		return "deleted"
	case !f.state.Exists():
		return "created"
	}
	return "modified"
}

// source is the file that was moved here, if all of it is: the old place is empty
// now, and the new one was.
func (f *patchedFile) source() *patchedFile {
	if f.exists && !f.state.Exists() && f.from != nil && f.from.movedTo == f && !f.from.exists {
		return f.from
	}
	return nil
}

// data is the content on disk as text, nil when it is too large to be shown.
func (f *patchedFile) data() []byte {
	if f.old == "" && f.state.Size > 0 {
		return nil
	}
	return []byte(f.old)
}

// movedAway reports whether the row of the new place covers this file too.
func (f *patchedFile) movedAway() bool { return f.movedTo != nil && f.movedTo.source() == f }

// diff is the difference that a plan makes in a file. It compares a moved file with the file at its old path.
func (f *patchedFile) diff() string {
	path := f.path.Readable
	switch {
	case f.source() != nil:
		from := f.source()
		if from.old == f.text {
			return fmt.Sprintf("--- a/%s\n+++ b/%s\n", tool.SafeName(from.path.Readable), tool.SafeName(path))
		}
		_, body, _ := strings.Cut(unified(path, from.old, f.text, false), "\n")
		return "--- a/" + tool.SafeName(from.path.Readable) + "\n" + body
	case !f.exists && f.state.Size > int64(len(f.old)):
		return fmt.Sprintf("--- a/%s\n+++ /dev/null\n@@ too large for a diff: %d bytes before @@\n", tool.SafeName(path), f.state.Size)
	case !f.exists:
		d := unified(path, f.old, "", false)
		if d == "" {
			return fmt.Sprintf("--- a/%s\n+++ /dev/null\n@@ an empty file @@\n", tool.SafeName(path))
		}
		return strings.Replace(d, "\n+++ b/"+tool.SafeName(path)+"\n", "\n+++ /dev/null\n", 1)
	case !f.state.Exists() && f.text == "":
		return fmt.Sprintf("--- /dev/null\n+++ b/%s\n@@ an empty file @@\n", tool.SafeName(path))
	}
	return unified(path, f.old, f.text, !f.state.Exists())
}

// row is the file's part of what a person sees, as Roo's rows have it.
func (f *patchedFile) row() *esjson.Object {
	kind := "appliedDiff"
	if f.operation() == "created" {
		kind = "newFileCreated"
	}
	text := hunks(f.diff())
	if from := f.source(); from != nil {
		text = strings.TrimSuffix("Moved from "+tool.SafeName(from.path.Readable)+"\n"+text, "\n")
	}
	return changeRow(kind, f.path, text)
}

// shownFiles are the changes that a person sees: a move is one of them.
func shownFiles(changes []*patchedFile) []*patchedFile {
	var out []*patchedFile
	for _, f := range changes {
		if !f.movedAway() {
			out = append(out, f)
		}
	}
	return out
}

// ask describes the files that were named, without what changes in them.
func (s *patchSet) ask() tool.Ask {
	paths := make([]workspace.Path, len(s.order))
	for i, f := range s.order {
		paths[i] = f.path
	}
	a := asks("apply_patch", paths...)
	a.Text = s.text(a, nil, "")
	return a
}

// text is the row of the call: that of the file for one, and for several one with the
// files in it, as Roo's rows for several diffs have them.
func (s *patchSet) text(a tool.Ask, files []*patchedFile, diff string) string {
	if len(files) == 1 {
		o := files[0].row()
		if f := files[0]; f.operation() == "modified" && len(f.old) <= maxDiff {
			o.String("originalContent", strings.ToValidUTF8(f.old, "\uFFFD"))
		}
		return string(o.Bytes())
	}
	var o esjson.Object
	o.String("tool", "appliedDiff")
	o.String("path", strings.TrimPrefix(a.Title, a.Tool+" "))
	o.String("diff", diff)
	o.Bool("isOutsideWorkspace", a.Outside)
	o.String("content", diff)
	o.Bool("isProtected", a.Protected)
	addFileStats(&o, files)
	var batch [][]byte
	for _, f := range files {
		text := hunks(f.diff())
		var d, e esjson.Object
		d.String("content", text)
		e.String("path", f.path.Readable)
		e.Int("changeCount", 1)
		e.String("key", f.path.Readable+" (1 change)")
		e.String("content", text)
		addStats(&e, text)
		e.Raw("diffs", array(d.Bytes()))
		batch = append(batch, e.Bytes())
	}
	if len(files) > 0 {
		o.Raw("batchDiffs", array(batch...))
	}
	return string(o.Bytes())
}

// addFileStats counts the lines of all files; the headers between them are none.
func addFileStats(o *esjson.Object, files []*patchedFile) {
	var all strings.Builder
	for _, f := range files {
		all.WriteString(hunks(f.diff()) + "\n")
	}
	addStats(o, all.String())
}

func (s *patchSet) plan() (tool.Plan, error) {
	changes := s.changes()
	if len(changes) == 0 {
		return nil, refusal("the patch changes nothing: all files are as it wants them")
	}
	files := shownFiles(changes)
	p := &patchPlan{env: s.env, files: files, ask: s.ask()}
	p.ask.Before = map[string]string{}
	var diff strings.Builder
	for _, f := range files {
		diff.WriteString(f.diff())
	}
	for _, f := range changes {
		data, _, _ := f.coding.encode(f.text) // each section saw that it can be
		c := workspace.Change{Path: f.path, Data: data, Expect: f.state.Hash}
		after := ""
		if c.Remove = !f.exists; f.exists {
			after = workspace.HashOf(c.Data)
		}
		if from := f.source(); from != nil {
			c.Like = &from.path
		}
		p.ask.Before[f.path.Readable] = planned(f.state.Hash, after)
		p.changes = append(p.changes, c)
	}
	for _, f := range s.order {
		if !f.known || f.state.Hash == "" || f.text == f.old && f.exists {
			continue
		}
		if text := othersChanged(s.env, f.path, f.state, f.data()); text != "" {
			p.note += text
			p.other = append(p.other, touchOf(f.state, otherSource))
		}
	}
	p.ask.Diff = diff.String()
	p.ask.Text = s.text(p.ask, files, strings.TrimSuffix(p.ask.Diff, "\n"))
	return p, nil
}

// patchPlan is a patch whose every file is known before and after.
type patchPlan struct {
	env     tool.Env
	files   []*patchedFile // in the order of the patch, a move once
	changes []workspace.Change
	note    string           // added to the result
	other   []tool.FileTouch // what others had changed before
	ask     tool.Ask
}

func (p *patchPlan) Ask() tool.Ask { return p.ask }

func (p *patchPlan) Run(ctx context.Context, _ tool.Output) (tool.Result, error) {
	for _, c := range p.changes {
		now, err := p.env.Workspace.Resolve(c.Path.Given)
		if err != nil {
			return tool.Result{}, err
		}
		if now.Ignored {
			return denied(now.Readable), nil
		}
	}
	states, err := p.env.Workspace.Apply(ctx, p.changes)
	switch {
	case errors.Is(err, workspace.ErrPartly):
		return failed("the patch was applied to some of its files only: %v. Read the files before you go on.", err), nil
	case errors.Is(err, workspace.ErrChanged):
		return failed("%v, after this patch was prepared; none of its files was changed. Read the file again and make the "+
			"patch for what is there now.", err), nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, workspace.ErrNotRegular), errors.Is(err, fs.ErrNotExist):
		return failed("none of the files was changed: %v", err), nil
	case err != nil:
		return tool.Result{}, err
	}
	res := tool.Result{Text: p.result() + p.note, Files: p.other}
	for _, s := range states {
		res.Files = append(res.Files, touchOf(s, editedSource))
	}
	return res, nil
}

func (p *patchPlan) result() string {
	const notice = "There is no need to read what was written again; go on with the task."
	var o esjson.Object
	if len(p.files) == 1 {
		p.files[0].tell(&o)
		o.String("notice", notice)
		return string(o.Bytes())
	}
	var list [][]byte
	for _, f := range p.files {
		var e esjson.Object
		f.tell(&e)
		list = append(list, e.Bytes())
	}
	o.Raw("files", array(list...))
	o.String("notice", notice)
	return string(o.Bytes())
}

func (f *patchedFile) tell(o *esjson.Object) {
	o.String("path", f.path.Readable)
	o.String("operation", f.operation())
	if from := f.source(); from != nil {
		o.String("from", from.path.Readable)
	}
}
