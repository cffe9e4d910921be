package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// written compares what the journal grew by with the JSON of the messages that
// the step added.
func written(ctx context.Context, o options) ([]row, error) {
	var rows []row
	for _, size := range []int{2 << 10, 20 << 10} {
		log, messages, err := writtenBy(ctx, o, size)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{
			what: fmt.Sprintf("2 journal bytes, step of two %d KB messages", size>>10),
			got:  fmt.Sprintf("%d B", log), floor: fmt.Sprintf("%d B", messages), ratio: over(log, messages), bar: "<= 1.20x",
		})
	}
	streamed, err := streamedRow(ctx, o)
	return append(rows, streamed...), err
}

func writtenBy(ctx context.Context, o options, size int) (log, messages int64, err error) {
	const count = 20
	name := fmt.Sprintf("written-%d", size)
	s, err := store.Open(store.Options{Root: filepath.Join(o.dir, name), Program: "bench"})
	if err != nil {
		return 0, 0, err
	}
	t, err := s.Create(ctx, task.Created{Task: name, Number: 1, CreatedAt: baseTS})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()
	path := filepath.Join(t.Ref.Log, "journal.jsonl")
	before, err := fileSize(path)
	if err != nil {
		return 0, 0, err
	}
	for i := range count {
		events, bytes := step(t.State().NextMessage(), i, size)
		messages += int64(len(bytes))
		if err := errors.Join(t.Commit(ctx, events...), t.Barrier(ctx)); err != nil {
			return 0, 0, err
		}
	}
	after, err := fileSize(path)
	return (after - before) / count, messages / count, err
}

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("measure a file: %w", err)
	}
	return info.Size(), nil
}
