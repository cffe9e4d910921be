// Package failure turns errors into what the command line prints of them: three lines or a
// problem object, with advice, and the exit code. Exit codes are decided here alone.
package failure
