package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// pageText makes 50,000 messages of a 500 MB task.
const pageText = 10_000

// pageRounds is how often each page is shown: one cold reading proves little.
const pageRounds = 5

// pages measures the last page of a big task from a cold disk: once from its
// journal, once from a folder of Roo's files that has no journal. The yardstick
// is reading the same files from the cold disk, turn about with the page.
func pages(ctx context.Context, o options) ([]row, error) {
	home := filepath.Join(o.dir, "pages")
	root := filepath.Join(home, "roost")
	const name = "big-task"
	if err := makeBig(ctx, root, name, o.size); err != nil {
		return nil, err
	}
	dir := filepath.Join(root, "tasks", name)
	folder := filepath.Join(home, "roo", "tasks", name)
	if err := copyHistories(dir, folder); err != nil {
		return nil, err
	}
	rows, err := page(ctx, o, home, "journal", "< 200 ms (500 MB)", name, filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		return rows, err
	}
	// The journal goes: the same task is only Roo's files now.
	err = errors.Join(os.RemoveAll(root), os.MkdirAll(filepath.Join(root, "tasks"), 0o700), os.Rename(folder, dir))
	if err != nil {
		return rows, fmt.Errorf("put Roo's folder in place: %w", err)
	}
	more, err := page(ctx, o, home, "Roo's folder", "reading speed", name,
		filepath.Join(dir, "ui_messages.json"), filepath.Join(dir, "api_conversation_history.json"))
	return append(rows, more...), err
}

// page shows the last page of a task and reads the files of that task.
func page(ctx context.Context, o options, home, label, bar, id string, files ...string) ([]row, error) {
	var size, peak int64
	for _, path := range files {
		n, err := fileSize(path)
		if err != nil {
			return nil, err
		}
		size += n
	}
	var reading, showing times
	cold := true
	for range pageRounds {
		dropped, err := dropPages(home)
		if err != nil {
			return nil, err
		}
		begun := time.Now()
		for _, path := range files {
			if err := drain(path); err != nil {
				return nil, err
			}
		}
		reading = append(reading, time.Since(begun))
		if _, err := dropPages(home); err != nil {
			return nil, err
		}
		c, err := start(ctx, o, home, time.Millisecond, "show", id, "--tail", "20")
		if err != nil {
			return nil, err
		}
		if len(c.out) < 20 {
			return nil, fmt.Errorf("roost show gave only %q", c.out)
		}
		showing, peak, cold = append(showing, c.took), max(peak, c.peak), cold && dropped
	}
	state := "cold"
	if !cold {
		state = "warm"
	}
	rows := []row{{
		what: fmt.Sprintf("5 last page of %s, %s, %s", mb(size), label, state), got: ms(showing.median()),
		floor: "read " + ms(reading.median()), ratio: over(showing.median(), reading.median()), bar: bar,
	}}
	if peak > 0 {
		rows = append(rows, row{what: "5 its peak memory", got: mb(peak), floor: "files " + mb(size), ratio: over(peak, size), bar: "< 150 MB"})
	}
	return rows, nil
}

// makeBig makes a task whose journal has about size bytes.
func makeBig(ctx context.Context, root, name string, size int64) (err error) {
	s, err := store.Open(store.Options{Root: root, Program: "bench"})
	if err != nil {
		return err
	}
	t, err := s.Create(ctx, task.Created{Task: name, Number: 1, CreatedAt: baseTS})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()
	for i := 0; int64(i) < max(1, size/(2*pageText)); i++ {
		events, _ := step(t.State().NextMessage(), i, pageText)
		if err := t.Commit(ctx, events...); err != nil {
			return err
		}
	}
	return t.Barrier(ctx)
}

// copyHistories copies Roo's files of a task, without the journal.
func copyHistories(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("copy the histories: %w", err)
	}
	for _, name := range []string{"ui_messages.json", "api_conversation_history.json", "history_item.json"} {
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return fmt.Errorf("copy the histories: %w", err)
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// drain reads a file to its end.
func drain(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, 1<<20)
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf)
	return err
}
