package mcp

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

func TestDefineKeepsEveryOtherByte(t *testing.T) {
	t.Parallel()
	tool := Server{Name: "new", Kind: Stdio, Command: "npx", Args: []string{"-y", "x"}, Env: map[string]string{"B": "2", "A": "1"}}
	web := Server{Name: "web", Kind: HTTP, URL: "https://x.example/mcp", Headers: map[string]string{"K": "${env:V}"}}
	for _, c := range []struct {
		name, before string
		add          Server
		replace      bool
		want         string
	}{
		{"no file", "", tool, false,
			"{\n  \"mcpServers\": {\n    \"new\": {\"command\":\"npx\",\"args\":[\"-y\",\"x\"],\"env\":{\"A\":\"1\",\"B\":\"2\"}}\n  }\n}\n"},
		{"one line", `{"mcpServers":{"a":{"command":"x"}},"more": 1.50}`, web, false,
			`{"mcpServers":{"a":{"command":"x"},"web":{"type":"streamable-http","url":"https://x.example/mcp","headers":{"K":"${env:V}"}}},"more": 1.50}`},
		{"lines, a mark and CRLF", "\ufeff{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\"command\": \"x\"}\r\n\t}\r\n}", web, false,
			"\ufeff{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\"command\": \"x\"},\n\t\t\"web\": {\"type\":\"streamable-http\",\"url\":\"https://x.example/mcp\",\"headers\":{\"K\":\"${env:V}\"}}\r\n\t}\r\n}"},
		{"no servers yet", `{"x":"é"}`, web, false,
			`{"x":"é","mcpServers":{"web":{"type":"streamable-http","url":"https://x.example/mcp","headers":{"K":"${env:V}"}}}}`},
		{"in its place", `{ "mcpServers": { "web": {"command":"old"}, "b": {"command":"y"} } }`, web, true,
			`{ "mcpServers": { "web": {"type":"streamable-http","url":"https://x.example/mcp","headers":{"K":"${env:V}"}}, "b": {"command":"y"} } }`},
	} {
		path := filepath.Join(t.TempDir(), "sub", "mcp.json")
		if c.before != "" {
			fixture.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			fixture.NoError(t, os.WriteFile(path, []byte(c.before), 0o600))
		}
		c.add.Scope, c.add.File = Own, path
		fixture.NoError(t, Define(c.add, c.replace))
		got, err := os.ReadFile(path)
		fixture.NoError(t, err)
		without := strings.ReplaceAll(string(got), ": {\"type", ":{\"type")
		if want := strings.ReplaceAll(c.want, ": {\"type", ":{\"type"); without != want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
		if err := Define(c.add, false); !errors.Is(err, ErrDefined) {
			t.Errorf("%s: a second time: got %v, want ErrDefined", c.name, err)
		}
		fixture.NoError(t, Undefine(c.add))
		if err := Undefine(c.add); !errors.Is(err, ErrUndefined) {
			t.Errorf("%s: removed twice: got %v, want ErrUndefined", c.name, err)
		}
	}
}

func TestUndefineGivesTheBytesBack(t *testing.T) {
	t.Parallel()
	for _, before := range []string{
		"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}\n  },\n  \"y\": [1,  2]\n}\n", `{"mcpServers":{"a":{"command":"x"}}}`, "\ufeff{\"mcpServers\":{}}",
	} {
		s := Server{Name: "new", Kind: Stdio, Command: "z", Scope: Own, File: filepath.Join(t.TempDir(), "mcp.json")}
		fixture.NoError(t, os.WriteFile(s.File, []byte(before), 0o600))
		fixture.NoError(t, Define(s, false))
		fixture.NoError(t, Undefine(s))
		if got, _ := os.ReadFile(s.File); string(got) != before {
			t.Errorf("got %q, want %q", got, before)
		}
	}
}

func TestDefineRefuses(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	elsewhere := t.TempDir()
	fixture.NoError(t, os.Symlink(elsewhere, filepath.Join(ws, ".roo")))
	for name, c := range map[string]struct {
		server Server
		before string
		want   string
	}{
		"a link in a workspace":  {Server{Name: "a", Kind: Stdio, Command: "x", Scope: Workspace, File: WorkspaceFile(ws)}, "", "is a link"},
		"a broken file":          {Server{Name: "a", Kind: Stdio, Command: "x", Scope: Own}, "{\"mcpServers\": {", "cannot be read"},
		"no address":             {Server{Name: "a", Kind: HTTP, URL: "ftp://x", Scope: Own}, "", "no http or https address"},
		"a name with an escape":  {Server{Name: "a\x1b[2J", Kind: Stdio, Command: "x", Scope: Own}, "", "cannot be shown"},
		"a name that hides text": {Server{Name: "a\u202eb", Kind: Stdio, Command: "x", Scope: Own}, "", "cannot be shown"},
	} {
		if c.server.File == "" {
			c.server.File = filepath.Join(t.TempDir(), "mcp.json")
		}
		if c.before != "" {
			fixture.NoError(t, os.WriteFile(c.server.File, []byte(c.before), 0o600))
		}
		if err := Define(c.server, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
		if got, _ := os.ReadFile(c.server.File); string(got) != c.before {
			t.Errorf("%s: got the file %q, want it as it was", name, got)
		}
	}
	if left, _ := os.ReadDir(elsewhere); len(left) > 0 {
		t.Errorf("got %v behind the link, want nothing", left)
	}
}
