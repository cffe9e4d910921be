// Package mcp holds the connections to MCP servers that a task works with: which
// servers there are, which of them a person has agreed to, and calling them.
//
// Settings are Roo's: a JSON file with `mcpServers`, one in the workspace
// (`.roo/mcp.json`), the user's own beside Roost's settings, and those of editors.
// The first file that has a name counts, in this order. What a repository or another
// tool wrote down starts nothing here: a person agrees to each such definition once
// (Choices), by a hash of all that it runs, sends or may do unasked. That says which
// command line runs, not what is in the program that it names.
//
// A Hub has the connections of one run. It opens them side by side within a bound,
// and what the servers offer then is what the run has until its end: a list of tools
// that moves costs every cached request before it. A server that is not there is an
// error for the call that needs it. A call whose connection was already dead connects
// once more; one whose connection dies while it runs is not made again, because
// nobody knows what it did.
//
// What servers say is not trusted: it is bounded, control characters are taken out,
// and a schema that a provider would refuse is mended or its tool left out.
//
// Limits: servers get no roots, no sampling and no questions to the user. OAuth is not
// spoken; a token goes into headers. The older protocol is spoken (2025-11-25), which
// servers of all ages know; its successor's greeting makes some of them hang up.
package mcp
