//go:build linux

package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/mcptest"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/workspace/shell"
)

// 19.21.7: a run that waits for an MCP server is over within two seconds of its cancel,
// whatever that server does, and nothing of the server is left.
func TestCancellingACallOfAServerIsQuick(t *testing.T) {
	exe := fixture.Must[string](t)(os.Executable())
	for name, c := range map[string]struct {
		how   string // of the server; "" = as well as servers do
		far   string // the server is over HTTP, of that kind
		tool  string
		least int // processes that it has
		begun string
	}{
		"a call that hears of the cancel":                 {how: "", tool: "slow", least: 1, begun: "slow"},
		"a call that never ends":                          {how: "", tool: "hang", least: 1, begun: "hang"},
		"a server that ignores SIGTERM and has a child":   {how: "stubborn breeds", tool: "hang", least: 2, begun: "hang"},
		"a server that stopped reading":                   {how: "deaf stubborn breeds", tool: "hang", least: 2},
		"a server that never says hello, and has a child": {how: "stubborn breeds silent", tool: "hang", least: 2},
		"an HTTP server that never answers":               {far: "streamable-http", tool: "hang"},
		"an older HTTP server that never answers":         {far: "sse", tool: "hang"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inTime(t, func(t *testing.T) time.Duration {
				log := filepath.Join(t.TempDir(), "log")
				define := map[string]any{"command": exe, "env": map[string]string{mcptest.Env: c.how, mcptest.LogEnv: log, "GORACE": "atexit_sleep_ms=0"}, "timeout": 3600}
				began := func() bool {
					text, _ := os.ReadFile(log)
					return strings.HasPrefix(string(text), c.begun)
				}
				if c.far != "" {
					var url string
					url, began = deadEnd(t, c.far)
					define = map[string]any{"type": c.far, "url": url, "timeout": 3600}
				}
				g := newMCPBench(t, define)
				var processes func() []shell.Member
				took := g.cancelled(t, `[{tools: [{name: mcp--s--`+c.tool+`, input: {n: 3600000}}]}]`, "/v1/tasks/%s/cancel", func(r api.Run) bool {
					sum := sha256.Sum256([]byte(g.store.Root() + "\x00roost\x00" + r.Task))
					processes = func() []shell.Member { return shell.FindMarked("mcp-" + hex.EncodeToString(sum[:16])) }
					return (c.begun == "" && c.far == "" || began()) && len(processes()) >= c.least
				})
				if left := processes(); len(left) > 0 {
					t.Errorf("processes %v are left", left)
				}
				return took
			})
		})
	}
}

// deadEnd is an HTTP server that answers until a tool is called.
func deadEnd(t *testing.T, kind string) (url string, called func() bool) {
	s := mcptest.New("")
	h := mcptest.Handler(s)
	if kind == "sse" {
		h = mcptest.SSEHandler(s)
	}
	mute, first := mcptest.Mute(h)
	web := httptest.NewServer(mute)
	t.Cleanup(func() {
		mcptest.Hangup(s)
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL, func() bool {
		select {
		case <-first:
			return true
		default:
			return false
		}
	}
}

// newMCPBench is a server whose tasks have an MCP server.
func newMCPBench(t *testing.T, define map[string]any) *bench {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(file, fixture.Must[[]byte](t)(json.Marshal(map[string]any{"mcpServers": map[string]any{"s": define}})), 0o600); err != nil {
		t.Fatal(err)
	}
	var e *engine.Engine
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return newWorkingBench(t, func(o *testOptions) {
		e = engine.New(o.Store, engine.Options{Config: setup.Config{Keys: map[string]string{}, Servers: mcp.Files{Own: file}}})
		o.Engine = e
	})
}
