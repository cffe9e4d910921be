package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// stepText is the text of one message of a step: 2.5 KB to each history.
const stepText = 2500

// commits measures Commit+Barrier through the store, at several lengths of the
// history, turn about with the yardstick.
func commits(ctx context.Context, o options) ([]row, error) {
	lengths, samples := []int{100, 10_000}, 400
	switch {
	case o.quick:
		lengths, samples = []int{100, 1000}, 30
	case o.full:
		lengths = append(lengths, 100_000)
	}
	var rows []row
	var first time.Duration
	for _, n := range lengths {
		step, bare, err := commitsAt(ctx, o, n, samples)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{
			what: fmt.Sprintf("1 commit of a 5 KB step, %d messages", n),
			got:  ms(step.median()) + ", p99 " + ms(step.p99()), floor: ms(bare.median()) + ", p99 " + ms(bare.p99()),
			ratio: over(step.median(), bare.median()), bar: "<= 1.50x",
		})
		if first == 0 {
			first = step.median()
			continue
		}
		rows = append(rows, row{
			what: fmt.Sprintf("1 the same, %d against %d messages", n, lengths[0]),
			got:  ms(step.median()), floor: ms(first), ratio: over(step.median(), first), bar: "flat",
		})
	}
	return rows, nil
}

func commitsAt(ctx context.Context, o options, n, samples int) (steps, bare times, err error) {
	name := fmt.Sprintf("commit-%d", n)
	s, err := store.Open(store.Options{Root: filepath.Join(o.dir, name), Program: "bench"})
	if err != nil {
		return nil, nil, err
	}
	t, err := s.Create(ctx, task.Created{Task: name, Number: 1, CreatedAt: baseTS})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()
	if err := fill(ctx, t, n); err != nil {
		return nil, nil, err
	}
	floor, err := newFloor(o.dir, name+".floor")
	if err != nil {
		return nil, nil, err
	}
	defer floor.close()
	for i := range samples {
		events, bytes := step(t.State().NextMessage(), n+i, stepText)
		if err := floor.add(bytes); err != nil {
			return nil, nil, err
		}
		begun := time.Now()
		if err := t.Commit(ctx, events...); err != nil {
			return nil, nil, err
		}
		if err := t.Barrier(ctx); err != nil {
			return nil, nil, err
		}
		steps = append(steps, time.Since(begun))
	}
	return steps, floor.taken, nil
}

// fill appends n messages, half of them to each history.
func fill(ctx context.Context, t *store.Task, n int) error {
	for i := range n / 2 {
		events, _ := step(t.State().NextMessage(), i, stepText)
		if err := t.Commit(ctx, events...); err != nil {
			return err
		}
	}
	return t.Barrier(ctx)
}
