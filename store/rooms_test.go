package store

import "context"

// Rooms are verbs of packages that import this one, for tests of this package. A file of package store_test sets them.
var Rooms struct {
	Import func(ctx context.Context, s *Store, path string) (imported int, err error)
}
