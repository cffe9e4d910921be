// Package mcp holds the connections to MCP servers that a task works with: which
// servers there are, which of them the user has agreed to, and calling them.
//
// Settings are Roo's: a JSON file with `mcpServers`, one in the workspace
// (`.roo/mcp.json`), the user's own next to Roost's settings, and those of editors.
// The first file that defines a name counts, in this order. A definition that a
// repository or another tool wrote starts nothing by itself: the user agrees to each one
// once (Choices), by a hash of all that it runs, sends or may do unasked. The hash covers
// the command line, not the content of the program that it names.
//
// A Hub has the connections of one run. It opens them in parallel within a time limit.
// The tools that the servers offer then stay the run's tools until its end: a list of
// tools that changes invalidates every cached request before it. A server that cannot be
// reached is an error for the call that needs it. A call whose connection was already dead
// connects once more; a call whose connection dies while it runs is not repeated, because
// it may have taken effect.
//
// All processes of a task's servers carry one mark, the same in every run: the next run ends what a killed one left. They
// end when their stdin closes, and on Linux by SIGTERM when Roost dies.
//
// Texts of servers are not trusted: they are bounded and lose their control characters,
// and a schema that a provider would refuse is repaired or its tool left out.
//
// Limits: servers get no roots, no sampling and no questions to the user. OAuth is not
// supported; a token goes into headers. The protocol version is 2025-11-25, which
// servers of all ages know; the newer version's greeting makes some of them hang up.
package mcp
