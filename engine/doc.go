// Package engine runs tasks: it starts, continues, answers, cancels and waits for the runs of this process, and it is
// the one place for what front doors (shell, HTTP, web page, editor) do to tasks. They call it and have no logic of
// their own.
//
// An engine never runs a task that another process owns: the error names that process. A front door that ends does not
// affect a run; Close ends all runs, saved.
//
// # Runs
//
// There is no database of runs. A run, its place in the queue, its question and its queued input are events of its
// task's journal. The id of a run ends in digits that follow from the id of its task, so the engine finds it without an
// index.
//
// An acknowledgement means that the events are on disk. A queued run is input.queued and run.queued in one commit; no
// process owns its task until it gets a slot. Words for a working run go into its log and reach the model with its next
// user turn. An answer is acknowledged when its question.closed is synced. A repeated run, message or answer is found
// by its name and done once, over any kill. Callers take turns at a task: Scheduler.LockTask within a process, the lock
// of the journal between processes.
//
// At most MaxRuns runs work at once. A task and the subtask that it waits for count as one; a run that waits for the
// user counts as none. It waits in memory for Hold and then releases its task, as waiting. An answer continues it under
// the same id. A run that was killed while it asked waits, too (Recover commits that). Other killed runs are
// interrupted, and Recover continues them where the user asks for that, a bounded number of times in a row.
//
// Only a log of this root is obeyed (see journal). Receive commits task.received before a foreign task continues at its
// user's word. Recovery and the queue skip a task that is not proven, and an answer to its questions is refused.
//
// # Subtasks
//
// A child is a task like any other. The parent's open call of new_task ties it to its parent: its id is a digest of the
// parent's id, the reply and the call (task.ChildID). So the intent is saved first, and store.CreateOnce makes the
// child in one commit, or takes the one that exists. The parent's run stays alive and owns its journal; the child is a
// run of its own in the same process. Its events are in the topic of its own task.
//
// The child's end is the outcome of the call: tool.finished, subtask.ended and the row for the user are one commit in
// the parent's log. A restart closes the open call as always and finds the child by its id, in any state. So no message
// between two logs can be lost or come twice. The completing run of a child wakes a parent without an owner; if that is
// killed, any later resume of either does the same.
//
// Delegated is derived (State.Awaited): a child that has not ended, whose call is open in the visible history.
// Meanwhile the projection of the API history ends in one derived turn (State.ResultsSoFar), which the log does not
// have. A task that another program delegated has no call in our log: its call is the one of that tool without a
// result.
//
// Rejected: a second log for the family, and a queue of messages between tasks. Both need a commit in two places.
package engine
