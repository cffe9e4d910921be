package term

import (
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/roost-dev/roost/api"
)

// presser is a person at a terminal whose clock stands until the test moves it.
type presser struct {
	t    *testing.T
	keys *os.File
	p    *Prompter

	mu    sync.Mutex
	out   strings.Builder
	at    time.Time
	looks int            // at the clock
	timer chan time.Time // fires when the test moves the clock
}

func newPresser(t *testing.T) *presser {
	t.Helper()
	keys, terminal := pty(t)
	x := &presser{t: t, keys: keys, at: time.UnixMilli(1_000_000), timer: make(chan time.Time)}
	x.p = NewPrompter(New(x, Options{}), terminal).ByKey()
	x.p.after = func(time.Duration) <-chan time.Time { return x.timer }
	x.p.now = func() time.Time {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.looks++
		return x.at
	}
	t.Cleanup(func() { _, _ = io.WriteString(keys, "\n\x04") }) // the reader of the terminal ends
	return x
}

func (x *presser) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.Write(p)
}

func (x *presser) until(what string, ok func() bool) {
	x.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		x.mu.Lock()
		done, out := ok(), x.out.String()
		x.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(end) {
			x.t.Fatalf("it never happened: %s\n%s", what, out)
		}
	}
}

// shows waits for the end of what is on the terminal.
func (x *presser) shows(end string) {
	x.t.Helper()
	x.until(end, func() bool { return strings.HasSuffix(x.out.String(), end) })
}

// press presses keys, and returns when the prompt has looked at them.
func (x *presser) press(keys string) {
	x.t.Helper()
	x.mu.Lock()
	looks := x.looks
	x.mu.Unlock()
	if _, err := io.WriteString(x.keys, keys); err != nil {
		x.t.Fatal(err)
	}
	x.until("a look at "+keys, func() bool { return x.looks > looks })
}

// arms lets the time pass in which nothing is typed.
func (x *presser) arms() {
	x.t.Helper()
	x.mu.Lock()
	x.at = x.at.Add(ArmAfter)
	x.mu.Unlock()
	x.timer <- time.Time{}
	x.shows("q stop > ")
}

func (x *presser) asks(q api.QuestionOpened) <-chan Reply {
	got := make(chan Reply, 1)
	go func() {
		r, err := x.p.Ask(x.t.Context(), q)
		if err != nil {
			x.t.Error(err)
		}
		got <- r
	}()
	return got
}

func TestOneKeyAnswersOnceTheQuestionIsArmed(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	file := api.QuestionOpened{Kind: "approval", Text: "write a", Diff: "+a\n", Always: "all writes"}
	tests := []struct {
		name string
		do   func(x *presser)
		want Reply
		says string
	}{
		{"y", func(x *presser) { x.arms(); x.press("y") }, Reply{Approve: &yes}, "q stop > y\n"},
		{"a", func(x *presser) { x.arms(); x.press("a") }, Reply{Approve: &yes, Always: true}, "a: always allow all writes\n"},
		{"q", func(x *presser) { x.arms(); x.press("q") }, Reply{Stop: true}, ""},
		{"an early key answers nothing", func(x *presser) { x.press("y"); x.arms(); x.press("q") }, Reply{Stop: true}, ""},
		{"Enter is never yes", func(x *presser) {
			x.press("y")
			x.press("\n")
			x.arms()
			x.press("\n")
			x.shows("q stop")
			x.arms()
			x.press("q")
		}, Reply{Stop: true}, "Enter alone is not an answer"},
		{"keys in one piece are pasted", func(x *presser) { x.arms(); x.press("yes"); x.arms2(); x.press("q") }, Reply{Stop: true}, ""},
		{"the whole diff", func(x *presser) { x.arms(); x.press("d"); x.shows("q stop"); x.arms(); x.press("y") }, Reply{Approve: &yes}, "q stop > d\n  +a\n"},
		{"a reason", func(x *presser) {
			x.arms()
			x.press("n")
			x.shows("Esc goes back) > ")
			x.write("use x")
			x.shows("> use x")
			x.write("\x7fb")
			x.shows("use x\b \bb")
			x.write("\n")
		}, Reply{Approve: &no, Text: "use b"}, ""},
		{"no reason", func(x *presser) { x.arms(); x.press("n"); x.shows("back) > "); x.write("\n") }, Reply{Approve: &no}, ""},
		{"Esc goes back", func(x *presser) {
			x.arms()
			x.press("n")
			x.shows("back) > ")
			x.write("\x1b")
			x.shows("q stop")
			x.arms()
			x.press("y")
		}, Reply{Approve: &yes}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newPresser(t)
			got := x.asks(file)
			x.shows("q stop")
			tt.do(x)
			if diff := cmp.Diff(tt.want, <-got); diff != "" {
				t.Errorf("the reply (-want +got):\n%s", diff)
			}
			if out := x.out.String(); !strings.Contains(out, tt.says) {
				t.Errorf("got\n%s\nwant %q in it", out, tt.says)
			}
		})
	}
}

// arms2 lets the time pass behind keys that answered nothing: the prompt stands as it did.
func (x *presser) arms2() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.at = x.at.Add(ArmAfter)
}

func (x *presser) write(keys string) {
	if _, err := io.WriteString(x.keys, keys); err != nil {
		x.t.Error(err)
	}
}

// After Ctrl-Z and fg the last line of the terminal is the shell's: the prompt must be shown again, with what was typed.
func TestThePromptIsShownAgainAfterCtrlZ(t *testing.T) {
	const letters = "  y once, n no (reason), d diff, q stop"
	for _, c := range []struct {
		name string
		do   func(x *presser)
	}{
		{"an early question", func(x *presser) { x.continues(letters); x.arms(); x.press("q") }},
		{"a question", func(x *presser) { x.arms(); x.continues(letters + " > "); x.press("q") }},
		{"half a reason", func(x *presser) {
			x.arms()
			x.press("n")
			x.shows("back) > ")
			x.write("use")
			x.shows("use")
			x.continues("  reason for the model (Enter for none, Esc goes back) > use")
			x.write("\n")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newPresser(t)
			got := x.asks(api.QuestionOpened{Kind: "approval", Text: "write a", Diff: "+a\n"})
			x.shows(letters)
			c.do(x)
			<-got
		})
	}
	x := newPresser(t)
	line := make(chan string)
	go func() {
		text, err := x.p.Read(t.Context(), "a line > ")
		if err != nil {
			t.Error(err)
		}
		line <- text
	}()
	x.shows("a line > ")
	x.continues("a line > ")
	x.write("yes\n")
	if got := <-line; got != "yes" {
		t.Errorf("the line is %q, want yes", got)
	}
}

// continues continues the process as fg does, and waits for the line that it shows.
func (x *presser) continues(want string) {
	x.t.Helper()
	if err := unix.Kill(os.Getpid(), unix.SIGCONT); err != nil {
		x.t.Fatal(err)
	}
	x.shows("\r" + want)
}
