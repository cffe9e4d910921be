package roofmt

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Left is what interrupted work left in a task folder.
type Left struct {
	Name string
	What string
	Ours bool // of a dead process of ours: Sweep removes it
}

// leftAge is how old a temporary file of another program must be to be taken for left: a write takes well under a second.
const leftAge = time.Minute

// Leftovers lists what interrupted writes left in a folder: temporary files, and locks that no process holds. It does
// not list what a living process may still use. It changes nothing. A missing folder has no leftovers.
func Leftovers(dir string, now time.Time) ([]Left, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for leftovers: %w", err)
	}
	var out []Left
	for _, e := range entries {
		if l, ok := leftOf(dir, e, now); ok {
			out = append(out, l)
		}
	}
	return out, nil
}

func leftOf(dir string, e fs.DirEntry, now time.Time) (Left, bool) {
	name := e.Name()
	info, err := e.Info()
	if err != nil {
		return Left{}, false // it went just now
	}
	age := now.Sub(info.ModTime())
	if m := ourTemp.FindStringSubmatch(name); m != nil {
		return Left{name, "a temporary file of a Roost process that has ended", true}, isLeft(e, m)
	}
	if file, ok := strings.CutPrefix(name, ourPrefix+"lock_"); ok {
		return Left{name, "the record of a lock whose process has ended", true}, orphanRecord(filepath.Join(dir, file))
	}
	if l, ok := parseLeftover(name); ok {
		what := "what was to become "
		if l.Backup {
			what = "what had been "
		}
		return Left{name, what + l.Target + " when a write of it was interrupted", false}, age > leftAge
	}
	if !e.IsDir() || !isLock(name) {
		return Left{}, false
	}
	if leftByDead(filepath.Join(dir, name)) {
		return Left{name, "a lock of a Roost process that has ended", true}, true
	}
	return Left{name, "a lock that no process has renewed for " + age.Round(time.Second).String(), false}, age > staleAfter
}

// orphanRecord reports whether a file's lock record has no lock, and its process is dead.
func orphanRecord(file string) bool {
	if _, err := os.Lstat(file + ".lock"); !os.IsNotExist(err) {
		return false // it goes with its lock
	}
	return recordDead(ownerPath(file))
}

// isLeft reports whether the process that made a temporary file has ended.
func isLeft(e os.DirEntry, m []string) bool {
	pid, _ := strconv.Atoi(m[2])
	maker := self{m[1], pid, m[3]}
	if maker.domain == me().domain {
		return maker.dead()
	}
	info, err := e.Info()
	return err == nil && time.Since(info.ModTime()) > foreignTempAge
}

// foreignTempAge is when a temporary file of another machine or container, whose process we can not see, counts as left.
const foreignTempAge = time.Hour
