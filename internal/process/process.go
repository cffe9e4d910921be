// Package process identifies processes and finds out whether one is alive. A process id alone is not enough: the
// system gives it again. Process id, start time and System together name one process among all that ever ran.
//
// Ids and start times mean something only within one System: of a process on another machine, in another container or
// before a reboot nothing is known. Where a system does not report something, the functions return "" or 0, and Alive
// returns true in doubt.
package process

import "sync"

// Boot identifies the boot of this machine, "" where that is not known.
var Boot = sync.OnceValue(boot)

// Namespace identifies the namespace of process ids that this process is in, "" where there are none.
var Namespace = sync.OnceValue(namespace)

// System identifies what process ids belong to: a boot, and a namespace in it. It is "" where that is not known.
var System = sync.OnceValue(system)

// Alive reports whether a process exists and has not ended. One that was killed and waits for its parent to collect it
// has ended: it holds nothing. So has one whose first thread has ended: a killed process looks like this while its other
// threads end. (Programs in C may end their first thread alone: do not ask for those.) Alive is true in
// doubt, also for ids below 1, which belong to no single process.
func Alive(pid int) bool { return pid <= 0 || alive(pid) }

// Start is when a process started, 0 if that is not known: in clock ticks since boot on Linux, in microseconds since 1970
// on macOS and Windows. Of two processes with one id it differs.
func Start(pid int) int64 {
	if pid <= 0 {
		return 0
	}
	return start(pid)
}
