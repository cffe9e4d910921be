//go:build linux || darwin

package term

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// keys is a terminal that can be asked whether there is something to read.
type keys struct{ fd int }

// terminal is nil where in is none.
func terminal(in io.Reader) *keys {
	f, ok := in.(*os.File)
	if !ok {
		return nil
	}
	fd := int(f.Fd())
	if fd < 0 || fd >= unix.FD_SETSIZE || !term.IsTerminal(fd) {
		return nil
	}
	return &keys{fd}
}

// wait waits until there is something to read: a whole line, or the end.
func (k *keys) wait() { k.readable(nil) }

// has reports whether there is something to read.
func (k *keys) has() bool { return k.readable(&unix.Timeval{}) }

// readable is true in doubt: the read then returns the error. (Not every system lets a terminal be polled; all can
// select it.)
func (k *keys) readable(limit *unix.Timeval) bool {
	for {
		var set unix.FdSet
		set.Set(k.fd)
		n, err := unix.Select(k.fd+1, &set, nil, nil, limit)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || n > 0
		}
	}
}

// dropTyped drops the unread input of a terminal, also a line that is not finished. A stream that is no terminal
// keeps all.
func dropTyped(in io.Reader) {
	if f, ok := in.(*os.File); ok {
		_ = flushInput(int(f.Fd())) // it is not a terminal
	}
}

// keyMode makes a terminal give each key at once and show none. Ctrl-C stays a signal. restore undoes it.
func keyMode(in io.Reader) (restore func(), err error) {
	k := terminal(in)
	if k == nil {
		return nil, errNoKeys
	}
	before, err := unix.IoctlGetTermios(k.fd, getMode)
	if err != nil {
		return nil, fmt.Errorf("read single keys: %w", err)
	}
	mode := *before
	mode.Lflag &^= unix.ICANON | unix.ECHO
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(k.fd, setMode, &mode); err != nil {
		return nil, fmt.Errorf("read single keys: %w", err)
	}
	return func() { _ = unix.IoctlSetTermios(k.fd, setMode, before) }, nil // a lost terminal has no mode
}
