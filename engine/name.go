package engine

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/google/uuid"
)

// runID makes a name for a run of a task. It ends in digits that follow from the task's
// id, so that the run's task is found from the name alone, in all tasks' names and without
// an index that could be behind.
func runID(task string) string {
	id := uuid.NewString()
	return id[:len(id)-taskDigits] + digitsOf(task)
}

const taskDigits = 8

// digitsOf are those that the names of a task's runs end in.
func digitsOf(task string) string {
	sum := sha256.Sum256([]byte(task))
	return hex.EncodeToString(sum[:taskDigits/2])
}
