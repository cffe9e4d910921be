package store

import (
	"context"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// Rooms are verbs of packages that import this one, for tests of this package. A file of package store_test sets them.
var Rooms struct {
	Import func(ctx context.Context, s *Store, path string) (imported int, err error)
	Check  func(ctx context.Context, s *Store, ids []string, repair bool) (CheckReport, error)

	Label   func(ctx context.Context, s *Store, ref Ref, title *string, tags ...string) error
	Delete  func(ctx context.Context, s *Store, ref Ref) (name string, err error)
	Restore func(ctx context.Context, s *Store, given string) (Ref, error)
	Purge   func(ctx context.Context, s *Store, given string) error
	Undo    func(ctx context.Context, s *Store, given string, redo bool, saved func()) (UndoneAction, error)
	Rewind  func(ctx context.Context, s *Store, ref Ref, to string) (finish func(context.Context) error, err error)
	Fork    func(ctx context.Context, s *Store, ref Ref, at string) (id string, finish func(context.Context) error, err error)
}

// CheckReport is a report of the doctor.
type CheckReport struct {
	Tasks     int
	OK        int
	Damaged   []CheckFinding
	Repaired  []CheckFinding
	Stale     []CheckFinding
	Leftovers []CheckFinding
}

// CheckFinding is a finding of the doctor.
type CheckFinding struct{ ID, Path, File, Problem, Recovered, Lost, Copy string }

// checkWith verifies tasks with the doctor.
func checkWith(t testing.TB, s *Store, ids ...string) CheckReport {
	t.Helper()
	return fixture.Must[CheckReport](t)(Rooms.Check(context.Background(), s, ids, false))
}

// UndoneAction is an action that was undone. When undoing fails because the task was continued since, Branch is the
// branch that holds what it was before; Nothing: there was nothing to undo.
type UndoneAction struct {
	Kind, By, Branch string
	Gone             *api.MessageCounts
	Nothing          bool
}

// undo undoes or redoes the newest action of a task.
func undo(t testing.TB, s *Store, id string, redo bool) UndoneAction {
	t.Helper()
	return fixture.Must[UndoneAction](t)(Rooms.Undo(context.Background(), s, id, redo, nil))
}

// del deletes a task.
func del(t testing.TB, s *Store, id string) {
	t.Helper()
	fixture.Must[string](t)(Rooms.Delete(context.Background(), s, fixture.Must[Ref](t)(s.Find(context.Background(), id))))
}
