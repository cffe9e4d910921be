package term

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// pty is a pseudo terminal: what is written to keys is typed at it.
func pty(t *testing.T) (keys, terminal *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("this system has no pseudo terminals: ", err)
	}
	t.Cleanup(func() { keys.Close() })
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return keys, terminal
}

// What was typed before a question answers it no more when nobody had begun to read than when
// the line lay there read: how far the reader was is a matter of the moment.
func TestWhatTheTerminalHoldsIsForgotten(t *testing.T) {
	t.Parallel()
	keys, terminal := pty(t)
	p := NewPrompter(New(io.Discard, Options{}), terminal)
	if _, err := io.WriteString(keys, "y\nand half a li"); err != nil {
		t.Fatal(err)
	}
	// The terminal takes what is typed in its own time.
	fds := []unix.PollFd{{Fd: int32(terminal.Fd()), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, 60_000); err != nil || fds[0].Revents&unix.POLLIN == 0 {
		t.Fatalf("the terminal never got it: %v", err)
	}
	p.Forget()
	if _, err := io.WriteString(keys, "no\n"); err != nil {
		t.Fatal(err)
	}
	line, err := p.Read(t.Context(), "> ")
	if err != nil || line != "no" {
		t.Errorf("the next line is %q, %v", line, err)
	}
	if _, err := io.WriteString(keys, "\x04"); err != nil { // its reader ends
		t.Fatal(err)
	}
	if _, err := p.Read(t.Context(), "> "); err == nil {
		t.Error("the input goes on")
	}
}
