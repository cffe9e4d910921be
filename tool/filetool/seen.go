package filetool

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/linetext"
	"github.com/roost-dev/roost/workspace"
)

// maxChangeText bounds in bytes the difference, or the file, that a result shows when the model
// changes a file that is not the one it saw.
const maxChangeText = 8 << 10

// Difference is what changed in a file, as a unified diff. whole is false, and the text
// empty, when that has more than limit bytes or one of the contents is no text.
func Difference(path string, old, now []byte, limit int) (text string, whole bool) {
	before, _, ok := decodeText(old)
	if !ok {
		return "", false
	}
	after, _, ok := decodeText(now)
	if !ok {
		return "", false
	}
	if before == after || !isText(before) || !isText(after) || len(before)+len(after) > maxDiff {
		return "", false
	}
	if text = unified(path, before, after, false); len(text) > limit {
		return "", false
	}
	return text, true
}

// changedSince reports whether a file is another one than the model saw.
func changedSince(env tool.Env, p workspace.Path, now workspace.FileState) (tool.Seen, bool) {
	if env.Seen == nil || !now.Exists() {
		return tool.Seen{}, false // making a file that is not there loses nothing
	}
	seen, ok := env.Seen(p.Readable)
	return seen, ok && seen.Hash != now.Hash
}

// deletedSince is a notice in the result of making a file that the model believes to exist:
// nothing was lost, but the user or another program deleted it.
func deletedSince(env tool.Env, p workspace.Path) string {
	if env.Seen == nil {
		return ""
	}
	if seen, ok := env.Seen(p.Readable); !ok || seen.Hash == "" {
		return ""
	}
	return fmt.Sprintf("\n<notice>%s had been deleted since you last saw it. It was created again.</notice>", tool.SafeName(p.Readable))
}

// describeChange describes for the model what is different now: the difference, or else the whole
// file if that is small. A file outside the workspace or a protected one is not shown,
// as the user has not agreed to its being read.
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
	if len(data) > maxChangeText || !ok || !isText(now) {
		return "", false
	}
	return "It is now:\n" + linetext.Numbered(strings.Split(strings.TrimSuffix(now, "\n"), "\n"), 1) + "\n", true
}

// notOverwritten is why a file is not replaced, or removed, as a whole; nil when it is
// the one that the model saw.
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

// othersChanged is the notice of changes by others in the result of a change of some lines,
// "" when the file is the one that the model saw.
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
