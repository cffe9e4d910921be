// Package config is Roost's settings file: reading it with the line of every
// setting, changing one setting and leaving every other byte alone, and saying
// which of file, environment and default holds.
//
// Limits: the file is TOML, but only what settings need is read: tables, dotted
// keys, strings on one line, numbers, booleans and lists of strings. Anything
// else (dates, inline tables, arrays of tables, multi-line strings) is refused
// with its line and not guessed at. A whole TOML library was weighed against
// this: none of them edits a file in place, which `config set` needs, and the
// subset is smaller than what would have to be written beside it.
package config
