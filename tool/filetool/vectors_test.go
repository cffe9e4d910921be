package filetool

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/conformance"
)

func str(obj []byte, key string) string { return conformance.Value(obj).Str(key) }

// excerptOf runs the function that a case of read_file names.
func excerptOf(t *testing.T, in conformance.Value) (e excerpt, text string) {
	t.Helper()
	num := func(v conformance.Value, key string, other int) int { return int(v.Int(key, int64(other))) }
	options := func(o conformance.Value, anchor int) indentOptions {
		return indentOptions{
			anchor: num(o, "anchor_line", anchor), levels: num(o, "max_levels", 0),
			siblings: o.Bool("include_siblings", false), header: o.Bool("include_header", true),
			limit: num(o, "limit", defaultLines), maxLines: num(o, "max_lines", 0),
		}
	}
	content, entry := in.Str("content"), in.Get("entry")
	limit, offset := num(entry, "limit", defaultLines), num(entry, "offset", 1)
	indented := entry.Str("mode") == "indentation"
	var err error
	switch fn := in.Str("fn"); {
	case fn == "slice":
		e, err = sliceLines(strings.NewReader(content), num(in, "offset0", 0), num(in, "limit", defaultLines))
		text = e.text
	case fn == "indentation":
		e = indentLines(content, options(in.Get("options"), 1))
		text = e.text
	case fn == "tool_text" && indented:
		e = indentLines(content, options(entry, offset))
		text = e.toolText(true, offset, limit)
	case fn == "tool_text":
		e, err = sliceLines(strings.NewReader(content), offset-1, limit)
		text = e.toolText(false, offset, limit)
	default:
		t.Fatalf("unknown function %q", fn)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e, text
}

func TestVectorsReadFile(t *testing.T) {
	conformance.Run(t, "read_file", func(t *testing.T, c conformance.Case) (choice bool) {
		e, got := excerptOf(t, c.Input)
		want, meta, toolText := c.Want.Str("text"), "", c.Input.Str("fn") == "tool_text"
		if !toolText {
			var ranges [][]byte
			for _, r := range e.ranges {
				ranges = append(ranges, fmt.Appendf(nil, "[%d,%d]", r[0], r[1]))
			}
			meta = cmp.Diff(string(c.Want.Get("included_ranges")), string(conformance.Array(ranges)))
			if c.Want.Int("total_lines", -1) != int64(e.total) || c.Want.Int("returned_lines", -1) != int64(e.returned) || c.Want.Bool("was_truncated", false) != e.truncated {
				meta += fmt.Sprintf(" total %d returned %d truncated %v", e.total, e.returned, e.truncated)
			}
		}
		own := ownReading(c, want)
		if got != own || meta != "" {
			t.Errorf("%s\n%s", meta, cmp.Diff(own, got))
		}
		return own != want
	})
}

// ownReading is the text that we give. By choice: the lines of the notice are not indented,
// a line behind the end is no empty file, and no character is cut in two.
func ownReading(c conformance.Case, want string) string {
	content, entry := c.Input.Str("content"), c.Input.Get("entry")
	lines := int64(strings.Count(content, "\n") + 1)
	tool := c.Input.Str("fn") == "tool_text"
	offset := entry.Int("offset", 1)
	switch {
	case tool && entry.Str("mode") != "indentation" && offset > lines:
		return fmt.Sprintf("Note: line %d is past the end of the file, which has %d lines.", offset, lines)
	case tool && strings.HasPrefix(want, "IMPORTANT: File content truncated.\n\t"):
		want = strings.Replace(want, "\n\t", "\n", 4)
	}
	if utf8.ValidString(content) {
		want = conformance.ReplaceHalves(want, "")
	}
	return want
}
