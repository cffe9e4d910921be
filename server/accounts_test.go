package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/mcptest"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/server/devices"
	"github.com/roost-dev/roost/service"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}

// shared is a working bench with accounts: root, who may do everything, and ann, bob and the team red with bob in it.
type shared struct {
	*bench
	accounts             *accounts.Accounts
	root, ann, bob       string // headers
	rootID, annID, bobID string
	red                  string
}

func newSharedBench(t *testing.T, change ...func(*testOptions)) *shared {
	t.Helper()
	ctx := t.Context()
	address := pgtest.Shared(t).Database(t)
	fixture.NoError(t, database.Migrate(ctx, address))
	db := fixture.Must[*database.DB](t)(database.Open(ctx, address))
	s := &shared{accounts: accounts.New(db)}
	t.Cleanup(func() { s.accounts.Close(); db.Close() })
	s.bench = newWorkingBench(t, append(change, func(o *testOptions) { o.Accounts = s.accounts })...)
	first := fixture.Must[api.IssuedToken](t)(s.accounts.Begin(ctx, "root"))
	s.root, s.rootID = "Authorization: Bearer "+first.Secret, first.Account
	person := func(name string) (header, id string) {
		one := fixture.Must[api.Account](t)(s.accounts.Add(ctx, api.NewAccount{Kind: api.Person, Name: name}))
		return s.issued(one.ID, "main", "read", "act", "approve"), one.ID
	}
	s.ann, s.annID = person("ann")
	s.bob, s.bobID = person("bob")
	s.red = fixture.Must[api.Account](t)(s.accounts.Add(ctx, api.NewAccount{Kind: api.Team, Name: "red"})).ID
	fixture.NoError(t, s.accounts.Join(ctx, s.red, s.bobID))
	return s
}

// issued is the header of a new token.
func (s *shared) issued(account, name string, scopes ...string) string {
	s.Helper()
	return "Authorization: Bearer " + fixture.Must[api.IssuedToken](s)(s.accounts.Issue(s.Context(), account, name, api.NewToken{Scopes: scopes})).Secret
}

// start starts a task whose model follows a script, and waits until it waits or ends.
func (s *shared) start(who, script, words, more string) (started api.Started) {
	s.Helper()
	s.did(http.StatusCreated, &started, "POST", "/v1/tasks", fmt.Sprintf(`{"workspace":%q,"provider":"script","model":%q,"message":{"text":%q}%s}`,
		filepath.Join(s.dir, "ws"), s.model(script), words, more), who)
	s.did(http.StatusOK, nil, "GET", "/v1/runs/"+started.RunID, "", who, "Prefer: wait=30")
	return started
}

// share sets who may reach a task.
func (s *shared) share(status int, who, task string, a api.Access) {
	s.Helper()
	s.did(status, nil, "PUT", "/v1/tasks/"+task+"/access", string(fixture.Must[[]byte](s)(json.Marshal(a))), who)
}

// secret is a word of ann's tasks that bob must meet nowhere.
const secret = "xyzzy"

// Every route gives somebody else nothing of a task that is not shared: as if it did not exist.
func TestEveryRouteHidesTasksOfOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("one request after the other, which the race detector makes ten times as slow")
	}
	s := newSharedBench(t)
	made := s.start(s.ann, wantsCommand, secret, `,"title":"`+secret+` title"`)
	var asked api.Page[api.Question]
	s.did(http.StatusOK, &asked, "GET", "/v1/questions", "", s.ann)
	gone := s.start(s.ann, sayDone, secret+" gone", "")
	s.did(http.StatusOK, nil, "DELETE", "/v1/tasks/"+gone.Task, "", s.ann)
	var trash api.Page[api.DeletedTask]
	s.did(http.StatusOK, &trash, "GET", "/v1/trash", "", s.ann)
	if len(asked.Items) != 1 || len(trash.Items) != 1 {
		t.Fatalf("got %d questions and %d deleted tasks of ann, want 1 and 1", len(asked.Items), len(trash.Items))
	}
	s.did(http.StatusOK, nil, "PUT", "/v1/draft", `{"text":"`+secret+`","base":""}`, s.ann)
	s.did(http.StatusOK, nil, "PUT", "/v1/tasks/"+made.Task+"/draft", `{"text":"`+secret+`","base":""}`, s.ann)
	names := strings.NewReplacer("{id}", made.Task, "{rid}", made.RunID, "{qid}", asked.Items[0].ID, "{name}", trash.Items[0].Name,
		"{number}", "1", "{image}", "0", "{input}", "x", "{c}", "1", "{picture}", "sha256:"+strings.Repeat("0", 64))
	bodies := map[string]string{ // where the example is no valid body
		"POST /v1/tasks/{id}/runs": `{"message":{"text":"on"}}`, "POST /v1/tasks/{id}/head": `{"branch":"b1"}`,
		"POST /v1/tasks/{id}/condense": `{}`, "PATCH /v1/tasks/{id}/queue/{input}": `{"text":"x"}`, "PUT /v1/tasks/{id}/access": `{"owner":"` + s.bobID + `"}`,
		"POST /api/questions/{qid}/answer": `{"answer":"yes"}`,
	}
	queries := map[string]string{
		"GET /v1/tasks/{id}/compare": "?with=" + made.Task, "GET /v1/tasks/{id}/export": "?format=md", "GET /v1/search": "?q=" + secret,
		"GET /v1/tasks/{id}/checkpoints/{c}/diff": "?to=now", "GET /v1/completions": "?kind=mention&text=" + secret,
		"GET /v1/usage": "?by=task", "GET /v1/list": "?first=10", "GET /api/questions": "?jobId=" + made.RunID, "DELETE /v1/tasks/{id}": "?subtasks=delete",
		"GET /v1/tasks/{id}/events": "?after=0", "GET /v1/runs/{rid}/events": "?after=0",
	}
	reader := s.issued(s.bobID, "reader", "read")
	tested := 0
	for _, rt := range routes() {
		scope, _ := rt.needs()
		aTask := slices.ContainsFunc(placesOf(rt.path), func(n string) bool { return slices.Contains([]string{"id", "rid", "qid", "name"}, n) })
		if rt.open || rt.on == "GET /v1/events" || !aTask && rt.method != http.MethodGet {
			continue // the stream has a test of its own; a change of nothing that is named is below
		}
		body := ""
		if rt.body != nil {
			if body = bodies[rt.on]; body == "" {
				if body = rt.example; body == "" {
					body = "{}"
				}
			}
		}
		ask := func(who string) (int, string) {
			resp := s.send(rt.method, names.Replace(rt.path)+queries[rt.on], body, who)
			return resp.StatusCode, string(fixture.Must[[]byte](t)(io.ReadAll(resp.Body)))
		}
		tested++
		status, got := ask(s.bob)
		switch {
		case scope == accounts.Admin:
			if status != http.StatusForbidden {
				t.Errorf("%s: got %d for somebody without the scope, want 403\n%s", rt.on, status, got)
			}
			continue
		case aTask && status != http.StatusNotFound:
			t.Errorf("%s: got %d for a task of somebody else, want 404\n%s", rt.on, status, got)
		}
		if strings.Contains(got, secret) || !aTask && strings.Contains(got, made.Task) {
			t.Errorf("%s: got something of a task of somebody else\n%s", rt.on, got)
		}
		if status, got := ask(reader); rt.method != http.MethodGet && status != http.StatusForbidden {
			t.Errorf("%s: got %d for a token that may only read, want 403\n%s", rt.on, status, got)
		}
	}
	for _, path := range []string{"/v1/sources", "/v1/tasks?with=found", "/v1/list?first=10", "/v1/search?q=paint&with=found"} {
		got := string(s.get(path, s.bob))
		if !strings.Contains(got, `"tasks":0,`) || regexp.MustCompile(`"(tasks|empty|damaged|bytes|of|read)":[1-9]`).MatchString(got) {
			t.Errorf("GET %s: got %s, want no count of tasks that bob may not find", path, got)
		}
	}
	if tested < 70 {
		t.Errorf("got %d routes, want at least 70: the table is not what this test thinks", tested)
	}
	for _, change := range []struct{ path, body string }{
		{"/v1/purges", `{"names":["` + trash.Items[0].Name + `"]}`},
		{"/chat/stream", `{"task":"on","taskId":"` + made.Task + `","restartTask":true}`},
	} {
		resp := s.send("POST", change.path, change.body, s.bob)
		if got := string(fixture.Must[[]byte](t)(io.ReadAll(resp.Body))); resp.StatusCode == http.StatusOK || strings.Contains(got, secret) {
			t.Errorf("POST %s: got %d, want a refusal\n%s", change.path, resp.StatusCode, got)
		}
	}
	// What was asked of bob's tries has changed nothing, and ann meets all of it.
	for _, path := range []string{"/v1/tasks", "/v1/search?q=" + secret, "/v1/trash", "/v1/draft", "/v1/tasks/" + made.Task + "/messages", "/v1/undo"} {
		if got := string(s.get(path, s.ann)); !strings.Contains(got, secret) {
			t.Errorf("GET %s: ann does not meet her own task\n%s", path, got)
		}
	}
	if got := string(s.get("/v1/tasks", s.root)); strings.Contains(got, secret) || !strings.Contains(got, s.id) {
		t.Errorf("got %s for an administrator, want the task of nobody, and none of ann's", got)
	}
}

// Shares, by steps: hidden, read, act, hidden again. What a share does not allow is refused, and what does not exist for
// someone is not found.
func TestShares(t *testing.T) {
	s := newSharedBench(t)
	task := s.start(s.ann, sayDone, "build a shed", "").Task
	path := "/v1/tasks/" + task
	rights := func(see, act, own int) {
		t.Helper()
		for _, try := range []struct {
			want               int
			method, path, body string
		}{
			{see, "GET", path, ""},
			{see, "GET", path + "/messages", ""},
			{act, "PATCH", path, `{"pinned":true}`},
			{own, "PUT", path + "/access", `{"owner":"` + s.bobID + `"}`},
			{own, "DELETE", path, ""},
		} {
			if got := s.send(try.method, try.path, try.body, s.bob).StatusCode; got != try.want {
				t.Errorf("%s %s: got %d, want %d", try.method, try.path, got, try.want)
			}
		}
	}
	with := func(id, right string) api.Access {
		return api.Access{Owner: s.annID, Shares: []api.Share{{With: id, Right: right}}}
	}
	rights(404, 404, 404)
	for _, nobody := range []string{"nobody", "\x00"} {
		s.share(http.StatusNotFound, s.ann, task, with(nobody, api.ShareRead))
	}
	s.share(http.StatusOK, s.ann, task, with(s.red, api.ShareRead))
	rights(200, 403, 403)
	s.did(http.StatusOK, nil, "POST", path+"/undo", `{}`, s.ann)
	rights(404, 404, 404)
	s.did(http.StatusOK, nil, "POST", path+"/redo", `{}`, s.ann)
	rights(200, 403, 403)
	s.share(http.StatusOK, s.ann, task, with(s.bobID, api.ShareAct))
	s.did(http.StatusForbidden, nil, "POST", path+"/undo", `{}`, s.bob) // it was the owner's
	rights(200, 200, 403)
	s.did(http.StatusOK, nil, "POST", path+"/undo", `{}`, s.bob) // the pin was his
	s.share(http.StatusNotFound, s.ann, task, with("p-nobody", api.ShareAct))
	s.share(http.StatusUnprocessableEntity, s.ann, task, with(s.bobID, "own"))
	eve := fixture.Must[api.Account](t)(s.accounts.Add(t.Context(), api.NewAccount{Kind: api.Person, Name: "eve"})).ID
	s.share(http.StatusOK, s.ann, task, with(eve, api.ShareRead))
	fixture.NoError(t, s.accounts.Remove(t.Context(), eve))
	both := with(eve, api.ShareRead) // whoever adds a share sends those that are there
	both.Shares = append(both.Shares, api.Share{With: s.bobID, Right: api.ShareAct})
	s.share(http.StatusOK, s.ann, task, both)
	rights(200, 200, 403)
	s.share(http.StatusNotFound, s.ann, task, api.Access{Owner: eve})
	s.share(http.StatusOK, s.ann, task, api.Access{Owner: s.bobID})
	if got := s.send("GET", path, "", s.ann).StatusCode; got != 404 {
		t.Errorf("got %d for who has given the task away, want 404", got)
	}
}

// What one person's task orders is obeyed for nobody else, unless they say so; the line is task.received.
func TestNobodyElsesOrders(t *testing.T) {
	s := newSharedBench(t)
	task := s.start(s.ann, sayDone, "build a shed", `,"approve":"all","allow":["make *"]`).Task
	path := "/v1/tasks/" + task
	s.share(http.StatusOK, s.ann, task, api.Access{Owner: s.annID, Shares: []api.Share{{With: s.bobID, Right: api.ShareAct}}})
	var p api.Problem
	body := fmt.Sprintf(`{"model":%q,"message":{"text":"go on"}`, s.model(sayDone))
	s.did(http.StatusConflict, &p, "POST", path+"/runs", body+`}`, s.bob)
	if p.Code != "untrusted_settings" || !strings.Contains(p.Detail, "somebody else") {
		t.Errorf("got %+v, want untrusted_settings", p)
	}
	var fork api.ForkResult
	s.did(http.StatusCreated, &fork, "POST", path+"/forks", `{}`, s.bob)
	got := settingsOf(s, fork.ID)
	if got.Approve != "" || len(got.Allow) != 0 || got.owner != s.bobID {
		t.Errorf("got %+v of bob's fork, want bob's, without ann's policy", got)
	}
	var run api.Run
	s.did(http.StatusAccepted, &run, "POST", path+"/runs", body+`,"own_settings":true}`, s.bob)
	s.did(http.StatusOK, nil, "GET", "/v1/runs/"+run.ID, "", s.bob, "Prefer: wait=30")
	if got := settingsOf(s, task); got.Approve != "" || len(got.Allow) != 0 || got.person != s.bobID || got.owner != s.annID {
		t.Errorf("got %+v after bob continued it, want ann's task, without her policy", got)
	}
	s.did(http.StatusAccepted, &run, "POST", path+"/runs", body+`}`, s.bob) // it holds what bob ordered now
	s.did(http.StatusOK, nil, "GET", "/v1/runs/"+run.ID, "", s.bob, "Prefer: wait=30")
}

type heldSettings struct {
	Approve       string
	Allow         []string
	owner, person string
}

func settingsOf(s *shared, id string) (out heldSettings) {
	s.Helper()
	for _, f := range journalOf(s, s.store, id) {
		var e struct {
			Settings *struct {
				Approve string   `json:"approve"`
				Allow   []string `json:"allow"`
			} `json:"settings"`
			Access *api.Access `json:"access"`
			Person string      `json:"person"`
		}
		fixture.NoError(s, json.Unmarshal([]byte(f.Data), &e))
		if e.Settings != nil && (f.Type == "task.created" || f.Type == "task.received" || f.Type == "task.forked" || f.Type == "task.changed") {
			out.Approve, out.Allow = e.Settings.Approve, e.Settings.Allow
		}
		switch {
		case e.Access != nil:
			out.owner = e.Access.Owner
			if f.Type == "task.created" {
				out.person = e.Access.Owner
			}
		case f.Type == "task.forked":
			out.owner, out.person = e.Person, e.Person
		case f.Type == "task.received":
			out.person = e.Person
		}
	}
	return out
}

// A page needs the scope that its document needs.
func TestPagesNeedTheirScope(t *testing.T) {
	s := newSharedBench(t, func(o *testOptions) { o.Pages = pages{} })
	admin := s.issued(s.rootID, "all", "read", "admin")
	for path, want := range map[string][2]int{"/": {200, 200}, "/devices": {403, 200}} {
		for i, who := range []string{s.bob, admin} {
			if got := s.ask("GET", path, who).StatusCode; got != want[i] {
				t.Errorf("%s: got %d, want %d for %s", path, got, want[i], []string{"bob", "an administrator"}[i])
			}
		}
	}
}

// Whoever may only read sees no folder of the server that a request names.
func TestReadersNameNoFolder(t *testing.T) {
	s := newSharedBench(t)
	task := s.start(s.ann, sayDone, "build a shed", "").Task
	reader, worker := s.issued(s.annID, "reader", "read"), s.issued(s.annID, "worker", "read", "act")
	dir := "workspace=" + url.QueryEscape(filepath.Join(s.dir, "ws"))
	for _, path := range []string{"/v1/completions?kind=file&", "/v1/modes?", "/v1/mcp-servers?", "/v1/tasks/" + task + "/files?",
		"/v1/tasks/" + task + "/context?", "/v1/tasks/" + task + "/resume?"} {
		if got := s.send("GET", path+dir, "", reader).StatusCode; got != http.StatusForbidden {
			t.Errorf("%s: got %d for a reader, want 403", path+dir, got)
		}
		for who, header := range map[string]string{"worker": worker, "operator": "Authorization: Bearer " + s.token} {
			if got := s.send("GET", path+dir, "", header).StatusCode; got == http.StatusForbidden {
				t.Errorf("%s: got 403 for the %s", path+dir, who)
			}
		}
	}
	s.did(http.StatusOK, nil, "GET", "/v1/tasks/"+task+"/files", "", reader)
	s.did(http.StatusOK, nil, "GET", "/v1/tasks/"+task+"/completions?kind=file", "", reader)
}

// Whoever may act and not approve decides no approval, in whichever way an approval can be given.
func TestApprovalsNeedTheirScope(t *testing.T) {
	s := newSharedBench(t)
	worker := s.issued(s.annID, "worker", "read", "act")
	task := s.start(worker, wantsCommand, "one", "")
	path := "/v1/tasks/" + task.Task
	var asked api.Page[api.Question]
	s.did(http.StatusOK, &asked, "GET", "/v1/questions", "", worker)
	if len(asked.Items) != 1 {
		t.Fatalf("got %d questions, want 1", len(asked.Items))
	}
	for _, try := range []struct{ method, path, body string }{
		{"POST", "/v1/questions/" + asked.Items[0].ID + "/answer", `{"approve":true}`},
		{"POST", path + "/messages", `{"text":"yes"}`},
		{"POST", "/api/questions/" + asked.Items[0].ID + "/answer", `{"answer":"yes"}`},
		{"PATCH", path, `{"approve":"all"}`},
		{"POST", "/v1/tasks", `{"workspace":"` + s.dir + `","allow":["*"]}`},
		{"POST", path + "/runs", `{"trust_settings":true}`},
		{"POST", path + "/runs", `{"base_url":"http://127.0.0.1:9/v1"}`},
		{"POST", path + "/forks", `{"base_url":"http://127.0.0.1:9/v1"}`},
		{"POST", path + "/condense", `{"base_url":"http://127.0.0.1:9/v1"}`},
	} {
		if resp := s.send(try.method, try.path, try.body, worker); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s %s: got %d, want 403\n%s", try.method, try.path, try.body, resp.StatusCode, fixture.Must[[]byte](t)(io.ReadAll(resp.Body)))
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "ws", "effects.txt")); err == nil {
		t.Error("the command ran")
	}
	s.did(http.StatusOK, nil, "POST", "/v1/questions/"+asked.Items[0].ID+"/answer", `{"approve":false}`, s.ann)
}

// The events of all tasks are those that their reader may see, also while shares change.
func TestEventsOfOthers(t *testing.T) {
	s := newSharedBench(t)
	hers := s.start(s.ann, sayDone, secret, "").Task
	stream := s.follow("/v1/events?after=0", s.bob)
	var seen strings.Builder
	until := func(task string) {
		t.Helper()
		for {
			f, ok := stream.next()
			if !ok {
				t.Fatal("the stream ended")
			}
			if strings.Contains(f.Data, task) {
				return
			}
			seen.WriteString(f.Data)
		}
	}
	s.did(http.StatusOK, nil, "PATCH", "/v1/tasks/"+hers, `{"title":"`+secret+`"}`, s.ann)
	// Whoever may read the task may read its past: the stream must be past it before the task is shared.
	until(s.start(s.bob, sayDone, "the beginning", "").Task)
	s.share(http.StatusOK, s.ann, hers, api.Access{Owner: s.annID, Shares: []api.Share{{With: s.bobID, Right: api.ShareRead}}})
	s.did(http.StatusOK, nil, "PATCH", "/v1/tasks/"+hers, `{"title":"a shared title"}`, s.ann)
	s.share(http.StatusOK, s.ann, hers, api.Access{Owner: s.annID})
	s.did(http.StatusOK, nil, "PATCH", "/v1/tasks/"+hers, `{"title":"`+secret+` again"}`, s.ann)
	until(s.start(s.bob, sayDone, "the end", "").Task)
	if got := seen.String(); strings.Contains(got, secret) {
		t.Errorf("got events of a task that was not shared:\n%s", got)
	}
}

// Deletions and restores are events for those who may see the task, and for the operator.
func TestDeletionsAreEvents(t *testing.T) {
	s := newSharedBench(t)
	hers, his := s.start(s.ann, sayDone, "paint", "").Task, s.start(s.bob, sayDone, "weed", "").Task
	const path = "/v1/events?types=task.*"
	ann, bob, operator := s.follow(path, s.ann), s.follow(path, s.bob), s.follow(path)
	is := func(of *stream, want string) {
		t.Helper()
		if _, e := of.told(); e.Type+" "+e.Task != want {
			t.Errorf("got %s of %s, want %s", e.Type, e.Task, want)
		}
	}
	for _, c := range [][3]string{
		{"DELETE", "/v1/tasks/" + hers, "task.deleted"},
		{"POST", "/v1/trash/" + hers + "/restore", "task.changed"},
		{"DELETE", "/v1/tasks/" + hers, "task.deleted"},
		{"DELETE", "/v1/trash/" + hers, "task.deleted"},
	} {
		s.did(http.StatusOK, nil, c[0], c[1], "", s.ann)
		is(ann, c[2]+" "+hers)
		is(operator, c[2]+" "+hers)
	}
	s.did(http.StatusOK, nil, "DELETE", "/v1/tasks/"+his, "", s.bob)
	is(bob, "task.deleted "+his) // and nothing of hers before it
	is(operator, "task.deleted "+his)
}

// The older call shows nothing of a task that is not shared with its caller any more.
func TestTheOlderCallAfterAShareEnded(t *testing.T) {
	s := newSharedBench(t)
	hers := s.start(s.ann, `
- tools: [{name: ask_followup_question, input: {question: "Which?", follow_up: [{text: red}, {text: green}]}}]
- tools: [{name: ask_followup_question, input: {question: "When?", follow_up: [{text: now}, {text: later}]}}]
- tools: [{name: attempt_completion, input: {result: `+secret+`}}]
`, "paint", "").Task
	s.share(http.StatusOK, s.ann, hers, api.Access{Owner: s.annID, Shares: []api.Share{{With: s.bobID, Right: api.ShareAct}}})
	stream := bufio.NewReader(s.send("POST", "/chat/stream", `{"task":"red","taskId":"`+hers+`","restartTask":true}`, s.bob).Body)
	seen := ""
	for err := error(nil); err == nil; {
		line := ""
		line, err = stream.ReadString('\n')
		if seen += line; strings.Contains(line, "When?") {
			s.share(http.StatusOK, s.ann, hers, api.Access{Owner: s.annID})
			s.did(http.StatusAccepted, nil, "POST", "/v1/tasks/"+hers+"/messages", `{"text":"now"}`, s.ann)
		}
	}
	if !strings.Contains(seen, "When?") || !strings.Contains(seen, "stream_end") || strings.Contains(seen, secret) {
		t.Errorf("got %s, want the second question, nothing behind it, and the end of the stream", seen)
	}
}

// While the database does not answer, the stream cannot decide who may see a task. It must not remember that as "no".
func TestEventsWhoseReaderCannotBeJudged(t *testing.T) {
	gone := errors.New("the database is away")
	var away error
	s := newSharedBench(t, func(o *testOptions) { o.Database = func(context.Context) error { return away } })
	hers := s.start(s.ann, sayDone, "build a shed", "").Task
	shows := s.srv.shows(service.As(t.Context(), accounts.Caller{Account: s.annID, Scopes: accounts.Scopes}, accounts.Read))
	file := filepath.Join(s.store.TasksDir(), hers, "journal.jsonl")
	fixture.NoError(t, os.Rename(file, file+".away"))
	fixture.NoError(t, os.Mkdir(file, 0o700)) // cannot be read
	away = gone
	if may, err := shows(hers, "message.added"); may || !errors.Is(err, gone) {
		t.Errorf("without the database: got %v %v, want its error", may, err)
	}
	away = nil
	fixture.NoError(t, os.Remove(file))
	fixture.NoError(t, os.Rename(file+".away", file))
	if may, err := shows(hers, "run.ended"); !may || err != nil {
		t.Errorf("with the database again: got %v %v, want true", may, err)
	}
}

// The audit trail has who did what to which task from where, and what came of it; only administrators read it.
func TestAuditTrail(t *testing.T) {
	s := newSharedBench(t, func(o *testOptions) { o.Group = &Group{Token: "of-the-group"} })
	task := s.start(s.ann, sayDone, "build a shed", "").Task
	s.send("DELETE", "/v1/tasks/"+task, "", s.bob)
	s.send("PATCH", "/v1/tasks/roost:"+task, `{"title":"mine"}`, s.bob) // as the commands name it
	s.send("PATCH", "/v1/settings", `{}`, s.bob)
	s.get("/v1/tasks/"+task+"/export?format=md", s.ann)
	part := task[:len(task)-4] // names the task, too
	s.did(http.StatusOK, nil, "PATCH", "/v1/tasks/"+part, `{"title":"ours"}`, s.ann)
	s.did(http.StatusOK, nil, "POST", "/v1/tasks/"+part+"/undo", "{}", s.ann)
	s.refused(http.StatusForbidden, "scope_missing", "GET", "/v1/audit", s.ann)
	for _, name := range []string{"a%00b", "a%ffb"} { // no text of a database
		s.refused(http.StatusBadRequest, "bad_id", "DELETE", "/v1/tasks/"+name, s.ann)
		var none api.Page[api.AuditEntry]
		if s.did(http.StatusOK, &none, "GET", "/v1/audit?task="+name+"&account="+name, "", s.root); len(none.Items) != 0 {
			t.Errorf("audit trail of %s: got %d entries, want none", name, len(none.Items))
		}
	}
	for by, want := range map[string]int{"?task=" + task: 6, "?account=" + s.annID: 5} {
		var found api.Page[api.AuditEntry]
		if s.did(http.StatusOK, &found, "GET", "/v1/audit"+by, "", s.root); len(found.Items) != want {
			t.Errorf("audit trail %s: got %d entries, want %d", by, len(found.Items), want)
		}
	}
	var page api.Page[api.AuditEntry]
	s.did(http.StatusOK, &page, "GET", "/v1/audit", "", s.root)
	var got []string
	for _, e := range slices.Backward(page.Items) {
		status := 0
		if e.Status != nil {
			status = *e.Status
		}
		got = append(got, fmt.Sprint(e.Act, " ", map[string]string{s.annID: "ann", s.bobID: "bob", s.rootID: "root"}[e.Account], " ", e.Task == task, " ", status))
		if e.Address != "127.0.0.1" || e.Token == "" || e.Request == "" || e.At == "" {
			t.Errorf("got %+v, want address, token, request and time", e)
		}
	}
	want := []string{"POST /v1/tasks ann true 201", "DELETE /v1/tasks/{id} bob true 404", "PATCH /v1/tasks/{id} bob true 404", "PATCH /v1/settings bob false 403",
		"GET /v1/tasks/{id}/export ann true 200", "PATCH /v1/tasks/{id} ann true 200", "POST /v1/tasks/{id}/undo ann true 200",
		"GET /v1/audit ann false 403"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// The server that passed the request on has recorded it.
	s.did(http.StatusOK, nil, "PATCH", "/v1/tasks/"+task, `{"title":"theirs"}`, "Authorization: Bearer of-the-group",
		tokenHeader+": "+page.Items[len(page.Items)-1].Token, hopHeader+": 1")
	if s.did(http.StatusOK, &page, "GET", "/v1/audit", "", s.root); len(page.Items) != len(want) {
		t.Errorf("after a request that was passed on: got %d entries, want %d", len(page.Items), len(want))
	}
	if s.did(http.StatusOK, &page, "GET", "/v1/audit?cursor=3000000000&limit=1", "", s.root); len(page.Items) != 1 { // more entries than an int4 counts
		t.Errorf("got %d entries before the three billionth, want 1", len(page.Items))
	}
}

// A token that is revoked ends at once, with the streams that it opened, and the log-ins that it made.
func TestRevokedTokens(t *testing.T) {
	s := newSharedBench(t)
	stream, cookie := s.follow("/v1/events", s.bob), s.browser(s.bob)
	var me api.Me
	s.did(http.StatusOK, &me, "GET", "/v1/me", "", "Authorization: ", cookie)
	if me.Account != s.bobID || me.Operator {
		t.Errorf("got %+v for bob's browser, want bob", me)
	}
	s.did(http.StatusNoContent, nil, "DELETE", "/v1/accounts/"+s.bobID+"/tokens/main", "", s.root)
	s.refused(http.StatusUnauthorized, "unauthenticated", "GET", "/v1/tasks", s.bob)
	s.refused(http.StatusUnauthorized, "unauthenticated", "GET", "/v1/tasks", "Authorization: ", cookie)
	for {
		if f, ok := stream.next(); !ok {
			break
		} else if strings.Contains(f.Data, secret) {
			t.Error(f)
		}
	}
}

// browser logs a browser in for an account, and returns its cookie as a header.
func (s *shared) browser(who string) string {
	s.Helper()
	c := s.logIn(who, "").Cookies()[0]
	return "Cookie: " + c.Name + "=" + c.Value
}

// logIn follows a log-in link of an account in a browser that has a cookie; "" = it has none.
func (s *shared) logIn(who, cookie string) *http.Response {
	s.Helper()
	s.srv.opt.URL = s.url
	var login api.Login
	s.did(http.StatusCreated, &login, "POST", "/v1/server/logins", "", who)
	resp := s.ask("GET", strings.TrimPrefix(login.URL, s.url), "Authorization: ", cookie)
	if len(resp.Cookies()) != 1 {
		s.Fatalf("the log-in link: got %s and no cookie", resp.Status)
	}
	return resp
}

// A browser keeps words that the server does not have yet. Another account must not get them as its own.
func TestALogInForAnotherAccountClearsTheBrowser(t *testing.T) {
	s := newSharedBench(t)
	cookie := s.browser(s.bob)
	for _, tt := range []struct{ who, want string }{{s.bob, ""}, {s.ann, `"cache", "storage"`}} {
		if got := s.logIn(tt.who, cookie).Header.Get("Clear-Site-Data"); got != tt.want {
			t.Errorf("got Clear-Site-Data %q, want %q", got, tt.want)
		}
	}
	// The server forgets whose a revoked log-in was.
	name, _, _ := strings.Cut(cookie[strings.IndexByte(cookie, '=')+1:], ".")
	s.did(http.StatusOK, nil, "DELETE", "/v1/devices/"+name, "", "Authorization: Bearer "+s.token)
	if got, want := s.logIn(s.bob, cookie).Header.Get("Clear-Site-Data"), `"cache", "storage"`; got != want {
		t.Errorf("after the log-in of ann was revoked, bob logs in: got Clear-Site-Data %q, want %q", got, want)
	}
}

// A log-in that ends while a request with it is checked makes nobody the operator.
func TestALogInThatEndsDuringARequest(t *testing.T) {
	s := newSharedBench(t)
	var left, late atomic.Int64 // the clock is left more times before it is late
	s.srv.opt.Devices = devices.New(s.dir, s.token, func() time.Time {
		if left.Add(-1) >= 0 {
			return time.Now()
		}
		return time.Now().AddDate(0, 0, int(late.Load()))
	})
	cookie := s.browser(s.bob)
	late.Store(31)
	for n := range int64(6) {
		left.Store(n)
		resp := s.ask("GET", "/v1/me", "Authorization: ", cookie)
		var me api.Me
		err := json.NewDecoder(resp.Body).Decode(&me)
		if resp.StatusCode != http.StatusUnauthorized && (resp.StatusCode != http.StatusOK || err != nil || me.Account != s.bobID || me.Operator) {
			t.Errorf("the log-in ends after %d looks at the clock: got %s %+v %v, want bob or 401", n, resp.Status, me, err)
		}
	}
}

// While the database does not answer, a log-in has not ended: a page that follows the server tries again.
func TestLogInsWithoutTheirDatabase(t *testing.T) {
	s := newSharedBench(t)
	address := pgtest.Shared(t).Database(t)
	fixture.NoError(t, database.Migrate(t.Context(), address))
	db := fixture.Must[*database.DB](t)(database.Open(t.Context(), address))
	s.srv.opt.Devices = devices.InDatabase(db, s.token, time.Now)
	cookie := s.browser(s.bob)
	db.Close()
	s.srv.opt.Devices = devices.InDatabase(db, s.token, time.Now)
	s.refused(http.StatusServiceUnavailable, "accounts_unreachable", "GET", "/v1/tasks", "Authorization: ", cookie)
}

// Two people who use one idempotency key do two things.
func TestKeysOfOthers(t *testing.T) {
	s := newSharedBench(t)
	body := fmt.Sprintf(`{"workspace":%q,"provider":"script","model":%q}`, filepath.Join(s.dir, "ws"), s.model(sayDone))
	var hers, his, again api.Started
	s.did(http.StatusCreated, &hers, "POST", "/v1/tasks", body, s.ann, "Idempotency-Key: 1")
	s.did(http.StatusCreated, &his, "POST", "/v1/tasks", body, s.bob, "Idempotency-Key: 1")
	s.did(http.StatusCreated, &again, "POST", "/v1/tasks", body, s.ann, "Idempotency-Key: 1")
	if hers.Task == his.Task || hers.Task != again.Task {
		t.Errorf("got %s, %s and %s, want two tasks, ann's twice", hers.Task, his.Task, again.Task)
	}
}

// Every method of the service hides them, too: pages and other callers ask it without a route. A method that is added is
// called here with whatever its arguments allow.
func TestEveryMethodHidesTasksOfOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("one call after the other, which the race detector makes ten times as slow")
	}
	s := newSharedBench(t)
	made := s.start(s.ann, wantsCommand, secret, `,"title":"`+secret+` title"`)
	var asked api.Page[api.Question]
	s.did(http.StatusOK, &asked, "GET", "/v1/questions", "", s.ann)
	_, bobs, _ := strings.Cut(s.bob, "Bearer ")
	_, anns, _ := strings.Cut(s.ann, "Bearer ")
	whole := []string{ // what is done to the whole store or its settings, by routes that need the scope admin
		"Import", "Check", "Collect", "TrustRoot", "UserSettings", "ChangeSettings", "SetKey", "RemoveKey", "AddMCPServer",
		"RemoveMCPServer", "AddSource", "RemoveSource", "TestProvider",
	}
	met := func(secretOf string) (found, called int) {
		c := fixture.Must[accounts.Caller](t)(s.accounts.BySecret(t.Context(), secretOf))
		ctx := service.As(t.Context(), c, accounts.Read)
		contexts := reflect.TypeFor[context.Context]()
		of := reflect.ValueOf(s.srv.service)
		for i := range of.NumMethod() {
			name, method := of.Type().Method(i).Name, of.Method(i)
			if method.Type().NumIn() == 0 || method.Type().In(0) != contexts || slices.Contains(whole, name) {
				continue
			}
			called++
			for _, id := range []string{made.Task, made.RunID, asked.Items[0].ID} {
				args := make([]reflect.Value, method.Type().NumIn())
				for n := range args {
					switch in := method.Type().In(n); {
					case in == contexts:
						args[n] = reflect.ValueOf(ctx)
					case in.Kind() == reflect.String && n < 3:
						args[n] = reflect.ValueOf(id).Convert(in)
					case in == reflect.TypeFor[[]string]():
						args[n] = reflect.ValueOf([]string{id})
					default:
						args[n] = reflect.Zero(in)
					}
				}
				for _, out := range method.Call(args) {
					text := fmt.Sprintf("%+v", out.Interface())
					if doc, err := json.Marshal(out.Interface()); err == nil {
						text += string(doc)
					}
					if strings.Contains(text, secret) {
						if found++; secretOf == bobs {
							t.Errorf("%s(%s): got something of a task of somebody else\n%s", name, id, text)
						}
					}
				}
			}
		}
		return found, called
	}
	if _, called := met(bobs); called < 60 {
		t.Errorf("got %d methods, want at least 60: the service is not what this test thinks", called)
	}
	if found, _ := met(anns); found < 10 {
		t.Errorf("ann meets her task in %d answers, want at least 10: the test would find nothing", found)
	}
}
