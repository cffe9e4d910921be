package server

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// The front page is there for everybody who may reach the server, with and without a token; it runs nothing, loads
// nothing, and leads those who are logged in to the documents of the API.
func TestFrontPage(t *testing.T) {
	g := newBench(t)
	page := func(headers ...string) (*http.Response, string) {
		resp := g.ask("GET", "/", headers...)
		data, err := io.ReadAll(resp.Body)
		fixture.NoError(t, err)
		return resp, string(data)
	}
	resp, in := page()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" ||
		!strings.Contains(in, `href="/openapi.json"`) || !strings.Contains(in, "You are logged in") {
		t.Errorf("with the token: got %s\n%s, want the links", resp.Status, in)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("got the policy %q", resp.Header.Get("Content-Security-Policy"))
	}
	for _, token := range []string{"Authorization: ", "Authorization: Bearer wrong"} {
		resp, out := page(token)
		if resp.StatusCode != http.StatusOK || !strings.Contains(out, "You are not logged in") || strings.Contains(out, "<a ") {
			t.Errorf("%s: got %s\n%s, want the page for others", token, resp.Status, out)
		}
	}
	for _, text := range []string{"<script", "http://", "https://", "----", " src="} {
		if strings.Contains(in, text) {
			t.Errorf("got %q on the page, want none", text)
		}
	}
	g.refused(403, "host_denied", "GET", "/", "Host: evil.example")
	g.refused(401, "unauthenticated", "POST", "/", "Authorization: ")
	g.refused(404, "no_such_route", "GET", "/nothing")
	g.refused(401, "unauthenticated", "GET", "/nothing", "Authorization: ")
}

// The log names the request to stop before the server stops.
func TestLogOfAStop(t *testing.T) {
	var g *bench
	var order []string
	g = newWorkingBench(t, func(o *testOptions) {
		o.Stop = func(bool) { order = append(order, g.log.String()) }
	})
	var doc api.Server
	g.did(202, &doc, "POST", "/v1/server/stop", "")
	if len(order) != 1 || !strings.Contains(order[0], "/v1/server/stop") {
		t.Errorf("got the log %q before the stop, want the request in it", order)
	}
}

// The examples of the description are bodies that the routes take, and the important routes have one.
func TestExamplesOfTheDescription(t *testing.T) {
	found := 0
	for _, rt := range routes() {
		if rt.example == "" {
			continue
		}
		found++
		body := reflect.New(reflect.TypeOf(rt.body)).Interface()
		in := json.NewDecoder(strings.NewReader(rt.example))
		in.DisallowUnknownFields()
		if err := in.Decode(body); err != nil {
			t.Errorf("%s: got %v for %s, want a body of the route", rt.on, err, rt.example)
		}
	}
	if found < 8 {
		t.Errorf("got %d examples, want those of the 8 important routes", found)
	}
	doc, err := describedRoutes(routes(), api.ProgramVersion(), "c")
	fixture.NoError(t, err)
	var got struct {
		Servers []any `json:"servers"`
		Paths   map[string]map[string]struct {
			Body struct {
				Content map[string]struct {
					Example json.RawMessage `json:"example"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
	}
	fixture.NoError(t, json.Unmarshal(doc, &got))
	if len(got.Servers) == 0 || !strings.Contains(string(got.Paths["/v1/tasks"]["post"].Body.Content["application/json"].Example), "fix the failing test") {
		t.Errorf("got %d servers, and no example of POST /v1/tasks in the description", len(got.Servers))
	}
}
