package doctor

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/projection"
)

// Trust makes the root its user's own in this place: the keys that the user has for the root in other places count here.
// It also vouches for the present state of tasks whose logs are still not proven and that hold something open or settings
// of their own. Imported tasks stay received.
func Trust(ctx context.Context, s *store.Store, dry bool) (api.TrustedRoot, error) {
	out := api.TrustedRoot{Root: s.Root(), Tasks: []api.TrustedTask{}}
	if !dry {
		n, err := s.TrustKeys()
		if err != nil {
			return out, err
		}
		out.Keys = n
	}
	refs, err := s.Refs(ctx)
	if err != nil {
		return out, err
	}
	for i, ref := range refs {
		progress.Report(ctx, progress.State{What: "checking", Done: i, Of: len(refs)})
		if err := ctx.Err(); err != nil {
			return out, err
		}
		t, ok, err := TrustTask(ctx, s, ref, dry)
		if err != nil {
			t, ok = api.TrustedTask{ID: ref.ID, Source: ref.Source, Problem: err.Error()}, true
		}
		if ok {
			out.Tasks = append(out.Tasks, t)
		}
	}
	return out, nil
}

// TrustTask vouches for the present state of a task that holds something open or settings of its own, unless its log
// is proven. ok reports whether it vouched for the state, or with dry would have.
func TrustTask(ctx context.Context, s *store.Store, ref store.Ref, dry bool) (t api.TrustedTask, ok bool, err error) {
	if !s.HasJournal(ctx, ref) {
		return t, false, nil
	}
	v, err := s.Read(ctx, ref)
	if err != nil {
		return t, false, err
	}
	t = api.TrustedTask{ID: ref.ID, Source: ref.Source, Holds: v.State.Brings()}
	standing, err := s.Standing(ctx, ref, v.State.Begins)
	if err = errors.Join(err, v.Close()); err != nil {
		return t, false, err
	}
	imported := projection.Exists(filepath.Join(ref.Dir, store.ImportRecord))
	if t.Standing = string(standing); standing == store.Ours || len(t.Holds) == 0 || imported {
		return t, false, nil // the owner of an imported task receives it
	}
	if dry {
		return t, true, nil
	}
	owned, err := s.Own(ctx, ref)
	if err != nil {
		return t, false, err
	}
	if owned.Task.Standing() != store.Ours {
		err = owned.Task.Vouch(ctx)
	}
	return t, true, errors.Join(err, owned.Task.Close(context.WithoutCancel(ctx)))
}
