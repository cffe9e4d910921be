package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/workspace/shell"
)

// Bench is one root, one workspace and one model.
type Bench struct {
	Program   string // the roost binary
	Dir       string // holds everything
	Workspace string
	Sources   string   // for --sources
	Model     []string // flags that name provider and model
	Env       []string // further variables
	Mark      string   // in the environment of every process that a child starts, and all those start
}

// NewBench makes the folders below dir.
func NewBench(program, dir string) (*Bench, error) {
	b := &Bench{Program: program, Dir: dir, Workspace: filepath.Join(dir, "workspace"), Sources: "none", Mark: shell.NewMark()}
	for _, sub := range []string{"workspace", "home", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("make a bench: %w", err)
		}
	}
	return b, nil
}

// Root is Roost's own root on the bench.
func (b *Bench) Root() string { return filepath.Join(b.Dir, "root") }

// UseScript writes the turns as a script and plays it.
func (b *Bench) UseScript(turns []Turn) error {
	text, err := Script(turns)
	if err != nil {
		return err
	}
	path := filepath.Join(b.Dir, "script.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("write the script: %w", err)
	}
	b.Model = []string{"--provider", "script", "--model", path}
	return nil
}

// UseServer asks a loopback server in the dialect of a provider.
func (b *Bench) UseServer(provider, url string) {
	model := map[string]string{"anthropic": "claude-sonnet-4-5", "openai": "gpt-5.1", "openai-compatible": "any", "google": "gemini-3-pro"}[provider]
	b.Model = []string{"--provider", provider, "--model", model}
	name := strings.ToUpper(strings.ReplaceAll(provider, "-", "_"))
	b.Env = append(b.Env, name+"_BASE_URL="+url, name+"_API_KEY=test-key")
}

// Child is what one process did.
type Child struct {
	Task   string
	Lines  []json.RawMessage // whole lines of stdout
	Errors string            // stderr
	Code   int               // -1 when a signal ended it
	Killed bool
	Took   time.Duration
}

// Command builds one invocation with --json.
func (b *Bench) Command(ctx context.Context, fail string, args ...string) *exec.Cmd {
	args = append([]string{
		"--root", b.Root(), "--cache", filepath.Join(b.Dir, "cache"),
		"--sources", b.Sources, "--json", "--no-input",
	}, args...)
	cmd := exec.CommandContext(ctx, b.Program, args...)
	cmd.Dir = b.Workspace
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(b.Dir, "home"), "TMPDIR=" + filepath.Join(b.Dir, "tmp"), "LANG=C",
		markVar + "=" + b.Mark,
	}
	cmd.Env = append(cmd.Env, b.Env...)
	if fail != "" {
		cmd.Env = append(cmd.Env, failpoint.Env+"="+fail)
	}
	return cmd
}

// Run runs roost to its end, by itself, by the failpoint, or by a kill after a
// while (0 = never).
func (b *Bench) Run(ctx context.Context, fail string, kill time.Duration, args ...string) (Child, error) {
	return b.run(ctx, fail, func(send func(os.Signal)) (stop func()) {
		if kill <= 0 {
			return func() {}
		}
		timer := time.AfterFunc(kill, func() { send(os.Kill) })
		return func() { timer.Stop() }
	}, args...)
}

// RunUntil runs roost to its end, by itself, by the failpoint, or by a kill as soon as
// the channel gives something or is closed.
func (b *Bench) RunUntil(ctx context.Context, fail string, kill <-chan struct{}, args ...string) (Child, error) {
	signals := make(chan os.Signal)
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		select {
		case <-kill:
		case <-ctx.Done():
			return
		}
		select {
		case signals <- os.Kill:
		case <-ctx.Done():
		}
	})
	defer done.Wait()
	defer cancel()
	return b.RunSignalled(ctx, fail, signals, args...)
}

// RunSignalled runs roost to its end, by itself, by the failpoint, or by the signals
// that the channel gives.
func (b *Bench) RunSignalled(ctx context.Context, fail string, signals <-chan os.Signal, args ...string) (Child, error) {
	return b.run(ctx, fail, func(send func(os.Signal)) (stop func()) {
		var done sync.WaitGroup
		ended := make(chan struct{})
		done.Go(func() {
			for {
				select {
				case s := <-signals:
					send(s)
				case <-ended:
					return
				}
			}
		})
		return func() { close(ended); done.Wait() }
	}, args...)
}

func (b *Bench) run(ctx context.Context, fail string, arm func(send func(os.Signal)) (stop func()), args ...string) (Child, error) {
	var c Child
	cmd := b.Command(ctx, fail, args...)
	// Files, not pipes: a command that outlives the child holds its pipes open.
	out, err := os.CreateTemp(b.Dir, "stdout-*")
	if err != nil {
		return c, fmt.Errorf("run roost: %w", err)
	}
	defer os.Remove(out.Name())
	defer out.Close()
	errs, err := os.CreateTemp(b.Dir, "stderr-*")
	if err != nil {
		return c, fmt.Errorf("run roost: %w", err)
	}
	defer os.Remove(errs.Name())
	defer errs.Close()
	cmd.Stdout, cmd.Stderr = out, errs
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return c, fmt.Errorf("run roost: %w", err)
	}
	stop := arm(func(s os.Signal) { _ = cmd.Process.Signal(s) }) // it may have ended by itself
	err = cmd.Wait()
	stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return c, fmt.Errorf("run roost: %w", err)
	}
	c.Took, c.Code, c.Killed = time.Since(begun), cmd.ProcessState.ExitCode(), cmd.ProcessState.ExitCode() < 0
	stdout, err := os.ReadFile(out.Name())
	if err != nil {
		return c, fmt.Errorf("read what roost printed: %w", err)
	}
	stderr, err := os.ReadFile(errs.Name())
	if err != nil {
		return c, fmt.Errorf("read what roost printed: %w", err)
	}
	c.Errors = string(stderr)
	return c, c.read(stdout)
}

// read takes whole lines only: a line that a kill cut short acknowledges nothing.
func (c *Child) read(stdout []byte) error {
	for line := range bytes.Lines(stdout) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var head struct {
			Task string `json:"task_id"`
		}
		if err := json.Unmarshal(line, &head); err != nil {
			return fmt.Errorf("a line of stdout is not JSON: %w: %s", err, line)
		}
		if c.Task == "" {
			c.Task = head.Task
		}
		c.Lines = append(c.Lines, bytes.TrimSpace(line))
	}
	return nil
}

// Doctor has roost verify everything on the bench. A last line that the kill cut in the middle of its write is no
// damage: it never was a commit, and the next owner sets it aside.
func (b *Bench) Doctor(ctx context.Context) error {
	c, err := b.Run(ctx, "", 0, "doctor")
	if err != nil {
		return err
	}
	var report struct {
		Damaged []struct{ File, Problem string } `json:"damaged"`
	}
	if len(c.Lines) > 0 {
		if err := json.Unmarshal(c.Lines[0], &report); err != nil {
			return fmt.Errorf("read what doctor found: %w: %s", err, c.Lines[0])
		}
	}
	torn := 0
	for _, d := range report.Damaged {
		if d.File == "journal.jsonl" && strings.HasPrefix(d.Problem, "unfinished last line") {
			torn++
		}
	}
	if c.Code == 0 || c.Code == 15 && torn > 0 && torn == len(report.Damaged) {
		return nil
	}
	return fmt.Errorf("doctor: %d: %s %s", c.Code, c.Lines, c.Errors)
}

// Tasks are the ids of the tasks under the bench's own root, in order of age.
func (b *Bench) Tasks() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(b.Root(), "tasks"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the tasks: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !strings.HasSuffix(e.Name(), ".lock") {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}
