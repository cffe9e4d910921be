package skill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"pgregory.net/rapid"
)

// text is a SKILL.md.
func text(name, description, more string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n" + more + "---\n\nBody of " + description + "\n"
}

// set is the skills of a workspace and a home folder with these files, by their paths
// below "w" and "h".
func set(t *testing.T, files map[string]string) Set {
	t.Helper()
	dir := t.TempDir()
	for _, base := range []string{"w", "h"} {
		if err := os.Mkdir(filepath.Join(dir, base), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		fixture.WriteFile(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	return Set{Workspace: filepath.Join(dir, "w"), Home: filepath.Join(dir, "h")}
}

// told is what a list says: name, description and source of each.
func told(list []Skill) (out []string) {
	for _, k := range list {
		out = append(out, k.Name+": "+k.Description+" ("+k.Source+")")
	}
	return out
}

// One name, and in each place fewer and fewer of them: the nearer one counts.
func TestWhichOneCounts(t *testing.T) {
	order := []string{
		"w/.roo/skills-code", "w/.agents/skills-code", "w/.roo/skills", "w/.agents/skills",
		"h/.roo/skills-code", "h/.agents/skills-code", "h/.roo/skills", "h/.agents/skills",
	}
	for first := range order {
		files := map[string]string{}
		for _, place := range order[first:] {
			files[place+"/one/SKILL.md"] = text("one", place, "")
		}
		s := set(t, files)
		k, body, err := s.Find("code", "one")
		if err != nil || k.Description != order[first] || body != "Body of "+order[first] || !strings.HasSuffix(filepath.ToSlash(k.Path), order[first]+"/one/SKILL.md") {
			t.Errorf("from %s on: %+v, %q, %v", order[first], k, body, err)
		}
		if list, notes := s.In("code"); len(list) != 1 || notes != nil {
			t.Errorf("got %v %q, want len(list) = 1 and notes = nil", list, notes)
		}
	}
	if list, notes := (Set{}).In("code"); list != nil || notes != nil {
		t.Errorf("got %v %q, want list = nil and notes = nil", list, notes)
	}
	if _, _, err := (Set{}).Find("code", "one"); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

// A mode has its own and those of every mode, wherever that is said.
func TestSkillsOfAMode(t *testing.T) {
	s := set(t, map[string]string{
		"w/.roo/skills/all/SKILL.md":              text("all", "all", ""),
		"w/.roo/skills-ask/asking/SKILL.md":       text("asking", "asking", ""),
		"w/.roo/skills/listed/SKILL.md":           text("listed", "listed", "modeSlugs: [code, \"debug\"]\n"),
		"w/.roo/skills/lines/SKILL.md":            text("lines", "lines", "modeSlugs:\n  - ask # and\n  - code\n"),
		"w/.roo/skills/single/SKILL.md":           text("single", "single", "mode: debug\n"),
		"w/.roo/skills-debug/elsewhere/SKILL.md":  text("elsewhere", "elsewhere", "modeSlugs: [ask]\n"),
		"w/.roo/skills-../../../up/SKILL.md":      text("up", "up", ""),
		"h/.roo/skills/all/SKILL.md":              text("all", "mine", "mode: code\n"),
		"h/.agents/skills/of-my-own/SKILL.md":     text("of-my-own", "own", ""),
		"h/.roo/skills/of-my-own/NOT-SKILL.md":    "x",
		"w/.roo/skills/no-folder-but-a-file.md":   "x",
		"w/.roo/skills/deeper/inner/SKILL.md":     text("inner", "inner", ""),
		"w/.roo/skills/with-files/scripts/run.sh": "x",
	})
	for mode, want := range map[string][]string{
		"code":  {"all: all (project)", "lines: lines (project)", "listed: listed (project)", "of-my-own: own (global)"},
		"ask":   {"all: all (project)", "asking: asking (project)", "lines: lines (project)", "of-my-own: own (global)"},
		"debug": {"all: all (project)", "listed: listed (project)", "of-my-own: own (global)", "single: single (project)"},
		"":      {"all: all (project)", "of-my-own: own (global)"},
		"../..": {"all: all (project)", "of-my-own: own (global)"},
	} {
		list, notes := s.In(mode)
		if d := cmp.Diff(want, told(list)); d != "" || notes != nil {
			t.Errorf("%q: %s notes %q", mode, d, notes)
		}
	}
	if _, _, err := s.Find("code", "asking"); !errors.Is(err, ErrNone) {
		t.Errorf("code has a skill of ask: %v", err)
	}
}

// What cannot be used is named with its reason, and costs no other one.
func TestWhatCannotBeUsed(t *testing.T) {
	long := strings.Repeat("a", maxName+1)
	bad := map[string]string{
		"no-front":    "just words",
		"no-name":     "---\ndescription: x\n---\nb",
		"other":       text("another", "x", ""),
		"no-words":    "---\nname: no-words\n---\nb",
		"UPPER":       text("UPPER", "x", ""),
		"two--dashes": text("two--dashes", "x", ""),
		"-dash":       text("-dash", "x", ""),
		"a_b":         text("a_b", "x", ""),
		long:          text(long, "x", ""),
		"verbose":     text("verbose", strings.Repeat("é", maxDescription+1), ""),
		"large":       text("large", "x", "") + strings.Repeat("x", maxFile),
		"a-number":    "---\nname: a-number\ndescription: 5\n---\nb",
	}
	files := map[string]string{"w/.roo/skills/good/SKILL.md": text("good", strings.Repeat("é", maxDescription), "")}
	for name, text := range bad {
		files["w/.roo/skills/"+name+"/SKILL.md"] = text
	}
	s := set(t, files)
	if err := os.MkdirAll(filepath.Join(s.Workspace, ".roo", "skills", "folder", "SKILL.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	list, notes := s.In("code")
	if len(list) != 1 || list[0].Name != "good" || len(notes) != len(bad)+1 {
		t.Errorf("%q, %d notes: %s", told(list), len(notes), strings.Join(notes, "\n"))
	}
	for name := range bad {
		if !strings.Contains(strings.Join(notes, "\n"), "the skill .roo/skills/"+name+"/SKILL.md is left out: ") {
			t.Errorf("%s is not named", name)
		}
		if _, _, err := s.Find("code", name); !errors.Is(err, ErrNone) {
			t.Errorf("%s: got %v, want errors.Is(err, ErrNone)", name, err)
		}
	}
}

// Links may lead about in the workspace and not out of it. The home folder is the
// user's own.
func TestLinks(t *testing.T) {
	s := set(t, map[string]string{
		"out/evil/SKILL.md":    text("evil", "evil", ""),
		"out/mine/SKILL.md":    text("mine", "mine", ""),
		"out/secret.md":        text("file", "secret", ""),
		"w/shared/in/SKILL.md": text("in", "inside", ""),
	})
	dir := filepath.Dir(s.Workspace)
	skills := filepath.Join(s.Workspace, ".roo", "skills")
	fixture.Link(t, filepath.Join(dir, "out", "evil"), filepath.Join(skills, "evil"))
	fixture.Link(t, "../../../out/evil", filepath.Join(s.Workspace, ".agents", "skills", "evil"))
	fixture.Link(t, "../../shared/in", filepath.Join(skills, "in"))
	fixture.Link(t, filepath.Join(dir, "out", "secret.md"), filepath.Join(skills, "file", "SKILL.md"))
	fixture.Link(t, "SKILL.md", filepath.Join(skills, "round", "SKILL.md"))
	fixture.Link(t, filepath.Join(dir, "out"), filepath.Join(s.Home, ".roo", "skills"))
	list, notes := s.In("code")
	if d := cmp.Diff([]string{"evil: evil (global)", "in: inside (project)", "mine: mine (global)"}, told(list)); d != "" {
		t.Errorf("got %s %q, want d = \"\"", d, notes)
	}
	if len(notes) != 4 {
		t.Errorf("got %q, want len(notes) = 4", notes)
	}
	if _, body, err := s.Find("code", "in"); err != nil || body != "Body of inside" {
		t.Errorf("got %q %v, want no error and body = \"Body of inside\"", body, err)
	}
	// A whole folder of skills that leads out is none.
	other := set(t, nil)
	fixture.Link(t, filepath.Join(dir, "out"), filepath.Join(other.Workspace, ".roo"))
	fixture.WriteFile(t, filepath.Join(dir, "out", "skills", "evil", "SKILL.md"), text("evil", "x", ""))
	if list, notes := other.In("code"); list != nil || len(notes) == 0 {
		t.Errorf("got %v %q, want list = nil and len(notes) != 0", list, notes)
	}
}

// A pipe is not waited for.
func TestAPipeIsNoSkill(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no pipes among files")
	}
	s := set(t, nil)
	fixture.Link(t, "/dev/null", filepath.Join(s.Home, ".roo", "skills", "null", "SKILL.md"))
	if list, notes := s.In("code"); list != nil || len(notes) != 1 || !strings.Contains(notes[0], "no regular file") {
		t.Errorf("got %v %q, want list = nil and len(notes) = 1 and strings.Contains(notes[0], \"no regular file\")",
			list, notes)
	}
}

func TestBounds(t *testing.T) {
	files := map[string]string{}
	for i := range maxFolders + 5 {
		name := fmt.Sprintf("s%03d", i)
		files["w/.roo/skills/"+name+"/SKILL.md"] = text(name, "x", "")
	}
	list, notes := set(t, files).In("code")
	if len(list) != maxSkills || list[0].Name != "s000" || len(notes) != 2 || !strings.Contains(notes[0], "holds 205 entries") || !strings.Contains(notes[1], "first 100 of 200") {
		t.Errorf("%d skills, %q", len(list), notes)
	}
}

func TestAnEditCountsAtOnce(t *testing.T) {
	s := set(t, map[string]string{"w/.roo/skills/a/SKILL.md": text("a", "first", "")})
	fixture.WriteFile(t, filepath.Join(s.Workspace, ".roo", "skills", "a", "SKILL.md"), text("a", "second", ""))
	if k, body, err := s.Find("code", "a"); err != nil || k.Description != "second" || body != "Body of second" {
		t.Errorf(`got %+v %q %v, want no error and k.Description = "second" and body = "Body of second"`,
			k, body, err)
	}
}

// A gone workspace is told and no reason to stop.
func TestAWorkspaceThatIsGone(t *testing.T) {
	s := set(t, map[string]string{"h/.roo/skills/a/SKILL.md": text("a", "x", "")})
	s.Workspace += "-gone"
	if list, notes := s.In("code"); len(list) != 1 || len(notes) != 1 || !strings.Contains(notes[0], "cannot be read") {
		t.Errorf("got %v %q, want len(list) = 1 and len(notes) = 1 and strings.Contains(notes[0], \"cannot be read\")",
			list, notes)
	}
}

// Whatever a file holds, a skill that is listed has a name that is its folder's and one
// line of description, and its text can be had.
func TestAnyFile(t *testing.T) {
	s := set(t, nil)
	at := filepath.Join(s.Workspace, ".roo", "skills", "a", "SKILL.md")
	fixture.WriteFile(t, at, "")
	line := rapid.SampledFrom([]string{"---", "name: a", "name: 'a'", "name: b", "description: x y", "description: |", "  two", "  lines", "modeSlugs: [code", "modeSlugs: [code]", "modeSlugs:", "- code", "mode: [", "\xff\xfe", "", "\x00", "\u2028", "body"})
	rapid.Check(t, func(r *rapid.T) {
		fixture.WriteFile(t, at, strings.Join(rapid.SliceOf(line).Draw(r, "lines"), "\n"))
		list, notes := s.In("code")
		if len(list)+len(notes) > 1 {
			r.Fatalf("got %v %q, want len(list)+len(notes) <= 1", list, notes)
		}
		for _, k := range list {
			if k.Name != "a" || k.Description == "" || strings.ContainsAny(k.Description, "\n\r") {
				r.Fatalf(`got %+v, want k.Name = "a" and k.Description != "" and not strings.ContainsAny(k.Description, "\n\r")`,
					k)
			}
			if _, _, err := s.Find("code", "a"); err != nil {
				r.Fatal(err)
			}
		}
	})
}
