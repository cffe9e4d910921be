package server

import (
	"os"
	"path/filepath"
	"testing"
)

func journalPath(g *bench) string {
	return filepath.Join(g.store.Root(), "tasks", g.id, "journal.jsonl")
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
