package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// fileText is the size of each file that a turn reads: 200 of them make a request
// of 1 MB.
const fileText = 5 << 10

// turns measures the engine between an instant model's reply and its next
// request. The yardstick runs in the model, between a request and its reply: then
// the engine only waits.
func turns(ctx context.Context, o options) ([]row, error) {
	n := 200
	if o.quick {
		n = 20
	}
	home := filepath.Join(o.dir, "turns")
	m, err := startModel(n)
	if err != nil {
		return nil, err
	}
	floor, err := newFloor(o.dir, "turns.floor")
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	defer floor.close()
	block := []byte(prose(1, fileText))
	m.before = func() error { return floor.add(block) }
	c, err := runAgent(ctx, o, m, home, n)
	if err = errors.Join(err, m.close()); err != nil {
		return nil, err
	}
	all := m.overhead()
	if len(all) < n {
		return nil, fmt.Errorf("%d requests came, %d were expected; the program said:\n%s", len(m.arrived), n+1, tail(c.out, 2000))
	}
	all = all[:n]
	bare := floor.taken
	q1, q4 := all[:n/4], all[n-n/4:]
	rows := []row{
		{
			what: fmt.Sprintf("3 overhead per turn, %d turns to %s, median", n, mb(int64(m.sizes[n]))),
			got:  ms(all.median()), floor: ms(bare.median()), ratio: over(all.median(), bare.median()), bar: "<= 5x",
		},
		{
			what: "3 the same, p99", got: ms(all.p99()), floor: ms(bare.p99()), ratio: over(all.p99(), bare.p99()),
			bar: "<= " + ms(max(12*time.Millisecond, 3*bare.p99())),
		},
		{
			what: "3 the same, last quarter against the first",
			got:  ms(q4.median()), floor: ms(q1.median()), ratio: over(q4.median(), q1.median()), bar: "flat",
		},
	}
	if c.peak > 0 {
		rows = append(rows, row{what: fmt.Sprintf("4 peak memory of the %d turns", n), got: mb(c.peak), bar: "<= 50 MB"})
	}
	return append(rows, row{
		what: "4 process start to first request", got: ms(m.arrived[0].Sub(c.begun)), bar: "<= 100 ms",
	}), nil
}

// runAgent lets the program work against a model in a workspace of n files.
func runAgent(ctx context.Context, o options, m *model, home string, n int) (child, error) {
	ws := filepath.Join(home, "ws")
	if err := fillWorkspace(ws, n, fileText); err != nil {
		return child{}, err
	}
	return start(ctx, o, home, 10*time.Millisecond, "run", "--no-input", "--approve", "all",
		"--provider", "anthropic", "--base-url", m.url, "--model", "claude-sonnet-4-5", "-C", ws, "Read the files.")
}

// fillWorkspace makes a workspace of n files that a model asks for.
func fillWorkspace(ws string, n, size int) error {
	if err := os.MkdirAll(ws, 0o700); err != nil {
		return fmt.Errorf("make a workspace: %w", err)
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(ws, fmt.Sprintf("f%03d.txt", i)), []byte(prose(i, size)), 0o600); err != nil {
			return fmt.Errorf("fill the workspace: %w", err)
		}
	}
	return nil
}

// streamedRow is a run whose one reply streams long enough to be checkpointed
// many times. The request rows and run records of the task count too.
func streamedRow(ctx context.Context, o options) ([]row, error) {
	home := filepath.Join(o.dir, "streamed")
	m, err := startModel(0)
	if err != nil {
		return nil, err
	}
	m.text, m.pause = prose(7, 64<<10), time.Millisecond
	_, err = runAgent(ctx, o, m, home, 0)
	if err = errors.Join(err, m.close()); err != nil {
		return nil, err
	}
	logs, err := filepath.Glob(filepath.Join(home, "roost", "tasks", "*", "journal.jsonl"))
	if err != nil || len(logs) != 1 {
		return nil, fmt.Errorf("the run left %d journals, not one", len(logs))
	}
	log, err := fileSize(logs[0])
	if err != nil {
		return nil, err
	}
	var messages int64
	for _, name := range []string{"ui_messages.json", "api_conversation_history.json"} {
		size, err := fileSize(filepath.Join(filepath.Dir(logs[0]), name))
		if err != nil {
			return nil, err
		}
		messages += size
	}
	return []row{{
		what: "2 journal bytes, run with a streamed 64 KB reply",
		got:  fmt.Sprintf("%d B", log), floor: fmt.Sprintf("%d B", messages), ratio: over(log, messages), bar: "<= 1.20x",
	}}, nil
}
