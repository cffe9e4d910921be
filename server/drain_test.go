package server

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// B-14: a server that drains starts nothing, lets what works and waits be, says so, and
// can take it back.
func TestRuleB14Drain(t *testing.T) {
	g := newWorkingBench(t)
	waiting := g.privately(askWhich)
	g.until(waiting, "waiting")
	var s api.Server
	g.did(200, &s, "POST", "/v1/server/drain", "")
	if !s.Draining || s.Stopping || s.Runs.Waiting != 1 {
		t.Errorf("got %+v, want s.Draining and not s.Stopping and s.Runs.Waiting = 1", s)
	}
	g.refusedSend(503, "draining", "POST", "/v1/tasks/"+g.id+"/runs", `{"message":{"text":"go on"}}`)
	if resp := g.ask("GET", "/readyz", "Authorization: "); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %s", resp.Status)
	}
	if resp := g.ask("GET", "/healthz", "Authorization: "); resp.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %s", resp.Status)
	}
	g.did(200, &s, "DELETE", "/v1/server/drain", "")
	if s.Draining {
		t.Errorf("got %+v, want not s.Draining", s)
	}
	g.get("/readyz")
	g.did(202, nil, "POST", "/v1/tasks/"+g.id+"/runs", `{"message":{"text":"go on"}}`)
	g.until(g.id, "completed")
}

func (g *bench) refusedSend(status int, code, method, path, body string) {
	g.Helper()
	resp := g.send(method, path, body)
	text := fixture.Must[[]byte](g)(io.ReadAll(resp.Body))
	var p api.Problem
	if err := json.Unmarshal(text, &p); err != nil || resp.StatusCode != status || p.Code != code {
		g.Errorf("%s %s: %s, want %d %s\n%s", method, path, resp.Status, status, code, text)
	}
}

func TestStopIsAskedOfTheProgram(t *testing.T) {
	asked := make(chan bool, 2)
	g := newWorkingBench(t, func(o *testOptions) {
		o.Stop = func(now bool) { asked <- now }
		o.URL = "http://127.0.0.1:1"
		o.Limits = api.Bounds{MaxRuns: 3, Hold: "1m0s"}
	})
	var s api.Server
	if err := json.Unmarshal(g.get("/v1/server"), &s); err != nil || s.Stopping || s.PID == 0 || s.URL != "http://127.0.0.1:1" || s.Limits.MaxRuns != 3 || s.Limits.MaxBody == 0 || s.Recovery != "none" {
		t.Errorf(`got %v %+v, want no error and not s.Stopping and s.PID != 0 and s.URL = "http://127.0.0.1:1" and s.Limits.MaxRuns = 3 and s.Limits.MaxBody != 0 and s.Recovery = "none"`,
			err, s)
	}
	g.refusedSend(422, "validation_failed", "POST", "/v1/server/stop", `{"later":true}`)
	g.did(202, &s, "POST", "/v1/server/stop", `{"now":true}`)
	if !s.Stopping || !<-asked {
		t.Errorf("got %+v, want s.Stopping and <-asked", s)
	}
	g.refusedSend(409, "stopping", "DELETE", "/v1/server/drain", "")
	g.did(202, &s, "POST", "/v1/server/stop", "")
	if <-asked {
		t.Error("it was to be now")
	}
	other := newWorkingBench(t)
	other.refusedSend(409, "not_a_server", "POST", "/v1/server/stop", "")
	newBench(t).refusedSend(503, "read_only", "POST", "/v1/server/stop", "")
}

// Who changed something, through which door and from where, is in the log; what was said
// is not.
func TestChangesAreAudited(t *testing.T) {
	g := newWorkingBench(t)
	id := g.privately(wantsCommand)
	g.until(id, "waiting")
	var list struct{ Items []api.Question }
	if err := json.Unmarshal(g.get("/v1/questions?task="+id), &list); err != nil || len(list.Items) != 1 {
		t.Fatal(err, list)
	}
	g.did(200, nil, "POST", "/v1/questions/"+list.Items[0].ID+"/answer", `{"approve":false,"text":"a private reason"}`)
	g.until(id, "completed")
	var line string
	for _, one := range strings.Split(g.log.String(), "\n") {
		if strings.Contains(one, "msg=answered") {
			line = one
		}
	}
	for _, want := range []string{"time=", "task=" + id, "question=" + list.Items[0].ID, "decision=denied", "door=token", "from=127.0.0.1", "request_id="} {
		if !strings.Contains(line, want) {
			t.Errorf("the line lacks %s: %s", want, line)
		}
	}
	if text := g.log.String(); strings.Contains(text, "private") || strings.Contains(text, "echo one") {
		t.Errorf("words are in the log:\n%s", text)
	}
}

func TestPagesOfNamedOrigins(t *testing.T) {
	const page = "https://app.example"
	g := newWorkingBench(t, func(o *testOptions) { o.Origins = []string{page} })
	ahead := []string{"Access-Control-Request-Method: POST", "Authorization: "}
	resp := g.ask("OPTIONS", "/v1/tasks", append(ahead, "Origin: "+page)...)
	if h := resp.Header; resp.StatusCode != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != page || h.Get("Access-Control-Allow-Credentials") != "" ||
		!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Idempotency-Key") || h.Get("Vary") != "Origin" {
		t.Errorf("%s %v", resp.Status, h)
	}
	if resp := g.ask("GET", "/v1/tasks", "Origin: "+page); resp.StatusCode != http.StatusOK || resp.Header.Get("Access-Control-Allow-Origin") != page ||
		!strings.Contains(resp.Header.Get("Access-Control-Expose-Headers"), "Roost-Run-Id") {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	if resp := g.send("POST", "/v1/server/drain", "", "Origin: "+page); resp.StatusCode != http.StatusOK {
		t.Errorf("a change with the token: %s", resp.Status)
	}
	cookie := g.logIn()
	for _, headers := range [][]string{
		{"Origin: " + page, "Authorization: ", "Cookie: " + cookie.Name + "=" + cookie.Value}, // the cookie does not count from there
		{"Origin: https://app.example.evil"}, {"Origin: http://app.example"}, {"Origin: null"},
	} {
		resp := g.send("POST", "/v1/server/drain", "", headers...)
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%q: got %s, want resp.StatusCode = http.StatusForbidden", headers, resp.Status)
		}
	}
	if resp := g.ask("OPTIONS", "/v1/tasks", append(ahead, "Origin: https://other.example")...); resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin is let in: %v", resp.Header)
	}
	if resp := g.ask("OPTIONS", "/v1/tasks", append(ahead, "Origin: "+page, "Host: evil.example")...); resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("a foreign host is answered")
	}
	for text, want := range map[string]bool{
		page: true, "http://localhost:3000": true, "*": false, "https://*.example": false, "https://app.example/": false, "https://App.example": false,
		"null": false, "https://a:443": false, "http://a:80": false, "ftp://a": false, "https://": false, "": false, "https://a b": false,
	} {
		if ValidOrigin(text) != want {
			t.Errorf("%q is valid: %v", text, !want)
		}
	}
}
