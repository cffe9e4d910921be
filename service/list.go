package service

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/search"
	"github.com/roost-dev/roost/store/spend"
)

// Sources are the storages that tasks are read from.
func (s *Service) Sources(ctx context.Context) ([]api.SourceState, error) {
	got, err := s.store.List(ctx, store.Filter{Limit: 1})
	return got.Sources, err
}

// filterOf is a filter of the store.
func filterOf(f api.TaskFilter) store.Filter {
	return store.Filter{
		Workspace: f.Workspace,
		Status:    f.Status,
		Source:    f.Source,
		Tag:       f.Tag,
		Query:     f.Words,
		Model:     f.Model,
		MinCost:   f.MinCost,
		MaxCost:   f.MaxCost,
		Since:     f.Since,
		Until:     f.Until,
		Sort:      f.Sort,
		Damaged:   f.Damaged,
		Empty:     f.Empty,
		Tree:      f.Tree,
		Limit:     f.Limit,
		Cursor:    f.Cursor,
	}
}

// BadCursor is the problem of a cursor that no page of a list or search gave.
func BadCursor(what string) *api.Problem {
	return problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read", "no "+what+" gave that cursor",
		"leave cursor out to start from the first page")
}

// List is a page of the tasks that a filter keeps, and what was found in all.
func (s *Service) List(ctx context.Context, filter api.TaskFilter) (api.Page[api.Summary], api.Found, error) {
	f := filterOf(filter)
	if !f.ValidCursor() {
		return api.Page[api.Summary]{}, api.Found{}, BadCursor("list")
	}
	got, err := s.store.List(ctx, f)
	return api.PageOf(got.Items, got.NextCursor), api.Found{Sources: got.Sources, Copies: got.Copies}, err
}

// Stream is List without a filter for a user who waits: it gives the first so many rows as soon as it knows them, and
// the others as they come.
func (s *Service) Stream(ctx context.Context, first int) iter.Seq2[api.ListPart, error] {
	return s.store.Stream(ctx, first)
}

// Refresh makes the next list cheap: it derives again what changed since the previous list.
func (s *Service) Refresh(ctx context.Context) error {
	_, err := s.store.List(ctx, store.Filter{Limit: 1})
	return err
}

// Search is a page of the messages that hold a query, and what was looked through. Patience bounds how long the search
// also adds to the index what it had to read; 0 is as long as it takes.
func (s *Service) Search(ctx context.Context, query api.SearchQuery, patience time.Duration) (api.Page[api.Hit], api.Found, error) {
	q := search.Query{
		Text:     query.Text,
		In:       query.In,
		Filter:   filterOf(query.Filter),
		Tool:     query.Tool,
		File:     query.File,
		Patience: patience,
	}
	if !search.ValidCursor(q.Filter.Cursor) {
		return api.Page[api.Hit]{}, api.Found{}, BadCursor("search")
	}
	got, err := search.Run(ctx, s.store, q)
	found := api.Found{Sources: got.Sources, Tasks: got.Tasks, Unread: got.Unread, Notes: got.Notes}
	return api.PageOf(got.Items, got.NextCursor), found, err
}

// ShortNames are the shortest names of tasks among all tasks, by SOURCE:ID.
func (s *Service) ShortNames(ctx context.Context, items []api.Summary) (map[string]string, error) {
	refs, err := s.store.Refs(ctx)
	return report.ShortNames(refs, items), err
}

// Names are the ids of all tasks and their folders.
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

// SpendFilter narrows what is summed. Zero members do not filter.
type SpendFilter struct {
	Source    string
	Workspace string
	Since     int64 // Unix milliseconds
	Until     int64
}

// Spending is what all tasks spent, in groups; by day when by is "".
func (s *Service) Spending(ctx context.Context, by api.Grouping, f SpendFilter) (api.Totals, error) {
	if by == "" {
		by = "day"
	}
	return spend.Sum(ctx, s.store, by, spend.Filter{
		Source:    f.Source,
		Workspace: f.Workspace,
		Since:     f.Since,
		Until:     f.Until,
		Zone:      s.opt.Now().Location(),
	})
}

// Task is a task with its copies.
func (s *Service) Task(ctx context.Context, id string) (Task, []string, error) {
	ref, copies, err := s.store.FindWithCopies(ctx, id)
	return Task{s, ref}, copies, err
}

// Usage is what a task spent.
func (s *Service) Usage(ctx context.Context, id string) (api.Usage, error) {
	return read(ctx, s, id, func(v *store.View) (api.Usage, error) { return v.Summary.Usage, nil })
}

// Family is a task with all of its descendants.
func (s *Service) Family(ctx context.Context, id string) (api.Family, error) {
	ref, err := s.store.Find(ctx, id)
	if err != nil {
		return api.Family{}, err
	}
	return report.FamilyOf(ctx, s.store, ref)
}

// Actions are what can be undone and redone of a task.
func (s *Service) Actions(ctx context.Context, id string) (api.TaskActions, error) {
	return actions.Find(ctx, s.store, id)
}

// AllActions are what can be undone of all tasks, the newest first; limit bounds the tasks, 0 = all.
func (s *Service) AllActions(ctx context.Context, limit int) ([]api.TaskActions, error) {
	return actions.FindAll(ctx, s.store, limit)
}

// read opens a task, and closes it after f.
func read[T any](ctx context.Context, s *Service, id string, f func(*store.View) (T, error)) (doc T, err error) {
	ref, err := s.store.Find(ctx, id)
	if err != nil {
		return doc, err
	}
	v, err := s.store.Read(ctx, ref)
	if err != nil {
		return doc, err
	}
	doc, err = f(v)
	if closed := v.Close(); err == nil {
		err = closed
	}
	return doc, err
}
