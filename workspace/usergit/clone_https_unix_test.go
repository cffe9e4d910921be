//go:build unix

package usergit

import (
	"encoding/pem"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// Clone over TLS, from the server program that git brings along. No password is ever asked for, and no redirect followed.
func TestCloneOverHTTPS(t *testing.T) {
	programs := strings.TrimSpace(fixture.Git(t, t.TempDir(), "--exec-path"))
	backend, err := exec.LookPath(filepath.Join(programs, "git-http-backend"))
	if err != nil {
		t.Skip("git has no git-http-backend here")
	}
	home, served, commit := serve(t)
	git := &cgi.Handler{
		Path: backend,
		Env:  []string{"GIT_PROJECT_ROOT=" + served, "GIT_HTTP_EXPORT_ALL=1"},
	}
	mux := http.NewServeMux()
	mux.Handle("/app.git/", git)
	mux.HandleFunc("/private.git/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	mux.HandleFunc("/moved.git/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(r.URL.String(), "/moved.git/", "/app.git/", 1), http.StatusMovedPermanently)
	})
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	authority := filepath.Join(home, "authority.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	fixture.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(block), 0o600))

	for _, c := range []struct {
		name, path string
		trusted    bool
		want       string // of the error
	}{
		{name: "trusted", path: "/app.git", trusted: true},
		{name: "not trusted", path: "/app.git", want: "certificate"},
		{name: "wants a password", path: "/private.git", trusted: true, want: "could not read Username"},
		{name: "redirects", path: "/moved.git", trusted: true, want: "301"},
		{name: "has no such repository", path: "/none.git", trusted: true, want: "not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := ""
			if c.trusted {
				config = "[http]\n\tsslCAInfo = " + authority + "\n"
			}
			fixture.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600))
			cloned(t, server.URL+c.path, commit, c.want)
		})
	}
}

// serve makes a bare repository, app.git, in a folder, and a home without settings.
func serve(t *testing.T) (home, served, commit string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	work, served := filepath.Join(home, "work"), filepath.Join(home, "served")
	fixture.NoError(t, os.MkdirAll(work, 0o755))
	fixture.NoError(t, os.WriteFile(filepath.Join(work, "a.txt"), []byte("posts"), 0o600))
	fixture.Git(t, work, "init", "-q", "-b", "main")
	fixture.Git(t, work, "add", "-A")
	fixture.Git(t, work, "commit", "-qm", "first")
	fixture.Git(t, home, "clone", "-q", "--bare", work, filepath.Join(served, "app.git"))
	return home, served, fixture.Git(t, work, "rev-parse", "HEAD")
}

// cloned clones a remote. It wants the file of the commit in the clone, or an error that contains wantErr.
func cloned(t *testing.T, remote, commit, wantErr string) {
	t.Helper()
	dir, began := filepath.Join(t.TempDir(), "tree"), time.Now()
	err := Clone(t.Context(), api.WorkTree{Remote: remote, Commit: commit, Branch: "main"}, dir)
	if wantErr != "" {
		if err == nil || !strings.Contains(err.Error(), wantErr) || !strings.Contains(err.Error(), remote) {
			t.Errorf("got %v, want an error that names the remote and %q", err, wantErr)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("got the error after %s, want it at once", took)
		}
		return
	}
	if data := fixture.Must[[]byte](t)(os.ReadFile(filepath.Join(dir, "a.txt"))); err != nil || string(data) != "posts" {
		t.Errorf("got %v and %q, want a clone with the file", err, data)
	}
}
