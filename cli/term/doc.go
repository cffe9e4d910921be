// Package term shows a run on a terminal, or on a plain stream, and asks the user.
//
// A Display gets a run's events, durable and live, and writes lines: streamed text as it comes, one line for each
// tool with its outcome, questions, notices. It detects nothing itself: whether to use colours, and how wide the
// terminal is, are options. It makes what models and tools wrote harmless for terminals before it writes it.
//
// Limits: a Display writes line after line and never moves the cursor, so it works in logs and in every terminal, and
// it has no spinner. Progress rewrites one line, and is for terminals only.
package term
