package engine_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

const skilled = `
- tools: [{name: skill, input: {skill: release, args: "1.2"}}, {name: skill, input: {skill: secret, args: null}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`

// The model is told of the skills of its mode and gets the text of one without anybody
// being asked; a person names one with a slash. What another mode has is not there.
func TestSkillsInARun(t *testing.T) {
	b := newBench(t)
	home := t.TempDir()
	front := func(name string) string {
		return "---\nname: " + name + "\ndescription: For " + name + "\n---\nDo " + name + "."
	}
	fixture.WriteFile(t, filepath.Join(b.workspace, ".roo", "skills", "release", "SKILL.md"), front("release"))
	fixture.WriteFile(t, filepath.Join(b.workspace, ".agents", "skills-ask", "secret", "SKILL.md"), front("secret"))
	fixture.WriteFile(t, filepath.Join(b.workspace, ".roo", "skills", "broken", "SKILL.md"), "x")
	fixture.WriteFile(t, filepath.Join(home, ".roo", "skills", "mine", "SKILL.md"), front("mine"))
	b.engine = engine.New(b.store, engine.Options{Config: setup.Config{Keys: map[string]string{}, Home: home}})
	run, out, events := b.run(engine.Request{Text: "go and /mine it", Choice: setup.Choice{Provider: "script", Model: b.script(skilled)}})
	if out.State != "completed" || !mentions(events, "the skill .roo/skills/broken/SKILL.md is left out: ") {
		t.Fatalf(`got %+v %s, want out.State = "completed" and mentions(events, "the skill .roo/skills/broken/SKILL.md is left out: ")`,
			out, texts(events))
	}
	s := b.state(run.TaskID)
	var said strings.Builder
	for _, m := range s.API() {
		said.Write(m.Raw())
	}
	for _, part := range []string{`Skill: release\nDescription: For release\nProvided arguments: 1.2`, "Do release.", "Skill 'secret' not found. Available skills: mine, release", `<command name=\"mine\">`, "Do mine."} {
		if !strings.Contains(said.String(), part) {
			t.Errorf("%q is not in %s", part, said.String())
		}
	}
	if strings.Contains(said.String(), "Do secret.") {
		t.Error("a skill of another mode was told")
	}
	if len(s.Questions) > 0 {
		t.Error("somebody was asked")
	}
}
