package shell

import (
	"bytes"
	"errors"
	"io/fs"
	"strconv"
)

// carries looks for the mark in the environment that a process was started with. Who may be
// one of ours and does not show his environment is not seen: the next look asks him again.
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
	// He has no environment, or is just becoming another program, or ends.
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

// environ reads a process's environment. Where its first thread has ended, the others have
// it. The bytes are good until the next read.
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

// read reads all of it in one go: of a process that becomes another program between two
// reads there would be the first part, and then nothing, as if that were the end.
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
