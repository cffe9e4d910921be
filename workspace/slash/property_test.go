package slash

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A description comes out as it was put in, however it is quoted.
func TestQuotedDescriptionsSurvive(t *testing.T) {
	letters := rapid.StringOf(rapid.SampledFrom([]rune(`ab :#'"\-[]{}&*!|>%@é日~0.`)))
	rapid.Check(t, func(r *rapid.T) {
		text := letters.Draw(r, "text")
		for _, quoted := range []string{"'" + strings.ReplaceAll(text, "'", "''") + "'", strconv.Quote(text), strconv.QuoteToASCII(text) + " # a remark"} {
			c := Parse("---\nmode: ask\ndescription: " + quoted + "\n---\nbody")
			if c.Description != strings.TrimSpace(text) || c.Mode != "ask" || c.Content != "body" {
				r.Fatalf("%s becomes %+v", quoted, c)
			}
		}
	})
}

// Nothing of a text without front matter is lost.
func TestTextWithoutFrontMatterIsContent(t *testing.T) {
	lines := rapid.SliceOf(rapid.SampledFrom([]string{"", "words", "- item", "description: x", "----", " ---", "# title", "key:"}))
	rapid.Check(t, func(r *rapid.T) {
		text := "first\n" + strings.Join(lines.Draw(r, "lines"), "\n") + "\n---\nlast"
		if c := Parse(text); c.Content != text || c.Description != "" {
			r.Fatalf("%q becomes %+v", text, c)
		}
	})
}
