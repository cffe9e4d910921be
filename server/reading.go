package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/server/schema"
	"github.com/roost-dev/roost/service"
)

// param is a query parameter of a route. The reader of queries and the OpenAPI document use the same table.
type param struct {
	name  string
	kind  string // text, number, flag, time, dollars, word, words
	words []string
	doc   string
	least int // of a number
	most  int
	deflt int
}

func newParam(name, kind, doc string) param {
	p := param{name: name, kind: kind, doc: doc}
	switch {
	case strings.Contains(kind, ".."):
		p.kind = "number"
		_, _ = fmt.Sscanf(kind, "%d..%d=%d", &p.least, &p.most, &p.deflt) // a test reads all
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
			"it is not of the form name=value&name=value, percent-encoded")
	}
	var wrong []api.Wrong
	for name, texts := range given {
		i := slices.IndexFunc(params, func(p param) bool { return p.name == name })
		switch {
		case i < 0:
			wrong = append(wrong, api.Wrong{Parameter: report.Clip(name), Detail: "there is no such parameter" + known(params)})
		case len(texts) > 1:
			wrong = append(wrong, api.Wrong{Parameter: name, Detail: "it is given twice"})
		case len(texts[0]) > longest:
			wrong = append(wrong, api.Wrong{Parameter: name, Detail: "it is too long"})
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
	return v, wrongParameters(wrong...)
}

func wrongParameters(wrong ...api.Wrong) *api.Problem {
	p := api.Invalid(wrong...)
	p.Title = "A parameter is wrong"
	return p
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
	var names []string
	for _, p := range params {
		names = append(names, p.name)
	}
	return "; there are: " + strings.Join(names, ", ")
}

const patchMedia = "application/merge-patch+json"

// smallBody is the size, in bytes, up to which a body does not count as large.
const smallBody = 64 << 10

// maxBodies bounds how many large bodies the server reads at a time.
const maxBodies = 8

// take reads the whole body of a request that changes something, within bounds of bytes and time. Nothing changes
// before all of it has arrived.
func (s *Server) take(w http.ResponseWriter, a *asked) error {
	if a.ContentLength == 0 {
		return nil
	}
	if a.ContentLength < 0 || a.ContentLength > smallBody {
		select { // each large one costs memory, so their number is bounded
		case s.bodies <- struct{}{}:
			defer func() { <-s.bodies }()
		case <-a.Context().Done():
			return a.Context().Err()
		}
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
		return problem(http.StatusRequestTimeout, "body_incomplete", "The body did not come",
			"it ended, or stopped coming, before its end").Because(err)
	case err != nil:
		return errors.Join(err, context.Canceled) // the client went away
	}
	// The whole body was read: the connection can be used again, and the server notices without a deadline that the
	// client has gone.
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

func tooLarge(most int64) *api.Problem {
	return problem(http.StatusRequestEntityTooLarge, "body_too_large", "The body is too large",
		"a body may have up to "+strconv.FormatInt(most>>20, 10)+" MiB")
}

// rightMedia refuses bodies with another media type than JSON: a page of another site can send those without a
// preflight request.
func rightMedia(a *asked) error {
	given := a.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(given)
	charset := params["charset"]
	isJSON := media == jsonMedia || media == patchMedia && a.Method == http.MethodPatch
	if err != nil || !isJSON || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "The body is of no kind that can be read",
			"its Content-Type is "+report.Clip(strconv.Quote(given)), "Content-Type: "+jsonMedia)
	}
	if enc := a.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "The body is of no kind that can be read",
			"it is packed: "+report.Clip(strconv.Quote(enc)), "leave Content-Encoding out")
	}
	return nil
}

// read decodes the body strictly into the target of a pointer.
func (a *asked) read(into any) error { return schema.Read(a.body, into) }

type sources struct {
	Items []api.SourceState `json:"items"`
}

func (s *Server) sources(a *asked) (any, error) {
	got, err := s.service.Sources(a.Context())
	return sources{got}, err
}

// filter is the filter from the parameters that lists and searches share.
func (a *asked) filter() api.TaskFilter {
	return api.TaskFilter{
		Workspace: a.text["workspace"], Status: a.text["status"], Source: a.text["source"], Tag: a.text["tag"], Model: a.text["model"],
		Since: a.time["since"], Until: a.time["until"], MinCost: a.usd["min_cost"], MaxCost: a.usd["max_cost"],
		Limit: a.number["limit"], Cursor: a.text["cursor"],
	}
}

func (s *Server) tasks(a *asked) (any, error) {
	f := a.filter()
	f.Words, f.Sort, f.Tree, f.Damaged, f.Empty = a.text["query"], a.text["sort"], a.flag["tree"], a.flag["damaged"], a.flag["empty"]
	page, found, err := s.service.List(a.Context(), f)
	if err != nil {
		return nil, err
	}
	return s.widen(a, page, page.Items, found)
}

// list writes all rows while they are read: an api.ListPart a line.
func (s *Server) list(w http.ResponseWriter, a *asked) *api.Problem {
	lines := json.NewEncoder(w)
	begun := false
	for part, err := range s.service.Stream(a.Context(), a.number["first"]) {
		if err != nil {
			p := s.problemFor(a, err)
			if !begun {
				return p
			}
			part = api.ListPart{Problem: p}
		}
		part.Items = append([]api.Summary{}, part.Items...) // a list, also when it is empty
		part.Sources = append([]api.SourceState{}, part.Sources...)
		if !begun {
			w.Header().Set("Content-Type", linesMedia)
			begun = true
		}
		if lines.Encode(part) != nil || http.NewResponseController(w).Flush() != nil {
			return nil // the reader has gone
		}
	}
	return nil
}

// widen adds to a document what the parameter with asks for, behind its members.
func (s *Server) widen(a *asked, doc any, items []api.Summary, found api.Found) (any, error) {
	var more struct {
		Names map[string]string `json:"names,omitempty"`
		Found *api.Found        `json:"found,omitempty"`
	}
	with := strings.Split(a.text["with"], ",")
	if slices.Contains(with, "found") {
		more.Found = &found
	}
	if slices.Contains(with, "names") {
		var err error
		if more.Names, err = s.service.ShortNames(a.Context(), items); err != nil {
			return nil, err
		}
	}
	body, err := bytesOf(doc)
	added, failed := bytesOf(more)
	if err = errors.Join(err, failed); err != nil || len(added) <= len("{}\n") {
		return raw(body), err
	}
	return raw(slices.Concat(body[:len(body)-len("}\n")], []byte(","), added[1:])), nil
}

// searchPatience is how long a search of a client of another process also adds to the index what it had to read.
const searchPatience = 20 * time.Second

func (s *Server) search(a *asked) (any, error) {
	q := api.SearchQuery{Text: a.text["q"], Filter: a.filter(), Tool: a.text["tool"], File: a.text["file"]}
	patience := searchPatience
	if a.RemoteAddr == client.LocalPeer {
		patience = 0
	}
	if in := a.text["in"]; in != "" {
		q.In = strings.Split(in, ",")
	}
	page, found, err := s.service.Search(a.Context(), q, patience)
	if err != nil || a.text["with"] == "" {
		return page, err
	}
	tasks := make([]api.Summary, len(page.Items))
	for i, h := range page.Items {
		tasks[i] = h.Task
	}
	return s.widen(a, page, tasks, found)
}

func (s *Server) spending(a *asked) (any, error) {
	return s.service.Spending(a.Context(), api.Grouping(a.text["by"]), service.SpendFilter{
		Source: a.text["source"], Workspace: a.text["workspace"], Since: a.time["since"], Until: a.time["until"],
	})
}

func (s *Server) task(a *asked) (any, error) {
	t, copies, err := s.service.Task(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	return documentOf(a, t, copies)
}

// documentOf is the document of a task, with its position.
func documentOf(a *asked, t service.Task, copies []string) (doc tagged, err error) {
	row, head, err := t.Document(a.Context())
	row.Copies = copies
	return tagged{row, head}, err
}

func (s *Server) tree(a *asked) (any, error) {
	family, err := s.service.Family(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	return s.widen(a, family.Branch(), family.Tasks, api.Found{})
}

func (s *Server) files(a *asked) (any, error) {
	var only *string
	if path, named := a.text["path"]; named {
		only = &path
	}
	return s.service.KnownFiles(a.Context(), a.id, a.text["workspace"], only)
}

// lookRoutes are the routes by which the command line shows tasks.
func lookRoutes() []route {
	return []route{
		{on: "GET /v1/names", answer: api.Names{}, document: func(s *Server, a *asked) (any, error) {
			items, err := s.service.Names(a.Context())
			return api.Names{Items: items}, err
		}},
		{on: "GET /v1/undo", answer: api.Page[api.TaskActions]{}, document: (*Server).allActions},
		{on: "GET /v1/tasks/{id}/lines", answer: api.Lines{},
			document: windows(func(s *service.Service, a *asked, span service.Span) (any, error) {
				o := service.LinesOptions{API: a.text["view"] == "api", Effective: a.text["view"] == "effective", Whole: a.flag["whole"]}
				return s.Lines(a.Context(), a.id, o, span)
			})},
		{on: "GET /v1/tasks/{id}/journal", answer: api.Commits{},
			document: windows(func(s *service.Service, a *asked, span service.Span) (any, error) {
				return s.Commits(a.Context(), a.id, span)
			})},
		{on: "GET /v1/tasks/{id}/context", answer: api.ContextUse{}, fails: []int{503},
			document: func(s *Server, a *asked) (any, error) {
				return s.service.Context(a.Context(), a.id, a.text["workspace"])
			}},
	}
}

func (s *Server) allActions(a *asked) (any, error) {
	all, err := s.service.AllActions(a.Context(), a.number["limit"])
	return api.PageOf(all, ""), err
}

// messages and history show windows of the two histories.
func messages(s *service.Service, a *asked, span service.Span) (any, error) {
	w, err := s.Messages(a.Context(), a.id, span)
	return windowBytes(w), err
}

func history(s *service.Service, a *asked, span service.Span) (any, error) {
	w, err := s.History(a.Context(), a.id, a.text["view"] == "effective", span)
	return windowBytes(w), err
}

// windowBytes is a window as JSON. The items are copied: encoding them again would change their bytes.
func windowBytes(w api.Window) raw {
	var o esjson.Object
	o.String("task_id", w.Task)
	o.String("history", w.History)
	o.Raw("items", esjson.List(w.Items))
	put := func(key string, v any) {
		text, _ := json.Marshal(v) // numbers and texts
		o.Raw(key, text)
	}
	put("numbers", append([]int{}, w.Numbers...))
	put("total", w.Total)
	put("next_before", w.Before)
	put("next_after", w.After)
	put("notes", append([]string{}, w.Notes...))
	put("notices", append([]api.Notice{}, w.Notices...))
	return append(raw(o.Bytes()), '\n')
}

// span is the part of a list that the parameters before, after and limit name.
func (a *asked) span() (service.Span, error) {
	out := service.Span{Limit: a.number["limit"]}
	for name, to := range map[string]*int{"before": &out.Before, "after": &out.After} {
		text, given := a.text[name]
		if !given {
			continue
		}
		n, err := strconv.Atoi(strings.TrimPrefix(text, "#"))
		if err != nil || n < 0 || name == "before" && n == 0 {
			return out, wrongParameters(api.Wrong{Parameter: name, Detail: "want a message's number such as 12"})
		}
		if *to = n; name == "after" {
			*to = n + 1 // the first one
		}
	}
	return out, nil
}

// exportMedia are the forms of an export.
var exportMedia = map[string]string{
	"md": "text/markdown; charset=utf-8", "html": "text/html; charset=utf-8", "json": jsonMedia, "roo": "application/x-tar",
	"archive": "application/zip",
}

// packed are the endings of forms that are not called as they end.
var packed = map[string]string{"roo": "tar", "archive": "zip"}

func exportRoutes() []route {
	return []route{{
		on: "GET /v1/tasks/{id}/export", media: "application/octet-stream",
		forms: []string{"text/markdown", "text/html", jsonMedia, "application/x-tar", "application/zip"},
		serve: (*Server).export,
	}}
}

// export writes a task in another form, as it is made: memory does not grow with it.
func (s *Server) export(w http.ResponseWriter, a *asked) *api.Problem {
	select { // see answer
	case s.readings <- struct{}{}:
		defer func() { <-s.readings }()
	case <-a.Context().Done():
		return s.problemFor(a, a.Context().Err())
	}
	format := a.text["format"]
	if format == "" {
		format = "md"
	}
	ids := []string{a.id}
	if also := a.text["also"]; also != "" {
		if format != "archive" {
			return problem(http.StatusUnprocessableEntity, "validation_failed", "A parameter is wrong",
				"also: only an archive holds several tasks")
		}
		ids = append(ids, strings.Split(also, ",")...)
	}
	x, err := s.service.Export(a.Context(), ids, format, a.text["redact"] != "false")
	if err != nil {
		return s.problemFor(a, err)
	}
	defer func() { _ = x.Close() }() // it was only read
	h := w.Header()
	h.Set("Content-Type", exportMedia[format])
	h.Set("Content-Disposition", mime.FormatMediaType("attachment",
		map[string]string{"filename": x.Name + "." + cmp.Or(packed[format], format)}))
	h.Set("Roost-Task-Id", x.Task)
	h.Set("Trailer", "Roost-Export")
	outcome, err := x.Write(a.Context(), &relayed{w, http.NewResponseController(w), s.opt.WriteTimeout})
	if err != nil {
		s.opt.Log.Warn("export failed", "path", a.URL.Path, "request_id", h.Get(requestID), "error", err.Error())
		if a.RemoteAddr == client.LocalPeer {
			panic(err) // the user of this process reads why
		}
		panic(http.ErrAbortHandler) // half a file must not look like a whole one
	}
	if doc, err := json.Marshal(outcome); err == nil {
		h.Set("Roost-Export", url.QueryEscape(string(doc)))
	}
	return nil
}
