package store

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// Follow opens a task's log for reading on, beside its owner.
func (s *Store) Follow(ref Ref) (journal.Reader, error) {
	log, err := OpenJournal(ref.Log)
	if err != nil {
		return nil, fmt.Errorf("follow task %s: %w", ref.ID, err)
	}
	return log, nil
}

// Payloads lets a state that is folded from a log load what its events name.
func Payloads(log journal.Reader) task.Blobs {
	return ground{ctx: context.Background(), log: log}
}
