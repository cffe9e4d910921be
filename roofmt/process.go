package roofmt

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"sync"
)

// self identifies this process among all that ever ran: a process id alone comes back.
type self struct {
	domain string // boot, machine and pid namespace: only within it do pid and start mean anything to us
	pid    int
	start  string // start time in ticks since boot; "0" where the system does not report it
}

var me = sync.OnceValue(func() self {
	host, _ := os.Hostname()
	sum := sha256.Sum256([]byte(bootID() + "\x00" + host + "\x00" + pidNamespace()))
	return self{hex.EncodeToString(sum[:6]), os.Getpid(), startTime(os.Getpid())}
})

// dead reports whether the process has certainly ended. Of another machine or container nothing is certain.
func (s self) dead() bool {
	if s.domain != me().domain || s.pid <= 0 {
		return false
	}
	if s.pid == me().pid {
		return s.before(me().start)
	}
	return !pidAlive(s.pid) || s.before(startTime(s.pid)) || ended(s.pid)
}

// before reports whether the process that has the id now, and began at start, came after s. Where the system does not
// report when a process began, also because the process belongs to another user, that is not known.
func (s self) before(start string) bool { return s.start != start && s.start != "0" && start != "0" }
