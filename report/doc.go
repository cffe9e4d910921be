// Package report makes the documents of package api from what the engine and the store know of tasks: runs,
// questions, trees, the files that a model knows, the messages that would be sent, a history reconstructed from the
// other one.
//
// It only reads: packages store and task decide what a task is and what state it is in. It changes nothing on disk.
package report
