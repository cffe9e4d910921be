package service

import (
	"cmp"
	"context"
	"net/http"
	"path/filepath"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// KnownFiles are the files that the model of a task knows. A workspace takes the place of the task's own, "" = that; with
// path only that file is listed, with its records.
func (s *Service) KnownFiles(ctx context.Context, id, dir string, path *string) (api.KnownFiles, error) {
	if err := folder("workspace", dir); err != nil {
		return api.KnownFiles{}, err
	}
	return read(ctx, s, id, func(v *store.View) (api.KnownFiles, error) {
		records := report.Records(v)
		w, why := openWorkspace(cmp.Or(dir, v.Summary.Workspace))
		if path != nil {
			records = ofFile(records, w, *path)
		}
		switch {
		case path != nil && len(records) == 0:
			return api.KnownFiles{}, problem(http.StatusNotFound, "file_not_known", "The model does not know that file",
				"it neither read nor changed a file of that path", "GET /v1/tasks/"+id+"/files")
		case len(records) > 0 && w == nil:
			return api.KnownFiles{}, problem(http.StatusUnprocessableEntity, "workspace_missing",
				"The task's workspace is not there", why,
				"POST /v1/tasks/"+v.Ref.ID+"/runs, with \"workspace\", the folder of today", "roost files "+v.Ref.ID+" -C DIR")
		}
		items, err := report.Files(ctx, v, w, records, path != nil)
		return api.KnownFiles{Items: items, Task: v.Ref.ID}, err
	})
}

// openWorkspace opens the folder of a task; nil, with the reason, when it cannot be opened.
func openWorkspace(dir string) (*workspace.Workspace, string) {
	if dir == "" {
		return nil, "its workspace is not recorded"
	}
	w, err := workspace.Open(dir)
	if err != nil {
		return nil, err.Error()
	}
	return w, ""
}

// ofFile keeps the records of one file, however its path is spelled.
func ofFile(records []task.FileRecord, w *workspace.Workspace, path string) []task.FileRecord {
	names := []string{path, filepath.ToSlash(filepath.Clean(path))}
	if w != nil {
		if p, err := w.Resolve(path); err == nil {
			names = append(names, p.Readable, p.RealReadable)
		}
	}
	for _, name := range names {
		var out []task.FileRecord
		for _, r := range records {
			if r.Path == name {
				out = append(out, r)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}
