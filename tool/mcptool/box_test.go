package mcptool

import (
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/tool"
)

func names(tools []tool.Tool) (list []string) {
	for _, tl := range tools {
		if s := tl.Spec(); !s.OptIn {
			list = append(list, s.Name)
		}
	}
	return list
}

// Tools stand in the order of servers and names, whichever answers first, and one
// server that is dead costs its own tools alone.
func TestOpen(t *testing.T) {
	t.Parallel()
	b := box(t, func(s *mcp.Server) { s.Off = []string{"flood"} }, "b", "a:junk", "dead:dies")
	tools, notes := b.Open(t.Context())
	got := names(tools)
	if got[0] != AccessName || !slices.IsSorted(got[1:]) || !slices.Contains(got, "mcp--a--echo") || !slices.Contains(got, "mcp--b--echo") || slices.Contains(got, "mcp--a--flood") {
		t.Errorf("%v", got)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "MCP server dead") || !strings.Contains(notes[0], "cannot find the database") ||
		!strings.HasSuffix(notes[0], "; its tools are not there in this run") {
		t.Errorf(`got %q, want len(notes) = 1 and strings.Contains(notes[0], "MCP server dead") and strings.Contains(notes[0], "cannot find the database")`,
			notes)
	}
	for _, name := range []string{"mcp--a--echo", "mcp__a__echo"} {
		if r := run(t, planned(t, b.Find(name), tool.Env{}, `{"text":"x"}`)); r.Text != "echo: x" {
			t.Errorf("%s: got %+v, want r.Text = \"echo: x\"", name, r)
		}
	}
	for name, offer := range map[string]bool{"mcp--dead--anything": true, "mcp--a--grown": true, "mcp--a--flood": false, "mcp--other--x": false, "read_file": false, "mcp--a--": false} {
		if found := b.Find(name); (found != nil) != offer {
			t.Errorf("%s: got %v, want (found != nil) = offer", name, found)
		} else if offer && !found.Spec().OptIn {
			t.Errorf("%s is offered", name)
		}
	}
	r := run(t, planned(t, b.Find("mcp--dead--anything"), tool.Env{}, `{}`))
	if !r.IsError || !strings.Contains(r.Text, "cannot find the database") {
		t.Errorf("got %+v, want r.IsError and strings.Contains(r.Text, \"cannot find the database\")", r)
	}
	use := tools[1]
	if r := run(t, planned(t, use, tool.Env{}, `{"server_name":"b","tool_name":"echo","arguments":{"text":"y"}}`)); r.Text != "echo: y" {
		t.Errorf("got %+v, want r.Text = \"echo: y\"", r)
	}
	if why := refused(t, use, `{"server_name":"b","tool_name":"flood"}`); !strings.Contains(why, "switched off") {
		t.Error(why)
	}
}

func TestTooManyTools(t *testing.T) {
	t.Parallel()
	tools, notes := box(t, nil, "s:many").Open(t.Context())
	if len(names(tools)) < 80 || len(notes) != 1 || !strings.Contains(notes[0], "more than 60") {
		t.Errorf("%d tools, %q", len(names(tools)), notes)
	}
}

func TestServersWithTheSameName(t *testing.T) {
	t.Parallel()
	tools, notes := box(t, nil, "a b", "a_b").Open(t.Context())
	got := names(tools)
	if len(slices.Compact(slices.Clone(got))) != len(got) || len(notes) == 0 || !strings.Contains(notes[0], "same name") {
		t.Errorf("got %v, %q, want len(slices.Compact(slices.Clone(got))) = len(got) and len(notes) != 0 and strings.Contains(notes[0], \"same name\")",
			got, notes)
	}
}

func TestNoServers(t *testing.T) {
	t.Parallel()
	if tools, notes := box(t, nil).Open(t.Context()); tools != nil || notes != nil {
		t.Errorf("got %v, %v, want tools = nil and notes = nil", tools, notes)
	}
}

// What a server's settings agree to holds for its tool by each of its names, and not
// for another one.
func TestAlwaysAllowed(t *testing.T) {
	t.Parallel()
	b := box(t, func(s *mcp.Server) { s.Always = []string{"echo", "not yet"} }, "s")
	tools, _ := b.Open(t.Context())
	agreed := func(tl tool.Tool, input string) bool { return planned(t, tl, tool.Env{}, input).Ask().Agreed != "" }
	for name, want := range map[string]bool{"mcp--s--echo": true, "mcp--s--not_yet": true, "mcp--s--mark": false, "mcp--s--unknown": false} {
		if got := agreed(b.Find(name), `{}`); got != want {
			t.Errorf("%s: got %v, want got = %v", name, got, want)
		}
	}
	if !agreed(tools[1], `{"server_name":"s","tool_name":"echo"}`) || agreed(tools[1], `{"server_name":"s","tool_name":"mark"}`) {
		t.Error("by use_mcp_tool")
	}
}
