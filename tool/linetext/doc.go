// Package linetext measures, cuts, compares and numbers lines of text as Roo does, which is
// JavaScript: lengths are UTF-16 code units, blanks are those of ECMAScript, and lone
// surrogates (three bytes that are not UTF-8) count as one unit. It is pure.
package linetext
