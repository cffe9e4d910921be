// Package chat is `roost chat`: prompt after prompt in one task.
//
// A Session knows the task and talks to a Backend: it starts and continues runs, shows their events with cli/term,
// asks their questions and carries out the commands. It has no terminal of its own. Two fronts give it lines: Screen,
// an editor in the last rows of a terminal while output scrolls above it, and Plain, which reads lines and prints
// lines.
//
// A line is a command only with a leading "/"; "//" is a "/" that is none. An unknown command is never sent to a
// model. Where a user types, "!" runs a command line of theirs in the workspace; a line of a pipe does not.
//
// The screen never changes what was printed: each line is written once, whole, so that the terminal wraps, keeps and
// copies it as any other. Only the rows below are drawn again: the line that is not finished yet, what is queued, and
// the editor. cli/term and Safe make what models and tools wrote harmless before it gets there.
//
// Limits: a screen needs a terminal that knows a few ANSI sequences; Windows and TERM=dumb get Plain. A row that is
// wrapped by a terminal which becomes narrower may be drawn twice.
package chat
