package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/testing/mcptest"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/shell"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	goleak.VerifyTestMain(m)
}

// caller is a server that answers what a test wants, and notes what it was asked.
type caller struct {
	answer mcp.Result
	err    error
	asked  []string
}

func (c *caller) Call(_ context.Context, server, name string, arguments json.RawMessage) (mcp.Result, error) {
	c.asked = append(c.asked, server+" "+name+" "+string(arguments))
	return c.answer, c.err
}

func (c *caller) Read(_ context.Context, server, uri string) (mcp.Result, error) {
	c.asked = append(c.asked, server+" "+uri)
	return c.answer, c.err
}

func planned(t *testing.T, tl tool.Tool, env tool.Env, input string) tool.Plan {
	t.Helper()
	p, err := tl.Plan(t.Context(), env, json.RawMessage(input))
	if err != nil {
		t.Fatalf("%s: got %v, want no error", input, err)
	}
	return p
}

func run(t *testing.T, p tool.Plan) tool.Result {
	t.Helper()
	r, err := p.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// refused is the model's mistake in a call.
func refused(t *testing.T, tl tool.Tool, input string) string {
	t.Helper()
	_, err := tl.Plan(t.Context(), tool.Env{}, json.RawMessage(input))
	var wrong *tool.InputError
	if !errors.As(err, &wrong) {
		t.Errorf("%s: got %v, want errors.As(err, &wrong)", input, err)
		return ""
	}
	return wrong.Reason
}

// box makes the tools of this test's own binary as servers, by name and behaviour.
func box(t *testing.T, change func(*mcp.Server), how ...string) *Box {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var servers []mcp.Server
	for _, h := range how {
		name, does, _ := strings.Cut(h, ":")
		s := mcp.Server{Name: name, Kind: mcp.Stdio, Command: exe, State: mcp.Allowed, Timeout: 30 * time.Second, Env: map[string]string{mcptest.Env: does, "GORACE": "atexit_sleep_ms=0"}}
		if change != nil {
			change(&s)
		}
		servers = append(servers, s)
	}
	hub := mcp.NewHub(mcp.Options{Servers: servers, Workspace: t.TempDir(), Env: os.Getenv, Mark: "mcptool-" + shell.NewMark(), Connect: 30 * time.Second})
	t.Cleanup(hub.Close)
	return NewBox(hub)
}
