package shell

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"
)

// How often all processes are looked at for those of a command, at most, and how long it
// is waited in between. Where strangers come and go all the time no look is ever sure.
const (
	looks     = 50
	lookAgain = 2 * time.Millisecond
)

// look is one look at all processes. It takes its time, and so somebody may slip through:
// who ends meanwhile may have started another, whose number was not listed yet, and who is
// just becoming another program shows no environment, and so no mark, for a moment.
type look struct {
	since  int64        // who began earlier cannot be meant
	before map[int]bool // seen by the look before this one, and not meant
	seen   map[int]bool
	unsure bool   // somebody may have slipped through
	buf    []byte // for environments
}

// surely looks until somebody is found, or nobody can have slipped through.
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

// listed gives the numbers of all processes. They are listed by number, so that who is
// started by somebody who then ends is still to come, unless the numbers began anew between
// the two. That does not happen twice in so short a time: they are listed twice.
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
