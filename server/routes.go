package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

// route is one way to ask. The table of routes is all there is: handlers, the reading
// of parameters, what is refused and the OpenAPI document come from it.
type route struct {
	path    string
	summary string
	params  []param
	open    bool // without the token
	answer  any  // a value of the type of the document, nil for other answers
	media   string
	fails   []int // beside those that every route may give

	document func(*Server, *asked) (any, error)                  // answers with JSON
	serve    func(*Server, http.ResponseWriter, *asked) *Problem // answers by itself
}

// asked is a request that a route answers.
type asked struct {
	*http.Request
	id string // of the task, as it was given; checked
	values
}

// raw is a document that is JSON already.
type raw []byte

const (
	jsonMedia   = "application/json"
	streamMedia = "text/event-stream"
)

var (
	limitParam  = param{name: "limit", kind: "number", doc: "at most this many", least: 1, most: 1000, deflt: 100}
	cursorParam = param{name: "cursor", kind: "text", doc: "go on where the page ended that gave it as next_cursor"}
	sinceParam  = param{name: "since", kind: "time", doc: "changed after this time: 2026-01-31, RFC 3339, or an age such as 7d"}
	untilParam  = param{name: "until", kind: "time", doc: "changed before this time"}
	costParams  = []param{
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
		{name: "before", kind: "text", doc: "only what stands before this message's number (12 or #12), the newest of that"},
		{name: "after", kind: "text", doc: "only what stands after this message's number, the oldest of that"},
		limitParam,
	}
)

// statuses are those that a task can have.
var statuses = []string{"queued", "running", "waiting", "delegated", "interrupted", "completed", "failed", "cancelled", "idle"}

func with(list []param, more ...param) []param { return append(slices.Clone(list), more...) }

// routes are all that the server answers.
func routes() []route {
	words := func(names []string) []string { return names }
	var groupings []string
	for _, g := range store.Groupings {
		groupings = append(groupings, string(g))
	}
	return []route{
		{path: "/healthz", summary: "Whether the process answers", open: true, answer: health{}, document: (*Server).healthz},
		{path: "/readyz", summary: "Whether tasks can be read", open: true, answer: readiness{}, fails: []int{503}, serve: (*Server).readyz},
		{path: "/login", summary: "The log-in link: sets the cookie and leads on; works once", open: true, media: "text/plain",
			params: []param{{name: "key", kind: "text", doc: "what the link that roost serve printed holds"}}, serve: (*Server).login},
		{path: "/openapi.json", summary: "This description", media: jsonMedia, document: (*Server).describe},
		{path: "/v1/openapi.json", summary: "This description", media: jsonMedia, document: (*Server).describe},
		{path: "/v1/version", summary: "What the server is", answer: report.Version{}, document: (*Server).version},
		{path: "/v1/sources", summary: "The storages that tasks are read from", answer: sources{}, document: (*Server).sources},
		{path: "/v1/tasks", summary: "Tasks of all sources, newest first", answer: report.Page[store.Summary]{}, fails: []int{400}, document: (*Server).tasks,
			params: with(taskParams,
				param{name: "query", kind: "text", doc: "only tasks whose title or id holds these words"},
				param{name: "sort", kind: "word", words: words([]string{"newest", "oldest", "cost", "tokens"}), doc: "the order"},
				param{name: "tree", kind: "flag", doc: "subtasks behind their parents, and on one page with them"},
				param{name: "damaged", kind: "flag", doc: "only damaged tasks"},
				param{name: "empty", kind: "flag", doc: "also task folders without messages"})},
		{path: "/v1/tasks/{id}", summary: "A task", answer: store.Summary{}, document: (*Server).task},
		{path: "/v1/tasks/{id}/messages", summary: "What the person saw: a window of it, the newest when none is named", answer: window{}, document: (*Server).messages, params: windowParams},
		{path: "/v1/tasks/{id}/history", summary: "What the model saw, or what would be sent to it now", answer: window{}, document: (*Server).history,
			params: with(windowParams, param{name: "view", kind: "word", words: words([]string{"raw", "effective"}), doc: "raw: as it is stored (the default); effective: what would be sent"})},
		{path: "/v1/tasks/{id}/files", summary: "The files that the model knows, each fresh, changed or missing", answer: files{}, fails: []int{422}, document: (*Server).files,
			params: []param{{name: "path", kind: "text", doc: "only this file, with its records"}}},
		{path: "/v1/tasks/{id}/usage", summary: "What the task spent", answer: store.Usage{}, document: (*Server).usage},
		{path: "/v1/tasks/{id}/tree", summary: "The task and its subtasks", answer: report.Branch{}, document: (*Server).tree},
		{path: "/v1/tasks/{id}/events", summary: "The task's events: those of its journal, then those that come", media: streamMedia, fails: []int{400, 429}, serve: (*Server).events,
			params: []param{{name: "after", kind: "text", doc: "0: from the start; the id of an event: what comes behind it; the number of a commit: what comes behind that. Last-Event-ID goes before it. Neither: only what comes from now on"}}},
		{path: "/v1/search", summary: "Messages of all tasks that hold some words", answer: report.Page[store.Hit]{}, fails: []int{400}, document: (*Server).search,
			params: with(taskParams,
				param{name: "q", kind: "text", doc: "the words; in double quotes a phrase"},
				param{name: "in", kind: "words", words: catalog.Scopes, doc: "only in these places, joined by commas"},
				param{name: "tool", kind: "text", doc: "only tasks in which this tool was called"},
				param{name: "file", kind: "text", doc: "only tasks in which a tool was asked for a path that holds this"})},
		{path: "/v1/usage", summary: "What all tasks spent, in groups", answer: store.Spending{}, document: (*Server).spending,
			params: []param{
				{name: "by", kind: "word", words: groupings, doc: "the groups; by day when none is named"},
				{name: "since", kind: "time", doc: "requests from this time on"}, {name: "until", kind: "time", doc: "requests before this time"},
				{name: "source", kind: "text", doc: "only tasks of this source"}, {name: "workspace", kind: "text", doc: "only tasks of this folder"},
			}},
	}
}

// muxOf leads requests to their routes. What has no route is told as a problem.
func (s *Server) muxOf(list []route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, rt := range list {
		mux.HandleFunc("GET "+rt.path, func(w http.ResponseWriter, r *http.Request) {
			if p := s.answer(rt, w, r); p != nil {
				s.lament(w, r, p)
			}
		})
		mux.HandleFunc(rt.path, func(w http.ResponseWriter, r *http.Request) { // any other method
			p := problem(http.StatusMethodNotAllowed, "method_not_allowed", "That cannot be asked that way", "there is only GET "+rt.path+": this server only reads", "GET "+rt.path)
			p.allow = "GET, HEAD"
			fail(w, r, p)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, r, problem(http.StatusNotFound, "no_such_route", "There is no such route", "nothing is served at "+clip(r.URL.Path), "GET /openapi.json"))
	})
	return mux
}

// lament writes a problem, and tells the log of those that are the server's own.
func (s *Server) lament(w http.ResponseWriter, r *http.Request, p *Problem) {
	if p.cause != nil && r.Context().Err() == nil {
		s.opt.Log.Warn("failed", "path", r.URL.Path, "request_id", w.Header().Get(requestID), "error", p.cause.Error())
	}
	fail(w, r, p)
}

// answer answers a request of a route.
func (s *Server) answer(rt route, w http.ResponseWriter, r *http.Request) *Problem {
	media := rt.media
	if media == "" {
		media = jsonMedia
	}
	if !accepts(r.Header.Values("Accept"), media) {
		return problem(http.StatusNotAcceptable, "not_acceptable", "There is no such form of it", "this route gives "+media, "Accept: "+media)
	}
	a := &asked{Request: r}
	if strings.Contains(rt.path, "{id}") {
		if a.id = r.PathValue("id"); !validRef(a.id) {
			return problem(http.StatusBadRequest, "bad_id", "That can be no task's id", "an id is a letter or digit, then up to 127 of A-Z a-z 0-9 . _ -, and may have a source and a colon before it", "GET /v1/tasks")
		}
	}
	var err error
	if a.values, err = decode(r.URL.RawQuery, rt.params, s.opt.Now()); err != nil {
		return s.problemOf(r.Context(), err, a.id)
	}
	if rt.serve != nil {
		return rt.serve(s, w, a)
	}
	if !rt.open {
		select { // readings cost memory, however many clients there are
		case s.readings <- struct{}{}:
			defer func() { <-s.readings }()
		case <-r.Context().Done():
			return s.problemOf(r.Context(), r.Context().Err(), a.id)
		}
	}
	doc, err := rt.document(s, a)
	if err == nil {
		err = reply(w, r, http.StatusOK, doc)
	}
	if err != nil {
		p := s.problemOf(r.Context(), err, a.id)
		if a.id != "" && p.Task == "" {
			p.Task = a.id
		}
		return p
	}
	return nil
}

// reply writes a document, or that the client has it.
func reply(w http.ResponseWriter, r *http.Request, status int, doc any) error {
	body, isRaw := doc.(raw)
	if !isRaw {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(doc); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
		body = buf.Bytes()
	}
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	h := w.Header()
	h.Set("ETag", tag)
	if status == http.StatusOK && matches(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", jsonMedia)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client is gone: nobody is left to tell
	}
	return nil
}

// matches reports whether an If-None-Match has a tag; weak ones count, as it says.
func matches(headers []string, tag string) bool {
	for _, header := range headers {
		for _, one := range strings.Split(header, ",") {
			one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
			if one == "*" || one == tag {
				return true
			}
		}
	}
	return false
}

// accepts reports whether an Accept takes a media type; none takes all.
func accepts(headers []string, media string) bool {
	all := strings.Join(headers, ",")
	if strings.TrimSpace(all) == "" {
		return true
	}
	family, _, _ := strings.Cut(media, "/")
	best, taken := -1, false
	for _, one := range strings.Split(all, ",") {
		name, params, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		how := slices.Index([]string{"*/*", family + "/*", media}, name) // the more exact one counts
		if how < 0 || how < best {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		best, taken = how, err != nil || q > 0
	}
	return taken
}

// validRef reports whether a text may name a task: an id, or a source and an id. It is
// only ever compared with what stands in the lists, and never made a path of; what
// cannot be one is refused all the same before anything is looked up.
func validRef(text string) bool {
	source, id, named := strings.Cut(text, ":")
	if !named {
		source, id = "", text
	}
	return validID(id) && (!named || validID(source))
}

func validID(id string) bool {
	if len(id) == 0 || len(id) > 128 {
		return false
	}
	for i, c := range []byte(id) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return true
}
