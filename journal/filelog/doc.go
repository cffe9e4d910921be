// Package filelog keeps a journal in one folder of local files:
//
//	journal.jsonl          the truth: one commit a line (see journal.EncodeCommit)
//	journal.idx            offsets and a snapshot; derived, verified, deletable
//	journal.lock           the kernel lock, the published length, the holder
//	journal.torn-<ms>      an unfinished last line that an owner set aside
//	blobs/<aa>/<sha256>    payloads
//
// # Writers
//
// The owner holds an exclusive kernel lock (flock, LockFileEx) on journal.lock for as long as it lives; the kernel
// drops it with the process, however that ends. The file is never unlinked: a second process could then lock a new
// file of the same name while the first still holds the old one. The file's content is for people and is never
// trusted for locking. Own refuses with ErrUntrustedLocks on file systems that are not known to keep locks: all but
// the usual local ones. Should a lock fail all the same, the owner sees that its log has another length than it
// wrote, before or after its next write, and stops with ErrFenced. It only ever appends, so that even a write in the
// moment between its check and another owner's first commit comes after that commit, where it is set aside.
//
// # Readers
//
// A commit exists once it is synced. The owner publishes the synced length in a record of fixed width at the start of
// journal.lock, after each sync. A reader never looks beyond it while an owner lives. If the log is longer than that,
// the reader asks the kernel for a shared lock, without waiting. If it is refused, an owner is at work and the
// published length holds. If it is granted, there is no writer: the reader measures the log under the lock, asks the
// kernel to sync it (which changes no byte) and takes every complete valid line, because the next owner will keep
// exactly those. A mapped page was rejected for the record: it is no cheaper next to a sync, and gives readers no
// notification.
//
// The owner notifies followers in its process. The others poll, every 5 ms at first and every 40 ms at last. (The system's
// notifications were rejected: a user may have only 128 of them, setting one up takes up to a tenth of a second, and
// without them followers must poll all the same.) Every follower reads the file, so a task's many subscribers share one:
// see package events.
//
// A log that was replaced by another file is journal.ErrReplaced for a reader that had the old one open; a follower
// of one that was deleted or moved away ends with journal.ErrNotFound.
//
// # Damage
//
// Lines are judged alone, by frame and checksum, and then in order: a line of an older epoch after a newer one, or
// with a number that was already taken, is set aside. A number that no line has is lost and reported as DamageError.
// An unfinished last line (no newline, or a run of zero bytes) never was a commit. If the record shows that it was
// synced, it was one, and counts as lost. A new owner never gives a lost number to another commit.
//
// The record counts whichever inode it names: after a copy or a restored backup it still shows which commits were
// synced. Without a record, journal.idx shows it, and for a deleted log also a payload. A caller may know more
// (Options.Known). A copy that is whole agrees with its record; one that was taken while an owner worked may have a
// younger record than log, and then it really lacks acknowledged commits.
//
// An empty journal.jsonl without such a witness is a journal without commits.
//
// # Forks
//
// The folder of a fork holds base/: hard links to the log, index and blobs of the task that it continues, and base.json,
// which holds how many commits of them count (Begin). Readers and owners see one log. Neither folder needs the other.
//
// # Limits
//
// Linux, macOS, BSD and Windows. The memory for what is not saved yet is bounded (Options.MaxUnsaved). SaveSnapshot
// and Close write journal.idx, so after a crash the part of the log behind it is scanned once, at reading speed.
package filelog
