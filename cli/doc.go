// Package cli is the command line of Roost: it reads flags, puts the rooms of commands
// together and answers with an exit code. It has no rules of its own; the engine and the
// store decide what a command does.
//
// stdout is the result only: the final text of a run, a table, one JSON document,
// or NDJSON where the command documents it. Progress, questions and warnings go to
// stderr. No command asks without a terminal. Exit codes are decided in one
// place, package failure.
//
// The rooms are tasks, running, editing, hosting, settings and try. They share package app
// and do not import each other; where one needs another, this package passes a function in.
package cli
