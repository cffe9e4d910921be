package filetool

import (
	"fmt"
	"strings"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
)

// maxDiff is the size of two texts together, in bytes, up to which differences
// are worked out; what a person could not read anyway is only counted.
const maxDiff = 4 << 20

// unified gives a unified diff with file headers, "" when nothing differs.
func unified(path, old, content string, creates bool) string {
	path = tool.SafeName(path)
	switch {
	case !isText(old) || !isText(content):
		return fmt.Sprintf("--- a/%s\n+++ b/%s\n@@ not text: %d bytes before, %d after @@\n", path, path, len(old), len(content))
	case len(old)+len(content) > maxDiff:
		return fmt.Sprintf("--- a/%s\n+++ b/%s\n@@ the file is too large for a diff: %d bytes before, %d after @@\n", path,
			path, len(old), len(content))
	}
	from := "a/" + path
	if creates {
		from = "/dev/null"
	}
	return udiff.Unified(from, "b/"+path, old, content)
}

// isText distinguishes text from bytes that would fill a terminal with rubbish.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// hunks is a unified diff without its file headers, as Roo stores it.
func hunks(diff string) string {
	if i := strings.Index(diff, "@@"); i >= 0 {
		return strings.TrimSuffix(diff[i:], "\n")
	}
	return ""
}

// addStats counts the lines of hunks, if there are any.
func addStats(o *esjson.Object, hunks string) {
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
		return
	}
	var s esjson.Object
	s.Int("added", added)
	s.Int("removed", removed)
	o.Raw("diffStats", s.Bytes())
}
