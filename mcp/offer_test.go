package mcp

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/mcptest"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"github": "github", "my server": "my_server", "a.b/c:d": "abcd", "a--b---c": "a-b-c", "1st": "_1st", "": "_", "-x": "_-x", "日本": "_", "a__b": "a__b", "_x": "_x",
	} {
		if got := Sanitise(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if got := ToolName("my server", "do it"); got != "mcp--my_server--do_it" {
		t.Error(got)
	}
	long, other := ToolName("s", strings.Repeat("a", 80)), ToolName("s", strings.Repeat("a", 81))
	if len(long) != 64 || long == other {
		t.Errorf("got %s, %s, want len(long) = 64 and long != other", long, other)
	}
	for in, want := range map[string]string{"mcp--a--b": "mcp--a--b", "mcp__a__b": "mcp--a--b", "mcp__a__b__c": "mcp--a--b__c"} {
		if got, ok := Canonical(in); !ok || got != want {
			t.Errorf("%s: got %s, %v, want ok and got = %v", in, got, ok, want)
		}
	}
	for _, no := range []string{"read_file", "mcp__a", "mcp", "use_mcp_tool"} {
		if _, ok := Canonical(no); ok {
			t.Errorf("%s is taken for a server's tool", no)
		}
	}
	// A name that every provider takes, for any name of a server's tool.
	fits := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	rapid.Check(t, func(r *rapid.T) {
		name := ToolName(rapid.String().Draw(r, "server"), rapid.String().Draw(r, "tool"))
		if !fits.MatchString(name) {
			r.Fatalf("got %q, want fits.MatchString(name)", name)
		}
	})
}

func TestSchemasThatProvidersTake(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{}`:   `{"properties":{},"type":"object"}`,
		`null`: `{"properties":{},"type":"object"}`,
		`{"type":"object","$schema":"x","properties":{"b":{"type":"string"},"a":{"anyOf":[{"type":"null"}]}},"required":["b"],"additionalProperties":false}`: `{"additionalProperties":false,"properties":{"a":{"anyOf":[{"type":"null"}]},"b":{"type":"string"}},"required":["b"],"type":"object"}`,
		`{"oneOf":[{"required":["a"]}],"properties":null,"required":"a"}`:                                                                                    `{"properties":{},"type":"object"}`,
		// OpenAI: "array schema missing items".
		`{"properties":{"a":{"type":"array"},"b":{"items":{"type":"array"},"type":["null","array"]},"c":{"type":["array",7]}}}`: `{"properties":{"a":{"items":{},"type":"array"},"b":{"items":{"items":{},"type":"array"},"type":["null","array"]},"c":{"items":{},"type":["array",7]}},"type":"object"}`,
		// Anthropic: "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'".
		`{"properties":{"a.b-c":{},"filter[x]":{},"$top":{},"` + strings.Repeat("x", 65) + `":{},"":{}},"required":["filter[x]","a.b-c",7]}`: `{"properties":{"a.b-c":{}},"required":["a.b-c"],"type":"object"}`,
		// Anthropic: "JSON schema is invalid. It must match JSON Schema draft 2020-12".
		`{"title":null,"properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true,"required":true,"description":null},"t":{"items":[{"type":"string"}]},"f":{"type":"file"},"e":{"enum":"x"},"u":{"anyOf":[{"type":"any"},7]},"o":{"properties":{"required":{"type":"boolean"},"q":null}},"d":{"default":["x"],"additionalProperties":"no"}},"$defs":{"x":{"pattern":null}}}`: `{"$defs":{"x":{}},"properties":{"d":{"default":["x"]},"e":{},"f":{},"n":{"minimum":0,"type":"number"},"o":{"properties":{"required":{"type":"boolean"}}},"t":{},"u":{"anyOf":[{}]}},"type":"object"}`,
	} {
		if got, err := repairedSchema([]byte(in)); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want no error and string(got) = %v", in, got, err, want)
		}
	}
	for _, bad := range []string{`{"type":"string"}`, `{"type":["object","null"]}`, `[]`, `true`, `{"type":"object","x":"` + strings.Repeat("x", maxSchema) + `"}`} {
		if got, err := repairedSchema([]byte(bad)); err == nil {
			t.Errorf("%.40s is offered as %.60s", bad, got)
		}
	}
}

// A list of tools is the same bytes for any order in which a server sends it, and nothing
// in it controls a terminal or is without bounds.
func TestOffersOfAHostileServer(t *testing.T) {
	t.Parallel()
	object := map[string]any{"type": "object"}
	list, notes := offersOf(Server{Name: "s", Off: []string{"off"}}, []*sdk.Tool{
		{Name: "z", InputSchema: object, Description: strings.Repeat("é", 5000)},
		{Name: "a", InputSchema: object, Description: "x\x1b[2J\u202ey\u0007\nz", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		{Name: "a b", InputSchema: object}, {Name: "a_b", InputSchema: object, Title: "a title"},
		{Name: "off", InputSchema: object}, nil, {Name: "", InputSchema: object}, {Name: "e\x1b", InputSchema: object},
		{Name: "s", InputSchema: map[string]any{"type": "string"}}, {Name: "none"},
	})
	var names []string
	for _, o := range list {
		names = append(names, o.Name)
		if len(o.Description) > maxDescription || strings.ContainsAny(o.Description, "\x1b\x07\u202e") || !utf8.ValidString(o.Description) || !json.Valid(o.Schema) {
			t.Errorf("got %+v, want len(o.Description) <= maxDescription and not strings.ContainsAny(o.Description, \"\\x1b\\x07\\u202e\") and utf8.ValidString(o.Description) and json.Valid(o.Schema)",
				o)
		}
	}
	if got := strings.Join(names, " "); got != "mcp--s--a mcp--s--a_b mcp--s--none mcp--s--z" {
		t.Error(got)
	}
	if list[0].Description != "xy\nz" || !list[0].ReadOnly || list[3].ReadOnly {
		t.Errorf("got %+v, want list[0].Description = \"xy\\nz\" and list[0].ReadOnly and not list[3].ReadOnly",
			list[0])
	}
	if len(notes) != 4 || !strings.Contains(strings.Join(notes, "\n"), "same name") {
		t.Errorf(`got %q, want len(notes) = 4 and strings.Contains(strings.Join(notes, "\n"), "same name")`, notes)
	}
}

func TestResultsWithinBounds(t *testing.T) {
	t.Parallel()
	png := []byte("\x89PNG\r\n\x1a\n")
	many := &sdk.CallToolResult{IsError: true}
	for range maxImages + 3 {
		many.Content = append(many.Content, &sdk.ImageContent{Data: png, MIMEType: "image/jpeg"})
	}
	many.Content = append(many.Content, &sdk.ImageContent{Data: append(png, make([]byte, maxImage)...)}, &sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("RIFF")},
		&sdk.ResourceLink{URI: "x://y", Name: "n"}, &sdk.TextContent{Text: "bad \xff byte"}, &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "b://b", Blob: []byte{0, 255}, MIMEType: "application/x"}}, &sdk.EmbeddedResource{})
	r := resultOf(many)
	if len(r.Images) != maxImages || r.Images[0].Media != "image/png" || !r.Failed {
		t.Errorf("%d images, %+v", len(r.Images), r.Failed)
	}
	if n := strings.Count(r.Text, "over the limits"); n != 4 {
		t.Errorf("%d are said to be over the limits", n)
	}
	holds(t, r.Text, "audio/wav", "x://y", "bad \ufffd byte", "b://b: application/x, 2 bytes")
	if got := resultOf(&sdk.CallToolResult{}); got.Text != "(No response)" {
		t.Errorf("got %+v, want got.Text = \"(No response)\"", got)
	}
	if got := resultOf(&sdk.CallToolResult{StructuredContent: []any{1}, Content: []sdk.Content{&sdk.TextContent{Text: "t"}}}); got.Text != "t" {
		t.Errorf("text comes before what is structured: %+v", got)
	}
	if got := contentsOf([]*sdk.ResourceContents{{URI: "a", Text: "one"}, {URI: "b", Blob: []byte("two"), MIMEType: "text/x"}, nil}); got.Text != "one\n\ntwo" {
		t.Errorf("got %+v, want got.Text = \"one\\n\\ntwo\"", got)
	}
	if got := contentsOf(nil); got.Text != "(Empty response)" {
		t.Errorf("got %+v, want got.Text = \"(Empty response)\"", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"mcpServers":{"a":{"command":"b","args":["c"],"timeout":3}}}`, `{"mcpServers":{"a":{"type":"sse","url":"http://x"}}}`, `{"mcpServers":{"":1}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		servers, err := Parse(data, Workspace, "/f")
		if err != nil {
			return
		}
		for _, s := range servers {
			if s.Problem == "" && (s.Kind == "" || s.Name == "" || s.Timeout < 1e9 || (s.Kind == Stdio) != (s.Command != "")) {
				t.Fatalf(`got %+v, want s.Problem != "" or (s.Kind != "" and s.Name != "" and s.Timeout >= 1e9 and (s.Kind == Stdio) = (s.Command != ""))`,
					s)
			}
			s.Line()
			if s.Hash() == "" {
				t.Fatalf("no hash: %+v", s)
			}
			_, _ = s.expanded("/ws", strings.ToLower)
		}
	})
}

func FuzzMended(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{}},"required":["a"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := repairedSchema(data)
		if err != nil {
			return
		}
		again, err := repairedSchema(got)
		if err != nil || string(again) != string(got) {
			t.Fatalf("%s, then %s, %v", got, again, err)
		}
	})
}

// The bound of a server's tools is stated when it leaves a tool out, and only then.
func TestManyTools(t *testing.T) {
	for n, left := range map[int]bool{maxTools: false, maxTools + 1: true} {
		server := sdk.NewServer(&sdk.Implementation{Name: "many"}, nil)
		for i := range n {
			server.AddTool(&sdk.Tool{Name: fmt.Sprintf("t%d", i), InputSchema: map[string]any{"type": "object"}}, nil)
		}
		at := httptest.NewServer(mcptest.Handler(server))
		menu := hub(t, Server{Name: "many", Kind: HTTP, URL: at.URL, State: Allowed, Timeout: 30 * time.Second}).Open(t.Context())[0]
		if len(menu.Tools) != maxTools || (len(menu.Notes) > 0) != left || menu.Err != nil {
			t.Errorf("%d tools: got %d, notes %q, %v, want %d, and a note: %v", n, len(menu.Tools), menu.Notes, menu.Err, maxTools, left)
		}
		mcptest.Hangup(server)
		at.Close()
	}
}
