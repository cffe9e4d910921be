package shell

import (
	"os"

	"golang.org/x/sys/unix"
)

// HideSelf keeps other processes of this user, above all the commands that this one runs, from
// reading its environment and its memory, where the keys of providers are. Root and processes
// with CAP_SYS_PTRACE read them all the same.
//
// A Roost that runs inside a command of another one stays readable: the outer one finds it by
// the mark in its environment.
func HideSelf() {
	if os.Getenv(markVar) == "" {
		// A kernel that refuses leaves things as they were before: no run ends for that.
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
}
