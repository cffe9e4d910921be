package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

// full is a disk without room.
type full struct{}

var errFull = errors.New("no space is left")

func (full) Write([]byte) (int, error) { return 0, errFull }

// Help that cannot be printed is a failure like any other output's.
func TestOutputThatCannotBePrintedIsAFailure(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"help"}, {"--help"}, {"help", "list"}, {"export", "--help"}, {"help", "exit-codes"}, {"version"}, {"sources"}, {"completion", "bash"}} {
		a, _, errs := clitest.New(t)
		a.Out = full{}
		if code := Run(t.Context(), a, args); code != failure.ExitFailed || !strings.Contains(errs.String(), errFull.Error()) {
			t.Errorf("%v: exit %d\n%s", args, code, errs)
		}
	}
}
