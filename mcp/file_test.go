package mcp

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/redact"
)

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := Parse([]byte("\ufeff"+`{"mcpServers":{
		"b web":{"type":"streamable-http","url":"https://x.example/mcp?key=1","headers":{"X":"y"},"timeout":1.5,"disabled":true,"other":{"deep":1}},
		"a":{"command":"npx","args":["-y","@x/y"],"env":{"K":"v"},"cwd":"sub","alwaysAllow":["t"],"disabledTools":["u"]},
		"c":{"type":"sse","url":"http://127.0.0.1:1"},"d":{"url":"${env:U}"}},"more":1}`), Workspace, "/f")
	if err != nil {
		t.Fatal(err)
	}
	want := []Server{
		{Name: "a", Kind: Stdio, Command: "npx", Args: []string{"-y", "@x/y"}, Env: map[string]string{"K": "v"}, Dir: "sub", Always: []string{"t"}, Off: []string{"u"}, Timeout: time.Minute},
		{Name: "b web", Kind: HTTP, URL: "https://x.example/mcp?key=1", Headers: map[string]string{"X": "y"}, Timeout: 1500 * time.Millisecond, Disabled: true},
		{Name: "c", Kind: SSE, URL: "http://127.0.0.1:1", Timeout: time.Minute}, {Name: "d", Kind: HTTP, URL: "${env:U}", Timeout: time.Minute},
	}
	for i := range want {
		want[i].Scope, want[i].File = Workspace, "/f"
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	if line := got[1].Line(); line != "https://x.example/mcp?..." {
		t.Errorf("an address is shown as %q", line)
	}
	for _, empty := range []string{"", "  ", "{}", `{"mcpServers":null}`} {
		if s, err := Parse([]byte(empty), Own, "/f"); err != nil || len(s) != 0 {
			t.Errorf("%q: got %v, %v, want no error and len(s) = 0", empty, s, err)
		}
	}
	for _, bad := range []string{"[]", "{", `{"mcpServers":[]}`} {
		if _, err := Parse([]byte(bad), Own, "/f"); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// One definition that cannot be used costs no other one.
func TestParseNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                                     "neither a command nor a url",
		`1`:                                      "cannot be read",
		`{"command":["a"]}`:                      "cannot be read",
		`{"type":"pipe","command":"a"}`:          "stdio, streamable-http and sse",
		`{"command":"a","timeout":0}`:            "from 1 to 3600",
		`{"command":"a","timeout":3601}`:         "from 1 to 3600",
		`{"type":"stdio"}`:                       "no command",
		`{"command":"a","url":"http://x"}`:       "a command and a url",
		`{"type":"sse","url":"ftp://x"}`:         "no http",
		`{"type":"http","url":"nothing"}`:        "no http",
		`{"command":"a","args":["b\u0000"]}`:     "zero byte",
		`{"command":"a","env":{"A=B":"c"}}`:      "no environment variable can have",
		`{"command":"a","env":{"A":"c\u0000d"}}`: "no environment variable can have",
	} {
		got, err := Parse([]byte(`{"mcpServers":{"bad":`+text+`,"good":{"command":"g"}}}`), Own, "/f")
		if err != nil || len(got) != 2 || got[0].State != Invalid || !strings.Contains(got[0].Problem, want) || got[1].Problem != "" {
			t.Errorf("%s: got %+v, %v, want no error and len(got) = 2 and got[0].State = Invalid and strings.Contains(got[0].Problem, want) and got[1].Problem = \"\"",
				text, got, err)
		}
	}
	got, _ := Parse([]byte(`{"mcpServers":{"a\u001b[2J":{"command":"g"}}}`), Own, "/f")
	if got[0].State != Invalid {
		t.Errorf("got %+v, want got[0].State = Invalid", got)
	}
}

// A definition of a repository or an editor is not used until the user has agreed to it,
// and needs a new agreement when it changes.
func TestChoices(t *testing.T) {
	t.Parallel()
	dir, ws := t.TempDir(), t.TempDir()
	file := filepath.Join(ws, ".roo", "mcp.json")
	fixture.WriteFile(t, file, `{"mcpServers":{"both":{"command":"theirs"},"one":{"command":"a","alwaysAllow":["x"],"timeout":5}}}`)
	own := fixture.WriteFile(t, filepath.Join(dir, "mcp.json"), `{"mcpServers":{"both":{"command":"mine"},"mine":{"command":"b"},"off":{"command":"c","disabled":true}}}`)
	editor := fixture.WriteFile(t, filepath.Join(dir, "editor", "mcp_settings.json"), `{"mcpServers":{"mine":{"command":"other"},"ed":{"command":"d"}}}`)
	p := Files{Own: own, Editors: []string{filepath.Join(dir, "none.json"), editor}, Choices: Choices{filepath.Join(dir, "said")}}
	states := func() map[string]string {
		servers, problems := p.Load(ws)
		if problems != nil {
			t.Error(problems)
		}
		out := map[string]string{}
		for _, s := range servers {
			out[s.Name] = s.Command + " " + string(s.State)
		}
		return out
	}
	find := func(name string) Server {
		servers, _ := p.Load(ws)
		for _, s := range servers {
			if s.Name == name {
				return s
			}
		}
		t.Fatal(name)
		return Server{}
	}
	say := func(name string, yes bool) {
		if err := p.Choices.Set(find(name), yes); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"both": "theirs not allowed", "one": "a not allowed", "mine": "b allowed", "off": "c disabled", "ed": "d not allowed"}
	if d := cmp.Diff(want, states()); d != "" {
		t.Error(d)
	}
	say("one", true)
	say("ed", true)
	say("mine", false)
	want["one"], want["ed"], want["mine"] = "a allowed", "d allowed", "b denied"
	if d := cmp.Diff(want, states()); d != "" {
		t.Error(d)
	}
	for change, state := range map[string]string{
		`{"command":"a","alwaysAllow":["x"],"timeout":9,"disabledTools":["t"]}`: "a allowed", // a bound, and less than before
		`{"command":"a","alwaysAllow":["x"],"disabled":true}`:                   "a disabled",
		`{"command":"a","alwaysAllow":["x","y"]}`:                               "a not allowed",
		`{"command":"a","args":["-x"],"alwaysAllow":["x"]}`:                     "a not allowed",
		`{"command":"a","env":{"NODE_OPTIONS":"evil"},"alwaysAllow":["x"]}`:     "a not allowed",
		`{"command":"a","cwd":"elsewhere","alwaysAllow":["x"]}`:                 "a not allowed",
		`{"command":"b","alwaysAllow":["x"]}`:                                   "b not allowed",
	} {
		fixture.WriteFile(t, file, `{"mcpServers":{"one":`+change+`}}`)
		if got := states()["one"]; got != state {
			t.Errorf("%s: %s, want %s", change, got, state)
		}
	}
	say("one", false)
	fixture.WriteFile(t, file, `{"mcpServers":{"one":{"command":"again"}}}`)
	if got := states()["one"]; got != "again denied" {
		t.Errorf("a no holds for whatever it becomes: %s", got)
	}
	other := t.TempDir()
	fixture.WriteFile(t, filepath.Join(other, ".roo", "mcp.json"), `{"mcpServers":{"ed":{"command":"d"}}}`)
	servers, _ := p.Load(other)
	for _, s := range servers {
		if s.Name == "ed" && s.State != NotAllowed {
			t.Errorf("a yes is for one file: %+v", s)
		}
	}
	for _, f := range []string{p.Choices.path(find("one")), p.Choices.path(find("mine"))} {
		fixture.WriteFile(t, f, "{damaged")
	}
	if got := states(); got["one"] != "again not allowed" || got["mine"] != "b not allowed" {
		t.Errorf("what cannot be read is no agreement: %v", got)
	}
}

// A workspace's file belongs to the repository: a link in it leads nowhere else, and a file
// that is not regular or too long is reported.
func TestLoadFromAHostileWorkspace(t *testing.T) {
	t.Parallel()
	outside := fixture.WriteFile(t, filepath.Join(t.TempDir(), "mcp.json"), `{"mcpServers":{"x":{"command":"x"}}}`)
	for name, make := range map[string]func(path string) error{
		"link":   func(path string) error { return os.Symlink(outside, path) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"long":   func(path string) error { return os.WriteFile(path, []byte(strings.Repeat(" ", maxFile+1)), 0o600) },
		"broken": func(path string) error { return os.WriteFile(path, []byte(`{"mcpServers":`), 0o600) },
	} {
		ws := t.TempDir()
		path := filepath.Join(ws, ".roo", "mcp.json")
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := make(path); err != nil {
			t.Skip(err)
		}
		servers, problems := Files{}.Load(ws)
		if len(servers) != 0 || len(problems) != 1 || !strings.HasPrefix(problems[0], path) {
			t.Errorf("%s: got %+v, %v, want len(servers) = 0 and len(problems) = 1 and strings.HasPrefix(problems[0], path)",
				name, servers, problems)
		}
	}
	if servers, problems := (Files{}).Load(filepath.Join(t.TempDir(), "gone")); servers != nil || problems != nil {
		t.Errorf("got %v, %v, want servers = nil and problems = nil", servers, problems)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	env := func(name string) string {
		return map[string]string{"TOKEN": "tok-123456", "PATH": "/bin", "GITHUB_TOKEN": "ghp", "HOME": "/h"}[name]
	}
	s := Server{Kind: Stdio, Command: "${workspaceFolder}/run", Args: []string{"--t=${env:TOKEN}", "$HOME", "${other:x}"}, Env: map[string]string{"API_KEY": "${env:TOKEN}", "PATH": "/own", "MODE": "production"}, Dir: "sub"}
	got, err := s.expanded("/ws", env)
	if err != nil || got.Command != "/ws/run" || got.Dir != filepath.Join("/ws", "sub") {
		t.Errorf(`got %+v, %v, want no error and got.Command = "/ws/run" and got.Dir = filepath.Join("/ws", "sub")`,
			got, err)
	}
	if d := cmp.Diff([]string{"--t=tok-123456", "$HOME", "${other:x}"}, got.Args); d != "" {
		t.Error(d)
	}
	if s.Args[0] != "--t=${env:TOKEN}" {
		t.Error("the definition itself changed")
	}
	if d := cmp.Diff([]string{"HOME=/h", "API_KEY=tok-123456", "MODE=production", "PATH=/own"}, got.environment(env)); d != "" {
		t.Errorf("a server gets what it is given and what programs need: %s", d)
	}
	if _, err := (Server{Args: []string{"${env:A} ${env:B} ${env:A}"}}).expanded("/ws", env); err == nil || err.Error() != "the variable A, B is not set" {
		t.Errorf("got %v, want an error and err.Error() = \"the variable A, B is not set\"", err)
	}
	at := "https://u:pass-word@x.example/hooks/abcdefghij0123456789/mcp?key=q%20key-12345&n=1"
	if got := Address(at); got != "https://x.example/hooks/.../mcp?..." {
		t.Error(got)
	}
	for _, part := range []string{"pass-word", "abcdefghij0123456789", "q%20key-12345", "q key-12345"} {
		if !slices.Contains(keysOf(at), part) {
			t.Errorf("%q is no key of %v", part, keysOf(at))
		}
	}
	web := Server{Headers: map[string]string{"Authorization": "Bearer ${env:TOKEN}", "Accept": "text/plain-old", "X-Thing": "thing-value"}}
	want := []redact.Known{{Kind: "mcp-env", Value: "tok-123456"}, {Kind: "mcp-header", Value: "Bearer tok-123456"}, {Kind: "mcp-header", Value: "tok-123456"}, {Kind: "mcp-header", Value: "thing-value"}}
	if d := cmp.Diff(want, Secrets([]Server{s, web}, "/ws", env)); d != "" {
		t.Error(d)
	}
}
