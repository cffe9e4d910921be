package server

import (
	"net/http"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/server/idempotency"
	"github.com/roost-dev/roost/service"
)

// route is a method and path with its handler. Reading of parameters, refusals and the OpenAPI document all come from the
// table of routes.
type route struct {
	method  string // "" = GET
	path    string
	summary string
	params  []param
	open    bool // needs no token
	answer  any  // a value of the type of the document, nil for other answers
	media   string
	forms   []string // other media types that its parameters select
	waits   bool     // it obeys Prefer: wait=N
	stream  bool     // it can answer with an event stream; see reply.follow
	older   bool     // of the older call: act answers with its own stream, and failures have their own shape
	fails   []int    // besides those that every route can give
	body    any      // a value of the type of the JSON body; nil = no body
	status  int      // of success; 0 = 200
	also    int      // another one, when nothing new was made; 0 = none

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
	status int                   // 0 = the route's
	head   http.Header           // besides those of every answer
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
	identity string       // the id that follows from the idempotency key; see key
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
