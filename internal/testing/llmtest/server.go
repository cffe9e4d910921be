// Package llmtest is a model provider for tests: a real HTTP server on loopback
// that speaks Anthropic's, OpenAI's two and Google's APIs, also as Amazon Bedrock, Vertex AI
// and Azure OpenAI offer them, checks every request
// against the API's documented rules, and plays replies and faults. A test writes a
// reply once, in Anthropic's blocks; the server sends it in the dialect of the request.
//
// A request that breaks a rule gets the 400 that the API would give, and is kept
// as a violation: with New the test fails for it. Replies are played in order, one
// per accepted or refused request. When none is left the server answers 500 and
// counts that as a violation too, because a test that sends more requests than it
// planned is wrong about something.
//
// It works in a test and in a plain program, so that a test can watch a killed and
// restarted child process from outside.
package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// TB is the part of testing.TB that New needs.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Request is what a client sent.
type Request struct {
	Number int // from 1
	Path   string
	At     time.Time
	Header http.Header
	Body   []byte
}

// Model is the model that the request names.
func (r Request) Model() string {
	var m struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(r.Body, &m)
	if of, is := strings.CutPrefix(r.Path, "/model/"); is { // Bedrock
		return strings.TrimSuffix(of, "/invoke-with-response-stream")
	}
	if m.Model == "" { // Google names it in the path
		m.Model, _, _ = strings.Cut(path.Base(r.Path), ":")
	}
	return m.Model
}

// Replies counts the model's replies that the request brings back, in any dialect.
func (r Request) Replies() int {
	type entry struct{ Role, Type string }
	var m struct{ Messages, Input, Contents []entry }
	_ = json.Unmarshal(r.Body, &m) // another shape holds none
	n, inside := 0, false
	for _, e := range slices.Concat(m.Messages, m.Input, m.Contents) {
		mine := e.Role == "assistant" || e.Role == "model" || e.Type == "reasoning" || e.Type == "function_call"
		if mine && (!inside || e.Type == "") { // items that follow each other are one reply
			n++
		}
		inside = mine
	}
	return n
}

// Server is a running provider.
type Server struct {
	URL string // base URL, without /v1
	Key string // when set, other keys get 401

	Cloud Cloud // what a cloud lets in

	// Tolerate keeps violations from failing the test; they are still answered 400.
	Tolerate bool

	http   *http.Server
	done   chan struct{}
	closed chan struct{}
	once   sync.Once

	mu         sync.Mutex
	answer     func(Request) Reply
	replies    []Reply
	requests   []Request
	violations []string
	conns      int
}

// New starts a server that ends with the test and fails it for violations. t may
// be nil in a plain program; then the caller closes it.
func New(t TB, replies ...Reply) *Server {
	s, err := Serve("127.0.0.1:0", replies...)
	if t == nil {
		if err != nil {
			panic(err)
		}
		return s
	}
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	t.Cleanup(func() {
		s.Close()
		if !s.Tolerate {
			for _, v := range s.Violations() {
				t.Errorf("llmtest: %s", v)
			}
		}
	})
	return s
}

// Serve starts a server on addr, e.g. "127.0.0.1:0".
func Serve(addr string, replies ...Reply) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("llmtest: listen on %s: %w", addr, err)
	}
	s := &Server{
		URL: "http://" + l.Addr().String(), replies: replies,
		done: make(chan struct{}), closed: make(chan struct{}),
	}
	mux := http.NewServeMux()
	for path, d := range dialects {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { s.answerIn(d, w, r) })
	}
	mux.HandleFunc("POST /token", s.giveToken)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.violation("asked for %s %s", r.Method, r.URL.Path)
		writeError(w, http.StatusNotFound, "not_found_error", "Not Found")
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s.http.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			s.conns++
			s.mu.Unlock()
		}
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // ErrServerClosed
	}()
	return s, nil
}

// Close ends the server, running answers included, and waits for it.
func (s *Server) Close() {
	s.once.Do(func() { close(s.closed) })
	_ = s.http.Close()
	<-s.done
}

// Add appends replies.
func (s *Server) Add(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, replies...)
}

// Requests returns what came so far, refused requests included.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Violations returns the rules that were broken so far.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.violations...)
}

// Connections is how many connections were opened so far.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

func (s *Server) violation(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// dialect is the wire format of one provider.
type dialect struct {
	key    func(http.Header) string
	admit  func(s *Server, r *http.Request, body []byte) *refusal // instead of key: what a cloud lets in
	check  func(h http.Header, body []byte) string                // the first rule that a request breaks
	events func(Reply, Request) [][]byte                          // a reply as its stream
	failed func(typ, message string) []byte                       // an error in the middle of a stream
	refuse func(w http.ResponseWriter, status int, typ, message string)
	media  string // of the stream; "" = server-sent events
}

var dialects = map[string]dialect{
	"/v1/messages": {
		key:   func(h http.Header) string { return h.Get("X-Api-Key") },
		check: Check, events: Reply.events, failed: failedEvent, refuse: writeError,
	},
	"/v1/chat/completions": {
		key: bearer, check: CheckChat, events: Reply.chatEvents, failed: chatFailed, refuse: writeOpenAIError,
	},
	"/v1beta/models/{call}": {
		key: googleKey, check: CheckGoogle, events: Reply.googleEvents, failed: googleFailed, refuse: writeGoogleError,
	},
	"/v1/responses": {
		key: bearer, check: CheckResponses, events: Reply.responsesEvents, failed: responsesFailed, refuse: writeOpenAIError,
	},
	"/model/{model}/invoke-with-response-stream": {
		admit: admitAWS, check: CheckBedrock, events: Reply.bedrockEvents, failed: bedrockFailed, refuse: writeAWSError,
		media: "application/vnd.amazon.eventstream",
	},
	vertexPath + "anthropic/models/{call}": {
		admit: admitVertex, check: CheckVertexClaude, events: Reply.events, failed: failedEvent, refuse: writeGoogleError,
	},
	vertexPath + "google/models/{call}": {
		admit: admitVertex, check: CheckVertexGemini, events: Reply.googleEvents, failed: googleFailed, refuse: writeGoogleError,
	},
	"/openai/v1/responses": {
		admit: admitAzure, check: CheckResponses, events: Reply.responsesEvents, failed: responsesFailed, refuse: writeAzureError,
	},
	"/openai/deployments/{deployment}/chat/completions": {
		admit: admitAzure, check: CheckAzureChat, events: Reply.chatEvents, failed: chatFailed, refuse: writeAzureError,
	},
}

func (s *Server) answerIn(d dialect, w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	if err != nil {
		return // the client left in the middle: not a request
	}
	s.mu.Lock()
	req := Request{Number: len(s.requests) + 1, Path: r.URL.Path, At: time.Now(), Header: r.Header.Clone(), Body: body}
	s.requests = append(s.requests, req)
	s.mu.Unlock()

	if d.admit != nil {
		if no := d.admit(s, r, body); no != nil {
			d.refuse(w, no.status, no.code, no.message)
			return
		}
	} else if key := d.key(r.Header); key == "" || s.expected() != "" && key != s.expected() {
		d.refuse(w, http.StatusUnauthorized, "authentication_error", "invalid key")
		return
	}
	if problem := d.check(r.Header, body); problem != "" {
		s.violation("request %d: %s", req.Number, problem)
		d.refuse(w, http.StatusBadRequest, "invalid_request_error", problem)
		return
	}
	reply, ok := s.next(req)
	if !ok {
		s.violation("request %d: no reply left", req.Number)
		d.refuse(w, http.StatusInternalServerError, "api_error", "no reply left in the test server")
		return
	}
	reply.serve(d, w, r, req, s.closed)
}

// readBody reads a body of known length in one piece: the server must not be what
// a benchmark measures.
func readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength < 0 {
		return io.ReadAll(r.Body)
	}
	b := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, b)
	return b, err
}

// Answer lets f decide instead of the replies, for the requests that follow. f
// is called for one request at a time.
func (s *Server) Answer(f func(Request) Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

func (s *Server) next(req Request) (Reply, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil {
		return s.answer(req), true
	}
	if len(s.replies) == 0 {
		return Reply{}, false
	}
	r := s.replies[0]
	s.replies = s.replies[1:]
	return r, true
}
