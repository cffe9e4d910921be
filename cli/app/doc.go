// Package app is the ground that all commands stand on: streams, flags, settings and keys,
// connecting to a server or to this process, signals, tables, the pager and completion. It knows
// no command; packages of commands embed App and do not import each other.
package app
