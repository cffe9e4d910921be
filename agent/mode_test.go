package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/controltool"
	"github.com/roost-dev/roost/workspace"
)

// moded is a bench whose task is in a mode.
func moded(t *testing.T, slug string, turns ...turn) *bench {
	b := newBench(t, turns...)
	b.tools = append(b.tools, controltool.NewSwitchMode(), controltool.NewTodoList())
	b.prepare()
	b.inMode(slug)
	return b
}

// inMode puts the next run into a mode; "" leaves the mode that the task has.
func (b *bench) inMode(slug string) {
	docs := mode.Parse(`{"customModes":[{"slug":"docs","name":"Docs","roleDefinition":"You write docs.","groups":["read",["edit",{"fileRegex":"\\.md$"}]]}]}`, mode.Project, "")
	set := mode.Merge(docs.Modes, nil)
	b.agent.User.Modes = &set
	b.agent.User.Setup = setup{rules: func(slug string) mode.Rules {
		return mode.Rules{Sections: []mode.Section{{Title: "AGENTS.md", Text: "Rules of " + slug + "."}}, Notes: []string{"a rule was odd"}}
	}}
	if slug != "" {
		b.agent.Task.Settings.Mode = slug
	}
}

func to(slug string) call {
	return call{"s-" + slug, "switch_mode", `{"mode_slug":"` + slug + `","reason":"it must be"}`}
}

// The mode says which tools a model is told of and who it is. Both stay the same, to
// the byte, from turn to turn and from run to run.
func TestModesShapeTheRequest(t *testing.T) {
	look := turn{calls: []call{use("r1", "look", "a")}}
	for slug, offered := range map[string]string{
		"":             "look edit act",
		"code":         "look edit act",
		"ask":          "look",
		"docs":         "look edit",
		"orchestrator": "",
		"gone":         "",
	} {
		b := moded(t, slug, finish("done"), look, finish("done again"))
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		b.inMode("")
		b.agent.Task.Settings.Mode = slug
		want(t, b.start(agent.Input{Text: "more"}), "completed", "")
		first := b.model.requests[0]
		var names []string
		for _, s := range first.Tools {
			if !slices.Contains([]string{"ask_followup_question", "attempt_completion", "switch_mode", "update_todo_list"}, s.Name) {
				names = append(names, s.Name)
			}
		}
		if got := strings.Join(names, " "); got != offered || len(first.Tools) != len(names)+4 {
			t.Errorf("%q is offered %q and %d in all, want %q", slug, got, len(first.Tools), offered)
		}
		for _, r := range b.model.requests[1:] {
			if r.System != first.System || cmp.Diff(first.Tools, r.Tools) != "" {
				t.Errorf("%q: the beginning of a later request differs: %s", slug, cmp.Diff(first.System, r.System))
			}
		}
		if n := strings.Count(strings.Join(b.notices, "\n"), "a rule was odd"); n != 2 {
			t.Errorf("a note of the rules was told %d times in two runs", n)
		}
	}
	b := moded(t, "docs", finish("done"))
	b.start(agent.Input{Text: "go"})
	system := b.model.requests[0].System
	for _, part := range []string{"You write docs.\n\nHow to work:", "\n- 💻 Code (code): ", "# Rules from AGENTS.md:\nRules of docs."} {
		if !strings.Contains(system, part) {
			t.Errorf("%q is not in %s", part, system)
		}
	}
	if !strings.Contains(b.model.last(), `# Current Mode\n<slug>docs</slug>\n<name>Docs</name>\n<model>a-model</model>`) {
		t.Error(b.model.last())
	}
}

// A call that the mode forbids does nothing, and nobody is asked about it. The model
// is told why, and one that goes on like that is stopped.
func TestWhatAModeForbids(t *testing.T) {
	act := func(id string) turn { return turn{calls: []call{use(id, "act", "x")}} }
	b := moded(t, "ask", turn{calls: []call{use("r1", "look", "a"), use("w1", "edit", "a"), use("c1", "act", "x")}}, finish("done"))
	b.agent.Task.Policy, b.agent.User.Asker = approval.Policy{}, b.person(agent.Answer{Approve: yes()}, nil)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if d := cmp.Diff([]string{"r1 ok", "w1 error", "c1 error"}, outcomes(b.disk.state)); d != "" || len(b.asked) > 0 || len(b.ran) != 1 {
		t.Errorf("%s asked %v, ran %q", d, b.asked, b.ran)
	}
	if got := result(t, b.disk.state, "c1"); !strings.Contains(got, `Tool \\\"act\\\" is not allowed in ask mode.`) || !strings.Contains(got, `"is_error":true`) {
		t.Error(got)
	}
	checkHistories(t, b.disk.state)

	b = moded(t, "ask", act("c1"), act("c2"), act("c3"), finish("done"))
	want(t, b.start(agent.Input{Text: "go"}), "limit", "mistakes")
}

// The pattern of a mode holds for the file that is really written, whatever it is
// called and however the path is put.
func TestFilesOfAMode(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"docs", "src"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "src", "a.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"docs/link.md": "../src/a.go", "src.md": "src"} {
		if err := os.Symlink(target, filepath.Join(root, filepath.FromSlash(link))); err != nil {
			t.Skip(err)
		}
	}
	ws, err := workspace.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	for path, outcome := range map[string]string{
		"docs/a.md": "ok", "./docs/../docs/a.md": "ok", filepath.Join(root, "a.md"): "ok",
		"src/a.go": "error", "docs/link.md": "error", "src.md/a.go": "error", "a.md/../src/a.go": "error", "docs/a.md\x00": "error",
	} {
		for _, planned := range []bool{false, true} { // named in the input, or found by the plan
			b := moded(t, "docs", turn{calls: []call{use("w1", "edit", "x")}}, finish("done"))
			b.agent.Host.Workspace = ws
			key := "path"
			if planned {
				key = "elsewhere"
				b.tool("edit").ask = func(ask *tool.Ask) { ask.Paths = []string{"ok.md", path} }
			}
			b.model.turns[0].calls[0].input = `{"what":"x","` + key + `":` + string(mustJSON(path)) + `}`
			want(t, b.start(agent.Input{Text: "go"}), "completed", "")
			if got := outcomes(b.disk.state); got[0] != "w1 "+outcome {
				t.Errorf("%q (planned %v): %q, %s", path, planned, got, result(t, b.disk.state, "w1"))
			}
			if outcome == "error" && len(b.ran) > 0 {
				t.Errorf("%q was written", path)
			}
		}
	}
}

func TestSwitchMode(t *testing.T) {
	code := turn{calls: []call{to("code"), use("c1", "act", "x")}}
	for name, c := range map[string]struct {
		policy approval.Policy
		call   call
		answer agent.Answer
		asked  int
		mode   string
		says   string
		want   []string
	}{
		"yes":           {approval.Policy{Mode: approval.ModeEdits, Allow: []string{"x"}}, to("code"), agent.Answer{Approve: yes()}, 1, "code", "Successfully switched from ❓ Ask mode to 💻 Code mode because: it must be.", []string{"s-code ok", "c1 ok"}},
		"no":            {approval.Policy{Mode: approval.ModeEdits}, to("code"), agent.Answer{Approve: no(), Text: "stay"}, 1, "ask", "stay", []string{"s-code denied", "c1 denied"}},
		"all":           {approval.Policy{Mode: approval.ModeAll}, to("code"), agent.Answer{}, 0, "code", "Successfully", []string{"s-code ok", "c1 ok"}},
		"always":        {approval.Policy{AllowTools: []string{"switch_mode"}, Allow: []string{"x"}}, to("code"), agent.Answer{}, 0, "code", "Successfully", []string{"s-code ok", "c1 ok"}},
		"a rule asks":   {approval.Policy{Mode: approval.ModeAll, AskTools: []string{"switch_mode"}}, to("code"), agent.Answer{Approve: yes()}, 1, "code", "Successfully", []string{"s-code ok", "c1 ok"}},
		"a rule denies": {approval.Policy{Mode: approval.ModeAll, DenyTools: []string{"switch_mode"}}, to("code"), agent.Answer{}, 0, "ask", "the rule", []string{"s-code denied", "c1 error"}},
		"no such mode":  {approval.Policy{Mode: approval.ModeAll}, to("cod"), agent.Answer{}, 0, "ask", "Invalid mode: cod. There are architect", []string{"s-cod error", "c1 error"}},
		"the same mode": {approval.Policy{}, to("ask"), agent.Answer{}, 0, "ask", "Already in ❓ Ask mode.", []string{"s-ask ok", "c1 error"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := moded(t, "ask", turn{calls: []call{c.call, code.calls[1]}}, finish("done"))
			b.agent.Task.Policy, b.agent.User.Asker = c.policy, b.person(c.answer, nil)
			want(t, b.start(agent.Input{Text: "go"}), "completed", "")
			s := b.disk.state
			if d := cmp.Diff(c.want, outcomes(s)); d != "" || len(b.asked) != c.asked || s.Settings.Mode != c.mode {
				t.Errorf("%s asked %+v, mode %s", d, b.asked, s.Settings.Mode)
			}
			if got := result(t, s, c.call.id); !strings.Contains(got, c.says) {
				t.Error(got)
			}
			if !strings.Contains(b.model.last(), "<slug>"+c.mode+"</slug>") {
				t.Error(b.model.last())
			}
			if system := b.model.requests[1].System; !strings.Contains(system, "Rules of "+c.mode+".") {
				t.Error(system)
			}
			if shown := shows(s, `{"tool":"switchMode","mode":"code","reason":"it must be"}`); shown != (c.call.id == "s-code") {
				t.Errorf("the switch is shown: %v", shown)
			}
			checkHistories(t, s)
		})
	}
}

// The mode that was agreed to, and that the call is done, are one: whenever the
// program is killed, the task goes on in that mode and a person is asked once.
func TestASwitchOutlivesAKill(t *testing.T) {
	b := moded(t, "ask", turn{calls: []call{to("code")}}, turn{calls: []call{use("w1", "edit", "a")}}, finish("done"))
	b.agent.Task.Policy, b.agent.User.Asker = approval.Policy{Mode: approval.ModeEdits}, b.answering()
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	for n := 2; n < len(b.disk.commits); n++ {
		left := b.after(n, b.disk.ranAt[n-1])
		decided := left.disk.state.Call("s-code") != nil && left.disk.state.Call("s-code").Finished != nil
		if in := left.disk.state.Settings.Mode == "code"; in != decided {
			t.Fatalf("after commit %d the mode is %q, and the call is done: %v", n, left.disk.state.Settings.Mode, decided)
		}
		left.inMode("")
		want(t, left.start(agent.Input{Yes: true}), "completed", "")
		s := left.disk.state
		if d := cmp.Diff([]string{"s-code ok", "w1 ok"}, outcomes(s)); d != "" || s.Settings.Mode != "code" || len(left.asked) > 1 || len(left.ran) != 1 {
			t.Fatalf("after commit %d: %s mode %q, asked %d times, ran %q", n, d, s.Settings.Mode, len(left.asked), left.ran)
		}
		checkHistories(t, s)
	}
	// With nobody there it waits, and the answer comes with the next run.
	b = moded(t, "ask", turn{calls: []call{to("code")}}, finish("done"))
	b.agent.Task.Policy = approval.Policy{}
	want(t, b.start(agent.Input{Text: "go"}), "waiting", "")
	b.inMode("")
	want(t, b.start(agent.Input{Text: "yes"}), "completed", "")
	if b.disk.state.Settings.Mode != "code" {
		t.Errorf("got %q, want b.disk.state.Settings.Mode = \"code\"", b.disk.state.Settings.Mode)
	}
}
