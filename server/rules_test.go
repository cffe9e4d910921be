package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store/trash"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/engine"
)

// The rules that a server of this kind broke elsewhere, by number, as far as they
// concern reading.

// Every answer about a task says which one it is.
func TestRuleB02TheTaskIsNamed(t *testing.T) {
	g := newBench(t)
	resp := g.ask("GET", g.path("/events?after=0"))
	if got := resp.Header.Get("Roost-Task-Id"); got != g.id {
		t.Errorf("the stream's head names %q", got)
	}
	for _, f := range g.follow(g.path("/events?after=0")).take(5) {
		var e struct {
			Task string `json:"task_id"`
			Seq  uint64 `json:"seq"`
		}
		if err := json.Unmarshal([]byte(f.Data), &e); err != nil || e.Task != g.id || e.Seq == 0 {
			t.Errorf("%v: got %s, want no error and e.Task = g.id and e.Seq != 0", err, f.Data)
		}
	}
	if p := g.refused(404, "task_not_found", "GET", "/v1/tasks/nothing"); p.Task != "nothing" {
		t.Errorf("the problem names task %q", p.Task)
	}
}

// What cannot be read is refused, all of it at once, and nothing is guessed.
func TestRuleB05StrictDecoding(t *testing.T) {
	g := newBench(t)
	p := g.refused(422, "validation_failed", "GET", "/v1/tasks?colour=red&limit=many&sort=newest&sort=oldest&status=great&since=whenever&min_cost=-1&tree=perhaps")
	var names []string
	for _, e := range p.Errors {
		names = append(names, e.Parameter)
	}
	if diff := cmp.Diff([]string{"colour", "limit", "min_cost", "since", "sort", "status", "tree"}, names); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{"/v1/sources?x=1", g.path("?x=1"), g.path("/events?from=1"), g.path("/messages?limit=0"), g.path("/messages?limit=1001"),
		g.path("/messages?before=0"), g.path("/messages?after=-1"), g.path("/messages?after=9223372036854775807"), g.path("/history?view=nice"), "/v1/search?q=a&in=nowhere", "/v1/search?q=", "/v1/usage?by=mood"} {
		g.refused(422, "validation_failed", "GET", path)
	}
	for _, path := range []string{"/v1/tasks?cursor=abc", "/v1/tasks?cursor=-1", "/v1/tasks?cursor=%2B1", "/v1/search?q=a&cursor=zz"} {
		g.refused(400, "bad_cursor", "GET", path)
	}
	g.refused(400, "bad_query", "GET", "/v1/tasks?limit=%zz")
	for _, status := range api.Statuses {
		g.get("/v1/tasks?status=" + status)
	}
}

// A stream's head is only ever sent for what exists: everything else is a status.
func TestRuleB06StatusBeforeStream(t *testing.T) {
	g := newBench(t)
	g.refused(404, "task_not_found", "GET", "/v1/tasks/nothing/events")
	g.refused(400, "bad_cursor", "GET", g.path("/events?after=1.x-0"))
	g.refused(400, "bad_cursor", "GET", g.path("/events"), "Last-Event-ID: 01.2-3")
	g.refused(406, "not_acceptable", "GET", g.path("/events"), "Accept: application/json")
	g.refused(406, "not_acceptable", "GET", g.path(""), "Accept: text/html, application/json;q=0")
	g.get(g.path(""), "Accept: text/html, */*;q=0.1")
}

// fingerprint is everything below a folder: names, modes, contents.
func fingerprint(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %x %s", sha256.Sum256(data), info.ModTime())
		}
		out[path] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Whatever is asked, by whichever name, nothing comes into being and nothing changes.
func TestRuleB07ReadsNeverCreateAndIDsAreNoPaths(t *testing.T) {
	g := newBench(t)
	secret := filepath.Join(g.dir, "secret")
	if err := os.MkdirAll(filepath.Join(secret, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := fingerprint(t, g.dir)
	delete(before, filepath.Join(g.dir, "cache"))
	for _, id := range []string{"..", "%2e%2e", "..%2f..%2fsecret", "%2e%2e%2fsecret%2fx", "a%2fb", "a%00b", ".hidden", "-x", "a%5c..%5cb", "%ff", "a%0d%0aX-Y:z", "%20", strings.Repeat("a", 129), "roost:..", "..:x", ":", "a:b:c", "CON%2f"} {
		for _, rest := range []string{"", "/messages", "/history", "/files", "/usage", "/tree", "/events"} {
			resp := g.ask("GET", "/v1/tasks/"+id+rest)
			if resp.StatusCode != 400 && resp.StatusCode != 404 && resp.StatusCode != 405 || resp.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf(`got %s%s: %s, want (resp.StatusCode = 400 or resp.StatusCode = 404 or resp.StatusCode = 405) and resp.Header.Get("Content-Type") = "application/problem+json"`,
					id, rest, resp.Status)
			}
			resp.Body.Close()
		}
	}
	for _, id := range []string{"nothing", "tasks", "_index.json", "journal.jsonl", strings.Repeat("a", 128), "roost:nothing", "nowhere:" + g.id} {
		g.refused(map[bool]int{true: 400, false: 404}[id[0] == '_'], map[bool]string{true: "bad_id", false: "task_not_found"}[id[0] == '_'], "GET", "/v1/tasks/"+id)
	}
	g.refused(503, "read_only", "GET", "/v1/runs/"+strings.Repeat("r", 300))
	g.refused(400, "bad_id", "GET", "/v1/runs/"+strings.Repeat("r", 301))
	for _, path := range []string{"/v1/tasks/../../secret", "//v1/tasks", "/v1/./tasks", "/v1/tasks/"} {
		g.refused(400, "bad_path", "GET", path)
	}
	for _, path := range []string{"/v1/tasks", "/v1/tasks?tree=true&empty=true", g.path(""), g.path("/messages"), g.path("/history?view=effective"), g.path("/files"), g.path("/usage"), g.path("/tree"), "/v1/search?q=fence", "/v1/usage", "/v1/sources", "/readyz"} {
		g.get(path)
	}
	g.follow(g.path("/events?after=0")).take(len(g.events()))
	after := fingerprint(t, g.dir)
	for path := range after {
		if strings.HasPrefix(path, filepath.Join(g.dir, "cache")) { // derived, and may be written
			delete(after, path)
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("reading changed something:\n%s", diff)
	}
}

// A root that is not there stays so. One that was there is gone, and the server not ready.
func TestRuleB07NoRootIsMade(t *testing.T) {
	g := newBench(t)
	if err := os.RemoveAll(g.store.Root()); err != nil {
		t.Fatal(err)
	}
	if status, why := g.ready(); status != http.StatusServiceUnavailable || why != "it is missing" {
		t.Errorf("/readyz: %d %s", status, why)
	}
	g.get("/v1/tasks")
	g.refused(404, "task_not_found", "GET", g.path(""))
	if _, err := os.Stat(g.store.Root()); !os.IsNotExist(err) {
		t.Error("the root was made", err)
	}
}

// An event holds its own message, and what all events hold grows with the messages and
// not with their square.
func TestRuleB09OneMessageAnEvent(t *testing.T) {
	g := newBench(t)
	size := func() (n int) {
		for _, f := range g.follow(g.path("/events?after=0")).take(len(g.events())) {
			n += len(f.Data)
		}
		return n
	}
	once := size()
	for i := range 3 {
		g.run(engine.Request{Task: g.id, Text: fmt.Sprintf("again %d", i)})
	}
	if four := size(); four > 6*once {
		t.Errorf("one run's events have %d bytes, four runs' %d", once, four)
	}
}

// No secret is in the log, and none in an answer.
func TestRuleB16NoSecretsInLogs(t *testing.T) {
	g := newBench(t)
	link := fixture.Must[string](t)(g.srv.LoginPath(context.Background()))
	_, key, _ := strings.Cut(link, "key=")
	resp := g.ask("GET", link, "Authorization: ")
	cookie := resp.Cookies()[0]
	g.get(g.path(""))
	g.get(g.path(""), "Authorization: ", "Cookie: "+cookie.Name+"="+cookie.Value)
	g.refused(401, "unauthenticated", "GET", "/v1/tasks", "Authorization: Bearer wrong-secret-of-somebody")
	g.refused(422, "validation_failed", "GET", "/v1/tasks?token=wrong-secret-of-somebody")
	log := g.log.String()
	for name, secret := range map[string]string{"the token": g.token, "the link's key": key, "the cookie": cookie.Value, "a wrong token": "wrong-secret"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %s:\n%s", name, log)
		}
		if doc := string(g.get("/openapi.json")); strings.Contains(doc, secret) {
			t.Errorf("the description holds %s", name)
		}
	}
	if !strings.Contains(log, g.path("")) {
		t.Errorf("the log does not tell of requests:\n%s", log)
	}
}

// What was guessed of a task is named as such; of Roost's own nothing is.
func TestRuleB22GuessesAreNamed(t *testing.T) {
	g := newBench(t)
	var task struct {
		Origin, Mode, Workspace, Status string
		Inferred                        *[]string
	}
	if err := json.Unmarshal(g.get(g.path("")), &task); err != nil {
		t.Fatal(err)
	}
	if task.Inferred == nil || len(*task.Inferred) != 0 || task.Origin != "api" || task.Status != "completed" || task.Mode == "" || task.Workspace == "" {
		t.Errorf(`got %+v, want task.Inferred != nil and len(*task.Inferred) = 0 and task.Origin = "api" and task.Status = "completed" and task.Mode != "" and task.Workspace != ""`,
			task)
	}
}

// Nobody gets in without the token, by another name, or through another site. The front page has no door: see TestFrontPage.
func TestRuleB23OnlyWhoMay(t *testing.T) {
	g := newBench(t)
	for _, path := range []string{"/v1/tasks", g.path(""), g.path("/events"), "/openapi.json", "/v1/nothing", "/v1/version"} {
		for _, auth := range []string{"Authorization: ", "Authorization: Bearer", "Authorization: Bearer " + g.token[:63], "Authorization: Bearer " + g.token + "0", "Authorization: Basic " + g.token, "Authorization: " + g.token} {
			g.refused(401, "unauthenticated", "GET", path, auth)
		}
	}
	g.refused(401, "unauthenticated", "GET", "/v1/tasks", "Authorization: ", "Cookie: "+g.srv.opt.Devices.CookieName()+"=9999999999."+strings.Repeat("0", 64))
	g.refused(401, "unauthenticated", "GET", "/v1/tasks", "Authorization: ", "Cookie: "+g.srv.opt.Devices.CookieName()+"=9999999999")
	for _, host := range []string{"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:7878", "169.254.169.254", "[::2]", "127.0.0.1:evil", "localhost:99999"} {
		g.refused(403, "host_denied", "GET", "/v1/tasks", "Host: "+host)
		g.refused(403, "host_denied", "GET", "/healthz", "Host: "+host)
	}
	for _, host := range []string{"localhost", "LOCALHOST:1", "127.0.0.1:9999", "[::1]:7878"} {
		g.get("/v1/tasks", "Host: "+host)
	}
	for _, from := range []string{"Origin: https://evil.example", "Origin: null", "Origin: http://127.0.0.1:1", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"} {
		g.refused(403, "origin_denied", "POST", "/v1/tasks", from)
		g.refused(403, "origin_denied", "DELETE", g.path(""), from)
	}
	resp := g.ask("GET", "/v1/tasks", "Origin: https://evil.example")
	for name := range resp.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("another site may read the answer: %s", name)
		}
	}
	cookie := g.logIn()
	g.get("/v1/tasks", "Authorization: ", "Cookie: "+cookie.Name+"="+cookie.Value)
	g.refused(403, "origin_denied", "GET", "/v1/tasks", "Authorization: ", "Cookie: "+cookie.Name+"="+cookie.Value, "Sec-Fetch-Site: cross-site")
	g.refused(401, "unauthenticated", "OPTIONS", "/v1/tasks", "Authorization: ", "Origin: https://evil.example", "Access-Control-Request-Method: GET")
}

// What is not served is not half served.
func TestMethodsAndRoutes(t *testing.T) {
	g := newBench(t)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "FETCH"} {
		g.refused(405, "method_not_allowed", method, g.path("/usage"))
		if allow := g.ask(method, "/v1/search").Header.Get("Allow"); allow != "GET, HEAD, OPTIONS" {
			t.Errorf("%s: Allow: %s", method, allow)
		}
	}
	for path, want := range map[string]string{"/v1/usage": "GET, HEAD, OPTIONS", "/healthz": "GET, HEAD, OPTIONS"} {
		resp := g.ask("OPTIONS", path)
		if resp.StatusCode != 204 || resp.Header.Get("Allow") != want {
			t.Errorf("OPTIONS %s: %s, Allow: %s", path, resp.Status, resp.Header.Get("Allow"))
		}
	}
	for _, path := range []string{"/v1", "/v2/tasks", "/v1/nothing", g.path("/messages/1")} {
		g.refused(404, "no_such_route", "GET", path)
	}
	resp := g.ask("HEAD", g.path(""))
	if resp.StatusCode != 200 || resp.ContentLength != int64(len(g.get(g.path("")))) {
		t.Errorf("HEAD: %s, %d bytes", resp.Status, resp.ContentLength)
	}
	if resp := g.ask("HEAD", g.path("/events")); resp.StatusCode != 200 || resp.Header.Get("Content-Type") != streamMedia {
		t.Errorf("HEAD of a stream: %s", resp.Status)
	}
	if id := g.ask("GET", "/healthz", requestID+": mine-1").Header.Get(requestID); id != "mine-1" {
		t.Errorf("the request's own id became %q", id)
	}
	if id := g.ask("GET", "/healthz", requestID+": a b").Header.Get(requestID); !strings.HasPrefix(id, "r-") {
		t.Errorf("an id with a blank stays: %q", id)
	}
	for _, name := range []string{"X-Content-Type-Options", "Content-Security-Policy", "Cache-Control", "Referrer-Policy"} {
		if g.ask("GET", "/healthz").Header.Get(name) == "" {
			t.Errorf("no %s", name)
		}
	}
}

// A client that has a document is told so; one that changed is sent.
func TestETags(t *testing.T) {
	g := newBench(t)
	for _, path := range []string{"/v1/tasks", g.path(""), g.path("/messages"), "/openapi.json"} {
		tag := g.ask("GET", path).Header.Get("ETag")
		for _, header := range []string{tag, `"other", ` + tag, "W/" + tag, "*"} {
			if resp := g.ask("GET", path, "If-None-Match: "+header); resp.StatusCode != http.StatusNotModified || resp.Header.Get("ETag") != tag {
				t.Errorf("%s with %s: %s", path, header, resp.Status)
			}
		}
		g.get(path, `If-None-Match: "other"`)
	}
	tag := g.ask("GET", g.path("")).Header.Get("ETag")
	g.run(engine.Request{Task: g.id, Text: "again"})
	g.get(g.path(""), "If-None-Match: "+tag)
}

// An id that is nearly right leads to the right one, and an ambiguous one to its candidates.
func TestSuggestions(t *testing.T) {
	g := newBench(t)
	if p := g.refused(404, "task_not_found", "GET", "/v1/tasks/"+g.id[:30]+"zzzzzz"); len(p.Suggestions) < 2 || p.Suggestions[0] != g.id {
		t.Errorf("got %q, want len(p.Suggestions) >= 2 and p.Suggestions[0] = g.id", p.Suggestions)
	}
	second := g.run(engine.Request{Text: "second", Choice: setup.Choice{Workspace: filepath.Join(g.dir, "ws"), Provider: "script", Model: filepath.Join(g.dir, "model.yaml"), Approve: "all"}})
	n := 0
	for n < len(g.id) && n < len(second) && g.id[n] == second[n] {
		n++
	}
	p := g.refused(409, "ambiguous_id", "GET", "/v1/tasks/"+g.id[:max(n, 3)])
	if !strings.Contains(strings.Join(p.Suggestions, " "), second) {
		t.Errorf("got %q, want strings.Contains(strings.Join(p.Suggestions, \" \"), second)", p.Suggestions)
	}
	g.get("/v1/tasks/" + g.id[len(g.id)-8:])
	g.get("/v1/tasks/roost:" + g.id)
	if _, err := trash.Delete(t.Context(), g.store, fixture.Must[refOf](t)(g.store.Find(t.Context(), second))); err != nil {
		t.Fatal(err)
	}
	if p := g.refused(404, "task_not_found", "GET", "/v1/tasks/"+second); !strings.Contains(strings.Join(p.Suggestions, " "), "trash restore") {
		t.Errorf("a task in the trash: %q", p.Suggestions)
	}
}
