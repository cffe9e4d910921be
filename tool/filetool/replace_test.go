package filetool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/patch"
	"pgregory.net/rapid"
)

// replace is a call of one of the three tools.
func replace(old, fresh string, more ...any) json.RawMessage {
	return call(append([]any{"file_path", "f", "old_string", old, "new_string", fresh}, more...)...)
}

func TestReplacing(t *testing.T) {
	for name, tt := range map[string]struct {
		tl   tool.Tool
		old  string
		in   json.RawMessage
		want string
	}{
		"one place":                  {SearchReplace(), "a\nb\nc\n", replace("b\nc", "B"), "a\nB\n"},
		"part of a line":             {Edit(), "x := 1\n", replace(":= 1", "= 2"), "x = 2\n"},
		"nothing comes":              {Edit(), "a\nb\n", replace("b\n", ""), "a\n"},
		"all places":                 {Edit(), "x x\nx", replace("x", "yy", "replace_all", true), "yy yy\nyy"},
		"all, said in words":         {Edit(), "x x", replace("x", "y", "replace_all", "true"), "y y"},
		"all of what overlaps":       {Edit(), "aaaa", replace("aa", "b", "replace_all", true), "bb"},
		"as many as expected":        {EditFile(), "x x x", replace("x", "y", "expected_replacements", 3), "y y y"},
		"CRLF, given as LF":          {Edit(), "a\r\nb\r\nc\r\n", replace("a\nb\n", "1\n2\n3\n"), "1\r\n2\r\n3\r\nc\r\n"},
		"CRLF, given as CRLF":        {Edit(), "a\r\nb\r\n", replace("a\r\nb", "1\r\n2"), "1\r\n2\r\n"},
		"LF, given as CRLF":          {Edit(), "a\nb\n", replace("a\r\nb", "1\r\n2"), "1\n2\n"},
		"CRLF, inside a line":        {Edit(), "a\r\nb\r\n", replace("b", "1\n2"), "a\r\n1\r\n2\r\n"},
		"CRLF, up to the line end":   {Edit(), "a\r\nb\r\n", replace("a", "A"), "A\r\nb\r\n"},
		"CRLF, only a line end":      {Edit(), "a\r\nb", replace("\n", ""), "ab"},
		"mixed, the LF part":         {Edit(), "a\nb\nc\r\nd\r\ne\r\n", replace("a\nb\n", "1\n2\n"), "1\n2\nc\r\nd\r\ne\r\n"},
		"mixed, the CRLF part":       {Edit(), "a\nb\nc\r\nd\n", replace("c\n", "1\n2\n"), "a\nb\n1\r\n2\r\nd\n"},
		"a lone carriage return":     {Edit(), "a\rb\n", replace("b", "c"), "a\rc\n"},
		"BOM stays":                  {Edit(), "\ufeffa\nb\n", replace("a", "A"), "\ufeffA\nb\n"},
		"BOM given too":              {Edit(), "\ufeffa\nb\n", replace("\ufeffa", "A"), "\ufeffA\nb\n"},
		"no last line end":           {Edit(), "a\nb", replace("b", "c"), "a\nc"},
		"dollar signs are plain":     {Edit(), "a", replace("a", "$1 $& \\1"), "$1 $& \\1"},
		"older names":                {Edit(), "a b", call("path", "f", "search", "a", "replace", "A"), "A b"},
		"several steps":              {Edit(), "a b", call("path", "f", "operations", []any{map[string]any{"search": "a", "replace": "b2"}, map[string]any{"search": "b2 b", "replace": "c"}}), "c"},
		"a new file":                 {EditFile(), "", replace("", "a\nb"), "a\nb"},
		"old parameters that say no": {Edit(), "a", replace("a", "b", "use_regex", false, "start_line", nil), "b"},
	} {
		t.Run(name, func(t *testing.T) {
			env, root := sandbox(t)
			file := filepath.Join(root, "f")
			if tt.old != "" {
				fixture.WriteFile(t, file, tt.old)
				if err := os.Chmod(file, 0o754); err != nil {
					t.Fatal(err)
				}
			}
			ask, res := run(t, env, tt.tl, tt.in)
			if got := fixture.ReadFile(t, file); got != tt.want || res.IsError {
				t.Errorf("%q became %q, want %q", tt.old, got, tt.want)
			}
			if info, _ := os.Stat(file); tt.old != "" && info.Mode().Perm() != 0o754 {
				t.Errorf("mode %v", info.Mode())
			}
			kind := map[bool]string{true: "newFileCreated", false: "appliedDiff"}[tt.old == ""]
			if d := cmp.Diff([]string{"tool", "path", "diff", "isOutsideWorkspace", "content", "isProtected", "diffStats"}, keys(ask.Text)); d != "" || str([]byte(ask.Text), "tool") != kind {
				t.Error(ask.Text, d)
			}
			if ask.Diff == "" || str([]byte(ask.Text), "content") != hunks(ask.Diff) || ask.Title != tt.tl.Spec().Name+" f" {
				t.Errorf(`got %+v, want ask.Diff != "" and str([]byte(ask.Text), "content") = hunks(ask.Diff) and ask.Title = tt.tl.Spec().Name+" f"`,
					ask)
			}
		})
	}
}

// A place that is not clear is never guessed: the file stays and the model is told.
func TestReplacingThatIsRefused(t *testing.T) {
	env, root := sandbox(t, "f", "a\nb\na\n", "empty", "", "bin", "a\x00b", "utf16", "\xff\xfea\x00b", "ov", "aaa", "d/x", "")
	before := fixture.ReadFile(t, filepath.Join(root, "f"))
	for _, tt := range []struct {
		tl   tool.Tool
		in   json.RawMessage
		want string
	}{
		{Edit(), replace("a", "x"), "occurs 2 times"},
		{SearchReplace(), replace("a\n", "x"), "occurs 2 times"},
		{SearchReplace(), replace("a", "x", "replace_all", true), "occurs 2 times"},
		{EditFile(), replace("a", "x"), "occurs 2 times"},
		{EditFile(), replace("a", "x", "expected_replacements", 3), "2 times in f and not 3"},
		{EditFile(), replace("b", "x", "expected_replacements", 2), "1 times in f and not 2"},
		{EditFile(), replace("a", "x", "expected_replacements", 0), "at least 1"},
		{Edit(), replace("z", "x"), "not found in f"},
		{Edit(), replace("z", "x", "replace_all", true), "not found in f"},
		{Edit(), replace(" b", "x"), "not found in f"},
		{Edit(), replace("b", "b"), "are the same"},
		{Edit(), replace("a\r\nb", "a\nb"), "are the same"},
		{Edit(), replace("", "x"), `"old_string" is empty`},
		{SearchReplace(), replace("", "x"), `"old_string" is empty`},
		{EditFile(), replace("", "x"), "exists already"},
		{Edit(), call("file_path", "ov", "old_string", "aa", "new_string", "b"), "occurs 2 times"},
		{Edit(), call("file_path", "none", "old_string", "a", "new_string", "b"), "none does not exist"},
		{EditFile(), call("file_path", "d", "old_string", "", "new_string", "b"), "d is not a file"},
		{Edit(), call("file_path", "d", "old_string", "a", "new_string", "b"), "d is not a file"},
		{Edit(), call("file_path", "bin", "old_string", "a", "new_string", "b"), "bin is not text"},
		{Edit(), call("file_path", "utf16", "old_string", "a", "new_string", "b"), "utf16 is not text"},
		{EditFile(), call("file_path", "empty", "old_string", "", "new_string", ""), "nothing would change"},
		{Edit(), call("file_path", "f", "old_string", "b"), `"new_string" is missing`},
		{Edit(), call("old_string", "b", "new_string", "c"), `"file_path" is missing`},
		{Edit(), call("path", "f", "operations", []any{}), "is empty"},
		{Edit(), call("path", "f", "operations", []any{"x"}), "must be a JSON object"},
		{Edit(), call("path", "f", "operations", []any{map[string]any{"search": "b", "replace": "x"}, map[string]any{"search": "b", "replace": "y"}}), "not found"},
		{Edit(), replace("b", "x", "use_regex", true), `"use_regex" is not understood`},
		{Edit(), replace("b", "x", "start_line", 2), `"start_line" is not understood`},
		{Edit(), json.RawMessage(`[]`), "must be a JSON object"},
	} {
		_, err := tt.tl.Plan(context.Background(), env, tt.in)
		var wrong *tool.InputError
		if !errors.As(err, &wrong) || wrong.Tool != tt.tl.Spec().Name || !strings.Contains(wrong.Reason, tt.want) {
			t.Errorf("%s %s: %v, want %q", tt.tl.Spec().Name, tt.in, err, tt.want)
		}
	}
	if got := fixture.ReadFile(t, filepath.Join(root, "f")); got != before {
		t.Errorf("the file holds %q", got)
	}
}

// Replacing knows a text by its lines, not by their ends: what comes out is what comes
// out of the same text with line feeds, with the line ends of the file.
func TestReplacingInCRLFIsReplacingInLF(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		piece := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n")), 1, 4, -1)
		old, fresh := piece.Draw(r, "old"), piece.Draw(r, "new")
		text := rapid.StringOfN(rapid.SampledFrom([]rune("aab\n\n")), 0, 30, -1).Draw(r, "text")
		step := patch.Replacement{Old: old, New: fresh, Times: rapid.IntRange(0, 2).Draw(r, "times")}
		want, why := step.Apply(text, "f")
		if !strings.Contains(text, "\n") {
			return
		}
		got, whyToo := step.Apply(strings.ReplaceAll(text, "\n", "\r\n"), "f")
		if got != strings.ReplaceAll(want, "\n", "\r\n") || why != whyToo {
			r.Fatalf("%q became %q, want the lines of %q; %s, %s", text, got, want, why, whyToo)
		}
		if why == "" && step.Times == 0 && want != strings.ReplaceAll(text, old, fresh) {
			r.Fatalf("%q became %q", text, want)
		}
	})
}

func TestInspectionOfAnEdit(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{3,8}`), 2, 8, rapid.ID[string]).Draw(r, "lines")
		lines[0] = "Q" + lines[0] // so that it is the end of no other one
		env, root := sandbox(t, "f", strings.Join(lines, "\n")+"\n")
		fresh := rapid.SampledFrom([]string{"X", "X" + lines[0]}).Draw(r, "new")
		in := call("file_path", "f", "old_string", lines[0]+"\n", "new_string", fresh+"\n")
		p := plan(t, env, Edit(), in)
		inspect := func(before map[string]string) tool.Finding {
			got, err := Edit().(tool.Inspector).Inspect(context.Background(), env, in, before)
			if err != nil {
				r.Fatal(err)
			}
			return got
		}
		check := func(when string, with, without tool.Finding) {
			if got := inspect(p.Ask().Before); got != with {
				r.Fatalf("%s: %s, want %s", when, got, with)
			}
			// The old text may be in the new one: without hashes that cannot be told apart.
			if got := inspect(nil); got != without && (got != tool.Unclear || fresh == "X") {
				r.Fatalf("%s, without hashes: %s, want %s", when, got, without)
			}
		}
		check("before it ran", tool.NotDone, tool.NotDone)
		if _, err := p.Run(context.Background(), nil); err != nil {
			r.Fatal(err)
		}
		check("after it ran", tool.Done, tool.Done)
		fixture.WriteFile(t, filepath.Join(root, "f"), "all new\n")
		check("after a rewrite", tool.Unclear, tool.Unclear)
	})
	env, root := sandbox(t)
	in := replace("", "made\n")
	for _, step := range []struct {
		text string
		want tool.Finding
	}{{"", tool.NotDone}, {"made\n", tool.Done}, {"other\n", tool.Unclear}} {
		if step.text != "" {
			fixture.WriteFile(t, filepath.Join(root, "f"), step.text)
		}
		if got, err := EditFile().(tool.Inspector).Inspect(context.Background(), env, in, nil); got != step.want || err != nil {
			t.Errorf("%q: got %s, %v, want got = %v and no error", step.text, got, err, step.want)
		}
	}
}

// A whole new content keeps what a model does not see of a file.
func TestWritingKeepsMarkAndLineEnds(t *testing.T) {
	for _, tt := range [][3]string{
		{"a\r\nb\r\n", "1\n2\n", "1\r\n2\r\n"},
		{"a\r\nb\r\n", "1\r\n2\n", "1\r\n2\n"},
		{"a\r\nb\n", "1\n2\n", "1\n2\n"},
		{"a\nb\n", "1\r\n2\r\n", "1\r\n2\r\n"},
		{"\ufeffa\r\n", "1\n", "\ufeff1\r\n"},
		{"\ufeffa", "\ufeff1", "\ufeff1"},
		{"", "1\n", "1\n"},
	} {
		env, root := sandbox(t, "f", tt[0])
		in := call("path", "f", "content", tt[1])
		before := plan(t, env, WriteToFile(), in).Ask().Before
		run(t, env, WriteToFile(), in)
		if got := fixture.ReadFile(t, filepath.Join(root, "f")); got != tt[2] {
			t.Errorf("%q with %q became %q, want %q", tt[0], tt[1], got, tt[2])
		}
		for _, b := range []map[string]string{before, nil} {
			if got, err := WriteToFile().(tool.Inspector).Inspect(context.Background(), env, in, b); got != tool.Done || err != nil {
				t.Errorf("%q: got %s, %v, want got = tool.Done and no error", tt[2], got, err)
			}
		}
	}
}
