package store

import (
	"fmt"

	"github.com/roost-dev/roost/journal"
)

// Follow opens a task's log for reading on, beside its owner.
func (s *Store) Follow(ref Ref) (journal.Reader, error) {
	log, err := OpenJournal(ref.Log)
	if err != nil {
		return nil, fmt.Errorf("follow task %s: %w", ref.ID, err)
	}
	return log, nil
}
