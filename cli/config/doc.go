// Package config is Roost's settings file: reading it with the line of every
// setting, changing one setting and leaving every other byte alone, and saying
// which of file, environment and default holds.
//
// Limits: the file is TOML, read by a library. Settings are texts, numbers,
// booleans and lists of texts; dates, inline tables and arrays of tables are refused
// with their line. The library does not edit a file in place, so changing one
// setting works on lines: what is written is one line, and what it replaces is
// the lines that the old value stood on.
package config
