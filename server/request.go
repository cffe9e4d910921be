package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/server/schema"
	"github.com/roost-dev/roost/service"
)

// route is a method and path with its handler. The table of routes and its page (routes.txt) define the reading of
// parameters, refusals and the OpenAPI document.
type route struct {
	on     string // method and path, as on the page; the next three are derived from it
	method string
	path   string
	purpose

	open      bool // the route needs no token
	answer    any  // a value of the document's type; nil for other answers
	media     string
	forms     []string // other media types that its parameters select
	engine    bool     // the route needs an engine, like every act that is not bare
	bare      bool     // an act that needs no engine
	waits     bool     // the route obeys Prefer: wait=N
	stream    bool     // the route can answer with an event stream; see reply.follow
	fragments bool     // the route can answer with messages as HTML
	older     bool     // part of the older call: its stream and its failures have shapes of their own
	fails     []int    // statuses of problems, besides those of every route
	body      any      // a value of the type of the JSON body; nil = no body
	status    int      // of success; 0 = 200
	also      int      // the status if nothing new was made; 0 = the same; see madeNothing

	// One of these answers. Around act, the server handles idempotency keys, If-Match and Origin.
	document reading                                                 // GET: answers with JSON
	act      acting                                                  // other methods: changes something
	serve    func(*Server, http.ResponseWriter, *asked) *api.Problem // writes the answer itself
}

type (
	reading = func(*Server, *asked) (any, error)
	acting  = func(*Server, *asked) (*reply, error)
)

// purpose is the page's entry for a route or a group of parameters.
type purpose struct {
	tag, summary string
	example      string // of a body, as JSON; "" = none
	params       []param
}

// success returns the status of an answer without a problem.
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
	head   http.Header     // headers besides those that headOf derives from the document
	doc    any             // nil = no body
	follow *service.Follow // the run for a client that wants a stream instead
	then   func()          // called after the request is logged; nil = nothing
}

// asked is a request to a route.
type asked struct {
	*http.Request
	id string // of the task, as given; validated
	values
	route    *route
	body     []byte       // the raw body, of unsafe methods
	identity string       // the UUID derived from the idempotency key; "" without a key
	seen     *tagged      // the task that If-Match names; nil without one
	again    bool         // an earlier attempt of this request may have taken effect
	silent   string       // the process that works on the task and does not answer; "" = none
	about    service.Task // the task that the request would change; zero = none
	released bool         // another process held the task, and has released it since

	unreached string // the only server that has the workspace, if it cannot be reached; "" = none
}

// call returns the request as the service sees it.
func (a *asked) call() service.Call {
	c := service.Call{Key: a.identity, Again: a.again, Door: a.door()}
	if a.seen != nil {
		if row, ok := a.seen.doc.(api.Summary); ok {
			c.Seen = &row
		}
	}
	return c
}

// door returns the name of the front door that input came through.
func (a *asked) door() string {
	switch {
	case a.RemoteAddr == client.LocalPeer:
		return "terminal"
	case isPeer(a.Request):
		return "cli"
	case entrance(a.Request) == "browser":
		return "web"
	}
	return "api"
}

// The next functions make the handlers of routes from methods of the service. name is where a method's text comes from: a
// variable part of the route's path, or one of its parameters.

// word returns the text that a variable part of the path, or a parameter, has in a request.
func (a *asked) word(name string) string { return cmp.Or(a.PathValue(name), a.text[name]) }

// shows makes the document of a route that shows one thing.
func shows[D any](name string, verb func(*service.Service, context.Context, string) (D, error)) reading {
	return func(s *Server, a *asked) (any, error) { return verb(s.service, a.Context(), a.word(name)) }
}

// lists makes the document of a route that pages through a complete list.
func lists[D any](name string, verb func(*service.Service, context.Context, string) ([]D, error)) reading {
	return func(s *Server, a *asked) (any, error) {
		all, err := verb(s.service, a.Context(), a.word(name))
		return pageOf(a, all, err)
	}
}

// pageOf returns a page of a complete list. The cursor is the number of items before the page.
func pageOf[T any](a *asked, all []T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	from, ok := countIn(a.text["cursor"])
	if !ok {
		return nil, service.BadCursor("list")
	}
	from = min(from, len(all))
	to := len(all)
	if limit := a.number["limit"]; limit > 0 {
		to = min(to, from+limit)
	}
	next := ""
	if to < len(all) {
		next = strconv.Itoa(to)
	}
	return api.PageOf(all[from:to], next), nil
}

// countIn reads the cursor of a list, the number of items before the page; "" is the start.
func countIn(cursor string) (n int, ok bool) {
	if cursor == "" {
		return 0, true
	}
	n, err := strconv.Atoi(cursor)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == cursor
}

// does makes the act of a route without a body.
func does(act func(*service.Service, *asked) (any, error)) acting {
	return func(s *Server, a *asked) (*reply, error) {
		doc, err := act(s.service, a)
		return &reply{doc: doc}, err
	}
}

// reads makes the act of a route with a body.
func reads[N any](act func(*Server, *asked, N) (*reply, error)) acting {
	return func(s *Server, a *asked) (*reply, error) {
		var n N
		if err := a.read(&n); err != nil {
			return nil, err
		}
		return act(s, a, n)
	}
}

// takes is reads for an act of the service.
func takes[N any](act func(*service.Service, *asked, N) (any, error)) acting {
	return reads(func(s *Server, a *asked, n N) (*reply, error) {
		doc, err := act(s.service, a, n)
		return &reply{doc: doc}, err
	})
}

// makes is takes for a method that needs only the body.
func makes[N, D any](verb func(*service.Service, context.Context, N) (D, error)) acting {
	return takes(func(s *service.Service, a *asked, n N) (any, error) { return verb(s, a.Context(), n) })
}

// puts is takes for a method that needs a text and the body.
func puts[N, D any](name string, verb func(*service.Service, context.Context, string, N) (D, error)) acting {
	return takes(func(s *service.Service, a *asked, n N) (any, error) { return verb(s, a.Context(), a.word(name), n) })
}

// changes is takes for a change of what the path names.
func changes[N, D any](name string, verb func(*service.Service, context.Context, service.Call, string, N) (D, error)) acting {
	return takes(func(s *service.Service, a *asked, n N) (any, error) {
		return verb(s, a.Context(), a.call(), a.word(name), n)
	})
}

// acts is changes for a route without a body.
func acts[D any](name string, verb func(*service.Service, context.Context, service.Call, string) (D, error)) acting {
	return does(func(s *service.Service, a *asked) (any, error) { return verb(s, a.Context(), a.call(), a.word(name)) })
}

// ends is acts for a method that needs no call: a repeat of it finds nothing left to do.
func ends[D any](name string, verb func(*service.Service, context.Context, string) (D, error)) acting {
	return does(func(s *service.Service, a *asked) (any, error) { return verb(s, a.Context(), a.word(name)) })
}

// badName returns the problem of a malformed name in the path of a request; nil if all are well-formed.
func badName(rt *route, r *http.Request) *api.Problem {
	if r.RemoteAddr == client.LocalPeer { // the user may name a folder of another tool by any name
		return nil
	}
	for _, name := range placesOf(rt.path) {
		text := r.PathValue(name)
		switch {
		case name == "id" && !service.ValidName(text):
			return problem(http.StatusBadRequest, "bad_id", "The task's id is malformed",
				"an id is a letter or digit, then up to 127 of A-Z a-z 0-9 . _ -, and may have a source and a colon before "+
					"it", "GET /v1/tasks")
		case len(text) > 300 || !validName().MatchString(text):
			return problem(http.StatusBadRequest, "bad_id", "A name in the path is malformed",
				"want 1 to 300 printable ASCII characters that form no path")
		}
	}
	return nil
}

// validName matches names: printable ASCII that is not a path. Its caller checks the length: a pattern that counts to
// 300 takes a millisecond to compile, at every start.
var validName = lazyregexp.New(`^[!-\-0-\[\]-~][!-.0-\[\]-~]*$`)

// placesOf returns the names of the variable parts of a path.
func placesOf(path string) []string {
	return api.Some(strings.Split(path, "/"), func(part string) (string, bool) {
		return strings.Trim(part, "{}"), strings.HasPrefix(part, "{")
	})
}

// param is a query parameter of a route. The same table serves the reading of queries and the OpenAPI document.
type param struct {
	name  string
	kind  string // text, number, flag, time, dollars, word, words
	words []string
	doc   string
	least int // of a number
	most  int
	deflt int
	room  int // for the value, in bytes; 0 = longest
}

func newParam(name, kind, doc string) param {
	p := param{name: name, kind: kind, doc: doc}
	switch {
	case strings.Contains(kind, ".."):
		p.kind = "number"
		_, _ = fmt.Sscanf(kind, "%d..%d=%d", &p.least, &p.most, &p.deflt) // a test parses every kind
	case strings.Contains(kind, "|"):
		p.kind, p.words = "word", strings.Split(kind, "|")
	case strings.Contains(kind, ","):
		p.kind, p.words = "words", strings.Split(kind, ",")
	}
	return p
}

// values are the given parameters of one request.
type values struct {
	text   map[string]string
	number map[string]int
	flag   map[string]bool
	time   map[string]int64 // Unix milliseconds
	usd    map[string]*money.USD
}

// paramsFor returns the parameters that a request may give. A client of this process may ask for a list without a
// limit, and give values of any length.
func paramsFor(r *http.Request, params []param) []param {
	if r.RemoteAddr != client.LocalPeer {
		return params
	}
	params = slices.Clone(params)
	for i := range params {
		params[i].room = math.MaxInt
		if params[i].name == "limit" {
			params[i].most = 0
		}
	}
	return params
}

// longest bounds a parameter, in bytes.
const longest = 4096

// decode reads the query of a request strictly: one problem lists all unknown, repeated and malformed parameters.
func decode(raw string, params []param, now time.Time) (values, error) {
	v := values{map[string]string{}, map[string]int{}, map[string]bool{}, map[string]int64{}, map[string]*money.USD{}}
	for _, p := range params {
		if p.kind == "number" {
			v.number[p.name] = p.deflt
		}
	}
	given, err := url.ParseQuery(raw)
	if err != nil {
		return v, problem(http.StatusBadRequest, "bad_query", "The query cannot be read",
			"the query is not of the form name=value&name=value, percent-encoded")
	}
	var wrong []api.Wrong
	for name, texts := range given {
		i := slices.IndexFunc(params, func(p param) bool { return p.name == name })
		switch {
		case i < 0:
			wrong = append(wrong, api.Wrong{Parameter: report.Clip(name), Detail: "there is no such parameter" + known(params)})
		case len(texts) > 1:
			wrong = append(wrong, api.Wrong{Parameter: name, Detail: "the parameter is given twice"})
		case len(texts[0]) > cmp.Or(params[i].room, longest):
			wrong = append(wrong, api.Wrong{Parameter: name, Detail: "the value is longer than 4096 bytes"})
		default:
			if why := v.read(params[i], texts[0], now); why != "" {
				wrong = append(wrong, api.Wrong{Parameter: name, Detail: why})
			}
		}
	}
	if len(wrong) == 0 {
		return v, nil
	}
	slices.SortFunc(wrong, func(a, b api.Wrong) int { return strings.Compare(a.Parameter, b.Parameter) })
	return v, api.Invalid(wrong...)
}

// read reads one parameter; why is "" when it is well-formed.
func (v *values) read(p param, text string, now time.Time) (why string) {
	switch p.kind {
	case "number":
		n, err := strconv.Atoi(text)
		switch {
		case p.most > 0 && (err != nil || n < p.least || n > p.most):
			return "want a whole number from " + strconv.Itoa(p.least) + " to " + strconv.Itoa(p.most)
		case err != nil || n < p.least:
			return "want a whole number from " + strconv.Itoa(p.least) + " on"
		}
		v.number[p.name] = n
	case "flag":
		b, err := strconv.ParseBool(text)
		if err != nil {
			return "want true or false"
		}
		v.flag[p.name] = b
	case "time":
		at, ok := api.Moment(text, now)
		if !ok {
			return "want a time such as 2026-01-31 or RFC 3339, or an age such as 7d"
		}
		v.time[p.name] = at
	case "dollars":
		usd, err := money.Parse(text)
		if err != nil || usd < 0 {
			return "want an amount of US dollars such as 0.50"
		}
		v.usd[p.name] = &usd
	case "word":
		if !slices.Contains(p.words, text) {
			return "want one of " + strings.Join(p.words, ", ")
		}
		v.text[p.name] = text
	case "words":
		for _, word := range strings.Split(text, ",") {
			if !slices.Contains(p.words, word) {
				return "want some of " + strings.Join(p.words, ", ") + ", joined by commas"
			}
		}
		v.text[p.name] = text
	default:
		v.text[p.name] = text
	}
	return ""
}

func known(params []param) string {
	if len(params) == 0 {
		return "; this route takes none"
	}
	return "; there are: " + strings.Join(api.Each(params, func(p param) string { return p.name }), ", ")
}

// slots bounds the requests that work at a time: in total, and for each caller, so that slow clients of one caller do not
// block the others.
type slots struct {
	mu          sync.Mutex
	total, each int
	now         int
	by          map[string]int
	left        chan struct{} // closed when a request gives its slot back, and then replaced
}

// newSlots makes slots; each is the bound of a caller, 0 = three quarters of them all.
func newSlots(total, each int) *slots {
	return &slots{total: total, each: cmp.Or(each, total-total/4), by: map[string]int{}, left: make(chan struct{})}
}

// callerOf returns the caller of a request: the account, or the address without one.
func callerOf(r *http.Request) string { return cmp.Or(accounts.Person(r.Context()), addressOf(r)) }

// enter takes a slot. At either bound it takes none, and another request closes left when it gives its slot back.
func (s *slots) enter(caller string) (leave func(), left <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now >= s.total || s.by[caller] >= s.each {
		return nil, s.left
	}
	s.now++
	s.by[caller]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
		if s.by[caller]--; s.by[caller] == 0 {
			delete(s.by, caller)
		}
		close(s.left)
		s.left = make(chan struct{})
	}), nil
}

// wait waits for a slot and takes it. When the client disconnects before that, wait panics with http.ErrAbortHandler.
func (s *slots) wait(r *http.Request) (leave func()) {
	for {
		leave, left := s.enter(callerOf(r))
		if left == nil {
			return leave
		}
		select {
		case <-left:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
}

// open counts the slots that are taken.
func (s *slots) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

const patchMedia = "application/merge-patch+json"

// smallBody is the size, in bytes, above which a body counts as large.
const smallBody = 64 << 10

// maxBodies bounds how many large bodies the server reads at a time.
const maxBodies = 8

// take reads the whole body of a request that changes something, within bounds of bytes and time. Nothing changes before
// the whole body has arrived.
func (s *Server) take(w http.ResponseWriter, a *asked) error {
	if a.ContentLength == 0 {
		return nil
	}
	if a.ContentLength < 0 || a.ContentLength > smallBody {
		defer s.bodies.wait(a.Request)() // each large body costs memory, so their number is bounded
	}
	ctl := http.NewResponseController(w)
	_ = ctl.SetReadDeadline(time.Now().Add(s.opt.BodyTimeout))
	var buf bytes.Buffer
	n, err := buf.ReadFrom(http.MaxBytesReader(w, a.Body, s.opt.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(s.opt.MaxBody)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.ErrUnexpectedEOF):
		return problem(http.StatusRequestTimeout, "body_incomplete", "The body is incomplete",
			"the body ended, or stopped arriving, before its announced length").Because(err)
	case err != nil: // a client that went away gets no answer
		return problem(http.StatusBadRequest, "body_malformed", "The body cannot be read", "its chunks are malformed")
	}
	// After the whole body was read, the connection can be used again, and the server notices a disconnected client
	// without a deadline.
	_ = ctl.SetReadDeadline(time.Time{})
	w.Header().Del("Connection")
	if n == 0 {
		return nil
	}
	if err := rightMedia(a); err != nil {
		return err
	}
	a.body = buf.Bytes()
	if a.route.body == nil { // some clients send an empty object for no body
		return a.read(&struct{}{})
	}
	return nil
}

// rightMedia refuses bodies with another media type than JSON, because a page of another site can send those without a
// preflight request.
func rightMedia(a *asked) error {
	given := a.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(given)
	charset := params["charset"]
	isJSON := media == jsonMedia || media == patchMedia && a.Method == http.MethodPatch
	if err != nil || !isJSON || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "The media type of the body is not supported",
			"its Content-Type is "+report.Clip(strconv.Quote(given)), "Content-Type: "+jsonMedia)
	}
	if enc := a.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "The media type of the body is not supported",
			"the body is compressed: "+report.Clip(strconv.Quote(enc)), "leave Content-Encoding out")
	}
	return nil
}

// read decodes the body strictly into the target of a pointer.
func (a *asked) read(into any) error { return schema.Read(a.body, into) }

// problemFor returns the problem of an error for the client, and nil for nil.
func (s *Server) problemFor(a *asked, err error) *api.Problem {
	if err == nil {
		return nil
	}
	if a.unreached != "" {
		return problem(http.StatusServiceUnavailable, "workspace_unreachable", "The server with the workspace cannot be reached",
			a.unreached+" has the workspace; 10 s after that server ended, another one may continue its tasks",
			"roost server status  # which servers run").Because(err).Later("5").About(a.id)
	}
	p := s.service.Problem(a.Context(), err, cmp.Or(a.id, a.text["task"], service.TaskOfQuestion(a.PathValue("qid"))))
	err = cmp.Or(p.Cause, err)
	if a.RemoteAddr == client.LocalPeer && (p.Code == "internal" || p.Code == "store_unavailable") { // this process's user may read the error
		p.Detail = err.Error()
		if at := (*fs.PathError)(nil); p.Code == "internal" && errors.As(err, &at) && filepath.IsAbs(at.Path) {
			p.Title = strings.NewReplacer("lstat", "open", "stat", "open").Replace(at.Op) + " " + at.Path
			p.Suggestions = []string{"ls -ld " + at.Path + "  # what it is, and who may use it"}
		}
	}
	p.Task = cmp.Or(p.Task, a.id)
	return p
}
