// Command crashloop kills a busy roost at random moments, again and again, and
// checks after each kill that nothing acknowledged is lost, nothing was done
// twice and every file can be read. The last line of its output is the summary;
// it ends with 1 when anything was wrong.
//
//	go run ./internal/testing/crashloop -n 2000 [-seed S] [-parallel 2]
//	go run ./internal/testing/crashloop -job -n 200
//
// With -job it plays a job of 60 turns that uses every tool, asks, has subtasks and meets
// a provider's faults, in the dialect of each provider, and holds the workspace in the
// end against that of a job that was not killed.
//
// The seed decides the moments, not how far a process gets until then: a run
// cannot be repeated exactly. The folders of a task with trouble are kept.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/internal/testing/crashtest/job"
	"github.com/roost-dev/roost/internal/testing/mcptest"
)

func main() {
	mcptest.Main() // the job's MCP server is this program
	n := flag.Int("n", 2000, "how many rounds; each starts or resumes a task and kills it")
	whole := flag.Bool("job", false, "kill the long job with all tools instead, n times in all")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "for the random moments")
	parallel := flag.Int("parallel", 2, "how many tasks at once")
	limit := flag.Duration("for", 0, "stop after this long (0 = no limit)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *limit)
		defer cancel()
	}
	code, err := 0, error(nil)
	if *whole {
		code, err = jobs(ctx, job.Whole(), *n, *seed, *parallel)
	} else {
		code, err = loop(ctx, *n, *seed, *parallel)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crashloop:", err)
		code = 1
	}
	os.Exit(code)
}

// tally is what all tasks together went through.
type tally struct {
	mu                                                  sync.Mutex
	kills, ends, tasks, durable, reads, lines, unknowns int
	troubles                                            []string
}

func (t *tally) trouble(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	t.troubles = append(t.troubles, text)
	fmt.Fprintln(os.Stderr, "TROUBLE:", text)
}

func (t *tally) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.troubles)
}

func (t *tally) add(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// scratch makes a folder with a roost in it.
func scratch(ctx context.Context) (dir, program string, err error) {
	if dir, err = os.MkdirTemp("", "roost-crashloop-*"); err != nil {
		return "", "", fmt.Errorf("make a scratch folder: %w", err)
	}
	program = filepath.Join(dir, "roost")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", program, "github.com/roost-dev/roost/cmd/roost")
	if out, err := build.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("build roost: %w: %s", err, out)
	}
	return dir, program, nil
}

// loop plays n rounds on parallel tasks at once.
func loop(ctx context.Context, n int, seed uint64, parallel int) (int, error) {
	dir, program, err := scratch(ctx)
	if err != nil {
		return 1, err
	}
	fmt.Printf("crashloop: %d rounds, %d tasks at once, seed %d\n", n, parallel, seed)
	begun := time.Now()
	t := &tally{}
	var left atomic.Int64
	left.Store(int64(n))
	var serial atomic.Uint64
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for ctx.Err() == nil && left.Load() > 0 {
				k := serial.Add(1)
				before := t.count()
				v := newVictim(t, program, filepath.Join(dir, fmt.Sprintf("task-%d", k)), seed, k)
				v.live(ctx, &left)
				if t.count() == before {
					_ = os.RemoveAll(v.dir)
				}
			}
		})
	}
	workers.Wait()
	took := time.Since(begun)
	fmt.Printf("crashloop: %d rounds (%d killed, %d ended first), %d tasks completed, %d durable events printed and found, "+
		"%d file reads, %d command lines, %d unknown outcomes, seed %d, %s, %.1f rounds/s: %d troubles\n",
		t.kills+t.ends, t.kills, t.ends, t.tasks, t.durable, t.reads, t.lines, t.unknowns, seed,
		took.Round(time.Second), float64(t.kills+t.ends)/took.Seconds(), len(t.troubles))
	if len(t.troubles) > 0 {
		fmt.Println("kept:", dir)
		return 1, nil
	}
	return 0, os.RemoveAll(dir)
}
