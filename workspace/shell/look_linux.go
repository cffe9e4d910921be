package shell

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
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
	unsure bool // somebody may have slipped through
}

// surely looks until somebody is found, or nobody can have slipped through.
func surely(since int64, find func(*look) []Member) []Member {
	var before map[int]bool
	for n := 1; ; n++ {
		l := &look{since: since, before: before, seen: map[int]bool{}}
		out := find(l)
		if len(out) > 0 || !l.unsure || n == looks {
			return out
		}
		before = l.seen
		time.Sleep(lookAgain)
	}
}

// each goes through the living processes, zombies apart.
func (l *look) each(fn func(pid int, s stat)) {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		s, ok := readStat(pid)
		if ok && s.started < l.since {
			continue
		}
		if l.seen[pid] = ok; ok && !s.dead() {
			fn(pid, s)
		} else if !l.before[pid] {
			l.unsure = true
		}
	}
}

// carries looks for the mark in the environment that a process was started with.
func (l *look) carries(pid int, mark string) bool {
	if mark == "" {
		return false
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	switch {
	case err != nil && !errors.Is(err, fs.ErrPermission) && !l.before[pid]:
		l.unsure = true // gone since it was listed
	case err == nil && len(env) == 0:
		// One that is empty for good has a place none the less, and is so in the next look, too.
		s, ok := readStat(pid)
		if !s.settled && !s.kernel || !ok {
			delete(l.seen, pid)
		}
		l.unsure = l.unsure || !s.kernel && !(l.seen[pid] && l.before[pid])
	}
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
