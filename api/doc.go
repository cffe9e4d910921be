// Package api holds the documents that every front door reads and writes: tasks, runs, questions, histories,
// checkpoints, searches, spending. The command line prints them with --json, the server answers with them, and the
// client decodes them, so the three cannot differ. A document is plain data: it names no package that makes it, opens
// nothing, and refers to tasks, runs and messages by text.
//
// Times are RFC 3339 in UTC, or Unix milliseconds where a member is called ts. Money is a decimal string of US dollars;
// null means that the cost is unknown.
package api
