package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// VerifiedContents is the result of verifying the contents of checkpoints.
type VerifiedContents struct {
	Objects  int           `json:"objects"` // that were read
	Bytes    int64         `json:"bytes"`
	Damaged  []api.Finding `json:"-"`
	Repaired []api.Finding `json:"-"`
}

// Verify reads every content that the checkpoints of tasks rely on, each once, and compares it with what the journals
// record. With repair, a damaged content is kept again where the file in the workspace still has the same bytes. Nothing
// else is written, and nothing is removed.
func (svc *Service) Verify(ctx context.Context, ids []string, repair bool) (VerifiedContents, error) {
	out := VerifiedContents{}
	refs, err := svc.store.FindAll(ctx, ids)
	if err != nil {
		return out, err
	}
	stores := map[string]*checkpoint.Verifier{}
	var closing []error
	for _, ref := range refs {
		err := svc.store.WithView(ctx, ref, func(v *store.View) error { return svc.verifyTask(ctx, ref, v.State, stores, repair, &out) })
		if err != nil && ctx.Err() == nil {
			continue // the task itself cannot be read, which the check of its journal reports
		}
		if err != nil {
			break
		}
	}
	for _, v := range stores {
		out.Objects, out.Bytes = out.Objects+v.Objects, out.Bytes+v.Bytes
		closing = append(closing, v.Close())
	}
	return out, errors.Join(append(closing, ctx.Err())...)
}

func (svc *Service) verifyTask(ctx context.Context, ref store.Ref, s *task.State, stores map[string]*checkpoint.Verifier,
	repair bool, out *VerifiedContents) error {
	seen := map[string]bool{}
	for _, c := range s.Checkpoints {
		if c.Store == "" {
			continue
		}
		v := stores[c.Store]
		if v == nil {
			var err error
			if v, err = checkpoint.OpenVerifier(svc.dir(), c.Store); err != nil {
				return err
			}
			stores[c.Store] = v
		}
		for _, f := range c.Files {
			versions := []api.FileVersion{f.Now}
			if f.Was != nil {
				versions = append(versions, *f.Was)
			}
			for _, version := range versions {
				err := v.Verify(ctx, version)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err == nil || errors.Is(err, checkpoint.ErrUnkept) && mayLackContents(s) || seen[f.Path+version.Blob] {
					continue
				}
				seen[f.Path+version.Blob] = true
				found := api.Finding{
					ID: ref.ID, Path: ref.Dir, File: filepath.Join(svc.dir(), c.Store),
					Problem:   fmt.Sprintf("checkpoint c%d: the content of %s: %v", c.Number, f.Path, err),
					Recovered: "what the other checkpoints hold", Lost: "the content of " + f.Path + " at that time",
				}
				if repair && svc.repairContent(ctx, s, c.Store, f.Path, version) {
					found.Recovered, found.Lost = "the file in the workspace has the same bytes, and they are kept again", ""
					out.Repaired = append(out.Repaired, found)
					continue
				}
				out.Damaged = append(out.Damaged, found)
			}
		}
	}
	return nil
}

// mayLackContents reports whether the contents of a task's checkpoints were possibly never in this root: an older archive
// holds none, and those of a fork may have been removed with its base.
func mayLackContents(s *task.State) bool { return s.Received != nil || s.Fork != nil }

// repairContent keeps a damaged content again, where the file in the workspace still has it.
func (svc *Service) repairContent(ctx context.Context, s *task.State, name, path string, v api.FileVersion) bool {
	root := svc.rootOf(s, name)
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return false
	}
	ws, err := svc.resolver.OpenWorkspace(root)
	if err != nil {
		return false
	}
	k, err := svc.openKeeper(ws)
	if err != nil {
		return false
	}
	defer func() { _ = k.Close() }() // what it has kept is durable
	if k.Name() != name {
		return false
	}
	now, err := k.Look(ctx, []string{path})
	if err != nil || now[path].Hash != v.Hash || v.Hash == "" {
		return false
	}
	held, err := k.Hold(ctx, []string{checkpoint.OnDisk(path)})
	if err != nil || held[path].Blob == "" || held[path].Hash != v.Hash {
		return false
	}
	fresh, err := checkpoint.OpenVerifier(svc.dir(), name)
	if err != nil {
		return false
	}
	defer func() { _ = fresh.Close() }() // it only reads
	return fresh.Verify(ctx, v) == nil
}
