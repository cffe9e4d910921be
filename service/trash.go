package service

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/trash"
)

// What happens to the subtasks of a task that is deleted.
const (
	KeepSubtasks   = "keep"
	DeleteSubtasks = "delete"
)

// Delete moves a task into the trash. A task with subtasks is only deleted when subtasks names what happens to them.
func (s *Service) Delete(ctx context.Context, id, subtasks string) (api.Deleted, error) {
	if err := s.writable(); err != nil {
		return api.Deleted{}, err
	}
	ref, err := s.store.Find(ctx, id)
	if err != nil {
		return api.Deleted{}, err
	}
	below, err := s.below(ctx, ref)
	if err != nil {
		return api.Deleted{}, err
	}
	if len(below) > 0 && subtasks == "" {
		path := "DELETE /v1/tasks/" + url.PathEscape(id)
		return api.Deleted{}, problem(http.StatusConflict, "has_subtasks", "The task has subtasks",
			"they hold work of their own: choose what happens to them; nothing was deleted",
			path+"?subtasks=keep", path+"?subtasks=delete")
	}
	done, err := trash.Delete(ctx, s.store, ref)
	if err != nil {
		return api.Deleted{}, err
	}
	out := api.Deleted{DeletedTask: done, Restore: "POST /v1/trash/" + url.PathEscape(done.Name) + "/restore", Subtasks: []string{}}
	if subtasks != DeleteSubtasks {
		return out, nil
	}
	for _, one := range below {
		gone, err := trash.DeleteSubtask(ctx, s.store, one, ref)
		if err != nil {
			return out, err
		}
		out.Subtasks, out.With = append(out.Subtasks, gone.Name), append(out.With, gone)
	}
	return out, nil
}

// below are a task's subtasks, to the last one, parents first.
func (s *Service) below(ctx context.Context, ref store.Ref) ([]store.Ref, error) {
	family, err := report.FamilyOf(ctx, s.store, ref)
	if err != nil {
		return nil, err
	}
	var out []store.Ref
	for _, t := range family.Tasks[1:] {
		one, err := s.store.Find(ctx, t.Source+":"+t.ID)
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

// Trash are the deleted tasks, newest first.
func (s *Service) Trash(ctx context.Context) ([]api.DeletedTask, error) {
	return trash.List(ctx, s.store)
}

// Trashed finds a deleted task, also by an end of its name, and also one that was purged and whose folder another tool
// keeps.
func (s *Service) Trashed(ctx context.Context, name string) (api.DeletedTask, error) {
	return trash.Find(ctx, s.store, name)
}

// trashed finds a deleted task by its whole name or id: a task to restore or purge is not guessed.
func (s *Service) trashed(ctx context.Context, name string) (api.DeletedTask, error) {
	t, err := trash.Find(ctx, s.store, name)
	if errors.Is(err, store.ErrNotFound) || err == nil && name != t.Name && name != t.ID && name != t.QualifiedName() {
		return t, problem(http.StatusNotFound, "task_not_found", "It is not in the trash",
			"nothing there goes by "+report.Clip(name), "GET /v1/trash")
	}
	return t, err
}

// Untrash puts a deleted task back.
func (s *Service) Untrash(ctx context.Context, c Call, name string) (api.Restored, error) {
	if err := s.writable(); err != nil {
		return api.Restored{}, err
	}
	t, err := s.trashed(ctx, name)
	if c.Again && err != nil { // the first attempt may have put it back
		if ref, found := s.store.Find(ctx, name); found == nil {
			return untrashed(ref), nil
		}
	}
	if err != nil {
		return api.Restored{}, err
	}
	ref, err := trash.Restore(ctx, s.store, t.QualifiedName())
	if errors.Is(err, trash.ErrTaken) {
		p := report.SetupProblem(err)
		p.Task = t.ID
		return api.Restored{}, p
	}
	return untrashed(ref), err
}

func untrashed(ref store.Ref) api.Restored {
	return api.Restored{ID: ref.ID, Source: ref.Source, Path: ref.Dir}
}

// PurgeAll removes deleted tasks for good. All are found before one is removed.
func (s *Service) PurgeAll(ctx context.Context, names []string) (api.Purged, error) {
	out := api.Purged{Items: []api.DeletedTask{}}
	if err := s.writable(); err != nil {
		return out, err
	}
	found := make([]string, len(names))
	for i, name := range names {
		t, err := s.trashed(ctx, name)
		if err != nil {
			return out, err
		}
		found[i] = t.QualifiedName()
	}
	err := s.engine.PurgeAll(ctx, found, func(t api.DeletedTask) error {
		out.Items = append(out.Items, t)
		return nil
	})
	return out, err
}

// Purge removes a deleted task for good.
func (s *Service) Purge(ctx context.Context, name string) (api.DeletedTask, error) {
	if err := s.writable(); err != nil {
		return api.DeletedTask{}, err
	}
	t, err := s.trashed(ctx, name)
	if err != nil {
		return t, err
	}
	return s.engine.Purge(ctx, t.QualifiedName())
}
