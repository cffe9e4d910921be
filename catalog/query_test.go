package catalog

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

func TestMatch(t *testing.T) {
	m := Message{History: HistoryAPI, Number: 7, Pieces: []Piece{
		{Words, "assistant", "Now I paint the Fence; see handleClick_2 und Straße"},
		{Path, "tool_use", "src/Garden/Fence.tsx"},
		{Tool, "tool_result", "修复登录错误\nÉCOLE 100%"},
	}}
	for _, c := range []struct {
		query string
		in    []string
		kind  string // "" = no hit
	}{
		{"fence", nil, "assistant"}, {"FENCE paint", nil, "assistant"}, {`"the fence"`, nil, "assistant"}, {`"fence the"`, nil, ""},
		{"ndleCl", nil, "assistant"}, {"garden/fence.t", nil, "tool_use"}, {"登录", nil, "tool_result"}, {"复", nil, "tool_result"},
		{"école", nil, "tool_result"}, {"straße", nil, "assistant"}, {"fence 登录", nil, "assistant"}, {"fence missing", nil, ""},
		{"100%", nil, "tool_result"}, {"e", nil, "assistant"}, {`"`, nil, ""}, {`"unclosed`, nil, ""},
		{"fence", []string{"path"}, "tool_use"}, {"fence", []string{"tool"}, "tool_use"}, {"fence", []string{"ui"}, ""},
		{"fence", []string{"ui", "path"}, "tool_use"}, {"paint", []string{"api"}, "assistant"}, {"paint", []string{"tool", "path"}, ""},
	} {
		q, err := Parse(c.query, c.in...)
		fixture.NoError(t, err)
		hit, ok := q.Match(m)
		if hit.Kind != c.kind || ok != (c.kind != "") {
			t.Errorf("%s in %v: %v %q, want %q", c.query, c.in, ok, hit.Kind, c.kind)
		}
		if ok && (hit.Number != 7 || hit.History != HistoryAPI) {
			t.Errorf("%s: got %+v, want not ok or (hit.Number = 7 and hit.History = HistoryAPI)", c.query, hit)
		}
	}
}

func TestWhatCannotBeLookedFor(t *testing.T) {
	for _, c := range []struct {
		text string
		in   []string
	}{{"", nil}, {"  \n", nil}, {`"  "`, nil}, {"x", []string{"title"}}} {
		if _, err := Parse(c.text, c.in...); !errors.Is(err, ErrQuery) {
			t.Errorf("%q in %v: %v", c.text, c.in, err)
		}
	}
}

// The words as they were typed come before the same words far apart, whole words
// before parts of words, and what somebody said before what a tool gave back.
func TestScoresOrderHits(t *testing.T) {
	q, err := Parse("red fence")
	fixture.NoError(t, err)
	last := 100
	for _, p := range []Piece{
		{Words, "k", "a red fence"}, {Tool, "k", "a red fence"}, {Tool, "k", "tired fences"},
		{Words, "k", "red, the fence"}, {Words, "k", "fences covered"},
	} {
		hit, ok := q.Match(Message{History: HistoryUI, Pieces: []Piece{p}})
		if !ok || hit.Score >= last {
			t.Errorf("%q: %v, score %d after %d", p.Text, ok, hit.Score, last)
		}
		last = hit.Score
	}
}

// A snippet is one line of text around the hit, whatever the text is made of.
func TestSnippets(t *testing.T) {
	long := strings.Repeat("before ", 30) + "needle" + strings.Repeat(" after", 60)
	for _, c := range []struct{ text, term, has string }{
		{"a needle", "needle", "a needle"},
		{long, "needle", "before needle after"},
		{"one\n\ttwo\r\nthree", "two", "one two three"},
		{strings.Repeat("İ", 60) + "needle" + strings.Repeat("Ⱥ", 200), "needle", "İneedleȺ"},
		{strings.Repeat("İ", 400) + "needle" + strings.Repeat("Ⱥ", 400), "needle", "İneedleȺ"}, // as long in lower case
		{"bad \xff\xfe bytes", "bytes", "bytes"},
		{strings.Repeat("x", 9000), strings.Repeat("x", 5000), "xxx"},
		{strings.Repeat("登录", 100), "录登", "登录"},
	} {
		q, err := Parse(c.term)
		fixture.NoError(t, err)
		hit, ok := q.Match(said(1, c.text))
		if !ok || !strings.Contains(hit.Snippet, c.has) || !utf8.ValidString(hit.Snippet) || strings.ContainsAny(hit.Snippet, "\n\r\t") || len(hit.Snippet) > 4100 {
			t.Errorf("%.20q in %.20q: %v %q", c.term, c.text, ok, hit.Snippet)
		}
		if cut := len(c.text) > len(hit.Snippet); cut != strings.Contains(hit.Snippet, "…") && !strings.Contains(c.text, "\n") && utf8.ValidString(c.text) {
			t.Errorf("%.20q: whether it was cut is not shown: %q", c.text, hit.Snippet)
		}
	}
}
