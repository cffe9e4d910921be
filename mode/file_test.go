package mode

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const oneMode = "customModes:\n  - slug: docs\n    name: Docs\n    roleDefinition: You write.\n    groups:\n      - read\n"

// with is oneMode with a member put in place of its own, or added.
func with(line string) string {
	key, _, _ := strings.Cut(strings.TrimSpace(line), ":")
	head, groups, _ := strings.Cut(oneMode, "    groups:")
	switch at := strings.Index(head, key+":"); {
	case key == "groups":
		return head + line + "\n"
	case at < 0:
		head += line + "\n"
	default:
		_, rest, _ := strings.Cut(head[at:], "\n")
		head = head[:at] + strings.TrimSpace(line) + "\n" + rest
	}
	return head + "    groups:" + groups
}

func slugs(f File) string {
	var out []string
	for _, m := range f.Modes {
		out = append(out, m.Slug)
	}
	return strings.Join(out, " ")
}

// A mode that cannot be used is named with the reason. No mode may come to more rights
// because something in it was not understood.
func TestModesThatCannotBeUsed(t *testing.T) {
	for _, c := range []struct{ line, why string }{
		{"    slug: my_mode", "letters, digits and dashes"},
		{"    slug: ''", "slug is empty"},
		{"    name: 12", "name is a number"},
		{"    name: 0o14", "name is a number"},
		{"    name: .inf", "name is a number"},
		{"    name: true", "name is true or false"},
		{"    name:", "name is null"},
		{"    name: [x]", "name is a list"},
		{"    roleDefinition: ''", "roleDefinition is empty"},
		{"    roleDefinition: {a: b}", "roleDefinition is a map"},
		{"    whenToUse: 3", "whenToUse is a number"},
		{"    customInstructions: " + strings.Repeat("x", maxText+1), "may have 32768"},
		{"    source: team", "source must be global or project"},
		{"    groups: read", "groups is text"},
		{"    groups: [fly]", "a group is text fly"},
		{"    groups: [read, read]", "the group read appears twice"},
		{"    groups: [read, [read, {}]]", "the group read appears twice"},
		{"    groups: [[edit]]", "its name and a map"},
		{"    groups: [[edit, x]]", "its name and a map"},
		{"    groups: [[edit, {}, {}]]", "its name and a map"},
		{"    groups: [{edit: 1}]", "a group is a map"},
		{"    groups: [[]]", "a group is a list"},
		{"    groups: [[edit, {fileRegex: '['}]]", "is no pattern"},
		{"    groups: [[edit, {fileRegex: 1}]]", "fileRegex of the group edit is a number"},
		{"    groups: [[edit, {description: null}]]", "description of the group edit is null"},
	} {
		f := Parse(with(c.line), Project, "p")
		if len(f.Modes) != 0 || len(f.Problems) != 1 || !strings.Contains(f.Problems[0], c.why) || !strings.Contains(f.Problems[0], "left out") || !f.Found {
			t.Errorf("%s: modes %q, problems %q, want %q", c.line, slugs(f), f.Problems, c.why)
		}
	}
}

func TestModesThatCanBeUsed(t *testing.T) {
	for _, line := range []string{
		"    name: yes", "    name: 1_000", "    name: 2001-01-01", "    name: '12'", "    name: !!str 12", "    name: 'null'", "    slug: 0o9",
		"    groups: []", "    groups: [browser, [browser, {fileRegex: '['}]]", "    groups: [[edit, {}]]", "    groups: [[command, {fileRegex: x}]]",
		"    source: global", "    extra: {a: [1]}", "    description: ''",
	} {
		if f := Parse(with(line), Project, "p"); len(f.Modes) != 1 || len(f.Problems) > 0 {
			t.Errorf("%s: modes %q, problems %q", line, slugs(f), f.Problems)
		}
	}
}

// One wrong mode costs no other one; of two with one slug the first counts.
func TestTheOthersStay(t *testing.T) {
	f := Parse("customModes:\n"+
		"  - &first {slug: a, name: A, roleDefinition: r, groups: [read]}\n"+
		"  - {slug: b, name: B, groups: [read]}\n"+
		"  - text\n"+
		"  - {slug: a, name: again, roleDefinition: r, groups: [edit]}\n"+
		"  - {slug: c, name: C, roleDefinition: r, groups: [[edit, {fileRegex: '\\.md$', description: d}], browser]}\n", Global, "/h/custom_modes.yaml")
	want := []Mode{
		{Slug: "a", Name: "A", RoleDefinition: "r", Groups: []Group{{Name: "read"}}, Source: Global, Path: "/h/custom_modes.yaml"},
		{Slug: "c", Name: "C", RoleDefinition: "r", Groups: []Group{{Name: "edit", FileRegex: `\.md$`, Description: "d"}}, Source: Global, Path: "/h/custom_modes.yaml"},
	}
	if d := cmp.Diff(want, f.Modes, cmpopts.IgnoreUnexported(Group{})); d != "" {
		t.Error(d)
	}
	if len(f.Problems) != 3 || !strings.HasPrefix(f.Problems[0], `mode "b" is left out: roleDefinition is missing`) || !strings.HasPrefix(f.Problems[1], "mode 3 is left out") {
		t.Errorf("%q", f.Problems)
	}
}

func TestWholeFiles(t *testing.T) {
	for name, c := range map[string]struct {
		text, slugs, problem string
		found                bool
	}{
		"nothing":            {"", "", "", false},
		"a comment":          {"# x\n", "", "", false},
		"other keys":         {"rules: 1\n", "", "", false},
		"null":               {"customModes:\n", "", "", false},
		"false":              {"customModes: false\n", "", "", false},
		"no list":            {"customModes: {a: 1}\n", "", "must be a list", true},
		"a list":             {"- a\n", "", "", false},
		"broken":             {"customModes: [\n  - x: {", "", "no YAML", false},
		"two documents":      {"customModes: []\n---\na: 1\n", "", "several", false},
		"a key twice":        {"customModes: []\ncustomModes: []\n", "", "no YAML", false},
		"an alias to itself": {"a: &x [*x]\n", "", "refers to no earlier anchor", false},
		"an unknown alias":   {"a: *x\n", "", "refers to no earlier anchor", false},
		"an alias":           {"x: &m {slug: a, name: A, roleDefinition: r, groups: []}\ncustomModes: [*m]\n", "a", "", true},
		"JSON with tabs":     {"{\n\t\"customModes\": [\n\t\t{\"slug\": \"a\", \"name\": \"A\", \"roleDefinition\": \"r\", \"groups\": []}\n\t]\n}", "a", "", true},
		"JSON alone":         {`{"x":"a` + "\u2028" + `","x":"b","customModes":[{"slug":"a","name":"“A”","roleDefinition":"r","groups":[["edit",{}]]}]}`, "a", "", true},
		"CRLF and BOM":       {"\ufeff" + strings.ReplaceAll(oneMode, "\n", "\r\n"), "docs", "", true},
		"nbsp for blanks":    {strings.ReplaceAll(oneMode, " ", "\u00a0"), "docs", "", true},
		"dashes of a chat":   {strings.ReplaceAll(oneMode, "- ", "\u2013 "), "docs", "", true},
		"deep":               {strings.Repeat("[", 300) + strings.Repeat("]", 300), "", "deep", false},
		"deep brackets":      {strings.Repeat("[", maxFile), "", "deep", false},
		"deep maps":          {strings.Repeat("{a: ", maxFile/4), "", "deep", false},
		"deep lists":         {strings.Repeat("- ", maxFile/2), "", "deep", false},
		"many lines":         {oneMode + strings.Repeat("# x\n", maxLines), "", "lines", false},
		"blank lines":        {oneMode + strings.Repeat(" \n", maxBlank+1), "", "blank", false},
		"some blank lines":   {oneMode + strings.Repeat("\r", maxBlank), "docs", "", true},
		"too large":          {oneMode + strings.Repeat("# x\n", maxFile), "", "more than", false},
	} {
		f := Parse(c.text, Project, "p")
		problem := strings.Join(f.Problems, "; ")
		if slugs(f) != c.slugs || f.Found != c.found || (problem == "") != (c.problem == "") || !strings.Contains(problem, c.problem) {
			t.Errorf("%s: modes %q, found %v, problems %q", name, slugs(f), f.Found, f.Problems)
		}
	}
}

// A file of a repository must not keep the program busy.
func TestLargeFilesAreReadInTime(t *testing.T) {
	text := strings.Repeat("x", maxFile/2)
	for name, text := range map[string]string{
		"no YAML":         strings.Repeat("%", maxFile),
		"blank lines":     "a: |\n " + text + strings.Repeat("\n", maxFile/3),
		"carriage return": "a: |\n " + text + strings.Repeat("\r", maxFile/3),
		"keys":            strings.Repeat("a: &x 1\n", maxFile/9),
		"documents":       strings.Repeat("---\na\n", maxFile/9),
		"items":           strings.Repeat("-\n", maxFile/3),
	} {
		begin := time.Now()
		if f := Parse(text, Project, "p"); len(f.Problems) != 1 || time.Since(begin) > 5*time.Second {
			t.Errorf("%s: got problems %.200q after %s, want one within 5 s", name, f.Problems, time.Since(begin))
		}
	}
}

func TestBlockTextIsKept(t *testing.T) {
	f := Parse(with("    customInstructions: |\n      do\n        this\n\n      now\n    whenToUse: >-\n      fold\n      ed"), Project, "p")
	if len(f.Modes) != 1 || f.Modes[0].CustomInstructions != "do\n  this\n\nnow\n" || f.Modes[0].WhenToUse != "fold ed" {
		t.Errorf(`got %+v %q, want len(f.Modes) = 1 and f.Modes[0].CustomInstructions = "do\n this\n\nnow\n" and f.Modes[0].WhenToUse = "fold ed"`,
			f.Modes, f.Problems)
	}
}

func TestReadFile(t *testing.T) {
	fsys := fstest.MapFS{
		"good": {Data: []byte(oneMode)}, "dir/x": {}, "pipe": {Mode: 1 << 25}, // fs.ModeNamedPipe
		"large": {Data: []byte(strings.Repeat("#", maxFile+9))},
	}
	for name, want := range map[string]string{"good": "", "absent": "", "dir": "no regular file", "pipe": "no regular file", "large": "more than"} {
		f := ReadFile(fsys, name, Project, "/w/"+name)
		if got := strings.Join(f.Problems, ";"); (got == "") != (want == "") || !strings.Contains(got, want) || f.Found != (name == "good") {
			t.Errorf(`%s: got %+v, want (got == "") = (want == "") and strings.Contains(got, want) and f.Found = (name == "good")`,
				name, f)
		}
	}
}

// Whatever bytes lie in a workspace, reading them ends, and what comes out can be
// used: rights only from what was understood.
func FuzzParse(f *testing.F) {
	for _, s := range []string{oneMode, with("    groups: [[edit, {fileRegex: '\\.md$'}]]"), "customModes: [*a]", "? a\n: b", "a: !!str\n", "<<: *x", "{a: [", "\t", "a: |\n", "%YAML 1.2\n---\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Parse(text, Project, "p")
		seen := map[string]bool{}
		for _, m := range got.Modes {
			if seen[m.Slug] || !slugForm().MatchString(m.Slug) || m.Name == "" || m.RoleDefinition == "" || m.Source != Project || !got.Found {
				t.Fatalf("%q gives %+v", text, m)
			}
			seen[m.Slug] = true
			for _, g := range m.Groups {
				if _, known := groups[g.Name]; !known || (g.FileRegex != "") != (g.files != nil) {
					t.Fatalf("%q gives %+v", text, g)
				}
			}
		}
		if d := cmp.Diff(got, Parse(text, Project, "p"), cmpopts.IgnoreUnexported(Group{})); d != "" {
			t.Fatal(d)
		}
	})
}

func TestAnEmptyPatternIsExportedAsItWasGiven(t *testing.T) {
	in := `{"customModes":[{"slug":"a","name":"A","roleDefinition":"r","groups":[["edit",{"fileRegex":"","description":""}],["read",{}]]}]}`
	f := Parse(in, Project, "")
	if out := string(Encode(f.Modes)); len(f.Problems) > 0 || strings.Join(strings.Fields(out), "") != in {
		t.Errorf("%q\n got %s\nwant %s", f.Problems, out, in)
	}
}
