package screen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/color"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/charmbracelet/x/vt"
)

// ErrNone: this system has no pseudo-terminals that this package knows.
var ErrNone = errors.New("no pseudo-terminals here")

// ErrEnded: the terminal was closed, and never showed what was waited for.
var ErrEnded = errors.New("the terminal was closed")

// Options are those of a terminal.
type Options struct {
	Size       // 0 = 80 columns, 24 lines
	Light bool // its ground is light: it says so to a program that asks
}

// Terminal is a pseudo-terminal, perhaps with a program on it.
type Terminal struct {
	master, slave *os.File // the slave stays open: what the last process wrote may be lost with it
	cmd           *exec.Cmd
	readers       sync.WaitGroup
	light         bool

	mu      sync.Mutex
	emu     *vt.Emulator
	log     bytes.Buffer
	odd     odd
	changed chan struct{} // closed with the next output
	closed  bool
}

// Open makes a terminal without a program.
func Open(o Options) (*Terminal, error) {
	if o.Size == (Size{}) {
		o.Size = Size{80, 24}
	}
	master, slave, err := openPTY()
	if err != nil {
		return nil, err
	}
	t := &Terminal{master: master, slave: slave, emu: vt.NewEmulator(o.Columns, o.Lines), changed: make(chan struct{}), light: o.Light}
	t.emu.SetLogger(&t.odd)
	if o.Light {
		t.emu.SetDefaultForegroundColor(color.Black)
		t.emu.SetDefaultBackgroundColor(color.White)
	}
	if err := setSize(master, o.Size); err != nil {
		return nil, errors.Join(err, master.Close(), slave.Close())
	}
	t.readers.Go(t.read)
	t.readers.Go(func() { _, _ = io.Copy(t.master, t.emu) }) // the emulator's answers; it ends with Close
	return t, nil
}

// Start starts a program on a new terminal. The program leads a session of its own, as one that a person started.
func Start(cmd *exec.Cmd, o Options) (*Terminal, error) {
	t, err := Open(o)
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = t.slave, t.slave, t.slave, ownSession()
	if err := cmd.Start(); err != nil {
		t.Close()
		return nil, fmt.Errorf("start %s on a terminal: %w", cmd.Path, err)
	}
	t.cmd = cmd
	return t, nil
}

// Close kills the program if it still runs, and frees the terminal.
func (t *Terminal) Close() {
	if t.cmd != nil && t.cmd.ProcessState == nil {
		_ = t.cmd.Process.Kill()
		_ = t.cmd.Wait()
	}
	t.Hangup()
	_ = t.slave.Close()
	if pipe, ok := t.emu.InputPipe().(io.Closer); ok {
		_ = pipe.Close()
	}
	t.readers.Wait()
}

// Hangup closes the terminal under its program, as closing a window does.
func (t *Terminal) Hangup() { _ = t.master.Close() }

// Device is the program's end of the terminal, for a program in this process.
func (t *Terminal) Device() *os.File { return t.slave }

// read feeds the emulator until the terminal is closed.
func (t *Terminal) read() {
	buf := make([]byte, 32<<10)
	for {
		n, err := t.master.Read(buf)
		t.mu.Lock()
		t.log.Write(buf[:n])
		_, _ = t.emu.Write(buf[:n])
		t.closed = err != nil
		close(t.changed)
		t.changed = make(chan struct{})
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Type sends keys, as bytes.
func (t *Terminal) Type(keys string) error {
	if _, err := t.master.WriteString(keys); err != nil {
		return fmt.Errorf("type %q: %w", keys, err)
	}
	return nil
}

// Resize changes the size of the window, and the kernel tells the program.
func (t *Terminal) Resize(s Size) error {
	t.mu.Lock()
	t.emu.Resize(s.Columns, s.Lines)
	t.mu.Unlock()
	return setSize(t.master, s)
}

// Picture is what is on the screen now.
func (t *Terminal) Picture() *Picture {
	t.mu.Lock()
	defer t.mu.Unlock()
	return pictureOf(t.emu)
}

// Log is everything that was written to the terminal, as bytes.
func (t *Terminal) Log() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ReplaceAll(t.log.String(), endMark, "")
}

// Odd are the sequences that the emulator did not know, without private ones: they ask a terminal for what it can.
func (t *Terminal) Odd() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(t.odd), func(text string) bool {
		_, what, csi := strings.Cut(text, `CSI "`)
		return strings.Contains(text, "7777;end") || csi && strings.ContainsAny(what[:1], "<>?")
	})
}

// odd collects what the emulator reports of sequences that it does not know.
type odd []string

// Printf implements vt.Logger.
func (o *odd) Printf(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); strings.HasPrefix(text, "unhandled") {
		*o = append(*o, text)
	}
}

// Wait returns the first picture that fulfils the condition. Its error holds what the screen shows instead.
func (t *Terminal) Wait(ctx context.Context, fulfilled func(*Picture) bool) (*Picture, error) {
	for {
		t.mu.Lock()
		p, changed, closed := pictureOf(t.emu), t.changed, t.closed
		t.mu.Unlock()
		if fulfilled(p) {
			return p, nil
		}
		if closed {
			return p, fmt.Errorf("%w; it showed:\n%s", ErrEnded, p.Text())
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return p, fmt.Errorf("%w; the screen shows:\n%s", ctx.Err(), p.Text())
		}
	}
}

// WaitFor waits until each of the texts is seen; one that begins with "!" must not be seen.
func (t *Terminal) WaitFor(ctx context.Context, texts ...string) (*Picture, error) {
	p, err := t.Wait(ctx, func(p *Picture) bool {
		for _, text := range texts {
			if without, not := strings.CutPrefix(text, "!"); p.Holds(without) == not {
				return false
			}
		}
		return true
	})
	if err != nil {
		err = fmt.Errorf("wait for %q: %w", texts, err)
	}
	return p, err
}

// endMark is written when the program has ended: no program writes it, no terminal shows it.
const endMark = "\x1b]7777;end\a"

// Exit waits until the program has ended and all that it wrote is on the screen, and returns its exit code.
func (t *Terminal) Exit(ctx context.Context) (int, error) {
	done := make(chan struct{})
	go func() {
		_ = t.cmd.Wait() // the exit code says it
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		_ = t.cmd.Process.Kill()
		<-done
		err = fmt.Errorf("wait for the end of %s: %w; the screen shows:\n%s", t.cmd.Path, ctx.Err(), t.Picture().Text())
	}
	if _, errW := t.slave.WriteString(endMark); errW == nil && err == nil {
		_, err = t.Wait(ctx, func(*Picture) bool {
			t.mu.Lock()
			defer t.mu.Unlock()
			return bytes.Contains(t.log.Bytes(), []byte(endMark)) // an answer of the emulator may be echoed behind it
		})
	}
	return t.cmd.ProcessState.ExitCode(), err
}
