package mode

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// exported is a file with one mode and these files of rules, as JSON.
func exported(files ...string) string {
	return `{"customModes":[{"slug":"docs","name":"D","roleDefinition":"R","groups":["read"],"rulesFiles":[` + strings.Join(files, ",") + `]}]}`
}

func file(path, content string) string {
	return fmt.Sprintf(`{"relativePath":%q,"content":%q}`, path, content)
}

// Rules of an exported mode end in its own folder, under a name that rules are read
// from, or they are left out and said.
func TestExportedRules(t *testing.T) {
	for path, want := range map[string]string{
		"a.md": "a.md", "rules-docs/a.md": "a.md", "rules-other/a.md": "a.md", ".roo/rules-docs/a.md": "a.md", `rules-docs\deep\a.md`: "deep/a.md",
		"./a.md": "a.md", "deep/../a.md": "a.md", "rules-docs": "rules-docs", "rules-docs/rules-docs/a.md": "rules-docs/a.md", "日本.md": "日本.md", "..a": "..a",
		"../a.md": "", "rules-docs/../../a.md": "", "/a.md": "", `\a.md`: "", `C:\a.md`: "", "c:a.md": "", "a.md:stream": "", "": "", ".": "", "..": "", "rules-docs/..": "", "rules-docs/../../../etc/passwd": "",
		`..\..\a.md`: "", "a\x00b": "", "a\nb": "", "a\u202eb": "", "a.bak": "", ".DS_Store": "", strings.Repeat("a", 201): "", "1/2/3/4/5/6": "",
	} {
		f, rules := Exported(exported(file(path, "text")))
		got := ""
		for _, r := range rules["docs"] {
			got += r.Path
		}
		if got != want || len(f.Modes) != 1 || (len(f.Problems) == 0) != (want != "") {
			t.Errorf("%q becomes %q: %q", path, got, f.Problems)
		}
	}
	for text, problem := range map[string]string{
		exported(`{"relativePath":"a.md"}`):                        "has no text",
		exported(`{"relativePath":"a.md","content":""}`):           "has no text",
		exported(`{"relativePath":"a.md","content":3}`):            "has no text",
		exported(`{"content":"x"}`):                                "has no path",
		exported(`7`):                                              "has no path",
		exported(file("a.md", strings.Repeat("x", maxRuleFile+1))): "has more than",
		exported(`{"relativePath":"a.md","content":"a\u0000b"}`):   "is no text",
		exported(file("a.md", "1"), file("rules-docs/a.md", "2")):  "appears twice",
		exported(slices.Repeat([]string{file("../a", "x")}, 3)...): "file 3 of the rules",
		"{":                              "it is no YAML",
		`{"customModes":3}`:              "must be a list",
		`{"customModes":[{"slug":"a"}]}`: "is left out",
	} {
		if f, _ := Exported(text); !strings.Contains(strings.Join(f.Problems, "\n"), problem) {
			t.Errorf("%.80s: %q, want %q", text, f.Problems, problem)
		}
	}
	var many []string
	for i := range maxRuleFiles + 7 {
		many = append(many, file(fmt.Sprint("r", i), "x"))
	}
	if f, rules := Exported(exported(many...)); len(rules["docs"]) != maxRuleFiles || len(f.Problems) != 1 {
		t.Errorf("%d files, %q", len(rules["docs"]), f.Problems)
	}
	if f, rules := Exported(exported(many[:maxRuleFiles]...)); len(rules["docs"]) != maxRuleFiles || len(f.Problems) != 0 {
		t.Errorf("got %d files, problems %q, want %d files and no problems", len(rules["docs"]), f.Problems, maxRuleFiles)
	}
}

// As Roo's own button exports a mode, in YAML; and larger than a file of modes may be.
func TestExportedModes(t *testing.T) {
	f, rules := Exported("\ufeffcustomModes:\n  - slug: docs\n    name: Docs\n    roleDefinition: >-\n      You write\n      docs.\n    groups: [read, [edit, {fileRegex: '\\.md$', description: Markdown}]]\n    source: project\n    rulesFiles:\n      - relativePath: rules-docs/1.md\n        content: |\n          One.\n          Two.\n")
	if len(f.Modes) != 1 || !f.Found || f.Problems != nil || f.Modes[0].RoleDefinition != "You write docs." || f.Modes[0].Source != Global || f.Modes[0].PermitsFile("write_to_file", "a.go") == nil {
		t.Errorf("%+v", f)
	}
	if d := cmp.Diff(map[string][]RuleFile{"docs": {{"1.md", "One.\nTwo.\n"}}}, rules); d != "" {
		t.Error(d)
	}
	var large []string
	for i := range 20 {
		large = append(large, file(fmt.Sprint("r", i), strings.Repeat("x", 60<<10)))
	}
	if f, rules := Exported(exported(large...)); len(f.Modes) != 1 || len(rules["docs"]) != 20 {
		t.Errorf("got %q, want len(f.Modes) = 1 and len(rules[\"docs\"]) = 20", f.Problems)
	}
	if f, rules := Exported(`{"globalSettings":{}}`); f.Found || len(rules) != 0 || f.Problems != nil {
		t.Errorf("got %+v %v, want not f.Found and len(rules) = 0 and f.Problems = nil", f, rules)
	}
	// What word processors do to text is mended in YAML; JSON is exact.
	if f, _ := Exported(strings.Replace(exported(), `"R"`, `"“R” – it’s"`, 1)); f.Modes[0].RoleDefinition != "“R” – it’s" {
		t.Errorf("got %q, want f.Modes[0].RoleDefinition = \"“R” – it’s\"", f.Modes[0].RoleDefinition)
	}
}

// What Encode writes, Parse reads as the same modes, whatever their texts.
func TestModesSurviveEncoding(t *testing.T) {
	words := rapid.OneOf(rapid.StringN(1, 30, -1), rapid.SampledFrom([]string{"a: b", "- x", "# y", "{", "\"", "'", "\\", "\n", "a\n\nb ", "<&>", "true", "3", "~", "\u2028", "😀", "---"})).Filter(func(s string) bool {
		return typography.Replace(s) == s && strings.ToValidUTF8(s, "") == s && !strings.ContainsRune(s, '\ufeff')
	})
	group := rapid.Custom(func(t *rapid.T) Group {
		g := Group{Name: rapid.SampledFrom([]string{"read", "edit", "command", "mcp", "modes"}).Draw(t, "group")}
		if rapid.Bool().Draw(t, "limited") {
			g.FileRegex, g.limited = rapid.SampledFrom([]string{"", `\.md$`, `^src/[^"]+\.(ts|js)$`}).Draw(t, "pattern"), true
			g.Description = rapid.OneOf(rapid.Just(""), words).Draw(t, "about")
		}
		return g
	})
	modes := rapid.SliceOfDistinct(rapid.Custom(func(t *rapid.T) Mode {
		m := Mode{
			Slug: rapid.StringMatching(`[a-zA-Z0-9-]{1,8}`).Draw(t, "slug"), Name: words.Draw(t, "name"), RoleDefinition: words.Draw(t, "role"), Source: Global, Groups: []Group{},
		}
		m.WhenToUse, m.Description, m.CustomInstructions = rapid.OneOf(rapid.Just(""), words).Draw(t, "when"), rapid.OneOf(rapid.Just(""), words).Draw(t, "description"), rapid.OneOf(rapid.Just(""), words).Draw(t, "custom")
		m.Groups = append(m.Groups, rapid.SliceOfNDistinct(group, 0, 4, func(g Group) string { return g.Name }).Draw(t, "groups")...)
		return m
	}), func(m Mode) string { return m.Slug })
	rapid.Check(t, func(r *rapid.T) {
		list := modes.Draw(r, "modes")
		f := Parse(string(Encode(list)), Global, "")
		if d := cmp.Diff(list, f.Modes, cmpopts.EquateEmpty(), cmp.AllowUnexported(Group{}), cmpopts.IgnoreFields(Group{}, "files")); d != "" || f.Problems != nil {
			r.Fatalf("got %q %s\n%s, want d = \"\" and f.Problems = nil", f.Problems, d, Encode(list))
		}
	})
}

// The rules of an imported mode are the user's own, and are told for that mode only.
func TestRulesOfImportedModes(t *testing.T) {
	p := Places{
		Project:  tree(".roo/rules-docs/p.md", "P", ".roorules-docs", "old"),
		Home:     tree(".roo/rules-docs/h.md", "H"),
		Settings: tree("mode-rules/docs/s.md", "S", "mode-rules/docs/in/t.md", "T", "mode-rules/code/no.md", "N", "mode-rules/x.md", "N", "config.toml", "key"),
	}
	if got := titles(LoadRules(p, "docs")); got != "~/.roo/rules-docs/h.md settings:mode-rules/docs/s.md settings:mode-rules/docs/in/t.md .roo/rules-docs/p.md" {
		t.Error(got)
	}
	if got := titles(LoadRules(p, "ask")); got != "" {
		t.Error(got)
	}
	if got := titles(LoadRules(Places{Settings: p.Settings}, "..")); got != "" {
		t.Error(got)
	}
}

func FuzzExported(f *testing.F) {
	f.Add(exported(file("a.md", "x")))
	f.Add("customModes:\n  - slug: a\n    rulesFiles: [{relativePath: ../x, content: y}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, rules := Exported(text)
		for slug, files := range rules {
			if !slugForm().MatchString(slug) || len(files) > maxRuleFiles {
				t.Errorf("%q: %d files", slug, len(files))
			}
			for _, r := range files {
				if strings.HasPrefix(r.Path, "/") || slices.Contains(strings.Split(r.Path, "/"), "..") || strings.ContainsAny(r.Path, "\\:\x00") || r.Text == "" {
					t.Errorf(`got %q, want not strings.HasPrefix(r.Path, "/") and not slices.Contains(strings.Split(r.Path, "/"), "..") and not strings.ContainsAny(r.Path, "\\:\x00") and r.Text != ""`,
						r.Path)
				}
			}
		}
	})
}
