//go:build !linux && !darwin

package term

import (
	"io"
	"os"

	"golang.org/x/term"
)

// keys is empty: on this system a terminal cannot report waiting input.
type keys struct{}

func terminal(io.Reader) *keys { return nil }

func (*keys) wait() {}

func (*keys) has() bool { return true }

func dropTyped(io.Reader) {}

func keyMode(io.Reader) (restore func(), err error) { return nil, errNoKeys }

// Continued calls nothing: no Ctrl-Z stops a process here.
func Continued(func()) (end func()) { return func() {} }

// Silence prepares a prompt: read turns the echo of the terminal off, and reads a line. restore turns the echo on again.
func Silence(in *os.File) (read func() (string, error), restore func(), err error) {
	was, err := term.GetState(int(in.Fd()))
	return func() (string, error) {
		line, err := term.ReadPassword(int(in.Fd()))
		return string(line), err
	}, func() { _ = term.Restore(int(in.Fd()), was) }, err
}
