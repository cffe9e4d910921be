//go:build unix

package shell

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

func command(line string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", "-c", line)
	// A session rather than only a group: without a controlling terminal a
	// password prompt fails at once instead of stopping the group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

func interrupt(p Process, ms []Member) {
	signal(p, ms, syscall.SIGTERM)
	signal(p, ms, syscall.SIGCONT) // a stopped process does not see SIGTERM
}

func kill(p Process, ms []Member) { signal(p, ms, syscall.SIGKILL) }

// signal sends a signal to the group in one call, which no fork can escape, and then to each member that left the
// group. It signals the group only if a member was just seen in it: otherwise the number may belong to another
// program.
func signal(p Process, ms []Member, sig syscall.Signal) {
	group := false
	for _, m := range ms {
		if m.grouped {
			group = true
			continue
		}
		// FindProcess holds the process (pidfd where there is one); only then is
		// it checked to be the one that was seen.
		if proc, err := os.FindProcess(m.PID); err == nil {
			if m.same() {
				_ = proc.Signal(sig)
			}
			_ = proc.Release()
		}
	}
	if group && p.PGID > 1 {
		_ = syscall.Kill(-p.PGID, sig)
	}
}

func status(s *os.ProcessState) (int, string) {
	if s == nil {
		return -1, ""
	}
	ws, ok := s.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return 128 + int(ws.Signal()), unix.SignalName(ws.Signal())
	}
	return s.ExitCode(), ""
}
