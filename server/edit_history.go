package server

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/checkpoints"

	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store/actions"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/task"
)

// editRoutes are the routes that change histories and files of a task, and undo that.
func editRoutes() []route {
	const id = "/v1/tasks/{id}"
	post := http.MethodPost
	return []route{
		{method: post, path: id + "/rewinds", summary: "Take both histories back to a message, edit a message, or take one " +
			"out", body: api.NewRewind{}, answer: api.Rewound{}, act: (*Server).rewind},
		{path: id + "/undo", summary: "What can be taken back of a task, and done again, the newest first",
			answer: api.TaskActions{}, document: (*Server).actions},
		{method: post, path: id + "/undo", summary: "Take back what was last done to a task", body: api.NewUndo{},
			answer: api.Undone{}, act: func(s *Server, a *asked) (*reply, error) { return s.undo(a, false) }},
		{method: post, path: id + "/redo", summary: "Do again what was taken back last", body: api.NewUndo{},
			answer: api.Undone{}, act: func(s *Server, a *asked) (*reply, error) { return s.undo(a, true) }},
		{method: post, path: id + "/forks", summary: "Make a new task with the history of this one; a dry run answers 200",
			body: api.NewFork{}, answer: api.ForkResult{}, status: http.StatusCreated, also: http.StatusOK, act: (*Server).fork},
		{method: post, path: id + "/condense", summary: "Have older history summarised", body: api.NewCondense{},
			answer: api.Condensed{}, act: (*Server).condense},
		{path: id + "/branches", summary: "The branches of a task: what its histories were before they were moved",
			answer: api.BranchTree{}, document: (*Server).branches},
		{method: post, path: id + "/head", summary: "Make a branch the head of the histories; what was the head stays as a " +
			"branch", body: api.NewHead{}, answer: api.Head{},
			act: (*Server).switchBranch},
		{path: id + "/checkpoints", summary: "The states of files that the task changed, the oldest first",
			answer: api.Checkpoints{}, document: (*Server).checkpoints},
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

// newest in a path means the checkpoint before the newest change.
const newest = "newest"

func given(c string) string {
	if c == newest {
		return ""
	}
	return c
}

// lasting is the context of a change: it does not end when the client goes away, and its commits carry the id of the
// request.
func (a *asked) lasting() context.Context {
	return store.Acting(context.WithoutCancel(a.Context()), a.key())
}

// interrupted is closed when the user of this process gave up waiting. A client of another process
// that goes away interrupts nothing: the channel is nil then.
func (a *asked) interrupted() <-chan struct{} {
	if a.RemoteAddr != client.LocalPeer {
		return nil
	}
	return a.Context().Done()
}

// idle finds a task without a live run in this process.
func (s *Server) idle(a *asked) (store.Ref, error) {
	ref, err := s.opt.Store.Find(a.Context(), a.id)
	if err != nil {
		return ref, err
	}
	here := s.opt.Store.Latest(ref)
	for _, run := range s.opt.Engine.Runs() {
		if run.TaskID == here.ID && here.Own || run.TaskID == ref.ID {
			p := problem(http.StatusConflict, "task_busy", "A run works on the task",
				"run "+run.ID+" works on it: no other change of its histories and files is possible until it ends", "POST /v1/tasks/"+ref.ID+"/cancel")
			p.Task, p.Retryable = ref.ID, true
			return ref, p
		}
	}
	return ref, nil
}

// before returns the commits of an earlier attempt of this request, after it has finished an interrupted restore.
func (s *Server) before(ctx context.Context, a *asked, ref store.Ref) ([]journal.Commit, error) {
	if !a.again || a.key() == "" {
		return nil, nil
	}
	if _, err := s.opt.Engine.Checkpoints().Finish(ctx, a.id); err != nil {
		return nil, err
	}
	return s.opt.Store.CommitsBy(ctx, ref, a.key(), s.opt.Now().Add(-2*keptFor).UnixMilli())
}

// written writes Roo's files behind a durable change. If that fails, the request has not failed: it is logged.
func (s *Server) written(ctx context.Context, a *asked, finish func(context.Context) error) {
	if finish == nil {
		return
	}
	if err := finish(context.WithoutCancel(ctx)); err != nil {
		s.opt.Log.Warn("the task's files are not written yet", "path", a.URL.Path, "error", err.Error())
	}
}

func conflictRule(text string) (string, error) {
	if !slices.Contains([]string{"", "keep", "merge", "overwrite"}, text) {
		return "", invalid(api.Wrong{Parameter: "/on_conflict", Detail: "want keep, merge or overwrite"})
	}
	return text, nil
}

// folder checks that a body names a folder by an absolute path.
func folder(at, path string) error {
	if path != "" && !filepath.IsAbs(path) {
		return invalid(api.Wrong{Parameter: at, Detail: "want an absolute folder of the server's machine"})
	}
	return nil
}

func (s *Server) rewind(a *asked) (*reply, error) {
	var body api.NewRewind
	if err := a.read(&body); err != nil {
		return nil, err
	}
	var wrong []api.Wrong
	edit := strings.TrimSpace(body.Edit) != ""
	switch {
	case body.Edit != "" && !edit:
		wrong = append(wrong, api.Wrong{Parameter: "/edit", Detail: "there are no words in it"})
	case edit && body.To == "":
		wrong = append(wrong, api.Wrong{Parameter: "/edit", Detail: "name the message in to whose place the words take"})
	case edit && body.KeepTarget:
		wrong = append(wrong, api.Wrong{Parameter: "/edit", Detail: "words take a message's place, or it is kept"})
	}
	if body.Delete && (body.To == "" || edit || body.KeepTarget || body.Files) {
		wrong = append(wrong, api.Wrong{Parameter: "/delete",
			Detail: "it takes the message out that to names, and goes with no other change"})
	}
	if body.OnConflict != "" && !body.Files {
		wrong = append(wrong, api.Wrong{Parameter: "/on_conflict", Detail: "it decides how files are restored, and needs files"})
	}
	if body.Plan != "" && !body.Files {
		wrong = append(wrong, api.Wrong{Parameter: "/plan", Detail: "it names what happens to files, and goes with files"})
	}
	rule, err := conflictRule(body.OnConflict)
	if err != nil {
		return nil, err
	}
	if len(wrong) > 0 {
		return nil, invalid(wrong...)
	}
	o := history.RewindOptions{To: body.To, Keep: body.KeepTarget, Edit: body.Edit, Remove: body.Delete, DryRun: body.DryRun}
	if o.To == "" {
		o.To = "~1"
	}
	ref, err := s.idle(a)
	if err != nil {
		return nil, err
	}
	ctx := a.lasting()
	if !o.DryRun {
		done, err := s.before(ctx, a, ref)
		if err != nil {
			return nil, err
		}
		if r, was, err := history.FindRewind(ctx, s.opt.Store, ref, o, done); err != nil || was {
			files := restoredBy(ref.ID, done)
			if files == nil && body.Files {
				files = noRestore(ref.ID)
			}
			return &reply{doc: api.Rewound{RewindResult: r, Restore: files}}, err
		}
	}
	if body.Files {
		r, files, finish, err := s.opt.Engine.Checkpoints().RewindFiles(ctx, a.id, o, checkpoints.RestoreOptions{
			OnConflict: rule,
			DryRun:     o.DryRun,
			Planned:    func(r api.RestoreResult) error { return agreed(body.Plan, r) },
		})
		if err != nil {
			return nil, err
		}
		s.written(ctx, a, finish)
		if o.DryRun {
			files.Plan = planOf(files)
		}
		return &reply{doc: api.Rewound{RewindResult: r, Restore: &files}}, nil
	}
	finished := ""
	if !o.DryRun { // an interrupted restore is finished before anything else changes the task
		if finished, err = s.opt.Engine.Checkpoints().Finish(ctx, a.id); err != nil {
			return nil, err
		}
	}
	r, finish, err := history.Rewind(ctx, s.opt.Store, ref, o)
	if err != nil {
		return nil, err
	}
	s.written(ctx, a, finish)
	return &reply{doc: api.Rewound{RewindResult: r, Finished: finished}}, nil
}

// originOf is the origin that a body names, "api" when it names none.
func originOf(given string) (string, error) {
	switch {
	case given == "":
		return "api", nil
	case !slices.Contains(origins, given):
		return "", invalid(api.Wrong{Parameter: "/origin", Detail: "want one of " + strings.Join(origins, ", ")})
	}
	return given, nil
}

// origins are the front doors that a task can come from.
var origins = []string{"api", "cli", "web", "editor"}

func (s *Server) actions(a *asked) (any, error) { return actions.Find(a.Context(), s.opt.Store, a.id) }

func (s *Server) undo(a *asked, redo bool) (*reply, error) {
	var body api.NewUndo
	if err := a.read(&body); err != nil {
		return nil, err
	}
	o := actions.Options{Redo: redo, Only: body.Expect, DryRun: body.DryRun}
	ctx := a.lasting()
	ref, err := s.idle(a)
	if errors.Is(err, store.ErrNotFound) { // the list of actions knows a deleted task
		ref, err = store.Ref{}, nil
	}
	if err != nil {
		return nil, err
	}
	if ref.ID != "" && !o.DryRun {
		done, err := s.before(ctx, a, ref)
		if err != nil {
			return nil, err
		}
		if doc, was, err := s.undoneBy(ctx, a.id, o, done); err != nil || was {
			return &reply{doc: doc}, err
		}
	}
	action, now, files, err := s.opt.Engine.Undo(ctx, a.id, o)
	if err != nil {
		return nil, report.UndoProblem(err, o, now)
	}
	if files != nil && action.Kind == api.ActionRestore && files.Outcome == "nothing" && len(files.Conflicts) > 0 {
		return nil, report.ConflictProblem(*files)
	}
	return &reply{doc: report.UndoneOf(action, now, files, o)}, nil
}

func (s *Server) switchBranch(a *asked) (*reply, error) {
	var body api.NewHead
	if err := a.read(&body); err != nil {
		return nil, err
	}
	if body.Branch == "" {
		return nil, invalid(api.Wrong{Parameter: "/branch", Detail: "name a branch of the task"})
	}
	ref, err := s.idle(a)
	if err != nil {
		return nil, err
	}
	ctx := a.lasting()
	task, finish, err := history.Switch(ctx, s.opt.Store, ref, body.Branch)
	if err != nil {
		return nil, err
	}
	s.written(ctx, a, finish)
	return &reply{doc: api.Head{Task: task, Branch: body.Branch}}, nil
}

func (s *Server) fork(a *asked) (*reply, error) {
	var body api.NewFork
	if err := a.read(&body); err != nil {
		return nil, err
	}
	if err := folder("/workspace", body.Workspace); err != nil {
		return nil, err
	}
	ref, err := s.opt.Store.Find(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	made := func(f api.ForkResult) *reply {
		out := &reply{doc: f, head: http.Header{}}
		if f.DryRun {
			out.status = http.StatusOK
			return out
		}
		out.head.Set("Location", "/v1/tasks/"+f.ID)
		out.head.Set("Roost-Task-Id", f.ID)
		return out
	}
	if err := setup.CheckAddress(body.BaseURL); err != nil {
		return nil, invalid(api.Wrong{Parameter: "/base_url", Detail: err.Error()})
	}
	ctx := a.lasting()
	if !body.DryRun && a.again && a.key() != "" {
		if f, err := history.FindFork(ctx, s.opt.Store, a.key()); err == nil {
			return made(f), nil
		}
	}
	origin, err := originOf(body.Origin)
	if err != nil {
		return nil, err
	}
	o := history.ForkOptions{ID: a.key(), At: body.At, Branch: body.Branch, Title: body.Title, Origin: origin,
		DryRun: body.DryRun, Settings: func(t *task.Settings) error {
			if body.Provider != "" && body.Provider != t.Provider {
				// Another provider's model, address and key mean nothing here.
				t.Model, t.BaseURL, t.Account = "", "", ""
			}
			for to, given := range map[*string]string{
				&t.Workspace: body.Workspace, &t.Mode: body.Mode, &t.Provider: body.Provider, &t.Model: body.Model, &t.BaseURL: body.BaseURL,
			} {
				if given != "" {
					*to = given
				}
			}
			return nil
		}}
	f, finish, err := s.opt.Engine.Fork(ctx, ref, o)
	if err != nil {
		return nil, err
	}
	s.written(ctx, a, finish)
	return made(f), nil
}

func (s *Server) condense(a *asked) (*reply, error) {
	var body api.NewCondense
	if err := a.read(&body); err != nil {
		return nil, err
	}
	if err := folder("/workspace", body.Workspace); err != nil {
		return nil, err
	}
	origin, err := originOf(body.Origin)
	if err != nil {
		return nil, err
	}
	ref, err := s.idle(a)
	if err != nil {
		return nil, err
	}
	req := engine.Request{
		Task: a.id,
		Choice: setup.Choice{Workspace: body.Workspace, Provider: body.Provider, Model: body.Model, BaseURL: body.BaseURL,
			Profile: body.Profile},
		Origin: origin,
	}
	if body.DryRun {
		id, c, err := s.opt.Engine.CondensePlan(a.Context(), req)
		return &reply{doc: report.CondensedOf(id, c, true)}, err
	}
	// The request to the model may take minutes: it must end with the server.
	ctx, stop := context.WithCancel(a.lasting())
	defer stop()
	over := make(chan struct{})
	defer close(over)
	gone := a.interrupted()
	go func() {
		select {
		case <-s.stop:
			stop()
		case <-gone:
			stop()
		case <-over:
		}
	}()
	done, err := s.before(ctx, a, ref)
	if err != nil {
		return nil, err
	}
	if doc, was := condensedBy(ref.ID, done); was {
		return &reply{doc: doc}, nil
	}
	id, c, err := s.opt.Engine.Condense(ctx, req, body.Keep, func(text string) {
		s.opt.Log.Debug("condense", "task_id", ref.ID, "notice", text)
	})
	if err != nil {
		return nil, err
	}
	return &reply{doc: report.CondensedOf(id, c, false)}, nil
}

func (s *Server) branches(a *asked) (any, error) {
	return s.read(a, func(v *store.View) (any, error) { return history.Branches(v), nil })
}
