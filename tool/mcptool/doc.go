// Package mcptool makes tools of what MCP servers offer: one for each of their tools, by Roo's names
// (mcp--SERVER--TOOL), access_mcp_resource, and use_mcp_tool, which histories hold and no model is offered.
//
// A call needs permission like a command does: only the server knows what it reads or changes. After a crash it is
// not made again, unless the server declares the tool read-only. A server that does not answer, or dies, is an error
// result of the call and not of the task; the result states whether the call may have taken effect. A result longer
// than Inline is kept whole in the task, as the output of commands is, and the model gets both its ends.
//
// The connections are package mcp's; here they are an interface.
package mcptool

import (
	"context"
	"encoding/json"

	"github.com/roost-dev/roost/mcp"
)

// Caller reaches servers. *mcp.Hub is one.
type Caller interface {
	Call(ctx context.Context, server, tool string, arguments json.RawMessage) (mcp.Result, error)
	Read(ctx context.Context, server, uri string) (mcp.Result, error)
}

// Inline is the longest text of a result that goes to the model whole, in bytes.
const Inline = 256 << 10
