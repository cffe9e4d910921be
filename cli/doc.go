// Package cli is the command line of Roost: commands, flags, exit codes and
// JSON. It has no rules of its own; the engine and the store decide what a command
// does.
//
// stdout is the result only: the final text of a run, a table, one JSON document,
// or NDJSON where the command documents it. Progress, questions and warnings go to
// stderr. No command asks without a terminal. Exit codes are decided in one
// place, exit.go.
package cli
