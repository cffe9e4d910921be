// Package feed is the log of a root that says in which order the commits of all its
// tasks became durable: what a stream of all tasks is made of.
//
// A line names a task and how far its journal is synced; the events themselves stay in
// the journal. Whoever syncs a journal adds a line, in whichever process. Nothing here is
// synced: it is derived, may be deleted, and a line that is lost costs nothing, because
// what is new in a line is counted from the line before it of the same task that a reader
// can see, and not from what its writer believes. So two writers may say the same, anybody
// may say it for an owner that was killed, and all readers find the same events behind the
// same place, whenever they read.
//
// Segments follow each other, 16 MiB each; of more than eight the oldest goes. A segment
// begins with a table of how far each task was told before it, so that no reader needs
// an older one. A place is a line with its checksum. One that a log does not have, since it was
// made again or has let go of it, is ErrUnknown.
//
// Of a task that the log never named, what its journal got since the log was begun is
// new. What is older was not meant for followers of this log.
//
// Limits: a kernel lock on the newest segment orders its writers; where there are none (see
// journal/filelog) nothing is written and no reader learns anything. Tasks never leave
// the table, which takes about 90 bytes for each.
package feed
