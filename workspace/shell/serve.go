package shell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// exitWait limits how long a program may take to end by itself once its stdin is closed.
const exitWait = 300 * time.Millisecond

// Program is a program that serves over stdin and stdout for as long as its owner wants, unlike a Command, which runs
// to its end. It runs without a shell.
type Program struct {
	Path   string // a name without a slash is searched in PATH; with one it is relative to Dir
	Args   []string
	Dir    string    // working directory, absolute
	Env    []string  // its whole environment, apart from the mark
	Mark   string    // see Command.Mark; it must be usable, and others may have the same one
	Stderr io.Writer // gets stderr from one goroutine; nil discards
}

// Child is a running Program. Reading Out ends when the program has closed it or
// End was called.
type Child struct {
	In  io.WriteCloser
	Out io.ReadCloser

	process Process
	done    chan struct{} // closed when the program itself has ended
	state   *os.ProcessState
	errs    *os.File
	pumped  chan struct{}
	once    sync.Once
	left    []Member
	moment  time.Duration // for the program to end by itself once its stdin is closed
}

// Serve starts a program. The caller must End the Child.
//
// If this process dies, the program's stdin ends, which asks a server to exit, and on Linux the program gets SIGTERM:
// the kernel sends that when the thread that forked ends, so Serve keeps a thread for the program's whole life.
// FindMarked finds processes that still survive.
func Serve(p Program) (*Child, error) {
	if !usableMark(p.Mark) {
		return nil, fmt.Errorf("start %s: the mark %q cannot be found again", p.Path, p.Mark)
	}
	if err := checkFolder(p.Dir); err != nil {
		return nil, fmt.Errorf("start %s in %s: %w", p.Path, p.Dir, err)
	}
	var theirs, ours [3]*os.File
	var err error
	for i := range 3 {
		r, w, perr := os.Pipe()
		if err = errors.Join(err, perr); perr != nil {
			continue
		}
		if theirs[i], ours[i] = w, r; i == 0 {
			theirs[i], ours[i] = r, w
		}
	}
	if err != nil {
		shut(append(theirs[:], ours[:]...))
		return nil, fmt.Errorf("start %s: open its pipes: %w", p.Path, err)
	}
	cmd := exec.Command(p.Path, p.Args...) //nolint:gosec // the user's settings name it, and a person allowed it
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Dir, theirs[0], theirs[1], theirs[2]
	// Beside the mark that it may share with others it carries one of its own: to end
	// it must not end them.
	own := NewMark()
	cmd.Env = environ(Command{Dir: p.Dir, Env: append([]string{}, p.Env...)}, p.Mark+","+own)
	cmd.SysProcAttr = serving()
	c := &Child{In: ours[0], Out: ours[1], errs: ours[2], done: make(chan struct{}), moment: exitWait}
	started := make(chan error)
	go c.hold(cmd, own, started)
	err = <-started
	shut(theirs[:]) // the program has its own copies; ours would keep the pipes open for ever
	if err != nil {
		shut(ours[:])
		return nil, fmt.Errorf("start %s: %w", p.Path, err)
	}
	c.pumped = startPump(c.errs, p.Stderr).done
	return c, nil
}

func shut(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// hold starts the program and keeps its thread until it has ended.
func (c *Child) hold(cmd *exec.Cmd, mark string, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	c.process = identify(cmd.Process.Pid, mark)
	started <- nil
	_ = cmd.Wait() // how it ended is in the state
	c.state = cmd.ProcessState
	close(c.done)
}

// Done returns a channel that is closed when the program itself has ended; processes that it started may still live.
func (c *Child) Done() <-chan struct{} { return c.done }

// Drained returns a channel that is closed when all output on stderr has gone to Program.Stderr: a moment after the
// program has ended, or later, when processes that it started hold the pipe.
func (c *Child) Drained() <-chan struct{} { return c.pumped }

// Status describes in words how the program ended, "" while it runs.
func (c *Child) Status() string {
	select {
	case <-c.done:
	default:
		return ""
	}
	exit, signal := status(c.state)
	if signal != "" {
		return "it was ended by " + signal
	}
	return fmt.Sprintf("it ended with exit code %d", exit)
}

// End closes the program's stdin, gives it a moment to end by itself, and then ends it and everything that it
// started, within two seconds. It returns the processes that even SIGKILL did not end. It may be called more than
// once and from several goroutines.
func (c *Child) End() []Member {
	c.once.Do(func() {
		_ = c.In.Close()
		select {
		case <-c.done:
		case <-time.After(c.moment):
		}
		if left := await(c.process, members, pollEvery, nil); len(left) > 0 {
			c.left = end(c.process, members)
		}
		if len(c.left) == 0 {
			<-c.done
		}
		_ = c.Out.Close()
		select {
		case <-c.pumped: // its last output may hold the reason
		case <-time.After(pipeQuiet): // a process that is not the program's holds the pipe
		}
		_ = c.errs.Close()
		<-c.pumped
	})
	return c.left
}
