package service

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
)

// The code of a problem tells a caller why nothing was imported.
func TestNothingToImport(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    error
		code   string
		status int
	}{
		{store.ErrNotFound, "not_found", 404},
		{os.ErrNotExist, "not_found", 404},
		{importer.ErrInOwnRoot, "usage", 422},
		{export.ErrArchive, "damaged", 422},
		{os.ErrPermission, "import_failed", 422},
	} {
		p := importProblem("x", tt.err)
		if p.Code != tt.code || p.Status != tt.status || p.Title != "import x" || len(p.Suggestions) != 1 {
			t.Errorf("%v: got %+v, want p.Code = tt.code and p.Status = tt.status and p.Title = \"import x\" and len(p.Suggestions) = 1",
				tt.err, p)
		}
	}
}

// A folder of tasks is copied whole; a second import finds that it is there; and a check of the root finds nothing.
func TestImportAndCheck(t *testing.T) {
	t.Parallel()
	st, err := store.Open(store.Options{Root: filepath.Join(t.TempDir(), "root"), Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := New(st, nil, Options{Temp: t.TempDir()})
	defer s.Close()
	dir := filepath.Join(t.TempDir(), "tasks", "one")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	row := []byte(`[{"ts":1776200000000,"type":"say","say":"text","text":"hello"}]`)
	if err := os.WriteFile(filepath.Join(dir, "ui_messages.json"), row, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{api.TaskImported, api.TaskSame} {
		done, err := s.Import(t.Context(), api.NewImport{Paths: []string{dir}})
		if err != nil || len(done.Items) != 1 || done.Items[0].Outcome != want {
			t.Fatalf("%v, %+v, want %s", err, done, want)
		}
	}
	found, err := s.Check(t.Context(), api.NewCheckup{})
	if err != nil || found.Tasks != 1 || found.OK != 1 || len(found.Damaged) > 0 {
		t.Errorf("got %v, %+v, want no error and found.Tasks = 1 and found.OK = 1 and len(found.Damaged) <= 0",
			err, found)
	}
	var p *api.Problem
	if _, err := s.Import(t.Context(), api.NewImport{Paths: []string{filepath.Join(dir, "none")}}); !errors.As(err, &p) || p.Code != "not_found" {
		t.Errorf("a path that is missing: %v", err)
	}
	for name, n := range map[string]api.NewImport{
		"nothing":         {},
		"a relative path": {Paths: []string{"tasks"}},
		"another rule":    {Sources: []string{"all"}, Clash: "replace"},
		"half a map":      {Sources: []string{"all"}, Map: [][2]string{{"/old", ""}}},
	} {
		if _, err := s.Import(t.Context(), n); !errors.As(err, &p) || p.Code != "validation_failed" || len(p.Errors) != 1 {
			t.Errorf("%s: got %v, want one wrong parameter", name, err)
		}
	}
}
