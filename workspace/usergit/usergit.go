// Package usergit runs git in the user's repositories to read, and decides whether git may run there without asking.
// A repository's own settings name programs for many occasions, and their author need not be the user that runs a
// task.
package usergit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/roost-dev/roost/workspace/shell"
)

// quiet turns off what reading could reach.
var quiet = []string{
	"--no-pager", "--no-optional-locks",
	"-c", "core.fsmonitor=false",
	"-c", "core.hooksPath=" + os.DevNull,
	"-c", "core.pager=cat",
	"-c", "core.sshCommand=false",
	"-c", "core.askPass=",
	"-c", "credential.helper=",
	"-c", "log.showSignature=false",
	"-c", "gpg.program=false",
	"-c", "safe.bareRepository=explicit",
	"-c", "submodule.recurse=false",
}

// Command is git, ready to read in a folder. It runs no program that the repository
// names but filters and text conversions, fetches nothing and asks nothing. Variables
// that steer git are dropped, because they can name programs and other repositories.
func Command(ctx context.Context, program, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, append(append([]string{}, quiet...), args...)...)
	cmd.Dir = dir
	cmd.Env = environ(os.Environ())
	cmd.WaitDelay = time.Second
	return cmd
}

func environ(base []string) []string {
	var out []string
	for _, kv := range shell.Environ(base) {
		name, _, _ := strings.Cut(strings.ToUpper(kv), "=")
		if !strings.HasPrefix(name, "GIT_") && name != "LC_ALL" {
			out = append(out, kv)
		}
	}
	return append(out, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat",
		"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none")
}

// maxOutput bounds what git may print: an index of a million files.
const maxOutput = 1 << 28

// read runs git and gives what it printed.
func read(ctx context.Context, program, dir string, args ...string) (string, error) {
	cmd := Command(ctx, program, dir, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	if out.Len() > maxOutput {
		return "", errors.New("it prints too much")
	}
	return out.String(), nil
}
