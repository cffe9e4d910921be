// Package roofmt reads and writes task folders of Roo Code and its relatives (Cline, Kilo Code, Zoo Code).
//
// Reading salvages: of a damaged file every whole message comes back, with a list of what was lost. Reading writes
// nothing, creates nothing, and takes no lock: Roo replaces files by rename, so an open file is a stable copy. A file
// is never held in memory as a whole; a Document knows where its elements lie and reads them when asked.
//
// Writing is byte-exact and atomic for each file: all temporary files are written and synced first, then the locks that
// Roo itself takes (a directory <file>.lock) are held just for comparing fingerprints and one rename each. The target is
// never renamed away, so there is no moment without it. Several files do not change in one instant; whoever needs that
// keeps a journal above this package.
//
// Limits: Linux and macOS serialise several of our writers by a kernel lock on the folder; on Windows only Roo's locks
// do. Fingerprints (size, mtime, inode) do not see a change in place that puts all three back.
package roofmt
