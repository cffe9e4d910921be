// Package content stores immutable bytes under the SHA-256 of what they are.
//
// Writing. A Batch collects contents and manifests and becomes durable whole, as one bundle file, when Close returns:
// the bundle is synced, renamed and its folder is synced. A content that the store already has is not written again.
//
// Lifetime. A manifest names contents and earlier manifests; SetName gives a manifest to an owner (a task). Collect
// removes what no owner's manifest reaches. From the first Begin or Keep on, everything that this Store wrote, or found
// to be present (Has, Batch), is held until Settle, Close or the end of the process, whichever process collects. So:
// write, set the name, settle. Settle speaks for the whole Store: a goroutine that shares a Store calls Keep before its
// first content and releases it after SetName.
//
// Reading never waits. Every content is compared with its hash. Damaged bytes are ErrDamaged, and the next batch that
// has the content writes it again.
//
// The folder:
//
//	bundles/<random>.bundle   compressed contents with an index at the end; never changed
//	names/<owner>             the hash of the owner's newest manifest
//	leases/<process>-<random> which bundles a running Store relies on; counts only while its owner locks it
//	temp/                     bundles that are being written
//	lock, collect             kernel locks: see lease.go
//
// Several processes may use one folder. Opening and reading a store that does not exist creates nothing.
//
// Earlier versions used git's format (package checkpoint/gitstore). Nobody read it with git, and trees, commits, refs,
// deltas and git's own collection beside ours took four times the code. The owners of contents are files (names/) and
// not a search through all journals: a purge reads one small folder, and a task with a damaged journal loses nothing.
// The file "roost" in the folder makes earlier versions refuse to write there.
//
// Limits: contents are stored whole, without differences between similar ones (a delta format needs chains, bases and
// repacking; 200 edits of a source file cost less than what they changed without any of it); a bundle's index is kept
// in memory, 57 bytes for each content.
package content
