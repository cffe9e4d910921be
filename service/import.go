package service

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
)

// Import says what is copied into the root, and how.
type Import struct {
	Paths   []string    // task folders, storages and archives; absolute
	Sources []string    // names of sources or tools, or all
	DryRun  bool        // compare only; nothing is created
	Fork    bool        // copy a task whose id other content has under a new id; otherwise it is left out
	Map     [][2]string // workspaces below the first folder lie below the second one here
	Trust   bool        // keep the policy, address and limits that tasks of Roost come with

	Unread   func(api.SourceState)    // gets each source that cannot be read; the others are imported. nil: no one
	Progress func(api.ImportProgress) // nil: no one
}

// Import copies tasks into the root, verified; originals are only read. An error without items means that nothing was
// imported; with items, that the rest was not.
func (s *Service) Import(ctx context.Context, o Import) (api.Import, error) {
	opt := importer.Options{DryRun: o.DryRun, Trust: o.Trust, Progress: o.Progress}
	if o.Fork {
		opt.OnConflict = api.ConflictFork
	}
	for _, m := range o.Map {
		opt.Map = append(opt.Map, importer.PathMap{Old: m[0], New: m[1]})
	}
	var list []importer.Original
	for _, path := range o.Paths {
		found, opened, err := s.originals(ctx, path)
		if err != nil {
			return api.Import{}, importProblem(path, err)
		}
		if opened != nil {
			defer opened.Close()
		}
		list = append(list, found...)
	}
	for _, name := range o.Sources {
		found, unread, err := importer.FindSource(ctx, s.store, name)
		if err != nil {
			return api.Import{}, importProblem(name, err)
		}
		for _, state := range unread {
			if o.Unread != nil {
				o.Unread(state)
			}
		}
		list = append(list, found...)
	}
	done, err := importer.Run(ctx, s.store, list, opt)
	if errors.Is(err, importer.ErrRunning) {
		p := problem(0, "import_busy", "import", err.Error(), "roost import again when it is done")
		p.Retryable = true
		return done, p
	}
	return done, err
}

// originals are the tasks at a path. The caller closes what was opened for them.
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

// importProblem is the problem when there is nothing to import. It has a status only where HTTP would give one.
func importProblem(what string, err error) *api.Problem {
	p := problem(0, "import_failed", "import "+what, err.Error(), "roost sources").Because(err)
	switch {
	case errors.Is(err, store.ErrNotFound) || errors.Is(err, os.ErrNotExist):
		p.Status, p.Code = http.StatusNotFound, "not_found"
		p.Detail = strings.TrimPrefix(strings.TrimSuffix(p.Detail, ": "+store.ErrNotFound.Error()), "import from "+what+": ")
	case errors.Is(err, importer.ErrInOwnRoot):
		p.Code, p.Suggestions = "usage", []string{"roost list"}
	case errors.Is(err, export.ErrArchive):
		p.Code, p.Suggestions = "damaged", []string{"another copy of the archive"}
	}
	return p
}
