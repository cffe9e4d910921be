package shell

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

const stillActive = 259

func command(line string) *exec.Cmd {
	cmd := exec.Command("cmd.exe")
	// cmd.exe has its own idea of quoting: it gets the line as it is.
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /D /S /C "` + line + `"`,
		CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
	return cmd
}

func identify(pid int, mark string) Process { return Process{PGID: pid, Mark: mark} }

func members(p Process) []Member {
	h, err := syscall.OpenProcess(syscall.PROCESS_QUERY_INFORMATION, false, uint32(p.PGID))
	if err != nil {
		return nil
	}
	defer func() { _ = syscall.CloseHandle(h) }()
	var code uint32
	if syscall.GetExitCodeProcess(h, &code) != nil || code != stillActive {
		return nil
	}
	return []Member{{PID: p.PGID, Name: "cmd.exe", grouped: true}}
}

// interrupt does nothing: there is no polite signal without a console.
func interrupt(Process, []Member) {}

func kill(p Process, ms []Member) {
	if len(ms) > 0 {
		_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(p.PGID)).Run()
	}
}

func status(s *os.ProcessState) (int, string) {
	if s == nil {
		return -1, ""
	}
	return s.ExitCode(), ""
}

// Find returns false: a reused number looks like the command.
func Find(Process) (alive bool) { return false }

func recorded(p Process) []Member { return members(p) } // Find has vouched for the leader

func serving() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}
