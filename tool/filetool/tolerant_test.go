package filetool

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/linetext"
	"github.com/roost-dev/roost/tool/patch"
	"pgregory.net/rapid"
)

// edit_file finds a text by its words when its blanks are other ones, and keeps the
// file's indentation.
func TestEditWithOtherBlanks(t *testing.T) {
	for name, tt := range map[string]struct{ file, old, fresh, want string }{
		"exact goes first":         {"a  b\na b\n", "a b", "x", "a  b\nx\n"},
		"tabs for blanks":          {"func f() {\n\tif a {\n\t\tb()\n\t}\n}\n", "    if a {\n        b()\n    }", "    if a {\n        b()\n        c()\n    }", "func f() {\n\tif a {\n\t\tb()\n\t\tc()\n\t}\n}\n"},
		"deeper than given":        {"class A:\n    def f(self):\n        return 1\n", "def f(self):\n    return 1\n", "def f(self):\n    x = 2\n    return x\n", "class A:\n    def f(self):\n        x = 2\n        return x\n"},
		"inside a line":            {"f(a,   b)\n", "f(a, b)", "g(b)", "g(b)\n"},
		"blanks at the end":        {"a  \nb\n", "a\nb", "a\nc", "a\nc\n"},
		"a blank line more":        {"a\n\n\nb\n", "a\nb", "a\nc", "a\nc\n"},
		"a word's end and begin":   {"xfoo(1,  2);\n", "foo(1, 2)", "bar(1, 2)", "xbar(1, 2);\n"},
		"other lines":              {"f(a,\n  b)\n", "f(a, b)", "g()", "g()\n"},
		"blanks around it":         {"\tx := 1\n", "\n  x := 1  \n", "\n  x := 2  \n", "\tx := 2\n"},
		"CRLF stays":               {"a\r\n\tb  c\r\n", "a\n  b c", "a\n  d\n  e", "a\r\n\td\r\n\te\r\n"},
		"lines that go":            {"a\n\tb  c\n\td\n", "  b c\n", "", "a\n\td\n"},
		"a word that goes":         {"a\tb c\n", "a b", "", " c\n"},
		"indented deeper by will":  {"\ta\n\t b  c\n", "  a\n  b c", "  if\n    a\n    b c", "\tif\n\t  a\n\t  b c\n"},
		"the same lines go first":  {"a\nb\na  b\n", "a b", "x", "a\nb\nx\n"},
		"other lines go first":     {"a b\na\nb\n", "a\n\nb", "x", "a b\nx\n"},
		"a blank before, in lines": {"x\tb)  c\n", " b) c", " y z", "x\ty z\n"},
		"a blank before, by will":  {"xb  c\n", "b c", " y", "x y\n"},
		"a blank behind":           {"b  c\tx\n", "b c ", "y ", "y\tx\n"},
		"a blank behind, by will":  {"b  c\tx\n", "b c", "y ", "y \tx\n"},
		"words of other languages": {"größe  =  „1“\n", "größe = „1“", "größe = 2", "größe = 2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			env, root := sandbox(t, "f", tt.file)
			ask, res := run(t, env, EditFile(), call("file_path", "f", "old_string", tt.old, "new_string", tt.fresh))
			if got := fixture.ReadFile(t, filepath.Join(root, "f")); got != tt.want {
				t.Errorf("%q, want %q\n%s", got, tt.want, ask.Diff)
			}
			if told := strings.Contains(res.Text, "other blanks"); told == (name == "exact goes first") {
				t.Errorf("the result says %s", res.Text)
			}
		})
	}
}

// What is not clear is an error, and the other tools want the text as it is.
func TestEditWithOtherBlanksIsRefused(t *testing.T) {
	const two = "a  b\nx\na\tb\n"
	for name, tt := range map[string]struct {
		tl         tool.Tool
		file, want string
		args       []any
	}{
		"two places":          {EditFile(), two, "occurs 2 times", []any{"old_string", "a b"}},
		"not as many":         {EditFile(), two, "2 times in f and not 3", []any{"old_string", "a b", "expected_replacements", 3}},
		"overlapping":         {EditFile(), "a  a  a\n", "occurs 2 times", []any{"old_string", "a a"}},
		"a word is another":   {EditFile(), two, "not found", []any{"old_string", "a c"}},
		"joined words":        {EditFile(), "ab\n", "not found", []any{"old_string", "a b"}},
		"nothing but blanks":  {EditFile(), "a\n", "not found", []any{"old_string", "   "}},
		"edit":                {Edit(), two, "not found", []any{"old_string", "a b"}},
		"edit, all":           {Edit(), two, "not found", []any{"old_string", "a b", "replace_all", true}},
		"search_replace":      {SearchReplace(), "a  b\n", "not found", []any{"old_string", "a b"}},
		"one word repeatedly": {EditFile(), strings.Repeat("a ", 1<<17), "not found", []any{"old_string", strings.Repeat("a\n", 1<<12) + "b"}},
	} {
		env, root := sandbox(t, "f", tt.file)
		_, err := tt.tl.Plan(context.Background(), env, call(append(tt.args, "file_path", "f", "new_string", "y")...))
		var wrong *tool.InputError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if fixture.ReadFile(t, filepath.Join(root, "f")) != tt.file {
			t.Errorf("%s: the file is another one", name)
		}
	}
	env, root := sandbox(t, "f", two)
	run(t, env, EditFile(), call("file_path", "f", "old_string", "a b", "new_string", "y", "expected_replacements", 2))
	if got := fixture.ReadFile(t, filepath.Join(root, "f")); got != "y\nx\ny\n" {
		t.Errorf("both: %q", got)
	}
}

// Outside the places that are replaced no byte changes, and words never go missing.
func TestEditWithOtherBlanksKeepsTheRest(t *testing.T) {
	blank := rapid.SampledFrom([]string{" ", "  ", "\t", "\n", "\n\t", "\r\n  ", "\n\n"})
	word := rapid.SampledFrom([]string{"a", "b", "ab", "(", "é"})
	rapid.Check(t, func(r *rapid.T) {
		var text, old strings.Builder
		n := rapid.IntRange(2, 6).Draw(r, "words")
		for range n {
			w := word.Draw(r, "word")
			text.WriteString(w + blank.Draw(r, "in the file"))
			old.WriteString(w + blank.Draw(r, "as given"))
		}
		before, after := "<<\n"+blank.Draw(r, "before"), blank.Draw(r, "after")+">>\n"
		step := patch.Replacement{Old: patch.PlainEnds(old.String()), New: "NEW", Times: 1, Tolerant: true}
		got, why := step.Apply(before+text.String()+after, "f")
		if why != "" {
			return // in doubt
		}
		left, right, ok := strings.Cut(got, "NEW")
		if !ok || linetext.Trim(left) != "<<" || linetext.Trim(right) != ">>" || !strings.HasPrefix(got, "<<") || !strings.HasSuffix(got, ">>\n") {
			r.Fatalf("%q in %q gives %q", step.Old, before+text.String()+after, got)
		}
	})
}
