// Package catalog keeps what can be derived of tasks in one SQLite file in the cache
// folder: rows, from which lists are made, and the text of messages for search.
//
// Nothing in it is truth. What is kept of a task carries the stamp of what it was
// derived from; the caller compares the stamp and reads the task itself when it
// differs. The file may be deleted at any time. A damaged one is set aside and
// replaced, one of another version is emptied. Several processes may use it at once: a
// reader sees one state and never waits, writers take turns.
//
// Search filters, then judges. Texts lie in compressed parts of some tens of kilobytes.
// SQLite's full-text table knows for each part its words and its joints: pairs of ends
// of adjacent words. Characters of Chinese, Japanese and Korean
// count as words, alone and in pairs. A term may be a part of a word, so it is
// first looked up in the list of all words; joints find paths, identifiers and phrases.
// The index names the parts that may hold a query and Query.Match decides: a task that
// is not in the catalogue yet, whose messages go to the same Match, has the same hits.
//
// Rejected: one full-text row a message with trigrams, which needs several times the
// text's size and cannot find two Chinese characters; places of words in the text,
// which take as much room as the text; the full-text table's own vocabulary, which
// reads the whole index; rows in a file of their own, which saves 30 ms a list.
//
// A text that several messages have of a task is kept and indexed once, as long as
// they are not megabytes apart. The details of the environment that an editor adds to
// each message are left out.
//
// A task may have more text than memory: what is closed of it is put into the file ahead
// of the rest, where no snapshot shows it until the task is whole. Of a task with more
// than 256 MB of text nothing is kept; every search reads it.
//
// Limits: terms are compared without case, rune by rune; composed and decomposed
// accents differ. A phrase whose first and last words have one or two letters, and
// whose words are all common but rarely adjacent, reads many parts, and so does
// a term that is a part of more than manyWords different words. Words of removed
// tasks stay in the list of words until the file is replaced.
package catalog
