// Package history changes which part of a task's history is in use: it rewinds both histories, switches between branches,
// and forks a task into a new one.
//
// Nothing is removed from the journal. A rewind is one commit that hides messages; what it hides stays as a branch, which
// Switch makes the head again and Fork can start from. A fork shares the stored bytes of the other task by hard links, so
// neither task needs the other one to exist.
//
// Rewind, undo and fork take a task over from its snapshot (store.OwnLean); the next full owner examines all commits.
//
// Each change is durable when its function returns. Roo's files follow when finish is called; a caller that is killed
// before that leaves files that the task's next owner writes.
package history

import "context"

// nothingToFinish is the finish function of a change that left Roo's files as they were.
func nothingToFinish(context.Context) error { return nil }
