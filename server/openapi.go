package server

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/roost-dev/roost/report"
)

type object = map[string]any

// openAPI describes the routes as OpenAPI 3.1. It is made of the table that answers,
// and of the types that are written.
func openAPI(list []route, v report.Version) ([]byte, error) {
	b := schemas{object{}}
	failure := b.of(reflect.TypeFor[Problem]())
	paths := object{}
	for _, rt := range list {
		op := object{"summary": rt.summary, "operationId": operation(rt.path), "responses": responses(&b, rt, failure)}
		var params []object
		if strings.Contains(rt.path, "{id}") {
			params = append(params, object{"name": "id", "in": "path", "required": true, "schema": object{"type": "string"},
				"description": "the task's id, a unique beginning or end of it, or SOURCE:ID"})
		}
		for _, p := range rt.params {
			params = append(params, object{"name": p.name, "in": "query", "required": false, "description": p.doc, "schema": p.schema()})
		}
		if rt.media == streamMedia {
			params = append(params, object{"name": "Last-Event-ID", "in": "header", "required": false, "schema": object{"type": "string"},
				"description": "the id of the last event that was seen"})
		}
		if params != nil {
			op["parameters"] = params
		}
		if rt.open {
			op["security"] = []object{}
		}
		paths[rt.path] = object{"get": op}
	}
	doc := object{
		"openapi": "3.1.0",
		"info": object{"title": "Roost", "version": v.Version,
			"description": "The tasks of coding agents: read, searched, followed. This server only reads; runs, answers and changes are not served yet."},
		"paths":    paths,
		"security": []object{{"token": []string{}}, {"cookie": []string{}}},
		"components": object{
			"schemas": b.all,
			"securitySchemes": object{
				"token":  object{"type": "http", "scheme": "bearer"},
				"cookie": object{"type": "apiKey", "in": "cookie", "name": "roost_...", "description": "set by the log-in link"},
			},
		},
	}
	data, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return nil, fmt.Errorf("describe the routes: %w", err)
	}
	return append(data, '\n'), nil
}

func operation(path string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.Trim(strings.NewReplacer("{", "", "}", "").Replace(path), "/"))
}

// always are the statuses that every route may give, and those of routes with a token
// or an id.
func (rt route) problems() []int {
	out := append([]int{403, 406, 413, 500}, rt.fails...)
	if !rt.open || rt.path == "/login" {
		out = append(out, 401)
	}
	if strings.Contains(rt.path, "{id}") {
		out = append(out, 400, 404, 409)
	}
	return append(out, 422, 503)
}

func responses(b *schemas, rt route, failure object) object {
	out := object{}
	for _, status := range rt.problems() {
		out[fmt.Sprint(status)] = object{"description": "a problem", "content": object{"application/problem+json": object{"schema": failure}}}
	}
	switch {
	case rt.path == "/login":
		out["303"] = object{"description": "logged in; the cookie is set"}
	case rt.media == streamMedia:
		out["200"] = object{"description": "server-sent events", "content": object{streamMedia: object{"schema": object{"type": "string"}}}}
	default:
		schema := object{"type": "object"}
		if rt.answer != nil {
			schema = b.of(reflect.TypeOf(rt.answer))
		}
		out["200"] = object{"description": "the document", "content": object{jsonMedia: object{"schema": schema}}}
		out["304"] = object{"description": "it is the one that If-None-Match names"}
		if rt.path == "/readyz" {
			out["503"] = object{"description": "tasks cannot be read, or the server is stopping", "content": object{jsonMedia: object{"schema": schema}}}
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
