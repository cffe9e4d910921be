// Package journal is the append-only log of one task: an ordered, checksummed,
// fenced sequence of commits, each of one or more opaque events, and the blobs
// that those events name.
//
// A journal does not know what a task is. It knows order (contiguous sequence
// numbers from 1), ownership (at most one owner, each with an epoch higher than
// any before it), durability (a commit exists for readers once it is synced,
// and not earlier) and integrity (every commit carries a crc32c).
//
// This package holds the types and interfaces that every backend shares.
// Package journal/filelog is the embedded default: one folder of local files.
// Package journal/journaltest is the behaviour suite each backend passes.
//
// # Commits
//
// A commit is one line (see EncodeCommit). All events of a line happened together: both histories, the outcome of a
// tool, the file records and the cost of a step cannot drift apart. A line without its newline is not a commit. Damage
// in the middle of a log loses that commit, which DamageError names; no later commit gets its number.
//
// # Trust
//
// A log decides which runs start, which questions are open and who answers them. So a program obeys only a log that
// this root wrote, in this place. Each commit carries a MAC (Seal): HMAC-SHA-256 over the name of the log (root id and
// task), the MAC of the commit before it, and its line. The record in journal.lock and the index are signed, too: the
// chain of MACs does not show that its end is missing; the record does, and it is durable before the first commit.
// Package store/rootkey holds the keys. A Proof names the newest commits that are not proven; store.Standing is what
// follows.
//
// Rejected: a mark of trust in each event, because every reader of a state would have to ask for it, and one that
// forgets is a hole; a list of trusted tasks outside the root, because it costs a second sync for each grant, and does
// not show whether a commit was taken out or put in.
package journal
