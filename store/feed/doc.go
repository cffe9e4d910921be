// Package feed is a root's log of the order in which the commits of all its tasks became durable. The stream of all
// tasks is made from it.
//
// A line names a task and how far its journal is synced; the events stay in the journal. The process that syncs a
// journal adds the line. Nothing here is synced: the log is derived and may be deleted. A lost line costs nothing,
// because a reader counts what is new in a line from the task's line before it, not from what the writer believes. So
// two writers may add the same line, any process may add a line for an owner that was killed, and all readers find the
// same events after the same place, whenever they read.
//
// Segments follow each other, 16 MiB each; eight are kept. A segment begins with a table of how far the log before it
// announces each task, so that no reader needs an older segment. A place is a line with its checksum. A place that the
// log does not have, because the log was made again or dropped the segment, is ErrUnknown.
//
// For a task that the log never named, the commits since the log began are new. Older commits were not meant for
// followers of this log.
//
// Rejected: one counter for all tasks, as an id in each event. Every sync would wait for all others, and restored copies
// would repeat numbers.
//
// Limits: a kernel lock on the newest segment orders its writers; where there are no such locks (see journal/filelog)
// nothing is written and no reader gets anything. Tasks never leave the table, which takes about 90 bytes for each.
package feed
