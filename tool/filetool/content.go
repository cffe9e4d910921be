package filetool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/linetext"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/terminal"
)

// opened is a file that is being shown.
type opened struct {
	path  workspace.Path
	state workspace.FileState
	media string    // of a picture; its text is not read
	text  io.Reader // nil when the file is no text
	wide  bool      // begins like UTF-16
	note  string    // precedes the text
	sum   hash.Hash // of the bytes read
	file  io.Closer
}

// openFile opens a file at a judged path. It refuses a file that cannot be opened.
func openFile(ctx context.Context, w *workspace.Workspace, p workspace.Path) (_ *opened, err error) {
	f, state, err := w.Open(p)
	if err != nil {
		return nil, explain(p, err)
	}
	c := &opened{path: p, state: state, sum: sha256.New(), file: f}
	defer func() {
		if err != nil {
			f.Close()
			err = explain(p, err)
		}
	}()
	head := make([]byte, 8192)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	head = head[:n]
	if c.media = imageType(p.Real, head); c.media != "" {
		return c, nil
	}
	// One pass hashes the file and picks the lines out of it.
	body := io.TeeReader(io.MultiReader(bytes.NewReader(head), workspace.NewContextReader(ctx, f)), c.sum)
	if bytes.HasPrefix(head, []byte(byteOrderMark)) { // hashed, and not shown
		_, _ = io.CopyN(io.Discard, body, int64(len(byteOrderMark))) // it is in memory
	}
	coded := wideCoding(head)
	if state.Size > MaxEdit {
		coded = codedUTF8
	}
	switch {
	case coded != codedUTF8:
		c.wide, c.note = true, wideNote
		all, err := io.ReadAll(body)
		if text, _, ok := decodeWide(all, coded); ok {
			c.text = strings.NewReader(strings.TrimPrefix(text, byteOrderMark))
		}
		return c, err
	case bytes.IndexByte(head, 0) >= 0:
		return c, nil
	case strings.EqualFold(filepath.Ext(p.Real), ".ipynb") && state.Size <= MaxEdit:
		all, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(all)
		if cells, ok := notebookText(all); ok {
			c.note, body = notebookNote, strings.NewReader(cells)
		}
	}
	c.text = body
	return c, nil
}

// touch returns the record of the file once its text was read.
func (c *opened) touch(source string) tool.FileTouch {
	c.state.Hash = hex.EncodeToString(c.sum.Sum(nil))
	return touchOf(c.state, source)
}

// picture reads the file as an image.
func (c *opened) picture(ctx context.Context, w *workspace.Workspace) (block json.RawMessage, state workspace.FileState, err error) {
	data, state, err := w.Read(ctx, c.path, MaxImage)
	if err != nil {
		return nil, state, explain(c.path, err)
	}
	return tool.ImageBlock(c.media, data), state, nil
}

// imageType returns the media type by the name and the first bytes: a text file called x.png stays text.
func imageType(name string, head []byte) string {
	image, known := images[strings.ToLower(filepath.Ext(name))]
	if known && bytes.HasPrefix(head, []byte(image.magic)) {
		return image.media
	}
	return ""
}

// images are the media types that are shown, by file ending, with the bytes that such a file begins with.
var images = map[string]struct{ media, magic string }{
	".png": {"image/png", "\x89PNG"}, ".gif": {"image/gif", "GIF8"}, ".webp": {"image/webp", "RIFF"},
	".jpg": {"image/jpeg", "\xff\xd8\xff"}, ".jpeg": {"image/jpeg", "\xff\xd8\xff"},
}

// coding is the encoding of a file's text. It belongs to the file: a model sees and writes characters, and changed
// lines are written in the encoding of the rest of the file.
type coding int

const (
	codedUTF8 coding = iota
	codedUTF16LE
	codedUTF16BE
	codedSingle // one byte per character, read as Windows-1252
)

// singleNote precedes the lines of a file with one byte per character: the bytes do not show which character set it
// is.
const singleNote = "Note: this file is not UTF-8; it is shown, and will be written, as Windows-1252.\n\n"

const wideNote = "Note: this file is UTF-16, and stays so when it is changed.\n\n"

// high are the characters of the bytes 0x80 to 0x9F. The five bytes without a character map to themselves, so that
// every byte of a file is written back unchanged.
var high = [32]rune{
	'€', 0x81, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0x8D, 'Ž', 0x8F,
	0x90, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0x9D, 'ž', 'Ÿ',
}

// decodeText returns the text of a file, its byte order mark first if it has one. ok is false for a file that is no
// text, or that would not be written back the same: with NUL bytes, halves of characters, or invalid bytes in UTF-8.
func decodeText(data []byte) (text string, c coding, ok bool) {
	if c = wideCoding(data); c != codedUTF8 {
		return decodeWide(data, c)
	}
	s := string(data)
	switch {
	case strings.IndexByte(s, 0) >= 0:
		return "", codedUTF8, false
	case utf8.ValidString(s):
		return s, codedUTF8, true
	case single(s):
		return decodeSingle(s), codedSingle, true
	}
	return "", codedUTF8, false
}

// wideCoding judges by the byte order mark. Without a mark, UTF-16 is only a guess, so such a file counts as no text.
func wideCoding(head []byte) coding {
	switch {
	case len(head) < 2 || len(head) >= 4 && head[0] == 0xFF && head[2] == 0 && head[3] == 0:
		return codedUTF8 // the last is UTF-32
	case head[0] == 0xFF && head[1] == 0xFE:
		return codedUTF16LE
	case head[0] == 0xFE && head[1] == 0xFF:
		return codedUTF16BE
	}
	return codedUTF8
}

func (c coding) order() interface {
	binary.ByteOrder
	binary.AppendByteOrder
} {
	if c == codedUTF16BE {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func decodeWide(data []byte, c coding) (string, coding, bool) {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = c.order().Uint16(data[2*i:])
	}
	text := utf16.Decode(units)
	if len(data)%2 != 0 || slices.Contains(units, 0) || !slices.Equal(utf16.Encode(text), units) {
		return "", c, false
	}
	return string(text), c, true
}

// single reports whether bytes look like text of one byte per character: they hold no control characters, and no
// sequence that is a character of UTF-8. A file with such sequences is UTF-8 with an error in it, and reading it as
// anything else would spoil them.
func single(s string) bool {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if size > 1 || r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b", r) {
			return false
		}
		i += size
	}
	return true
}

func decodeSingle(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	for i := range len(s) {
		if c := s[i]; c >= 0x80 && c < 0xA0 {
			b.WriteRune(high[c-0x80])
		} else {
			b.WriteRune(rune(c))
		}
	}
	return b.String()
}

// shownText returns a part of a file as a model sees it, with a note if it is not UTF-8. Bytes that are neither UTF-8
// nor Windows-1252 are replaced.
func shownText(part string) (text, note string) {
	switch {
	case utf8.ValidString(part):
		return part, ""
	case single(part):
		return decodeSingle(part), singleNote
	}
	return strings.ToValidUTF8(part, "\uFFFD"), ""
}

// encode returns a text as bytes of the coding. If the coding lacks a character, encode
// returns that character as missing, with ok false.
func (c coding) encode(text string) (data []byte, missing rune, ok bool) {
	switch c {
	case codedUTF16LE, codedUTF16BE:
		data = make([]byte, 0, 2*len(text))
		for _, u := range utf16.Encode([]rune(text)) {
			data = c.order().AppendUint16(data, u)
		}
		return data, 0, true
	case codedSingle:
		data = make([]byte, 0, len(text))
		for _, r := range text {
			b, ok := singleByte(r)
			if !ok {
				return nil, r, false
			}
			data = append(data, b)
		}
		return data, 0, true
	}
	return []byte(text), 0, true
}

func singleByte(r rune) (byte, bool) {
	if r < 0x80 || r >= 0xA0 && r <= 0xFF {
		return byte(r), true
	}
	i := slices.Index(high[:], r)
	return byte(0x80 + i), i >= 0
}

// inexpressible refuses a change by lines that the file's coding cannot hold. The file does not
// become UTF-8 for that: if its coding is not Windows-1252, that would spoil lines that the model
// never saw.
func inexpressible(p workspace.Path, missing rune) error {
	return refuse("%s is not UTF-8; it is kept as Windows-1252, which has no %q (%U). Use other characters, or write "+
		"the whole file with write_to_file, which makes it UTF-8.", tool.SafeName(p.Readable), missing, missing)
}

// notText is the answer for a file whose lines cannot be changed.
func notText(p workspace.Path) error {
	return refuse("%s is not text in UTF-8, UTF-16 with a byte order mark, or one byte a character, so it cannot be "+
		"changed by lines.", tool.SafeName(p.Readable))
}

// maxCellOutput bounds the output that is shown per cell, in UTF-16 units. A model reads a notebook for its code; the
// printed output is often most of the file.
const maxCellOutput = 2000

// notebookNote precedes the lines of a notebook.
const notebookNote = "Note: this is a notebook; the lines below are those of its cells, not of the file, which is JSON.\n\n"

// notebookText returns the cells of a Jupyter notebook (format 4) as text: for each a heading, its source, and its
// printed output. Pictures are only named. ok is false for data that is no such notebook.
func notebookText(data []byte) (text string, ok bool) {
	if !esjson.Valid(data) || esjson.TypeOf(data) != esjson.TypeObject {
		return "", false
	}
	cells, ok := esjson.Get(data, "cells")
	if !ok || esjson.TypeOf(cells) != esjson.TypeArray {
		return "", false
	}
	var b strings.Builder
	n := 0
	for cell := range esjson.Array(cells) {
		if esjson.TypeOf(cell) != esjson.TypeObject {
			continue
		}
		n++
		kind, _ := esjson.GetString(cell, "cell_type")
		heading(&b, fmt.Sprintf("# %%%% cell %d [%s]", n, tool.SafeName(kind)), member(cell, "source"))
		if out := cellOutput(cell); out != "" {
			heading(&b, fmt.Sprintf("# %%%% output of cell %d", n), out)
		}
	}
	return b.String(), true
}

func heading(b *strings.Builder, head, body string) {
	b.WriteString(head + "\n")
	if body = strings.TrimSuffix(body, "\n"); body != "" {
		b.WriteString(body + "\n")
	}
	b.WriteString("\n")
}

// member returns text that a notebook holds as one string or as a list of lines.
func member(obj []byte, key string) string {
	raw, _ := esjson.Get(obj, key)
	if esjson.TypeOf(raw) == esjson.TypeString {
		return esjson.Text(raw)
	}
	var b strings.Builder
	for l := range esjson.Array(raw) {
		b.WriteString(esjson.Text(l))
	}
	return b.String()
}

func cellOutput(cell []byte) string {
	list, _ := esjson.Get(cell, "outputs")
	var parts []string
	for out := range esjson.Array(list) {
		if esjson.TypeOf(out) == esjson.TypeObject {
			parts = append(parts, outputText(out))
		}
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	all := strings.Join(parts, "\n")
	if short := linetext.Cut(all, maxCellOutput); short != all {
		return fmt.Sprintf("%s\n[... %d more characters]", short, terminal.Units(all)-terminal.Units(short))
	}
	return all
}

func outputText(out []byte) string {
	if esjson.TextOf(out, "output_type") == "error" {
		return strings.TrimSuffix(member(out, "ename")+": "+member(out, "evalue"), ": ")
	}
	if text := member(out, "text"); text != "" {
		return strings.TrimSuffix(text, "\n")
	}
	data, ok := esjson.Get(out, "data")
	if !ok || esjson.TypeOf(data) != esjson.TypeObject {
		return ""
	}
	var named []string
	for media := range esjson.Members(data) {
		if media != "text/plain" && media != "text/html" {
			named = append(named, "["+tool.SafeName(media)+", not shown]")
		}
	}
	if text := member(data, "text/plain"); text != "" {
		named = append([]string{strings.TrimSuffix(text, "\n")}, named...)
	}
	return strings.Join(named, "\n")
}

func touchOf(s workspace.FileState, source string) tool.FileTouch {
	return tool.FileTouch{FileState: s, Source: source}
}

// refusal is the reason, in words for the model, why a call cannot be planned: a mistake of the model, or a fault of
// a file.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// reading makes a tool whose planning may end in a refusal.
func reading(s tool.Spec, plan func(context.Context, tool.Env, tool.Input) (tool.Plan, error)) tool.Tool {
	return tool.Make(s, func(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
		p, err := plan(ctx, env, in)
		return p, mistake(in, err)
	})
}

func mistake(in tool.Input, err error) error {
	if why, ok := errors.AsType[refusal](err); ok {
		return in.Wrong("%s", why)
	}
	return err
}

// writing is a tool that writes. Its Inspect reports whether an interrupted call took effect.
type writing struct {
	tool.Tool
	inspect func(ctx context.Context, env tool.Env, in tool.Input, before map[string]string) (tool.Finding, error)
}

// Inspect implements tool.Inspector. It judges a call by the hashes that were stored when it was planned. Without them,
// for a call that another program left, inspect judges by the files.
func (w writing) Inspect(ctx context.Context, env tool.Env, raw json.RawMessage, before map[string]string) (tool.Finding, error) {
	in, err := tool.ReadInput(w.Spec().Name, raw)
	if err != nil {
		return tool.Unclear, err
	}
	found, ok, err := inspectPlanned(ctx, env, before)
	if !ok && err == nil {
		found, err = w.inspect(ctx, env, in, before)
	}
	return found, mistake(in, err)
}

// resolve judges a path, and refuses one that no file can have.
func resolve(env tool.Env, path string) (workspace.Path, error) {
	p, err := env.Workspace.Resolve(path)
	if errors.Is(err, workspace.ErrPath) {
		return p, refusal(err.Error())
	}
	return p, err
}

// denied returns the result for a path that .rooignore hides.
func denied(path string) tool.Result {
	return tool.Result{IsError: true, Text: string(esjson.ObjectOf("status", "error", "type", "access_denied",
		"message", "Access blocked by .rooignore", "path", path,
		"suggestion", "Go on without this file, or ask the user to change .rooignore."))}
}

// explain turns an error about a file into a refusal, and returns any other error as it is.
func explain(p workspace.Path, err error) error {
	name := tool.SafeName(p.Readable)
	var large *workspace.TooLargeError
	switch {
	case tool.ContextError(err) != nil:
		return err
	case errors.Is(err, fs.ErrNotExist):
		return refuse("%s does not exist. Use list_files to see what is there.", name)
	case errors.Is(err, fs.ErrPermission):
		return refuse("%s may not be opened: permission denied.", name)
	case errors.Is(err, workspace.ErrNotRegular):
		return refuse("%s is not a file. If it is a folder, use list_files.", name)
	case errors.As(err, &large):
		return refusal(large.Error())
	}
	return refuse("%s cannot be read: %v", name, err)
}

// asks builds the question for a call about files.
func asks(name string, paths ...workspace.Path) tool.Ask {
	a := tool.Ask{Kind: "tool", Tool: name}
	var names []string
	for _, p := range paths {
		names = append(names, p.Readable)
		a.Paths = append(a.Paths, p.RulePaths()...)
		a.Outside = a.Outside || p.Outside
		a.LinkedOutside = a.LinkedOutside || p.LinkedOutside
		a.Protected = a.Protected || p.Protected
		a.Ignored = a.Ignored || p.Ignored
	}
	a.Title = name + " " + strings.Join(api.Each(names, tool.SafeName), ", ")
	return a
}

// schema builds a JSON schema in a fixed key order, so that requests keep the
// same bytes. Properties come as name, JSON pairs.
func schema(required []string, properties ...string) json.RawMessage {
	var props esjson.Object
	for i := 0; i < len(properties); i += 2 {
		props.Raw(properties[i], []byte(properties[i+1]))
	}
	return esjson.ObjectOf("type", "object", "properties", props.Bytes(), "required", esjson.Strings(required),
		"additionalProperties", false)
}

func property(kind, description string) string {
	if kind[0] != '[' {
		kind = string(esjson.Quote(nil, kind))
	}
	return string(esjson.ObjectOf("type", []byte(kind), "description", description))
}
