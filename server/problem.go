package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
)

// Problem is an error for a client: an RFC 9457 object with suggestions.
type Problem struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Status      int      `json:"status"`
	Code        string   `json:"code"` // for programs
	Detail      string   `json:"detail"`
	Instance    string   `json:"instance,omitempty"` // the path of the request
	Request     string   `json:"request_id,omitempty"`
	Task        string   `json:"task_id,omitempty"`
	Suggestions []string `json:"suggestions"`
	Retryable   bool     `json:"retryable"`
	Errors      []Wrong  `json:"errors,omitempty"`

	Answer *api.Answered `json:"answer,omitempty"` // the first answer to a question

	cause error  // for the log, never for the client
	allow string // of a 405
	after string // Retry-After, in seconds
}

// Wrong is one fault of a request.
type Wrong struct {
	Parameter string `json:"parameter"`
	Detail    string `json:"detail"`
}

func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

func (p *Problem) Unwrap() error { return p.cause }

func problem(status int, code, title, detail string, suggestions ...string) *Problem {
	return &Problem{Status: status, Code: code, Title: title, Detail: detail, Suggestions: suggestions}
}

// problemOf is the problem of an error. An unknown error is internal: its text goes to the log only, as it may name
// paths.
func (s *Server) problemOf(ctx context.Context, err error, id string) *Problem {
	var (
		own       *Problem
		trashed   *store.TrashedError
		ambiguous *store.AmbiguousError
		root      *store.RootError
		unread    *roofmt.UnreadError
	)
	edited := editProblem(err, id)
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, store.ErrMoved):
		return moved(id)
	case edited != nil:
		return edited
	case workProblem(err) != nil:
		return workProblem(err)
	case errors.As(err, &trashed):
		return problem(http.StatusNotFound, "task_not_found", "No such task", trashed.Error(), "roost trash restore "+trashed.Name)
	case errors.As(err, &ambiguous):
		p := problem(http.StatusConflict, "ambiguous_id", "More than one task goes by that id", fmt.Sprintf("%q fits %d tasks", clip(ambiguous.Given), len(ambiguous.Candidates)))
		p.Suggestions = ambiguous.Names()
		return p
	case errors.Is(err, store.ErrNotFound):
		detail := "no task goes by " + id
		if _, hint, ok := strings.Cut(err.Error(), "; it may lie in "); ok {
			detail += "; it may lie in " + hint
		}
		return problem(http.StatusNotFound, "task_not_found", "No such task", detail, append(s.closest(ctx, id), "GET /v1/tasks?query=WORDS, which looks for words in titles and ids", "roost list")...)
	case errors.Is(err, catalog.ErrQuery):
		return problem(http.StatusUnprocessableEntity, "validation_failed", "The query cannot be read", err.Error())
	case errors.As(err, &root):
		return problem(http.StatusServiceUnavailable, "store_unavailable", "The tasks cannot be read now", "the root cannot be used: "+root.Check).because(err)
	case errors.As(err, &unread) && !errors.Is(err, os.ErrPermission):
		return problem(http.StatusForbidden, "file_unreadable", "A file cannot be read", unread.Error()+"; the task is not gone on with without it", "ls -l "+unread.Path, "dmesg  # what the disk says").because(err)
	case errors.Is(err, os.ErrPermission):
		return forbidden(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		p := problem(http.StatusServiceUnavailable, "stopping", "The answer was not finished", "the server is stopping, or the client went away").because(err)
		p.Retryable, p.after = true, "1"
		return p
	}
	return problem(http.StatusInternalServerError, "internal", "It failed", "the server's log says why, by the request's id").because(err)
}

// forbidden names the file that the server may not read, and how to permit it.
func forbidden(err error) *Problem {
	p := problem(http.StatusForbidden, "permission_denied", "A file may not be read", "permission denied: this process may not read a file of that task").because(err)
	var (
		unread *roofmt.UnreadError
		at     *fs.PathError
	)
	path := ""
	switch {
	case errors.As(err, &unread):
		path, p.Detail = unread.Path, unread.Error()+"; the task is not gone on with without it"
	case errors.As(err, &at) && filepath.IsAbs(at.Path):
		path = at.Path
	}
	p.Suggestions = []string{"run the server as the owner of the task's files"}
	if path != "" {
		p.Suggestions = append([]string{"chmod u+r " + path, fmt.Sprintf("chown %d %s", os.Geteuid(), path)}, p.Suggestions...)
	}
	return p
}

func (p *Problem) because(err error) *Problem {
	p.cause = err
	return p
}

// closest are the ids most similar to an unknown one.
func (s *Server) closest(ctx context.Context, id string) []string {
	refs, err := s.opt.Store.Refs(ctx)
	if err != nil {
		return nil
	}
	_, want, named := strings.Cut(id, ":")
	if !named {
		want = id
	}
	type near struct {
		id    string
		share int
	}
	var found []near
	seen := map[string]bool{}
	for _, r := range refs {
		share := max(shared(r.ID, want), sharedEnd(r.ID, want))
		if share >= 4 && 2*share >= len(want) && !seen[r.ID] {
			seen[r.ID] = true
			found = append(found, near{r.ID, share})
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].share > found[j].share })
	var out []string
	for _, n := range found[:min(len(found), 3)] {
		out = append(out, n.id)
	}
	return out
}

func shared(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func sharedEnd(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// fail writes a problem.
func fail(w http.ResponseWriter, r *http.Request, p *Problem) {
	out := *p
	out.Type, out.Instance, out.Request = "about:blank#"+p.Code, r.URL.EscapedPath(), w.Header().Get(requestID)
	if out.Suggestions == nil {
		out.Suggestions = []string{}
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.after != "" {
		h.Set("Retry-After", p.after)
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="roost"`)
	}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(out) // it fails when the client is gone
	}
}
