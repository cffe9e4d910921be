package server

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/store"
)

// ready is what /readyz says of the store, to anybody.
func (g *bench) ready() (status int, store string) {
	g.Helper()
	resp := g.ask("GET", "/readyz", "Authorization: ")
	var r readiness
	if text := fixture.Must[[]byte](g)(io.ReadAll(resp.Body)); json.Unmarshal(text, &r) != nil || (resp.StatusCode == http.StatusOK) != (r.Status == "ready") {
		g.Errorf("/readyz: %s\n%s", resp.Status, text)
	}
	return resp.StatusCode, r.Checks["store"]
}

// A root that is not there yet is no reason: it comes into being with the first task. When
// it was there once, and is not, its tasks are not to be had.
func TestARootThatIsNotThereYet(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	st := fixture.Must[*store.Store](t)(store.Open(store.Options{Root: root, Cache: filepath.Join(dir, "cache"), Program: "test"}))
	s := &Server{service: service.New(st, nil, service.Options{}), running: t.Context()}
	defer s.service.Close()
	for range 2 {
		if why := s.room(); why != "" {
			t.Errorf("before the first task: %q", why)
		}
	}
	if _, err := os.Lstat(root); !os.IsNotExist(err) {
		t.Errorf("to ask made it: %v", err)
	}
	for _, why := range []string{"", "it is missing"} {
		if err := os.MkdirAll(root, 0o700); err != nil {
			t.Fatal(err)
		}
		if why != "" {
			if err := os.Remove(root); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.room(); got != why {
			t.Errorf("it says %q, want %q", got, why)
		}
	}
}
