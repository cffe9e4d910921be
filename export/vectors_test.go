package export

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/workspace/terminal"
)

// wanted is what is written of the messages: Roo's text, but with thinking written out,
// reasoning that nobody can read called encrypted, and a message without content called
// that. changed says that one of them occurs.
func wanted(t *testing.T, roo string, messages [][]byte) (text string, changed bool) {
	t.Helper()
	var out strings.Builder
	instead := func(theirs, ours string) {
		before, after, found := strings.Cut(roo, theirs)
		if !found {
			t.Fatalf("Roo does not write %q in %q", theirs, roo)
		}
		out.WriteString(before + ours)
		roo, changed = after, true
	}
	for _, m := range messages {
		content, has := esjson.Get(m, "content")
		if _, typed := esjson.Get(m, "type"); !has && !typed {
			instead("undefined", "[no content]")
		}
		for block := range esjson.Array(content) {
			kind, _ := esjson.GetString(block, "type")
			thought, _ := esjson.GetString(block, "thinking")
			_, readable := esjson.GetString(block, "text")
			switch {
			case kind == "thinking":
				instead("[Unexpected content type: thinking]", "[Reasoning]\n"+thought)
			case kind == "redacted_thinking":
				instead("[Unexpected content type: redacted_thinking]", "[Reasoning]\n(encrypted)")
			case kind == "reasoning" && !readable:
				instead("[Reasoning]\nundefined", "[Reasoning]\n(encrypted)")
			}
		}
	}
	return out.String() + roo, changed
}

func TestVectorsExportMarkdown(t *testing.T) {
	conformance.Run(t, "export_markdown", func(t *testing.T, c conformance.Case) bool {
		messages := c.Input.Get("messages").List()
		var out bytes.Buffer
		page := turns{w: &out}
		for _, m := range messages {
			page.message(m)
		}
		want, changed := wanted(t, c.Want.Str("text"), messages)
		if got, want := out.String(), terminal.WellFormed(want); got != want {
			t.Errorf("got\n%q\nwant\n%q", got, want)
		}
		if got, want := MarkdownName(c.Input.Int("ts", 0), time.UTC), c.Want.Str("file_name_utc"); got != want {
			t.Errorf("file name %s, want %s", got, want)
		}
		return changed
	})
}
