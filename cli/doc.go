// Package cli is the shell's way into the engine: commands, flags, exit codes and
// JSON. It has no rules of its own; what a command means is decided by the engine
// and the store.
//
// stdout is the result only: the final text of a run, a table, one JSON document,
// or NDJSON where the command documents it. Progress, questions and warnings go to
// stderr. No command asks without a terminal. Exit codes are decided in one
// place, exit.go.
package cli
