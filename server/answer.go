package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/service"
)

// lament writes a problem, and logs those that are the server's own.
func (s *Server) lament(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	if p.Cause != nil && r.Context().Err() == nil {
		s.opt.Log.Warn("failed", "path", r.URL.Path, "request_id", w.Header().Get(requestID), "error", p.Cause.Error())
	}
	if isOlderPath(r.URL.Path) {
		failOlder(w, r, p, s.opt.Now())
		return
	}
	fail(w, r, p)
}

// answer answers a request of a route.
func (s *Server) answer(rt *route, w http.ResponseWriter, r *http.Request) *api.Problem {
	media := cmp.Or(rt.media, jsonMedia)
	if accept := r.Header.Values("Accept"); !accepts(accept, media) && !(rt.stream && accepts(accept, streamMedia)) &&
		!slices.ContainsFunc(rt.forms, func(form string) bool { return accepts(accept, form) }) {
		return problem(http.StatusNotAcceptable, "not_acceptable", "There is no such form of it", "this route gives "+media,
			"Accept: "+media)
	}
	if p := badName(rt, r); p != nil {
		return p
	}
	if p := s.service.ReadOnly(); p != nil && rt.engine {
		return p
	}
	a := &asked{Request: r, route: rt, id: r.PathValue("id")}
	var err error
	if a.values, err = decode(r.URL.RawQuery, paramsFor(r, rt.params), s.opt.Now()); err != nil {
		return s.problemFor(a, err)
	}
	if !safe(r.Method) {
		if err = s.take(w, a); err != nil {
			return s.problemFor(a, err)
		}
	}
	switch {
	case rt.waits && s.elsewhere(w, a): // the process that works on it knows first
		return nil
	case rt.serve != nil:
		return rt.serve(s, w, a)
	case rt.act != nil:
		return s.change(w, a)
	case !rt.open:
		select { // each reading costs memory, so their number is bounded
		case s.readings <- struct{}{}:
			defer func() { <-s.readings }()
		case <-r.Context().Done():
			return s.problemFor(a, r.Context().Err())
		}
	}
	doc, err := rt.document(s, a)
	if err == nil {
		err = respond(w, r, http.StatusOK, doc)
	}
	if err != nil {
		return s.problemFor(a, err)
	}
	return nil
}

// paramsFor are the parameters that a request may give. A client of this process may take a whole list.
func paramsFor(r *http.Request, params []param) []param {
	if r.RemoteAddr != client.LocalPeer {
		return params
	}
	params = slices.Clone(params)
	for i := range params {
		if params[i].name == "limit" {
			params[i].most = 0
		}
	}
	return params
}

// problemFor is the problem of an error for the client.
func (s *Server) problemFor(a *asked, err error) *api.Problem {
	p := s.service.Problem(a.Context(), err, a.id)
	if p.Cause != nil {
		err = p.Cause
	}
	if p.Code == "internal" && a.RemoteAddr == client.LocalPeer { // the user of this process may read what else goes to the log
		p.Detail = err.Error()
		if at := (*fs.PathError)(nil); errors.As(err, &at) && filepath.IsAbs(at.Path) {
			p.Title, p.Suggestions = "open "+at.Path, []string{"ls -ld " + at.Path + "  # what it is, and who may read it"}
		}
	}
	if a.id != "" && p.Task == "" {
		p.Task = a.id
	}
	return p
}

// respond writes a document, or 304 when the client has it.
func respond(w http.ResponseWriter, r *http.Request, status int, doc any) error {
	body, err := bytesOf(doc)
	if err != nil {
		return err
	}
	h := w.Header()
	tag := tagOf(doc, body)
	h.Set("ETag", tag)
	if status == http.StatusOK && matches(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	send(w, r, status, jsonMedia, body)
	return nil
}

// send writes an answer; to a HEAD request without its body.
func send(w http.ResponseWriter, r *http.Request, status int, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		//nolint:gosec // no media type is that of a page, and nosniff is set: no browser takes it for one
		_, _ = w.Write(body) // it fails when the client has disconnected
	}
}

// accepts reports whether an Accept header allows a media type; no header allows all.
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
		how := slices.Index([]string{"*/*", family + "/*", media}, name) // the most specific one counts
		if how < 0 || how < best {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		best, taken = how, err != nil || q > 0
	}
	return taken
}

// wantsStream reports whether an Accept header prefers events to a document.
func wantsStream(headers []string) bool {
	all := strings.Join(headers, ",")
	return strings.Contains(all, streamMedia) && accepts(headers, streamMedia) && !strings.Contains(all, jsonMedia)
}

// tagOf is the ETag of a document: the same bytes at the same position have the same one. The tag of a task has two
// parts. If-Match compares the first, which covers the task itself. The second covers its size on disk, which changes
// while Roo's files are written behind an unchanged journal, and its copies: a change of a task does not depend on
// them. A tag without the second part was rejected: two different bodies would have one tag.
func tagOf(doc any, body []byte) string {
	t, ok := doc.(tagged)
	row, isRow := t.doc.(api.Summary)
	if !ok || !isRow {
		return `"` + digest(body, t.head) + `"`
	}
	extra := strconv.FormatInt(row.Size, 36)
	if len(row.Copies) > 0 {
		extra += "." + digest([]byte(strings.Join(row.Copies, "\x00")), events.Cursor{})
	}
	row.Size, row.Copies = 0, nil
	shown, err := bytesOf(row)
	if err != nil { // it was just encoded
		return `"` + digest(body, t.head) + `"`
	}
	return `"` + digest(shown, t.head) + "." + extra + `"`
}

func digest(body []byte, head events.Cursor) string {
	sum := sha256.New()
	sum.Write(body)
	if head != (events.Cursor{}) {
		sum.Write([]byte(head.String()))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// guards is the part of a tag that If-Match compares.
func guards(tag string) string {
	if before, _, ok := strings.Cut(tag, "."); ok {
		return before + `"`
	}
	return tag
}

// matches reports whether an If-None-Match header holds a tag; weak tags count, as the standard requires.
func matches(headers []string, tag string) bool {
	return anyTag(headers, func(one string) bool { return strings.TrimPrefix(one, "W/") == tag })
}

// matchesStrongly is matches for If-Match: weak tags do not count, and neither does the second part of a tag.
func matchesStrongly(headers []string, tag string) bool {
	return anyTag(headers, func(one string) bool { return !strings.HasPrefix(one, "W/") && guards(one) == guards(tag) })
}

func anyTag(headers []string, fits func(string) bool) bool {
	for one := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		if one = strings.TrimSpace(one); one == "*" || fits(one) {
			return true
		}
	}
	return false
}

// guarded checks If-Match, and keeps other changes with If-Match out until the returned function is called. Another
// process can still change the task in between, so the code that takes the lock of the task compares again
// (service.Task.Expecting); a patch compares the members that it changes, see service.Call.
func (s *Server) guarded(a *asked) (unlock func(), err error) {
	want := a.Header.Values("If-Match")
	if len(want) == 0 || a.id == "" {
		return func() {}, nil
	}
	t, err := s.service.Find(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	free, err := s.guards.Lock(a.Context(), t.Name())
	if err != nil {
		return nil, err
	}
	doc, err := documentOf(a, t, nil)
	if err == nil {
		var body []byte
		if body, err = bytesOf(doc); err == nil && !matchesStrongly(want, tagOf(doc, body)) {
			if t.ChangedBy(a.Context(), a.call()) { // this request itself changed the task
				return free, nil
			}
			err = report.MovedProblem(a.id)
		}
	}
	if err != nil {
		free()
		return nil, err
	}
	a.seen = &doc
	ctx, done := t.Expecting(a.Context(), doc.head)
	was := a.Request
	a.Request = a.WithContext(ctx)
	return func() {
		a.Request = was
		done()
		free()
	}, nil
}

// This file makes the parts of answers.

// bytesOf are the bytes of a document.
func bytesOf(doc any) ([]byte, error) {
	if t, ok := doc.(tagged); ok {
		doc = t.doc
	}
	if body, ok := doc.(raw); ok {
		return body, nil
	}
	body, err := api.Encode(doc)
	if err != nil {
		return nil, fmt.Errorf("write the answer: %w", err)
	}
	return body, nil
}

func taskPath(id string) string { return "/v1/tasks/" + url.PathEscape(id) }

func runPath(id string) string { return "/v1/runs/" + url.PathEscape(id) }

// aboutTask are the headers that name the task and run of an answer, and the address of what a change made.
func aboutTask(task, run, location string) http.Header {
	h := http.Header{}
	for name, value := range map[string]string{"Roost-Task-Id": task, "Roost-Run-Id": run, "Location": location} {
		if value != "" {
			h.Set(name, value)
		}
	}
	return h
}

// headOf are the headers that follow from a document.
func headOf(doc any) http.Header {
	switch d := doc.(type) {
	case tagged:
		return headOf(d.doc)
	case api.Summary:
		return aboutTask(d.ID, "", "")
	case api.Run:
		return aboutTask(d.Task, d.ID, "")
	case api.Sent:
		return aboutTask(d.Task, d.Run, "")
	case api.Answered:
		return aboutTask(d.Task, d.Run, "")
	case api.Started:
		return aboutTask(d.Task, d.RunID, taskPath(d.Task))
	case api.Deleted:
		return aboutTask(d.ID, "", "")
	case api.DeletedTask:
		return aboutTask(d.ID, "", "")
	case api.Restored:
		return aboutTask(d.ID, "", taskPath(d.ID))
	case api.ForkResult:
		if !d.DryRun {
			return aboutTask(d.ID, "", taskPath(d.ID))
		}
	}
	return http.Header{}
}

// madeNothing reports whether a change that makes something had nothing to make.
func madeNothing(doc any) bool {
	switch d := doc.(type) {
	case api.ForkResult:
		return d.DryRun
	case api.SavedCheckpoint:
		return !d.Saved
	}
	return false
}

// pageOf is a page of a list that is whole: the cursor is how many were shown.
func pageOf[T any](a *asked, all []T) (any, error) {
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

// countIn reads the cursor of a list, the number of items that were shown; "" is its start.
func countIn(cursor string) (n int, ok bool) {
	if cursor == "" {
		return 0, true
	}
	n, err := strconv.Atoi(cursor)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == cursor
}

var problem = api.NewProblem

// fail writes a problem.
func fail(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	out := *p
	out.Type, out.Instance, out.Request = "about:blank#"+p.Code, r.URL.EscapedPath(), w.Header().Get(requestID)
	if out.Suggestions == nil {
		out.Suggestions = []string{}
	}
	h := w.Header()
	if p.Allow != "" {
		h.Set("Allow", p.Allow)
	}
	if p.After != "" {
		h.Set("Retry-After", p.After)
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="roost"`)
	}
	body, _ := api.Encode(out) // texts and numbers
	send(w, r, p.Status, "application/problem+json", body)
}
