package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/store/labels"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// A task without a message is there, has the settings that it was given, and runs later.
func TestATaskThatIsIdle(t *testing.T) {
	g := newWorkingBench(t)
	var r made
	head := g.did(201, &r, "POST", "/v1/tasks", g.task(sayDone, "", "title=the fence", "mode=ask"))
	if r.ID != "" || r.State != "idle" || head.Get("Roost-Run-Id") != "" || head.Get("Location") != "/v1/tasks/"+r.Task {
		t.Fatalf(`got %+v %v, want r.ID = "" and r.State = "idle" and head.Get("Roost-Run-Id") = "" and head.Get("Location") = "/v1/tasks/"+r.Task`,
			r, head)
	}
	var sum api.Summary
	g.did(200, &sum, "GET", "/v1/tasks/"+r.Task, "")
	if sum.Title != "the fence" || sum.Mode != "ask" || sum.Provider != "script" || sum.Origin != "api" {
		t.Errorf(`got %+v, want sum.Title = "the fence" and sum.Mode = "ask" and sum.Provider = "script" and sum.Origin = "api"`,
			sum)
	}
	g.denied(409, "run_not_active", "POST", "/v1/tasks/"+r.Task+"/cancel", "")
	var run api.Run
	g.did(202, &run, "POST", "/v1/tasks/"+r.Task+"/runs", `{"message":{"text":"now"}}`)
	g.state(run.ID, "completed")
	var page api.Page[api.Run]
	g.did(200, &page, "GET", "/v1/tasks/"+r.Task+"/runs", "")
	if len(page.Items) != 1 || page.Items[0].ID != run.ID {
		t.Errorf("got %+v, want len(page.Items) = 1 and page.Items[0].ID = run.ID", page)
	}
}

// A patch changes what it names: null takes away, what is absent stays.
func TestPatches(t *testing.T) {
	g := newWorkingBench(t)
	other := g.model(sayDone)
	var was, is api.Summary
	g.did(200, &was, "GET", g.path(""), "")
	for _, c := range []struct {
		patch string
		check func() bool
	}{
		{`{"title":" the fence "}`, func() bool { return is.Title == "the fence" && !is.Pinned }},
		{`{"tags":["b","a"],"pinned":true}`, func() bool { return slices.Equal(is.Tags, []string{"b", "a"}) && is.Pinned && is.Title == "the fence" }},
		{`{"tags":["c","a"]}`, func() bool { return slices.Equal(sorted(is.Tags), []string{"a", "c"}) && is.Pinned }},
		{`{"mode":"ask"}`, func() bool { return is.Mode == "ask" && is.Model == was.Model }},
		{`{"model":"` + other + `","approve":"read","limits":{"max_turns":3}}`, func() bool { return is.Model == other && is.Mode == "ask" }},
		{`{"title":null,"tags":null,"pinned":null}`, func() bool { return is.Title == was.Title && len(is.Tags) == 0 && !is.Pinned }},
		{`{}`, func() bool { return is.Mode == "ask" }},
	} {
		is = api.Summary{}
		if g.did(200, &is, "PATCH", g.path(""), c.patch); !c.check() {
			t.Errorf("%s: got %+v, want c.check()", c.patch, is)
		}
	}
	v := fixture.Must[*store.View](t)(g.store.Read(t.Context(), fixture.Must[refOf](t)(g.store.Find(t.Context(), g.id))))
	defer v.Close()
	if s := v.State.Settings; s.Approve != "read" || s.Limits.MaxTurns != 3 {
		t.Errorf("got %+v, want s.Approve = \"read\" and s.Limits.MaxTurns = 3", s)
	}
	g.denied(422, "unknown_mode", "PATCH", g.path(""), `{"mode":"cod","title":"x"}`)
	if g.did(200, &is, "GET", g.path(""), ""); is.Title == "x" {
		t.Error("a patch that was refused changed something")
	}
}

func sorted(list []string) []string { list = slices.Clone(list); slices.Sort(list); return list }

// 19.21.11: of two patches with the same ETag one is done, the other learns that the task
// is not what it saw any more; also when another program was quicker.
func TestTwoPatchesWithOneETag(t *testing.T) {
	g := newWorkingBench(t)
	for round := range 5 {
		tag := g.did(200, nil, "GET", g.path(""), "").Get("ETag")
		var wait sync.WaitGroup
		status := make([]int, 8)
		for i := range status {
			wait.Go(func() {
				status[i] = g.send("PATCH", g.path(""), fmt.Sprintf(`{"title":"title %d of %d"}`, round, i), "If-Match: "+tag).StatusCode
			})
		}
		wait.Wait()
		slices.Sort(status)
		if status[0] != 200 || status[1] != 412 || status[7] != 412 {
			t.Fatalf("got %v, want status[0] = 200 and status[1] = 412 and status[7] = 412", status)
		}
	}
	head := g.did(200, nil, "PATCH", g.path(""), `{"title":"fresh"}`, "If-Match: *")
	if tag := g.did(200, nil, "GET", g.path(""), "").Get("ETag"); head.Get("ETag") != tag {
		t.Errorf("the answer has the tag %s, the task %s", head.Get("ETag"), tag)
	}
	tag := head.Get("ETag")
	if resp := g.ask("GET", g.path(""), "If-None-Match: "+tag); resp.StatusCode != http.StatusNotModified {
		t.Error(resp.Status)
	}
	g.denied(412, "etag_mismatch", "PATCH", g.path(""), `{"title":"weak"}`, "If-Match: W/"+tag)
	if _, err := labels.Set(t.Context(), g.store, fixture.Must[refOf](t)(g.store.Find(t.Context(), g.id)), labels.Change{Add: []string{"elsewhere"}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{{"PATCH", "", `{"title":"late"}`}, {"DELETE", "", ""}, {"POST", "/runs", `{"message":{"text":"x"}}`}, {"POST", "/messages", `{"text":"x"}`}} {
		g.denied(412, "etag_mismatch", c[0], g.path("%s", c[1]), c[2], "If-Match: "+tag)
	}
}

// A patch compares labels once more with the task in hand: another process may have changed them since the caller read the
// task. The ETag in If-Match names a commit, and that protects settings.
func TestAPatchComparesWithTheTaskInHand(t *testing.T) {
	g := newWorkingBench(t)
	ref := fixture.Must[refOf](t)(g.store.Find(t.Context(), g.id))
	found := fixture.Must[service.Task](t)(g.srv.service.Find(t.Context(), g.id))
	seen, head, err := found.Document(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := labels.Set(t.Context(), g.store, ref, labels.Change{Title: ptr("quicker")}); err != nil {
		t.Fatal(err)
	}
	var p *api.Problem
	_, _, err = g.srv.service.Patch(t.Context(), service.Call{Seen: &seen}, g.id, api.TaskPatch{AddTags: []string{"x"}})
	if !errors.As(err, &p) || p.Code != "etag_mismatch" {
		t.Errorf("labels: got %v, want the problem etag_mismatch", err)
	}
	ctx, done := found.Expecting(t.Context(), head)
	defer done()
	_, _, err = g.srv.service.Patch(ctx, service.Call{}, g.id, api.TaskPatch{Settings: api.Settings{Mode: "code"}})
	if err == nil || g.srv.service.Problem(ctx, err, g.id).Code != "etag_mismatch" {
		t.Errorf("settings: got %v, want the problem etag_mismatch", err)
	}
}

func ptr[T any](v T) *T { return &v }

// What is deleted says how it comes back, and comes back; what is purged does not.
func TestTheTrash(t *testing.T) {
	g := newWorkingBench(t)
	before := g.get(g.path("/messages"))
	var gone api.Deleted
	g.did(200, &gone, "DELETE", g.path(""), "")
	if gone.Restore != "POST /v1/trash/"+g.id+"/restore" || gone.ID != g.id {
		t.Fatalf(`got %+v, want gone.Restore = "POST /v1/trash/"+g.id+"/restore" and gone.ID = g.id`, gone)
	}
	g.denied(404, "task_not_found", "DELETE", g.path(""), "")
	g.denied(404, "task_not_found", "POST", g.path("/runs"), `{}`)
	method, path, _ := strings.Cut(gone.Restore, " ")
	key := keyHeader + ": back"
	var back api.Restored
	g.did(200, &back, method, path, "", key)
	if back.ID != g.id {
		t.Errorf("got %+v, want back.ID = g.id", back)
	}
	if h := g.did(200, nil, method, path, "", key); h.Get("Idempotent-Replayed") != "true" {
		t.Error("the repeat was no repeat")
	}
	g.denied(404, "task_not_found", method, path, "")
	if after := g.get(g.path("/messages")); string(after) != string(before) {
		t.Error("the task came back as another one")
	}
	g.did(200, nil, "DELETE", g.path(""), "")
	g.denied(404, "task_not_found", "DELETE", "/v1/trash/"+g.id[:8], "") // a part of a name is none
	g.did(200, nil, "DELETE", "/v1/trash/"+g.id, "")
	g.denied(404, "task_not_found", "POST", path, "")
	if entries, _ := filepath.Glob(filepath.Join(g.store.Root(), "trash", "*")); len(entries) > 0 {
		t.Errorf("%v stays", entries)
	}
}

// What becomes of subtasks is said by who deletes.
func TestDeletingWithSubtasks(t *testing.T) {
	g := newWorkingBench(t)
	child := g.child(g.id)
	p := g.denied(409, "has_subtasks", "DELETE", g.path(""), "")
	if len(p.Suggestions) != 2 {
		t.Errorf("got %+v, want len(p.Suggestions) = 2", p)
	}
	g.get("/v1/tasks/" + child)
	var gone api.Deleted
	g.did(200, &gone, "DELETE", g.path("?subtasks=delete"), "")
	if !slices.Equal(gone.Subtasks, []string{child}) {
		t.Errorf("got %+v, want slices.Equal(gone.Subtasks, []string{child})", gone.Subtasks)
	}
	g.denied(404, "task_not_found", "GET", "/v1/tasks/"+child, "")
	var back api.Undone
	g.did(200, &back, "POST", g.path("/undo"), "{}")
	if !slices.Equal(back.Subtasks, []string{child}) {
		t.Errorf("undo brought back %v, want %s", back.Subtasks, child)
	}
	g.get("/v1/tasks/" + child)
}

// child makes a subtask.
func (g *bench) child(of string) string {
	g.Helper()
	o, err := g.store.Create(g.Context(), task.Created{Origin: "api", Number: 2, Parent: of, RootTask: of, CreatedAt: 1, Settings: task.Settings{Workspace: g.dir}},
		task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Raw: json.RawMessage(`{"ts":1,"type":"say","say":"text","text":"below"}`)}})
	if err != nil {
		g.Fatal(err)
	}
	if err := o.Close(g.Context()); err != nil {
		g.Fatal(err)
	}
	return o.Ref.ID
}

// A task of another tool is labelled without its folder being touched, and continued in
// its place.
func TestATaskOfAnotherTool(t *testing.T) {
	g := newWorkingBench(t)
	tasks := filepath.Join(g.dir, "foreign", "tasks")
	id := "0199aaaa-0000-7000-8000-00000000f001"
	dir := filepath.Join(tasks, id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"ui_messages.json":              `[{"ts":1700000000000,"type":"say","say":"text","text":"paint it"}]`,
		"api_conversation_history.json": `[{"role":"user","content":[{"type":"text","text":"<task>\npaint it\n</task>"}],"ts":1700000000000}]`,
		"history_item.json":             fmt.Sprintf(`{"id":%q,"number":1,"ts":1700000000000,"task":"paint it","tokensIn":0,"tokensOut":0,"totalCost":0,"workspace":%q,"mode":"code"}`, id, filepath.Join(g.dir, "ws")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := fixture.Must[*store.Store](t)(store.Open(store.Options{Root: g.store.Root(), State: g.store.Root() + ".state", Cache: filepath.Join(g.dir, "cache2"), Program: "test", Sources: []string{filepath.Dir(tasks)}}))
	w := newWorkingBenchOn(t, s, g)
	before := fingerprint(t, dir)
	var sum api.Summary
	w.did(200, &sum, "PATCH", "/v1/tasks/"+id, `{"title":"ours","tags":["t"]}`)
	if sum.Title != "ours" || !strings.HasPrefix(sum.Source, "foreign-") {
		t.Errorf(`got %+v, want sum.Title = "ours" and strings.HasPrefix(sum.Source, "foreign-")`, sum)
	}
	var d api.Draft
	w.did(200, &d, "PUT", "/v1/tasks/"+id+"/draft", `{"text":"go","base":""}`)
	if d.Task != sum.Source+":"+id || d.Revision == "" {
		t.Errorf("got the draft %+v, want one of %s:%s", d, sum.Source, id)
	}
	if diff := len(fingerprint(t, dir)) - len(before); diff != 0 {
		t.Error("the tool's folder was touched")
	}
	var r api.Run
	w.did(202, &r, "POST", "/v1/tasks/"+id+"/runs", `{"message":{"text":"go on","draft":"`+d.Revision+`"},"provider":"script","model":"`+g.model(sayDone)+`","approve":"all"}`, keyHeader+": f")
	w.state(r.ID, "completed")
	if r.Task != id {
		t.Errorf("it went on as %s", r.Task)
	}
	if w.did(200, &d, "GET", "/v1/tasks/"+id+"/draft", ""); d.Revision != "" {
		t.Errorf("got the draft %+v, want none after it was sent", d)
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // it is written behind the end
		data := fixture.Must[[]byte](t)(os.ReadFile(filepath.Join(dir, "ui_messages.json")))
		if strings.Contains(string(data), "go on") {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the tool does not see what was said")
		}
	}
}
