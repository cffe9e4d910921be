package roofmt

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strconv"
	"sync"

	"github.com/roost-dev/roost/internal/process"
)

// self identifies this process among all that ever ran: a process id alone comes back.
type self struct {
	domain string // boot, machine and pid namespace: only within it do pid and start mean anything to us
	pid    int
	start  string // start time, see process.Start; "0" where the system does not report it
}

var me = sync.OnceValue(func() self {
	host, _ := os.Hostname()
	sum := sha256.Sum256([]byte(process.Boot() + "\x00" + host + "\x00" + process.Namespace()))
	return self{hex.EncodeToString(sum[:6]), os.Getpid(), startTime(os.Getpid())}
})

// startTime is the start time of a process as self has it.
func startTime(pid int) string { return strconv.FormatInt(process.Start(pid), 10) }

// dead reports whether the process has certainly ended. Of another machine or container nothing is certain.
func (s self) dead() bool {
	if s.domain != me().domain || s.pid <= 0 {
		return false
	}
	if s.pid == me().pid {
		return s.before(me().start)
	}
	return !process.Alive(s.pid) || s.before(startTime(s.pid))
}

// before reports whether the process that has the id now, and began at start, came after s. Where the system does not
// report when a process began, also because the process belongs to another user, that is not known.
func (s self) before(start string) bool { return s.start != start && s.start != "0" && start != "0" }
