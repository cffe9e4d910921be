package filetool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// opened is a file that is shown.
type opened struct {
	path  workspace.Path
	state workspace.FileState
	media string    // of a picture; its text is not read
	text  io.Reader // nil when the file is no text
	wide  bool      // it begins like UTF-16
	note  string    // precedes the text
	sum   hash.Hash // of what was read
	file  io.Closer
}

// openFile opens a file whose path was judged. What is wrong with it is a refusal.
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
	coded := wideCoding(head)
	if state.Size > MaxEdit {
		coded = codedUTF8
	}
	switch {
	case coded != codedUTF8:
		c.wide, c.note = true, wideNote
		c.text, err = decodeBody(body, coded)
		if errors.Is(err, errNoText) {
			return c, nil
		}
		return c, err
	case bytes.IndexByte(head, 0) >= 0:
		return c, nil
	case isNotebook(p.Real) && state.Size <= MaxEdit:
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

// touch records the file when its text was read.
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
