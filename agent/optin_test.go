package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/tool"
)

// A tool that is only there for what histories call is not offered, and runs when a
// model that saw it in its history calls it.
func TestAToolThatIsNotOfferedRunsWhenItIsCalled(t *testing.T) {
	b := newBench(t, turn{calls: []call{use("c1", "older", "x")}}, finish("done"))
	older := b.fake("older", tool.Write, tool.Inspect)
	older.spec.OptIn = true
	b.tools = append(b.tools, older)
	b.prepare()
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	for _, r := range b.model.requests {
		if len(r.Tools) != 5 || slices.ContainsFunc(r.Tools, func(s llm.ToolSpec) bool { return s.Name == "older" }) {
			t.Errorf("%d tools were offered: %+v", len(r.Tools), r.Tools)
		}
	}
	if !slices.Equal(b.ran, []string{"older x"}) {
		t.Errorf("ran %q", b.ran)
	}
}

// Who is told of a tool is decided by the user first, then by the model's family.
// A tool that the user switched off does not run; one that a model does without does.
func TestWhichToolsAModelIsToldOf(t *testing.T) {
	offered := func(b *bench) (names []string) {
		for _, s := range b.model.requests[0].Tools {
			names = append(names, s.Name)
		}
		return names
	}
	for _, c := range []struct {
		name, model string
		offer       tool.Offer
		offered     string // of the writing ones
		ran         string
	}{
		{"usual", "a-model", tool.Offer{}, "apply_diff apply_patch", "apply_diff x|edit_file y"},
		{"the user's", "a-model", tool.Offer{Include: []string{"edit_file"}, Exclude: []string{"apply_diff"}}, "apply_patch edit_file", "edit_file y"},
		{"GPT's", "gpt-5.1", tool.Offer{}, "apply_patch", "apply_diff x|edit_file y"},
		{"Gemini's", "google/gemini-2.5-pro", tool.Offer{}, "edit_file", "apply_diff x|edit_file y"},
		{"Gemini's, and the user's", "gemini-2.5-pro", tool.Offer{Include: []string{"apply_diff"}, Exclude: []string{"edit_file"}}, "apply_diff", "apply_diff x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, turn{calls: []call{use("c1", "apply_diff", "x"), use("c2", "edit_file", "y")}}, finish("done"))
			b.tools = b.tools[3:]
			for _, name := range []string{"apply_diff", "apply_patch", "edit_file"} {
				f := b.fake(name, tool.Write, tool.Inspect)
				f.spec.OptIn = name == "edit_file"
				b.tools = append(b.tools, f)
			}
			b.prepare()
			b.agent.Tools.Offer, b.agent.Task.Settings.Model, b.agent.Model.Provider = c.offer, c.model, gateway{b.model}
			want(t, b.start(agent.Input{Text: "go"}), "completed", "")
			if got := strings.Join(offered(b)[2:], " "); got != c.offered {
				t.Errorf("offered: %s, want %s", got, c.offered)
			}
			if got := strings.Join(b.ran, "|"); got != c.ran {
				t.Errorf("ran %q, want %q", got, c.ran)
			}
			refused := strings.Contains(string(b.model.requests[1].Messages[len(b.model.requests[1].Messages)-1].Content), "is switched off in the user's settings")
			if refused != (c.offer.Exclude != nil) {
				t.Errorf("the model was told so: %v", refused)
			}
		})
	}
}

// gateway is a server that sells models of many makers.
type gateway struct{ llm.Provider }

func (gateway) Name() string { return "openai-compatible" }
