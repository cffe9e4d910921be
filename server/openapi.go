package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
)

type object = map[string]any

// openAPI describes the routes as OpenAPI 3.1, from the table of routes and the types of their documents. cookie is the
// name of the cookie that the log-in link sets.
func openAPI(list []route, v api.Version, cookie string) ([]byte, error) {
	b := schemas{object{}}
	failure := b.of(reflect.TypeFor[api.Problem]())
	paths := object{}
	for _, rt := range list {
		op := object{"summary": rt.summary, "description": rt.about(), "tags": []string{rt.tag()},
			"operationId": rt.operation(), "responses": responses(&b, rt, failure)}
		var params []object
		for _, name := range placesOf(rt.path) {
			params = append(params, object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"},
				"description": places[name]})
		}
		for _, p := range rt.params {
			params = append(params, object{"name": p.name, "in": "query", "required": false, "description": p.doc, "schema": p.schema()})
		}
		for _, name := range rt.headers() {
			params = append(params, object{"name": name, "in": "header", "required": false,
				"schema": object{"type": "string"}, "description": headers[name]})
		}
		if params != nil {
			op["parameters"] = params
		}
		if rt.body != nil {
			media := jsonMedia
			if rt.method == http.MethodPatch {
				media = patchMedia
			}
			op["requestBody"] = object{"required": required(rt.body),
				"content": object{media: object{"schema": b.of(reflect.TypeOf(rt.body))}}}
		}
		if rt.open {
			op["security"] = []object{}
		}
		all, ok := paths[rt.path].(object)
		if !ok {
			all = object{}
			paths[rt.path] = all
		}
		all[strings.ToLower(rt.verb())] = op
	}
	doc := object{
		"openapi": "3.1.0",
		"info": object{"title": "Roost", "version": v.Version,
			"description": "The tasks of coding agents: read, searched, followed, run, answered and changed.",
			"license":     object{"name": "Apache License 2.0", "identifier": "Apache-2.0"}},
		"servers":  []object{{"url": "/", "description": "the server that gave this description"}},
		"tags":     tags,
		"paths":    paths,
		"security": []object{{"token": []string{}}, {"cookie": []string{}}},
		"components": object{
			"schemas": b.all,
			"securitySchemes": object{
				"token": object{"type": "http", "scheme": "bearer"},
				"cookie": object{"type": "apiKey", "in": "cookie", "name": cookie,
					"description": "set by the log-in link; its name follows from the server's token"},
			},
		},
	}
	data, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return nil, fmt.Errorf("describe the routes: %w", err)
	}
	return append(data, '\n'), nil
}

// places describe the variable parts of paths.
var places = map[string]string{
	"id":    "the task's id, a unique beginning or end of it, or SOURCE:ID",
	"rid":   "a run's id",
	"qid":   "a question's id, as lists of questions have it",
	"input": "the id of words that wait in a task's queue",
	"name":  "the name of a task in the trash, as the list of it has it",
	"c":     "a checkpoint: c3, 3, a commit's beginning, #12 (as %2312): the state at that message, or newest: before the newest change",
}

var headers = map[string]string{
	"Last-Event-ID": "the id of the last event that was seen",
	"Idempotency-Key": "1 to 255 visible ASCII characters: the same request with the same key is done once, and answered " +
		"alike for 24 hours",
	"If-Match": "the ETag that the task must have",
	"Prefer":   "wait=N: the answer comes when the run has ended or waits, after N seconds at the latest",
}

// headers are the request headers that a route uses, besides those that all use.
func (rt route) headers() (names []string) {
	if rt.media == streamMedia && rt.verb() == http.MethodGet {
		names = append(names, "Last-Event-ID")
	}
	if rt.act != nil && rt.method == http.MethodPost {
		names = append(names, "Idempotency-Key")
	}
	if rt.act != nil && strings.Contains(rt.path, "{id}") {
		names = append(names, "If-Match")
	}
	if rt.waits {
		names = append(names, "Prefer")
	}
	return names
}

// required reports whether a body is required: an empty object is refused.
func required(body any) bool {
	t := reflect.TypeOf(body)
	if t.Kind() != reflect.Struct {
		return true
	}
	return slices.ContainsFunc(membersOf(t), func(m member) bool { return m.required })
}

// operation is the id of a route: its path for a GET, else the method and the path.
func (rt route) operation() string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.Trim(strings.NewReplacer("{", "", "}", "").Replace(rt.path), "/"))
	if rt.verb() == http.MethodGet {
		return name
	}
	return strings.ToLower(rt.verb()) + "_" + name
}

// always are the statuses that every route can give, and those of routes with a token or an id.
func (rt route) problems() []int {
	out := append([]int{403, 406, 413, 500}, rt.fails...)
	if !rt.open || rt.path == "/login" {
		out = append(out, 401)
	}
	if len(placesOf(rt.path)) > 0 {
		out = append(out, 400, 404, 409)
	}
	if rt.verb() != http.MethodGet {
		out = append(out, 400, 404, 408, 409, 412, 415)
	}
	return append(out, 422, 503)
}

func responses(b *schemas, rt route, failure object) object {
	out := object{}
	kinds := object{"application/problem+json": object{"schema": failure}}
	if rt.older { // a refusal before the route is known has the common shape
		kinds[jsonMedia] = object{"schema": b.of(reflect.TypeFor[api.OlderFailure]())}
	}
	for _, status := range rt.problems() {
		out[fmt.Sprint(status)] = object{"description": "a problem", "content": kinds}
	}
	switch {
	case rt.path == "/login":
		out["204"] = object{"description": "logged in, and the cookie is set, for who accepts application/json"}
		out["303"] = object{"description": "logged in, and the cookie is set: on to the tasks"}
	case rt.media == "text/plain":
		out["200"] = object{"description": "text", "content": object{rt.media: object{"schema": object{"type": "string"}}}}
	case rt.media == streamMedia:
		out["200"] = object{"description": "server-sent events", "content": object{streamMedia: object{"schema": object{"type": "string"}}}}
	case rt.media != "" && rt.media != jsonMedia:
		content := object{}
		for _, form := range append([]string{rt.media}, rt.forms...) {
			content[form] = object{"schema": object{"type": "string"}}
			if form == jsonMedia {
				content[form] = object{"schema": object{}}
			}
		}
		out["200"] = object{"description": "the file", "content": content}
	case rt.verb() != http.MethodGet:
		done := object{"description": "done"}
		if rt.answer != nil {
			content := object{jsonMedia: object{"schema": b.of(reflect.TypeOf(rt.answer))}}
			if rt.stream {
				content[streamMedia] = object{"schema": object{"type": "string"}}
			}
			done["content"] = content
		}
		out[fmt.Sprint(rt.success())] = done
		if rt.also != 0 {
			out[fmt.Sprint(rt.also)] = done
		}
	default:
		schema := object{"type": "object"}
		if rt.answer != nil {
			schema = b.of(reflect.TypeOf(rt.answer))
		}
		out["200"] = object{"description": "the document", "content": object{jsonMedia: object{"schema": schema}}}
		out["304"] = object{"description": "it is the one that If-None-Match names"}
		if rt.path == "/readyz" {
			out["503"] = object{"description": "tasks cannot be read, or the server is stopping",
				"content": object{jsonMedia: object{"schema": schema}}}
		}
	}
	return out
}

func (p param) schema() object {
	switch p.kind {
	case "number":
		out := object{"type": "integer", "minimum": p.least, "default": p.deflt}
		if p.most > 0 {
			out["maximum"] = p.most
		}
		return out
	case "flag":
		return object{"type": "boolean"}
	case "word":
		return object{"type": "string", "enum": p.words}
	}
	return object{"type": "string", "maxLength": longest}
}
