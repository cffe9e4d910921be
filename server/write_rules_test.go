package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
)

// The rules of rules_test.go, as far as they concern changing.

// Whoever starts something learns what it is called, in the body and in the headers; and
// under these names it is found.
func TestRuleB02TaskAndRunAreNamed(t *testing.T) {
	g := newWorkingBench(t)
	var r made
	head := g.did(201, &r, "POST", "/v1/tasks", g.task(sayDone, "go"))
	if r.ID == "" || r.Task == "" || head.Get("Roost-Task-Id") != r.Task || head.Get("Roost-Run-Id") != r.ID || head.Get("Location") != "/v1/tasks/"+r.Task {
		t.Fatalf(`got %+v %v, want r.ID != "" and r.Task != "" and head.Get("Roost-Task-Id") = r.Task and head.Get("Roost-Run-Id") = r.ID and head.Get("Location") = "/v1/tasks/"+r.Task`,
			r, head)
	}
	g.state(r.ID, "completed")
	var next api.Run
	head = g.did(202, &next, "POST", "/v1/tasks/"+r.Task+"/runs", `{"message":{"text":"again"}}`)
	if next.Task != r.Task || next.ID == r.ID || head.Get("Location") != "/v1/runs/"+next.ID || head.Get("Roost-Run-Id") != next.ID {
		t.Errorf(`got %+v %v, want next.Task = r.Task and next.ID != r.ID and head.Get("Location") = "/v1/runs/"+next.ID and head.Get("Roost-Run-Id") = next.ID`,
			next, head)
	}
	g.state(next.ID, "completed")
	for _, f := range journalOf(t, g.store, r.Task) {
		var e struct {
			Task string `json:"task_id"`
		}
		if err := json.Unmarshal([]byte(f.Data), &e); err != nil || e.Task != r.Task {
			t.Errorf("%v: got %s, want no error and e.Task = r.Task", err, f.Data)
		}
	}
	if p := g.denied(404, "task_not_found", "POST", "/v1/tasks/nothing/runs", `{}`); p.Task != "nothing" {
		t.Errorf("the problem names task %q", p.Task)
	}
}

// The outcome of a run is the engine's, and is on disk before anybody is told.
func TestRuleB03TheOutcomeIsDecidedOnce(t *testing.T) {
	g := newWorkingBench(t)
	r := g.started(askWhich)
	g.question(r.Task)
	s := g.follow("/v1/tasks/" + r.Task + "/events?after=0")
	s.take(3)
	s.resp.Body.Close() // a client that goes away ends nothing
	q := g.question(r.Task)
	g.did(200, nil, "POST", "/v1/questions/"+q.ID+"/answer", `{"choice":1}`)
	end := g.state(r.ID, "completed")
	if end.Outcome != "completed" || end.EndedAt == nil || end.Reason != "done" {
		t.Errorf(`got %+v, want end.Outcome = "completed" and end.EndedAt != nil and end.Reason = "done"`, end)
	}
	ends := 0
	for _, f := range journalOf(t, g.store, r.Task) {
		if f.Type == "run.ended" {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("%d ends", ends)
	}
}

// Nothing is allowed that nobody allowed: the policy of a task over HTTP asks.
func TestRuleB04NothingIsApprovedByItself(t *testing.T) {
	g := newWorkingBench(t)
	r := g.started(wantsCommand, "approve=ask")
	q := g.question(r.Task)
	if q.Kind != "approval" {
		t.Fatalf("got %+v, want q.Kind = \"approval\"", q)
	}
	effects := filepath.Join(g.dir, "ws", "effects.txt")
	if _, err := os.Stat(effects); !os.IsNotExist(err) {
		t.Fatal("the command ran unasked")
	}
	for _, body := range []string{`{}`, `{"text":"yes"}`, `{"choice":1}`, `{"always":true}`, `{"approve":"yes"}`, `{"approve":false,"always":true}`} {
		g.denied(422, "validation_failed", "POST", "/v1/questions/"+q.ID+"/answer", body)
	}
	var done api.Answered
	g.did(200, &done, "POST", "/v1/questions/"+q.ID+"/answer", `{"approve":false,"text":"not that"}`)
	if done.Approve == nil || *done.Approve || done.Text != "not that" {
		t.Errorf("got %+v, want done.Approve != nil and not *done.Approve and done.Text = \"not that\"", done)
	}
	g.state(r.ID, "completed")
	if _, err := os.Stat(effects); !os.IsNotExist(err) {
		t.Error("what was denied ran")
	}
}

// Bodies are read strictly, everything wrong is told by where it stands, and what is
// wrong begins nothing.
func TestRuleB05BodiesAreReadStrictly(t *testing.T) {
	g := newWorkingBench(t)
	before := g.count()
	for body, want := range map[string][]string{
		`{}`: {"/workspace"},
		`{"workspace":"relative","base_url":"http://user:hunter22@127.0.0.1:1"}`: {"/workspace", "/base_url"},
		`{"workspace":"relative","message":{"text":" "},"approve":"always","provider":"nobody","base_url":"file:///x","title":"` + strings.Repeat("t", 5000) + `","origin":"mars"}`: {
			"/workspace", "/approve", "/provider", "/base_url", "/message/text", "/title", "/origin"},
		`{"workspace":"/","limits":{"max_turns":-1,"max_cost":"-1","idle_timeout":"soon","total_timeout":"-5s"}}`: {
			"/limits/max_turns", "/limits/max_cost", "/limits/idle_timeout", "/limits/total_timeout"},
		`{"workspace":"/","provider":"script","model":"relative.yaml","allow":[" "]}`:                       {"/model", "/allow/0"},
		`{"workspace":"/nowhere/at/all","message":{"text":"","images":["x","data:image/png;base64,AAAA"]}}`: {"/workspace", "/message/images/0", "/message/images/1"},
		`{"workspace":"/","mesage":{}}`: {"/mesage"},
	} {
		p := g.denied(422, "validation_failed", "POST", "/v1/tasks", body)
		var at []string
		for _, e := range p.Errors {
			at = append(at, e.Parameter)
		}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("got %s\n%s, want diff = \"\"", body, diff)
		}
	}
	if p := g.denied(422, "unknown_mode", "POST", "/v1/tasks", g.task(sayDone, "go", "mode=cod")); len(p.Suggestions) == 0 || p.Suggestions[0] != "code" {
		t.Errorf("got %+v, want len(p.Suggestions) != 0 and p.Suggestions[0] = \"code\"", p)
	}
	for _, c := range [][]string{
		{"422", "validation_failed", "POST", g.path("/messages"), `{"text":"x","delivery":"slowly"}`},
		{"422", "validation_failed", "POST", g.path("/messages"), `{"images":[]}`},
		{"422", "validation_failed", "PATCH", g.path(""), `{"title":1}`},
		{"422", "validation_failed", "PATCH", g.path(""), `{"status":"completed"}`},
		{"422", "validation_failed", "PATCH", g.path(""), `{"tags":["a b"]}`},
		{"422", "validation_failed", "PATCH", g.path(""), `{"title":"  "}`},
		{"422", "validation_failed", "PATCH", g.path(""), `{"mode":null}`},
		{"422", "validation_failed", "POST", g.path("/cancel"), `{"now":true}`},
		{"422", "validation_failed", "DELETE", g.path("?force=1"), ``},
		{"400", "malformed_json", "POST", g.path("/runs"), `{"yes":tru}`},
	} {
		status := 0
		fmt.Sscan(c[0], &status)
		g.denied(status, c[1], c[2], c[3], c[4])
	}
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=latin1", "application/merge-patch+json", ""} {
		g.denied(415, "unsupported_media_type", "POST", "/v1/tasks", `{}`, "Content-Type: "+media)
	}
	g.denied(415, "unsupported_media_type", "POST", "/v1/tasks", `{}`, "Content-Encoding: gzip")
	g.did(200, nil, "PATCH", g.path(""), `{"pinned":true}`, "Content-Type: application/merge-patch+json; charset=UTF-8")
	if after := g.count(); after != before {
		t.Errorf("%d tasks became %d", before, after)
	}
}

// count is how many folders of tasks there are.
func (g *bench) count() int {
	entries, err := os.ReadDir(filepath.Join(g.store.Root(), "tasks"))
	if err != nil {
		g.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		// The index beside the tasks, its lock and what becomes it are none.
		if e.IsDir() && api.ValidTaskID(e.Name()) && !strings.HasPrefix(e.Name(), "_") && filepath.Ext(e.Name()) != ".lock" {
			n++
		}
	}
	return n
}

// A stream is only ever that of a run which is on disk; everything else is a status.
func TestRuleB06NoStreamOfWhatIsNot(t *testing.T) {
	g := newWorkingBench(t)
	before := g.count()
	stream := "Accept: " + streamMedia
	g.denied(422, "validation_failed", "POST", "/v1/tasks", `{}`, stream)
	g.denied(404, "task_not_found", "POST", "/v1/tasks/nothing/runs", `{"message":{"text":"x"}}`, stream)
	g.denied(406, "not_acceptable", "POST", g.path("/messages"), `{"text":"x"}`, stream)
	g.denied(406, "not_acceptable", "POST", "/v1/tasks", `{}`, "Accept: text/html")
	if g.count() != before {
		t.Error("something was begun")
	}
}

// An id in a path is a name and never a way; asking for what is not there makes nothing.
func TestRuleB07IDsOfChangesAreNoPaths(t *testing.T) {
	g := newWorkingBench(t)
	if err := os.MkdirAll(filepath.Join(g.dir, "secret"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := fingerprint(t, g.dir)
	for _, id := range []string{"..%2f..%2fsecret", "%2e%2e%2fsecret", "..", ".hidden", "a%2fb", "a%00b", "a%5cb", "%ff", "a%0d%0aX:y", strings.Repeat("a", 400), "nothing", "roost:nothing", "nothing.q1"} {
		for _, c := range [][2]string{
			{"POST", "/v1/tasks/%s/runs"}, {"POST", "/v1/tasks/%s/messages"}, {"POST", "/v1/tasks/%s/cancel"}, {"PATCH", "/v1/tasks/%s"}, {"DELETE", "/v1/tasks/%s"},
			{"GET", "/v1/tasks/%s/runs"}, {"GET", "/v1/tasks/%s/queue"}, {"PATCH", "/v1/tasks/%s/queue/x"}, {"DELETE", g.path("/queue/") + "%s"},
			{"GET", "/v1/runs/%s"}, {"POST", "/v1/runs/%s/cancel"}, {"GET", "/v1/questions/%s"}, {"POST", "/v1/questions/%s/answer"},
			{"POST", "/v1/trash/%s/restore"}, {"DELETE", "/v1/trash/%s"},
		} {
			body := map[string]string{"POST": `{"text":"x"}`, "PATCH": `{"text":"x"}`}[c[0]]
			if strings.HasSuffix(c[1], "runs") || strings.HasSuffix(c[1], "cancel") || strings.HasSuffix(c[1], "restore") {
				body = ""
			}
			if c[0] == "PATCH" && c[1] == "/v1/tasks/%s" {
				body = `{"title":"x"}`
			}
			resp := g.send(c[0], fmt.Sprintf(c[1], id), body)
			if resp.StatusCode != 400 && resp.StatusCode != 404 && resp.StatusCode != 405 || resp.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf(`got %s %s: %s, want (resp.StatusCode = 400 or resp.StatusCode = 404 or resp.StatusCode = 405) and resp.Header.Get("Content-Type") = "application/problem+json"`,
					c[0], fmt.Sprintf(c[1], id), resp.Status)
			}
		}
	}
	after := fingerprint(t, g.dir)
	for _, all := range []map[string]string{before, after} {
		for path := range all {
			if strings.HasPrefix(path, filepath.Join(g.dir, "cache")) {
				delete(all, path)
			}
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("something came into being:\n%s", diff)
	}
}

// A choice is a choice of this question: by its words or its number, and nothing that
// only looks like one.
func TestRuleB12AnswersAreOfTheQuestion(t *testing.T) {
	g := newWorkingBench(t)
	for _, c := range []struct{ answer, want string }{{`{"choice":2}`, "green"}, {`{"choice":"green"}`, "green"}, {`{"text":"2 coats of blue"}`, "2 coats of blue"}, {`{"text":"2"}`, "2"}} {
		r := g.started(askWhich)
		q := g.question(r.Task)
		for _, bad := range []string{`{"choice":0}`, `{"choice":3}`, `{"choice":-1}`, `{"choice":1.5}`, `{"choice":"blue"}`, `{"choice":"1"}`, `{"choice":true}`, `{"choice":[1]}`, `{"choice":1,"text":"x"}`, `{"text":" "}`, `{"seen":"now","choice":1}`} {
			g.denied(422, "validation_failed", "POST", "/v1/questions/"+q.ID+"/answer", bad)
		}
		var done api.Answered
		g.did(200, &done, "POST", "/v1/questions/"+q.ID+"/answer", c.answer)
		if done.Text != c.want || done.Run != r.ID {
			t.Errorf("%s: got %+v, want done.Text = %v and done.Run = r.ID", c.answer, done, c.want)
		}
		g.state(r.ID, "completed")
	}
}

// 19.21.12, as far as bodies go: a large one is refused by its length, and a slow one by
// time, and both make nothing.
func TestLargeAndSlowBodies(t *testing.T) {
	g := newWorkingBench(t)
	e := g.opt.Engine
	addr := g.served(func(o *testOptions) { o.Engine, o.MaxBody, o.BodyTimeout = e, 1<<20, 300_000_000 })
	before := g.count()
	for name, c := range map[string][2]string{
		"said to be large": {"Content-Length: 104857600\r\n\r\n", " 413 "},
		"found to be":      {"Transfer-Encoding: chunked\r\n\r\n200000\r\n" + strings.Repeat("x", 0x200000) + "\r\n0\r\n\r\n", " 413 "},
		"never coming":     {"Content-Length: 100\r\n\r\n{", " 408 "},
		"no chunks":        {"Transfer-Encoding: chunked\r\n\r\nzz\r\n", " 400 "},
	} {
		conn := dial(t, addr)
		fmt.Fprintf(conn, "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n%s", g.token, c[0])
		if line, _ := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, c[1]) {
			t.Errorf("%s: got %q, want strings.Contains(line, c[1])", name, line)
		}
		conn.Close()
	}
	for _, header := range []string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"} {
		g.denied(403, "origin_denied", "POST", "/v1/tasks", g.task(sayDone, "go"), header)
	}
	g.denied(401, "unauthenticated", "POST", "/v1/tasks", g.task(sayDone, "go"), "Authorization: Bearer wrong")
	if g.count() != before {
		t.Error("something was begun")
	}
}

// A server without an engine only reads, and says so.
func TestAServerThatOnlyReads(t *testing.T) {
	g := newBench(t)
	for _, c := range [][2]string{{"POST", "/v1/tasks"}, {"PATCH", g.path("")}, {"DELETE", g.path("")}, {"POST", g.path("/runs")}, {"POST", g.path("/cancel")}, {"DELETE", "/v1/server/drain"}} {
		g.denied(503, "read_only", c[0], c[1], "")
	}
	for _, path := range []string{"/v1/runs", "/v1/runs/x", g.path("/runs"), "/v1/questions", g.path("/queue"), g.path("/context"), g.path("/resume")} {
		g.denied(503, "read_only", "GET", path, "")
	}
	var page api.Page[api.DeletedTask]
	g.did(200, &page, "GET", "/v1/trash", "")
}
