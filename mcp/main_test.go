package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/testing/mcptest"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/workspace/shell"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	goleak.VerifyTestMain(m)
}

// environ is the environment of a hub under test; it holds a secret.
func environ(name string) string {
	if name == "SERVER_TOKEN" {
		return "tok-0123456789abcdef"
	}
	return os.Getenv(name)
}

// stdio defines the test's own binary as a server that behaves in a way.
func stdio(t *testing.T, name, how string) Server {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Server{Name: name, Scope: Own, Kind: Stdio, Command: exe, State: Allowed, Timeout: 30 * time.Second, Env: map[string]string{
		mcptest.Env: how, mcptest.LogEnv: filepath.Join(t.TempDir(), "log"), "SERVER_TOKEN": "${env:SERVER_TOKEN}", "GORACE": "atexit_sleep_ms=0",
	}}
}

func hub(t *testing.T, servers ...Server) *Hub {
	t.Helper()
	dir := t.TempDir()
	h := NewHub(Options{
		Servers: servers, Workspace: dir, Env: environ, Mark: "mcptest-" + shell.NewMark(), Version: "test", Connect: 30 * time.Second,
		Masks: redact.New(Secrets(servers, dir, environ)...),
	})
	t.Cleanup(func() {
		h.Close()
		if left := shell.FindMarked(h.opt.Mark); left != nil {
			t.Errorf("processes are left: %v", left)
		}
	})
	return h
}

func call(t *testing.T, h *Hub, server, tool, args string) Result {
	t.Helper()
	r, err := h.Call(t.Context(), server, tool, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s: got %v, want no error", tool, err)
	}
	return r
}

// failing makes a call that has no result.
func failing(t *testing.T, h *Hub, server, tool, args string) *CallError {
	t.Helper()
	r, err := h.Call(t.Context(), server, tool, json.RawMessage(args))
	var failed *CallError
	if !errors.As(err, &failed) {
		t.Fatalf("%s: got %+v, %v, want errors.As(err, &failed)", tool, r, err)
	}
	return failed
}

// logged is what the server wrote into its log.
func logged(s Server) string {
	data, _ := os.ReadFile(s.Env[mcptest.LogEnv])
	return string(data)
}

func toolNames(m Menu) (names []string) {
	for _, o := range m.Tools {
		names = append(names, o.Tool)
	}
	return names
}

func holds(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in %q", w, text)
		}
	}
}

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped by hand"))
	return ctx
}
