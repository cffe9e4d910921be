package crashtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/roost-dev/roost/workspace/shell"
)

// markVar is the variable by which a command, and all it starts, is known. A child passes on the mark that it got
// itself, so that a bench finds every process that its children started, under any name and in any group.
const markVar = "ROOST_COMMAND"

// Alive lists the processes that were started on the bench and still live. On
// systems without /proc it finds nothing.
func (b *Bench) Alive() []int {
	var pids []int
	for _, m := range shell.FindMarked(b.Mark) {
		pids = append(pids, m.PID)
	}
	return pids
}

// Gone waits until no such process is left and returns those that stay.
func (b *Bench) Gone(patience time.Duration) []int {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if left := b.Alive(); len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// Left are the files that the bench's processes left in their temporary folder. A process
// removes its own; what a killed one left, the next one that works on a task does. The
// folder in which this user's processes have their sockets is no such file, and stays: the
// next process uses it again.
func (b *Bench) Left() ([]string, error) {
	temp := filepath.Join(b.Dir, "tmp")
	sockets := filepath.Join(temp, "roost-"+strconv.Itoa(os.Geteuid()))
	var left []string
	for _, dir := range []string{temp, sockets} {
		entries, err := os.ReadDir(dir)
		if dir == sockets && os.IsNotExist(err) {
			continue // there was none: they need one where others reach them only
		}
		if err != nil {
			return left, fmt.Errorf("look at what is left: %w", err)
		}
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); path != sockets || !e.IsDir() {
				left = append(left, path)
			}
		}
	}
	return left, nil
}
