package picker

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/internal/testing/screen"
)

// broken is a Backend that fails by a mistake.
type broken struct{ counter }

func (*broken) Tasks(context.Context) iter.Seq2[Found, error] { panic("a mistake") }

// late is a Backend that fails while the list is read.
type late struct{ counter }

func (*late) Tasks(context.Context) iter.Seq2[Found, error] {
	return func(func(Found, error) bool) { panic("a mistake") }
}

// opened is a terminal without a program.
func opened(t *testing.T) *screen.Terminal {
	t.Helper()
	x, err := screen.Open(screen.Options{})
	if errors.Is(err, screen.ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

// A mistake of ours and an end from outside leave the terminal as it was.
func TestTheTerminalIsGivenBack(t *testing.T) {
	// A panic that reaches bubbletea leaves its reader at the terminal. Bubbletea prints such a panic.
	stderr := os.Stderr
	caught, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	os.Stderr = caught
	t.Cleanup(func() {
		os.Stderr = stderr
		caught.Close()
		if text, err := os.ReadFile(caught.Name()); err != nil || len(text) > 0 {
			t.Errorf("bubbletea caught a panic, want none: %v %.500s", err, text)
		}
	})
	for _, tt := range []struct {
		name    string
		backend Backend
		o       Options
		end     bool
		want    error
	}{
		{"a panic at the start", new(broken), Options{}, false, term.ErrPanic},
		{"a panic while the list is read", new(late), Options{}, false, term.ErrPanic},
		{"a panic while it is drawn", &counter{parts: whole(chores("paint"))}, Options{Now: func() time.Time { panic("a mistake") }}, false, term.ErrPanic},
		{"an end from outside", &counter{parts: whole(chores("paint"))}, Options{}, true, context.Canceled},
	} {
		terminal := opened(t).Device()
		before, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if tt.end {
			cancel()
		}
		_, err = Run(ctx, tt.backend, terminal, terminal, tt.o)
		cancel()
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want errors.Is(err, tt.want)", tt.name, err)
		}
		after, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil || *after != *before {
			t.Errorf("%s: the terminal was %+v and is %+v", tt.name, before, after)
		}
	}
}

// A terminal that does not report its size shows the list as one of 80 columns does.
func TestATerminalWithoutASize(t *testing.T) {
	x := opened(t)
	if err := unix.IoctlSetWinsize(int(x.Device().Fd()), unix.TIOCSWINSZ, new(unix.Winsize)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := Run(ctx, &counter{parts: whole(chores("paint"))}, x.Device(), x.Device(), Options{})
		ended <- err
	}()
	waiting, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if _, err := x.WaitFor(waiting, "paint"); err != nil {
		t.Errorf("the list is not shown: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// Linking this package must not make every command slower: packages that it brings
// along have cost as much as the rest of a start.
func TestStartingCostsLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	best := map[string]float64{}
	for range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		data, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		out := string(data)
		for _, line := range strings.Split(out, "\n") {
			var name string
			var at, took float64
			if n, _ := fmt.Sscanf(line, "init %s @%f ms, %f ms clock", &name, &at, &took); n == 3 {
				if old, ok := best[name]; !ok || took < old {
					best[name] = took
				}
			}
		}
	}
	if len(best) == 0 {
		t.Fatal("no package said what its start costs")
	}
	for name, took := range best {
		if took > 8 && (strings.Contains(name, "charm") || strings.Contains(name, "runewidth") || strings.Contains(name, "uax29")) {
			t.Errorf("%s takes %.1f ms before main; go-runewidth of 0.0.25 and later does", name, took)
		}
	}
}
