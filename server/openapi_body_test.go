package server

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/server/schema"
)

// lastRun is the newest run of the bench's task.
func (g *bench) lastRun() string {
	g.Helper()
	runs := fixture.Must[[]engine.RunInfo](g)(g.opt.Engine.RunsOf(g.Context(), g.id))
	if len(runs) == 0 {
		g.Fatal("the task has no run")
	}
	return runs[0].ID
}

// full makes a value in which every member is there, of the type of a body.
func full(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`1`))
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(full(t.Elem()))
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				v.Field(i).Set(full(f.Type))
			}
		}
	case t.Kind() == reflect.Slice:
		v.Set(reflect.Append(v, full(t.Elem())))
	case t.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(full(t.Key()), full(t.Elem()))
	case t.Kind() == reflect.String:
		v.SetString("x")
	case t.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	}
	return v
}

// Each body that is described is one that the decoder takes, to the last member, and no
// member is taken that is not described.
func TestBodiesAreThoseThatAreDescribed(t *testing.T) {
	g := newWorkingBench(t)
	d := g.description()
	bodies := 0
	for _, rt := range g.srv.routes {
		if rt.body == nil {
			continue
		}
		bodies++
		name := rt.method + " " + rt.path
		described := d.Paths[rt.path][strings.ToLower(rt.method)].RequestBody
		media := jsonMedia
		if rt.method == "PATCH" {
			media = patchMedia
		}
		shape := described.Content[media].Schema
		if shape == nil {
			t.Errorf("%s: the body is not described", name)
			continue
		}
		text := fixture.Must[[]byte](t)(json.Marshal(full(reflect.TypeOf(rt.body)).Interface()))
		for _, why := range d.check(shape, decoded(t, string(text)), name) {
			t.Errorf("%s\n%s", why, text)
		}
		if err := schema.Read(text, reflect.New(reflect.TypeOf(rt.body)).Interface()); err != nil {
			t.Errorf("%s: what is described is not taken: %v\n%s", name, err, text)
		}
		to := d.Components.Schemas[strings.TrimPrefix(fmt.Sprint(shape["$ref"]), "#/components/schemas/")]
		for member := range to["properties"].(map[string]any) {
			if !strings.Contains(string(text), fmt.Sprintf("%q:", member)) {
				t.Errorf("%s: the member %s is described, and nothing has it", name, member)
			}
		}
		required, _ := to["required"].([]any)
		if described.Required != (len(required) > 0) {
			t.Errorf("%s: required is %v, of members %v", name, described.Required, required)
		}
		if len(required) > 0 && !rt.older {
			g.denied(422, "validation_failed", rt.method, strings.NewReplacer("{id}", g.id, "{input}", "x", "{qid}", g.id+".q1", "{c}", "1").Replace(rt.path), "{}")
		}
	}
	if bodies < 10 {
		t.Errorf("only %d routes take a body", bodies)
	}
}

// What changes answer is what is described, with the status that is described.
func TestChangesAnswerAsDescribed(t *testing.T) {
	g := newWorkingBench(t)
	d := g.description()
	checked := 0
	see := func(status int, method, path, body string, pattern string) []byte {
		t.Helper()
		resp := g.send(method, path, body)
		data := fixture.Must[[]byte](t)(io.ReadAll(resp.Body))
		if resp.StatusCode != status {
			t.Fatalf("got %s %s: %s\n%s, want resp.StatusCode = status", method, path, resp.Status, data)
		}
		described, ok := d.Paths[pattern][strings.ToLower(method)].Responses[fmt.Sprint(status)]
		media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
		content, known := described.Content[media]
		if !ok || !known && len(data) > 0 {
			t.Fatalf("%s %s: %d with %s is not described", method, pattern, status, media)
		}
		if len(data) > 0 {
			for _, why := range d.check(content.Schema, decoded(t, string(data)), method+" "+pattern) {
				t.Error(why)
			}
		}
		checked++
		return data
	}
	var r made
	if err := json.Unmarshal(see(201, "POST", "/v1/tasks", g.task(askWhich, "go"), "/v1/tasks"), &r); err != nil {
		t.Fatal(err)
	}
	q := g.question(r.Task)
	task := "/v1/tasks/" + r.Task
	see(200, "GET", "/v1/questions", "", "/v1/questions")
	see(200, "GET", "/v1/questions/"+q.ID, "", "/v1/questions/{qid}")
	see(200, "GET", "/v1/runs/"+r.ID, "", "/v1/runs/{rid}")
	see(200, "GET", "/v1/runs", "", "/v1/runs")
	see(200, "GET", task+"/runs", "", "/v1/tasks/{id}/runs")
	see(202, "POST", task+"/messages", `{"text":"later","delivery":"queue"}`, "/v1/tasks/{id}/messages")
	var queue api.Page[api.Queued]
	if err := json.Unmarshal(see(200, "GET", task+"/queue", "", "/v1/tasks/{id}/queue"), &queue); err != nil || len(queue.Items) != 1 {
		t.Fatal(err, queue)
	}
	see(200, "PATCH", task+"/queue/"+queue.Items[0].ID, `{"text":"much later"}`, "/v1/tasks/{id}/queue/{input}")
	see(204, "DELETE", task+"/queue/"+queue.Items[0].ID, "", "/v1/tasks/{id}/queue/{input}")
	see(404, "DELETE", task+"/queue/"+queue.Items[0].ID, "", "/v1/tasks/{id}/queue/{input}")
	see(200, "POST", "/v1/questions/"+q.ID+"/answer", `{"text":"red"}`, "/v1/questions/{qid}/answer")
	see(409, "POST", "/v1/questions/"+q.ID+"/answer", `{"text":"green"}`, "/v1/questions/{qid}/answer")
	g.state(r.ID, "completed")
	see(200, "PATCH", task, `{"title":"another","tags":["a"]}`, "/v1/tasks/{id}")
	see(409, "POST", "/v1/runs/"+r.ID+"/cancel", "", "/v1/runs/{rid}/cancel")
	see(202, "POST", task+"/runs", `{"message":{"text":"again"}}`, "/v1/tasks/{id}/runs")
	g.idle(r.Task)
	see(200, "DELETE", task, "", "/v1/tasks/{id}")
	see(200, "GET", "/v1/trash", "", "/v1/trash")
	see(200, "POST", "/v1/trash/"+r.Task+"/restore", "", "/v1/trash/{name}/restore")
	see(200, "DELETE", task, "", "/v1/tasks/{id}")
	see(200, "DELETE", "/v1/trash/"+r.Task, "", "/v1/trash/{name}")
	if checked < 20 {
		t.Errorf("%d answers", checked)
	}
}

// idle waits until nothing works on a task.
func (g *bench) idle(task string) {
	g.Helper()
	for {
		var page api.Page[api.Run]
		g.did(200, &page, "GET", "/v1/tasks/"+task+"/runs", "")
		i := slices.IndexFunc(page.Items, func(r api.Run) bool { return r.State == "running" || r.State == "queued" })
		if i < 0 {
			return
		}
		g.did(200, nil, "GET", "/v1/runs/"+page.Items[i].ID, "", "Prefer: wait=5")
	}
}
