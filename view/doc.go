// Package view turns stored messages into what a person reads.
//
// It is pure: a message's raw JSON goes in, an Item comes out, and Lines cuts an
// Item into styled lines. There is no terminal, no colour and no HTML in it, so a
// shell and a web page can show the same thing. Nothing fails: a message of a
// kind nobody knows, or one that is not even an object, gives an Item that says so.
//
// Text is passed on as it is stored. Whoever puts it on a terminal or into a page
// makes it safe for that place.
package view
