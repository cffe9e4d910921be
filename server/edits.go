package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/service"
)

// editRoutes are the routes that change histories and files of a task, and undo that.
func editRoutes() []route {
	const id = "/v1/tasks/{id}"
	post := http.MethodPost
	return []route{
		{method: post, path: id + "/rewinds", summary: "Take both histories back to a message, edit a message, or take one " +
			"out", body: api.NewRewind{}, answer: api.Rewound{}, act: change((*service.Service).Rewind)},
		{path: id + "/undo", summary: "What can be taken back of a task, and done again, the newest first",
			answer: api.TaskActions{}, document: ofTask((*service.Service).Actions)},
		{method: post, path: id + "/undo", summary: "Take back what was last done to a task", body: api.NewUndo{},
			answer: api.Undone{}, act: change((*service.Service).Undo)},
		{method: post, path: id + "/redo", summary: "Do again what was taken back last", body: api.NewUndo{},
			answer: api.Undone{}, act: change((*service.Service).Redo)},
		{method: post, path: id + "/forks", summary: "Make a new task with the history of this one; a dry run answers 200",
			body: api.NewFork{}, answer: api.ForkResult{}, status: http.StatusCreated, also: http.StatusOK, act: (*Server).fork},
		{method: post, path: id + "/condense", summary: "Have older history summarised", body: api.NewCondense{},
			answer: api.Condensed{}, act: (*Server).condense},
		{path: id + "/branches", summary: "The branches of a task: what its histories were before they were moved",
			answer: api.BranchTree{}, document: ofTask((*service.Service).Branches)},
		{method: post, path: id + "/head", summary: "Make a branch the head of the histories; what was the head stays as a " +
			"branch", body: api.NewHead{}, answer: api.Head{},
			act: change((*service.Service).Switch)},
		{path: id + "/checkpoints", summary: "The states of files that the task changed, the oldest first",
			answer: api.Checkpoints{}, document: ofTask((*service.Service).Checkpoints)},
		{method: post, path: id + "/checkpoints", summary: "Save a checkpoint of the files as they are now; 200 when nothing " +
			"differs from the newest one", answer: api.SavedCheckpoint{}, status: http.StatusCreated, also: http.StatusOK,
			act: (*Server).saveCheckpoint},
		{path: id + "/checkpoints/{c}/diff", summary: "What differs between a checkpoint and another one, or now",
			answer: api.Diff{}, document: (*Server).diff, params: []param{
				{name: "to", kind: "text", doc: "another checkpoint, or now (the default)"},
				{name: "path", kind: "text", doc: "only this file or folder; several are separated by line breaks"},
				{name: "stat", kind: "flag", doc: "without the differences by lines"},
			}},
		{method: post, path: id + "/checkpoints/{c}/restore",
			summary: "Put the files that the task changed back as they were at a checkpoint", body: api.NewRestore{},
			answer: api.RestoreResult{}, act: (*Server).restore},
	}
}

// interrupted is closed when the user of this process gave up waiting. A client of another process
// that goes away interrupts nothing: the channel is nil then.
func (a *asked) interrupted() <-chan struct{} {
	if a.RemoteAddr != client.LocalPeer {
		return nil
	}
	return a.Context().Done()
}

func (s *Server) fork(a *asked) (*reply, error) {
	var n api.NewFork
	if err := a.read(&n); err != nil {
		return nil, err
	}
	doc, err := s.service.Fork(a.Context(), a.call(), a.id, n)
	if err != nil {
		return nil, err
	}
	if doc.DryRun {
		return &reply{status: http.StatusOK, doc: doc}, nil
	}
	return &reply{head: located(headOf(doc), taskPath(doc.ID)), doc: doc}, nil
}

func (s *Server) condense(a *asked) (*reply, error) {
	var n api.NewCondense
	if err := a.read(&n); err != nil {
		return nil, err
	}
	// The request to the model may take minutes: it ends with the server.
	until, end := context.WithCancel(keep(a.Context()))
	defer end()
	gone := a.interrupted()
	go func() {
		defer end()
		select {
		case <-s.stop:
		case <-gone:
		case <-until.Done():
		}
	}()
	doc, err := s.service.Condense(a.Context(), until, a.call(), a.id, n)
	return &reply{doc: doc}, err
}

func (s *Server) diff(a *asked) (any, error) {
	q := service.DiffQuery{From: given(a.PathValue("c")), To: a.text["to"], Lines: !a.flag["stat"]}
	for _, path := range strings.Split(a.text["path"], "\n") {
		if path = strings.TrimSpace(path); path != "" {
			q.Paths = append(q.Paths, path)
		}
	}
	return s.service.Diff(a.Context(), a.id, q)
}

func (s *Server) saveCheckpoint(a *asked) (*reply, error) {
	doc, err := s.service.SaveCheckpoint(a.Context(), a.call(), a.id)
	if err == nil && !doc.Saved {
		return &reply{status: http.StatusOK, doc: doc}, nil
	}
	return &reply{doc: doc}, err
}

func (s *Server) restore(a *asked) (*reply, error) {
	var n api.NewRestore
	if err := a.read(&n); err != nil {
		return nil, err
	}
	doc, err := s.service.Restore(a.Context(), a.call(), a.id, given(a.PathValue("c")), n)
	return &reply{doc: doc}, err
}

// newest in a path means the checkpoint before the newest change.
const newest = "newest"

func given(c string) string {
	if c == newest {
		return ""
	}
	return c
}
