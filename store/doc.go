// Package store opens, creates, adopts and lists tasks under Roost's own root and
// under the storages of other tools, and keeps Roo's JSON files behind each
// task's journal.
//
// Reading never writes. A task without a journal is read from its JSON files as
// if it had just been adopted: the same event is folded, in memory only. Owning a
// task takes its lock, adopts it if it has no journal yet, and takes in what
// another program changed.
//
// # Trust
//
// Standing is what follows from the proof of a log (see journal). One event draws the line: task.received ends the run,
// the queue, questions, unused answers and open calls, and removes policy, address and limits; it adds no message. An
// import writes it into each copied journal before the task becomes visible, and the first commit of a fork draws the
// same line. What follows it, signed, counts again. Repairing, rebuilding, adopting and forking sign only what they
// write themselves. A reader that acts on a snapshot requires its MAC; a reader that shows a task accepts any.
//
// # Changes by several processes
//
// What a caller expects of a task (If-Match) is compared before a change, and again with the lock held by whoever takes
// the task over, before anything is written (Expecting, filelog.Options.Meets). A change that commits under the name of
// a caller's key (Acting) is found again by that name. A note beside the log was rejected: a kill leaves the note
// without the change, or the change without the note.
//
// The files beside a journal witness how far it went: the record in journal.lock, journal.idx, the commit in
// projection.json, payloads. A copied or restored folder that lacks the end of its journal is damaged, and its next
// owner continues after the lost numbers.
package store
