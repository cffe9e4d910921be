package web_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/server"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a server with pages over the tasks of some sources and of a root of its own.
type bench struct {
	testing.TB
	dir    string
	engine *engine.Engine
	srv    *server.Server
	all    *service.Service
	url    string
	token  string
	client *http.Client
}

func newBench(t testing.TB, sources ...string) *bench {
	t.Helper()
	g := &bench{TB: t, dir: t.TempDir(), token: strings.Repeat("ab", 32)}
	st := fixture.Must[*store.Store](t)(store.Open(store.Options{Root: filepath.Join(g.dir, "root"), State: filepath.Join(g.dir, "state"),
		Cache: filepath.Join(g.dir, "cache"), Sources: sources, Program: "test"}))
	g.engine = engine.New(st, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	env := map[string]string{"HOME": g.dir, "ROOST_CONFIG": filepath.Join(g.dir, "config.toml")}
	g.all = service.New(st, g.engine, service.Options{Place: &config.Place{
		Env:   func(name string) string { return env[name] },
		Dir:   g.dir,
		Flags: map[string]string{"sources": cmp.Or(strings.Join(sources, ","), "none")},
	}})
	g.srv = fixture.Must[*server.Server](t)(server.New(server.Options{
		Service: g.all,
		Token:   g.token,
		Version: api.Version{Version: "test"},
		URL:     "http://127.0.0.1:1",
		Pages:   web.New(web.Options{Reader: g.all, Version: "test"}),
	}))
	live := httptest.NewServer(g.srv.Handler())
	g.url = live.URL
	g.client = &http.Client{
		Timeout:       time.Minute,
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(func() {
		live.Close()
		g.srv.End()
		if err := g.engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g
}

// run runs a scripted task to its end, or until it asks, and gives its id.
func (g *bench) run(script, text string) string {
	g.Helper()
	ws := filepath.Join(g.dir, "ws")
	if err := os.MkdirAll(ws, 0o700); err != nil {
		g.Fatal(err)
	}
	file := fixture.WriteFile(g, filepath.Join(g.dir, "model.yaml"), script)
	run := fixture.Must[*engine.Run](g)(g.engine.Start(g.Context(), engine.Request{Text: text,
		Choice: setup.Choice{Workspace: ws, Provider: "script", Model: file, Approve: "all"}}))
	if _, err := run.Wait(g.Context()); err != nil {
		g.Fatal(err)
	}
	return run.TaskID
}

// ask sends a request as a browser does, with the token; a header without a value is taken away.
func (g *bench) ask(path string, headers ...string) (*http.Response, string) {
	g.Helper()
	req := fixture.Must[*http.Request](g)(http.NewRequestWithContext(g.Context(), http.MethodGet, g.url+path, nil))
	req.Header.Set("Authorization", "Bearer "+g.token)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
		if value == "" {
			req.Header.Del(name)
		}
	}
	resp := fixture.Must[*http.Response](g)(g.client.Do(req))
	defer resp.Body.Close()
	return resp, string(fixture.Must[[]byte](g)(io.ReadAll(resp.Body)))
}

// page is a page that must be there.
func (g *bench) page(path string) *html.Node {
	g.Helper()
	resp, body := g.ask(path)
	if resp.StatusCode != http.StatusOK {
		g.Fatalf("GET %s: got %s, want 200\n%s", path, resp.Status, body)
	}
	return fixture.Must[*html.Node](g)(html.Parse(strings.NewReader(body)))
}

// document is a document of the API.
func document[T any](g *bench, path string) (doc T) {
	g.Helper()
	_, body := g.ask(path, "Accept: application/json")
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		g.Fatalf("GET %s: %v\n%s", path, err, body)
	}
	return doc
}

// all are the elements that fit, in their order.
func all(n *html.Node, fits func(*html.Node) bool) (out []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && fits(d) {
			out = append(out, d)
		}
	}
	return out
}

func tag(name string) func(*html.Node) bool { return func(n *html.Node) bool { return n.Data == name } }

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// one is the element with an id; nil when there is none.
func one(n *html.Node, id string) *html.Node {
	for _, d := range all(n, func(d *html.Node) bool { return attr(d, "id") == id }) {
		return d
	}
	return nil
}

// text is the text below a node.
func text(n *html.Node) string {
	var out strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			out.WriteString(d.Data)
		}
	}
	return out.String()
}

// storage is a storage of another tool with some tasks: the rows that the person saw, by id.
func storage(t testing.TB, tasks map[string][]map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	for id, rows := range tasks {
		folder := filepath.Join(dir, "tasks", id)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		data := fixture.Must[[]byte](t)(json.Marshal(rows))
		fixture.WriteFile(t, filepath.Join(folder, "ui_messages.json"), string(data))
		fixture.WriteFile(t, filepath.Join(folder, "api_conversation_history.json"), "[]")
	}
	return dir
}

// said are rows in which somebody says these texts.
func said(texts ...string) (rows []map[string]any) {
	for i, s := range texts {
		rows = append(rows, map[string]any{"ts": 1760000000000 + int64(i)*1000, "type": "say", "say": "text", "text": s})
	}
	return rows
}
