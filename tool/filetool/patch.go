package filetool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/patch"
	"github.com/roost-dev/roost/workspace"
)

// maxPatchFiles bounds how many files one patch may touch: each is held open while
// the patch is applied.
const maxPatchFiles = 100

// ApplyPatch returns the tool apply_patch.
func ApplyPatch() tool.Tool { return writing{reading(applyPatchSpec, planPatch), inspectPatch} }

const patchForm = `*** Begin Patch
*** Update File: src/a.go
@@ func a() {
 	x := 1
-	y := 2
+	y := 3
*** Add File: src/b.go
+package src
*** Delete File: src/c.go
*** Update File: src/d.go
*** Move to: src/e.go
@@
-old line
+new line
*** End Patch`

// applyPatchSpec is built once: every turn needs it.
var applyPatchSpec = tool.Spec{
	Name: "apply_patch",
	Description: "Change, make, delete and rename several files in one step: all of it happens or nothing. In an updated " +
		"file each place begins with @@, after which a line above it may be named; " +
		"lines that stay begin with a blank, lines that go with -, lines that come with +. Give some lines that stay around " +
		"each change, exactly as they are, and the places of a file in the order of the file. *** End of File after a place " +
		"says that it is the file's end.\n\n" + patchForm,
	Schema: schema([]string{"patch"},
		"patch", property("string", "The whole patch, from *** Begin Patch to *** End Patch.")),
	Class: tool.Write, Replay: tool.Inspect,
}

func readPatch(in tool.Input) ([]patch.Section, error) {
	text, err := in.Need(false, "patch", "input")
	if err != nil {
		return nil, err
	}
	sections, bad := patch.ParsePatch(strings.ToValidUTF8(text, "\uFFFD"))
	switch {
	case bad != nil:
		return nil, refusal(bad.Error())
	case len(sections) == 0:
		return nil, refusal("the patch is empty")
	case len(sections) > maxPatchFiles:
		return nil, refuse("the patch has %d sections; give at most %d at once", len(sections), maxPatchFiles)
	}
	return sections, nil
}

func planPatch(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
	sections, err := readPatch(in)
	if err != nil {
		return nil, err
	}
	set := &patchSet{env: env, files: map[string]*patchedFile{}}
	// All paths are judged before the first file is read.
	for _, sec := range sections {
		err := set.name(sec.Path)
		if err == nil && sec.MoveTo != "" {
			err = set.name(sec.MoveTo)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, f := range set.order {
		if f.path.Ignored {
			return tool.Known{Of: set.ask(), Result: denied(f.path.Readable)}, nil
		}
	}
	for _, s := range sections {
		if err := set.apply(ctx, s); err != nil {
			return nil, err
		}
	}
	return set.plan()
}

// patchSet holds the files of a patch as they are after the sections so far. A section sees the changes of the
// sections before it: a file that is named twice is changed twice.
type patchSet struct {
	env    tool.Env
	files  map[string]*patchedFile // by Path.Real
	order  []*patchedFile
	loaded int64 // bytes
}

type patchedFile struct {
	path    workspace.Path
	known   bool // state and text were read
	state   workspace.FileState
	old     string // the text on disk, "" if it is too large to show; raw bytes if it is no text
	text    string // the new text
	coding  coding // of old and text
	noText  bool
	exists  bool
	from    *patchedFile // the file that was moved here
	movedTo *patchedFile
}

func (s *patchSet) name(path string) error {
	if path == "" {
		return refuse("a section names no file")
	}
	p, err := resolve(s.env, path)
	if err != nil {
		return err
	}
	if s.files[p.Real] == nil {
		f := &patchedFile{path: p}
		s.files[p.Real] = f
		s.order = append(s.order, f)
	}
	return nil
}

// file returns a named file, as it is after the sections so far.
func (s *patchSet) file(ctx context.Context, path string, whole bool) (*patchedFile, error) {
	p, err := resolve(s.env, path)
	if err != nil {
		return nil, err
	}
	f := s.files[p.Real]
	if f == nil {
		return nil, refuse("%s leads elsewhere than a moment ago; try again", tool.SafeName(p.Readable))
	}
	if f.known {
		return f, nil
	}
	data, state, err := s.env.Workspace.Read(ctx, f.path, MaxEdit)
	if _, large := errors.AsType[*workspace.TooLargeError](err); large && !whole {
		state, err = s.env.Workspace.StatPath(ctx, f.path) // the patch only removes it
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, explain(f.path, err)
	}
	f.known, f.exists, f.state = true, err == nil, state
	text, c, ok := decodeText(data)
	if f.noText = !ok; f.noText {
		text, c = string(data), codedUTF8
	}
	f.old, f.text, f.coding = text, text, c
	if s.loaded += int64(len(data)); s.loaded > 2*MaxEdit {
		return nil, refuse("the files of this patch have more than %d bytes together; give fewer at once", 2*MaxEdit)
	}
	return f, nil
}

func (s *patchSet) apply(ctx context.Context, sec patch.Section) error {
	f, err := s.file(ctx, sec.Path, sec.Kind == patch.UpdateFile)
	if err != nil {
		return err
	}
	name := tool.SafeName(f.path.Readable)
	if sec.Kind == patch.AddFile {
		if f.exists {
			return refuse("%s exists already; use *** Update File to change it. Nothing was changed.", name)
		}
		f.exists, f.text, f.from = true, sec.Content, nil
		f.coding, f.noText = codedUTF8, false
		return nil
	}
	if !f.exists {
		return refuse("%s does not exist. Use list_files to see what is there. Nothing was changed.", name)
	}
	if sec.Kind == patch.DeleteFile || sec.MoveTo != "" {
		if info, err := os.Lstat(f.path.Abs); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return refuse("%s is a link; a patch does not delete or move what it leads to. Nothing was changed.", name)
		}
	}
	if sec.Kind == patch.DeleteFile {
		if stale := notOverwritten(s.env, f.path, f.state, f.data()); stale != nil {
			return stale
		}
		f.exists, f.text = false, ""
		return nil
	}
	if f.noText {
		return notText(f.path)
	}
	text, marked := strings.CutPrefix(f.text, byteOrderMark)
	text, bad, err := patch.ApplyChunks(ctx, text, sec.Chunks)
	if err != nil {
		return err
	}
	if bad != nil {
		return refuse("%s Nothing was changed.", bad.Reason(name))
	}
	if marked {
		text = byteOrderMark + strings.TrimPrefix(text, byteOrderMark)
	}
	if _, missing, ok := f.coding.encode(text); !ok {
		return refuse("%v Nothing was changed.", inexpressible(f.path, missing))
	}
	if f.text = text; sec.MoveTo == "" {
		return nil
	}
	to, err := s.file(ctx, sec.MoveTo, false)
	if err != nil {
		return err
	}
	if to == f {
		return nil
	}
	if to.exists {
		return refuse("%s exists already, so nothing can be moved there. Nothing was changed.", tool.SafeName(to.path.Readable))
	}
	to.exists, to.text, to.coding = true, f.text, f.coding
	f.exists, f.text = false, ""
	// After several moves, from is the file that is on disk, if there is one.
	if to.from = f; !f.state.Exists() {
		to.from = f.from
	}
	if to.from != nil {
		to.from.movedTo = to
	}
	return nil
}

// changes returns the files that differ from those on disk.
func (s *patchSet) changes() []*patchedFile {
	return slices.DeleteFunc(slices.Clone(s.order), func(f *patchedFile) bool {
		return !f.known || f.exists == f.state.Exists() && f.text == f.old
	})
}

// inspectPatch judges the sections of a patch one by one.
func inspectPatch(ctx context.Context, env tool.Env, in tool.Input, _ map[string]string) (tool.Finding, error) {
	sections, err := readPatch(in)
	if err != nil {
		return tool.Unclear, err
	}
	names := map[tool.Finding][]string{}
	for _, s := range sections {
		found, err := inspectSection(ctx, env, s)
		if err != nil {
			return tool.Unclear, err
		}
		names[found] = append(names[found], tool.SafeName(s.Path))
	}
	return verdict(names[tool.Done], names[tool.NotDone], names[tool.Unclear])
}

func inspectSection(ctx context.Context, env tool.Env, s patch.Section) (tool.Finding, error) {
	p, err := resolve(env, s.Path)
	if err != nil {
		return tool.Unclear, err
	}
	state, err := look(ctx, env, p)
	if err != nil {
		return tool.Unclear, err
	}
	switch s.Kind {
	case patch.DeleteFile:
		return finding(!state.Exists(), state.Exists()), nil
	case patch.AddFile:
		return finding(state.Hash == workspace.HashOf([]byte(s.Content)), !state.Exists()), nil
	}
	moved := s.MoveTo != "" && !state.Exists()
	if moved {
		if p, err = resolve(env, s.MoveTo); err != nil {
			return tool.Unclear, err
		}
	}
	src, err := editable(ctx, env, p)
	if err != nil {
		return tool.Unclear, tool.ContextError(err)
	}
	olds, news := patch.ChunksState(src.text, s.Chunks)
	return finding(news && !olds && (s.MoveTo == "" || moved), olds && !news && !moved), nil
}

// operation names the change of a file, in the words of the result.
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

// source returns the file that was moved here, if the move is complete: the old place is empty now, and the new place
// was empty before.
func (f *patchedFile) source() *patchedFile {
	if f.exists && !f.state.Exists() && f.from != nil && f.from.movedTo == f && !f.from.exists {
		return f.from
	}
	return nil
}

// data returns the content on disk as text, nil when it is too large to show.
func (f *patchedFile) data() []byte {
	if f.old == "" && f.state.Size > 0 {
		return nil
	}
	return []byte(f.old)
}

// movedAway reports whether the row of the new place covers this file too.
func (f *patchedFile) movedAway() bool { return f.movedTo != nil && f.movedTo.source() == f }

// diff returns the difference that a plan makes in a file. It compares a moved file with the file at its old path.
func (f *patchedFile) diff() string {
	name := tool.SafeName(f.path.Readable)
	from, to, old := "a/"+name, "b/"+name, f.old
	moved := f.source()
	switch {
	case moved != nil:
		from, old = "a/"+tool.SafeName(moved.path.Readable), moved.old
	case !f.exists:
		to = noFile
	case !f.state.Exists():
		from = noFile
	}
	head := "--- " + from + "\n+++ " + to + "\n"
	switch {
	case !f.exists && f.state.Size > int64(len(f.old)):
		return fmt.Sprintf("%s@@ too large for a diff: %d bytes before @@\n", head, f.state.Size)
	case moved != nil && old == f.text:
		return head
	case old == f.text:
		return head + "@@ an empty file @@\n"
	}
	return unified(from, to, old, f.text)
}

// row returns the file's part of what a person sees, in the form of Roo's rows.
func (f *patchedFile) row() string {
	kind := "appliedDiff"
	if f.operation() == "created" {
		kind = "newFileCreated"
	}
	text := hunks(f.diff())
	if from := f.source(); from != nil {
		text = strings.TrimSuffix("Moved from "+tool.SafeName(from.path.Readable)+"\n"+text, "\n")
	}
	if f.operation() == "modified" && len(f.old) <= maxDiff {
		return changeRow(kind, f.path, text, "originalContent", strings.ToValidUTF8(f.old, "\uFFFD"))
	}
	return changeRow(kind, f.path, text)
}

// ask builds the question that names the files, without the changes in them.
func (s *patchSet) ask() tool.Ask {
	a := asks("apply_patch", api.Each(s.order, func(f *patchedFile) workspace.Path { return f.path })...)
	a.Text = s.text(a, nil, "")
	return a
}

// text returns the row of the call: for one file that file's row, for several a row that lists them, in Roo's form
// for several diffs.
func (s *patchSet) text(a tool.Ask, files []*patchedFile, diff string) string {
	if len(files) == 1 {
		return files[0].row()
	}
	var batch [][]byte
	var all strings.Builder // without the headers between the files
	for _, f := range files {
		text := hunks(f.diff())
		all.WriteString(text + "\n")
		batch = append(batch, esjson.ObjectOf("path", f.path.Readable, "changeCount", int64(1),
			"key", f.path.Readable+" (1 change)",
			"content", text, "diffStats", stats(text),
			"diffs", esjson.List([][]byte{esjson.ObjectOf("content", text)})))
	}
	var diffs []byte
	if len(files) > 0 {
		diffs = esjson.List(batch)
	}
	return string(esjson.ObjectOf("tool", "appliedDiff", "path", strings.TrimPrefix(a.Title, a.Tool+" "), "diff", diff,
		"isOutsideWorkspace", a.Outside, "content", diff, "isProtected", a.Protected, "diffStats", stats(all.String()),
		"batchDiffs", diffs))
}

func (s *patchSet) plan() (tool.Plan, error) {
	changes := s.changes()
	if len(changes) == 0 {
		return nil, refusal("the patch changes nothing: all files are as it wants them")
	}
	files := slices.DeleteFunc(slices.Clone(changes), (*patchedFile).movedAway) // a move is one of them
	p := &rewrite{env: s.env, result: patchResult(files), ask: s.ask()}
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
		p.noteOthers(f.path, f.state, f.data())
	}
	p.ask.Diff = diff.String()
	p.ask.Text = s.text(p.ask, files, strings.TrimSuffix(p.ask.Diff, "\n"))
	return p, nil
}

// patchResult returns the result for the files of a patch, in its order; a move counts once.
func patchResult(files []*patchedFile) string {
	var list [][]byte
	for _, f := range files {
		from := any(nil)
		if f.source() != nil {
			from = f.source().path.Readable
		}
		row := []any{"path", f.path.Readable, "operation", f.operation(), "from", from}
		if len(files) == 1 {
			return string(esjson.ObjectOf(append(row, "notice", writtenNotice)...))
		}
		list = append(list, esjson.ObjectOf(row...))
	}
	return string(esjson.ObjectOf("files", esjson.List(list), "notice", writtenNotice))
}

const writtenNotice = "There is no need to read what was written again; go on with the task."
