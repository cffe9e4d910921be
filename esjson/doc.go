// Package esjson reads and writes JSON as ECMAScript does, byte for byte.
//
// Roo's files are written by JSON.stringify. To write bytes that Roo cannot distinguish
// from its own, and to change one message without touching the others, this
// package works on raw bytes: it splits, peeks, splices and re-encodes without
// ever going through Go values that would lose key order, number spelling or
// lone surrogates.
package esjson
