package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/service"
)

// Reader is the part of *service.Service that the pages need.
type Reader interface {
	List(ctx context.Context, f api.TaskFilter) (api.Page[api.Summary], api.Found, error)
	Search(ctx context.Context, q api.SearchQuery) (api.Page[api.Hit], api.Found, error)
	Sources(ctx context.Context) ([]api.SourceState, error)
	Trash(ctx context.Context) ([]api.DeletedTask, error)
	Spending(ctx context.Context, by api.Grouping, f api.TaskFilter) (api.Totals, error)
	Task(ctx context.Context, id string) (service.Task, []string, error)
	Family(ctx context.Context, id string) (api.Family, error)
	Open(ctx context.Context, id string) (*service.OpenTask, error)
	NewestEvent(ctx context.Context) (string, error)
	Checkpoints(ctx context.Context, id string) (api.Checkpoints, error)
	Diff(ctx context.Context, id string, q service.DiffQuery) (api.Diff, error)
	Prompts(ctx context.Context, id string) (api.Prompts, error)
	Compare(ctx context.Context, id, with string) (api.Comparison, error)
	CommitMessage(ctx context.Context, id string) (api.CommitMessage, error)
	Questions(ctx context.Context, id string) ([]api.Question, error)
	UserSettings(ctx context.Context) (api.UserSettings, error)
	Models(provider string) api.Models
	Modes(ctx context.Context, workspace string) ([]api.Mode, error)
	MCPServers(ctx context.Context, workspace string) ([]api.MCPServer, error)
	ReadOnly() *api.Problem
	Administers(ctx context.Context) bool
	Refusal(ctx context.Context, a api.Access) (why string)
	Problem(ctx context.Context, err error, id string) *api.Problem
	// Elsewhere returns the address of the server that has the workspace whose lack an error reports; "" = there is
	// none.
	Elsewhere(ctx context.Context, err error) string
}

// Options are what the pages need.
type Options struct {
	Reader  Reader
	Version string           // of the program
	Now     func() time.Time // nil: time.Now
	// Devices lists the browsers that are logged in; nil: there is no page of devices.
	Devices func(context.Context) ([]api.Device, error)
	// Trust is the fingerprint of the certificate that devices of the local network install; "" = the server does not serve
	// them.
	Trust string
}

// Web is the handler of the pages. It is safe for concurrent use.
type Web struct {
	opt   Options
	serve map[string]func(http.ResponseWriter, *http.Request) error
	files map[string]file
}

// New makes the handler.
func New(o Options) *Web {
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Web{
		opt:   o,
		serve: map[string]func(http.ResponseWriter, *http.Request) error{},
		files: staticFiles(),
	}
	for path, show := range map[string]func(*asked) (*page, error){
		"/{$}":                w.history,
		"/tasks/{id}":         w.task,
		"/tasks/{id}/changes": w.changes,
		"/tasks/{id}/compare": w.compare,
		"/usage":              w.usage,
		"/trash":              listing("trash", "Trash", o.Reader.Trash, w.trashPage),
		"/sources":            listing("sources", "Sources", o.Reader.Sources, sourcesPage),
		"/devices":            listing("devices", "Devices", o.Devices, w.devicesPage),
		"/trust":              w.trust,
		"/settings":           w.settings,
		"/start":              w.start,
	} {
		if path == "/devices" && o.Devices == nil || path == "/trust" && o.Trust == "" {
			continue
		}
		w.serve[path] = func(out http.ResponseWriter, r *http.Request) error { return w.answer(out, r, show) }
	}
	w.serve["/static/{name}"] = w.static
	return w
}

// listing makes the page of a list that the template shows as it is.
func listing[T any](kind, title string, list func(context.Context) (T, error), show func(T) templ.Component) func(*asked) (*page, error) {
	return func(a *asked) (*page, error) {
		all, err := list(a.Context())
		return &page{Kind: kind, Title: title, Body: show(all)}, err
	}
}

// trust explains how to make a device trust the server's certificate. It needs no log-in: a device sees this page before
// it can log in.
func (w *Web) trust(*asked) (*page, error) {
	return &page{Kind: "trust", Title: "Trust this server", Body: trustPage(strings.ReplaceAll(w.opt.Trust, ":", " "))}, nil
}

// Pages returns the handlers of the pages by their patterns for http.ServeMux. They answer requests that have passed
// the server's gate. A handler that returns an error has sent nothing.
func (w *Web) Pages() map[string]func(http.ResponseWriter, *http.Request) error { return w.serve }

// asked is a request for a page.
type asked struct {
	*http.Request
	id string // of the task in the path; "" = none
}

// answer makes a page and sends it.
func (w *Web) answer(out http.ResponseWriter, r *http.Request, show func(*asked) (*page, error)) error {
	a := &asked{Request: r, id: r.PathValue("id")}
	if a.id != "" && !service.ValidName(a.id) {
		return api.NewProblem(http.StatusBadRequest, "bad_id", "The task's id is malformed",
			"an id has letters, digits, dots, dashes and underscores, and may have a source and a colon before it")
	}
	cursor, err := w.opt.Reader.NewestEvent(r.Context())
	if err != nil {
		return err
	}
	p, err := show(a)
	if err != nil {
		return err
	}
	p.Cursor = cursor
	w.send(out, r, p)
	return nil
}
