package filetool

import (
	"context"
	"encoding/json"
	"errors"

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
	s, err = show(ctx, w, p)
	var why refusal
	if errors.As(err, &why) {
		return s, string(why), nil
	}
	return s, "", err
}

func show(ctx context.Context, w *workspace.Workspace, p workspace.Path) (Shown, error) {
	c, err := openFile(ctx, w, p)
	if err != nil {
		return Shown{}, err
	}
	defer c.file.Close()
	switch {
	case c.media != "" && c.state.Size <= MaxImage:
		block, state, err := c.picture(ctx, w)
		return Shown{Image: block, Media: c.media, Touch: touchOf(state, ShowSource)}, err
	case c.text == nil:
		return Shown{Binary: true, Touch: touchOf(c.state, ShowSource)}, nil
	}
	e, err := sliceLines(c.text, 0, defaultLines)
	if err != nil {
		return Shown{}, explain(p, err)
	}
	text, odd := shownText(e.text)
	return Shown{
		Text:      c.note + odd + text,
		Lines:     e.total,
		Returned:  e.returned,
		Truncated: e.truncated,
		Touch:     c.touch(ShowSource),
	}, nil
}
