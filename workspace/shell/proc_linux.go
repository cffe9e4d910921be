package shell

import (
	"bytes"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-dev/roost/internal/process"
)

// stat is what one looks at in /proc/<pid>/stat.
type stat struct {
	name    string
	state   byte
	parent  int
	group   int
	session int
	started int64
	threads int
	kernel  bool // a thread of the kernel's
	bare    bool // it has become its program, and was given no environment
}

func readStat(pid int) (stat, bool) {
	var buf [2048]byte
	n, err := readOnce("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return stat{}, false
	}
	return parseStat(buf[:n])
}

// readOnce reads the beginning of a file, with as few calls of the system as there can be.
func readOnce(name string, buf []byte) (int, error) {
	again := func(call func() (int, error)) (n int, err error) {
		for n, err = call(); err == unix.EINTR; n, err = call() { //nolint:errorlint // it returns just this
		}
		return n, err
	}
	fd, err := again(func() (int, error) { return unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := again(func() (int, error) { return unix.Read(fd, buf) })
	return max(n, 0), err
}

// Other fields that are read there: a flag of field 9, and fields by their index after the name. The address of the
// code is the last that is set when a process becomes another program.
const (
	kernelThread = 0x00200000
	codeStart    = 26 - 3
	envStart     = 50 - 3
	envEnd       = 51 - 3
)

// parseStat cuts at the last ")": a process may put anything into its name.
func parseStat(b []byte) (stat, bool) {
	open, shut := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || shut < open {
		return stat{}, false
	}
	var f [envEnd + 1]string // f[0] is field 3
	n := 0
	for word := range strings.FieldsSeq(string(b[shut+1:])) {
		if f[n] = word; n == envEnd {
			break
		}
		n++
	}
	if len(f[0]) != 1 || f[0][0] < 'A' || f[0][0] > 'z' {
		return stat{}, false
	}
	s := stat{name: string(b[open+1 : shut]), state: f[0][0]}
	var err0, err1, err2, err3 error
	s.parent, err0 = strconv.Atoi(f[1])
	s.group, err1 = strconv.Atoi(f[2])
	s.session, err2 = strconv.Atoi(f[3])
	s.started, err3 = strconv.ParseInt(f[19], 10, 64)
	flags, _ := strconv.ParseUint(f[6], 10, 64)
	s.kernel = flags&kernelThread != 0
	s.threads, _ = strconv.Atoi(f[17])
	s.bare = f[codeStart] != "0" && f[envEnd] != "0" && f[envEnd] != "" && f[envStart] == f[envEnd]
	return s, err0 == nil && err1 == nil && err2 == nil && err3 == nil
}

// dead reports whether it has ended and waits for its parent to read its exit status. A process whose first thread
// has ended looks the same, but has others.
func (s stat) dead() bool {
	return s.threads < 2 && (s.state == 'Z' || s.state == 'X' || s.state == 'x')
}

func identify(pid int, mark string) Process {
	s, _ := readStat(pid)
	return Process{PGID: pid, Started: s.started, Boot: process.Boot(), Mark: mark}
}

// members lists the living processes of p. This process is never one of them,
// although it may carry the mark of a command that it runs in.
func members(p Process) []Member { return surely(p.Started, p.members) }

func (p Process) members(l *look) []Member {
	own := lineage()
	var out []Member
	l.each(func(pid int, s stat) { // nothing that is older than the command can be a part of it
		if own[pid] {
			return
		}
		grouped := p.PGID > 1 && s.group == p.PGID
		if grouped || p.PGID > 1 && s.session == p.PGID || l.carries(pid, p.Mark) {
			out = append(out, Member{PID: pid, Name: s.name, started: s.started, grouped: grouped})
		}
	})
	return out
}

// Find reports whether anything of a recorded command is still alive. It never takes another process for it: the boot
// must be the same and the leader must have the recorded start time; when the leader has ended, only processes that
// carry the mark count.
func Find(p Process) (alive bool) {
	if p.PGID <= 1 || p.Started == 0 || p.Boot == "" || p.Boot != process.Boot() {
		return false
	}
	return len(recorded(p)) > 0
}

// recorded is members without processes that may only have the same numbers: when the leader has ended, its number
// may since have led another group.
func recorded(p Process) []Member {
	return surely(p.Started, func(l *look) []Member {
		all := p.members(l)
		if s, ok := readStat(p.PGID); ok && s.started == p.Started {
			return all // the number was never free
		}
		var out []Member
		for _, m := range all {
			if l.carries(m.PID, p.Mark) {
				out = append(out, m)
			}
		}
		return out
	})
}

// same reports whether m is still the process that was seen.
func (m Member) same() bool {
	s, ok := readStat(m.PID)
	return ok && s.started == m.started
}
