package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// child is one run of the program.
type child struct {
	begun time.Time
	took  time.Duration
	peak  int64 // bytes, 0 when unknown
	out   []byte
}

// start runs the program with a home of its own and watches its memory.
func start(ctx context.Context, o options, home string, every time.Duration, args ...string) (child, error) {
	cmd := exec.CommandContext(ctx, o.roost, args...)
	cmd.Env = append(os.Environ(),
		"HOME="+home, "ROOST_ROOT="+filepath.Join(home, "roost"), "ROOST_CACHE="+filepath.Join(home, "cache"),
		"ROOST_SOURCES=none", "ANTHROPIC_API_KEY=bench",
	)
	cmd.Env = append(cmd.Env, o.env...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.Writer(&problems)
	c := child{begun: time.Now()}
	if err := cmd.Start(); err != nil {
		return c, fmt.Errorf("start %s: %w", o.roost, err)
	}
	ended, watched := make(chan struct{}), make(chan int64)
	go func() {
		var peak int64
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			peak = max(peak, peakMemory(cmd.Process.Pid))
			select {
			case <-tick.C:
			case <-ended:
				watched <- peak
				return
			}
		}
	}()
	err := cmd.Wait()
	c.took = time.Since(c.begun)
	close(ended)
	c.peak, c.out = <-watched, out.Bytes()
	if err != nil {
		return c, fmt.Errorf("%s %s: %w\n%s", filepath.Base(o.roost), args[0], err, tail(problems.Bytes(), 2000))
	}
	return c, nil
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }
