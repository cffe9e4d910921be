package mention

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/workspace/skill"
)

// A name that no command has may be that of a skill of the mode that the task is in.
func TestASkillStandsInForACommand(t *testing.T) {
	g, dir := ground(t, map[string]string{
		".roo/commands/both.md":              "the command",
		".roo/skills/both/SKILL.md":          "---\nname: both\ndescription: a skill\n---\nthe skill",
		".roo/skills/release/SKILL.md":       "---\nname: release\ndescription: How to release\n---\nTag, then push. /both @/a.txt",
		".roo/skills-ask/explain/SKILL.md":   "---\nname: explain\ndescription: Explain\n---\nSay it.",
		".agents/skills/broken/SKILL.md":     "no front matter",
		".roo/skills/release/scripts/tag.sh": "git tag",
	})
	now := "code"
	g.Skills, g.Mode = skill.Set{Workspace: dir}, func() string { return now }
	e := Expand(t.Context(), "/both and /release 1.2 and /explain and /broken", g)
	if e.Text != "Command 'both' (see below for command content) and Command 'release' (see below for command content) 1.2 and /explain and /broken" {
		t.Errorf("got %q, want e.Text = \"Command 'both' (see below for command content) and Command 'release' (see below for command content) 1.2 and /explain and /broken\"",
			e.Text)
	}
	for _, part := range []string{
		"<command name=\"both\">\nthe command\n</command>",
		"<command name=\"release\">\nDescription: How to release\n\nFolder: " + dir,
		"Tag, then push. /both @/a.txt\n</command>", // what a skill says is not looked into
	} {
		if !strings.Contains(e.Commands, part) {
			t.Errorf("%q is not in %s", part, e.Commands)
		}
	}
	if len(e.Blocks) != 0 || e.Mode != "" || strings.Count(e.Commands, "the command") != 1 {
		t.Errorf(`got %+v, want len(e.Blocks) = 0 and e.Mode = "" and strings.Count(e.Commands, "the command") = 1`,
			e)
	}
	now = "ask"
	if e := Expand(t.Context(), "/explain", g); !strings.Contains(e.Commands, "Say it.") {
		t.Errorf("got %+v, want strings.Contains(e.Commands, \"Say it.\")", e)
	}
	// Without a mode there are those of every mode.
	g.Mode = nil
	if e := Expand(t.Context(), "/explain /release", g); strings.Contains(e.Commands, "Say it.") || !strings.Contains(e.Commands, "Tag, then push.") {
		t.Errorf(`got %+v, want not strings.Contains(e.Commands, "Say it.") and strings.Contains(e.Commands, "Tag, then push.")`,
			e)
	}
	if _, ok, note := g.Command(t.Context(), "../release"); ok || note != "" {
		t.Errorf("a path is taken for a name: %q", note)
	}
}
