package service

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/search"
	"github.com/roost-dev/roost/store/spend"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// Sources returns the storages that tasks are read from.
func (s *Service) Sources(ctx context.Context) ([]api.SourceState, error) {
	got, err := s.store.List(ctx, store.Filter{TaskFilter: api.TaskFilter{Limit: 1}})
	return got.Sources, err
}

// BadCursor is the problem of a cursor that does not come from a page of a list or search.
func BadCursor(what string) *api.Problem {
	return problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read", "no "+what+" gave that cursor",
		"leave cursor out to start from the first page")
}

// List returns a page of the tasks that pass a filter, and facts about the sources that were searched.
func (s *Service) List(ctx context.Context, filter api.TaskFilter) (api.Page[api.Summary], api.Found, error) {
	f := store.Filter{TaskFilter: filter}
	if !f.ValidCursor() {
		return api.Page[api.Summary]{}, api.Found{}, BadCursor("list")
	}
	got, err := s.store.List(ctx, f)
	found := api.Found{Sources: got.Sources, Copies: got.Copies}
	if !slices.ContainsFunc(got.Sources, func(src api.SourceState) bool { return src.Tasks > 0 }) && err == nil {
		found.Places, err = s.store.Places()
	}
	return api.PageOf(got.Items, got.NextCursor), found, err
}

// filterValuesMost bounds each list of values.
const filterValuesMost = 300

// FilterValues returns the values for filters that the tasks of all sources have. called adds the names of called
// tools, for which the requests of all tasks are read.
func (s *Service) FilterValues(ctx context.Context, called bool) (api.FilterValues, error) {
	var out api.FilterValues
	got, err := s.store.List(ctx, store.Filter{})
	if err != nil {
		return out, err
	}
	var spent api.Totals
	if called {
		if spent, err = s.Spending(ctx, api.ByTool, api.TaskFilter{}); err != nil {
			return out, err
		}
	}
	workspaces, sources, statuses := map[string]int{}, map[string]int{}, map[string]int{}
	models, tags, tools := map[string]int{}, map[string]int{}, map[string]int{}
	for _, t := range got.Items {
		workspaces[t.Workspace]++
		sources[t.Source]++
		statuses[t.Status]++
		models[t.Model]++
		for _, tag := range t.Tags {
			tags[tag]++
		}
	}
	for _, g := range spent.Items {
		tools[g.Key] = g.Tasks
	}
	return api.FilterValues{
		Workspaces: valuesOf(workspaces),
		Sources:    valuesOf(sources),
		Statuses:   valuesOf(statuses),
		Models:     valuesOf(models),
		Tags:       valuesOf(tags),
		Tools:      valuesOf(tools),
	}, nil
}

// valuesOf lists values, those of the most tasks first, without the empty value.
func valuesOf(counts map[string]int) []api.FilterValue {
	out := []api.FilterValue{}
	for value, n := range counts {
		if value != "" {
			out = append(out, api.FilterValue{Value: value, Tasks: n})
		}
	}
	slices.SortFunc(out, func(a, b api.FilterValue) int { return cmp.Or(b.Tasks-a.Tasks, cmp.Compare(a.Value, b.Value)) })
	return out[:min(len(out), filterValuesMost)]
}

// Stream is List without a filter, for a user who waits at a screen: it gives the first rows as soon as it knows so many of
// them, and the others as they come.
func (s *Service) Stream(ctx context.Context, first int) iter.Seq2[api.ListPart, error] {
	return s.store.Stream(ctx, first)
}

// Search returns a page of the messages that hold a query, and facts about the search. While it runs, the search adds
// the texts that it had to read to the index.
func (s *Service) Search(ctx context.Context, q api.SearchQuery) (api.Page[api.Hit], api.Found, error) {
	if q.Task != "" {
		ref, err := s.store.Find(ctx, q.Task)
		if err != nil {
			return api.Page[api.Hit]{}, api.Found{}, err
		}
		q.Task = ref.Source + ":" + ref.ID
	}
	if !search.ValidCursor(q.Filter.Cursor, q.Filter.Sort) {
		return api.Page[api.Hit]{}, api.Found{}, BadCursor("search")
	}
	got, err := search.Run(ctx, s.store, q)
	return api.PageOf(got.Items, got.NextCursor), got.Found, err
}

// ShortNames returns the shortest names of tasks among all tasks, by SOURCE:ID.
func (s *Service) ShortNames(ctx context.Context, items []api.Summary) (map[string]string, error) {
	refs, err := s.store.Refs(ctx)
	return report.ShortNames(refs, items), err
}

// Names returns the ids of all tasks and their folders.
func (s *Service) Names(ctx context.Context) ([]api.Name, error) {
	refs, err := s.store.Refs(ctx)
	out := make([]api.Name, len(refs))
	for i, r := range refs {
		out[i] = api.Name{ID: r.ID, Source: r.Source, Path: r.Dir}
		if r.Log != r.Dir {
			out[i].Journal = r.Log
		}
	}
	return out, err
}

// Spending sums what all tasks spent, in groups; "" groups by day.
func (s *Service) Spending(ctx context.Context, by api.Grouping, f api.TaskFilter) (api.Totals, error) {
	return spend.Sum(ctx, s.store, cmp.Or(by, "day"), f, s.opt.Now().Location())
}

// Task returns a task with its copies.
func (s *Service) Task(ctx context.Context, id string) (Task, []string, error) {
	ref, copies, err := s.store.FindWithCopies(ctx, id)
	return Task{s, ref}, copies, err
}

// Usage returns what a task spent.
func (s *Service) Usage(ctx context.Context, id string) (api.Usage, error) {
	return read(ctx, s, id, func(v *store.View) (api.Usage, error) { return v.Summary.Usage, nil })
}

// Family returns a task with all of its descendants.
func (s *Service) Family(ctx context.Context, id string) (api.Family, error) {
	ref, err := s.store.Find(ctx, id)
	if err != nil {
		return api.Family{}, err
	}
	return s.store.Family(ctx, ref)
}

// Actions returns the actions on a task that can be undone or redone.
func (s *Service) Actions(ctx context.Context, id string) (api.TaskActions, error) {
	return actions.Find(ctx, s.store, id)
}

// AllActions returns the actions on all tasks that can be undone, the newest first; limit bounds the tasks, 0 = all.
func (s *Service) AllActions(ctx context.Context, limit int) ([]api.TaskActions, error) {
	return actions.FindAll(ctx, s.store, limit)
}

// read opens a task, and closes it after f.
func read[T any](ctx context.Context, s *Service, id string, f func(*store.View) (T, error)) (doc T, err error) {
	ref, err := s.store.Find(ctx, id)
	if err != nil {
		return doc, err
	}
	return store.FromView(ctx, s.store, ref, f)
}

// KnownFiles returns the files that the model of a task knows. dir is used in place of the task's own workspace; "" =
// the task's own. With path, only that file is listed, with its records.
func (s *Service) KnownFiles(ctx context.Context, id, dir string, path *string) (api.KnownFiles, error) {
	if err := cmp.Or(folder("workspace", dir), mayName(ctx, dir)); err != nil {
		return api.KnownFiles{}, err
	}
	return read(ctx, s, id, func(v *store.View) (api.KnownFiles, error) {
		records := report.Records(v)
		w, why := s.openWorkspace(v, dir)
		if path != nil {
			records = ofFile(records, w, *path)
		}
		switch {
		case path != nil && len(records) == 0:
			return api.KnownFiles{}, problem(http.StatusNotFound, "file_not_known", "The model does not know that file",
				"the model neither read nor changed a file of that path", "GET /v1/tasks/"+id+"/files")
		case len(records) > 0 && w == nil:
			return api.KnownFiles{}, noWorkspace(v.Ref.ID, why)
		}
		items, err := report.Files(ctx, v, w, records, path != nil)
		return api.KnownFiles{Items: items, Task: v.Ref.ID}, err
	})
}

func noWorkspace(id, why string) *api.Problem {
	return problem(http.StatusUnprocessableEntity, "workspace_missing", "The task's workspace cannot be opened", why,
		"POST /v1/tasks/"+id+"/runs, with \"workspace\", the folder where the workspace is now", "roost files "+api.ShellWord(id)+" -C DIR")
}

// openWorkspace opens the folder of a task, or dir in its place; nil, with the reason, when it cannot be opened.
func (s *Service) openWorkspace(v *store.View, dir string) (*workspace.Workspace, string) {
	own := dir == ""
	if dir = cmp.Or(dir, v.Summary.Workspace); dir == "" {
		return nil, "the task records no workspace"
	}
	if own && s.engine != nil && v.State.Settings.Workspace != "" {
		var err error
		if dir, err = s.engine.FindWorkspace(v.State.Settings); err != nil {
			return nil, err.Error()
		}
	}
	w, err := workspace.Open(dir)
	if err != nil {
		return nil, err.Error()
	}
	return w, ""
}

// ofFile selects the records of one file, for each spelling of its path.
func ofFile(records []task.FileRecord, w *workspace.Workspace, path string) []task.FileRecord {
	names := []string{path, filepath.ToSlash(filepath.Clean(path))}
	if w != nil {
		if p, err := w.Resolve(path); err == nil {
			names = append(names, p.Readable, p.RealReadable)
		}
	}
	for _, name := range names {
		other := func(r task.FileRecord) bool { return r.Path != name }
		if out := slices.DeleteFunc(slices.Clone(records), other); len(out) > 0 {
			return out
		}
	}
	return nil
}

// Context lists the parts of a task's next request, with their sizes in tokens. The workspace is for a task that records
// none.
func (s *Service) Context(ctx context.Context, id, workspace string) (api.ContextUse, error) {
	ref, err := s.store.Find(ctx, id)
	if err = cmp.Or(err, mayName(ctx, workspace)); err != nil {
		return api.ContextUse{}, err
	}
	req := engine.Request{Task: ref.Source + ":" + ref.ID, Choice: setup.Choice{Workspace: workspace}}
	return s.engine.ContextAs(ctx, ordered(ctx, req))
}

// Evidence is a task's durable state at one moment, in a form that can be compared byte for byte with a later one.
type Evidence struct {
	Folder  string
	Status  string
	Commits []string // the events of each, joined
	UI, API []string
	Calls   map[string]string // by the ids of calls: the recorded outcome or, for an open call, the outcome that follows
	Results map[string]int    // by the ids of calls: how often the model got the result
}

// Evidence reads a task's journal and the state that follows from it.
func (s *Service) Evidence(ctx context.Context, id string) (Evidence, error) {
	return read(ctx, s, id, func(v *store.View) (Evidence, error) {
		e := Evidence{Folder: v.Ref.Dir, Status: v.Summary.Status, Calls: map[string]string{}, Results: map[string]int{}}
		if v.Log == nil {
			return e, problem(http.StatusNotFound, "no_journal", "The task has no journal", "Roost has not worked on the task")
		}
		for c, err := range v.Log.Read(ctx, 1) {
			if err != nil {
				return e, fmt.Errorf("read the journal: %w", err)
			}
			text := fmt.Sprint(c.Seq, c.Epoch, c.At)
			for _, event := range c.Events {
				text += string(event)
			}
			e.Commits = append(e.Commits, text)
		}
		e.UI = api.Each(v.State.UI(), func(m *task.Message) string { return string(m.Raw()) })
		for _, m := range v.State.API() {
			e.API = append(e.API, string(m.Raw()))
			content, _ := esjson.Get(m.Raw(), "content")
			for block := range esjson.Array(content) {
				if id, ok := esjson.GetString(block, "tool_use_id"); ok {
					e.Results[id]++
				}
			}
		}
		for _, c := range v.State.Calls() {
			e.Calls[c.ID] = string(c.Outcome())
			if c.Finished != nil {
				e.Calls[c.ID] = c.Finished.Outcome
			}
		}
		return e, nil
	})
}
