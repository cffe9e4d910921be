// Package catalog keeps what can be derived of tasks in the cache folder: a file of
// rows, from which lists are made (Rows), and a SQLite file with the text of their
// messages in a form that is quick to search (DB).
//
// Nothing in it is truth. What is kept of a task carries the stamp of what it was
// derived from; whoever uses it compares the stamp and reads the task itself when it
// differs. The files may be deleted at any time. One that is damaged is set aside and
// begun anew. Several processes may use them at once.
//
// Search is a filter and a judge. The text lies in compressed parts of some tens of
// kilobytes; a segment, which indexes the parts of some megabytes of text, knows for
// each word, and for each pair of ends of words that stand beside one another, which
// parts have it. A stretch of characters is looked for in the list of a segment's
// words, which is small, so what stands inside words is found as quickly as words;
// the ends of words beside one another find paths, identifiers and phrases. So the
// index names the parts that may hold a query, Query.Match decides, and a task that is
// not in the catalogue yet, whose messages are given to the same Match, has the same
// hits.
//
// Rejected: one row a message in SQLite's full-text table with trigrams, which needs
// several times the text's size and cannot find two Chinese characters; groups of three
// characters for each part, which any long text has nearly all of, so that rare
// identifiers made of common letters looked into every part; places of words in the
// text, which take as much room as the text.
//
// A text that stands in several messages of a task is kept and indexed once, as long as
// they are not megabytes apart. What an editor says of the environment with each
// message is left out.
//
// A task may have more text than should be in memory: what is closed of it is put into
// the file ahead of the rest, where no snapshot shows it until the task is whole. Of one
// with more than 256 MB of text nothing is kept; it is read by every search.
//
// Limits: terms are compared without case, rune by rune; composed and decomposed
// accents differ. A phrase whose first and last words have one or two letters, and
// whose words are all common without standing together, looks into many parts.
package catalog
