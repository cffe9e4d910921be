package store

import (
	"context"
	"testing"
)

// Rooms are verbs of packages that import this one, for tests of this package. A file of package store_test sets them.
var Rooms struct {
	Import func(ctx context.Context, s *Store, path string) (imported int, err error)
	Check  func(ctx context.Context, s *Store, ids []string, repair bool) (CheckReport, error)
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
	return must[CheckReport](t)(Rooms.Check(context.Background(), s, ids, false))
}
