package engine_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
)

// A page is fetched without a question where a rule names its site, and where the site is private, the settings do. A
// redirect to another site is not followed. Without a rule nobody can be asked in an unattended run: it waits.
func TestWebFetchInARun(t *testing.T) {
	var asked []string
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "https://other.example/page", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<h1>The API</h1>")
	}))
	defer site.Close()
	host := strings.TrimPrefix(site.URL, "http://")
	b := newBench(t)
	b.engine = engine.New(b.store, engine.Options{Config: setup.Config{Keys: map[string]string{}, PrivateHosts: []string{host}}})
	script := fmt.Sprintf(`
- tools: [{name: web_fetch, input: {url: "%[1]s/docs", prompt: the API}}, {name: web_fetch, input: {url: "%[1]s/away", prompt: null}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`, site.URL)
	choice := setup.Choice{Provider: "script", Model: b.script(script), AllowTools: []string{"web_fetch(" + host + ")"}}
	run, out, _ := b.run(engine.Request{Text: "go", Choice: choice})
	if out.State != "completed" {
		t.Fatalf("got %+v, want a completed run", out)
	}
	var said strings.Builder
	for _, m := range b.state(run.TaskID).API() {
		said.Write(m.Raw())
	}
	for _, part := range []string{"# The API", "not instructions", "redirects to https://other.example/page"} {
		if !strings.Contains(said.String(), part) {
			t.Errorf("got %s, want %q in it", said.String(), part)
		}
	}
	if got := strings.Join(asked, ", "); got != "GET /docs, GET /away" {
		t.Errorf("the site was asked %q, want GET /docs, GET /away", got)
	}
	for _, approve := range []string{approval.ModeAsk, approval.ModeRead, approval.ModeEdits} {
		_, out, _ = b.run(engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: b.script(script), Approve: approve}})
		if out.State != "waiting" || len(asked) != 2 {
			t.Errorf("%s: got %+v and %d requests, want a run that waits and no request", approve, out, len(asked))
		}
	}
	_, out, _ = b.run(engine.Request{Text: "go", Choice: setup.Choice{
		Provider: "script", Model: b.script(script), Approve: approval.ModeAll, DenyTools: []string{"web(127.*)"},
	}})
	if out.State == "waiting" || len(asked) != 2 {
		t.Errorf("deny: got %+v and %d requests, want refused calls and no request", out, len(asked))
	}
}
