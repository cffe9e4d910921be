package term

import (
	"fmt"
	"io"
	"os"
	"strings"
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

// types types at the terminal, and returns when the terminal has it: it shows then what it got.
func types(t *testing.T, keys *os.File, text string) {
	t.Helper()
	if _, err := io.WriteString(keys, text); err != nil {
		t.Fatal(err)
	}
	shown := make([]byte, len(strings.ReplaceAll(text, "\n", "\r\n")))
	if _, err := io.ReadFull(keys, shown); err != nil {
		t.Fatalf("the terminal never got %q: %v", text, err)
	}
}

// What was typed before a question answers it no more, however far its reader was: nobody had
// begun to read, the line was on its way, or it lay there read.
func TestWhatTheTerminalHoldsIsForgotten(t *testing.T) {
	t.Parallel()
	keys, terminal := pty(t)
	p := NewPrompter(New(io.Discard, Options{}), terminal)
	for range 100 {
		types(t, keys, "y\nand half a li")
		p.Forget()
		types(t, keys, "no\n")
		line, err := p.Read(t.Context(), "> ")
		if err != nil || line != "no" {
			t.Fatalf("the next line is %q, %v", line, err)
		}
	}
	if _, err := io.WriteString(keys, "\x04"); err != nil { // its reader ends
		t.Fatal(err)
	}
	if line, err := p.Read(t.Context(), "> "); err == nil {
		t.Errorf("the input goes on with %q", line)
	}
}
