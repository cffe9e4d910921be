package shell

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"
)

// looks bounds how often a search scans all processes for those of a command, and lookAgain
// is the pause between two scans. Where other processes start and end all the time no scan is
// ever certain to be complete.
const (
	looks     = 50
	lookAgain = 2 * time.Millisecond
)

// look is one scan of all processes. A scan takes time, and so it may miss a process: one that
// ends during the scan may have started another, whose number was not listed yet, and one that
// is in the middle of an exec shows no environment, and so no mark, for a moment.
type look struct {
	since  int64        // a process that began earlier does not belong to the command
	before map[int]bool // seen by the scan before this one, and not the command's
	seen   map[int]bool
	unsure bool   // the scan may have missed a process
	buf    []byte // for environments
}

// surely scans until it finds a process, or a scan is certain to have missed none.
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

// each goes through the living processes, zombies and threads of the kernel's apart.
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

// listed gives the numbers of all processes. They are listed by number, so a process
// whose parent then ends comes later in the list, unless numbering wrapped around between the
// two. That does not happen twice in so short a time, so listed lists twice.
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
