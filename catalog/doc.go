// Package catalog keeps what can be derived of tasks in one SQLite file: a row for
// each task, and the text of its messages in a form that is quick to search.
//
// Nothing in it is truth. A row carries the stamp of what it was derived from;
// whoever uses it compares the stamp and reads the task itself when it differs. The
// file may be deleted at any time. One that is damaged is set aside and begun anew.
// Several processes may use it at once.
//
// Search is a filter and a judge. The text lies in compressed parts of some tens of
// kilobytes; a full-text table knows for each part which groups of three characters
// stand in it. The table names the parts that may hold a query, Query.Match decides.
// So a task that is not in the catalogue yet, whose messages are given to the same
// Match, has the same hits. Rejected: one full-text row a message with SQLite's own
// trigram tokenizer. It needs several times the text's size, takes a token for every
// character, and cannot find two Chinese characters.
//
// Limits: terms are compared without case, rune by rune; composed and decomposed
// accents differ. A term of one or two letters (other than Chinese, Japanese or
// Korean ones) looks into every part.
package catalog
