package view

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// side is one side of a diff: the lines that stand, and those of one mark.
func side(diff, mark string) []string {
	var out []string
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, mark) || strings.HasPrefix(line, " ") {
			out = append(out, line[1:])
		}
	}
	return out
}

// A diff holds both texts, whatever they are, and calls no line changed that both begin
// or end with.
func TestReplacedHoldsBothSides(t *testing.T) {
	t.Parallel()
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", " c", "-d", "+e", "@@", "=======", "\tf"}), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		a, b := lines.Draw(t, "before"), lines.Draw(t, "after")
		before, after := strings.Join(a, "\n"), strings.Join(b, "\n")
		diff := replaced(before, after)
		if got := side(diff, "-"); !slices.Equal(got, splitLines(before)) {
			t.Fatalf("before %q is %q in\n%s", before, got, diff)
		}
		if got := side(diff, "+"); !slices.Equal(got, splitLines(after)) {
			t.Fatalf("after %q is %q in\n%s", after, got, diff)
		}
		if before == after && strings.ContainsAny(firsts(diff), "+-") {
			t.Fatalf("the same text is changed:\n%s", diff)
		}
	})
}

// firsts are the first characters of lines.
func firsts(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(line[:1])
	}
	return out.String()
}

func TestSearchReplaceAsADiff(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"Roo's": {
			"<<<<<<< SEARCH\n:start_line:12\n-------\nkeep\nold\n=======\nkeep\nnew\nmore\n>>>>>>> REPLACE\n",
			"@@ line 12\n keep\n-old\n+new\n+more",
		},
		"with an end line":      {"<<<<<<< SEARCH\n:start_line:1\n:end_line:2\n-------\na\n=======\nb\n>>>>>>> REPLACE", "@@ line 1\n-a\n+b"},
		"Cline's":               {"------- SEARCH\na\n=======\nb\n+++++++ REPLACE\n", "@@\n-a\n+b"},
		"two":                   {"<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n\n<<<<<<< SEARCH\nc\n=======\n>>>>>>> REPLACE", "@@\n-a\n+b\n@@\n-c"},
		"Windows' line ends":    {"<<<<<<< SEARCH\r\na\r\n=======\r\nb\r\n>>>>>>> REPLACE\r\n", "@@\n-a\n+b"},
		"nothing searched for":  {"<<<<<<< SEARCH\n=======\nb\n>>>>>>> REPLACE", "@@\n+b"},
		"cut while it came":     {"<<<<<<< SEARCH\na\n=======\nb\nc", "@@\n-a\n+b\n+c"},
		"cut before the change": {"<<<<<<< SEARCH\na", "@@\n-a"},
		"a rule in a text":      {"<<<<<<< SEARCH\n-------\n- a\n---\n=======\nb\n>>>>>>> REPLACE", "@@\n-- a\n----\n+b"},
		"words around":          {"I change it:\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\nthat is all", " I change it:\n@@\n-a\n+b\n that is all"},
		"a block within":        {"<<<<<<< SEARCH\na\n<<<<<<< SEARCH\nb\n=======\nc\n>>>>>>> REPLACE", "@@\n-a\n@@\n-b\n+c"},
	} {
		got, ok := change(tt.text)
		if d := cmp.Diff(tt.want, got); d != "" || !ok {
			t.Errorf("%s: a diff %v: %s", name, ok, d)
		}
	}
	for _, text := range []string{"", "plain", "SEARCH", "<<<< SEARCH\nx", "=======", ">>>>>>> REPLACE", "a <<<<<<< SEARCH"} {
		if got, ok := change(text); ok {
			t.Errorf("%q is taken for a diff: %q", text, got)
		}
	}
}

// However the blocks are put together, each line that is to go and each that is to come
// is in the diff, in order.
func TestSearchReplaceLosesNoLine(t *testing.T) {
	t.Parallel()
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "  b", "", "- c", "+d", "==", "--- e", "<f>"}), 1, 5)
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		var before, after []string
		for range rapid.IntRange(1, 4).Draw(t, "blocks") {
			a, b := lines.Draw(t, "search"), lines.Draw(t, "replace")
			a, b = append(a, "end of search"), append(b, "end of replace") // an empty last line is no line
			text.WriteString("<<<<<<< SEARCH\n" + strings.Join(a, "\n") + "\n=======\n" + strings.Join(b, "\n") + "\n>>>>>>> REPLACE\n")
			before, after = append(before, a...), append(after, b...)
		}
		diff, ok := change(text.String())
		if !ok || !slices.Equal(side(diff, "-"), before) || !slices.Equal(side(diff, "+"), after) {
			t.Fatalf("%q gives %v\n%s", text.String(), ok, diff)
		}
	})
}

// What a tool was told to change is shown in colours, whichever tool it was.
func TestEveryEditIsADiff(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, input, want string }{
		{"apply_diff", `{"path":"a.go","diff":"<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE"}`, "tool apply_diff a.go|@@ dim|-x removed|+y added"},
		{"replace_in_file", `{"path":"a.go","diff":"------- SEARCH\nx\n=======\ny\n+++++++ REPLACE"}`, "tool replace_in_file a.go|@@ dim|-x removed|+y added"},
		{"write_to_file", `{"path":"a.go","content":"x\n-y\n","line_count":2}`, "tool write_to_file a.go|+x added|+-y added"},
		{"write_to_file", `{"path":"a.go","content":""}`, "tool write_to_file a.go"},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Update File: a.go\n@@\n-x\n+y\n*** End Patch"}`, "tool apply_patch|*** Begin Patch dim|*** Update File: a.go dim|@@ dim|-x removed|+y added|*** End Patch dim"},
		{"edit", `{"file_path":"a.go","old_string":"x\nz","new_string":"y\nz","replace_all":true}`, "tool edit a.go|replace_all: true plain|-x removed|+y added| z plain"},
		{"search_and_replace", `{"path":"a.go","search":"x","replace":""}`, "tool search_and_replace a.go|-x removed"},
		{"insert_content", `{"path":"a.go","line":3,"content":"x"}`, "tool insert_content a.go|line: 3 plain|+x added"},
		{"edit", `{"file_path":"a.go","old_string":7,"new_string":"y"}`, "tool edit a.go|old_string: 7 plain|new_string: y plain"},
	} {
		it := API([]byte(`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"`+tt.name+`","input":`+tt.input+`}]}`), 0)
		lines := Lines(it.Parts[0], 0)
		got := lines[0].Text
		for _, l := range lines[1:] {
			got += "|" + strings.TrimPrefix(l.Text, "  ") + " " + string(l.Style)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("got %s %s: %s, want d = \"\"", tt.name, tt.input, d)
		}
	}
}
