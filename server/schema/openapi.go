// Package schema compares JSON with the shapes of Go types: Read takes a document strictly, and Document describes
// routes with their bodies and answers as OpenAPI 3.1. Both use the same members of a type, so a client that follows the
// description is understood.
//
// Limits. Objects and arrays nest 32 deep, and a problem lists 20 faults. encoding/json does not serve for reading: it
// accepts a member in any case of letters, keeps the last of two with one name, and stops at the first fault without
// its position.
package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
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

// schemas are JSON schemas of Go types, each named once.
type schemas struct{ all Object }

// hit is the JSON of a api.Hit, which encodes itself.
type hit struct {
	Task    hitTask `json:"task"`
	History string  `json:"history"`
	Number  int     `json:"number"`
	TS      int64   `json:"ts"`
	Snippet string  `json:"snippet"`
	Kind    string  `json:"kind"`
}

type hitTask struct {
	ID        string  `json:"id"`
	Source    string  `json:"source"`
	Title     string  `json:"title"`
	Workspace string  `json:"workspace"`
	Status    string  `json:"status"`
	UpdatedAt *string `json:"updated_at"`
	TS        int64   `json:"ts"`
}

// of is the schema of a type; of a struct, a reference to it. Unlisted members are absent, so that a test finds a
// forgotten one.
func (b *schemas) of(t reflect.Type) Object {
	switch t {
	case reflect.TypeFor[money.USD]():
		return Object{"type": "string", "description": "US dollars, decimal"}
	case reflect.TypeFor[json.RawMessage]():
		return Object{}
	case reflect.TypeFor[api.Hit]():
		return b.of(reflect.TypeFor[hit]())
	}
	if f, ok := reflect.Zero(t).Interface().(interface{ Form() any }); ok {
		return b.of(reflect.TypeOf(f.Form()))
	}
	switch t.Kind() {
	case reflect.Pointer:
		inner := b.of(t.Elem())
		if len(inner) == 0 { // anything, null too
			return inner
		}
		return Object{"anyOf": []Object{inner, {"type": "null"}}}
	case reflect.Slice:
		return Object{"type": "array", "items": b.of(t.Elem())}
	case reflect.Map:
		return Object{"type": "object", "additionalProperties": b.of(t.Elem())}
	case reflect.String:
		return Object{"type": "string"}
	case reflect.Bool:
		return Object{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Int32, reflect.Uint32:
		return Object{"type": "integer"}
	case reflect.Struct:
		return b.named(t)
	}
	return Object{}
}

func (b *schemas) named(t reflect.Type) Object {
	name := schemaName(t)
	ref := Object{"$ref": "#/components/schemas/" + name}
	if _, ok := b.all[name]; ok {
		return ref
	}
	out := Object{"type": "object", "additionalProperties": false}
	b.all[name] = out // before its members: a type may contain itself
	members, required := Object{}, []string{}
	for _, m := range membersOf(t) {
		members[m.name] = b.of(t.FieldByIndex(m.index).Type)
		if m.required {
			required = append(required, m.name)
		}
	}
	out["properties"], out["required"] = members, required
	return ref
}

// member is one member of the JSON Object of a struct.
type member struct {
	name     string
	index    []int // of the field, for reflect
	required bool  // always written, and required when read
}

// membersOf are the members of a struct, including those of embedded structs; of two with one name the outer one.
func membersOf(t reflect.Type) (out []member) {
	at := map[string]int{}
	for _, f := range reflect.VisibleFields(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct || !f.IsExported() || tag == "-" {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		m := member{tag, f.Index, !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero")}
		if i, twice := at[tag]; !twice {
			at[tag] = len(out)
			out = append(out, m)
		} else if len(m.index) < len(out[i].index) {
			out[i] = m
		}
	}
	return out
}

// schemaName is the name of a type: Page[store.Summary] is SummaryPage.
func schemaName(t reflect.Type) string {
	name, of, generic := strings.Cut(t.Name(), "[")
	if generic {
		of = strings.TrimSuffix(of, "]")
		name = of[strings.LastIndexAny(of, "./")+1:] + name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
