package filetool

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/conformance"
	"github.com/roost-dev/roost/workspace"
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
	conformance.Run(t, "list_files", func(t *testing.T, c conformance.Case) (choice bool) {
		ws, rules, has := rulesWorkspace(t, c.Input)
		place := func(s string) string { return strings.ReplaceAll(s, "${CWD}", ws.Root()) }
		var entries []entry
		for _, f := range c.Input.Get("files").Strings() {
			f = place(f)
			// The stored rules judge folders by their name alone.
			e := newEntry(ws, rules, place(c.Input.Str("base")), strings.TrimSuffix(f, "/"), strings.HasSuffix(f, "/"))
			entries = append(entries, e)
		}
		got := formatListing(entries, c.Input.Bool("did_hit_limit", false), c.Input.Bool("show_ignored", false), has)
		want := c.Want.Str("text")
		own := ownListing(want, c.Input.Str("rooignore"), c.Input.Bool("show_ignored", false))
		if got != own {
			t.Error(cmp.Diff(own, got))
		}
		return own != want
	})
}

// ownListing is Roo's listing without the folders that a rule "name/" hides, or with their
// lock: Roo hides only what is in them.
func ownListing(roos, rules string, showIgnored bool) string {
	hidden := map[string]bool{}
	for _, rule := range strings.Split(rules, "\n") {
		if name, ok := strings.CutSuffix(rule, "/"); ok {
			hidden[strings.ToLower(name)] = true
		}
	}
	var lines []string
	for _, l := range strings.Split(roos, "\n") {
		folder, ok := strings.CutSuffix(l, "/")
		if ok && !strings.HasPrefix(l, lockMark) && hidden[strings.ToLower(path.Base(strings.TrimPrefix(folder, shieldMark)))] {
			if !showIgnored {
				continue
			}
			l = lockMark + strings.TrimPrefix(l, shieldMark)
		}
		lines = append(lines, l)
	}
	if len(lines) == 0 {
		return "No files found."
	}
	return strings.Join(lines, "\n")
}

func TestVectorsSearchFiles(t *testing.T) {
	conformance.Run(t, "search_files", func(t *testing.T, c conformance.Case) (choice bool) {
		ws, rules, _ := rulesWorkspace(t, c.Input)
		q := &searching{ws: ws}
		var files []foundFile
		seen, twice, lines := map[string]bool{}, false, 0
		for _, raw := range c.Input.Get("files").List() {
			f := conformance.Value(raw)
			name := filepath.Clean(strings.ReplaceAll(f.Str("path"), "${CWD}", ws.Root()))
			if rel, ok := insideRel(ws.Root(), name); ok && rules.Hides(rel, false) {
				continue
			}
			file := foundFile{path: slashRel(ws.Root(), name)}
			for _, l := range f.Get("lines").List() {
				line := conformance.Value(l)
				file.lines = append(file.lines, foundLine{int(line.Int("line", 0)), line.Str("text")})
			}
			files = append(files, file)
			twice = twice || seen[name]
			seen[name] = true
			lines += len(file.lines)
			q.add(name, file.lines)
		}
		want := c.Want.Str("text")
		// By choice: Roo loses what it finds in a file a second time, and all of the file in
		// which its limit on lines is reached.
		if choice = twice || lines > maxFoundLines; choice {
			want = ownFound(files)
		}
		if diff := cmp.Diff(want, q.text()); diff != "" {
			t.Error(diff)
		}
		return choice
	})
}

// ownFound writes the first 300 places, each in its file.
func ownFound(files []foundFile) string {
	const most = 300
	places, text := 0, ""
	for _, f := range files {
		shown := ""
		for i, l := range f.lines {
			if i == 0 || l.number != f.lines[i-1].number+1 {
				if places == most {
					break
				}
				if places++; i > 0 {
					shown += "----\n"
				}
			}
			shown += fmt.Sprintf("%3d | %s\n", l.number, strings.TrimRight(l.text, "\n"))
		}
		if shown != "" {
			text += "\n\n# " + f.path + "\n" + shown + "----"
		}
	}
	if places == most {
		return "Showing first 300 of 300+ results. Use a more specific search if necessary." + text
	}
	return fmt.Sprintf("Found %d results.", places) + text
}
