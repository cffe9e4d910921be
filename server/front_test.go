package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// pages stand for those of package web: they say what they were asked.
type pages struct{}

func (pages) Pages() map[string]func(http.ResponseWriter, *http.Request) error {
	show := func(w http.ResponseWriter, r *http.Request) error {
		_, err := io.WriteString(w, "page "+r.URL.Path)
		return err
	}
	return map[string]func(http.ResponseWriter, *http.Request) error{"/{$}": show, "/static/{name}": show, "/devices": show}
}

func (pages) Refuse(w http.ResponseWriter, _ *http.Request, p *api.Problem) {
	w.WriteHeader(p.Status)
	_, _ = io.WriteString(w, "refused "+p.Code)
}

// Pages stand behind the server's door, and a browser is refused with one; files that hold nothing of a task are for all.
// A server without pages has only the API.
func TestPagesStandBehindTheDoor(t *testing.T) {
	g := newBench(t, func(o *testOptions) { o.Pages = pages{} })
	const browser = "Accept: text/html,*/*;q=0.8"
	for _, tt := range []struct {
		path   string
		status int
		want   string
		heads  []string
	}{
		{"/", 200, "page /", nil},
		{"/", 200, "page /", []string{browser}},
		{"/", 401, "refused unauthenticated", []string{browser, "Authorization: "}},
		{"/static/page.css", 200, "page /static/page.css", []string{"Authorization: "}},
		{"/nothing", 404, "refused no_such_route", []string{browser}},
		{"/nothing", 401, "refused unauthenticated", []string{browser, "Authorization: Bearer wrong"}},
		{"/login?key=wrong", 401, "refused login_used", []string{browser, "Authorization: "}},
		{"/", 403, "refused host_denied", []string{browser, "Host: evil.example"}},
	} {
		resp := g.ask("GET", tt.path, tt.heads...)
		if body := fixture.Must[[]byte](t)(io.ReadAll(resp.Body)); resp.StatusCode != tt.status || string(body) != tt.want {
			t.Errorf("%s %q: got %s %s, want %d %s", tt.path, tt.heads, resp.Status, body, tt.status, tt.want)
		}
	}
	g.refused(401, "unauthenticated", "GET", "/", "Authorization: ")
	g.refused(401, "unauthenticated", "POST", "/", "Authorization: ", browser)
	g.refused(404, "no_such_route", "GET", "/v1/nothing", browser)
	newBench(t).refused(404, "no_such_route", "GET", "/", browser)
}

// A log-in link works once and leads to a page of this server alone; who is logged in may use an old one.
func TestLogInLinks(t *testing.T) {
	g := newBench(t, func(o *testOptions) { o.URL = "http://127.0.0.1:7" })
	var made api.Login
	g.did(201, &made, "POST", "/v1/server/logins", "")
	link, ok := strings.CutPrefix(made.URL, "http://127.0.0.1:7")
	if !ok || !strings.HasPrefix(link, "/login?key=") {
		t.Fatalf("got the link %q, want one to this server", made.URL)
	}
	resp := g.ask("GET", link+"&to=%2Ftasks%2Fx%3Fat%3D3", "Authorization: ")
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/tasks/x?at=3" || len(resp.Cookies()) != 1 {
		t.Fatalf("got %s to %s, want the page that to names, logged in", resp.Status, resp.Header.Get("Location"))
	}
	cookie := "Cookie: " + resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
	g.refused(401, "login_used", "GET", link, "Authorization: ")
	for to, want := range map[string]string{
		"/usage": "/usage", "": "/", "//evil.example": "/", "https://evil.example": "/", "/\\evil.example": "/", "/%5Cevil.example": "/%5Cevil.example",
		"\\evil.example": "/", "/\t/evil.example": "/", "javascript:alert(1)": "/", "usage": "/",
	} {
		resp := g.ask("GET", link+"&to="+url.QueryEscape(to), "Authorization: ", cookie)
		if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != want || len(resp.Cookies()) != 0 {
			t.Errorf("to %q: got %s to %q, want %q", to, resp.Status, resp.Header.Get("Location"), want)
		}
	}
	oldest := fixture.Must[string](t)(g.srv.LoginPath(context.Background()))
	for range 8 { // one more takes the place of the oldest
		g.did(201, nil, "POST", "/v1/server/logins", "")
	}
	g.refused(401, "login_used", "GET", oldest, "Authorization: ")
	g.refused(401, "login_used", "GET", fixture.Must[string](t)(g.srv.LoginPath(context.Background()))+"x", "Authorization: ")
	g.refused(401, "unauthenticated", "POST", "/v1/server/logins", "Authorization: ")
	newBench(t).refused(409, "not_a_server", "POST", "/v1/server/logins")
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
