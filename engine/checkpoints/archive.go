package checkpoints

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/task"
)

// An archive carries what checkpoints keep: the journal of a task names stores and hashes, and the archive holds each
// content once. Paths mean nothing on another machine, so the store of the task's workspace gets the name that the
// workspace has here. Contents of an archive are untrusted: only those are kept that the task's own checkpoints name.

// Archived yields what the checkpoints of a task keep, and names the store of its workspace. A content that cannot be
// read fails when it is opened. What was never kept here is left out.
func (svc *Service) Archived(ctx context.Context, v *store.View) (iter.Seq[importer.ArchiveFile], string) {
	s := v.State
	if saved, err := v.Saved(ctx); err == nil && saved > s.Seq { // the task went on since it was read
		now, err := store.FromView(ctx, svc.store, v.Ref, func(v *store.View) (*task.State, error) { return v.State, nil })
		if err == nil {
			s = now
		}
	}
	workspace := ""
	if root, err := svc.resolver().FindWorkspace(s.Settings); err == nil && root != "" {
		names := svc.storeNames(inputfile.Resolved(root))
		for _, c := range s.Checkpoints {
			if slices.Contains(names, c.Store) {
				workspace = c.Store
			}
		}
	}
	return func(yield func(importer.ArchiveFile) bool) {
		stores := checkpoint.NewVerifier(svc.place)
		defer func() { _ = stores.Close() }() // it only reads
		for c, f := range recorded(s) {
			from, failed := stores.Open(c.Store)
			never := failed == nil && mayLackContents(s) && !from.Has(ctx, f.Now)
			if never || !content.Hash(f.Now.Hash).Valid() {
				continue
			}
			file := importer.ArchiveFile{Path: f.Path, SHA256: f.Now.Hash, Open: func() (io.ReadCloser, error) {
				if failed != nil {
					return nil, failed
				}
				data, err := from.Read(ctx, f.Now, 0)
				return io.NopCloser(bytes.NewReader(data)), err
			}}
			if !yield(file) {
				return
			}
		}
	}, workspace
}

// maxStores bounds the stores that one task of an archive may name, so that it cannot fill the root with folders. A
// task has one for each workspace that it had.
const maxStores = 16

// Receive keeps what an archive holds for the checkpoints of a task that is being imported; see importer.Options. A task
// in the trash may have the same id: it keeps what it has.
func (svc *Service) Receive(ctx context.Context, id, workspace string, s *task.State, from importer.Original) (
	names map[string]string, notes []string, err error) {
	wanted := map[string]map[string]importer.ArchiveFile{} // by store and hash
	for c, f := range recorded(s) {
		file, there := from.Contents[f.Now.Hash]
		if !there {
			continue
		}
		if wanted[c.Store] == nil {
			wanted[c.Store] = map[string]importer.ArchiveFile{}
		}
		wanted[c.Store][f.Now.Hash] = file
	}
	if len(wanted) > maxStores {
		return nil, []string{fmt.Sprintf("what its checkpoints keep was left out: they name %d workspaces", len(wanted))}, nil
	}
	names = map[string]string{}
	owner := checkpoint.OwnerOf(nameInStore(store.Ref{ID: id, Own: true}))
	for name, files := range wanted {
		names[name] = name
		if name == from.Store && workspace != "" {
			names[name] = svc.storeNames(inputfile.Resolved(workspace))[0]
		}
		list := api.Each(slices.Collect(maps.Values(files)), func(f importer.ArchiveFile) checkpoint.Incoming {
			return checkpoint.Incoming{Size: f.Size, Read: f.ReadAll}
		})
		options := checkpoint.Options{MaxStore: svc.resolver().Config.CheckpointStore}
		err := svc.withContents(names[name], func(c *checkpoint.Contents) error {
			left, why, err := c.Add(ctx, owner, "checkpoints of an archive", list, options)
			if left > 0 {
				notes = append(notes, fmt.Sprintf("what its checkpoints keep lacks %s: %v", api.Plural(left, "content"), why))
			}
			return err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("keep what its checkpoints hold: %w", inUse(err))
		}
	}
	return names, notes, nil
}
