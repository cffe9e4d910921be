package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/server/schema"
)

// describedRoutes is the OpenAPI document of routes. cookie is the name of the cookie that the log-in link sets.
func describedRoutes(list []route, v api.Version, cookie string) ([]byte, error) {
	var all []schema.Route
	for _, rt := range list {
		all = append(all, rt.described())
	}
	return schema.Document(schema.Info{
		Title:   "Roost",
		About:   "The tasks of coding agents: read, searched, followed, run, answered and changed.",
		Version: v.Version,
		Cookie:  cookie,
		Tags:    tags,
	}, all)
}

func (rt route) described() schema.Route {
	out := schema.Route{
		Method:    rt.verb(),
		Path:      rt.path,
		ID:        rt.operation(),
		Summary:   rt.summary,
		About:     rt.about(),
		Tag:       rt.tag(),
		Open:      rt.open,
		Body:      rt.body,
		BodyMedia: jsonMedia,
		Answers:   rt.answers(),
		Problems:  rt.problems(),
	}
	if rt.method == http.MethodPatch {
		out.BodyMedia = patchMedia
	}
	if rt.older { // a refusal before the route is known has the common shape
		out.OtherProblem, out.OtherProblemType = api.OlderFailure{}, jsonMedia
	}
	text := schema.Object{"type": "string"}
	for _, name := range placesOf(rt.path) {
		out.Params = append(out.Params, schema.Param{Name: name, In: "path", About: places[name], Schema: text})
	}
	for _, p := range rt.params {
		out.Params = append(out.Params, schema.Param{Name: p.name, In: "query", About: p.doc, Schema: p.schema()})
	}
	for _, name := range rt.headers() {
		out.Params = append(out.Params, schema.Param{Name: name, In: "header", About: headers[name], Schema: text})
	}
	return out
}

// places describe the variable parts of paths.
var places = map[string]string{
	"id":    "the task's id, a unique beginning or end of it, or SOURCE:ID",
	"rid":   "a run's id",
	"qid":   "a question's id, as lists of questions have it",
	"input": "the id of words that wait in a task's queue",
	"name":  "the name of a task in the trash, as the list of it has it",
	"c": "a checkpoint: c3, 3, a commit's beginning, #12 (as %2312): the state at that message, " +
		"or newest: before the newest change",
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

// answers are what a route answers besides problems.
func (rt route) answers() []schema.Answer {
	one := func(about, media string, body any) []schema.Answer {
		return []schema.Answer{{Status: http.StatusOK, About: about, Bodies: map[string]any{media: body}}}
	}
	switch {
	case rt.path == "/login":
		return []schema.Answer{
			{Status: http.StatusNoContent, About: "logged in, and the cookie is set, for who accepts application/json"},
			{Status: http.StatusSeeOther, About: "logged in, and the cookie is set: on to the tasks"},
		}
	case rt.media == "text/plain":
		return one("text", rt.media, "")
	case rt.media == streamMedia:
		return one("server-sent events", rt.media, "")
	case rt.media != "" && rt.media != jsonMedia:
		out := one("the file", rt.media, "")
		for _, form := range rt.forms {
			out[0].Bodies[form] = ""
			if form == jsonMedia {
				out[0].Bodies[form] = nil
			}
		}
		return out
	case rt.verb() != http.MethodGet:
		done := schema.Answer{Status: rt.success(), About: "done"}
		if rt.answer != nil {
			done.Bodies = map[string]any{jsonMedia: rt.answer}
			if rt.stream {
				done.Bodies[streamMedia] = ""
			}
		}
		out := []schema.Answer{done}
		if done.Status = rt.also; rt.also != 0 {
			out = append(out, done)
		}
		return out
	}
	var document any = schema.Object{}
	if rt.answer != nil {
		document = rt.answer
	}
	out := append(one("the document", jsonMedia, document),
		schema.Answer{Status: http.StatusNotModified, About: "it is the one that If-None-Match names"})
	if rt.path == "/readyz" {
		out = append(out, schema.Answer{Status: http.StatusServiceUnavailable,
			About: "tasks cannot be read, or the server is stopping", Bodies: map[string]any{jsonMedia: document}})
	}
	return out
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

// tags are the groups of operations in the OpenAPI document.
var tags = []schema.Object{
	{"name": "tasks", "description": "Tasks of all tools: find, make, label, export and delete them."},
	{"name": "messages", "description": "The messages of a task, as the user saw them and as the model did."},
	{"name": "runs", "description": "Work on a task: start, continue and stop it, and give it words."},
	{"name": "questions", "description": "What runs ask a person, and the answers."},
	{"name": "events", "description": "What happens, as server-sent events."},
	{"name": "history", "description": "Move a task's histories and take it back: rewind, undo, fork, condense."},
	{"name": "files", "description": "Files that a task knows, and checkpoints of them."},
	{"name": "usage", "description": "Tokens and cost."},
	{"name": "server", "description": "The server itself: health, log-in, metrics, this description, its end."},
	{"name": "older call", "description": "The older restart call, in a shape of its own."},
}

// tagByPart is the group of a route by a part of its path; the last known part counts.
var tagByPart = map[string]string{
	"tasks": "tasks", "tree": "tasks", "names": "tasks", "sources": "tasks", "search": "tasks", "trash": "tasks",
	"purges": "tasks", "export": "tasks",
	"history": "messages", "lines": "messages", "journal": "messages", "messages": "messages", "context": "messages",
	"runs": "runs", "queue": "runs", "cancel": "runs", "questions": "questions", "events": "events",
	"rewinds": "history", "undo": "history", "redo": "history", "forks": "history", "condense": "history",
	"branches": "history", "head": "history",
	"files": "files", "checkpoints": "files", "usage": "usage",
	"server": "server", "healthz": "server", "readyz": "server", "login": "server", "openapi.json": "server",
	"version": "server", "metrics": "server",
}

func (rt route) tag() (tag string) {
	if rt.older {
		return "older call"
	}
	for part := range strings.SplitSeq(rt.path, "/") {
		if is, known := tagByPart[part]; known {
			tag = is
		}
	}
	return tag
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
	say(rt.verb() == http.MethodGet && rt.path != "/login", "It changes nothing.")
	say(takes("Last-Event-ID"), "A client that comes back with Last-Event-ID gets what it has missed. The end of a client touches no task.")
	say(takes("Idempotency-Key"), "With an Idempotency-Key it is done once, however often it is sent.")
	say(takes("If-Match"), "With If-Match it is refused when the task has changed since.")
	say(takes("Prefer"), "With Prefer: wait=N the answer comes when the run has ended or waits.")
	say(rt.open, "No token is needed.")
	return strings.Join(out, " ")
}
