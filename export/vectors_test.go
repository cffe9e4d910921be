package export

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/conformance"
)

// asRoo turns our two improvements back into what Roo prints for them. changed says
// that there was something to turn back.
func asRoo(text string, messages [][]byte) (roo string, changed bool) {
	var out strings.Builder
	for _, m := range messages {
		content, _ := esjson.Get(m, "content")
		for block := range esjson.Array(content) {
			kind, _ := esjson.GetString(block, "type")
			_, readable := esjson.GetString(block, "text")
			if kind != "thinking" && kind != "redacted_thinking" && (kind != "reasoning" || readable) {
				continue
			}
			ours := markdownBlock(block)
			before, after, found := strings.Cut(text, ours)
			if !found {
				return "", true
			}
			theirs := "[Unexpected content type: " + kind + "]"
			if kind == "reasoning" {
				theirs = "[Reasoning]\nundefined"
			}
			out.WriteString(before + theirs)
			text, changed = after, true
		}
	}
	return out.String() + text, changed
}

func TestVectorsExportMarkdown(t *testing.T) {
	conformance.Run(t, "export_markdown", func(t *testing.T, c conformance.Case) bool {
		messages := c.Input.Get("messages").List()
		var out bytes.Buffer
		err := writeTurns(&out, func(yield func(turn) bool) {
			for _, m := range messages {
				if !yield(turnOf(m)) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		got, changed := asRoo(out.String(), messages)
		if want := wellFormed(c.Want.Str("text")); got != want {
			t.Errorf("got\n%q\nwant\n%q", got, want)
		}
		if got, want := MarkdownName(c.Input.Int("ts", 0), time.UTC), c.Want.Str("file_name_utc"); got != want {
			t.Errorf("file name %s, want %s", got, want)
		}
		return changed
	})
}
