package server

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/server/schema"
)

// routesPage describes all routes. A line [tag] begins a group; each route has its purpose and its parameters. A parameter
// has a name, a kind and a meaning. The kind is one of param's kinds; or a|b for one of these words; or a,b for some of
// these words; or the bounds and the default of a number, as 1..1000=100, where 0 is no bound. @name is a group of
// parameters; @path and @header describe the variable parts of paths, and the headers. A line that begins with = is an
// example of the body, as JSON.
//
//go:embed routes.txt
var routesPage string

// purposes reads the page: by method and path, or by the name of the group. tags are the groups of routes in the
// OpenAPI document.
func purposes() (all map[string]*purpose, tags []schema.Object) {
	all = map[string]*purpose{}
	tag, now := "", &purpose{}
	for line := range strings.Lines(routesPage) {
		line = strings.TrimSuffix(line, "\n")
		text, below := strings.CutPrefix(line, "\t")
		name, rest, _ := strings.Cut(text, " ")
		switch {
		case line == "":
		case line[0] == '[':
			tag, rest, _ = strings.Cut(line[1:], "] ")
			tags = append(tags, schema.Object{"name": tag, "description": rest})
		case !below:
			now = &purpose{tag: tag}
			all[line] = now
		case name[0] == '@':
			now.params = append(now.params, all[name].params...)
		case name == "=":
			now.example = rest
		case now.summary == "" && now.tag != "":
			now.summary = text
		default:
			kind, doc, _ := strings.Cut(rest, " ")
			now.params = append(now.params, newParam(name, kind, doc))
		}
	}
	return all, tags
}

// routes returns all routes of the server.
func routes() []route {
	list := slices.Concat(
		readRoutes(),
		taskRoutes(), storageRoutes(), runRoutes(), wordRoutes(), draftRoutes(), completionRoutes(), questionRoutes(), trashRoutes(),
		settingsRoutes(),
		serverRoutes(),
		streamRoutes(),
		editRoutes(),
		accountRoutes(),
		olderRoutes(),
	)
	all, _ := purposes()
	for i := range list {
		rt := &list[i]
		rt.method, rt.path, _ = strings.Cut(rt.on, " ")
		rt.purpose = *all[rt.on]
	}
	return list
}

// describedRoutes returns the OpenAPI document of routes, version 3.1. cookie is the name of the cookie that the
// log-in link sets.
func describedRoutes(list []route, v api.Version, cookie string) ([]byte, error) {
	types := schema.Types{}
	problem := types.Of(api.Problem{})
	paths := schema.Object{}
	all, tags := purposes()
	docs := map[string]string{}
	for _, p := range slices.Concat(all["@path"].params, all["@header"].params) {
		docs[p.name] = p.doc
	}
	for _, rt := range list {
		methods, ok := paths[rt.path].(schema.Object)
		if !ok {
			methods = schema.Object{}
			paths[rt.path] = methods
		}
		methods[strings.ToLower(rt.method)] = rt.described(types, problem, docs)
	}
	data, err := json.MarshalIndent(schema.Object{
		"openapi": "3.1.0",
		"info": schema.Object{
			"title":       "Roost",
			"version":     v.Version,
			"description": "The tasks of coding agents: read, searched, followed, run, answered and changed.",
			"license":     schema.Object{"name": "Apache License 2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []schema.Object{{"url": "/", "description": "the server that gave this description"}},
		"tags":     tags,
		"paths":    paths,
		"security": []schema.Object{{"token": []string{}}, {"cookie": []string{}}},
		"components": schema.Object{
			"schemas": types,
			"securitySchemes": schema.Object{
				"token": schema.Object{"type": "http", "scheme": "bearer"},
				"cookie": schema.Object{"type": "apiKey", "in": "cookie", "name": cookie,
					"description": "set by the log-in link; its name is derived from the server's token"},
			},
		},
	}, "", " ")
	return append(data, '\n'), api.Failed(err, "describe the routes")
}

// described returns the operation object of a route. docs describe the variable parts of paths, and the headers.
func (rt route) described(types schema.Types, problem schema.Object, docs map[string]string) schema.Object {
	op := schema.Object{"summary": rt.summary, "description": rt.about(), "tags": []string{rt.tag}, "operationId": rt.operation()}
	var params []schema.Object
	param := func(name, in, about string, shape schema.Object) {
		params = append(params, schema.Object{"name": name, "in": in, "required": in == "path", "description": about, "schema": shape})
	}
	text := schema.Object{"type": "string"}
	for _, name := range placesOf(rt.path) {
		param(name, "path", docs[name], text)
	}
	for _, p := range rt.params {
		param(p.name, "query", p.doc, p.schema())
	}
	for _, name := range rt.headers() {
		param(name, "header", docs[name], text)
	}
	if params != nil {
		op["parameters"] = params
	}
	if rt.body != nil {
		media := jsonMedia
		if rt.method == http.MethodPatch {
			media = patchMedia
		}
		documents := content(types, bodies{media: rt.body})
		if rt.example != "" {
			documents[media] = schema.Object{"schema": types.Of(rt.body), "example": json.RawMessage(rt.example)}
		}
		op["requestBody"] = schema.Object{"required": schema.Required(rt.body), "content": documents}
	}
	if rt.open {
		op["security"] = []schema.Object{}
	}
	failures := schema.Object{"application/problem+json": schema.Object{"schema": problem}}
	if rt.older { // a refusal by the gate has the common shape
		failures[jsonMedia] = schema.Object{"schema": types.Of(api.OlderFailure{})}
	}
	responses := schema.Object{}
	for _, status := range rt.problems() {
		responses[strconv.Itoa(status)] = schema.Object{"description": "a problem", "content": failures}
	}
	rt.answers(func(status int, about string, documents bodies) {
		answer := schema.Object{"description": about}
		if documents != nil {
			answer["content"] = content(types, documents)
		}
		responses[strconv.Itoa(status)] = answer
	})
	op["responses"] = responses
	return op
}

// bodies are values of the types of some bodies, by media types; "" = a text, nil = any JSON.
type bodies map[string]any

func content(types schema.Types, all bodies) schema.Object {
	out := schema.Object{}
	for media, body := range all {
		out[media] = schema.Object{"schema": types.Of(body)}
	}
	return out
}

// headers returns the request headers that a route uses, besides those of all routes.
func (rt route) headers() (names []string) {
	if rt.media == streamMedia && rt.method == http.MethodGet {
		names = append(names, "Last-Event-ID")
	}
	if rt.keyed() {
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

// keyed reports whether a route obeys idempotency keys: a change by POST, unless its answer is a secret, which nothing may keep.
func (rt route) keyed() bool {
	return rt.act != nil && rt.method == http.MethodPost && rt.on != "POST /v1/server/logins"
}

// operation is the id of a route: its path for a GET, else the method and the path.
func (rt route) operation() string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.Trim(strings.NewReplacer("{", "", "}", "").Replace(rt.path), "/"))
	if rt.method == http.MethodGet {
		return name
	}
	return strings.ToLower(rt.method) + "_" + name
}

// problems returns the statuses of the problems of a route: those of every route, of those with a token, of those
// with an id.
func (rt route) problems() []int {
	out := append([]int{400, 403, 406, 413, 500}, rt.fails...)
	if !rt.open || rt.path == "/login" {
		out = append(out, 401)
	}
	if len(placesOf(rt.path)) > 0 {
		out = append(out, 404, 409)
	}
	if rt.method != http.MethodGet {
		out = append(out, 404, 408, 409, 412, 415, 507)
	}
	return append(out, 422, 503)
}

// answers calls give for each answer of a route, except problems; a later answer of a status replaces an earlier one.
func (rt route) answers(give func(status int, about string, documents bodies)) {
	switch {
	case rt.path == "/login":
		give(http.StatusNoContent, "logged in, and the cookie is set, for clients that accept application/json", nil)
		give(http.StatusSeeOther, "logged in, and the cookie is set: a redirect to the page", nil)
	case rt.media == "text/plain":
		give(http.StatusOK, "text", bodies{rt.media: ""})
	case rt.media == streamMedia:
		give(cmp.Or(rt.also, http.StatusOK), "the client has seen the end", nil)
		give(http.StatusOK, "server-sent events", bodies{rt.media: ""})
	case rt.media == linesMedia:
		give(http.StatusOK, "a document a line", bodies{rt.media: rt.answer})
	case rt.media != "" && rt.media != jsonMedia:
		files := bodies{rt.media: ""}
		for _, form := range rt.forms {
			files[form] = ""
		}
		if slices.Contains(rt.forms, jsonMedia) {
			files[jsonMedia] = nil
		}
		give(http.StatusOK, "the file", files)
	case rt.method != http.MethodGet:
		var done bodies
		if rt.answer != nil {
			done = bodies{jsonMedia: rt.answer}
			if rt.stream {
				done[streamMedia] = ""
			}
		}
		give(rt.success(), "done", done)
		give(cmp.Or(rt.also, rt.success()), "done", done)
	default:
		document := bodies{jsonMedia: rt.answer}
		if rt.answer == nil {
			document[jsonMedia] = schema.Object{}
		}
		if rt.fragments {
			document[htmlMedia] = ""
		}
		give(http.StatusOK, "the document", document)
		give(http.StatusNotModified, "the document is the one that If-None-Match names", nil)
		if rt.path == "/readyz" {
			give(http.StatusServiceUnavailable, "tasks cannot be read, or the server is stopping", document)
		}
	}
}

func (p param) schema() schema.Object {
	switch p.kind {
	case "number":
		out := schema.Object{"type": "integer", "minimum": p.least, "default": p.deflt}
		if p.most > 0 {
			out["maximum"] = p.most
		}
		return out
	case "flag":
		return schema.Object{"type": "boolean"}
	case "word":
		return schema.Object{"type": "string", "enum": p.words}
	}
	return schema.Object{"type": "string", "maxLength": longest}
}

// about describes a route: its summary, and what applies to all routes of its kind.
func (rt route) about() string {
	out := []string{rt.summary + "."}
	say := func(when bool, text string) {
		if when {
			out = append(out, text)
		}
	}
	takes := func(header string) bool { return slices.Contains(rt.headers(), header) }
	say(rt.method == http.MethodGet && rt.path != "/login", "The request changes nothing.")
	say(takes("Last-Event-ID"), "A client that reconnects with Last-Event-ID gets the events since then. A client that disconnects affects no task.")
	say(takes("Idempotency-Key"), "With an Idempotency-Key the request takes effect once, even if it is sent repeatedly.")
	say(takes("If-Match"), "With If-Match the server refuses the request if the task has changed since.")
	say(takes("Prefer"), "With Prefer: wait=N the server answers once the run has ended or waits.")
	say(rt.open, "No token is needed.")
	return strings.Join(out, " ")
}
