package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
)

// A request is from here only when nothing lies between this machine and the server.
func TestFromHere(t *testing.T) {
	for _, c := range []struct {
		name, from, host, header string
		want                     bool
	}{
		{"loopback", "127.0.0.1:5", "127.0.0.1:7878", "", true},
		{"loopback of IPv6", "[::1]:5", "localhost:7878", "", true},
		{"loopback of IPv6 that maps IPv4", "[::ffff:127.0.0.1]:5", "[::1]:7878", "", true},
		{"this process", client.LocalPeer, "roost", "", true},
		{"another machine", "192.0.2.7:5", "127.0.0.1:7878", "", false},
		{"another name", "127.0.0.1:5", "roost.example.org", "", false},
		{"a machine whose name begins alike", "127.0.0.1:5", "127.0.0.1.example.org", "", false},
		{"no address", "", "localhost", "", false},
		{"forwarded", "127.0.0.1:5", "localhost", "Forwarded", false},
		{"forwarded for", "127.0.0.1:5", "localhost", "X-Forwarded-For", false},
		{"forwarded host", "127.0.0.1:5", "localhost", "X-Forwarded-Host", false},
		{"via", "127.0.0.1:5", "localhost", "Via", false},
		{"real address", "127.0.0.1:5", "localhost", "X-Real-Ip", false},
		{"another process of Roost", "127.0.0.1:5", "localhost", hopHeader, false},
	} {
		r := httptest.NewRequest(http.MethodPost, "/v1/mcp-servers", nil)
		r.RemoteAddr, r.Host = c.from, c.host
		if c.header != "" {
			r.Header.Set(c.header, "192.0.2.7")
		}
		if got := fromHere(r); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// What is set counts for the engine at once, a key is never shown, and what leads elsewhere is set from here alone.
func TestSettingsOverTheAPI(t *testing.T) {
	g := newWorkingBench(t)
	const key = "sk-ant-api03-0123456789-of-the-test"
	ask := func(method, path, body string, headers ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, g.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+g.token)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		for _, name := range headers {
			r.Header.Set(name, "192.0.2.7")
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	for _, c := range []struct {
		method, path, body string
		forwarded          bool
		status             int
		holds              string
	}{
		{"GET", "/v1/settings", "", false, 200, `"problem":"no provider is named and no key was found"`},
		{"PUT", "/v1/providers/anthropic/key", `{"key":"` + key + `"}`, true, 403, "not_from_here"},
		{"PUT", "/v1/providers/anthropic/key", `{"key":"nonsense"}`, false, 422, "doubtful_key"},
		{"PUT", "/v1/providers/anthropic/key", `{"key":"two words"}`, false, 422, "/key"},
		{"PUT", "/v1/providers/antropic/key", `{"key":"` + key + `"}`, false, 422, "roost auth set anthropic"},
		{"PUT", "/v1/providers/anthropic/key", `{"key":"` + key + `"}`, false, 200, `"ends":"test"`},
		{"GET", "/v1/settings", "", false, 200, `"provider":"anthropic"`},
		{"PATCH", "/v1/settings", `{"set":{"model":["mine"],"nothing":["x"]}}`, false, 422, "there is no such setting"},
		{"GET", "/v1/settings", "", false, 200, `"model":"claude-`},
		{"PATCH", "/v1/settings", `{"set":{"model":["mine"]}}`, true, 200, `"model":"mine"`},
		{"PATCH", "/v1/settings", `{"set":{"approve":["all"]}}`, true, 403, "not_from_here"},
		{"PATCH", "/v1/settings", `{"set":{"approve":["edits"],"allow":["go test","ls"]}}`, false, 200, `"value":["go test","ls"]`},
		{"PATCH", "/v1/settings", `{"set":{"approve":["maybe"]}}`, false, 422, "want one of"},
		{"PATCH", "/v1/settings", `{"set":{"approve":["maybe"]}}`, false, 422, `"title":"The setting approve cannot be changed"`},
		{"PATCH", "/v1/settings", `{"set":{"providers.openai.api_key":["sk-x"]}}`, false, 422, "PUT /v1/providers"},
		{"PATCH", "/v1/settings", `{"unset":["model"]}`, false, 200, `"model":"claude-`},
		{"PATCH", "/v1/settings", `{"unset":["model"]}`, false, 200, `"warnings":[]`},
		{"POST", "/v1/mcp-servers", `{"name":"docs","command":"sh"}`, true, 403, "roost mcp add"},
		{"POST", "/v1/mcp-servers", `{"name":"docs","command":"sh","env":{"TOKEN":"hush"}}`, false, 201, `"env":["TOKEN"]`},
		{"POST", "/v1/mcp-servers", `{"name":"docs","command":"sh"}`, false, 409, "already_there"},
		{"POST", "/v1/mcp-servers", `{"name":"none"}`, false, 422, "either a command"},
		{"GET", "/v1/mcp-servers", "", false, 200, `"state":"allowed"`},
		{"DELETE", "/v1/mcp-servers/docs", "", false, 204, ""},
		{"DELETE", "/v1/mcp-servers/docs", "", false, 404, "has no server of this name"},
		{"GET", "/v1/models?provider=anthropic", "", false, 200, `"provider":"anthropic"`},
		{"GET", "/v1/modes", "", false, 200, `"slug":"code"`},
		{"POST", "/v1/sources", `{"path":"relative"}`, false, 422, "absolute"},
		{"DELETE", "/v1/sources", "", false, 422, "name the folder"},
		{"DELETE", "/v1/sources?path=/none", "", false, 404, "does not name it"},
		{"DELETE", "/v1/providers/anthropic/key", "", true, 403, "not_from_here"},
		{"DELETE", "/v1/providers/anthropic/key", "", false, 200, `"set":false`},
		{"DELETE", "/v1/providers/anthropic/key", "", false, 404, "none is kept"},
		{"POST", "/v1/providers/anthropic/test", `{}`, false, 422, "there is no key"},
	} {
		var headers []string
		if c.forwarded {
			headers = []string{"X-Forwarded-For"}
		}
		status, text := ask(c.method, c.path, c.body, headers...)
		if status != c.status || !strings.Contains(text, c.holds) {
			t.Errorf("%s %s %s: got %d %s, want %d with %s", c.method, c.path, c.body, status, text, c.status, c.holds)
		}
		if strings.Contains(text, key) || strings.Contains(text, "hush") {
			t.Errorf("%s %s: the answer holds a secret: %s", c.method, c.path, text)
		}
	}
	if log := g.log.String(); strings.Contains(log, key) {
		t.Errorf("the log holds the key: %s", log)
	}
}

// A folder that is added is read from then on, and no longer once it is removed.
func TestSourceOverTheAPI(t *testing.T) {
	g := newWorkingBench(t)
	dir := filepath.Join(t.TempDir(), "storage")
	task := filepath.Join(dir, "tasks", "11111111-2222-4333-8444-555555555555")
	if err := os.MkdirAll(task, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(task, "ui_messages.json"), []byte(`[{"ts":1700000000000,"type":"say","say":"text","text":"paint"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(g.url, client.Options{Token: g.token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	reads := func() bool {
		t.Helper()
		got, err := client.Get[api.Page[api.SourceState]](t.Context(), c, "/v1/sources", nil)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(got.Items, func(s api.SourceState) bool { return strings.HasPrefix(s.Path, dir) })
	}
	if reads() {
		t.Fatal("the folder is read before it was added")
	}
	added, err := c.AddSource(t.Context(), api.NewSource{Path: dir})
	if err != nil || !added.Added || added.Tasks != 1 || !reads() {
		t.Errorf("got %+v, %v, read %v; want one task that is read", added, err, reads())
	}
	if err := c.RemoveSource(t.Context(), dir); err != nil || reads() {
		t.Errorf("got %v, read %v; want that it is read no longer", err, reads())
	}
}
