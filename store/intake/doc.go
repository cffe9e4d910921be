// Package intake takes what other programs wrote in a task's folder into the task's journal.
//
// Roo, its relatives and Cline write a task as JSON files: two histories and two small files. A task of theirs is
// adopted: its first commit names the originals. After that, each owner compares the files with what Roost wrote last
// and takes in the difference: new and changed messages, a rewind, an answer. A change that Roost cannot apply is kept
// as a blob and reported; Roost's own messages are never given up for it.
//
// Other tools' folders hold nothing of Roost but the JSON files, because an editor's "delete" removes the folder. A
// task whose format has no writer continues as a fork whose id follows from its source and id, so there is one fork.
// What Cline keeps beside a history about messages that it no longer sends becomes tags in the commit that adopts
// (cline.go).
//
// The two histories are judged as one state: between a program's write of one and of the other they disagree. If one is
// refused, so is the other.
//
// The programs write at any time, one file after the other. So ReadSettled waits until the two histories agree, and
// for no longer than a few seconds.
//
// Readers use the same functions without a journal: they fold the changes in memory only.
package intake
