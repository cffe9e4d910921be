package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/workspace/shell"
)

// Options are what a Hub needs.
type Options struct {
	Servers   []Server // the allowed ones; a Hub never starts others
	Workspace string   // absolute
	Env       func(string) string
	// Mark is an environment entry by which the servers' processes are found. All runs of a
	// task have the same.
	Mark    string
	Version string        // of this program
	Connect time.Duration // what connecting may take; 0 = 10 s
	Masks   *redact.Redactor
}

func (o Options) connectWithin() time.Duration {
	if o.Connect > 0 {
		return o.Connect
	}
	return 10 * time.Second
}

// Hub has the connections of one run. It is safe for concurrent use.
type Hub struct {
	opt   Options
	conns map[string]*conn
}

// NewHub makes a hub. It connects to nothing yet.
func NewHub(o Options) *Hub {
	h := &Hub{opt: o, conns: map[string]*conn{}}
	for _, s := range o.Servers {
		if s.State == Allowed {
			h.conns[s.Name] = &conn{server: s, hub: h}
		}
	}
	return h
}

// clean makes a server's text fit for users and models: it masks the secrets of
// definitions, removes terminal controls and limits the length.
func (h *Hub) clean(text string) string {
	if h.opt.Masks != nil {
		text, _ = h.opt.Masks.String(text)
	}
	return cut(strings.TrimSpace(redact.Terminal(text)), 2000)
}

// Server is the definition of a server that may be called.
func (h *Hub) Server(name string) (Server, bool) {
	c, ok := h.conns[name]
	if !ok {
		return Server{}, false
	}
	return c.server, true
}

// Names are the servers that may be called, in order.
func (h *Hub) Names() []string {
	return slices.Sorted(maps.Keys(h.conns))
}

// Menu is what one server offers, or why that is unknown.
type Menu struct {
	Server    Server
	Tools     []Offer
	Resources []Resource
	Notes     []string // what was left out or repaired
	Err       error
}

// Open connects to every server, in parallel, and asks what it offers. It returns
// when all have answered or the time limit has passed. First it ends the processes of an
// earlier run of the task that was killed.
func (h *Hub) Open(ctx context.Context) []Menu {
	names := h.Names()
	menus := make([]Menu, len(names))
	if len(names) == 0 {
		return nil
	}
	if _, err := shell.EndMarked(ctx, h.opt.Mark); err != nil {
		menus[0].Notes = append(menus[0].Notes, fmt.Sprintf("an MCP server process of an earlier run could not be ended: %v", err))
	}
	ctx, stop := context.WithTimeoutCause(ctx, h.opt.connectWithin(), errNoAnswer)
	defer stop()
	var wait sync.WaitGroup
	for i, name := range names {
		wait.Go(func() { h.conns[name].fillMenu(ctx, &menus[i]) })
	}
	wait.Wait()
	return menus
}

// Bounds of what a server may offer.
const (
	maxTools     = 500
	maxResources = 200
)

func (c *conn) fillMenu(ctx context.Context, m *Menu) {
	m.Server = c.server
	s, _, err := c.session(ctx)
	if err != nil {
		m.Err = err
		return
	}
	var tools []*sdk.Tool
	err = s.run(ctx, func(ctx context.Context, s *session) (err error) {
		can := s.InitializeResult().Capabilities
		if can != nil && can.Tools != nil {
			for t, err := range s.Tools(ctx, nil) {
				if err != nil {
					return fmt.Errorf("it does not list its tools: %w", err)
				}
				if tools = append(tools, t); len(tools) == maxTools {
					m.Notes = append(m.Notes, fmt.Sprintf("it has more than %d tools; the others are left out", maxTools))
					break
				}
			}
		}
		if can != nil && can.Resources != nil {
			m.Resources = resources(ctx, s)
		}
		return nil
	})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		m.Err = &CallError{Server: c.server.Name, Reason: s.describe(c.hub, err), Timeout: errors.Is(err, errNoAnswer), Err: err}
		c.drop(s)
		return
	}
	var notes []string
	m.Tools, notes = offersOf(c.server, tools)
	m.Notes = append(m.Notes, notes...)
}

// Call calls a server's tool. Errors are *CallError, or the context's; an answer that
// reports a failure of the tool is a Result.
func (h *Hub) Call(ctx context.Context, server, tool string, arguments json.RawMessage) (Result, error) {
	var res *sdk.CallToolResult
	err := h.call(ctx, server, func(ctx context.Context, s *session) (err error) {
		res, err = s.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
		return answered(err)
	})
	if err != nil {
		return Result{}, err
	}
	return resultOf(res), nil
}

// Read reads a server's resource; errors as of Call.
func (h *Hub) Read(ctx context.Context, server, uri string) (Result, error) {
	var res *sdk.ReadResourceResult
	err := h.call(ctx, server, func(ctx context.Context, s *session) (err error) {
		res, err = s.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
		return answered(err)
	})
	if err != nil {
		return Result{}, err
	}
	return contentsOf(res.Contents), nil
}

// answered turns a server's error answer into a refusal.
func answered(err error) error {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		return &refusal{fmt.Errorf("it refused the call: %s (%d)", wire.Message, wire.Code)}
	}
	return err
}

func (h *Hub) call(ctx context.Context, server string, f func(context.Context, *session) error) error {
	c, ok := h.conns[server]
	if !ok {
		return &CallError{Server: server, Reason: "there is no such server, or it is not allowed; there are: " +
			strings.Join(h.Names(), ", ")}
	}
	return c.call(ctx, f)
}

// Close ends every connection and all processes, in parallel.
func (h *Hub) Close() {
	var wait sync.WaitGroup
	for _, c := range h.conns {
		wait.Go(c.close)
	}
	wait.Wait()
}
