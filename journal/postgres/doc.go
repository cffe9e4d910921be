// Package postgres keeps journals in a PostgreSQL database that several servers share (see package database).
//
// # Tables
//
// They are in the schema roost:
//
//	journals    a row a journal: its name, head, epoch, and who holds its lease until when
//	commits     a row a commit: the line of journal.EncodeCommit, byte for byte (bytea; jsonb would change bytes)
//	contents, chunks, blobs   payloads (package database/payload), and which journal names which
//	snapshots   the derived snapshot of a journal
//
// Commits are partitioned by a hash of their journal. The row of a journal has room to be changed in place.
//
// # Commits
//
// An owner appends its whole queue in one statement, which is a transaction of its own: it moves the head of the
// journal from where this owner left it, only while the epoch is this owner's, and puts the lines in. So numbers have
// no gap, and an owner that lost its lease never commits again, even before it knows of the loss. Owners of one
// process that append at the same time share statements, and with them the sync. A commit exists for readers when the
// database has committed it; database.Open refuses a database that acknowledges a commit before it has synced it.
//
// When the connection breaks before the answer comes, the owner looks up whether its commits are there, and repeats
// only those that are not. It locks the row of the journal for that, so it waits for a statement of the broken
// connection that the database still works on, and for the standby, which may lack what the primary shows after a crash.
//
// # Leases
//
// Own takes the lease of a journal for Options.Lease, 3 s by default, and gets an epoch higher than any before it.
// One goroutine renews all leases of its owners in one statement every third of that time; each append renews, too.
// Any owner can take a lease that has run out, and the previous owner is fenced from that moment. Only the clock of
// the database decides when a lease ends. Holder.Held checks, before work that cannot be undone, whether the lease
// lasts long enough.
//
// # Followers
//
// A follower subscribes to its journal and reads what is new when it is notified: at once by owners in this process,
// by LISTEN about owners elsewhere, and by one query every second for all followed journals, so that a notification
// that is lost delays commits and loses none. Without a connection for LISTEN, such as behind a pooler in transaction
// mode, that query runs every 50 ms. A commit never contains NOTIFY, which takes a lock of the whole database: each
// process sends one notification for all its journals at most every 20 ms.
//
// # Announcements
//
// A function that AnnounceTo sets is called, at most every 20 ms, with the journals that got commits from this
// process, before other servers are notified of them. No commit waits for it. An owner that closes waits for it for a
// short time, so that unannounced commits occur only in a journal whose lease ran out. See store/feed/postgres.
//
// # Trust
//
// Whoever can write to the database can delete a journal or its newest commits, and nothing here shows that. With a
// Seal, commits are signed and verified as in files: changed, moved, removed and inserted ones are found (see
// journal.Proof), and a snapshot that another key signed is not used.
//
// # Limits
//
// PostgreSQL 14 and newer. A line has up to journal.MaxLine bytes, and so must fit the memory of the database several
// times. An owner that verifies reads its whole journal when it is opened.
package postgres
