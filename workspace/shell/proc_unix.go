//go:build unix && !linux

package shell

import (
	"syscall"

	"github.com/roost-dev/roost/internal/process"
)

func identify(pid int, mark string) Process {
	return Process{PGID: pid, Started: process.Start(pid), Boot: process.Boot(), Mark: mark}
}

// members only finds out whether the group has any member.
func members(p Process) []Member {
	if p.PGID <= 1 || syscall.Kill(-p.PGID, 0) != nil {
		return nil
	}
	return []Member{{PID: p.PGID, Name: "process group", grouped: true}}
}

// Find reports whether a recorded command's leader is still alive. It returns false if the system does not identify
// boots: a reused number would then look like the command, and ending another program's process is worse than leaving
// a command.
func Find(p Process) (alive bool) {
	if p.PGID <= 1 || p.Started == 0 || p.Boot == "" || p.Boot != process.Boot() {
		return false
	}
	return process.Start(p.PGID) == p.Started
}

func (m Member) same() bool { return false } // all members are in the group here

func recorded(p Process) []Member { return members(p) } // Find has vouched for the leader

// serving returns a session of its own, as for a command.
func serving() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
