package mode

import (
	"errors"
	"testing"
)

// What each built-in mode may do is a promise to its users.
func TestBuiltInModes(t *testing.T) {
	var set Set
	for _, c := range []struct {
		mode    string
		allowed string // one letter a tool below
	}{
		{"architect", "r-e-mtq"}, {"code", "r-ecmtq"}, {"ask", "r---mtq"}, {"debug", "r-ecmtq"}, {"orchestrator", "-----tq"},
	} {
		m, ok := set.Find(c.mode)
		if !ok {
			t.Fatalf("there is no mode %s", c.mode)
		}
		got := ""
		for _, one := range []struct{ letter, tool, group string }{
			{"r", "read_file", ""}, {"u", "bogus", ""}, {"e", "write_file", ""}, {"c", "execute_command", ""},
			{"m", "mcp--server--tool", ""}, {"t", "update_todo_list", ""}, {"q", "ask_followup_question", ""},
		} {
			if m.Permits(one.tool, one.group) != nil {
				one.letter = "-"
			}
			got += one.letter
		}
		if got != c.allowed {
			t.Errorf("%s: %s, want %s", c.mode, got, c.allowed)
		}
		if m.Name == "" || m.RoleDefinition == "" || m.WhenToUse == "" || m.Source != BuiltIn {
			t.Errorf("%s is not described: %+v", c.mode, m)
		}
	}
}

// A tool that Roo does not know goes by the group that it is said to be of; one that
// Roo knows never does.
func TestUnknownToolsGoByTheirGroup(t *testing.T) {
	ask, _ := Set{}.Find("ask")
	for _, c := range []struct {
		tool, group string
		want        bool
	}{
		{"list_tasks", "read", true}, {"own_writer", "edit", false}, {"own_shell", "command", false}, {"own_question", "always", true},
		{"write_to_file", "read", false}, {"write_to_file", "always", false}, {"search_and_replace", "read", false},
	} {
		if got := ask.Permits(c.tool, c.group) == nil; got != c.want {
			t.Errorf("%s of %q: %v", c.tool, c.group, got)
		}
	}
}

func TestRefusalsSayWhatRooSays(t *testing.T) {
	architect, _ := Set{}.Find("architect")
	err := architect.Permits("execute_command", "")
	if want := `Tool "execute_command" is not allowed in architect mode.`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	err = architect.PermitsFile("write_to_file", "a.ts")
	want := `Tool 'write_to_file' in mode '🏗️ Architect' can only edit files matching pattern: \.md$ (Markdown files only). Got: a.ts`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	code, _ := Set{}.Find("code")
	if err := errors.Join(architect.PermitsFile("x", "plans/a.md"), code.PermitsFile("x", "a.ts")); err != nil {
		t.Error(err)
	}
	// A mode made by hand, as a test or a program would.
	byHand := Mode{Name: "x", Groups: []Group{{Name: "edit", FileRegex: "^a$"}}}
	if byHand.PermitsFile("x", "a") != nil || byHand.PermitsFile("x", "b") == nil {
		t.Error("a pattern that was not read from a file does not hold")
	}
	want = "Tool 'y' in mode 'x' can only edit files matching pattern: ^a$. Got: b"
	if err := byHand.PermitsFile("y", "b"); err == nil || err.Error() != want {
		t.Errorf("without a description: got %v, want %s", err, want)
	}
	broken := Mode{Name: "x", Groups: []Group{{Name: "edit", FileRegex: "["}}}
	if broken.PermitsFile("x", "a") == nil {
		t.Error("a pattern that is none allows everything")
	}
}

func TestNamesOfACall(t *testing.T) {
	patch := "*** Begin Patch\n*** Update File: a.ts\n*** Move to: b.md\n@@\n-*** Add File: no\n*** Add File: c.md\n  *** Delete File: d.md\n*** End Patch"
	for _, c := range []struct {
		tool   string
		params map[string]string
		want   string
	}{
		{"write_to_file", map[string]string{"path": "a"}, "a"},
		{"edit_file", map[string]string{"file_path": "a"}, "a"},
		{"search_and_replace", map[string]string{"path": "a", "file_path": "b"}, "a"},
		{"write_to_file", map[string]string{"patch": patch}, ""},
		{"apply_patch", map[string]string{"patch": patch}, "a.ts b.md c.md d.md"},
		{"read_file", map[string]string{"path": "a"}, ""},
		{"apply_diff", nil, ""},
	} {
		got := ""
		for _, n := range Names(c.tool, func(key string) string { return c.params[key] }) {
			if got != "" {
				got += " "
			}
			got += n
		}
		if got != c.want {
			t.Errorf("%s %v names %q, want %q", c.tool, c.params, got, c.want)
		}
	}
}

func TestUnknownModes(t *testing.T) {
	set := Merge([]Mode{{Slug: "docs-writer", Name: "📝 Docs"}}, nil)
	for given, want := range map[string]string{
		"cod": "code", "Code": "code", "codee": "code", "architekt": "architect", "arch": "architect", "docs": "docs-writer", "debgu": "debug", "aks": "ask",
		"xyzzy": "", "": "", "a": "architect",
	} {
		_, err := set.Lookup(given)
		var unknown *UnknownError
		if !errors.As(err, &unknown) {
			t.Fatalf("%q: got %v, want errors.As(err, &unknown)", given, err)
		}
		best := ""
		if len(unknown.Closest) > 0 {
			best = unknown.Closest[0]
		}
		if best != want || len(unknown.Known) != 6 {
			t.Errorf("%q: closest %q, want %q; known %q", given, unknown.Closest, want, unknown.Known)
		}
	}
	if m, err := set.Lookup("docs-writer"); err != nil || m.Source != Project {
		t.Errorf("got %+v, %v, want no error and m.Source = Project", m, err)
	}
}

// A workspace's file may give a built-in mode another meaning. That is Roo's way; it
// takes the old one's place, and is told.
func TestPrecedence(t *testing.T) {
	set := Merge([]Mode{{Slug: "ask", Name: "mine"}, {Slug: "x", Name: "first"}, {Slug: "x", Name: "second"}}, []Mode{{Slug: "x", Name: "global"}, {Slug: "code", Name: "own"}})
	want := map[string]string{"ask": "mine project", "x": "first project", "code": "own global", "architect": "🏗️ Architect builtin"}
	for slug, w := range want {
		if m, _ := set.Find(slug); m.Name+" "+m.Source != w {
			t.Errorf("%s is %s %s, want %s", slug, m.Name, m.Source, w)
		}
	}
	if got := set.Redefined(); len(got) != 1 || got[0] != "ask" {
		t.Errorf("redefined: %q", got)
	}
	if all := set.All(); len(all) != 6 || all[2].Name != "mine" || all[5].Slug != "x" {
		t.Errorf(`got %+v, want len(all) = 6 and all[2].Name = "mine" and all[5].Slug = "x"`, all)
	}
	// What one caller does to its list is not seen by the next.
	set.All()[0].Slug = "changed"
	Set{}.All()[1].Slug = "changed"
	if set.Slugs()[0] != "architect" || (Set{}).Slugs()[1] != "code" {
		t.Error("lists are shared")
	}
}
