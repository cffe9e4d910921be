package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Who asks over HTTP is told what helps there: members of a body, paths, or whole commands,
// and never flags of a command that he did not give.
func TestAdviceFitsTheDoor(t *testing.T) {
	g := newWorkingBench(t)
	ws := filepath.Join(g.dir, "moved")
	if err := os.Rename(filepath.Join(g.dir, "ws"), ws); err != nil {
		t.Fatal(err)
	}
	script := `"provider":"script","model":"` + g.model(sayDone) + `"`
	for _, c := range []struct{ name, method, path, body, code, want string }{
		{"a run", "POST", "/runs", `{"message":{"text":"go"}}`, "workspace_missing", `"workspace"`},
		{"words", "POST", "/messages", `{"text":"go"}`, "workspace_missing", `"workspace"`},
		{"a summary", "POST", "/condense", `{` + script + `}`, "workspace_missing", `"workspace"`},
		{"its files", "GET", "/files", ``, "workspace_missing", `"workspace"`},
		{"no script", "POST", "/runs", `{"message":{"text":"go"},"workspace":"` + ws + `","model":"/no/such/file"}`, "configuration", `"model"`},
		{"no script for a summary", "POST", "/condense", `{"workspace":"` + ws + `","provider":"script","model":"/no/such/file"}`, "configuration", `"model"`},
	} {
		p := g.denied(422, c.code, c.method, g.path("%s", c.path), c.body)
		if len(p.Suggestions) == 0 || !strings.Contains(p.Suggestions[0], c.want) {
			t.Errorf("%s: got %q, want len(p.Suggestions) != 0 and strings.Contains(p.Suggestions[0], c.want)",
				c.name, p.Suggestions)
		}
		for _, s := range p.Suggestions {
			if !strings.HasPrefix(s, "roost ") && (strings.Contains(s, " -") || strings.HasPrefix(s, "-")) {
				t.Errorf("%s: it was told %q", c.name, s)
			}
		}
	}
	// What it says helps.
	g.did(202, nil, "POST", g.path("/runs"), `{"message":{"text":"go"},"workspace":"`+ws+`",`+script+`}`)
}
