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

// A page whose name is that of no command is one that no user sees.
func TestEachPageOfHelpBelongsToACommand(t *testing.T) {
	t.Parallel()
	a, _, _ := clitest.New(t)
	root := rootCommand(a)
	pages, err := helpPages.ReadDir("help")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		words := strings.Split(strings.TrimSuffix(page.Name(), ".txt"), "-")
		cmd, rest, err := root.Find(words[1:])
		if describe(cmd); err != nil || len(rest) > 0 || cmd.Long+cmd.Example == "" {
			t.Errorf("%s is the page of no command", page.Name())
		}
	}
}
