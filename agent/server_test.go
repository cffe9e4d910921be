package agent_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/tool"
)

// servers are MCP servers that offer what a test wants.
type servers struct {
	b      *bench
	opened int
	late   tool.Tool // found by its name, not offered
}

func (s *servers) Open(context.Context) ([]tool.Tool, []string) {
	s.opened++
	return []tool.Tool{s.tool("mcp--s--ask"), s.tool("look")}, []string{"the MCP server dead: gone"}
}

func (s *servers) Find(name string) tool.Tool {
	if s.late != nil && name == s.late.Spec().Name {
		return s.late
	}
	return nil
}

func (s *servers) tool(name string) *fake {
	f := s.b.fake(name, tool.MCP, tool.Never)
	f.ask = func(ask *tool.Ask) { ask.Kind, ask.Tool = "use_mcp_server", "use_mcp_tool" }
	f.run = func(_ context.Context, _ tool.Output, what string) (tool.Result, error) {
		s.b.ran = append(s.b.ran, name+" "+what)
		return tool.Result{Text: "the answer", Images: []json.RawMessage{json.RawMessage(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}`)}}, nil
	}
	return f
}

func serving(t *testing.T, turns ...turn) (*bench, *servers) {
	t.Helper()
	b := newBench(t, turns...)
	s := &servers{b: b}
	b.agent.Tools.Servers = s
	return b, s
}

// offeredNames are the tools of each request.
func offeredNames(b *bench) (list [][]string) {
	for _, r := range b.model.requests {
		var names []string
		for _, s := range r.Tools {
			names = append(names, s.Name)
		}
		list = append(list, names)
	}
	return list
}

// Servers are connected to once, their tools stand behind ours in every request, and
// none takes the place of one of ours. What a person sees are Roo's rows.
func TestServersOfARun(t *testing.T) {
	b, s := serving(t, turn{calls: []call{use("c1", "mcp--s--ask", "x"), use("c2", "look", "y")}}, finish("done"))
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	lists := offeredNames(b)
	if s.opened != 1 || len(lists) != 2 || !slices.Equal(lists[0], lists[1]) {
		t.Errorf("opened %d times: %v", s.opened, lists)
	}
	if d := cmp.Diff([]string{"look", "edit", "act", "ask_followup_question", "attempt_completion", "mcp--s--ask"}, lists[0]); d != "" {
		t.Error(d)
	}
	if !slices.Equal(b.ran, []string{"mcp--s--ask x", "look y"}) || !slices.Contains(b.notices, "the MCP server dead: gone") {
		t.Errorf("ran %q, told %q", b.ran, b.notices)
	}
	var rows []string
	for _, m := range b.disk.state.UI() {
		if text := m.Raw(); strings.Contains(string(text), "mcp_server") {
			rows = append(rows, string(esjson.Remove(text, "ts")))
		}
	}
	if d := cmp.Diff([]string{
		`{"type":"ask","ask":"use_mcp_server","text":"x","partial":false,"isProtected":false}`,
		`{"type":"say","say":"mcp_server_request_started"}`,
		`{"type":"say","say":"mcp_server_response","text":"the answer","images":["data:image/png;base64,aGk="]}`,
	}, rows); d != "" {
		t.Error(d)
	}
}

// A mode without MCP tools connects to nothing, and is offered nothing.
func TestAModeWithoutServers(t *testing.T) {
	b, s := serving(t, turn{calls: []call{use("c1", "mcp--s--ask", "x")}}, finish("done"))
	modes := mode.Merge([]mode.Mode{{Slug: "quiet", Name: "Quiet", RoleDefinition: "x", Groups: []mode.Group{{Name: "read"}}}}, nil)
	b.agent.User.Modes, b.agent.Task.Settings.Mode = &modes, "quiet"
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if s.opened != 0 || len(b.ran) != 0 {
		t.Errorf("opened %d times, ran %q", s.opened, b.ran)
	}
}

// A history calls a tool of a server that did not answer when the run began.
func TestAToolOfAServerThatIsLate(t *testing.T) {
	b, s := serving(t, turn{calls: []call{use("c1", "mcp--late--tool", "x"), use("c2", "mcp--none--tool", "y")}}, finish("done"))
	s.late = s.tool("mcp--late--tool")
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if !slices.Equal(b.ran, []string{"mcp--late--tool x"}) || slices.Contains(offeredNames(b)[0], "mcp--late--tool") {
		t.Errorf("ran %q, offered %v", b.ran, offeredNames(b)[0])
	}
}

// "Always" allows the tool that was asked for, also when it was called by the name
// that all of them share, and no other one.
func TestAlwaysIsForOneToolOfAServer(t *testing.T) {
	b, s := serving(t, turn{calls: []call{use("c1", "use_mcp_tool", "one"), use("c2", "use_mcp_tool", "one"), use("c3", "use_mcp_tool", "two")}}, finish("done"))
	f := s.tool("use_mcp_tool")
	f.ask = func(ask *tool.Ask) {
		ask.Kind, ask.Tool, ask.Title, ask.Paths = "use_mcp_server", "use_mcp_tool", "mcp--s--"+ask.Text+" {}", []string{"s/" + ask.Text}
	}
	b.tools = append(b.tools, f)
	b.prepare().Tools.Servers = s
	b.agent.Task.Policy = approval.Policy{}
	yes := true
	var asked []string
	b.agent.User.Asker = asks(func(_ context.Context, q api.QuestionOpened) (agent.Answer, error) {
		asked = append(asked, q.Text)
		return agent.Answer{Approve: &yes, Always: len(asked) == 1, By: "test"}, nil
	})
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if d := cmp.Diff([]string{"mcp--s--one {}", "mcp--s--two {}"}, asked); d != "" {
		t.Error(d)
	}
}
