package main

import (
	"testing"

	"github.com/roost-dev/roost/internal/testing/pgtest"
)

func TestSharedCatalogPart(t *testing.T) {
	pgtest.Shared(t) // it skips where there is no PostgreSQL
	defer pgtest.StopShared()
	rows, err := sharedCatalog(t.Context(), options{dir: t.TempDir(), quick: true})
	if err != nil || len(rows) != 13 {
		t.Errorf("got %d rows, %v, want 13", len(rows), err)
	}
}
