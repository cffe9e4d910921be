package cli

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
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

// A command whose result cannot be printed prints no remarks about the result.
func TestNoHintFollowsAResultThatWasNotPrinted(t *testing.T) {
	t.Parallel()
	a, _, errs := clitest.New(t)
	a.Out = full{}
	if code := Run(t.Context(), a, []string{"models"}); code != failure.ExitFailed || strings.Contains(errs.String(), "Prices") {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

// Each page is that of a command, and has what its command is made of.
func TestPagesOfCommands(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("help/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	a, _, _ := clitest.New(t)
	root := rootCommand(a)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Split(strings.TrimSuffix(filepath.Base(file), ".txt"), "-")
		cmd, rest, err := root.Find(words)
		lines := strings.Split(string(data), "\n")
		if words[0] != "roost" && (err != nil || len(rest) > 0 || cmd.Use != lines[0]) {
			t.Errorf("%s is the page of no command", file)
		}
		if counted := regexp.MustCompile(`^\d+ (-1|\d+) roost .+$`); len(lines) > 3 && lines[2] != "" && !counted.MatchString(lines[2]) {
			t.Errorf("%s: its third line is %q", file, lines[2])
		}
	}
}
