package engine

import (
	"context"
	"errors"

	"github.com/roost-dev/roost/task"
)

// reading is a task as the agent needs it to say something about it: it takes nothing.
type reading struct{ state *task.State }

var errReading = errors.New("this task is only read")

func (r reading) State() *task.State                        { return r.state }
func (reading) Commit(context.Context, ...task.Event) error { return errReading }
func (reading) Barrier(context.Context) error               { return errReading }
func (reading) PutBlobFile(context.Context, string) (string, int64, error) {
	return "", 0, errReading
}
func (reading) TakeIn() error                         { return nil }
func (reading) Claim(string) (task.InputQueued, bool) { return task.InputQueued{}, false }
