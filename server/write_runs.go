package server

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/report"
)

// runStates are those that a run can have.
var runStates = []string{"queued", "running", "waiting", "completed", "failed", "cancelled", "interrupted"}

// waitMost is how long an answer is held back for Prefer: wait.
const waitMost = 600 * time.Second

func runRoutes() []route {
	return []route{
		{path: "/v1/tasks/{id}/runs", summary: "The task's runs, newest first", answer: api.Page[api.Run]{},
			params: []param{limitParam, cursorParam}, document: (*Server).runsOf},
		{method: "POST", path: "/v1/tasks/{id}/runs", summary: "Start, resume or continue the task; as an event stream: the " +
			"events of that run", body: api.NewRun{}, answer: api.Run{},
			status: http.StatusAccepted, stream: true, act: (*Server).startRun},
		{path: "/v1/runs", summary: "Runs of all tasks: those that work or wait first, then newest first",
			answer: api.Page[api.Run]{}, fails: []int{400}, document: (*Server).runs,
			params: []param{{name: "state", kind: "word", words: runStates, doc: "only runs in this state"}, limitParam, cursorParam}},
		{path: "/v1/runs/{rid}", summary: "A run", answer: api.Run{}, waits: true, serve: (*Server).run},
		{method: "POST", path: "/v1/runs/{rid}/cancel", summary: "Stop a run, saved, within two seconds", answer: api.Run{},
			act: (*Server).cancelRun},
		{method: "POST", path: "/v1/tasks/{id}/cancel", summary: "Stop what works on the task or waits in the queue, saved, " +
			"within two seconds", answer: api.Run{}, act: (*Server).cancelTask},
	}
}

func runPath(id string) string { return "/v1/runs/" + url.PathEscape(id) }

func (s *Server) startRun(a *asked) (*reply, error) {
	r, err := newRun(a)
	if err != nil {
		return nil, err
	}
	if err := s.mayRestart(a); err != nil {
		return nil, err
	}
	t, err := s.submit(a, r)
	if err != nil {
		return nil, err
	}
	head := aboutTask(t.Ref.ID, t.ID)
	head.Set("Location", runPath(t.ID))
	return &reply{head: head, doc: report.RunOf(t.RunInfo), follow: followedOf(t.Ref.ID, t.ID, t.From)}, nil
}

// submit starts a run under the name that follows from the request's key, so that it is
// started once. A run that waits goes on under its own name: there the words have the key's,
// and are said once.
func (s *Server) submit(a *asked, r engine.Request) (engine.Ticket, error) {
	e := s.opt.Engine
	if a.key() == "" {
		return e.Submit(keep(a.Context()), r)
	}
	ref, err := s.opt.Store.FindLatest(a.Context(), a.id)
	if err != nil {
		return engine.Ticket{}, err
	}
	runs, err := e.RunsOf(a.Context(), ref.Source+":"+ref.ID)
	if err != nil {
		return engine.Ticket{}, err
	}
	name := a.runFor(ref.ID)
	started := slices.ContainsFunc(runs, func(i engine.RunInfo) bool { return i.ID == name })
	waits := len(runs) > 0 && runs[0].State == "waiting"
	switch words := r.Text != "" || len(r.Images) > 0; {
	case !started && words && (waits || a.again):
		from, _, err := events.Newest(a.Context(), s.opt.Store, ref)
		if err != nil {
			return engine.Ticket{}, err
		}
		sent, err := e.Send(keep(a.Context()), ref.Source+":"+ref.ID,
			engine.Message{ID: a.key(), Text: r.Text, Images: r.Images, By: a.door(), Request: r})
		if err != nil {
			return engine.Ticket{}, err
		}
		info, err := e.RunByID(a.Context(), sent.Run)
		return engine.Ticket{RunInfo: info, From: from}, err
	case started || !waits:
		r.RunID = name
	}
	return e.Submit(keep(a.Context()), r)
}

func (s *Server) runsOf(a *asked) (any, error) {
	if s.opt.Engine == nil {
		return nil, readOnly()
	}
	all, err := s.opt.Engine.RunsOf(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	return pageOf(a, all, report.RunOf)
}

// pageOf is a page of a list that is whole: the cursor is how many were shown.
func pageOf[T, D any](a *asked, all []T, doc func(T) D) (any, error) {
	from, ok := countIn(a.text["cursor"])
	if !ok {
		return nil, badCursor("list")
	}
	items := []D{}
	next := ""
	for i := min(from, len(all)); i < len(all); i++ {
		if len(items) == a.number["limit"] {
			next = strconv.Itoa(i)
			break
		}
		items = append(items, doc(all[i]))
	}
	return api.PageOf(items, next), nil
}

// countIn reads the cursor of a list, the number of items that were shown; "" is its start.
func countIn(cursor string) (n int, ok bool) {
	if cursor == "" {
		return 0, true
	}
	n, err := strconv.Atoi(cursor)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == cursor
}

func (s *Server) runs(a *asked) (any, error) {
	if s.opt.Engine == nil {
		return nil, readOnly()
	}
	if _, ok := countIn(a.text["cursor"]); !ok {
		return nil, badCursor("list")
	}
	found, next, err := s.opt.Engine.AllRuns(a.Context(), engine.RunFilter{State: a.text["state"], Limit: a.number["limit"],
		Cursor: a.text["cursor"]})
	if err != nil {
		return nil, err
	}
	items := make([]api.Run, len(found))
	for i, r := range found {
		items[i] = report.RunOf(r)
	}
	return api.PageOf(items, next), nil
}

// run answers with a run, when it has ended or waits if the client prefers so.
func (s *Server) run(w http.ResponseWriter, a *asked) *api.Problem {
	if s.opt.Engine == nil {
		return readOnly()
	}
	patience, given, p := waitOf(a)
	if p != nil {
		return p
	}
	info, err := s.opt.Engine.RunByID(a.Context(), a.PathValue("rid"))
	if err == nil && given && a.silent == "" { // there is no process that would report its end
		w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(patience/time.Second)))
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience + 3*s.opt.WriteTimeout))
		info, err = s.settled(a, info, patience)
	}
	if err != nil {
		return s.problemFor(a, err)
	}
	for name, values := range aboutTask(info.Ref.ID, info.ID) {
		w.Header()[name] = values
	}
	doc := report.RunOf(info)
	if moving(info) && !info.Here {
		doc.Silent = a.silent
	}
	if err := respond(w, a.Request, http.StatusOK, doc); err != nil {
		return s.problemFor(a, err)
	}
	return nil
}

// waitOf reads Prefer: wait=N, in seconds. RFC 7240 lets a server ignore other preferences.
func waitOf(a *asked) (wait time.Duration, given bool, p *api.Problem) {
	for _, header := range a.Header.Values("Prefer") {
		for _, one := range strings.Split(header, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(one), "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil || n < 0 {
				p := problem(http.StatusBadRequest, "bad_header", "The preference cannot be read",
					"want Prefer: wait=N with N in seconds, up to 600")
				return 0, false, p
			}
			return min(time.Duration(n)*time.Second, waitMost), true, nil
		}
	}
	return 0, false, nil
}

// moving reports whether a run may still go on by itself.
func moving(r engine.RunInfo) bool { return slices.Contains([]string{"queued", "running"}, r.State) }

// lookAgain is how often a run is looked at whose task's log says nothing: it may be in a
// queue, or its process may have died.
const lookAgain = 500 * time.Millisecond

// settled waits until a run has ended or waits for a person, as long as somebody wants to
// know. The task's log wakes it.
func (s *Server) settled(a *asked, info engine.RunInfo, patience time.Duration) (engine.RunInfo, error) {
	if !moving(info) {
		return info, nil
	}
	topic, leave, err := s.pipe.Task(info.Ref)
	if err != nil {
		return info, nil // the server stops: what is known is the answer
	}
	defer leave()
	over := time.NewTimer(patience)
	defer over.Stop()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for moving(info) {
		change := topic.Changed()
		if info, err = s.opt.Engine.RunByID(a.Context(), info.ID); err != nil || !moving(info) {
			break
		}
		select {
		case <-change:
		case <-tick.C:
		case <-over.C:
			return info, nil
		case <-s.stop:
			return info, nil
		case <-a.Context().Done():
			return info, a.Context().Err()
		}
	}
	return info, err
}

func (s *Server) cancelTask(a *asked) (*reply, error) {
	info, err := s.opt.Engine.CancelTask(a.Context(), a.id)
	if errors.Is(err, engine.ErrNoRun) {
		return nil, problem(http.StatusConflict, "run_not_active", "Nothing works on the task",
			"it neither runs nor waits in the queue", "GET "+taskPath(a.id)+"/runs")
	}
	if err != nil {
		return nil, err
	}
	return &reply{head: aboutTask(info.Ref.ID, info.ID), doc: report.RunOf(info)}, nil
}

func (s *Server) cancelRun(a *asked) (*reply, error) {
	info, err := s.opt.Engine.RunByID(a.Context(), a.PathValue("rid"))
	if err != nil {
		return nil, err
	}
	if a.again && info.State == "cancelled" { // by the first attempt
		return &reply{head: aboutTask(info.Ref.ID, info.ID), doc: report.RunOf(info)}, nil
	}
	if !moving(info) && info.State != "waiting" {
		p := problem(http.StatusConflict, "run_not_active", "The run has ended", "it is "+info.State, "GET "+runPath(info.ID))
		p.Task = info.Ref.ID
		return nil, p
	}
	done, err := s.opt.Engine.CancelTask(a.Context(), info.Ref.Source+":"+info.Ref.ID)
	if err != nil {
		return nil, err
	}
	return &reply{head: aboutTask(done.Ref.ID, done.ID), doc: report.RunOf(done)}, nil
}

// readOnly is the problem of a change on a server without an engine.
func readOnly() *api.Problem {
	return problem(http.StatusServiceUnavailable, "read_only", "This server only reads",
		"it was started without what works on tasks", "roost serve")
}
