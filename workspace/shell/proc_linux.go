package shell

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/process"
)

// stat holds the fields of /proc/<pid>/stat that this package uses.
type stat struct {
	name    string
	state   byte
	parent  int
	group   int
	session int
	started int64
	threads int
	kernel  bool // a thread of the kernel
	bare    bool // it runs its program, and got no environment
}

func readStat(pid int) (stat, bool) {
	var buf [2048]byte
	n, err := readOnce("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return stat{}, false
	}
	return parseStat(buf[:n])
}

// readOnce reads the beginning of a file, with as few system calls and as little memory as possible.
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

// Other fields of that file: a flag in field 9, and fields by their index after the name. When a process becomes
// another program, the system sets the address of the code last.
const (
	kernelThread = 0x00200000
	codeStart    = 26 - 3
	envStart     = 50 - 3
	envEnd       = 51 - 3
)

// parseStat reads the fields after the last ")": a process may put anything into its name.
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
	var bad [4]error
	s.parent, bad[0] = strconv.Atoi(f[1])
	s.group, bad[1] = strconv.Atoi(f[2])
	s.session, bad[2] = strconv.Atoi(f[3])
	s.started, bad[3] = strconv.ParseInt(f[19], 10, 64)
	flags, _ := strconv.ParseUint(f[6], 10, 64)
	s.kernel = flags&kernelThread != 0
	s.threads, _ = strconv.Atoi(f[17])
	s.bare = f[codeStart] != "0" && f[envEnd] != "0" && f[envEnd] != "" && f[envStart] == f[envEnd]
	return s, errors.Join(bad[:]...) == nil
}

// dead reports whether the process has ended and waits for its parent to read its exit status. A process whose first
// thread has ended looks the same, but has other threads.
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

// Find reports whether anything of a recorded command is still alive. It never mistakes another process for the
// command: the boot must be the same and the leader must have the recorded start time; when the leader has ended,
// only processes that carry the mark count.
func Find(p Process) (alive bool) {
	if p.PGID <= 1 || p.Started == 0 || p.Boot == "" || p.Boot != process.Boot() {
		return false
	}
	return len(recorded(p)) > 0
}

// recorded is members without processes that may only have the same numbers: when the leader has ended, another group
// may have got its number since.
func recorded(p Process) []Member {
	return surely(p.Started, func(l *look) []Member {
		all := p.members(l)
		if s, ok := readStat(p.PGID); ok && s.started == p.Started {
			return all // the number was never free
		}
		return slices.DeleteFunc(all, func(m Member) bool { return !l.carries(m.PID, p.Mark) })
	})
}

// same reports whether m is still the process that was seen.
func (m Member) same() bool {
	s, ok := readStat(m.PID)
	return ok && s.started == m.started
}

// looks bounds how often a search scans all processes for those of a command, and lookAgain is the pause between two
// scans. If other processes start and end all the time, no scan is ever certain to be complete.
const (
	looks     = 50
	lookAgain = 2 * time.Millisecond
)

// look is one scan of all processes. A scan takes time, so it may miss a process: a process that ends during the scan
// may have started another one whose number was not listed yet, and a process in the middle of an exec shows no
// environment, and so no mark, for a moment.
type look struct {
	since  int64        // a process that began before this time does not belong to the command
	before map[int]bool // processes that the scan before this one saw, and that are not the command's
	seen   map[int]bool
	unsure bool   // the scan may have missed a process
	buf    []byte // for environments
}

// surely scans until it finds a process, or until a scan certainly missed none.
func surely(since int64, find func(*look) []Member) []Member {
	l := &look{}
	for n := 1; ; n++ {
		l = &look{since: since, before: l.seen, seen: map[int]bool{}, buf: l.buf}
		out := find(l)
		if len(out) > 0 || !l.unsure || n == looks {
			return out
		}
		time.Sleep(lookAgain)
	}
}

// each calls fn for the living processes, without zombies and threads of the kernel.
func (l *look) each(fn func(pid int, s stat)) {
	for _, pid := range l.listed() {
		l.at(pid, fn)
	}
}

func (l *look) at(pid int, fn func(pid int, s stat)) {
	s, ok := readStat(pid)
	if ok && (s.started < l.since || s.kernel) {
		return
	}
	if l.seen[pid] = ok; ok && !s.dead() {
		fn(pid, s)
	} else if !l.before[pid] {
		l.unsure = true
	}
}

// listed returns the numbers of all processes. They are listed by number, so a child of a process that ends meanwhile
// comes later in the list, unless the numbers wrapped around between the two. That does not happen twice in so short
// a time, so listed lists twice.
func (l *look) listed() []int {
	var pids []int
	for range 2 {
		names, err := namesIn("/proc")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.unsure = true
		}
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

func namesIn(folder string) ([]string, error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}

// FindMarked lists the living processes whose environment carries mark, and those in a session that one of them leads
// or that lost its leader: such a session was made by the command, and a member of it may have cleared its
// environment. It never lists this process and its ancestors: a Roost that runs inside a command of another Roost
// carries the outer mark itself.
func FindMarked(mark string) []Member {
	if !usableMark(mark) {
		return nil
	}
	return surely(0, func(l *look) []Member { return l.carriers(mark) })
}

func (l *look) carriers(mark string) []Member {
	own := lineage()
	var all []Member
	stats := map[int]stat{}
	sessions := map[int]bool{}
	hit := map[int]bool{}
	l.each(func(pid int, s stat) {
		stats[pid] = s
		if own[pid] {
			return
		}
		if l.carries(pid, mark) {
			hit[pid] = true
			sessions[s.session] = true
		}
		all = append(all, Member{PID: pid, Name: s.name, started: s.started})
	})
	for id := range sessions {
		// A session whose leader lives without the mark is not the command's, although a marked process is in it.
		if leader, alive := stats[id]; id <= 1 || alive && !leader.dead() && !hit[id] {
			delete(sessions, id)
		}
	}
	return api.Some(all, func(m Member) (Member, bool) { return m, hit[m.PID] || sessions[stats[m.PID].session] })
}

// lineage returns this process and its ancestors.
func lineage() map[int]bool {
	out := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !out[pid]; {
		out[pid] = true
		s, ok := readStat(pid)
		if !ok {
			break
		}
		pid = s.parent
	}
	return out
}

// carries looks for the mark in the environment that a process was started with. A process that
// may belong to the command and does not show its environment counts as not seen: the next scan
// reads its environment again.
func (l *look) carries(pid int, mark string) bool {
	if mark == "" {
		return false
	}
	env, err := l.environ(pid)
	if err == nil && len(env) > 0 {
		return carried(env, mark)
	}
	if errors.Is(err, fs.ErrPermission) || l.before[pid] {
		return false
	}
	// The process has no environment, or is just becoming another program, or ends.
	s, ok := readStat(pid)
	if ok && s.bare {
		return false
	}
	if ok && !s.dead() {
		delete(l.seen, pid)
	}
	l.unsure = true
	return false
}

func carried(env []byte, mark string) bool {
	if !bytes.Contains(env, []byte(mark)) {
		return false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if marked(string(kv), mark) {
			return true
		}
	}
	return false
}

// environ reads a process's environment. If its first thread has ended, it reads that of another thread. The bytes
// are valid until the next read.
func (l *look) environ(pid int) ([]byte, error) {
	proc := "/proc/" + strconv.Itoa(pid)
	env, err := l.read(proc + "/environ")
	if len(env) > 0 || errors.Is(err, fs.ErrPermission) {
		return env, err
	}
	threads, _ := namesIn(proc + "/task")
	for _, id := range threads {
		if env, _ := l.read(proc + "/task/" + id + "/environ"); len(env) > 0 {
			return env, nil
		}
	}
	return nil, err
}

// read reads the whole file at once: if a process became another program between two reads, the second one would
// return nothing, which would look like the end.
func (l *look) read(name string) ([]byte, error) {
	if l.buf == nil {
		l.buf = make([]byte, 64<<10)
	}
	for {
		n, err := readOnce(name, l.buf)
		if n < len(l.buf) {
			return l.buf[:n], err
		}
		l.buf = make([]byte, 4*len(l.buf))
	}
}

// HideSelf keeps other processes of this user, above all the commands that this one runs, from reading its
// environment and its memory, where the keys of providers are. Root and processes with CAP_SYS_PTRACE can still read
// them.
//
// A Roost that runs inside a command of another one stays readable: the outer one finds it by
// the mark in its environment.
func HideSelf() {
	if os.Getenv(markVar) == "" {
		// A kernel that refuses leaves things as they were before: no run ends for that.
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
}

// serving returns a session of its own, as for a command, and a signal if this process dies.
func serving() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
}
