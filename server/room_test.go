//go:build linux || darwin

package server

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// A server whose root is gone, or may not be read, is not ready, and is again when the
// root is back. It runs all the time: who asks whether it lives is told so.
func TestReadyMeansThatTasksCanBeKept(t *testing.T) {
	g := newWorkingBench(t)
	root := g.store.Root()
	expect := func(status int, store string) {
		t.Helper()
		if got, why := g.ready(); got != status || why != store {
			t.Errorf("%d %q, want %d %q", got, why, status, store)
		}
		if resp := g.ask("GET", "/healthz", "Authorization: "); resp.StatusCode != http.StatusOK {
			t.Errorf("/healthz: %s", resp.Status)
		}
	}
	expect(http.StatusOK, "ok")
	away := filepath.Join(t.TempDir(), "away")
	rename(t, root, away)
	expect(http.StatusServiceUnavailable, "it is missing")
	if _, err := os.Lstat(root); !os.IsNotExist(err) {
		t.Errorf("to ask made it: %v", err)
	}
	if err := os.WriteFile(root, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(http.StatusServiceUnavailable, "it cannot be read")
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	rename(t, away, root)
	expect(http.StatusOK, "ok")
	for mode, why := range map[os.FileMode]string{0o300: "it may not be read", 0o500: "it may not be written"} {
		if os.Geteuid() == 0 {
			break // may all
		}
		if err := os.Chmod(root, mode); err != nil {
			t.Fatal(err)
		}
		expect(http.StatusServiceUnavailable, why)
		if err := os.Chmod(root, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADiskWithoutRoomIsNotReady(t *testing.T) {
	dir := t.TempDir()
	if why := kept(dir, 1); why != "" {
		t.Errorf("with room for a byte: %q", why)
	}
	if why := kept(dir, 1<<62); why != "the disk is full" {
		t.Errorf("without room for 4 EiB: %q", why)
	}
}
