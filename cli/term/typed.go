package term

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"
)

// typed reads the input of a user. A goroutine reads at most one line ahead: the input after that is for the next
// program on the terminal.
//
// drop must drop all input, in the terminal, during a read, and in memory. So the goroutine reads a terminal only
// when the terminal has input, and no goroutine drops input during the read.
type typed struct {
	in      io.Reader
	open    func()        // starts the reading, once
	news    chan struct{} // holds one token when held or over has changed
	reading chan struct{} // its holder reads the terminal, or drops the terminal's input

	mu    sync.Mutex
	taken sync.Cond // signalled when the last held line was taken
	held  []byte    // input that was read and not used yet
	over  bool      // the input ended
	drops int       // how many times input was dropped
	keys  bool      // single keys are used as they come, and not lines
}

func newTyped(in io.Reader) *typed {
	t := &typed{in: in, news: make(chan struct{}, 1), reading: make(chan struct{}, 1)}
	t.taken.L = &t.mu
	t.open = sync.OnceFunc(func() { go t.read() })
	return t
}

// next returns the next line.
func (t *typed) next(ctx context.Context) (string, error) {
	t.open()
	for {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if line, ok, over := t.take(); ok {
			return line, nil
		} else if over {
			return "", ErrNoInput
		}
		select {
		case <-ctx.Done():
		case <-t.news:
		}
	}
}

// take removes and returns the first line, if there is one.
func (t *typed) take() (line string, ok, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.tell() // another goroutine that waits
	whole, rest, ok := bytes.Cut(t.held, []byte("\n"))
	if !ok && (!t.over || len(t.held) == 0) {
		return "", false, t.over
	}
	t.held = rest
	if !t.waiting() {
		t.taken.Signal()
	}
	return strings.TrimRight(string(whole), "\r\n"), true, false
}

// waiting reports whether take would return something. The caller holds mu.
func (t *typed) waiting() bool {
	return t.over || bytes.IndexByte(t.held, '\n') >= 0 || t.keys && len(t.held) > 0
}

// tell wakes a goroutine that waits for a line, if a line has come. The caller holds mu.
func (t *typed) tell() {
	if t.waiting() {
		select {
		case t.news <- struct{}{}:
		default:
		}
	}
}

// read reads until the input ends, at the latest with the process.
func (t *typed) read() {
	buf := make([]byte, 4096)
	keys := terminal(t.in)
	for over := false; !over; {
		t.mu.Lock()
		for t.waiting() {
			t.taken.Wait()
		}
		t.mu.Unlock()
		if keys == nil {
			n, err := t.in.Read(buf)
			over = t.got(t.count(), buf[:n], err)
			continue
		}
		keys.wait()
		t.reading <- struct{}{}
		if keys.has() {
			before := t.count()
			n, err := t.in.Read(buf)
			over = t.got(before, buf[:n], err)
		}
		<-t.reading
	}
}

func (t *typed) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drops
}

// got adds the input of a read, unless input was dropped since the read began. It reports whether the input has ended.
func (t *typed) got(drops int, read []byte, err error) (over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if drops == t.drops {
		t.held = append(t.held, read...)
	}
	t.over = err != nil
	t.tell()
	return t.over
}

// stuck bounds a read after the terminal reported input. A read that takes longer lost its input to another process,
// so callers do not wait for it.
const stuck = time.Second

// drop drops all input so far.
func (t *typed) drop() {
	late := time.NewTimer(stuck)
	defer late.Stop()
	select {
	case t.reading <- struct{}{}:
		defer func() { <-t.reading }()
		dropTyped(t.in)
	case <-late.C: // got drops the input of this read
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = nil
	t.drops++
	t.taken.Signal()
}

// byKey switches to single keys, which the terminal does not show. ok is false if the terminal cannot do that. end
// switches back to lines.
func (t *typed) byKey() (end func(), ok bool) {
	restore, err := keyMode(t.in)
	if err != nil {
		return nil, false
	}
	t.open()
	t.single(true)
	return func() {
		t.drop() // a key after the answer answers nothing else
		t.single(false)
		restore()
	}, true
}

func (t *typed) single(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keys = on
	t.taken.Signal() // keys that were waiting may be half a line now
}

// alone reports whether single keys are read, and not lines.
func (t *typed) alone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keys
}

// bytes removes and returns all held input.
func (t *typed) bytes() (data []byte, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	data, t.held = t.held, nil
	if !t.waiting() {
		t.taken.Signal()
	}
	return data, t.over
}

// errNoKeys: the input gives only lines.
var errNoKeys = errors.New("the input is no terminal")
