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
		{method: "POST", path: "/v1/tasks", summary: "A new task: with a message it runs at once, without it is there and " +
			"does nothing. The answer is the task, with its run",
			body: api.NewTask{}, answer: api.Started{}, status: http.StatusCreated, stream: true, act: (*Server).startTask},
		{method: "PATCH", path: "/v1/tasks/{id}", summary: "Change title, tags, pin or settings: a merge patch",
			body: api.TaskPatch{}, answer: api.Summary{}, act: (*Server).patchTask},
		{method: "DELETE", path: "/v1/tasks/{id}", summary: "Put a task into the trash", answer: api.Deleted{},
			act: does(func(s *service.Service, a *asked) (any, error) {
				return s.Delete(a.Context(), a.id, a.text["subtasks"])
			}),
			params: []param{{name: "subtasks", kind: "word", words: []string{service.KeepSubtasks, service.DeleteSubtasks},
				doc: "what happens to the task's subtasks; required when there are some"}}},
	}
}

func (s *Server) startTask(a *asked) (*reply, error) {
	var n api.NewTask
	if err := a.read(&n); err != nil {
		return nil, err
	}
	doc, follow, err := s.service.Start(a.Context(), a.call(), n)
	return &reply{doc: doc, follow: followedOf(follow)}, err
}

func (s *Server) patchTask(a *asked) (*reply, error) {
	var p api.TaskPatch
	if err := a.read(&p); err != nil {
		return nil, err
	}
	t, copies, err := s.service.Patch(a.Context(), a.call(), a.id, p)
	if err != nil {
		return nil, err
	}
	doc, err := documentOf(a, t, copies)
	return &reply{doc: doc}, err
}

func trashRoutes() []route {
	return []route{
		{path: "/v1/trash", summary: "Deleted tasks, newest first", answer: api.Page[api.DeletedTask]{},
			params: []param{limitParam, cursorParam}, document: lists(func(s *service.Service, a *asked) ([]api.DeletedTask, error) {
				return s.Trash(a.Context())
			})},
		{path: "/v1/trash/{name}", summary: "A deleted task, also one that was purged and whose folder another tool keeps",
			answer:   api.DeletedTask{},
			document: func(s *Server, a *asked) (any, error) { return s.service.Trashed(a.Context(), a.PathValue("name")) }},
		{method: "POST", path: "/v1/trash/{name}/restore", summary: "Put a deleted task back", answer: api.Restored{},
			act: does(func(s *service.Service, a *asked) (any, error) {
				return s.Untrash(a.Context(), a.call(), a.PathValue("name"))
			})},
		{method: "POST", path: "/v1/purges", summary: "Remove deleted tasks for good", body: api.NewPurge{},
			answer: api.Purged{}, act: takes(func(s *service.Service, a *asked, n api.NewPurge) (any, error) {
				return s.PurgeAll(a.Context(), n.Names)
			})},
		{method: "DELETE", path: "/v1/trash/{name}", summary: "Remove a deleted task for good", answer: api.DeletedTask{},
			act: does(func(s *service.Service, a *asked) (any, error) { return s.Purge(a.Context(), a.PathValue("name")) })},
	}
}

// runStates are those that a run can have.
var runStates = []string{"queued", "running", "waiting", "completed", "failed", "cancelled", "interrupted"}

// waitMost is how long an answer is held back for Prefer: wait.
const waitMost = 600 * time.Second

func runRoutes() []route {
	return []route{
		{path: "/v1/tasks/{id}/runs", summary: "The task's runs, newest first", answer: api.Page[api.Run]{},
			params: []param{limitParam, cursorParam}, engine: true,
			document: lists(func(s *service.Service, a *asked) ([]api.Run, error) { return s.RunsOf(a.Context(), a.id) })},
		{method: "POST", path: "/v1/tasks/{id}/runs", summary: "Start, resume or continue the task; as an event stream: the " +
			"events of that run", body: api.NewRun{}, answer: api.Run{},
			status: http.StatusAccepted, stream: true, act: (*Server).startRun},
		{path: "/v1/runs", summary: "Runs of all tasks: those that work or wait first, then newest first",
			answer: api.Page[api.Run]{}, fails: []int{400}, engine: true, document: (*Server).runs,
			params: []param{{name: "state", kind: "word", words: runStates, doc: "only runs in this state"}, limitParam, cursorParam}},
		{path: "/v1/runs/{rid}", summary: "A run", answer: api.Run{}, engine: true, waits: true, serve: (*Server).run},
		{method: "POST", path: "/v1/runs/{rid}/cancel", summary: "Stop a run, saved, within two seconds", answer: api.Run{},
			act: does(func(s *service.Service, a *asked) (any, error) {
				return s.CancelRun(a.Context(), a.call(), a.PathValue("rid"))
			})},
		{method: "POST", path: "/v1/tasks/{id}/cancel", summary: "Stop what works on the task or waits in the queue, saved, " +
			"within two seconds", answer: api.Run{},
			act: does(func(s *service.Service, a *asked) (any, error) { return s.Cancel(a.Context(), a.id) })},
	}
}

func (s *Server) startRun(a *asked) (*reply, error) {
	var n api.NewRun
	if err := a.read(&n); err != nil {
		return nil, err
	}
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
		{method: "POST", path: "/v1/tasks/{id}/messages", summary: "Words for the task: they answer the open question, wait " +
			"until the run takes them, or start one",
			body: api.Message{}, answer: api.Sent{}, status: http.StatusAccepted, act: changes((*service.Service).Send)},
		{path: "/v1/tasks/{id}/queue", summary: "Words that the task has not used yet", answer: api.Page[api.Queued]{},
			params: []param{limitParam, cursorParam}, engine: true,
			document: lists(func(s *service.Service, a *asked) ([]api.Queued, error) { return s.Queue(a.Context(), a.id) })},
		{method: "PATCH", path: "/v1/tasks/{id}/queue/{input}", summary: "Give words in the queue other words",
			body: api.InputPatch{}, answer: api.Queued{},
			act: takes(func(s *service.Service, a *asked, p api.InputPatch) (any, error) {
				return s.EditInput(a.Context(), a.id, a.PathValue("input"), p)
			})},
		{method: "DELETE", path: "/v1/tasks/{id}/queue/{input}", summary: "Take words out of the queue",
			act: does(func(s *service.Service, a *asked) (any, error) {
				return nil, s.DropInput(a.Context(), a.id, a.PathValue("input"))
			})},
	}
}

func questionRoutes() []route {
	return []route{
		{path: "/v1/questions", summary: "Open questions and approvals of all tasks, the oldest first",
			answer: api.Page[api.Question]{}, fails: []int{400, 404}, engine: true,
			document: lists(func(s *service.Service, a *asked) ([]api.Question, error) {
				return s.Questions(a.Context(), a.text["task"])
			}),
			params: []param{{name: "task", kind: "text", doc: "only of this task"}, limitParam, cursorParam}},
		{path: "/v1/questions/{qid}", summary: "An open question", answer: api.Question{}, engine: true,
			document: func(s *Server, a *asked) (any, error) { return s.service.Question(a.Context(), a.PathValue("qid")) }},
		{method: "POST", path: "/v1/questions/{qid}/answer", summary: "Answer a question: the first answer wins",
			body: api.Answer{}, answer: api.Answered{}, act: takes(func(s *service.Service, a *asked, n api.Answer) (any, error) {
				return s.Answer(a.Context(), a.call(), a.PathValue("qid"), n)
			})},
	}
}

// editRoutes are the routes that change histories and files of a task, and undo that.
func editRoutes() []route {
	const id = "/v1/tasks/{id}"
	post := http.MethodPost
	return []route{
		{method: post, path: id + "/rewinds", summary: "Take both histories back to a message, edit a message, or take one " +
			"out", body: api.NewRewind{}, answer: api.Rewound{}, act: changes((*service.Service).Rewind)},
		{path: id + "/undo", summary: "What can be taken back of a task, and done again, the newest first",
			answer: api.TaskActions{}, document: shows((*service.Service).Actions)},
		{method: post, path: id + "/undo", summary: "Take back what was last done to a task", body: api.NewUndo{},
			answer: api.Undone{}, act: changes((*service.Service).Undo)},
		{method: post, path: id + "/redo", summary: "Do again what was taken back last", body: api.NewUndo{},
			answer: api.Undone{}, act: changes((*service.Service).Redo)},
		{method: post, path: id + "/forks", summary: "Make a new task with the history of this one; a dry run answers 200",
			body: api.NewFork{}, answer: api.ForkResult{}, status: http.StatusCreated, also: http.StatusOK,
			act: changes((*service.Service).Fork)},
		{method: post, path: id + "/condense", summary: "Have older history summarised", body: api.NewCondense{},
			answer: api.Condensed{}, act: (*Server).condense},
		{path: id + "/branches", summary: "The branches of a task: what its histories were before they were moved",
			answer: api.BranchTree{}, document: shows((*service.Service).Branches)},
		{method: post, path: id + "/head", summary: "Make a branch the head of the histories; what was the head stays as a " +
			"branch", body: api.NewHead{}, answer: api.Head{},
			act: changes((*service.Service).Switch)},
		{path: id + "/checkpoints", summary: "The states of files that the task changed, the oldest first",
			answer: api.Checkpoints{}, engine: true, document: shows((*service.Service).Checkpoints)},
		{method: post, path: id + "/checkpoints", summary: "Save a checkpoint of the files as they are now; 200 when nothing " +
			"differs from the newest one", answer: api.SavedCheckpoint{}, status: http.StatusCreated, also: http.StatusOK,
			act: does(func(s *service.Service, a *asked) (any, error) { return s.SaveCheckpoint(a.Context(), a.call(), a.id) })},
		{path: id + "/checkpoints/{c}/diff", summary: "What differs between a checkpoint and another one, or now",
			answer: api.Diff{}, engine: true, document: (*Server).diff, params: []param{
				{name: "to", kind: "text", doc: "another checkpoint, or now (the default)"},
				{name: "path", kind: "text", doc: "only this file or folder; several are separated by line breaks"},
				{name: "stat", kind: "flag", doc: "without the differences by lines"},
			}},
		{method: post, path: id + "/checkpoints/{c}/restore",
			summary: "Put the files that the task changed back as they were at a checkpoint", body: api.NewRestore{},
			answer: api.RestoreResult{}, act: takes(func(s *service.Service, a *asked, n api.NewRestore) (any, error) {
				return s.Restore(a.Context(), a.call(), a.id, checkpointOf(a), n)
			})},
	}
}

func (s *Server) condense(a *asked) (*reply, error) {
	var n api.NewCondense
	if err := a.read(&n); err != nil {
		return nil, err
	}
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
