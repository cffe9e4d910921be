package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

// lists measures a list of every task of a storage in Roo's format: the first one,
// against reading all files once and splitting their JSON on all cores; the next
// ones, against starting the program; and one after a task has changed or come. The
// first one is measured twice: with all files on the disk, where the disk decides, and
// with all in memory, where it shows what the program costs. The tasks were last
// worked on long ago, as most are that somebody has so many of. One list in half a
// minute, and one after the tool wrote its index, compares all of their files, not only
// the folders (store/list_lines.go): that one is measured by itself, with a change that
// only such a list shows.
func lists(ctx context.Context, o options) ([]row, error) {
	tasks, each, rounds := 2000, 500<<10, 15
	switch {
	case o.full:
		tasks = 10_000
	case o.quick:
		tasks, each, rounds = 40, 40<<10, 3
	}
	home := filepath.Join(o.dir, "lists")
	storage := filepath.Join(home, "rooveterinaryinc.roo-cline")
	var dirs []string
	for i := range tasks {
		dirs = append(dirs, filepath.Join(storage, "tasks", fmt.Sprintf("%08x-0000-4000-8000-%012x", i*2654435761&0xffffffff, i)))
	}
	bytes, err := storageOf(dirs, each)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		if err := aged(dir, time.Now().Add(-90*24*time.Hour)); err != nil {
			return nil, err
		}
	}
	time.Sleep(100 * time.Millisecond) // what was written just now is not believed to be still
	args := func(more ...string) []string {
		return append([]string{"list", "--json", "--sources", storage}, more...)
	}
	var rows []row
	for _, from := range []string{"disk", "memory"} {
		first, floor, err := coldLists(ctx, o, home, dirs, args(), from == "disk")
		if err != nil {
			return rows, err
		}
		if len(first) > 0 {
			r := row{
				what: fmt.Sprintf("8 first list of %d tasks, %s from %s", tasks, mb(bytes), from), got: ms(first.median()),
				floor: "read+split " + ms(floor.median()), ratio: over(first.median(), floor.median()),
			}
			if from == "disk" {
				r.bar = "<= 1.50x" // a first list is cold; from memory it shows what computing costs
			}
			rows = append(rows, r)
		}
	}
	var bare, warm, after, fresh, grown, come times
	index := filepath.Join(storage, "tasks", roofmt.IndexName)
	old, at := time.Now().Add(-90*24*time.Hour), 0
	for i := range rounds {
		steps := []struct {
			to   *times
			args []string
			do   func() error
		}{
			{&bare, []string{"version"}, nil},
			{&warm, args("--limit", "50"), nil},
			{&after, args("--limit", "50"), func() error { return rewriteIndex(index) }},
			{&fresh, args("--limit", "50"), func() error { at = i * 7 % len(dirs); return replaced(dirs[at]) }},
			{&grown, args("--limit", "50"), func() error {
				at = (i*7 + 3) % len(dirs)
				return errors.Join(rewriteIndex(index), grow(dirs[at]))
			}},
			{&come, args("--limit", "50"), func() error {
				at = len(dirs)
				dirs = append(dirs, filepath.Join(storage, "tasks", fmt.Sprintf("%08x-0000-4000-8000-%012x", at*2654435761&0xffffffff, at)))
				_, err := storageOf(dirs[at:], each)
				return errors.Join(err, grow(dirs[at]))
			}},
		}
		for _, m := range steps {
			if m.do != nil {
				if err := m.do(); err != nil {
					return rows, err
				}
			}
			c, err := start(ctx, o, home, time.Hour, m.args...)
			if err != nil {
				return rows, err
			}
			*m.to = append(*m.to, c.took)
			if m.to != &fresh && m.to != &grown && m.to != &come {
				continue
			}
			if err := newest(c.out, dirs[at]); err != nil {
				return rows, err
			}
			if err := aged(dirs[at], old); err != nil {
				return rows, err
			}
			time.Sleep(100 * time.Millisecond)
			for range 2 { // they keep what has changed; that comes on top of the change itself
				if _, err := start(ctx, o, home, time.Hour, args("--limit", "1")...); err != nil {
					return rows, err
				}
			}
		}
	}
	more := func(a, b times) string { return "+" + ms(a.median()-b.median()) }
	result := func(what string, got times, floor string, than times, bar string) row {
		return row{what: "8 " + what, got: ms(got.median()) + ", p99 " + ms(got.p99()), floor: floor + " " + ms(than.median()), ratio: more(got, than), bar: bar}
	}
	return append(rows,
		result(fmt.Sprintf("list --limit 50 of %d tasks again", tasks), warm, "start", bare, "<= +80 ms"),
		result("the same, the first in half a minute", after, "start", bare, ""),
		result("the same when a task has changed", fresh, "unchanged", warm, "<= +100 ms"),
		result("the same when it was written in place", grown, "unchanged", after, "<= +100 ms"),
		result("the same when a task has come", come, "unchanged", warm, "<= +100 ms"),
	), nil
}

// rewriteIndex lets the next list compare every file, as the first one in half a minute does.
func rewriteIndex(path string) error {
	text := fmt.Sprintf(`{"version":1,"updatedAt":%d,"entries":[]}`, time.Now().UnixNano())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("rewrite an index: %w", err)
	}
	return nil
}

// aged gives the files of a task a time at which they were written.
func aged(dir string, at time.Time) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.Chtimes(filepath.Join(dir, e.Name()), at, at))
	}
	if err != nil {
		return fmt.Errorf("make a task an old one: %w", err)
	}
	return nil
}

// replaced appends a message to a task as Roo does: with a new file that is renamed
// into the place of the old one.
func replaced(dir string) error {
	path := filepath.Join(dir, roofmt.UIName)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path+".tmp", text, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		return fmt.Errorf("change a task: %w", err)
	}
	return grow(dir)
}

// storageOf makes task folders as Roo writes them, with so many bytes of messages each.
func storageOf(dirs []string, each int) (total int64, err error) {
	const text = 3000
	for i, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return total, fmt.Errorf("make a storage: %w", err)
		}
		n := max(each/(2*text), 2)
		ui, api := make([][]byte, n), make([][]byte, n)
		for j := range n {
			ui[j], api[j] = uiMessage(i*n+j, text), apiMessage(j, text)
		}
		ui[1] = []byte(fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":"{\"tokensIn\":%d,\"tokensOut\":90,\"cost\":0.0%d}"}`, baseTS+i*n+1, 900+i, i%90+10))
		item := fmt.Sprintf(`{"id":%q,"number":%d,"ts":%d,"task":"task %d","tokensIn":%d,"tokensOut":90,"totalCost":0.0%d,"workspace":"/home/me/%d"}`,
			filepath.Base(dir), i+1, baseTS+i, i, 900+i, i%90+10, i%17)
		for name, data := range map[string][]byte{
			roofmt.UIName: jsonArray(ui), roofmt.APIName: jsonArray(api), roofmt.ItemName: []byte(item), roofmt.MetadataName: []byte(`{"files_in_context":[]}`),
		} {
			total += int64(len(data))
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				return total, fmt.Errorf("make a storage: %w", err)
			}
		}
	}
	return total, nil
}

func jsonArray(list [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(list, []byte{','})...), ']')
}

// coldLists runs first lists, each with a cache folder that is empty, turn about with
// the yardstick. It gives no times when files cannot be put out of memory here.
func coldLists(ctx context.Context, o options, home string, dirs, args []string, disk bool) (first, floor times, err error) {
	prepare := func() (bool, error) { return true, nil }
	if disk {
		prepare = func() (bool, error) { return dropPages(filepath.Dir(dirs[0])) }
	} else if _, err := readAndSplit(dirs); err != nil { // the files come into memory
		return nil, nil, err
	}
	for range 3 {
		if done, err := prepare(); err != nil || !done {
			return nil, nil, err
		}
		took, err := readAndSplit(dirs)
		if err != nil {
			return nil, nil, err
		}
		floor = append(floor, took)
		if err := os.RemoveAll(filepath.Join(home, "cache")); err != nil {
			return nil, nil, fmt.Errorf("empty the cache: %w", err)
		}
		if _, err := prepare(); err != nil {
			return nil, nil, err
		}
		c, err := start(ctx, o, home, time.Hour, args...)
		if err != nil {
			return nil, nil, err
		}
		first = append(first, c.took)
		var got struct{ Items []json.RawMessage }
		if err := json.Unmarshal(c.out, &got); err != nil || len(got.Items) != len(dirs) {
			return nil, nil, fmt.Errorf("the list has %d of %d tasks: %w", len(got.Items), len(dirs), err)
		}
	}
	return first, floor, nil
}

// readAndSplit reads every file once, and finds the elements of the histories.
func readAndSplit(dirs []string) (time.Duration, error) {
	begun := time.Now()
	jobs := make(chan string)
	errs := make([]error, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for w := range errs {
		all.Go(func() {
			for dir := range jobs {
				errs[w] = errors.Join(errs[w], splitTask(dir))
			}
		})
	}
	for _, dir := range dirs {
		jobs <- dir
	}
	close(jobs)
	all.Wait()
	return time.Since(begun), errors.Join(errs...)
}

func splitTask(dir string) error {
	for _, name := range []string{roofmt.UIName, roofmt.APIName} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("read a task: %w", err)
		}
		_, err = esjson.Split(f, func(esjson.Element) error { return nil })
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("split %s: %w", f.Name(), err)
		}
	}
	for _, name := range []string{roofmt.ItemName, roofmt.MetadataName} {
		if _, err := os.ReadFile(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("read a task: %w", err)
		}
	}
	return nil
}

// grow appends a message to a task, in place: what editors do no more, and what no
// folder's time tells.
func grow(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, roofmt.UIName), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("change a task: %w", err)
	}
	_, err = f.Seek(-1, io.SeekEnd)
	if err == nil {
		_, err = fmt.Fprintf(f, `,{"ts":%d,"type":"say","say":"text","text":"one more"}]`, time.Now().UnixMilli()+int64(365*24*time.Hour/time.Millisecond))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("change a task: %w", err)
	}
	return nil
}

// newest checks that a list shows a change.
func newest(out []byte, dir string) error {
	var got struct {
		Items []struct{ ID string }
	}
	if err := json.Unmarshal(out, &got); err != nil {
		return fmt.Errorf("read a list: %w", err)
	}
	if len(got.Items) == 0 || got.Items[0].ID != filepath.Base(dir) {
		return fmt.Errorf("the list does not begin with %s, which has changed", filepath.Base(dir))
	}
	return nil
}
