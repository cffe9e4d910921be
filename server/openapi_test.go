package server

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/service"
)

// description is as much of an OpenAPI document as is checked.
type description struct {
	OpenAPI string
	Paths   map[string]map[string]struct {
		OperationID string
		Parameters  []struct {
			Name, In string
			Required bool
			Schema   map[string]any
		}
		RequestBody struct {
			Required bool
			Content  map[string]struct{ Schema map[string]any }
		}
		Responses map[string]struct {
			Content map[string]struct{ Schema map[string]any }
		}
		Security *[]map[string][]string
	}
	Components struct{ Schemas map[string]map[string]any }
}

func (g *bench) description() (d description) {
	g.Helper()
	if err := json.Unmarshal(g.get("/openapi.json"), &d); err != nil {
		g.Fatal(err)
	}
	return d
}

// check is a JSON schema validator for as much of JSON schema as the description uses.
// What it does not know is an error: a schema must not pass unread.
func (d description) check(schema map[string]any, v any, at string) (wrong []string) {
	bad := func(format string, args ...any) { wrong = append(wrong, at+": "+fmt.Sprintf(format, args...)) }
	for key := range schema {
		if !slices.Contains([]string{"$ref", "type", "properties", "required", "additionalProperties", "items", "anyOf", "description", "enum", "minimum", "maximum", "maxLength", "default"}, key) {
			bad("the schema has a keyword that nobody checks: %s", key)
		}
	}
	if ref, ok := schema["$ref"].(string); ok {
		to, ok := d.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
		if !ok {
			bad("nothing is at %s", ref)
			return wrong
		}
		return append(wrong, d.check(to, v, at)...)
	}
	if any, ok := schema["anyOf"].([]any); ok {
		var all []string
		for _, one := range any {
			why := d.check(one.(map[string]interface{}), v, at)
			if len(why) == 0 {
				return wrong
			}
			all = append(all, why...)
		}
		return append(wrong, all...)
	}
	is := map[string]bool{}
	switch v := v.(type) {
	case nil:
		is["null"] = true
	case string:
		is["string"] = true
	case bool:
		is["boolean"] = true
	case json.Number:
		is["number"], is["integer"] = true, !strings.ContainsAny(v.String(), ".eE")
	case []any:
		is["array"] = true
		items, _ := schema["items"].(map[string]any)
		for i, one := range v {
			wrong = append(wrong, d.check(items, one, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case map[string]any:
		is["object"] = true
		members, _ := schema["properties"].(map[string]any)
		for name, one := range v {
			if member, ok := members[name].(map[string]any); ok {
				wrong = append(wrong, d.check(member, one, at+"."+name)...)
			} else if more, ok := schema["additionalProperties"].(map[string]any); ok {
				wrong = append(wrong, d.check(more, one, at+"."+name)...)
			} else if schema["additionalProperties"] == false {
				bad("the member %s is not described", name)
			}
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				bad("the member %s is missing", name)
			}
		}
	}
	if typ, ok := schema["type"].(string); ok && !is[typ] {
		bad("want %s, got %v", typ, v)
	}
	return wrong
}

func decoded(t testing.TB, body string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Every route that is described answers, with what is described; every problem too.
func TestEveryRouteAnswersAsItIsDescribed(t *testing.T) {
	g := newWorkingBench(t)
	d := g.description()
	if d.OpenAPI != "3.1.0" || len(d.Paths) < 15 {
		t.Fatalf("%s, %d paths", d.OpenAPI, len(d.Paths))
	}
	if got := d.Paths["/v1/runs/{rid}/events"]["get"].Responses; len(got["200"].Content) == 0 || !strings.Contains(fmt.Sprint(got), "204:") {
		t.Errorf("the events of a run: got %v, want 200 with a body and 204, for a client that has seen the end", got)
	}
	ids := map[string]bool{}
	query := map[string]string{"/v1/search": "?q=fence", "/v1/tasks/{id}/compare": "?with=head", "/api/questions": "?jobId=" + g.lastRun()}
	for path, methods := range d.Paths {
		for _, op := range methods {
			if ids[op.OperationID] {
				t.Errorf("two operations are called %s", op.OperationID)
			}
			ids[op.OperationID] = true
		}
		op, ok := methods["get"]
		if !ok || strings.Count(path, "{") > strings.Count(path, "{id}") { // those are asked for elsewhere
			continue
		}
		real := strings.ReplaceAll(path, "{id}", g.id)
		for status, accept := range map[int]string{200: "", 406: "image/png"} {
			headers := []string{"Accept: " + accept}
			resp := g.ask("GET", real+query[path], headers...)
			if path == "/login" && status == 200 {
				status = 401 // the link's key was not given
			}
			if path == "/ca.crt" && status == 200 {
				status = 404 // this server does not serve the local network
			}
			if resp.StatusCode != status {
				t.Errorf("%s: %s, want %d", path, resp.Status, status)
				continue
			}
			described, ok := op.Responses[fmt.Sprint(status)]
			media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
			content, known := described.Content[media]
			if !ok || !known {
				t.Errorf("%s: %d with %s is not described", path, status, media)
				continue
			}
			if media == streamMedia || strings.HasPrefix(media, "text/") {
				resp.Body.Close()
				continue
			}
			body := string(fixture.Must[[]byte](t)(io.ReadAll(resp.Body)))
			for _, why := range d.check(content.Schema, decoded(t, body), path) {
				t.Error(why)
			}
		}
		for _, wrong := range []string{"?%zz", "?cursor=never+given", "?task=no-such-task&q=fence"} {
			status := fmt.Sprint(g.ask("GET", real+wrong).StatusCode)
			if _, ok := op.Responses[status]; !ok {
				t.Errorf("%s: %s answers %s, which is not described", path, wrong, status)
			}
		}
		for _, p := range op.Parameters { // each that is described is known
			if p.In != "query" {
				continue
			}
			body := string(fixture.Must[[]byte](t)(io.ReadAll(g.ask("GET", real+"?"+p.Name+"=%00").Body)))
			if strings.Contains(body, "there is no such parameter") {
				t.Errorf("%s: the parameter %s is described and not known", path, p.Name)
			}
		}
		resp := g.ask("GET", real, "Authorization: ")
		open := op.Security != nil && len(*op.Security) == 0
		if (resp.StatusCode == 401) == open && path != "/login" {
			t.Errorf("%s: described as open: %v, without the token: %s", path, open, resp.Status)
		}
	}
}

// The page has each route of the table and no other, and the words that callers may choose are those of the service.
func TestThePageHasEachRoute(t *testing.T) {
	t.Parallel()
	all, _ := purposes()
	words := map[string]string{}
	for _, rt := range routes() {
		if rt.summary == "" || rt.tag == "" {
			t.Errorf("%s has no summary or no tag", rt.on)
		}
		for _, p := range rt.params {
			words[rt.on+" "+p.name] = strings.Join(p.words, " ")
			if p.doc == "" || p.kind == "number" && (p.most == 0 || p.deflt > p.most) {
				t.Errorf("%s: %+v", rt.on, p)
			}
		}
		delete(all, rt.on)
	}
	for name := range all {
		if !strings.HasPrefix(name, "@") {
			t.Errorf("the page has a route that does not exist: %s", name)
		}
	}
	groupings := strings.Trim(fmt.Sprint(api.Groupings), "[]")
	for name, want := range map[string]string{
		"GET /v1/search in": strings.Join(api.Scopes, " "), "GET /v1/usage by": groupings,
		"DELETE /v1/tasks/{id} subtasks": service.KeepSubtasks + " " + service.DeleteSubtasks,
	} {
		if words[name] != want {
			t.Errorf("%s takes %q, want %q", name, words[name], want)
		}
	}
}

// Every route that answers is described: whatever the table has, and nothing is
// answered beside the table.
func TestEveryRouteIsDescribed(t *testing.T) {
	g := newBench(t)
	d := g.description()
	for _, rt := range g.srv.routes {
		op, ok := d.Paths[rt.path][strings.ToLower(rt.method)]
		if !ok {
			t.Errorf("%s %s is not described", rt.method, rt.path)
			continue
		}
		if described := len(op.RequestBody.Content) > 0; described != (rt.body != nil) {
			t.Errorf("%s %s: a body is described: %v", rt.method, rt.path, described)
		}
		var described []string
		for _, p := range op.Parameters {
			if p.In == "query" {
				described = append(described, p.Name)
			}
		}
		for _, p := range rt.params {
			if !slices.Contains(described, p.name) {
				t.Errorf("%s: the parameter %s is not described", rt.path, p.name)
			}
		}
	}
	for _, path := range []string{"/v1/tasks", "/v1/tasks/x", "/v1/tasks/x/messages", "/v1/tasks/x/events", "/healthz"} {
		if _, pattern := g.srv.mux.Handler(g.ask("GET", path).Request); pattern == "/" {
			t.Errorf("%s has no handler", path)
		}
	}
}

// What is sent in a list is checked to the last member, also of a search and of usage.
func TestTheCheckerFinds(t *testing.T) {
	g := newBench(t)
	d := g.description()
	schema := d.Paths["/v1/tasks/{id}"]["get"].Responses["200"].Content[jsonMedia].Schema
	good := string(g.get(g.path("")))
	if wrong := d.check(schema, decoded(t, good), "task"); len(wrong) > 0 {
		t.Error(wrong)
	}
	for _, bad := range []string{
		strings.Replace(good, `"id":`, `"no_id":`, 1), strings.Replace(good, `"ts":`, `"ts":"x","old":`, 1), strings.Replace(good, `"tags":[]`, `"tags":[1]`, 1), `[]`,
	} {
		if len(d.check(schema, decoded(t, bad), "task")) == 0 {
			t.Errorf("nothing is found wrong with %.100s", bad)
		}
	}
}
