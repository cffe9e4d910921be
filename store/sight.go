package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store/fold"
)

// Where several people share a store, the context of a request carries a Sight, which decides which tasks its caller may
// find. Every function that finds or lists tasks applies it, so a service cannot forget to. A context without a sight is
// the program's own, and finds all tasks.

// Sight decides about a task by its access. A task with seen false does not exist for the caller; refused is the
// reason why the caller may not use a task that they see.
type Sight func(api.Access) (seen bool, refused error)

type sightKey struct{}

// Seeing returns a context in which only the tasks that sight allows are found.
func Seeing(ctx context.Context, sight Sight) context.Context {
	return context.WithValue(ctx, sightKey{}, sight)
}

func sightOf(ctx context.Context) Sight {
	sight, _ := ctx.Value(sightKey{}).(Sight)
	return sight
}

// Sees reports whether the caller of a context may find a task, and use it for what they intend.
func (s *Store) Sees(ctx context.Context, ref Ref) bool { return s.allowed(ctx, ref, ref.ID) == nil }

// Access returns the owner of a task, and who else may reach it. A task without a journal has no owner. Access uses a
// snapshot only if this root wrote it.
func (s *Store) Access(ctx context.Context, ref Ref) (api.Access, error) {
	log, err := s.Verified(ctx, ref)
	if errors.Is(err, journal.ErrNotFound) {
		return api.Access{}, nil
	}
	if err != nil {
		return api.Access{}, err
	}
	state, err := fold.Runs(ctx, log) // the cheapest fold that has the access
	if err = errors.Join(err, log.Close()); err != nil {
		return api.Access{}, err
	}
	return state.Access, nil
}

// allowed returns why the caller of a context may not use a task; nil when they may. given is the name that they
// gave.
func (s *Store) allowed(ctx context.Context, ref Ref, given string) error {
	sight := sightOf(ctx)
	if sight == nil {
		return nil
	}
	access, err := s.Access(ctx, s.Latest(ctx, ref))
	if err != nil {
		return err
	}
	seen, refused := sight(access)
	if !seen {
		return fmt.Errorf("%w: %q", ErrNotFound, given)
	}
	return refused
}

// seen returns the tasks that the caller of a context may find.
func (s *Store) seen(ctx context.Context, refs []Ref) ([]Ref, error) {
	sight := sightOf(ctx)
	if sight == nil {
		return refs, nil
	}
	all, err := s.List(ctx, Filter{TaskFilter: api.TaskFilter{Empty: true}})
	if err != nil {
		return nil, err
	}
	may := api.SetOf(all.Refs)
	return slices.DeleteFunc(slices.Clone(refs), func(r Ref) bool { return !may[r] }), ctx.Err()
}
