package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/doctor"
	"github.com/roost-dev/roost/task"
)

// CheckedContents is what verifying the contents of checkpoints found.
type CheckedContents struct {
	Objects  int              `json:"objects"` // that were read
	Bytes    int64            `json:"bytes"`
	Damaged  []doctor.Finding `json:"-"`
	Repaired []doctor.Finding `json:"-"`
}

// CheckContents reads every content that the checkpoints of tasks rely on, each once, and compares
// it with what the journals recorded. With repair, a damaged content whose bytes still stand in
// the workspace is kept again. Nothing else is written, and nothing removed.
func (e *Engine) CheckContents(ctx context.Context, ids []string, repair bool) (CheckedContents, error) {
	out := CheckedContents{}
	refs, err := e.store.FindAll(ctx, ids)
	if err != nil {
		return out, err
	}
	stores := map[string]*checkpoint.Verifier{}
	var closing []error
	for _, ref := range refs {
		err := e.store.WithView(ctx, ref, func(v *store.View) error { return e.checkTask(ctx, ref, v.State, stores, repair, &out) })
		if err != nil && ctx.Err() == nil {
			continue // the task itself cannot be read: that is told elsewhere
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

func (e *Engine) checkTask(ctx context.Context, ref store.Ref, s *task.State, stores map[string]*checkpoint.Verifier, repair bool, out *CheckedContents) error {
	seen := map[string]bool{}
	for _, c := range s.Checkpoints {
		if c.Store == "" {
			continue
		}
		v := stores[c.Store]
		if v == nil {
			var err error
			if v, err = checkpoint.OpenVerifier(e.checkpointsDir(), c.Store); err != nil {
				return err
			}
			stores[c.Store] = v
		}
		for _, f := range c.Files {
			versions := []task.FileVersion{f.Now}
			if f.Was != nil {
				versions = append(versions, *f.Was)
			}
			for _, version := range versions {
				err := v.Verify(ctx, version)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err == nil || errors.Is(err, checkpoint.ErrUnkept) && elsewhere(s) || seen[f.Path+version.Blob] {
					continue
				}
				seen[f.Path+version.Blob] = true
				found := doctor.Finding{
					ID: ref.ID, Path: ref.Dir, File: filepath.Join(e.checkpointsDir(), c.Store),
					Problem:   fmt.Sprintf("checkpoint c%d: the content of %s: %v", c.Number, f.Path, err),
					Recovered: "what the other checkpoints hold", Lost: "what " + f.Path + " held then",
				}
				if repair && e.keepAgain(ctx, s, c.Store, f.Path, version) {
					found.Recovered, found.Lost = "the same bytes stand in the workspace, and are kept again", ""
					out.Repaired = append(out.Repaired, found)
					continue
				}
				out.Damaged = append(out.Damaged, found)
			}
		}
	}
	return nil
}

// elsewhere reports whether the contents of a task's checkpoints may never have been here: they
// do not come along with an archive, and a fork's may have gone with its base.
func elsewhere(s *task.State) bool { return s.Received != nil || s.Fork != nil }

// keepAgain keeps a content once more that still stands where it stood.
func (e *Engine) keepAgain(ctx context.Context, s *task.State, name, path string, v task.FileVersion) bool {
	root := e.rootOf(s, name)
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return false
	}
	ws, err := e.resolver.OpenWorkspace(root)
	if err != nil {
		return false
	}
	k, err := e.keeper(ws)
	if err != nil {
		return false
	}
	defer func() { _ = k.Close() }() // what it kept is durable
	if k.Name() != name {
		return false
	}
	now, err := k.Look(ctx, []string{path})
	if err != nil || now[path].Hash != v.Hash || v.Hash == "" {
		return false
	}
	held, err := k.Hold(ctx, []string{checkpoint.OnDisk(path)})
	if err != nil || held[path].Blob != v.Blob {
		return false
	}
	fresh, err := checkpoint.OpenVerifier(e.checkpointsDir(), name)
	if err != nil {
		return false
	}
	defer func() { _ = fresh.Close() }() // it only reads
	return fresh.Verify(ctx, v) == nil
}
