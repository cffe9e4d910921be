package search

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/workspace"
)

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
		var entries []listEntry
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
		q := &fileSearch{ws: ws}
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
