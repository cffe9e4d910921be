package crashtest

import (
	"time"

	"github.com/roost-dev/roost/workspace/shell"
)

// markVar is the variable by which a command, and all it starts, is known. A child
// passes on the mark it was itself given, so that a bench finds whatever any of its
// children started, however that named or regrouped itself.
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
