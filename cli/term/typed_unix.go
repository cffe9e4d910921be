//go:build linux || darwin

package term

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// keys reports whether a terminal has something to read. It uses the file's connection, which ends with the file: the
// bare number of a closed descriptor may belong to another file, and a select on it would keep that file open.
type keys struct{ conn syscall.RawConn }

// terminal returns the terminal behind in; nil if in is no terminal.
func terminal(in io.Reader) *keys {
	f, ok := in.(*os.File)
	if !ok {
		return nil
	}
	fd := int(f.Fd())
	if fd < 0 || fd >= unix.FD_SETSIZE || !term.IsTerminal(fd) {
		return nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	return &keys{conn}
}

// wait waits until there is something to read: a whole line, or the end.
func (k *keys) wait() { k.readable(nil) }

// has reports whether there is something to read.
func (k *keys) has() bool { return k.readable(&unix.Timeval{}) }

// readable returns true in doubt: the read then returns the error. (Not every system lets a program poll a terminal;
// all support select.)
func (k *keys) readable(limit *unix.Timeval) (yes bool) {
	err := k.conn.Control(func(fd uintptr) {
		for again := true; again; {
			var set unix.FdSet
			set.Set(int(fd))
			n, err := unix.Select(int(fd)+1, &set, nil, nil, limit)
			yes, again = err != nil || n > 0, errors.Is(err, unix.EINTR)
		}
	})
	return yes || err != nil
}

// dropTyped drops the unread input of a terminal, also an unfinished line. It drops nothing from a stream that is no
// terminal.
func dropTyped(in io.Reader) {
	if f, ok := in.(*os.File); ok {
		_ = flushInput(int(f.Fd())) // it is not a terminal
	}
}

// keyMode makes a terminal pass on each key at once and show none. Ctrl-C stays a signal. restore undoes it.
func keyMode(in io.Reader) (restore func(), err error) {
	return withMode(in, func(m *unix.Termios) { m.Lflag &^= unix.ICANON | unix.ECHO })
}

// Silence turns off the echo of a terminal before a prompt, so that even an early paste is not shown. restore undoes
// it. read reads a line; its error is io.EOF if the user ended the input instead.
func Silence(in *os.File) (read func() (string, error), restore func(), err error) {
	restore, err = withMode(in, func(m *unix.Termios) {
		m.Lflag = m.Lflag&^unix.ECHO | unix.ICANON | unix.ISIG
		m.Iflag |= unix.ICRNL
	})
	return func() (string, error) { return bufio.NewReader(in).ReadString('\n') }, restore, err
}

// withMode changes the mode of a terminal, until restore is called. It does so again after Ctrl-Z: the shell has set its
// own mode.
func withMode(in io.Reader, change func(*unix.Termios)) (restore func(), err error) {
	k := terminal(in)
	if k == nil {
		return nil, errNoKeys
	}
	var before *unix.Termios
	var mode unix.Termios
	set := func(fd int) error { return unix.IoctlSetTermios(fd, setMode, &mode) }
	err = k.control(func(fd int) (err error) {
		if before, err = unix.IoctlGetTermios(fd, getMode); err != nil {
			return err
		}
		mode = *before
		change(&mode)
		mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0 // for single keys; the line mode ignores them
		return set(fd)
	})
	if err != nil {
		return nil, fmt.Errorf("change the terminal's mode: %w", err)
	}
	end := Continued(func() { _ = k.control(set) })
	return func() {
		end()                                                                                  // else a late signal would change the mode after this
		_ = k.control(func(fd int) error { return unix.IoctlSetTermios(fd, setMode, before) }) // a lost terminal has no mode
	}, nil
}

// Continued calls f whenever the process continues after Ctrl-Z, until end is called: the shell has used the terminal.
func Continued(f func()) (end func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGCONT)
	var busy sync.WaitGroup
	busy.Go(func() {
		for range signals {
			f()
		}
	})
	return func() {
		signal.Stop(signals)
		close(signals)
		busy.Wait()
	}
}

// control runs f on the terminal while it is open.
func (k *keys) control(f func(fd int) error) (err error) {
	if lost := k.conn.Control(func(fd uintptr) { err = f(int(fd)) }); lost != nil {
		return lost
	}
	return err
}
