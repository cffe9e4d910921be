package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/service"
)

func taskRoutes() []route {
	return []route{
		{on: "POST /v1/tasks", body: api.NewTask{}, answer: api.Started{}, status: http.StatusCreated, stream: true,
			act: reads((*Server).startTask)},
		{on: "PATCH /v1/tasks/{id}", body: api.TaskPatch{}, answer: api.Summary{}, act: reads((*Server).patchTask)},
		{on: "DELETE /v1/tasks/{id}", answer: api.Deleted{}, act: does(func(s *service.Service, a *asked) (any, error) {
			return s.Delete(a.Context(), a.id, a.text["subtasks"])
		})},
	}
}

func (s *Server) startTask(a *asked, n api.NewTask) (*reply, error) {
	doc, follow, err := s.service.Start(a.Context(), a.call(), n)
	return &reply{doc: doc, follow: followedOf(follow)}, err
}

func (s *Server) patchTask(a *asked, p api.TaskPatch) (*reply, error) {
	t, copies, err := s.service.Patch(a.Context(), a.call(), a.id, p)
	if err != nil {
		return nil, err
	}
	doc, err := documentOf(a, t, copies)
	return &reply{doc: doc}, err
}

func trashRoutes() []route {
	return []route{
		{on: "GET /v1/trash", answer: api.Page[api.DeletedTask]{},
			document: lists(func(s *service.Service, a *asked) ([]api.DeletedTask, error) { return s.Trash(a.Context()) })},
		{on: "GET /v1/trash/{name}", answer: api.DeletedTask{},
			document: func(s *Server, a *asked) (any, error) { return s.service.Trashed(a.Context(), a.PathValue("name")) }},
		{on: "POST /v1/trash/{name}/restore", answer: api.Restored{}, act: does(func(s *service.Service, a *asked) (any, error) {
			return s.Untrash(a.Context(), a.call(), a.PathValue("name"))
		})},
		{on: "POST /v1/purges", body: api.NewPurge{}, answer: api.Purged{},
			act: takes(func(s *service.Service, a *asked, n api.NewPurge) (any, error) {
				return s.PurgeAll(a.Context(), n.Names)
			})},
		{on: "DELETE /v1/trash/{name}", answer: api.DeletedTask{},
			act: does(func(s *service.Service, a *asked) (any, error) { return s.Purge(a.Context(), a.PathValue("name")) })},
	}
}

// waitMost is how long an answer is held back for Prefer: wait.
const waitMost = 600 * time.Second

func runRoutes() []route {
	return []route{
		{on: "GET /v1/tasks/{id}/runs", answer: api.Page[api.Run]{}, engine: true,
			document: lists(func(s *service.Service, a *asked) ([]api.Run, error) { return s.RunsOf(a.Context(), a.id) })},
		{on: "POST /v1/tasks/{id}/runs", body: api.NewRun{}, answer: api.Run{}, status: http.StatusAccepted, stream: true,
			act: reads((*Server).startRun)},
		{on: "GET /v1/runs", answer: api.Page[api.Run]{}, fails: []int{400}, engine: true, document: (*Server).runs},
		{on: "GET /v1/runs/{rid}", answer: api.Run{}, engine: true, waits: true, serve: (*Server).run},
		{on: "POST /v1/runs/{rid}/cancel", answer: api.Run{}, act: does(func(s *service.Service, a *asked) (any, error) {
			return s.CancelRun(a.Context(), a.call(), a.PathValue("rid"))
		})},
		{on: "POST /v1/tasks/{id}/cancel", answer: api.Run{},
			act: does(func(s *service.Service, a *asked) (any, error) { return s.Cancel(a.Context(), a.id) })},
	}
}

func (s *Server) startRun(a *asked, n api.NewRun) (*reply, error) {
	doc, follow, err := s.service.Continue(a.Context(), a.call(), a.id, n)
	return &reply{head: http.Header{"Location": {runPath(doc.ID)}}, doc: doc, follow: followedOf(follow)}, err
}

func (s *Server) runs(a *asked) (any, error) {
	if _, ok := countIn(a.text["cursor"]); !ok {
		return nil, service.BadCursor("list")
	}
	return s.service.Runs(a.Context(), service.RunFilter{State: a.text["state"], Limit: a.number["limit"], Cursor: a.text["cursor"]})
}

// run answers with a run, when it has ended or waits if the client prefers so.
func (s *Server) run(w http.ResponseWriter, a *asked) *api.Problem {
	patience, given, p := waitOf(a)
	if p != nil {
		return p
	}
	id := a.PathValue("rid")
	doc, err := s.service.Run(a.Context(), id, a.silent)
	if err == nil && given && a.silent == "" { // there is no process that would report its end
		w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(patience/time.Second)))
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience + 3*s.opt.WriteTimeout))
		doc, err = s.service.Settled(a.Context(), id, patience, s.stop)
	}
	if err != nil {
		return s.problemFor(a, err)
	}
	for name, values := range headOf(doc) {
		w.Header()[name] = values
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
				return 0, false, problem(http.StatusBadRequest, "bad_header", "The preference cannot be read",
					"want Prefer: wait=N with N in seconds, up to 600")
			}
			return min(time.Duration(n)*time.Second, waitMost), true, nil
		}
	}
	return 0, false, nil
}

func wordRoutes() []route {
	return []route{
		{on: "POST /v1/tasks/{id}/messages", body: api.Message{}, answer: api.Sent{}, status: http.StatusAccepted,
			act: changes((*service.Service).Send)},
		{on: "GET /v1/tasks/{id}/queue", answer: api.Page[api.Queued]{}, engine: true,
			document: lists(func(s *service.Service, a *asked) ([]api.Queued, error) { return s.Queue(a.Context(), a.id) })},
		{on: "PATCH /v1/tasks/{id}/queue/{input}", body: api.InputPatch{}, answer: api.Queued{},
			act: takes(func(s *service.Service, a *asked, p api.InputPatch) (any, error) {
				return s.EditInput(a.Context(), a.id, a.PathValue("input"), p)
			})},
		{on: "DELETE /v1/tasks/{id}/queue/{input}", act: does(func(s *service.Service, a *asked) (any, error) {
			return nil, s.DropInput(a.Context(), a.id, a.PathValue("input"))
		})},
	}
}

func questionRoutes() []route {
	return []route{
		{on: "GET /v1/questions", answer: api.Page[api.Question]{}, fails: []int{400, 404}, engine: true,
			document: lists(func(s *service.Service, a *asked) ([]api.Question, error) {
				return s.Questions(a.Context(), a.text["task"])
			})},
		{on: "GET /v1/questions/{qid}", answer: api.Question{}, engine: true,
			document: func(s *Server, a *asked) (any, error) { return s.service.Question(a.Context(), a.PathValue("qid")) }},
		{on: "POST /v1/questions/{qid}/answer", body: api.Answer{}, answer: api.Answered{},
			act: takes(func(s *service.Service, a *asked, n api.Answer) (any, error) {
				return s.Answer(a.Context(), a.call(), a.PathValue("qid"), n)
			})},
	}
}

// editRoutes are the routes that change histories and files of a task, and undo that.
func editRoutes() []route {
	return []route{
		{on: "POST /v1/tasks/{id}/rewinds", body: api.NewRewind{}, answer: api.Rewound{}, act: changes((*service.Service).Rewind)},
		{on: "GET /v1/tasks/{id}/undo", answer: api.TaskActions{}, document: shows((*service.Service).Actions)},
		{on: "POST /v1/tasks/{id}/undo", body: api.NewUndo{}, answer: api.Undone{}, act: changes((*service.Service).Undo)},
		{on: "POST /v1/tasks/{id}/redo", body: api.NewUndo{}, answer: api.Undone{}, act: changes((*service.Service).Redo)},
		{on: "POST /v1/tasks/{id}/forks", body: api.NewFork{}, answer: api.ForkResult{}, status: http.StatusCreated,
			also: http.StatusOK, act: changes((*service.Service).Fork)},
		{on: "POST /v1/tasks/{id}/condense", body: api.NewCondense{}, answer: api.Condensed{}, act: reads((*Server).condense)},
		{on: "GET /v1/tasks/{id}/branches", answer: api.BranchTree{}, document: shows((*service.Service).Branches)},
		{on: "POST /v1/tasks/{id}/head", body: api.NewHead{}, answer: api.Head{}, act: changes((*service.Service).Switch)},
		{on: "GET /v1/tasks/{id}/checkpoints", answer: api.Checkpoints{}, engine: true,
			document: shows((*service.Service).Checkpoints)},
		{on: "POST /v1/tasks/{id}/checkpoints", answer: api.SavedCheckpoint{}, status: http.StatusCreated, also: http.StatusOK,
			act: does(func(s *service.Service, a *asked) (any, error) { return s.SaveCheckpoint(a.Context(), a.call(), a.id) })},
		{on: "GET /v1/tasks/{id}/checkpoints/{c}/diff", answer: api.Diff{}, engine: true, document: (*Server).diff},
		{on: "POST /v1/tasks/{id}/checkpoints/{c}/restore", body: api.NewRestore{}, answer: api.RestoreResult{},
			act: takes(func(s *service.Service, a *asked, n api.NewRestore) (any, error) {
				return s.Restore(a.Context(), a.call(), a.id, checkpointOf(a), n)
			})},
	}
}

func (s *Server) condense(a *asked, n api.NewCondense) (*reply, error) {
	ctx := a.Context()
	if a.RemoteAddr != client.LocalPeer {
		ctx = context.WithoutCancel(ctx) // a client of another process that goes away interrupts nothing
	}
	until, end := s.untilStop(ctx) // the request to the model may take minutes
	defer end()
	doc, err := s.service.Condense(a.Context(), until, a.call(), a.id, n)
	return &reply{doc: doc}, err
}

func (s *Server) diff(a *asked) (any, error) {
	q := service.DiffQuery{From: checkpointOf(a), To: a.text["to"], Patch: !a.flag["stat"]}
	for _, path := range strings.Split(a.text["path"], "\n") {
		if path = strings.TrimSpace(path); path != "" {
			q.Paths = append(q.Paths, path)
		}
	}
	return s.service.Diff(a.Context(), a.id, q)
}

// checkpointOf is the checkpoint in the path of a request; newest in a path, "" here: the one before the newest change.
func checkpointOf(a *asked) string {
	if c := a.PathValue("c"); c != "newest" {
		return c
	}
	return ""
}
