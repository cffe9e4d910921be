package chat

import (
	"errors"
	"fmt"
	"strings"
)

// LineError: a line came to nothing, and those behind it were written for its success.
type LineError struct {
	Line string
	Err  error
}

func (e *LineError) Error() string { return e.Line + ": " + e.Err.Error() }

func (e *LineError) Unwrap() error { return e.Err }

// Exit is the exit code of the command of roost that failed; 0 when it was none.
func (e *LineError) Exit() int {
	var f *failed
	if errors.As(e.Err, &f) {
		return f.said.Code
	}
	return 0
}

// WaitingError: the task waits for an answer, and no user is present who could be asked.
type WaitingError struct{ Task string }

func (e *WaitingError) Error() string { return "task " + e.Task + " waits for an answer" }

// failed is a command of roost that did not succeed and has printed its reason.
type failed struct{ said Said }

func (e *failed) Error() string {
	why, _, _ := strings.Cut(strings.TrimSpace(e.said.Err), "\n")
	return strings.TrimPrefix(why, "roost: ")
}

// UnknownError is a command that does not exist. The chat did not send it to a model.
type UnknownError struct{ Name, Nearest string }

func (e *UnknownError) Error() string {
	text := "there is no command /" + e.Name
	if e.Nearest != "" {
		text += "; /" + e.Nearest + " is one"
	}
	return text + " (/help lists them; a line for the model that begins with / begins with //)"
}

func usage(text string) error { return fmt.Errorf("want %s", text) }
