// Package view turns stored messages into text for people.
//
// It is pure: the raw JSON of a message goes in, an Item comes out, and Lines cuts an Item into styled lines. It knows
// no terminal, colour or HTML, so that a shell and a web page can show the same text. Nothing fails: a message of an
// unknown kind, or one that is not an object, gives an Item of the class Unknown.
//
// Text stays as it is stored. The caller makes it safe for a terminal or a page.
package view
