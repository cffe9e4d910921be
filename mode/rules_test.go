package mode

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"
)

// tree is a file system of names and texts.
func tree(list ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i < len(list); i += 2 {
		out[list[i]] = &fstest.MapFile{Data: []byte(list[i+1])}
	}
	return out
}

func titles(r Rules) string {
	var out []string
	for _, s := range r.Sections {
		out = append(out, s.Title)
	}
	return strings.Join(out, " ")
}

func TestWhichRulesAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		project, home fs.FS
		want          string
	}{
		"nothing": {tree(), tree(), ""},
		"nobody":  {nil, nil, ""},
		"all, in order": {
			tree(".roo/rules/z.md", "1", ".roo/rules/a.md", "2", ".roo/rules-code/b.md", "3", "AGENTS.md", "4", "AGENTS.local.md", "5"),
			tree(".roo/rules/g.md", "6", ".roo/rules-code/h.md", "7"),
			"~/.roo/rules-code/h.md .roo/rules-code/b.md AGENTS.md AGENTS.local.md ~/.roo/rules/g.md .roo/rules/a.md .roo/rules/z.md",
		},
		"by name, whatever the folder and the case": {
			tree(".roo/rules/B.md", "1", ".roo/rules/sub/a.md", "2", ".roo/rules/a.md", "3", ".roo/rules/C", "4"), nil,
			".roo/rules/a.md .roo/rules/sub/a.md .roo/rules/B.md .roo/rules/C",
		},
		"older files":                  {tree(".roorules", "1", ".clinerules", "2", ".roorules-code", "3", ".clinerules-code", "4"), nil, ".roorules-code .roorules"},
		"Cline's file":                 {tree(".clinerules", "1", ".clinerules-code", "2"), nil, ".clinerules-code .clinerules"},
		"Cline's folder":               {tree(".clinerules/b.md", "1", ".clinerules/a.md", "2"), nil, ".clinerules/a.md .clinerules/b.md"},
		"folders before older files":   {tree(".roorules", "1", ".roo/rules/a", "2", ".clinerules-code", "3"), nil, ".clinerules-code .roo/rules/a"},
		"an empty folder is none":      {tree(".roorules", "1", ".roo/rules/a", " \n"), nil, ".roorules"},
		"an empty file is none":        {tree(".roorules", "\ufeff \r\n", ".clinerules", "1"), nil, ".clinerules"},
		"another mode's are not":       {tree(".roo/rules-ask/a", "1", ".roorules-ask", "2", ".roo/rules-co/a", "3"), nil, ""},
		"AGENT.md stands in":           {tree("AGENT.md", "1"), nil, "AGENT.md"},
		"AGENTS.md goes before it":     {tree("AGENT.md", "1", "AGENTS.md", "2"), nil, "AGENTS.md"},
		"what systems leave behind":    {tree(".roo/rules/.DS_Store", "1", ".roo/rules/a.md~", "2", ".roo/rules/x.BAK", "3", ".roo/rules/a.md", "4"), nil, ".roo/rules/a.md"},
		"only the workspace has older": {nil, tree(".roorules", "1", "AGENTS.md", "2"), ""},
	} {
		r := LoadRules(Places{Project: c.project, Home: c.home}, "code")
		if got := titles(r); got != c.want || len(r.Notes) > 0 {
			t.Errorf("%s: %q, notes %q, want %q", name, got, r.Notes, c.want)
		}
	}
	// A slug that is none must not become a path.
	if r := LoadRules(Places{Project: tree(".roo/rules-a/b/x", "1")}, "a/b"); titles(r) != "" {
		t.Errorf("got %q, want titles(r) = \"\"", titles(r))
	}
}

// What cannot be read is told, and keeps nothing else from being read.
func TestRulesThatCannotBeRead(t *testing.T) {
	fsys := tree(".roo/rules/a", "a\x00b", ".roo/rules/c", "c", ".roo/rules/1/2/3/4/5/6/x", "deep")
	fsys[".roo/rules/b"] = &fstest.MapFile{Mode: fs.ModeNamedPipe}
	fsys["AGENTS.md"] = &fstest.MapFile{Mode: fs.ModeDir}
	r := LoadRules(Places{Project: fsys}, "code")
	notes := strings.Join(r.Notes, "; ")
	for _, want := range []string{".roo/rules/a are left out: it is not text", ".roo/rules/b cannot be read: it is no regular file", "too deeply"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not said: %s", want, notes)
		}
	}
	if titles(r) != ".roo/rules/c" || len(r.Notes) != 3 {
		t.Errorf("got %q %q, want titles(r) = \".roo/rules/c\" and len(r.Notes) = 3", titles(r), r.Notes)
	}
}

// A repository may bring a link along; what it leads to outside is not sent.
func TestLinksStayInTheWorkspace(t *testing.T) {
	dir, ws := t.TempDir(), t.TempDir()
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(dir, "secret"), "secret")
	put(filepath.Join(ws, "docs", "rule"), "inside")
	put(filepath.Join(ws, ".roo", "rules", "a"), "a")
	for link, to := range map[string]string{
		"AGENTS.md": filepath.Join(dir, "secret"), ".roo/rules/up": "../../../" + filepath.Base(dir) + "/secret",
		".roo/rules/in": "../../docs/rule", ".roo/rules/loop": "../rules", ".roo/rules-code": dir, ".roorules-code": filepath.Join(dir, "secret"),
	} {
		if err := os.Symlink(to, filepath.Join(ws, link)); err != nil {
			t.Skip(err)
		}
	}
	root, err := os.OpenRoot(ws)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	r := LoadRules(Places{Project: root.FS()}, "code")
	text := r.Text(Mode{})
	if titles(r) != ".roo/rules/a .roo/rules/in" {
		t.Errorf("got %q, want titles(r) = \".roo/rules/a .roo/rules/in\"", titles(r))
	}
	if strings.Contains(text, "secret") || !strings.Contains(text, "inside") || !strings.Contains(text, "# Rules from .roo/rules/a:\na") {
		t.Errorf("got %s\n%q, want not strings.Contains(text, \"secret\") and strings.Contains(text, \"inside\") and strings.Contains(text, \"# Rules from .roo/rules/a:\\na\")",
			text, r.Notes)
	}
	if notes := strings.Join(r.Notes, ";"); !strings.Contains(notes, "AGENTS.md cannot be read") || strings.Contains(notes, dir) ||
		strings.Count(notes, ".roorules-code") != 1 {
		t.Errorf("got %q, want one note about AGENTS.md, one about .roorules-code, and no path outside of the workspace",
			r.Notes)
	}
}

func TestRulesAreBounded(t *testing.T) {
	large := LoadRules(Places{Project: tree("AGENTS.md", strings.Repeat("é", maxRuleFile))}, "code")
	if s := large.Sections[0].Text; len(s) > maxRuleFile+200 || !strings.Contains(s, "[The rest of AGENTS.md is not shown") || len(large.Notes) != 1 {
		t.Errorf("%d bytes, notes %q", len(s), large.Notes)
	}
	many := fstest.MapFS{}
	for i := range 2 * maxRuleFiles {
		many[fmt.Sprintf(".roo/rules/%04d", i)] = &fstest.MapFile{Data: []byte("x")}
	}
	if r := LoadRules(Places{Project: many}, "code"); len(r.Sections) != maxRuleFiles || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "100 files of rules are left out") {
		t.Errorf("%d sections, %q", len(r.Sections), r.Notes)
	}
}

// The same files give the same bytes in whatever order the file system lists them,
// and the text stays within its bounds.
func TestRulesAreDeterministicAndBounded(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.SampledFrom([]string{
			"AGENTS.md", ".roorules", ".clinerules-code", ".roo/rules/a.md", ".roo/rules/A.md", ".roo/rules/x/a.md", ".roo/rules-code/b", ".roo/rules/c.md", ".roo/rules/d",
		})
		text := rapid.Custom(func(r *rapid.T) string {
			return strings.Repeat(rapid.SampledFrom([]string{"rule\n", " ", "\xff", "x\r\n", "é"}).Draw(r, "text"), rapid.SampledFrom([]int{0, 1, 3, 40_000}).Draw(r, "times"))
		})
		files := rapid.MapOf(name, text).Draw(r, "files")
		one, two := fstest.MapFS{}, fstest.MapFS{}
		for n, s := range files {
			one[n] = &fstest.MapFile{Data: []byte(s)}
		}
		for n, s := range files {
			two[n] = &fstest.MapFile{Data: []byte(s)}
		}
		mode := Mode{CustomInstructions: "Be kind.\n"}
		a, b := LoadRules(Places{Project: one}, "code"), LoadRules(Places{Project: two}, "code")
		got := a.Text(mode)
		if got != b.Text(mode) {
			r.Fatal("two readings differ")
		}
		if limit := 3*maxRules + 200*len(files) + 1000; len(got) > limit { // a bad byte becomes three
			r.Fatalf("%d bytes", len(got))
		}
		if strings.Contains(got, "\r") || strings.ToValidUTF8(got, "?") != got {
			r.Fatal("it is no clean text")
		}
	})
}

func TestPromptTexts(t *testing.T) {
	if got := (Rules{}).Text(Mode{}); got != "" {
		t.Errorf("nothing gives %q", got)
	}
	r := LoadRules(Places{Project: tree(".roo/rules/a.md", "\ufeffA\r\nB\r\n", "AGENTS.md", "C"), Home: tree(".roo/rules/g", "G")}, "code")
	got := r.Text(Mode{CustomInstructions: " Do. "})
	_, got, _ = strings.Cut(got, "about tools.\n\n")
	want := "Mode-specific Instructions:\nDo.\n\nRules:\n\n# Rules from AGENTS.md:\nC\n\n# Rules from ~/.roo/rules/g:\nG\n\n# Rules from .roo/rules/a.md:\nA\nB"
	if got != want {
		t.Errorf("got %q, want got = %v", got, want)
	}
	modes := Merge([]Mode{{Slug: "a", Name: "A", WhenToUse: "line\n\nbreaks " + strings.Repeat("é", 500)}, {Slug: "b", Name: "B", RoleDefinition: "You are B. And more."}}, nil).Text()
	for _, want := range []string{"- 💻 Code (code): For writing", "\n- A (a): line breaks éé", "é...\n- B (b): You are B"} {
		if !strings.Contains(modes, want) {
			t.Errorf("%q is missing in %s", want, modes)
		}
	}
	if strings.Contains(modes, "And more") || strings.Count(modes, "\n- ") != 7 {
		t.Error(modes)
	}
	var crowd []Mode
	for i := range 100 {
		crowd = append(crowd, Mode{Slug: fmt.Sprintf("m%d", i), Name: "two\nlines " + strings.Repeat("x", 200), RoleDefinition: "r"})
	}
	modes = Merge(crowd, nil).Text()
	if strings.Count(modes, "\n- ") != maxListed || !strings.HasSuffix(modes, "\n(45 more modes are not listed.)") || !strings.Contains(modes, "- two lines xx") {
		t.Error(modes[len(modes)-300:])
	}
}

// TestRulesOfManyLinksEnd: folders that link to each other many times make a tree that nobody could walk.
func TestRulesOfManyLinksEnd(t *testing.T) {
	dir := t.TempDir()
	for depth := range 6 {
		here := filepath.Join(dir, ".roo", "rules", strconv.Itoa(depth))
		if err := os.MkdirAll(here, 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			if os.Symlink("../"+strconv.Itoa(depth+1), filepath.Join(here, "link"+strconv.Itoa(i))) != nil {
				t.Skip("links cannot be made here")
			}
		}
	}
	begin := time.Now()
	got := LoadRules(Places{Project: os.DirFS(dir)}, "code")
	if n := len(got.Notes); n == 0 || n > 20_000 || time.Since(begin) > time.Minute {
		t.Errorf("got %d notes after %v, want some, and an end", n, time.Since(begin))
	}
}
