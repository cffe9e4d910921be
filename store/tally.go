package store

import (
	"os"
	"strings"
)

// The states of a source. An unreachable one says why behind a colon, and is
// never just empty: what is in it is unknown, not gone.
const (
	readable    = "readable"
	partly      = "partly damaged"
	unreachable = "unreachable: "
)

// Unreachable reports whether the source could not be read.
func (src SourceState) Unreachable() bool { return strings.HasPrefix(src.State, unreachable) }

// judge says what the counts mean.
func (src *SourceState) judge() {
	if src.State != readable || src.Damaged == 0 && src.Problem == "" {
		return
	}
	if src.State = partly; src.Damaged == 0 {
		return
	}
	// A disk that was pulled out meanwhile looks like damage of all its tasks.
	if _, err := os.ReadDir(src.tasks); err != nil && src.tasks != "" {
		src.State = unreachable + "it went away while it was read: " + err.Error()
	}
}

// ReadProblem describes why a task that was listed cannot be read.
func ReadProblem(ref Ref, err error) string {
	if !linked(ref.Dir) {
		return err.Error()
	}
	if _, broken := os.Stat(ref.Dir); broken != nil {
		return "a link that cannot be followed: " + broken.Error()
	}
	return err.Error()
}
