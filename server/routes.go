package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/server/idempotency"
	"github.com/roost-dev/roost/service"
)

// routes are all routes of the server.
func routes() []route {
	return slices.Concat(
		readRoutes(),
		lookRoutes(),
		exportRoutes(),
		taskRoutes(), runRoutes(), wordRoutes(), questionRoutes(), trashRoutes(),
		serverRoutes(),
		streamRoutes(),
		editRoutes(),
		olderRoutes(),
	)
}

// readRoutes are the routes that only read.
func readRoutes() []route {
	var groupings []string
	for _, g := range api.Groupings {
		groupings = append(groupings, string(g))
	}
	return []route{
		{path: "/healthz", summary: "Whether the process answers", open: true, answer: health{}, document: (*Server).healthz},
		{path: "/readyz", summary: "Whether tasks can be read and kept", open: true, answer: readiness{}, fails: []int{503},
			serve: (*Server).readyz},
		{path: "/login", summary: "The log-in link: sets the cookie and leads on; works once", open: true,
			media: "text/plain", forms: []string{jsonMedia},
			params: []param{{name: "key", kind: "text", doc: "what the link that roost serve printed holds"}}, serve: (*Server).login},
		{path: "/openapi.json", summary: "This description", media: jsonMedia, document: (*Server).describe},
		{path: "/v1/openapi.json", summary: "This description", media: jsonMedia, document: (*Server).describe},
		{path: "/v1/version", summary: "What the server is", answer: api.Version{},
			document: func(s *Server, _ *asked) (any, error) { return s.opt.Version, nil }},
		{path: "/v1/sources", summary: "The storages that tasks are read from", answer: sources{}, document: (*Server).sources},
		{path: "/v1/tasks", summary: "Tasks of all sources, newest first", answer: api.Page[api.Summary]{},
			fails: []int{400}, document: (*Server).tasks,
			params: with(taskParams,
				param{name: "query", kind: "text", doc: "only tasks whose title or id holds these words"},
				param{name: "sort", kind: "word", words: []string{"newest", "oldest", "cost", "tokens"}, doc: "the order"},
				param{name: "tree", kind: "flag", doc: "subtasks behind their parents, and on one page with them"},
				param{name: "damaged", kind: "flag", doc: "only damaged tasks"},
				param{name: "empty", kind: "flag", doc: "also task folders without messages"}, withParam)},
		{path: "/v1/tasks/{id}", summary: "A task", answer: api.Summary{}, document: (*Server).task},
		{path: "/v1/tasks/{id}/messages", summary: "What the person saw: a window of it, the newest when none is named",
			answer: api.Window{}, document: windows(messages), params: windowParams},
		{path: "/v1/tasks/{id}/history", summary: "What the model saw, or what would be sent to it now", answer: api.Window{},
			document: windows(history),
			params: with(windowParams, param{name: "view", kind: "word", words: []string{"raw", "effective"},
				doc: "raw: as it is stored (the default); effective: what would be sent"})},
		{path: "/v1/tasks/{id}/files", summary: "The files that the model knows, each fresh, changed or missing",
			answer: api.KnownFiles{}, fails: []int{422}, document: (*Server).files,
			params: []param{
				{name: "path", kind: "text", doc: "only this file, with its records; however its path is spelled"},
				{name: "workspace", kind: "text", doc: "the folder to look in; the task's own when none is named"},
			}},
		{path: "/v1/tasks/{id}/usage", summary: "What the task spent", answer: api.Usage{}, document: shows((*service.Service).Usage)},
		{path: "/v1/tasks/{id}/tree", summary: "The task and its subtasks", answer: api.Branch{}, document: (*Server).tree,
			params: []param{withParam}},
		{path: "/v1/tasks/{id}/events", summary: "The task's events: those of its journal, then those that come. Labels of " +
			"other tools' tasks, and the way of any task into the trash and back, stand in no task's journal: /v1/events tells " +
			"of them", media: streamMedia, fails: []int{400, 429}, serve: (*Server).events,
			params: []param{{name: "after", kind: "text", doc: "0: from the start; the id of an event: what comes behind it; " +
				"the number of a commit: what comes behind that. Last-Event-ID goes before it. Neither: only what comes from now " +
				"on"}, typesParam}},
		{path: "/v1/search", summary: "Messages of all tasks that hold some words", answer: api.Page[api.Hit]{},
			fails: []int{400}, document: (*Server).search,
			params: with(taskParams,
				param{name: "q", kind: "text", doc: "the words; in double quotes a phrase"},
				param{name: "in", kind: "words", words: api.Scopes, doc: "only in these places, joined by commas"},
				param{name: "tool", kind: "text", doc: "only tasks in which this tool was called"},
				param{name: "file", kind: "text", doc: "only tasks in which a tool was asked for a path that holds this"}, withParam)},
		{path: "/v1/usage", summary: "What all tasks spent, in groups", answer: api.Totals{}, document: (*Server).spending,
			params: []param{
				{name: "by", kind: "word", words: groupings, doc: "the groups; by day when none is named"},
				{name: "since", kind: "time", doc: "requests from this time on"},
				{name: "until", kind: "time", doc: "requests before this time"},
				{name: "source", kind: "text", doc: "only tasks of this source"},
				{name: "workspace", kind: "text", doc: "only tasks of this folder"},
			}},
	}
}

// route is a method and path with its handler. Reading of parameters, refusals and the OpenAPI document all come from
// the table of routes.
type route struct {
	method  string // "" = GET
	path    string
	summary string
	params  []param
	open    bool // needs no token
	answer  any  // a value of the type of the document, nil for other answers
	media   string
	forms   []string // other media types that its parameters select
	engine  bool     // it needs an engine, as every act does
	waits   bool     // it obeys Prefer: wait=N
	stream  bool     // it can answer with an event stream; see reply.follow
	older   bool     // of the older call: act answers with its own stream, and failures have their own shape
	fails   []int    // besides those that every route can give
	body    any      // a value of the type of the JSON body; nil = no body
	status  int      // of success; 0 = 200
	also    int      // another one, when nothing new was made; 0 = none; see madeNothing

	// One of these answers. Around act, the server handles idempotency keys, If-Match and Origin.
	document func(*Server, *asked) (any, error)                      // GET: answers with JSON
	act      func(*Server, *asked) (*reply, error)                   // other methods: changes something
	serve    func(*Server, http.ResponseWriter, *asked) *api.Problem // writes the answer itself
}

// verb is the method of the route.
func (rt route) verb() string {
	if rt.method == "" {
		return http.MethodGet
	}
	return rt.method
}

// success is the status of an answer without a problem.
func (rt route) success() int {
	switch {
	case rt.status != 0:
		return rt.status
	case rt.act != nil && rt.answer == nil:
		return http.StatusNoContent
	}
	return http.StatusOK
}

// reply is the answer to a change.
type reply struct {
	head   http.Header           // besides those that follow from the document; see headOf
	doc    any                   // nil = no body
	follow *idempotency.Followed // the run for a client that wants a stream instead
}

// asked is a request to a route.
type asked struct {
	*http.Request
	id string // of the task, as given; validated
	values
	route    *route
	body     []byte       // the raw body, of unsafe methods
	identity string       // the UUID that follows from the idempotency key, "" without one: all callers are the root's owner
	seen     *tagged      // the task that If-Match names; nil without one
	again    bool         // an earlier attempt of this request may have taken effect
	silent   string       // the process that works on the task and does not answer; "" = none
	about    service.Task // the task that it would change; zero when there is none
}

// raw is a document that is JSON already.
type raw []byte

// tagged is a document of a task with the position of its journal: two changes within one millisecond that cancel each
// other still give another tag.
type tagged struct {
	doc  any
	head events.Cursor
}

const (
	jsonMedia   = "application/json"
	streamMedia = "text/event-stream"
)

var (
	limitParam  = param{name: "limit", kind: "number", doc: "at most this many", least: 1, most: 1000, deflt: 100}
	cursorParam = param{name: "cursor", kind: "text", doc: "go on where the page ended that gave it as next_cursor"}
	withParam   = param{name: "with", kind: "words", words: []string{"names", "found"},
		doc: "add the shortest name of each task, by SOURCE:ID, or what was looked through"}
	sinceParam = param{name: "since", kind: "time", doc: "changed after this time: 2026-01-31, RFC 3339, or an age such as 7d"}
	untilParam = param{name: "until", kind: "time", doc: "changed before this time"}
	costParams = []param{
		{name: "min_cost", kind: "dollars", doc: "only tasks that cost at least so many US dollars"},
		{name: "max_cost", kind: "dollars", doc: "only tasks that cost at most so many; one of unknown cost is in neither"},
	}
	taskParams = append([]param{
		{name: "workspace", kind: "text", doc: "only tasks of this folder"},
		{name: "status", kind: "word", words: statuses, doc: "only tasks with this status"},
		{name: "source", kind: "text", doc: "only tasks of this source"},
		{name: "tag", kind: "text", doc: "only tasks with this tag"},
		{name: "model", kind: "text", doc: "only tasks whose model's name holds these words"},
		sinceParam, untilParam, limitParam, cursorParam,
	}, costParams...)
	windowParams = []param{
		{name: "before", kind: "text", doc: "only what is before this message's number (12 or #12), the newest of that"},
		{name: "after", kind: "text", doc: "only what is after this message's number, the oldest of that"},
		limitParam,
	}
)

// statuses are the statuses of tasks.
var statuses = []string{"queued", "running", "waiting", "delegated", "interrupted", "completed", "failed", "cancelled", "idle"}

func with(list []param, more ...param) []param { return append(slices.Clone(list), more...) }

// shows is the document of a route that shows one thing of a task.
func shows[D any](verb func(*service.Service, context.Context, string) (D, error)) func(*Server, *asked) (any, error) {
	return func(s *Server, a *asked) (any, error) { return verb(s.service, a.Context(), a.id) }
}

// lists is the document of a route that pages through a list that is whole.
func lists[D any](list func(*service.Service, *asked) ([]D, error)) func(*Server, *asked) (any, error) {
	return func(s *Server, a *asked) (any, error) {
		all, err := list(s.service, a)
		if err != nil {
			return nil, err
		}
		return pageOf(a, all)
	}
}

// windows is the document of a route that shows a part of a history or journal.
func windows(show func(*service.Service, *asked, service.Span) (any, error)) func(*Server, *asked) (any, error) {
	return func(s *Server, a *asked) (any, error) {
		span, err := a.span()
		if err != nil {
			return nil, err
		}
		return show(s.service, a, span)
	}
}

// does is the act of a route without a body.
func does(act func(*service.Service, *asked) (any, error)) func(*Server, *asked) (*reply, error) {
	return func(s *Server, a *asked) (*reply, error) {
		doc, err := act(s.service, a)
		return &reply{doc: doc}, err
	}
}

// takes is the act of a route with a body.
func takes[N any](act func(*service.Service, *asked, N) (any, error)) func(*Server, *asked) (*reply, error) {
	return func(s *Server, a *asked) (*reply, error) {
		var n N
		if err := a.read(&n); err != nil {
			return nil, err
		}
		doc, err := act(s.service, a, n)
		return &reply{doc: doc}, err
	}
}

// changes is takes for a change of the task that the path names.
func changes[N, D any](
	verb func(*service.Service, context.Context, service.Call, string, N) (D, error),
) func(*Server, *asked) (*reply, error) {
	return takes(func(s *service.Service, a *asked, n N) (any, error) { return verb(s, a.Context(), a.call(), a.id, n) })
}

// badName is the problem of a malformed name in the path of a request; nil when there is none.
func badName(rt *route, r *http.Request) *api.Problem {
	if r.RemoteAddr == client.LocalPeer { // the user may name a folder of another tool by any name
		return nil
	}
	for _, name := range placesOf(rt.path) {
		text := r.PathValue(name)
		switch {
		case name == "id" && !service.ValidName(text):
			return problem(http.StatusBadRequest, "bad_id", "That can be no task's id",
				"an id is a letter or digit, then up to 127 of A-Z a-z 0-9 . _ -, and may have a source and a colon before "+
					"it", "GET /v1/tasks")
		case !validName(text):
			return problem(http.StatusBadRequest, "bad_id", "That can be no name", "the path has a name in it that nothing here can have")
		}
	}
	return nil
}

// placesOf are the names of the variable parts of a path.
func placesOf(path string) (names []string) {
	for _, part := range strings.Split(path, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}

// validName reports whether a text can be a name: printable ASCII that is not a path.
func validName(text string) bool {
	if len(text) == 0 || len(text) > 300 || text[0] == '.' {
		return false
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || c == '/' || c == '\\' {
			return false
		}
	}
	return true
}
