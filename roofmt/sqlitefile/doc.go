// Package sqlitefile reads a SQLite database that another program owns. That program may have it open, may be in the
// middle of a transaction, or may have been killed in one; it never notices the reader: the reader takes no lock,
// makes no file, and writes nothing, not even the shared memory of a write-ahead log.
//
// SQLite itself can do only half of that. Opened "immutable" it ignores locks and the write-ahead log, and so misses
// pages that were not copied into the database yet; opened as usual it takes locks and makes files. A copy of
// database and log would do, but an editor's database may have gigabytes, of which one row is needed. So this package
// assembles the pages as the last finished transaction left them (from the database, over it the log's valid pages,
// or those that a rollback journal keeps), and SQLite reads the result through a file system that can do nothing
// else.
//
// Limits: a database that changes under the reader is read again, some times; one that does not come to rest is an
// error (ErrRestless). A log or journal over 256 MB is not read. Encrypted databases are no databases here.
package sqlitefile
