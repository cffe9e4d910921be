package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/service"
)

// readRoutes returns the routes that read tasks.
func readRoutes() []route {
	return []route{
		{on: "GET /v1/sources", answer: sources{}, document: (*Server).sources},
		{on: "GET /v1/tasks", answer: api.Page[api.Summary]{}, document: (*Server).tasks},
		{on: "GET /v1/list", answer: api.ListPart{}, media: linesMedia, serve: (*Server).list},
		{on: "GET /v1/tasks/{id}", answer: api.Summary{}, document: (*Server).task},
		{on: "GET /v1/tasks/{id}/messages", answer: api.Window{}, document: windows(window), fragments: true},
		{on: "GET /v1/tasks/{id}/history", answer: api.Window{}, document: windows(window), fragments: true},
		{on: "GET /v1/tasks/{id}/messages/{number}/images/{image}", media: "application/octet-stream",
			forms: api.Pictures, serve: (*Server).picture},
		{on: "GET /v1/tasks/{id}/prompts", answer: api.Prompts{}, document: shows("id", (*service.Service).Prompts)},
		{on: "GET /v1/tasks/{id}/files", answer: api.KnownFiles{}, document: (*Server).files},
		{on: "GET /v1/tasks/{id}/usage", answer: api.Usage{}, document: shows("id", (*service.Service).Usage)},
		{on: "GET /v1/tasks/{id}/tree", answer: api.Branch{}, document: (*Server).tree},
		{on: "GET /v1/search", answer: api.Page[api.Hit]{}, fails: []int{404}, document: (*Server).search},
		{on: "GET /v1/usage", answer: api.Totals{}, document: (*Server).spending},
		{on: "GET /v1/filters", answer: api.FilterValues{}, document: func(s *Server, a *asked) (any, error) {
			return s.service.FilterValues(a.Context(), a.flag["called"])
		}},
		{on: "GET /v1/names", answer: api.Names{}, document: func(s *Server, a *asked) (any, error) {
			items, err := s.service.Names(a.Context())
			return api.Names{Items: items}, err
		}},
		{on: "GET /v1/undo", answer: api.Page[api.TaskActions]{}, document: (*Server).allActions},
		{on: "GET /v1/tasks/{id}/lines", answer: api.Lines{},
			document: windows(func(t service.View, a *asked, span service.Span) (any, error) {
				o := service.LinesOptions{API: a.text["view"] == "api", Effective: a.text["view"] == "effective", Whole: a.flag["whole"]}
				return t.Lines(a.Context(), o, span)
			})},
		{on: "GET /v1/tasks/{id}/alignment", answer: api.Alignment{},
			document: windows(func(t service.View, _ *asked, span service.Span) (any, error) { return t.Alignment(span) })},
		{on: "GET /v1/tasks/{id}/journal", answer: api.Commits{},
			document: windows(func(t service.View, a *asked, span service.Span) (any, error) {
				return t.Commits(a.Context(), span)
			})},
		{on: "GET /v1/tasks/{id}/context", answer: api.ContextUse{}, engine: true,
			document: func(s *Server, a *asked) (any, error) {
				return s.service.Context(a.Context(), a.id, a.text["workspace"])
			}},
		{on: "GET /v1/tasks/{id}/resume", answer: api.ResumePlan{}, engine: true, document: (*Server).resumePlan},
		{on: "GET /v1/tasks/{id}/export", media: "application/octet-stream",
			forms: []string{"text/markdown", "text/html", jsonMedia, "application/x-tar", "application/zip"},
			serve: (*Server).export},
	}
}

// draftRoutes returns the routes of drafts, for a task or for a new one.
func draftRoutes() (list []route) {
	for _, of := range []string{"/v1/tasks/{id}/draft", "/v1/draft"} {
		list = append(list,
			route{on: "GET " + of, answer: api.Draft{}, document: shows("id", (*service.Service).Draft)},
			route{on: "PUT " + of, body: api.NewDraft{}, answer: api.Draft{}, act: puts("id", (*service.Service).ChangeDraft)},
			route{on: "DELETE " + of, act: does(func(s *service.Service, a *asked) (any, error) {
				return nil, s.DropDraft(a.Context(), a.id, a.text["revision"])
			})},
			route{on: "GET " + of + "/images/{picture}", media: "application/octet-stream",
				forms: api.Pictures, serve: (*Server).draftImage})
	}
	return list
}

// completionRoutes returns the routes that complete the beginning of a word.
func completionRoutes() []route {
	document := func(s *Server, a *asked) (any, error) {
		return s.service.Completions(a.Context(), a.id, service.CompletionQuery{
			Kind:      cmp.Or(a.text["kind"], "mention"),
			Text:      a.text["text"],
			Workspace: a.text["workspace"],
			Mode:      a.text["mode"],
		})
	}
	return []route{
		{on: "GET /v1/tasks/{id}/completions", answer: api.Page[api.Completion]{}, engine: true, document: document},
		{on: "GET /v1/completions", answer: api.Page[api.Completion]{}, engine: true, document: document},
	}
}

// draftImage answers with an image of a draft. The image's name is derived from its bytes, so a browser may cache it.
func (s *Server) draftImage(w http.ResponseWriter, a *asked) *api.Problem {
	media, raw, err := s.service.DraftImage(a.Context(), a.id, a.PathValue("picture"))
	return s.sendImage(w, a, media, raw, err)
}

type sources struct {
	Items []api.SourceState `json:"items"`
}

func (s *Server) sources(a *asked) (any, error) {
	got, err := s.service.Sources(a.Context())
	return sources{got}, err
}

// filter returns the filter from the parameters that lists and searches share.
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

// list writes rows as they are read, one api.ListPart a line.
func (s *Server) list(w http.ResponseWriter, a *asked) *api.Problem {
	lines := json.NewEncoder(&relayed{w, http.NewResponseController(w), s.opt.WriteTimeout}) // a cold list takes minutes
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

// widen adds to a document the members that the parameter with asks for.
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

// searchPatience bounds how long a search for a client of another process adds to the index what the search had to read.
const searchPatience = 20 * time.Second

func (s *Server) search(a *asked) (any, error) {
	q := api.SearchQuery{Text: a.text["q"], Task: a.text["task"], Filter: a.filter(), Tool: a.text["tool"], File: a.text["file"],
		Each: a.number["each"], Tasks: a.number["tasks"], Patience: searchPatience}
	q.Filter.Sort = a.text["sort"]
	if a.RemoteAddr == client.LocalPeer {
		q.Patience = 0
	}
	if n := a.number["patience"]; n > 0 {
		q.Patience = time.Duration(n) * time.Second
	}
	if in := a.text["in"]; in != "" {
		q.In = strings.Split(in, ",")
	}
	page, found, err := s.service.Search(a.Context(), q)
	if err != nil || a.text["with"] == "" {
		return page, err
	}
	tasks := api.Each(page.Items, func(h api.Hit) api.Summary { return h.Task })
	return s.widen(a, page, tasks, found)
}

func (s *Server) spending(a *asked) (any, error) {
	return s.service.Spending(a.Context(), api.Grouping(a.text["by"]), a.filter())
}

func (s *Server) task(a *asked) (any, error) {
	t, copies, err := s.service.Task(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	return documentOf(a, t, copies)
}

// documentOf returns the document of a task, with its position.
func documentOf(a *asked, t service.Task, copies []string) (doc tagged, err error) {
	row, head, err := t.Document(a.Context())
	row.Copies = copies
	return tagged{row, head}, err
}

func (s *Server) resumePlan(a *asked) (any, error) {
	return s.service.ResumePlan(a.Context(), a.id, api.NewRun{
		Workspace: a.text["workspace"],
		Settings: api.Settings{
			Mode:     a.text["mode"],
			Provider: a.text["provider"],
			Model:    a.text["model"],
			Profile:  a.text["profile"],
		},
		OneRun:        api.OneRun{StandIn: a.text["stand_in"]},
		OwnSettings:   a.flag["own_settings"],
		TrustSettings: a.flag["trust_settings"],
	})
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

func (s *Server) allActions(a *asked) (any, error) {
	all, err := s.service.AllActions(a.Context(), a.number["limit"])
	return api.PageOf(all, ""), err
}

// windows makes the handler of a route that shows a part of a history or journal: show gets the part that was asked for.
func windows(show func(service.View, *asked, service.Span) (any, error)) reading {
	return func(s *Server, a *asked) (any, error) {
		span, err := a.span()
		if err != nil {
			return nil, err
		}
		return service.Read(a.Context(), s.service, a.id, func(t service.View) (any, error) { return show(t, a, span) })
	}
}

// window shows a window of one of the two histories: the user's or the model's.
func window(t service.View, a *asked, span service.Span) (any, error) {
	w, err := t.Window(a.history(), span)
	return windowBytes(w), err
}

// history is the history that the path and the parameters of a route name.
func (a *asked) history() service.LinesOptions {
	ofModel := strings.HasSuffix(a.route.path, "/history")
	return service.LinesOptions{API: ofModel, Effective: a.text["view"] == "effective"}
}

// fragments answers with messages as HTML: li elements in their order, and the addresses of earlier and later ones in Link.
func (s *Server) fragments(w http.ResponseWriter, a *asked) error {
	span, err := a.span()
	if err != nil {
		return err
	}
	page, err := service.Read(a.Context(), s.service, a.id, func(t service.View) (api.Fragments, error) {
		return t.Fragments(a.Context(), a.history(), span)
	})
	if err != nil {
		return err
	}
	var body bytes.Buffer
	for _, one := range page.Items {
		body.WriteString(one.HTML)
	}
	h := w.Header()
	link := func(rel, name string, at *int) {
		if at == nil {
			return
		}
		q := url.Values{name: {strconv.Itoa(*at)}, "limit": {strconv.Itoa(span.Limit)}}
		if a.text["view"] != "" {
			q.Set("view", a.text["view"])
		}
		h.Add("Link", "<"+a.URL.EscapedPath()+"?"+q.Encode()+`>; rel="`+rel+`"`)
	}
	link("prev", "before", page.Before)
	link("next", "after", page.After)
	h.Set("Vary", "Accept")
	send(w, a.Request, http.StatusOK, htmlMedia+"; charset=utf-8", body.Bytes())
	return nil
}

// picture answers with a picture of a message. The media type is detected from the bytes, and a browser that opens the
// picture as a page runs no script of it.
func (s *Server) picture(w http.ResponseWriter, a *asked) *api.Problem {
	number, err := strconv.Atoi(a.PathValue("number"))
	n, failed := strconv.Atoi(a.PathValue("image"))
	if err != nil || failed != nil {
		return problem(http.StatusNotFound, "picture_not_found", "There is no such picture", "numbers name a message and its picture")
	}
	o := service.LinesOptions{API: a.text["view"] == "api", Effective: a.text["view"] == "effective"}
	media, raw, err := s.service.Picture(a.Context(), a.id, o, number, n)
	return s.sendImage(w, a, media, raw, err)
}

// sendImage answers with an image, or with the problem of the error.
func (s *Server) sendImage(w http.ResponseWriter, a *asked, media string, raw []byte, err error) *api.Problem {
	if err != nil {
		return s.problemFor(a, err)
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	w.Header().Set("Cache-Control", "private, no-cache") // another message may take the number of this one
	sendTagged(w, a.Request, http.StatusOK, media, raw, tagOf(nil, raw))
	return nil
}

// windowBytes returns a window as JSON. It copies the items, because encoding them again would change their bytes.
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

// span returns the part of a list that the parameters before, after and limit name.
func (a *asked) span() (service.Span, error) {
	out := service.Span{Limit: a.number["limit"]}
	for name, to := range map[string]*int{"before": &out.Before, "after": &out.After} {
		text, given := a.text[name]
		if !given {
			continue
		}
		n, err := strconv.Atoi(strings.TrimPrefix(text, "#"))
		if err != nil || n < 0 || n == math.MaxInt || name == "before" && n == 0 {
			return out, api.Invalid(api.Wrong{Parameter: name, Detail: "want a message's number such as 12"})
		}
		if *to = n; name == "after" {
			*to = n + 1 // the first item of the span
		}
	}
	return out, nil
}

// exportMedia are the forms of an export.
var exportMedia = map[string]string{
	"md": "text/markdown; charset=utf-8", "html": "text/html; charset=utf-8", "json": jsonMedia, "roo": "application/x-tar",
	"archive": "application/zip",
}

// packed maps forms to the ending of the file's name, where the ending is not the form's name.
var packed = map[string]string{"roo": "tar", "archive": "zip"}

// export writes a task in another form. It streams the file, so that memory does not grow with the task.
func (s *Server) export(w http.ResponseWriter, a *asked) *api.Problem {
	defer s.exports.wait(a.Request)()
	format := cmp.Or(a.text["format"], "md")
	ids := []string{a.id}
	if also := a.text["also"]; also != "" {
		if format != "archive" {
			return api.Invalid(api.Wrong{Parameter: "also", Detail: "only an archive holds several tasks"})
		}
		if also == "*" { // every task that a list has
			all, _, err := s.service.List(a.Context(), api.TaskFilter{})
			if err != nil {
				return s.problemFor(a, err)
			}
			also = strings.Join(api.Each(all.Items, api.Summary.Key), ",")
		}
		ids = append(ids, strings.Split(also, ",")...)
		a.id = "" // a problem may be about any of them: its error names that one
	}
	x, err := s.service.Export(a.Context(), ids, format, a.text["redact"] != "false")
	if err != nil {
		return s.problemFor(a, err)
	}
	defer func() { _ = x.Close() }() // nothing was written
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
			panic(err) // the client of this process gets the error
		}
		panic(http.ErrAbortHandler) // half a file must not look like a whole one
	}
	if doc, err := json.Marshal(outcome); err == nil {
		h.Set("Roost-Export", url.QueryEscape(string(doc)))
	}
	return nil
}
