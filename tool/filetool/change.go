package filetool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/linetext"
	"github.com/roost-dev/roost/workspace"
)

// planned returns the value in tool.Ask.Before for a file that a call is to change: its hash before and after. An
// edit cannot be repeated on the new content to see whether it took effect; the two hashes show that for certain.
func planned(before, after string) string { return before + " " + after }

// inspectPlanned judges a call by the hashes that were stored when it was planned. ok is false when there are none,
// or when a file has neither the old nor the planned content: another program changed it since, and its content must
// be examined.
func inspectPlanned(ctx context.Context, env tool.Env, before map[string]string) (found tool.Finding, ok bool, err error) {
	var done, open []string
	strange := len(before) == 0
	for path, hashes := range before {
		old, fresh, both := strings.Cut(hashes, " ")
		p, err := env.Workspace.Resolve(path)
		if err != nil {
			return tool.Unclear, true, err
		}
		state, err := look(ctx, env, p)
		if err != nil {
			return tool.Unclear, true, err
		}
		switch {
		case both && state.Hash == fresh:
			done = append(done, tool.SafeName(path))
		case state.Hash == old:
			open = append(open, tool.SafeName(path))
		default:
			strange = true
		}
	}
	if strange {
		return tool.Unclear, false, nil
	}
	found, err = verdict(done, open, nil)
	return found, true, err
}

// verdict returns the finding over all files of a call. When only some of several files are done, it also returns an
// error that names them, so that the model does the rest.
func verdict(done, open, other []string) (tool.Finding, error) {
	switch len(done) + len(open) + len(other) {
	case len(done):
		return tool.Done, nil
	case len(open):
		return tool.NotDone, nil
	case 1:
		return tool.Unclear, nil
	}
	var parts []string
	for _, p := range []struct {
		what  string
		files []string
	}{{"Changed: ", done}, {"Not changed: ", open}, {"Not clear: ", other}} {
		if len(p.files) > 0 {
			slices.Sort(p.files)
			parts = append(parts, p.what+strings.Join(p.files, ", ")+".")
		}
	}
	return tool.Unclear, errors.New(strings.Join(parts, " "))
}

// look removes what a killed write may have left beside a file, and returns the file's state.
func look(ctx context.Context, env tool.Env, p workspace.Path) (workspace.FileState, error) {
	_, _ = env.Workspace.Sweep(p) // a failure leaves a temporary file, which does not change the finding
	return env.Workspace.StatPath(ctx, p)
}

// inspectText judges a call by the file's text: whether it is the text that the call makes or the text that the call
// would change.
func inspectText(ctx context.Context, env tool.Env, p workspace.Path, judge func(text string) (done, open bool)) (tool.Finding, error) {
	if _, err := look(ctx, env, p); err != nil {
		return tool.Unclear, err
	}
	s, err := editable(ctx, env, p)
	if err != nil {
		return tool.Unclear, tool.ContextError(err)
	}
	return finding(judge(s.text)), nil
}

func finding(done, open bool) tool.Finding {
	switch {
	case done:
		return tool.Done
	case open:
		return tool.NotDone
	}
	return tool.Unclear
}

// source is a file that is to be changed by lines: its text without a byte order mark,
// and the mark, which belongs to the file and not to its first line.
type source struct {
	path       workspace.Path
	mark, text string
	coding     coding
	state      workspace.FileState
}

// editable reads a file that is to be changed, and refuses one that cannot be.
func editable(ctx context.Context, env tool.Env, p workspace.Path) (s source, err error) {
	s.path = p
	data, state, err := env.Workspace.Read(ctx, p, MaxEdit)
	if s.state = state; err != nil {
		return s, explain(p, err)
	}
	var ok bool
	if s.text, s.coding, ok = decodeText(data); !ok {
		return s, notText(p)
	}
	if rest, marked := strings.CutPrefix(s.text, byteOrderMark); marked {
		s.mark, s.text = byteOrderMark, rest
	}
	return s, nil
}

// whole returns the text with its mark.
func (s source) whole() string { return s.mark + s.text }

const byteOrderMark = "\ufeff"

// maxChangeText bounds the bytes of the difference, or of the file, in a result that warns the model: the file had
// changed since the model saw it.
const maxChangeText = 8 << 10

// Difference returns the change of a file as a unified diff. whole is false, and the text empty, when the diff has
// more than limit bytes or one of the contents is no text.
func Difference(path string, old, now []byte, limit int) (text string, whole bool) {
	before, _, wasText := decodeText(old)
	after, _, isNow := decodeText(now)
	if !wasText || !isNow || before == after || len(before)+len(after) > maxDiff {
		return "", false
	}
	path = tool.SafeName(path)
	if text = unified("a/"+path, "b/"+path, before, after); len(text) > limit {
		return "", false
	}
	return text, true
}

// changedSince reports whether a file differs from what the model saw.
func changedSince(env tool.Env, p workspace.Path, now workspace.FileState) (tool.Seen, bool) {
	if env.Seen == nil || !now.Exists() {
		return tool.Seen{}, false // making a file that is not there loses nothing
	}
	seen, ok := env.Seen(p.Readable)
	return seen, ok && seen.Hash != now.Hash
}

// deletedSince returns the notice in a result that creates a file which the model believed to exist: nothing was
// lost, but the user or another program had deleted it.
func deletedSince(env tool.Env, p workspace.Path) string {
	if env.Seen == nil {
		return ""
	}
	if seen, ok := env.Seen(p.Readable); !ok || seen.Hash == "" {
		return ""
	}
	return fmt.Sprintf("\n<notice>%s had been deleted since you last saw it. It was created again.</notice>", tool.SafeName(p.Readable))
}

// describeChange describes a change of a file for the model: by the difference, or by the whole file if the
// difference is too long and the file is small. It does not show a file outside the workspace or a protected one,
// since the user has not agreed that the model reads it.
func describeChange(p workspace.Path, seen tool.Seen, data []byte) (text string, whole bool) {
	if data == nil || p.Outside || p.Protected {
		return "", false
	}
	if seen.Data != nil {
		if diff, ok := Difference(p.Readable, seen.Data, data, maxChangeText); ok {
			return "What changed:\n" + diff, true
		}
	}
	now, _, ok := decodeText(data)
	if len(data) > maxChangeText || !ok {
		return "", false
	}
	return "It is now:\n" + linetext.Numbered(strings.Split(strings.TrimSuffix(now, "\n"), "\n"), 1) + "\n", true
}

// notOverwritten returns why a file must not be replaced or removed as a whole: its content is not what the model
// saw. nil = it is.
func notOverwritten(env tool.Env, p workspace.Path, now workspace.FileState, data []byte) error {
	seen, changed := changedSince(env, p, now)
	if !changed {
		return nil
	}
	e := &tool.StaleError{Now: touchOf(now, "")}
	what := "has changed since you last saw it"
	if seen.Hash == "" {
		what = "was created again after it had been deleted"
	}
	text, whole := describeChange(p, seen, data)
	e.Shown, e.Reason = whole, fmt.Sprintf("%s %s, so it was left as it is. ", tool.SafeName(p.Readable), what)
	if whole {
		e.Reason += "Make your change so that nothing of that is lost. " + text
	} else {
		e.Reason += "Read it, and make your change so that nothing of that is lost."
	}
	return e
}

// othersChanged returns the notice of changes by others, for the result of a change of some lines; "" when the file
// is as the model saw it.
func othersChanged(env tool.Env, p workspace.Path, now workspace.FileState, data []byte) string {
	seen, changed := changedSince(env, p, now)
	if !changed {
		return ""
	}
	text, whole := describeChange(p, seen, data)
	if !whole {
		text = "Read it before you change more of it."
	}
	return fmt.Sprintf("\n<notice>%s had changed since you last saw it. Your change was made in what was there. "+
		"%s</notice>", tool.SafeName(p.Readable), text)
}

// maxDiff is the total size of two texts, in bytes, up to which differences are computed; a longer difference, which
// a person could not read anyway, is only counted.
const maxDiff = 4 << 20

// noFile stands in the headers of a diff for a file that does not exist.
const noFile = "/dev/null"

// unified returns a unified diff with the headers from and to, "" when nothing differs.
func unified(from, to, old, content string) string {
	why := "the file is too large for a diff"
	if !isText(old) || !isText(content) {
		why = "not text"
	} else if len(old)+len(content) <= maxDiff {
		return udiff.Unified(from, to, old, content)
	}
	return fmt.Sprintf("--- %s\n+++ %s\n@@ %s: %d bytes before, %d after @@\n", from, to, why, len(old), len(content))
}

// isText distinguishes text from bytes that would fill a terminal with rubbish.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// hunks returns a unified diff without its file headers, as Roo stores it.
func hunks(diff string) string {
	if i := strings.Index(diff, "@@"); i >= 0 {
		return strings.TrimSuffix(diff[i:], "\n")
	}
	return ""
}

// stats counts the lines of hunks; nil if there are none.
func stats(hunks string) []byte {
	added, removed := int64(0), int64(0)
	for l := range strings.Lines(hunks) {
		switch l[0] {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	if added+removed == 0 {
		return nil
	}
	return esjson.ObjectOf("added", added, "removed", removed)
}
