package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	terminal "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/config"
)

// ReadKey reads a key from a prompt that does not show the typing, or from stdin.
func (a *App) ReadKey(ctx context.Context, of string) (string, error) {
	try := "echo \"$KEY\" | roost auth set " + of
	text, err := "", error(nil)
	if a.InTTY {
		if a.Flags.NoInput {
			return "", failure.New(failure.ExitInput, "input_needed", "read the key", "--no-input is set, and stdin is a terminal", try)
		}
		text, err = a.hidden(ctx, "key for "+of+" (not shown): ")
	} else {
		text, err = bufio.NewReader(io.LimitReader(a.In, config.LongestKey+2)).ReadString(0)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return "", failure.Usage("roost auth set "+of, "there is no key on stdin", try)
	}
	if err := config.CheckKey(text); err != nil {
		return "", failure.Usage("roost auth set "+of, err.Error(), try)
	}
	return text, nil
}

// hidden asks on the terminal without showing the input. On a signal it restores the terminal, which would otherwise
// hide later input, too.
func (a *App) hidden(ctx context.Context, prompt string) (string, error) {
	f, _ := a.In.(*os.File) // Silence refuses nil
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	read, show, err := terminal.Silence(f)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	defer show()
	fmt.Fprint(a.Err, prompt)
	defer terminal.Continued(func() { fmt.Fprint(a.Err, "\r", prompt) })()
	text, err := config.Await(ctx, read)
	fmt.Fprintln(a.Err)
	if ctx.Err() != nil {
		return "", failure.New(failure.ExitInterrupt, "cancelled", "read the key", "the prompt was stopped; nothing was changed",
			"the same command again")
	}
	return text, api.Failed(err, "read the key")
}
