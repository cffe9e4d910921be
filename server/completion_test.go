package server

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
)

// Words are completed in a task, and in a folder before there is a task; nothing outside of it is named.
func TestCompletions(t *testing.T) {
	g := newWorkingBench(t)
	ws := filepath.Join(g.dir, "ws")
	for name, text := range map[string]string{".roo/commands/deploy.md": "---\ndescription: ship it\n---\nx", ".rooignore": "key.pem\n", "key.pem": ""} {
		path := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := "/v1/completions?workspace=" + url.QueryEscape(ws)
	for at, want := range map[string]string{
		g.path("/completions?text=a.t"):               "@/a.txt",
		before + "&text=a.t":                          "@/a.txt",
		before + "&kind=file&text=key":                "",
		before + "&kind=file&text=../":                "",
		g.path("/completions?kind=command&text=dep"):  "deploy",
		"/v1/completions?kind=command&text=dep":       "",
		"/v1/completions?text=a.t":                    "",
		before + "&kind=mode&text=arch":               "architect",
		g.path("/completions?kind=effort&text=high"):  "high xhigh",
		"/v1/completions?kind=provider&text=anthropi": "anthropic",
	} {
		var page api.Page[api.Completion]
		g.did(200, &page, "GET", at, "")
		var got []string
		for _, w := range page.Items {
			got = append(got, w.Text)
		}
		if strings.Join(got, " ") != want || page.Items == nil {
			t.Errorf("%s: got %q, want %q", at, got, want)
		}
	}
	var page api.Page[api.Completion]
	g.did(200, &page, "GET", g.path("/completions?kind=command&text=deploy"), "")
	if want := (api.Completion{Text: "deploy", About: "ship it", From: "project"}); len(page.Items) != 1 || page.Items[0] != want {
		t.Errorf("got %+v, want %+v", page.Items, want)
	}
	g.did(200, &page, "GET", "/v1/completions?kind=model&text=claude-sonnet", "")
	if len(page.Items) == 0 || page.Items[0].From != "anthropic" || !strings.Contains(page.Items[0].About, "context, $") {
		t.Errorf("got %+v, want a model of Anthropic with window and prices", page.Items)
	}
	for _, query := range []string{"workspace=here", "kind=secret"} {
		if p := g.denied(422, "validation_failed", "GET", "/v1/completions?"+query, ""); p.Title != "A parameter is wrong" {
			t.Errorf("%s: got the title %q, want that a parameter is wrong", query, p.Title)
		}
	}
}
