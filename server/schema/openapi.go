package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
)

// Object is a JSON object.
type Object = map[string]any

// Route is what a method of a path takes and answers. A value of a Go type stands for the JSON of that type.
type Route struct {
	Method, Path     string
	ID               string // of the operation
	Summary, About   string
	Tag              string
	Params           []Param
	Open             bool // needs no token
	Body             any  // nil = no body
	BodyMedia        string
	Answers          []Answer
	Problems         []int // statuses
	OtherProblem     any   // another shape of problems, nil = none
	OtherProblemType string
}

// Param is a parameter of a route.
type Param struct {
	Name, In string // In: path, query, header
	About    string
	Schema   Object
}

// Answer is what a route answers with one status.
type Answer struct {
	Status int
	About  string
	Bodies map[string]any // by media types; "" = a text, nil = any JSON
}

// Info is what a document says besides its routes.
type Info struct {
	Title, About, Version string
	Cookie                string // the name of the cookie that stands for a token
	Tags                  []Object
}

// Document describes routes as OpenAPI 3.1.
func Document(info Info, routes []Route) ([]byte, error) {
	b := schemas{Object{}}
	problem := b.of(reflect.TypeFor[api.Problem]())
	paths := Object{}
	for _, r := range routes {
		all, ok := paths[r.Path].(Object)
		if !ok {
			all = Object{}
			paths[r.Path] = all
		}
		all[strings.ToLower(r.Method)] = b.operation(r, problem)
	}
	doc := Object{
		"openapi": "3.1.0",
		"info": Object{"title": info.Title, "version": info.Version, "description": info.About,
			"license": Object{"name": "Apache License 2.0", "identifier": "Apache-2.0"}},
		"servers":  []Object{{"url": "/", "description": "the server that gave this description"}},
		"tags":     info.Tags,
		"paths":    paths,
		"security": []Object{{"token": []string{}}, {"cookie": []string{}}},
		"components": Object{
			"schemas": b.all,
			"securitySchemes": Object{
				"token": Object{"type": "http", "scheme": "bearer"},
				"cookie": Object{"type": "apiKey", "in": "cookie", "name": info.Cookie,
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

func (b *schemas) operation(r Route, problem Object) Object {
	op := Object{"summary": r.Summary, "description": r.About, "tags": []string{r.Tag}, "operationId": r.ID}
	var params []Object
	for _, p := range r.Params {
		params = append(params, Object{"name": p.Name, "in": p.In, "required": p.In == "path", "description": p.About,
			"schema": p.Schema})
	}
	if params != nil {
		op["parameters"] = params
	}
	if r.Body != nil {
		op["requestBody"] = Object{"required": required(r.Body), "content": b.content(map[string]any{r.BodyMedia: r.Body})}
	}
	if r.Open {
		op["security"] = []Object{}
	}
	failures := Object{"application/problem+json": Object{"schema": problem}}
	if r.OtherProblem != nil {
		failures[r.OtherProblemType] = Object{"schema": b.of(reflect.TypeOf(r.OtherProblem))}
	}
	responses := Object{}
	for _, status := range r.Problems {
		responses[fmt.Sprint(status)] = Object{"description": "a problem", "content": failures}
	}
	for _, a := range r.Answers {
		answer := Object{"description": a.About}
		if a.Bodies != nil {
			answer["content"] = b.content(a.Bodies)
		}
		responses[fmt.Sprint(a.Status)] = answer
	}
	op["responses"] = responses
	return op
}

// content describes bodies by their media types.
func (b *schemas) content(bodies map[string]any) Object {
	out := Object{}
	for media, body := range bodies {
		schema := Object{}
		if body != nil {
			schema = b.of(reflect.TypeOf(body))
		}
		out[media] = Object{"schema": schema}
	}
	return out
}

// required reports whether a body is required: an empty object is refused.
func required(body any) bool {
	t := reflect.TypeOf(body)
	if t.Kind() != reflect.Struct {
		return true
	}
	return slices.ContainsFunc(membersOf(t), func(m member) bool { return m.required })
}
