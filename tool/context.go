package tool

import (
	"context"
	"errors"
)

// ContextError returns err if it is the context's, else nil: a tool that was stopped reports
// that, and turns any other failure into words for the model.
func ContextError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
