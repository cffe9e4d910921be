package filetool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// ShowSource is what a file is recorded as that a person showed to the model.
const ShowSource = "file_mentioned"

// Shown is the beginning of a file as read_file shows it, for those who show a file
// without being asked by the model.
type Shown struct {
	Text      string // Numbered lines; "" when it is no text
	Lines     int    // of the file; a final line feed counts as one more, empty
	Returned  int    // of them in Text, from the first
	Truncated bool
	Binary    bool            // neither text nor a picture that is shown
	Image     json.RawMessage // its block, when it is a picture
	Media     string
	Touch     tool.FileTouch
}

// Show reads the beginning of a file whose path was judged. Problem is why it is
// not shown, in words for the model and the person; an error is the context's.
func Show(ctx context.Context, w *workspace.Workspace, p workspace.Path) (s Shown, problem string, err error) {
	f, state, err := w.Open(p)
	if err != nil {
		problem, err = explain(p, err)
		return Shown{}, problem, err
	}
	defer f.Close()
	head := make([]byte, 8192)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		problem, err = explain(p, err)
		return Shown{}, problem, err
	}
	head = head[:n]
	if media := imageType(p.Real, head); media != "" && state.Size <= MaxImage {
		data, state, err := w.Read(ctx, p, MaxImage)
		if err != nil {
			problem, err = explain(p, err)
			return Shown{}, problem, err
		}
		var source, block esjson.Object
		source.String("type", "base64")
		source.String("media_type", media)
		source.String("data", base64.StdEncoding.EncodeToString(data))
		block.String("type", "image")
		block.Raw("source", source.Bytes())
		return Shown{Image: block.Bytes(), Media: media, Touch: touchOf(state, ShowSource)}, "", nil
	}
	coded := wideCoding(head)
	if state.Size > MaxEdit {
		coded = codedUTF8
	}
	if coded == codedUTF8 && bytes.IndexByte(head, 0) >= 0 || imageType(p.Real, head) != "" {
		return Shown{Binary: true, Touch: touchOf(state, ShowSource)}, "", nil
	}
	sum := sha256.New()
	note, body := "", io.TeeReader(io.MultiReader(bytes.NewReader(head), workspace.NewContextReader(ctx, f)), sum)
	if coded != codedUTF8 {
		decoded, err := decodeBody(body, coded)
		switch {
		case errors.Is(err, errNoText):
			return Shown{Binary: true, Touch: touchOf(state, ShowSource)}, "", nil
		case err != nil:
			problem, err = explain(p, err)
			return Shown{}, problem, err
		}
		note, body = wideNote, decoded
	} else if isNotebook(p.Real) && state.Size <= MaxEdit {
		var all []byte
		if all, err = io.ReadAll(body); err != nil {
			problem, err = explain(p, err)
			return Shown{}, problem, err
		}
		body = bytes.NewReader(all)
		if cells, ok := notebookText(all); ok {
			note, body = notebookNote, strings.NewReader(cells)
		}
	}
	e, err := sliceLines(body, 0, defaultLines)
	if err != nil {
		problem, err = explain(p, err)
		return Shown{}, problem, err
	}
	state.Hash = hex.EncodeToString(sum.Sum(nil))
	text, odd := shownText(e.text)
	return Shown{
		Text: note + odd + text, Lines: e.total, Returned: e.returned, Truncated: e.truncated,
		Touch: touchOf(state, ShowSource),
	}, "", nil
}
