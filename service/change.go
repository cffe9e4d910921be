package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/roost-dev/roost/agent/spool"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/doctor"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/trash"
)

// Patch changes title, tags, pin or settings of a task. It returns the task with its copies.
func (s *Service) Patch(ctx context.Context, c Call, id string, p api.TaskPatch) (Task, []string, error) {
	var w wrongs
	r := ordered(ctx, engine.Request{Interactive: true})
	settle(p.Settings, &r, &w)
	err := cmp.Or(w.err(), mayLoosen(ctx, p.Settings, false))
	if err != nil {
		return Task{}, nil, err
	}
	ref, copies, err := s.store.FindWithCopies(ctx, id)
	if err != nil {
		return Task{}, nil, err
	}
	l, filed, err := s.labels(ctx, c, ref, p)
	if err != nil {
		return Task{}, nil, err
	}
	// Settings change before labels: the engine has more reasons to refuse them.
	if !reflect.DeepEqual(p.Settings, api.Settings{}) {
		if ref, err = s.engine.Amend(ctx, ref, r); err != nil {
			return Task{}, nil, err
		}
	}
	if filed {
		if _, err = labels.Set(ctx, s.store, ref, l); err != nil {
			return Task{}, nil, labelProblem(err)
		}
	}
	return Task{s, ref}, copies, nil
}

// labels returns the title, tags and pin in a patch; filed is false if the patch has none of them.
func (s *Service) labels(ctx context.Context, c Call, ref store.Ref, p api.TaskPatch) (l labels.Change, filed bool, err error) {
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
		sum, _, err := Task{s, ref}.Document(ctx)
		if err != nil {
			return l, false, err
		}
		l.Add = want
		l.Remove = api.Some(sum.Tags, func(tag string) (string, bool) { return tag, !slices.Contains(want, tag) })
	}
	if len(p.AddTags)+len(p.RemoveTags) > 0 {
		if p.Tags.Given {
			return l, false, api.Invalid(api.Wrong{Parameter: "/add_tags",
				Detail: "tags replaces all tags: leave out add_tags and remove_tags"})
		}
		l.Add, l.Remove, filed = p.AddTags, p.RemoveTags, true
	}
	l.Check = c.stillFiled(ref.ID)
	return l, filed, nil
}

// stillFiled returns a check that a task's labels are those that the caller saw; nil if the call has no Seen.
func (c Call) stillFiled(id string) func(title string, tags []string, pinned bool) error {
	if c.Seen == nil {
		return nil
	}
	return func(title string, tags []string, pinned bool) error {
		if title != "" && title != c.Seen.Title || !slices.Equal(tags, c.Seen.Tags) || pinned != c.Seen.Pinned {
			return report.MovedProblem(id)
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
	return api.Invalid(api.Wrong{Parameter: at, Detail: err.Error()})
}

// Values of Delete's parameter subtasks.
const (
	KeepSubtasks   = "keep"
	DeleteSubtasks = "delete"
)

// Delete moves a task into the trash. If the task has subtasks, it is deleted only if subtasks is one of the two values.
func (s *Service) Delete(ctx context.Context, id, subtasks string) (api.Deleted, error) {
	ref, err := s.store.Find(ctx, id)
	if err != nil {
		return api.Deleted{}, err
	}
	var below []store.Ref
	if subtasks != KeepSubtasks { // to find them, all tasks are listed
		below, err = s.below(ctx, ref)
	}
	if err != nil {
		return api.Deleted{}, err
	}
	if len(below) > 0 && subtasks == "" {
		path := "DELETE /v1/tasks/" + url.PathEscape(id)
		return api.Deleted{}, problem(http.StatusConflict, "has_subtasks", "The task has subtasks",
			"nothing was deleted: the subtasks hold work of their own, so choose whether they are kept or deleted",
			path+"?subtasks=keep", path+"?subtasks=delete")
	}
	s.unqueue(ctx, ref)
	done, err := trash.Delete(ctx, s.store, ref)
	if err != nil {
		return api.Deleted{}, err
	}
	out := api.Deleted{DeletedTask: done, Restore: "POST /v1/trash/" + url.PathEscape(done.Name) + "/restore", Subtasks: []string{}}
	if subtasks != DeleteSubtasks {
		return out, nil
	}
	for _, one := range below {
		s.unqueue(ctx, one)
		gone, err := trash.DeleteSubtask(ctx, s.store, one, ref)
		if err != nil {
			return out, err
		}
		out.Subtasks, out.With = append(out.Subtasks, gone.Name), append(out.With, gone)
	}
	return out, nil
}

// unqueue cancels the run of a task that waits in a queue: the queue forgets a task that is in the trash when its turn
// comes, so nothing would start the run of a task that is restored later. An error does not stop the deletion.
func (s *Service) unqueue(ctx context.Context, ref store.Ref) {
	id := ref.Source + ":" + ref.ID
	if runs, err := s.engine.RunsOf(ctx, id); err == nil && len(runs) > 0 && runs[0].State == "queued" {
		_, _ = s.engine.CancelTask(ctx, id, runs[0].ID)
	}
}

// below returns all descendants of a task, parents before their subtasks.
func (s *Service) below(ctx context.Context, ref store.Ref) ([]store.Ref, error) {
	family, err := s.store.Family(ctx, ref)
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

// Trash returns the deleted tasks, newest first.
func (s *Service) Trash(ctx context.Context) ([]api.DeletedTask, error) {
	return trash.List(ctx, s.store)
}

// Trashed finds a deleted task, also by the end of its name. It also finds a purged task whose folder another tool keeps.
func (s *Service) Trashed(ctx context.Context, name string) (api.DeletedTask, error) {
	return trash.Find(ctx, s.store, name)
}

// trashed finds a deleted task by its whole name or id alone, so that a guess restores or purges no other task.
func (s *Service) trashed(ctx context.Context, name string) (api.DeletedTask, error) {
	t, err := trash.Find(ctx, s.store, name)
	if errors.Is(err, store.ErrNotFound) || err == nil && name != t.Name && name != t.ID && name != t.QualifiedName() {
		return t, problem(http.StatusNotFound, "task_not_found", "The task is not in the trash",
			"no deleted task has the name or id "+report.Clip(name), "GET /v1/trash")
	}
	return t, err
}

// Untrash restores a deleted task.
func (s *Service) Untrash(ctx context.Context, c Call, name string) (api.Restored, error) {
	t, err := s.trashed(ctx, name)
	if c.Again && err != nil { // the first attempt may have restored it
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

// PurgeAll removes deleted tasks for good. It finds all of them before it removes the first.
func (s *Service) PurgeAll(ctx context.Context, n api.NewPurge) (api.Purged, error) {
	out := api.Purged{Items: []api.DeletedTask{}}
	found, err := api.TryEach(n.Names, func(name string) (string, error) {
		t, err := s.trashed(ctx, name)
		return t.QualifiedName(), err
	})
	if err != nil {
		return out, err
	}
	err = s.engine.PurgeAll(ctx, found, func(t api.DeletedTask) error {
		out.Items = append(out.Items, t)
		return nil
	})
	return out, err
}

// Purge removes a deleted task for good.
func (s *Service) Purge(ctx context.Context, name string) (t api.DeletedTask, err error) {
	done, err := s.PurgeAll(ctx, api.NewPurge{Names: []string{name}})
	if err == nil {
		t = done.Items[0]
	}
	return t, err
}

// Import copies tasks into the root and verifies the copies. It only reads the originals.
func (s *Service) Import(ctx context.Context, n api.NewImport) (api.Import, error) {
	if err := checkImport(n); err != nil {
		return api.Import{}, err
	}
	if s.store.Shared() {
		return api.Import{}, problem(http.StatusConflict, "no_folder", "Tasks cannot be imported into a database",
			store.ErrNoFolder.Error()+", and an import copies folders", "roost import  # on a machine that keeps tasks in files")
	}
	kept, end := s.checkpoints(ctx)
	defer end()
	opt := importer.Options{DryRun: n.DryRun, Trust: n.Trust, OnConflict: n.Clash, Keep: kept.Receive}
	opt.Map = api.Each(n.Map, func(m [2]string) importer.PathMap { return importer.PathMap{Old: m[0], New: m[1]} })
	var list []importer.Original
	for _, path := range n.Paths {
		found, opened, err := s.originals(ctx, path)
		if err != nil {
			return api.Import{}, importProblem(path, err)
		}
		if opened != nil {
			defer opened.Close()
		}
		list = append(list, found...)
	}
	unreachable := []api.SourceState{}
	for _, name := range n.Sources {
		found, unread, err := importer.FindSource(ctx, s.store, name)
		if err != nil {
			return api.Import{}, importProblem(name, err)
		}
		list, unreachable = append(list, found...), append(unreachable, unread...)
	}
	done, err := importer.Run(ctx, s.store, list, opt)
	done.Unreachable = unreachable
	switch {
	case errors.Is(err, importer.ErrRunning):
		return done, problem(http.StatusConflict, "import_busy", "import", err.Error(), "roost import again when it is done").Later("")
	case err != nil && len(done.Items) > 0:
		done.Problem, err = s.Problem(ctx, err, ""), nil
	}
	return done, err
}

func checkImport(n api.NewImport) error {
	var w wrongs
	if len(n.Paths)+len(n.Sources) == 0 {
		w.add("/paths", "name what to import, in paths or in sources")
	}
	for i, path := range n.Paths {
		if !filepath.IsAbs(path) {
			w.add(fmt.Sprintf("/paths/%d", i), "want an absolute path of the server's machine")
		}
	}
	if !slices.Contains([]string{"", api.ConflictSkip, api.ConflictFork}, n.Clash) {
		w.add("/on_conflict", "want skip or fork")
	}
	for i, m := range n.Map {
		if m[0] == "" || m[1] == "" {
			w.add(fmt.Sprintf("/map/%d", i), "want two folders: the old one and the new one")
		}
	}
	return w.err()
}

// originals returns the tasks at a path. The caller closes the Closer, which may be nil.
func (s *Service) originals(ctx context.Context, path string) ([]importer.Original, io.Closer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		return export.Unpack(path)
	}
	found, err := importer.FindPath(ctx, s.store, path)
	return found, nil, err
}

// importProblem returns the problem of a path or source from which nothing can be imported.
func importProblem(what string, err error) *api.Problem {
	p := problem(http.StatusUnprocessableEntity, "import_failed", "import "+what, err.Error(), "roost sources").Because(err)
	switch {
	case errors.Is(err, store.ErrNotFound) || errors.Is(err, os.ErrNotExist):
		p.Status, p.Code = http.StatusNotFound, "not_found"
		p.Detail = strings.TrimPrefix(strings.TrimSuffix(p.Detail, ": "+store.ErrNotFound.Error()), "import from "+what+": ")
	case errors.Is(err, importer.ErrInOwnRoot):
		p.Code, p.Suggestions = "usage", []string{"roost list"}
	case errors.Is(err, export.ErrArchive):
		p.Code, p.Suggestions = "damaged", []string{"roost import PATH  # another copy of the archive"}
	}
	return p
}

// Check verifies tasks: their journals, Roo's files, and the contents of their checkpoints. Without ids it verifies all
// tasks, and the contents and folders that belong to no single task.
func (s *Service) Check(ctx context.Context, n api.NewCheckup) (api.Checkup, error) {
	if err := folder("/folder", n.Folder); err != nil {
		return api.Checkup{}, err
	}
	ids := n.Tasks
	found, err := doctor.Check(ctx, s.store, ids, doctor.Options{Repair: n.Repair, Rebuild: n.Rebuild, SpillDir: n.Folder})
	if err != nil {
		return found, err
	}
	kept, end := s.checkpoints(ctx)
	defer end()
	bad := api.SetOf(api.Each(found.Damaged, func(f api.Finding) string { return f.ID }))
	journals := len(found.Damaged)
	if err := kept.Verify(ctx, ids, n.Repair, &found); err != nil {
		return found, err
	}
	for _, f := range found.Damaged[journals:] {
		if !bad[f.ID] {
			bad[f.ID] = true
			found.OK--
		}
	}
	if len(ids) == 0 {
		checkSpools(&found, s.opt.Temp, n.Repair)
	}
	return found, nil
}

// checkpoints returns the checkpoints of the tasks, also for a service that only reads. The caller calls done.
func (s *Service) checkpoints(ctx context.Context) (kept *checkpoints.Service, done func()) {
	if s.engine != nil {
		return s.engine.Checkpoints(), func() {}
	}
	e := engine.New(s.store, engine.Options{Now: func() int64 { return s.opt.Now().UnixMilli() }})
	return e.Checkpoints(), func() { _ = e.Close(ctx) } // no run began
}

// checkSpools reports the folders of command output that killed runs left behind; with remove it removes them.
func checkSpools(r *api.Checkup, dir string, remove bool) {
	left := spool.Left(dir)
	if remove && len(left) > 0 {
		spool.Sweep(dir)
	}
	still := spool.Left(dir)
	for _, path := range left {
		f := api.Finding{
			Path:      path,
			File:      path,
			Problem:   "output of commands of a killed run",
			Recovered: "the task holds the output that was recorded",
		}
		if slices.Contains(still, path) {
			r.Leftovers = append(r.Leftovers, f)
		} else {
			f.Recovered = "removed"
			r.Repaired = append(r.Repaired, f)
		}
	}
}

// Collect removes contents of checkpoints that no task needs any more.
func (s *Service) Collect(ctx context.Context, n api.NewCollection) (api.Collection, error) {
	list, err := s.engine.Checkpoints().Collect(ctx, n.DryRun)
	out := api.Collection{DryRun: n.DryRun, Items: []api.CollectedStore{}}
	for _, c := range list {
		if c.Err != nil {
			c.Problem = s.Problem(ctx, c.Err, "")
		}
		out.Items = append(out.Items, c)
	}
	return out, err
}

// TrustRoot declares that the root is the user's own in this place: the user's keys of other places are valid here, and
// tasks with open work, or with settings of their own, may continue with these. With dry it only reports those tasks.
func (s *Service) TrustRoot(ctx context.Context, dry bool) (api.TrustedRoot, error) {
	return doctor.Trust(ctx, s.store, dry)
}
