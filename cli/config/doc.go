// Package config is Roost's settings file. It reads the file with the line of every setting, changes one setting and
// keeps every other byte, and decides which of file, environment and default applies.
//
// Limits: the file is TOML, read by a library. Settings are texts, numbers, booleans and lists of texts; dates,
// inline tables and arrays of tables are refused with their line. The library does not edit a file in place, so
// changing one setting works on lines: it writes one line, which replaces the lines of the old value.
package config
