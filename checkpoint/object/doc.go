// Package object is a store of contents in git's format: a bare repository that
// our own code writes and reads, and that a git binary can read as well (log,
// fsck, even gc).
//
// No process is started, and nothing is written before the first Begin or SetRef:
// opening and reading a store that is not there creates nothing.
//
// Writing. A Batch collects blobs, trees and commits, and becomes durable whole, as
// one pack, when Close returns: pack and index are synced, then named, then the
// folder is synced. Objects that are there already are not written again.
//
// Lifetime. What no ref reaches may be removed by Collect. From the first Begin or Keep on,
// what this Store wrote, or found to be there (Has, Batch), is held from the moment it is
// said to be there, with all that it names, until Settle, Close, or the process's end,
// whoever collects in the meantime. So: write, set the ref, settle. Settle speaks for
// the whole Store: who shares one with others holds a Keep from before his first object
// until his ref is set.
//
// Reading never waits, and every object is checked against its id. What is damaged is
// ErrDamaged, and is written again by the next batch that has it.
//
// Limits: objects that git stored as differences are put together in memory, up to 128 MB
// each; alternates, other hashes than SHA-1 and other tables of refs are not read; a
// person's `git prune` knows nothing of what is held.
package object
