package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

func boot() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid")
	return id
}

func namespace() string { return "" }

func system() string { return Boot() }

// zombie is the state of a process that has ended, SZOMB in <sys/proc.h>.
const zombie = 5

func alive(pid int) bool {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return false
	}
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err != nil || k.Proc.P_stat != zombie
}

func start(pid int) int64 {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	t := k.Proc.P_starttime
	return t.Sec*1_000_000 + int64(t.Usec)
}
