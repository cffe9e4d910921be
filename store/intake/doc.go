// Package intake takes what other programs wrote in a task's folder into the task's journal.
//
// Roo, its relatives and Cline write a task as JSON files: two histories and two small files. A task of theirs is
// adopted: its first commit names the originals. After that, each owner compares the files with what Roost wrote last
// and takes in the difference: new and changed messages, a rewind, an answer. A change that Roost cannot apply is kept
// as a blob and reported; Roost's own messages are never given up for it.
//
// The programs write at any time, one file after the other. So ReadSettled waits until the two histories agree, and
// for no longer than a few seconds.
//
// Readers use the same functions without a journal: they fold the changes in memory only.
package intake
