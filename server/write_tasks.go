package server

import (
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store/trash"

	"github.com/roost-dev/roost/store/labels"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// writeRoutes are those of tasks, runs, words, questions and the trash that change
// something, or show what is being done.
func writeRoutes() []route {
	return slices.Concat(taskRoutes(), runRoutes(), wordRoutes(), questionRoutes(), trashRoutes())
}

func taskRoutes() []route {
	return []route{
		{method: "POST", path: "/v1/tasks", summary: "A new task: with a message it runs at once, without it is there and " +
			"does nothing. The answer is the task, with its run",
			body: api.NewTask{}, answer: api.Started{}, status: http.StatusCreated, stream: true, act: (*Server).startTask},
		{method: "PATCH", path: "/v1/tasks/{id}", summary: "Change title, tags, pin or settings: a merge patch",
			body: api.TaskPatch{}, answer: api.Summary{}, act: (*Server).patchTask},
		{method: "DELETE", path: "/v1/tasks/{id}", summary: "Put a task into the trash", answer: api.Deleted{}, act: (*Server).deleteTask,
			params: []param{{name: "subtasks", kind: "word", words: []string{"keep", "delete"},
				doc: "what happens to the task's subtasks; required when there are some"}}},
	}
}

// aboutTask are the headers that name the task and run of an answer.
func aboutTask(task, run string) http.Header {
	h := http.Header{"Roost-Task-Id": {task}}
	if run != "" {
		h.Set("Roost-Run-Id", run)
	}
	return h
}

func taskPath(id string) string { return "/v1/tasks/" + url.PathEscape(id) }

func (s *Server) startTask(a *asked) (*reply, error) {
	r, err := newTask(a)
	if err != nil {
		return nil, err
	}
	if r.Text == "" && len(r.Images) == 0 {
		ref, err := s.opt.Engine.Create(keep(a.Context()), r)
		if err != nil {
			return nil, err
		}
		head := aboutTask(ref.ID, "")
		head.Set("Location", taskPath(ref.ID))
		doc, err := s.started(a, ref, nil)
		return &reply{head: head, doc: doc}, err
	}
	t, err := s.opt.Engine.Submit(keep(a.Context()), r)
	if err != nil {
		return nil, err
	}
	head := aboutTask(t.Ref.ID, t.ID)
	head.Set("Location", taskPath(t.Ref.ID))
	run := report.RunOf(t.RunInfo)
	doc, err := s.started(a, t.Ref, &run)
	return &reply{head: head, doc: doc, follow: followedOf(t.Ref.ID, t.ID, t.From)}, err
}

// started is the document of a task that was just made.
func (s *Server) started(a *asked, ref store.Ref, run *api.Run) (out api.Started, err error) {
	v, err := s.opt.Store.Read(keep(a.Context()), ref)
	if err != nil {
		return out, err
	}
	out = api.Started{Summary: v.Summary, Task: ref.ID, Run: run}
	if run != nil {
		out.RunID = run.ID
	}
	return out, v.Close()
}

func (s *Server) patchTask(a *asked) (*reply, error) {
	var p api.TaskPatch
	if err := a.read(&p); err != nil {
		return nil, err
	}
	var w wrongs
	var r engine.Request
	r.Interactive = true
	settle(p.Settings, &r, &w)
	if err := w.err(); err != nil {
		return nil, err
	}
	ref, copies, err := s.opt.Store.FindWithCopies(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	l, filed, err := s.labels(a, ref, p)
	if err != nil {
		return nil, err
	}
	// Settings come first: they can be refused for more reasons than labels.
	if setsAnything(p) {
		if ref, err = s.opt.Engine.Amend(a.Context(), ref, r, a.stillSet()); err != nil {
			return nil, err
		}
	}
	if filed {
		if _, err = labels.Set(a.Context(), s.opt.Store, ref, l); err != nil {
			return nil, labelProblem(err)
		}
	}
	doc, err := s.taskDocument(a, ref)
	return &reply{doc: doc.standing(copies), head: aboutTask(ref.ID, "")}, err
}

func setsAnything(p api.TaskPatch) bool {
	return !reflect.DeepEqual(p.Settings, api.Settings{})
}

// labels are title, tags and pin of a patch; filed is false when it has none of them.
func (s *Server) labels(a *asked, ref store.Ref, p api.TaskPatch) (l labels.Change, filed bool, err error) {
	if p.Title.Given {
		if l.Title, filed = p.Title.Value, true; l.Title == nil {
			l.Untitled = true
		} else {
			*l.Title = strings.TrimSpace(*l.Title)
		}
	}
	if p.Pinned.Given {
		pinned := p.Pinned.Value != nil && *p.Pinned.Value
		l.Pinned, filed = &pinned, true
	}
	if p.Tags.Given {
		filed = true
		var want []string
		if p.Tags.Value != nil {
			want = *p.Tags.Value
		}
		sum, err := s.row(a, ref)
		if err != nil {
			return l, false, err
		}
		l.Add = want
		for _, tag := range sum.Tags {
			if !slices.Contains(want, tag) {
				l.Remove = append(l.Remove, tag)
			}
		}
	}
	if len(p.AddTags)+len(p.RemoveTags) > 0 {
		if p.Tags.Given {
			return l, false, invalid(api.Wrong{Parameter: "/add_tags",
				Detail: "tags replaces all tags, and goes without add_tags and remove_tags"})
		}
		l.Add, l.Remove, filed = p.AddTags, p.RemoveTags, true
	}
	l.Check = a.stillFiled()
	return l, filed, nil
}

func (s *Server) row(a *asked, ref store.Ref) (api.Summary, error) {
	doc, err := s.taskDocument(a, ref)
	sum, _ := doc.doc.(api.Summary)
	return sum, err
}

// stillFiled compares what a task is filed under with what If-Match saw; nil without one.
func (a *asked) stillFiled() func(title string, tags []string, pinned bool) error {
	if a.seen == nil {
		return nil
	}
	was, _ := a.seen.doc.(api.Summary)
	return func(title string, tags []string, pinned bool) error {
		if title != "" && title != was.Title || !slices.Equal(tags, was.Tags) || pinned != was.Pinned {
			return errSeen(a)
		}
		return nil
	}
}

// stillSet compares a task's settings with what If-Match saw; nil without one.
func (a *asked) stillSet() func(task.Settings) error {
	if a.seen == nil {
		return nil
	}
	was, _ := a.seen.doc.(api.Summary)
	return func(now task.Settings) error {
		if now.Mode != was.Mode || now.Provider != was.Provider || now.Model != was.Model {
			return errSeen(a)
		}
		return nil
	}
}

func labelProblem(err error) error {
	if !errors.Is(err, labels.ErrInvalid) {
		return err
	}
	at := "/title"
	if strings.Contains(err.Error(), "tag") {
		at = "/tags"
	}
	return invalid(api.Wrong{Parameter: at, Detail: err.Error()})
}

func (s *Server) deleteTask(a *asked) (*reply, error) {
	ref, err := s.opt.Store.Find(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	below, err := s.below(a, ref)
	if err != nil {
		return nil, err
	}
	what := a.text["subtasks"]
	if len(below) > 0 && what == "" {
		p := problem(http.StatusConflict, "has_subtasks", "The task has subtasks",
			"they hold work of their own: choose what happens to them; nothing was deleted")
		p.Suggestions = []string{"DELETE " + taskPath(a.id) + "?subtasks=keep", "DELETE " + taskPath(a.id) + "?subtasks=delete"}
		return nil, p
	}
	done, err := trash.Delete(a.Context(), s.opt.Store, ref)
	if err != nil {
		return nil, err
	}
	out := api.Deleted{DeletedTask: done, Restore: "POST /v1/trash/" + url.PathEscape(done.Name) + "/restore", Subtasks: []string{}}
	if what == "delete" {
		for _, one := range below {
			gone, err := trash.DeleteSubtask(a.Context(), s.opt.Store, one, ref)
			if err != nil {
				return nil, err
			}
			out.Subtasks, out.With = append(out.Subtasks, gone.Name), append(out.With, gone)
		}
	}
	return &reply{doc: out, head: aboutTask(ref.ID, "")}, nil
}

// below are a task's subtasks, to the last one, parents first.
func (s *Server) below(a *asked, ref store.Ref) ([]store.Ref, error) {
	family, err := report.FamilyOf(a.Context(), s.opt.Store, ref)
	if err != nil {
		return nil, err
	}
	var out []store.Ref
	for _, t := range family.Tasks[1:] {
		one, err := s.opt.Store.Find(a.Context(), t.Source+":"+t.ID)
		if errors.Is(err, store.ErrNotFound) { // it was deleted since
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}
