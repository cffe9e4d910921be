package store

import (
	"os"

	"github.com/roost-dev/roost/api"
)

// The states of a source. An unreachable one has a reason behind the colon, and is never just empty: what it holds is
// unknown, not gone.
const (
	readable    = api.SourceReadable
	partly      = api.SourcePartlyDamaged
	unreachable = api.SourceUnreachable
)

// judge sets the state that follows from the counts.
func judge(src *api.SourceState) {
	if src.State != readable || src.Damaged == 0 && src.Problem == "" {
		return
	}
	if src.State = partly; src.Damaged == 0 {
		return
	}
	// A disk that was just removed looks like damage of all its tasks.
	if _, err := os.ReadDir(src.Folder); err != nil && src.Folder != "" {
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
