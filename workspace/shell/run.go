// Package shell runs one command line and leaves nothing behind.
//
// The line goes to /bin/sh -c (cmd.exe /C on Windows), not to $SHELL: the same line must mean the same on every
// machine, and a login shell's start files must not take part. It runs in a session of its own, with stdin closed and
// no controlling terminal, so that a program that would prompt fails at once instead of hanging. stdout and stderr
// share one pipe and keep their order, unless the caller wants them apart.
//
// What belongs to a command: every process in its session or process group and, on Linux, every process whose
// environment carries the mark that Run set (this finds daemons that made a session of their own). When the command
// is cancelled, runs out of time or its shell exits, Run ends all of them: SIGTERM, a short grace, SIGKILL. It ends
// processes that the shell left in the background, too, and sets Result.Ended: a step of an agent owns what it
// started. Out of reach are only processes that left the session and also changed their user, cleared their
// environment or wrote over it.
//
// A caller that records Command.Mark before the start finds a command with FindMarked even if the engine is killed
// before it learns of the process. The mark is there as soon as another process can own the task: until the new
// process has its environment it still holds the engine's open files, and so its locks.
//
// PR_SET_PDEATHSIG is not used on purpose. The kernel sends that signal when the thread that forked ends, not the
// process; the Go runtime ends threads as it likes, so a healthy command could be killed at random, unless a thread
// is pinned for each command's whole life. It also does not reach grandchildren. Instead a Process is recorded when
// the command starts; after a crash of the engine Find reports whether it lives, and End ends it.
//
// Serve is for programs that live longer than a call. There a thread is pinned, and they do get that signal.
//
// Limits: only Linux has the mark (FindMarked finds nothing elsewhere); on macOS Find sees the leader only; on other
// Unix systems and on Windows Find cannot detect a reused number and answers false.
package shell

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/api"
)

// Times of an end. Their sum stays under two seconds, which is what a cancel may
// take.
const (
	settle    = 150 * time.Millisecond  // for processes that a shell left behind, to end by themselves
	grace     = 600 * time.Millisecond  // between SIGTERM and SIGKILL
	killWait  = 1100 * time.Millisecond // for the kernel to end them; on a busy machine that takes long
	pipeQuiet = 200 * time.Millisecond  // silence with no process left, after which an outside process must hold the pipe
	pollEvery = 10 * time.Millisecond
)

// Command is one command line to run.
type Command struct {
	Line    string
	Dir     string        // working directory, absolute
	Env     []string      // nil = Environ(os.Environ())
	Timeout time.Duration // 0 = none
	// Output gets stdout and stderr as they come, raw, from one goroutine. It must not block for long, because the
	// command and a cancel wait for it. nil discards the output. After an error nothing more is written, and Run
	// returns the error.
	Output io.Writer
	// Errors gets stderr, which otherwise goes to Output. It must accept everything. nil = Output gets stderr.
	Errors io.Writer
	// Input is the command's stdin; nil = nothing. It is a file and not a reader, so that nothing waits for a command
	// that does not read it.
	Input *os.File
	// Mark is put into the environment of everything that the command starts, so that FindMarked finds it; letters
	// and digits. "" = a new one.
	Mark string
	// Started is called once, before the first byte of output is read.
	Started func(Process)
}

// Result is the outcome of a command.
type Result struct {
	Exit      int      // exit code; 128 + number when a signal ended it; -1 unknown
	Signal    string   // name of that signal, "" otherwise
	TimedOut  bool     // Timeout passed
	Cancelled bool     // the context ended
	Ended     []Member // processes that the shell left running, and that were ended
	Survivors []Member // processes that even SIGKILL did not end in time
	PipeHeld  bool     // a process outside the command keeps its output open
	Duration  time.Duration
}

// Run runs c and returns when it, and everything that it started, has ended. A non-zero exit, a time-out and a cancel
// are results, not errors. Errors: the working directory or the shell is missing, or Output failed (the command was
// then ended).
func Run(ctx context.Context, c Command) (Result, error) {
	if ctx.Err() != nil {
		return Result{Exit: -1, Cancelled: true}, nil
	}
	if err := checkFolder(c.Dir); err != nil {
		return Result{Exit: -1}, fmt.Errorf("run command in %s: %w", c.Dir, err)
	}
	if c.Mark != "" && !usableMark(c.Mark) {
		return Result{Exit: -1}, fmt.Errorf("run command in %s: the mark %q cannot be found again", c.Dir, c.Mark)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return Result{Exit: -1}, fmt.Errorf("run command: open a pipe for its output: %w", err)
	}
	mark := cmp.Or(c.Mark, NewMark())
	cmd := command(c.Line)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, w, w
	if c.Input != nil {
		cmd.Stdin = c.Input
	}
	var errorsOut, errorsIn *os.File
	if c.Errors != nil {
		if errorsOut, errorsIn, err = os.Pipe(); err != nil {
			_, _ = r.Close(), w.Close()
			return Result{Exit: -1}, fmt.Errorf("run command: open a pipe for its errors: %w", err)
		}
		cmd.Stderr = errorsIn
	}
	cmd.Env = environ(c, mark)
	begin := time.Now()
	err = cmd.Start()
	_, _ = w.Close(), errorsIn.Close() // the command has its own copies; ours would keep the pipes open for ever
	if err != nil {
		_, _ = r.Close(), errorsOut.Close()
		return Result{Exit: -1}, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	// The leader cannot be reaped before cmd.Wait, so its number is still its own.
	p := identify(cmd.Process.Pid, mark)
	if c.Started != nil {
		c.Started(p)
	}
	pump, errorsPump := startPump(r, c.Output), startPump(errorsOut, c.Errors)
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	res, err := follow(ctx, c, cmd, p, pump, exited)
	err = errors.Join(err, errorsPump.stop(&res))
	res.Duration = time.Since(begin)
	return res, err
}

func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	return err
}

func environ(c Command, mark string) []string {
	env := slices.Clone(c.Env)
	if env == nil {
		env = Environ(os.Environ())
	}
	if outer := os.Getenv(markVar); outer != "" {
		mark = outer + "," + mark // a command of a command belongs to both
	}
	return set(set(env, markVar+"="+mark), "PWD="+c.Dir)
}

// follow waits until the shell exits, the context ends, the time is over or the output fails, and then ends the
// remaining processes of the command.
func follow(ctx context.Context, c Command, cmd *exec.Cmd, p Process, pump *pump, exited <-chan error) (Result, error) {
	var res Result
	var timeout <-chan time.Time
	if c.Timeout > 0 {
		timeout = time.After(c.Timeout)
	}
	running := true
	select {
	case <-exited: //nolint:errcheck // the exit state is read from the command
		running = false
		// A process that finishes by itself in a moment is neither ended nor reported.
		if left := await(p, members, settle, ctx.Done()); len(left) > 0 {
			res.Ended = left
			res.Survivors = end(p, members)
		}
	case <-ctx.Done():
		res.Cancelled = true
	case <-timeout:
		res.TimedOut = true
	case <-pump.broken:
	}
	if running {
		res.Survivors = end(p, members)
		select {
		case <-exited: //nolint:errcheck // as above
		case <-time.After(killWait):
			// The shell cannot be killed (uninterruptible sleep): report that. The goroutine that waits for it ends
			// with it.
			res.Exit = -1
			return res, pump.stop(&res)
		}
	}
	res.Exit, res.Signal = status(cmd.ProcessState)
	return res, pump.stop(&res)
}

// await polls until no process of p is left or d has passed, and returns the remaining ones.
func await(p Process, look func(Process) []Member, d time.Duration, hurry <-chan struct{}) []Member {
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		left := look(p)
		if len(left) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-hurry:
			return left
		case <-deadline.C:
			return left
		}
	}
}

// end ends all processes that look finds, with SIGTERM and after a grace with SIGKILL. It returns those that still
// live.
func end(p Process, look func(Process) []Member) []Member {
	interrupt(p, look(p))
	if len(await(p, look, grace, nil)) == 0 {
		return nil
	}
	deadline := time.Now().Add(killWait)
	for {
		// Again and again: a process may fork between the look and the signal.
		kill(p, look(p))
		left := await(p, look, 5*pollEvery, nil)
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

// End ends a command that outlived the engine that started it, and everything that the command started. It returns
// nil when no process is left, even when there was none to begin with; the context's error when the context ended
// first.
func End(ctx context.Context, p Process) error {
	if !Find(p) {
		return nil
	}
	return endWithin(ctx, p, recorded, fmt.Sprintf("process group %d", p.PGID))
}

// pump copies output from the pipe to the writer.
type pump struct {
	r      *os.File
	n      atomic.Int64
	busy   atomic.Bool // the writer is at work
	held   atomic.Bool // a process outside the command holds the pipe: stop reading
	done   chan struct{}
	broken chan struct{}
	err    error // the writer's; set before broken is closed
}

// startPump starts a pump; without a pipe it copies nothing.
func startPump(r *os.File, w io.Writer) *pump {
	if r == nil {
		return nil
	}
	p := &pump{r: r, done: make(chan struct{}), broken: make(chan struct{})}
	go p.run(w)
	return p
}

func (p *pump) run(w io.Writer) {
	defer close(p.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := p.r.Read(buf)
		if n > 0 {
			p.busy.Store(true)
			p.n.Add(int64(n))
			if w != nil && p.err == nil {
				if _, werr := w.Write(buf[:n]); werr != nil {
					p.err = werr
					close(p.broken)
				}
			}
			p.busy.Store(false)
		}
		if err != nil || p.held.Load() {
			return // EOF, or the deadline that stop sets
		}
	}
}

// maxPipe is the largest capacity of a pipe that a program may ask the kernel for.
const maxPipe = 1 << 20

// stop waits for the rest of the output. All writers have ended by now, so the end of the pipe is at most one pipe
// buffer away, unless a process outside the command holds the pipe. In that case stop abandons the pipe after
// pipeQuiet without work, or when more has come than a pipe can hold. stop counts ticks, not time: on a busy machine
// the reader is late as well.
func (p *pump) stop(res *Result) error {
	if p == nil {
		return nil
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	first, idle := p.n.Load(), time.Duration(0)
	for {
		select {
		case <-p.done:
			_ = p.r.Close()
			return api.Failed(p.err, "keep the command's output")
		case <-tick.C:
		}
		if !p.busy.Load() {
			idle += pollEvery
		}
		if idle > pipeQuiet || p.n.Load()-first > maxPipe {
			res.PipeHeld = true
			p.held.Store(true)
			if err := p.r.SetReadDeadline(time.Now()); errors.Is(err, os.ErrNoDeadline) {
				_ = p.r.Close()
			}
		}
	}
}

// Beginning keeps the first Most bytes of an output, and discards the rest.
type Beginning struct {
	Most int
	Kept []byte
	Cut  bool // there was more output
}

// Write accepts all bytes.
func (b *Beginning) Write(p []byte) (int, error) {
	room := b.Most - len(b.Kept)
	b.Cut = b.Cut || len(p) > room
	b.Kept = append(b.Kept, p[:min(len(p), room)]...)
	return len(p), nil
}

// Text returns the kept bytes as UTF-8.
func (b *Beginning) Text() string { return strings.ToValidUTF8(string(b.Kept), "\uFFFD") }

// Process identifies a running command even if its number is reused.
type Process struct {
	PGID    int    `json:"pgid"`
	Started int64  `json:"started"`        // kernel start time: clock ticks since boot (Linux), Unix microseconds (macOS), 0 elsewhere
	Boot    string `json:"boot"`           // boot id
	Mark    string `json:"mark,omitempty"` // random word in the environment of everything that it starts
}

// Member is one process of a command.
type Member struct {
	PID     int
	Name    string
	started int64
	grouped bool // in the command's own process group
}

// markVar holds the marks of a command and of the commands that started it, separated by commas.
const markVar = "ROOST_COMMAND"

// secretVars hold the keys with which Roost itself asks models. A command does not need them. Variables of the user's
// own tools (GITHUB_TOKEN, AWS_...) stay: those tools need them, and output is masked elsewhere.
var secretVars = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_API_KEY",
	"CEREBRAS_API_KEY", "COHERE_API_KEY",
	"DEEPSEEK_API_KEY", "FIREWORKS_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY",
	"GROQ_API_KEY", "MISTRAL_API_KEY", "MOONSHOT_API_KEY", "OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY", "OPENROUTER_API_KEY",
	"PERPLEXITY_API_KEY", "REQUESTY_API_KEY", "TOGETHER_API_KEY", "XAI_API_KEY", "ZAI_API_KEY",
}

// plainVars make programs behave without a terminal: no pager, no prompt, no
// colour.
var plainVars = []string{
	"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GH_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat", "AWS_PAGER=",
	"GIT_TERMINAL_PROMPT=0", "SSH_ASKPASS_REQUIRE=never", "DEBIAN_FRONTEND=noninteractive",
}

// gitSettings keep git from treating any folder with the right names in it as a repository, and from running the
// program that a repository names for its status.
var gitSettings = [][2]string{{"safe.bareRepository", "explicit"}, {"core.fsmonitor", "false"}}

// withGitSettings adds gitSettings behind the settings that the environment holds already.
func withGitSettings(env []string) []string {
	values := map[string]string{}
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "GIT_CONFIG_") {
			values[name] = value
		}
	}
	n, err := strconv.Atoi(values["GIT_CONFIG_COUNT"])
	if err != nil || n < 0 || n > 1000 {
		n = 0
	}
	for _, s := range gitSettings {
		at := n
		for i := range n {
			if values[fmt.Sprintf("GIT_CONFIG_KEY_%d", i)] == s[0] && values[fmt.Sprintf("GIT_CONFIG_VALUE_%d", i)] == s[1] {
				at = i // it is there from a command that this one runs in
			}
		}
		env = set(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", at, s[0]))
		env = set(env, fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", at, s[1]))
		n = max(n, at+1)
	}
	return set(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", n))
}

// Environ returns the environment for a command, made from base: without keys of model providers and without ROOST_*
// variables, with settings that keep programs from prompting, paging and colouring, and that keep git from running
// programs that a folder names. The order is that of base.
func Environ(base []string) []string {
	out := slices.DeleteFunc(slices.Clone(base), func(kv string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(kv), "=")
		return strings.HasPrefix(name, "ROOST_") || slices.Contains(secretVars, name)
	})
	for _, kv := range plainVars {
		out = set(out, kv)
	}
	return withGitSettings(out)
}

// set replaces or appends one variable.
func set(env []string, kv string) []string {
	name, _, _ := strings.Cut(kv, "=")
	return append(slices.DeleteFunc(env, func(e string) bool {
		n, _, _ := strings.Cut(e, "=")
		return n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name)
	}), kv)
}

// marked reports whether one environment entry, from text separated by NUL or newline, carries mark.
func marked(kv, mark string) bool {
	v, ok := strings.CutPrefix(kv, markVar+"=")
	return ok && mark != "" && slices.Contains(strings.Split(v, ","), mark)
}

// NewMark makes a mark for Command.Mark: a unique word. A caller that records it before the command starts can find
// the command's processes even if the engine dies before it learns of them: FindMarked needs no number.
func NewMark() string { return rand.Text() }

// usableMark reports whether a mark can be part of the list in the environment variable.
func usableMark(mark string) bool {
	return mark != "" && len(mark) <= 128 && !strings.ContainsAny(mark, ",=\x00\n")
}

// EndMarked ends every process that FindMarked finds, and those that they start in the meantime: SIGTERM, a short
// grace, SIGKILL. It returns what it found at first, nil when there was nothing. The error is the context's, or names
// processes that did not end.
func EndMarked(ctx context.Context, mark string) ([]Member, error) {
	found := FindMarked(mark)
	if len(found) == 0 {
		return nil, nil
	}
	look := func(p Process) []Member { return FindMarked(p.Mark) }
	return found, endWithin(ctx, Process{Mark: mark}, look, "command with mark "+mark)
}

// endWithin is end with a context. When the context ends, endWithin still waits for the end of the attempt, which
// takes a bounded time: an owner waits for its goroutines.
func endWithin(ctx context.Context, p Process, look func(Process) []Member, what string) error {
	done := make(chan []Member, 1)
	go func() { done <- end(p, look) }()
	select {
	case left := <-done:
		if len(left) > 0 {
			return fmt.Errorf("end %s: %d processes would not end, the first is %d (%s); end it by hand", what, len(left),
				left[0].PID, left[0].Name)
		}
		return nil
	case <-ctx.Done():
		<-done
		return context.Cause(ctx)
	}
}
