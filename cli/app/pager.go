package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

// Pager is the command line of the user's pager for long output; "" = none. Only a
// terminal gets one.
func (a *App) Pager() string {
	if !a.OutTTY || !a.InTTY || a.Flags.JSON || a.Flags.NoInput || a.Env("NO_PAGER") != "" || a.Env("TERM") == "dumb" {
		return ""
	}
	line := strings.TrimSpace(a.Env("PAGER"))
	switch {
	case line == "cat":
		return ""
	case line != "":
		return line
	}
	if _, err := exec.LookPath("less"); err != nil {
		return ""
	}
	return "less"
}

// Paged runs f with its output in the user's pager, if there is one.
// f's messages to stderr come after the pager has ended: the pager would overwrite them.
// A user who leaves the pager early has seen enough; that is no error.
func (a *App) Paged(ctx context.Context, f func() error) error {
	line := a.Pager()
	out, ok := a.Out.(*Output)
	if line == "" || !ok {
		return f()
	}
	cmd := pagerCommand(ctx, line)
	cmd.Env = os.Environ()
	less := a.Env("LESS")
	if less == "" {
		less = "FRX" // leave when it fits, keep colours, leave it on the screen
	}
	cmd.Env = append(cmd.Env, "LESS="+less+a.Less)
	cmd.Stdout, cmd.Stderr = out.W, a.Err
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil { // a pager that cannot be had is no reason to show nothing
		a.Say("no pager: %v", err)
		return f()
	}
	// An interrupt is for the pager. It is caught and not ignored, and only now:
	// the pager would inherit that.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)

	var said bytes.Buffer
	stdout, stderr := a.Out, a.Err
	pipe := &Output{W: in}
	a.Out, a.Err = pipe, &said
	err = f()
	a.Out, a.Err = stdout, stderr
	if pipe.Gone && ReaderGone(err) {
		err = nil
	}
	closed := in.Close()
	if ReaderGone(closed) || errors.Is(closed, os.ErrClosed) {
		closed = nil
	}
	ended := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(ended, &exit) && exit.ExitCode() == noCommand:
		a.Warn("there is no pager " + line + "; NO_PAGER=1 goes without")
		return f() // no user has seen its first output and messages
	case exit != nil && pipe.Gone:
		ended = nil
	}
	if _, werr := io.Copy(stderr, &said); err == nil {
		err = werr
	}
	if err == nil && errors.Join(closed, ended) != nil {
		return fmt.Errorf("show it in the pager %s (NO_PAGER=1 goes without): %w", line, errors.Join(closed, ended))
	}
	return err
}

// noCommand is how a shell ends that finds no such command.
const noCommand = 127

// pagerCommand runs a command line as git runs it: by the shell where there is
// one.
func pagerCommand(ctx context.Context, line string) *exec.Cmd {
	if os.PathSeparator == '\\' {
		words := strings.Fields(line)
		return exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the person's own choice
	}
	return exec.CommandContext(ctx, "sh", "-c", line) //nolint:gosec // the person's own choice
}
