package shell

import (
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

var bootID = sync.OnceValue(func() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid")
	return id
})

func startTime(pid int) (int64, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, false
	}
	t := k.Proc.P_starttime
	return t.Sec*1_000_000 + int64(t.Usec), true
}

func identify(pid int, mark string) Process {
	started, _ := startTime(pid)
	return Process{PGID: pid, Started: started, Boot: bootID(), Mark: mark}
}

// members only finds out whether the group has any member.
func members(p Process) []Member {
	if p.PGID <= 1 || syscall.Kill(-p.PGID, 0) != nil {
		return nil
	}
	return []Member{{PID: p.PGID, Name: "process group", grouped: true}}
}

// Find reports whether a recorded command's leader is still alive.
func Find(p Process) (alive bool) {
	if p.PGID <= 1 || p.Started == 0 || p.Boot == "" || p.Boot != bootID() {
		return false
	}
	started, ok := startTime(p.PGID)
	return ok && started == p.Started
}

func (m Member) same() bool { return false } // all members are in the group here

func recorded(p Process) []Member { return members(p) } // Find has vouched for the leader
