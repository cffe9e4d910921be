package main

import (
	"context"
	"testing"

	"github.com/roost-dev/roost/internal/testing/pgtest"
)

func TestSharedCatalogPart(t *testing.T) {
	pgtest.Programs(t)
	rows, err := sharedCatalog(context.Background(), options{dir: t.TempDir(), quick: true})
	if err != nil || len(rows) != 13 {
		t.Errorf("got %d rows, %v, want 13", len(rows), err)
	}
}
