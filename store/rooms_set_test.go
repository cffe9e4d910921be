package store_test

import (
	"context"
	"encoding/json"
	"fmt"

	"errors"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/doctor"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/trash"
)

func init() {
	store.Rooms.Import = func(ctx context.Context, s *store.Store, path string) (int, error) {
		list, err := importer.FindPath(ctx, s, path)
		if err != nil {
			return 0, err
		}
		r, err := importer.Run(ctx, s, list, importer.Options{})
		for _, item := range r.Items {
			if err == nil && !item.ByteEqual {
				err = fmt.Errorf("%s is not byte equal", item.Name)
			}
		}
		return r.Imported, err
	}
	store.Rooms.Rewind = func(ctx context.Context, s *store.Store, ref store.Ref, to string) (func(context.Context) error, error) {
		_, finish, err := history.Rewind(ctx, s, ref, history.RewindOptions{To: to})
		return finish, err
	}
	store.Rooms.Fork = func(ctx context.Context, s *store.Store, ref store.Ref, at string) (string, func(context.Context) error, error) {
		f, finish, err := history.Fork(ctx, s, ref, history.ForkOptions{At: at})
		return f.ID, finish, err
	}
	store.Rooms.Check = func(ctx context.Context, s *store.Store, ids []string, repair bool) (out store.CheckReport, err error) {
		r, err := doctor.Check(ctx, s, ids, doctor.Options{Repair: repair})
		if err != nil {
			return out, err
		}
		data, err := json.Marshal(r)
		if err != nil {
			return out, err
		}
		return out, json.Unmarshal(data, &out)
	}
	store.Rooms.Label = func(ctx context.Context, s *store.Store, ref store.Ref, title *string, tags ...string) error {
		_, err := labels.Set(ctx, s, ref, labels.Change{Title: title, Add: tags})
		return err
	}
	store.Rooms.Delete = func(ctx context.Context, s *store.Store, ref store.Ref) (string, error) {
		d, err := trash.Delete(ctx, s, ref)
		return d.Name, err
	}
	store.Rooms.Restore = trash.Restore
	store.Rooms.Purge = func(ctx context.Context, s *store.Store, given string) error {
		_, err := trash.Purge(ctx, s, given)
		return err
	}
	store.Rooms.Undo = undo
}

func undo(ctx context.Context, s *store.Store, given string, redo bool, saved func()) (store.UndoneAction, error) {
	o := actions.Options{Redo: redo}
	if saved != nil {
		o.Saved = func(api.Action, api.TaskActions) { saved() }
	}
	a, _, err := actions.Undo(ctx, s, given, o)
	out := store.UndoneAction{
		Kind:    a.Kind,
		By:      a.By,
		Branch:  a.Branch,
		Gone:    a.Gone,
		Nothing: errors.Is(err, actions.ErrNothing),
	}
	var continued *actions.ContinuedError
	if errors.As(err, &continued) {
		out.Branch = continued.Branch
	}
	return out, err
}
