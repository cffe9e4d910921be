package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/tool"
)

var search = mcp.Offer{Server: "my files", Tool: "search", Name: "mcp--my_files--search", Description: "Searches.", Schema: json.RawMessage(`{"properties":{},"type":"object"}`)}

func TestWhatIsDeclared(t *testing.T) {
	c := &caller{}
	s := New(c, search).Spec()
	if s.Class != tool.MCP || s.Replay != tool.Never || s.OptIn || s.Description != "Searches." {
		t.Errorf("got %+v, want s.Class = tool.MCP and s.Replay = tool.Never and not s.OptIn and s.Description = \"Searches.\"",
			s)
	}
	if d := cmp.Diff([]string{"mcp__my_files__search"}, s.Aliases); d != "" {
		t.Error(d)
	}
	reading := search
	reading.ReadOnly = true
	if s := New(c, reading).Spec(); s.Replay != tool.Again {
		t.Errorf("a tool that only reads may be asked again: %+v", s)
	}
	none := Access(c, []mcp.Menu{{Server: mcp.Server{Name: "s"}}}).Spec()
	some := Access(c, []mcp.Menu{{Server: mcp.Server{Name: "s"}, Resources: []mcp.Resource{{URI: "a://1", Name: "one", Description: "The\nfirst."}}}}).Spec()
	if !none.OptIn || some.OptIn || !strings.Contains(some.Description, "\n- server_name s, uri a://1: one The first.") {
		t.Errorf("got %+v\n%+v, want none.OptIn and not some.OptIn and strings.Contains(some.Description, \"\\n- server_name s, uri a://1: one The first.\")",
			none, some)
	}
	var many []mcp.Resource
	for range 500 {
		many = append(many, mcp.Resource{URI: "a://" + strings.Repeat("x", 50)})
	}
	long := Access(c, []mcp.Menu{{Resources: many}}).Spec()
	if len(long.Description) > maxListed+20 || !strings.HasSuffix(long.Description, "- and more") {
		t.Errorf("%d bytes", len(long.Description))
	}
	if use := Use(c, nil).Spec(); !use.OptIn || use.Replay != tool.Never || !esjson.Valid(use.Schema) || !esjson.Valid(some.Schema) {
		t.Errorf("got %+v, want use.OptIn and use.Replay = tool.Never and esjson.Valid(use.Schema) and esjson.Valid(some.Schema)",
			use)
	}
}

// What a person decides by, and what Roo's window shows.
func TestWhatIsAsked(t *testing.T) {
	c := &caller{}
	got := planned(t, New(c, search), tool.Env{}, `{"q": "x",  "n":1}`).Ask()
	want := tool.Ask{
		Tool: "use_mcp_tool", Kind: "use_mcp_server", Paths: []string{"my files/search"}, Title: `mcp--my_files--search {"q":"x","n":1}`,
		Text: `{"type":"use_mcp_tool","serverName":"my files","toolName":"search","arguments":"{\"q\":\"x\",\"n\":1}"}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	always := search
	always.Always = true
	got = planned(t, New(c, always), tool.Env{}, `{"q":"\u001b[2J`+strings.Repeat("é", 400)+`"}`).Ask()
	if got.Agreed != "alwaysAllow of the server my files" || len(got.Title) > 210 || !utf8.ValidString(got.Title) || !strings.Contains(got.Diff, strings.Repeat("é", 400)) {
		t.Errorf("%+v", got)
	}
	got = planned(t, Access(c, nil), tool.Env{}, `{"server_name":"s","uri":"a://b"}`).Ask()
	if got.Text != `{"type":"access_mcp_resource","serverName":"s","uri":"a://b"}` || got.Title != "access_mcp_resource s a://b" || got.Agreed != "" {
		t.Errorf("got %+v, want got.Text = `{\"type\":\"access_mcp_resource\",\"serverName\":\"s\",\"uri\":\"a://b\"}` and got.Title = \"access_mcp_resource s a://b\" and got.Agreed = \"\"",
			got)
	}
}

func TestWhatTheServerIsAsked(t *testing.T) {
	c := &caller{answer: mcp.Result{Text: "fine"}}
	find := func(server, name string) (mcp.Offer, error) {
		if name == "off" {
			return mcp.Offer{}, errors.New("it is switched off")
		}
		return mcp.Offer{Server: server, Tool: name, Name: "n"}, nil
	}
	run(t, planned(t, New(c, search), tool.Env{}, ``))
	run(t, planned(t, New(c, search), tool.Env{}, `null`))
	run(t, planned(t, Use(c, find), tool.Env{}, `{"server_name":"s","tool_name":"t","arguments":{"a":1}}`))
	run(t, planned(t, Use(c, find), tool.Env{}, `{"server_name":"s","tool_name":"t","arguments":"{\"a\": 2}"}`))
	run(t, planned(t, Use(c, find), tool.Env{}, `{"server_name":"s","tool_name":"t"}`))
	run(t, planned(t, Access(c, nil), tool.Env{}, `{"server_name":"s","uri":"a://b"}`))
	if d := cmp.Diff([]string{"my files search {}", "my files search {}", `s t {"a":1}`, `s t {"a":2}`, "s t {}", "s a://b"}, c.asked); d != "" {
		t.Error(d)
	}
	for input, of := range map[string]tool.Tool{
		`[1]`: New(c, search), `"x"`: New(c, search), `{`: New(c, search), `{"server_name":"s"}`: Use(c, find), `{"server_name":"s","tool_name":"t","arguments":[]}`: Use(c, find),
		`{"server_name":"s","tool_name":"off"}`: Use(c, find), `{}`: Access(c, nil), `{"server_name":"s","uri":""}`: Access(c, nil),
	} {
		refused(t, of, input)
	}
	if n := len(c.asked); n != 6 {
		t.Errorf("a call that is wrong reached the server: %q", c.asked[6:])
	}
}

func TestResults(t *testing.T) {
	c := &caller{answer: mcp.Result{Text: "no", Failed: true, Images: []mcp.Image{{Media: "image/png", Data: []byte("abc")}}}}
	r := run(t, planned(t, New(c, search), tool.Env{}, `{}`))
	if r.Text != "Error:\nno" || !r.IsError || string(r.Images[0]) != `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"YWJj"}}` {
		t.Errorf("got %+v, want r.Text = \"Error:\\nno\" and r.IsError and string(r.Images[0]) = `{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"YWJj\"}}`",
			r)
	}
	// That a server is dead is the call's failure and not the run's.
	c.err = &mcp.CallError{Server: "s", Reason: "gone", Unknown: true, Timeout: true}
	r = run(t, planned(t, New(c, search), tool.Env{}, `{}`))
	if !r.IsError || !r.TimedOut || !strings.Contains(r.Text, "gone; it is not known whether") {
		t.Errorf("got %+v, want r.IsError and r.TimedOut and strings.Contains(r.Text, \"gone; it is not known whether\")",
			r)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	cancel(why)
	c.err = why
	if _, err := planned(t, New(c, search), tool.Env{}, `{}`).Run(ctx, nil); !errors.Is(err, why) {
		t.Errorf("got %v, want errors.Is(err, why)", err)
	}
}

func TestLongResults(t *testing.T) {
	env := tool.Env{SpoolDir: t.TempDir(), ArtifactID: func() string { return "cmd-17.txt" }}
	c := &caller{answer: mcp.Result{Text: strings.Repeat("x", tool.Inline)}}
	if r := run(t, planned(t, New(c, search), env, `{}`)); r.Full != nil || r.Text != c.answer.Text {
		t.Errorf("%d bytes, %+v", len(r.Text), r.Full)
	}
	for _, line := range []string{"line é of words\n", "é"} {
		c.answer.Text = "first\n" + strings.Repeat(line, tool.Inline/len(line)) + "\nlast"
		r := run(t, planned(t, New(c, search), env, `{}`))
		if r.Full == nil || r.Full.Size != int64(len(c.answer.Text)) || len(r.Text) > 2*(16<<10)+300 || !utf8.ValidString(r.Text) {
			t.Fatalf("%d bytes, %+v", len(r.Text), r.Full)
		}
		if data, err := os.ReadFile(r.Full.Path); err != nil || string(data) != c.answer.Text {
			t.Errorf("%d bytes are kept, %v", len(data), err)
		}
		for _, want := range []string{"Artifact ID: cmd-17.txt", "first\n", "bytes omitted", "\nlast"} {
			if !strings.Contains(r.Text, want) {
				t.Errorf("%q is missing in %.200s", want, r.Text)
			}
		}
	}
	env.SpoolDir = "/no/such/folder"
	if _, err := planned(t, New(c, search), env, `{}`).Run(t.Context(), nil); err == nil {
		t.Error("what could not be kept looks whole")
	}
}
