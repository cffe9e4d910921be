package server

import (
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
)

const (
	jsonMedia   = "application/json"
	streamMedia = "text/event-stream"
	htmlMedia   = "text/html"            // of pages
	linesMedia  = "application/x-ndjson" // a JSON document a line
	requestID   = "X-Request-Id"
)

// raw is a document that is already JSON.
type raw []byte

// tagged is a document of a task with the position of its journal. The position changes the tag even if two changes within
// one millisecond cancel each other.
type tagged struct {
	doc  any
	head events.Cursor
}

// respond writes a document, or 304 if the client has the same document.
func respond(w http.ResponseWriter, r *http.Request, status int, doc any) error {
	body, err := bytesOf(doc)
	if err != nil {
		return err
	}
	sendTagged(w, r, status, jsonMedia, body, tagOf(doc, body))
	return nil
}

// sendTagged is send with a tag. It writes 304 if the client has the answer with that tag.
func sendTagged(w http.ResponseWriter, r *http.Request, status int, media string, body []byte, tag string) {
	w.Header().Set("ETag", tag)
	if status == http.StatusOK && matches(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, r, status, media, body)
}

// begin sets the deadline for a client that does not read its answer. The work on an answer may use it up, so it begins
// again after long work. Streams set a deadline for each write.
func (s *Server) begin(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(3 * s.opt.WriteTimeout))
}

// send writes an answer; for a HEAD request it leaves out the body.
func send(w http.ResponseWriter, r *http.Request, status int, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		//nolint:gosec // no media type is that of a page, and nosniff is set: no browser takes it for one
		_, _ = w.Write(body) // it fails if the client has disconnected
	}
}

// relayed sets a new deadline for each write. It is for streams and whole files.
type relayed struct {
	http.ResponseWriter
	ctl   *http.ResponseController
	limit time.Duration
}

func (p *relayed) Write(b []byte) (int, error) {
	_ = p.ctl.SetWriteDeadline(time.Now().Add(p.limit)) // a client of this process has no deadline
	return p.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (p *relayed) Unwrap() http.ResponseWriter { return p.ResponseWriter }

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
		how := slices.Index([]string{"*/*", family + "/*", media}, name) // the most specific match decides
		if how < 0 || how < best {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		best, taken = how, err != nil || q > 0
	}
	return taken
}

// prefers reports whether an Accept header prefers a media type, that of events or of pages, to a document.
func prefers(headers []string, media string) bool {
	all := strings.Join(headers, ",")
	return strings.Contains(all, media) && accepts(headers, media) && !strings.Contains(all, jsonMedia)
}

// tagOf returns the ETag of a document: the same bytes at the same position have the same tag. The tag of a task has
// two parts. If-Match compares the first part, which covers the task itself. The second part covers the task's copies
// and its size on disk, on which a change of a task does not depend: the size changes while Roo's files are written
// after the last commit. A tag without the second part was rejected, because two different bodies would have one tag.
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
	if err != nil { // the same document was encoded before
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

// guards returns the part of a tag that If-Match compares.
func guards(tag string) string {
	if before, _, ok := strings.Cut(tag, "."); ok {
		return before + `"`
	}
	return tag
}

// matches reports whether an If-None-Match header holds a tag, or its weak form, as the standard requires.
func matches(headers []string, tag string) bool {
	return anyTag(headers, func(one string) bool { return strings.TrimPrefix(one, "W/") == tag })
}

// matchesStrongly is matches for If-Match: a weak tag matches nothing, and the second part of a tag is ignored.
func matchesStrongly(headers []string, tag string) bool {
	return anyTag(headers, func(one string) bool { return !strings.HasPrefix(one, "W/") && guards(one) == guards(tag) })
}

func anyTag(headers []string, fits func(string) bool) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(headers, ","), ","), func(one string) bool {
		one = strings.TrimSpace(one)
		return one == "*" || fits(one)
	})
}

// bytesOf returns the bytes of a document.
func bytesOf(doc any) ([]byte, error) {
	if t, ok := doc.(tagged); ok {
		doc = t.doc
	}
	if body, ok := doc.(raw); ok {
		return body, nil
	}
	body, err := api.Encode(doc)
	return body, api.Failed(err, "write the answer")
}

func taskPath(id string) string { return "/v1/tasks/" + url.PathEscape(id) }

// aboutTask returns the headers that name the task and run of an answer, and the address of a new task.
func aboutTask(task, run, location string) http.Header {
	h := http.Header{}
	for name, value := range map[string]string{"Roost-Task-Id": task, "Roost-Run-Id": run, "Location": location} {
		if value != "" {
			h.Set(name, value)
		}
	}
	return h
}

// headOf returns the headers that are derived from a document.
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

// madeNothing reports whether a change made nothing new.
func madeNothing(doc any) bool {
	switch d := doc.(type) {
	case api.ForkResult:
		return d.DryRun
	case api.SavedCheckpoint:
		return !d.Saved
	}
	return false
}

var problem = api.NewProblem

// fail writes a problem.
func fail(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	out := *p
	out.Type, out.Instance, out.Request = "about:blank#"+p.Code, r.URL.EscapedPath(), w.Header().Get(requestID)
	out.Suggestions = append([]string{}, out.Suggestions...) // a list, also when it is empty
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

func tooLarge(most int64) *api.Problem {
	return problem(http.StatusRequestEntityTooLarge, "body_too_large", "The body is too large",
		"a body may have up to "+strconv.FormatInt(most>>20, 10)+" MiB")
}
