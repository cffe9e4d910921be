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

// WriteToFile gives the tool write_to_file.
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
	Class:  tool.Write,
	Replay: tool.Inspect,
}

func readWrite(env tool.Env, in tool.Input) (p workspace.Path, content string, err error) {
	path, err := in.Need(false, "path", "file_path")
	if err != nil {
		return p, "", err
	}
	if content, err = in.Need(true, "content"); err != nil {
		return p, "", err
	}
	p, err = resolve(env, path)
	return p, strings.ToValidUTF8(stripFence(content), "\uFFFD"), err
}

func planWrite(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
	p, content, err := readWrite(env, in)
	if err != nil {
		return nil, err
	}
	e := &edit{env: env, path: p, ask: asks(in.Tool, p)}
	if p.Ignored {
		e.ask.Text = editText("editedExistingFile", p, "")
		return e, nil
	}
	old, state, err := env.Workspace.Read(ctx, p, MaxEdit)
	var large *workspace.TooLargeError
	if errors.As(err, &large) {
		// Replaced without being shown; its hash is all that is needed of it.
		state, err = env.Workspace.StatPath(ctx, p)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.creates, e.note = true, deletedSince(env, p)
	case err != nil:
		return nil, explain(p, err)
	}
	if stale := notOverwritten(env, p, state, old); stale != nil && state.Hash != workspace.HashOf([]byte(content)) {
		return nil, stale
	}
	e.expect = state.Hash
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
	e.content = string(data)
	e.ask.Before = map[string]string{p.Readable: planned(state.Hash, workspace.HashOf(data))}
	kind := "editedExistingFile"
	if e.creates {
		kind = "newFileCreated"
	}
	e.ask.Diff = unified(p.Readable, before, content, e.creates)
	if large != nil {
		e.ask.Diff = fmt.Sprintf("--- a/%[1]s\n+++ b/%[1]s\n@@ too large for a diff: %d bytes before, %d after @@\n",
			tool.SafeName(p.Readable), state.Size, len(content))
	}
	e.ask.Text = editText(kind, p, hunks(e.ask.Diff))
	return e, nil
}

// likeBefore gives a new text the byte order mark and the line ends of the old one:
// a model sees neither, and writes plain line feeds. A file with both kinds of line
// ends gets those of the content.
func likeBefore(content, old string) string {
	if ends := strings.Count(old, "\n"); ends > 0 && strings.Count(old, "\r\n") == ends && !strings.Contains(content, "\r") {
		content = strings.ReplaceAll(content, "\n", "\r\n")
	}
	if strings.HasPrefix(old, byteOrderMark) && !strings.HasPrefix(content, byteOrderMark) {
		content = byteOrderMark + content
	}
	return content
}

// stripFence takes off the code fence that models like to put around a file. Only a
// fence on the first line goes, and only one on the last line.
func stripFence(s string) string {
	if strings.HasPrefix(s, "```") {
		_, rest, _ := strings.Cut(s, "\n")
		s = rest
	}
	if body := strings.TrimRight(s, "\r\n"); strings.HasSuffix(body, "\n```") || body == "```" {
		s = strings.TrimSuffix(body, "```")
	}
	return s
}

func inspectWrite(ctx context.Context, env tool.Env, in tool.Input, before map[string]string) (tool.Finding, error) {
	p, content, err := readWrite(env, in)
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

// edit is a planned replacement of one file.
type edit struct {
	env     tool.Env
	path    workspace.Path
	content string
	expect  string // hash that the file must still have
	creates bool
	note    string           // added to the result
	other   []tool.FileTouch // what others had changed before
	ask     tool.Ask
}

func (e *edit) Ask() tool.Ask { return e.ask }

func (e *edit) Run(ctx context.Context, _ tool.Output) (tool.Result, error) {
	if e.path.Ignored {
		return denied(e.path.Readable), nil
	}
	now, err := e.env.Workspace.Resolve(e.path.Given)
	if err != nil {
		return tool.Result{}, err
	}
	if now.Ignored {
		return denied(now.Readable), nil
	}
	state, err := e.env.Workspace.Write(ctx, e.path, []byte(e.content), e.expect)
	switch {
	case errors.Is(err, workspace.ErrChanged):
		return failed("%s was changed by someone else after this change was prepared; nothing was written. Read the file again "+
			"and make the change on what is there now.", tool.SafeName(e.path.Readable)), nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, workspace.ErrNotRegular):
		return failed("nothing was written: %v", err), nil
	case err != nil:
		return tool.Result{}, err
	}
	operation := "modified"
	if e.creates {
		operation = "created"
	}
	var o esjson.Object
	o.String("path", e.path.Readable)
	o.String("operation", operation)
	o.String("notice", "The file is written. There is no need to read it again; go on with the task.")
	return tool.Result{Text: string(o.Bytes()) + e.note, Files: append(e.other, touchOf(state, editedSource))}, nil
}

// change plans another text for a file.
func (e *edit) change(s source, text string) error {
	data, missing, ok := s.coding.encode(s.mark + text)
	if !ok {
		return inexpressible(s.path, missing)
	}
	e.content, e.expect, e.creates = string(data), s.state.Hash, !s.state.Exists()
	if text := othersChanged(e.env, s.path, s.state, []byte(s.whole())); text != "" {
		e.note += text
		e.other = append(e.other, touchOf(s.state, otherSource))
	}
	e.ask.Before = map[string]string{s.path.Readable: planned(s.state.Hash, workspace.HashOf(data))}
	e.ask.Diff = unified(s.path.Readable, s.whole(), s.mark+text, e.creates)
	return nil
}

func editText(kind string, p workspace.Path, diff string) string {
	var o esjson.Object
	o.String("tool", kind)
	o.String("path", p.Readable)
	o.String("content", diff)
	o.Bool("isOutsideWorkspace", p.Outside)
	o.Bool("isProtected", p.Protected)
	addStats(&o, diff)
	return string(o.Bytes())
}
