// Package historytool holds the tools that look back: read_command_output reads the
// kept output of an earlier command of the task, list_tasks lists other tasks.
//
// Both only read, and where from is not theirs to know: the output comes through
// tool.Env, the tasks through a Lister. Output is shown in pieces of at most MaxPiece
// bytes that end between characters; a search reads all of it, line by line, in
// bounded memory.
package historytool
