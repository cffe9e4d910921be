// Package process identifies processes and finds out whether one is alive. A process id alone is not enough: the
// system reuses it. Process id, start time and System together name one process among all that ever ran.
//
// Ids and start times are valid only within one System: nothing is known of a process on another machine, in another
// container or before a reboot. Where a system does not report something, the functions return "" or 0, and Alive
// returns true in doubt.
package process

import "sync"

// Boot identifies the boot of this machine, "" where that is unknown.
var Boot = sync.OnceValue(boot)

// Namespace identifies the namespace of this process's id, "" where there are no namespaces.
var Namespace = sync.OnceValue(namespace)

// System identifies the set in which process ids are unique: a boot, and a namespace in it. "" where that is unknown.
var System = sync.OnceValue(system)

// Alive reports whether a process exists and has not ended. One that was killed and waits for its parent to collect
// it has ended: it holds nothing. So has one whose first thread has ended, which is how a killed process looks while
// its other threads end. (A program in C may end its first thread alone: do not use Alive for such programs.) Alive
// is true in doubt, also for ids below 1, which belong to no single process.
func Alive(pid int) bool { return pid <= 0 || alive(pid) }

// Start returns the time at which a process started, 0 if unknown: in clock ticks since boot on Linux, in
// microseconds since 1970 on macOS and Windows. It differs between two processes with one id.
func Start(pid int) int64 {
	if pid <= 0 {
		return 0
	}
	return start(pid)
}
