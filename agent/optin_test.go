package agent_test

import (
	"slices"
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
