package tool

// MCP is the class of what MCP servers offer: what such a call reads, writes or sends
// is known to the server alone.
const MCP Class = "mcp"
