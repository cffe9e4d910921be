package term

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

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

// A reader whose terminal was closed asks that terminal, and not the file that got its number: a select on it would keep
// it open.
func TestAClosedTerminalIsNotAskedByItsNumber(t *testing.T) {
	_, tty := pty(t)
	k := terminal(tty)
	fd := int(tty.Fd())
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if int(r.Fd()) != fd && int(w.Fd()) != fd { // another file was closed before
		if err := unix.Dup3(int(r.Fd()), fd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		k.wait()
	}()
	select {
	case <-asked:
	case <-time.After(10 * time.Second):
		t.Error("the reader waits for input of the file that got the terminal's number")
	}
}

// What came as a key, and is no whole line, must not hold the reader up once lines are wanted again.
func TestTheReaderGoesOnWhenKeysEnd(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer w.Close()
	in := newTyped(r)
	in.single(true)
	in.open()
	if _, err := io.WriteString(w, "h"); err != nil {
		t.Fatal(err)
	}
	<-in.news
	in.single(false)
	go func() { _, _ = io.WriteString(w, "i\n") }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if line, err := in.next(ctx); line != "hi" || err != nil {
		t.Errorf("got %q, %v, want \"hi\"", line, err)
	}
}

// While a program is stopped by Ctrl-Z, its shell sets the mode of the terminal. A key of a provider that is typed after
// fg must stay hidden, and one key must still answer.
func TestTheModeOfTheTerminalOutlivesCtrlZ(t *testing.T) {
	_, tty := pty(t)
	fd := int(tty.Fd())
	shells, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		take func() (restore func(), err error)
		off  uint32
	}{
		{"a hidden line", func() (func(), error) { _, restore, err := Silence(tty); return restore, err }, unix.ECHO},
		{"single keys", func() (func(), error) { return keyMode(tty) }, unix.ECHO | unix.ICANON},
	} {
		restore, err := c.take()
		if err != nil {
			t.Fatal(c.name, err)
		}
		if err := unix.IoctlSetTermios(fd, unix.TCSETS, shells); err != nil {
			t.Fatal(c.name, err)
		}
		if err := unix.Kill(os.Getpid(), unix.SIGCONT); err != nil {
			t.Fatal(c.name, err)
		}
		on := func() uint32 {
			mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
			if err != nil {
				t.Fatal(c.name, err)
			}
			return mode.Lflag & c.off
		}
		for end := time.Now().Add(5 * time.Second); on() != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("%s: after fg the terminal's flags %#x are on, want them off", c.name, on())
				break
			}
		}
		restore()
		for range 200 { // a signal that comes at the end leaves the terminal as it was
			if restore, err = c.take(); err != nil {
				t.Fatal(c.name, err)
			}
			if err := unix.Kill(os.Getpid(), unix.SIGCONT); err != nil {
				t.Fatal(c.name, err)
			}
			restore()
			if time.Sleep(time.Millisecond); on() != c.off {
				t.Fatalf("%s: at the end the flags %#x are on, want %#x", c.name, on(), c.off)
			}
		}
	}
}
