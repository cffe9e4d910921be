package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

var (
	adviceLine = regexp.MustCompile(`(?m)^  try: (.*)$`)
	shellWords = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)
)

// advised checks that a failure says what to do, and that what it says can be done: the
// command is there and has those flags.
func advised(t *testing.T, errs string) error {
	t.Helper()
	found := adviceLine.FindAllStringSubmatch(errs, -1)
	if len(found) == 0 {
		return fmt.Errorf("it does not say what to do")
	}
	for _, m := range found {
		line, _, _ := strings.Cut(m[1], "  # ")
		words := shellWords.FindAllString(line, -1)
		if words[0] != "roost" || line == "roost help" {
			return fmt.Errorf("%q is no command that helps", m[1])
		}
		for i, w := range words {
			words[i] = strings.Trim(w, `"'`)
		}
		a, _, _ := clitest.New(t)
		if len(words) > 2 && words[1] == "help" {
			words = slices.Delete(words, 1, 2)
		}
		cmd, rest, err := rootCommand(a).Find(words[1:])
		if err != nil || len(words) > 1 && !cmd.HasParent() {
			return fmt.Errorf("%q: there is no such command", line)
		}
		for i, w := range rest { // placeholders stand for any value
			if w == "..." {
				rest = rest[:i]
				break
			}
		}
		if err := cmd.ParseFlags(rest); err != nil && err != pflag.ErrHelp { //nolint:errorlint // as pflag returns it
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	return nil
}

// A wrong value of a flag is answered by a whole command line: with the arguments that the command needs, and with the
// flags without which the flag means nothing.
func TestAWrongValueOfAFlagIsAnsweredByAWholeCommandLine(t *testing.T) {
	t.Parallel()
	wanted := map[string]string{
		"checkpoint restore hunk": "roost checkpoint restore ID --hunk 1 --path FILE",
		"undo limit":              "roost undo ID --limit 20 --list",
		"run max-turns":           "roost run PROMPT --max-turns 20",
		"import on-conflict":      "roost import PATH --on-conflict skip",
		"list sort":               "roost list --sort newest",
		"resume max-cost":         "roost resume --max-cost 0.50",
		"wait timeout":            "roost wait ID --timeout 10m",
	}
	a, _, _ := clitest.New(t)
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			bad := cmd.ParseFlags([]string{"--" + flag.Name + "=no such value"})
			if _, checked := errors.AsType[*failure.ValueError](bad); !checked {
				return
			}
			got := failure.Of(failure.FlagError(cmd, bad)).Try
			name := strings.TrimPrefix(cmd.CommandPath(), "roost ") + " " + flag.Name
			if want, named := wanted[name]; named && got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
			delete(wanted, name)
			fresh, rest, err := rootCommand(a).Find(strings.Fields(got)[1:])
			if err == nil {
				err = fresh.ParseFlags(rest)
			}
			if err == nil {
				err = fresh.ValidateArgs(fresh.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: got %q, want a command line that is complete: %v", name, got, err)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(rootCommand(a))
	if len(wanted) > 0 {
		t.Errorf("got no such flags: %v, want all of them", wanted)
	}
}

// Whatever goes wrong, here or on a server, the person reads what can be done about it.
func TestFailuresAdviseWhatCanBeDone(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one command after the other")
	}
	w := newTwins(t)
	work, ask := w.ids()
	wanted := map[string][]string{ // what must be said, beside what can be done
		"wait ASK":                   {"which colour?", ".q", "--choice 1"},
		"answer ASK --yes":           {"it wants words", "which colour?", "--choice 1"},
		"answer ASK --choice 9":      {"it has 2 choices: red | blue"},
		"resume nothing":             {"roost list"},
		"resume WORK -C DIR/nowhere": {"-C DIR", "nowhere"},
		"rewind WORK --to c99":       {"the checkpoints c1 to c2"},
	}
	for _, line := range []string{
		"nonsense", "show", "show nothing", "show WORK --nonsense", "show WORK --before x", "show WORK --tail x", "show WORK --branches --usage", "list --status nonsense", "list --limit x", "list --since nonsense", "list --cursor nonsense", "list words",
		"search", "search x --in nonsense", "search x --limit -1", "usage --by nonsense", "runs --state nonsense", "runs nothing", "files nothing", "files WORK --path nothing",
		"answer WORK --yes", "answer ASK --yes", "answer ASK --choice 9", "answer ASK", "answer ASK --yes --no", "answer ASK --choice 1 words", "answer nothing --yes", "answer ASK.q999 words",
		"wait ASK", "wait nothing", "wait ASK --timeout -1s", "cancel nothing", "attach nothing", "send WORK", "send nothing words",
		"rewind WORK --to nonsense", "rewind WORK --to #99", "rewind WORK --to ~99", "rewind WORK --to c99", "rewind WORK --edit words", "rewind WORK --delete #99", "rewind WORK --yes", "rewind nothing",
		"undo WORK", "redo WORK", "fork WORK --at nonsense", "fork WORK --branch nonsense", "condense ASK", "condense WORK --provider nonsense",
		"checkpoint restore WORK c99", "checkpoint restore ASK", "checkpoint diff WORK c99", "checkpoint restore WORK 0 --on-conflict nonsense",
		"rename WORK", "tag WORK +", "delete nothing", "trash restore nothing", "trash purge", "trash purge nothing --yes",
		"export WORK --format nonsense", "export WORK ASK", "export WORK --format roo", "export nothing", "resume nothing", "resume WORK --approve nonsense", "resume WORK -C DIR/nowhere", "resume WORK --provider nonsense more",
		"run", "run words --mode nonsense", "run words -C DIR/nowhere", "run words --provider nonsense", "run words --max-cost x", "run words --provider script --model DIR/nowhere.yaml", "continue words -C DIR/nowhere",
	} {
		args := strings.Fields(strings.NewReplacer("WORK", work, "ASK", ask, "DIR", filepath.Join(w.dir, "ws")).Replace(line))
		var out bytes.Buffer
		code, errs := w.command(context.Background(), hereRoot, &out, args...)
		if code == failure.ExitDone {
			t.Errorf("roost %s: exit 0", line)
		} else if err := advised(t, errs); err != nil {
			t.Errorf("roost %s: %v\n%s", line, err, errs)
		}
		farCode, farErrs := w.command(context.Background(), farRoot, io.Discard, append([]string{"--server", w.url}, args...)...)
		if err := advised(t, farErrs); err != nil || farCode != code {
			t.Errorf("roost --server %s: exit %d, here %d: %v\n%s%s", line, farCode, code, err, farErrs, errs)
		}
		for _, words := range wanted[line] {
			if !strings.Contains(errs, words) || !strings.Contains(farErrs, words) {
				t.Errorf("roost %s does not say %q:\n%s%s", line, words, errs, farErrs)
			}
		}
	}
}
