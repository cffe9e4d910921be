package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/crashtest"
)

// rest judges a task that has completed.
func (v *victim) rest() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := v.bench.Look(ctx, v.id)
	if err != nil {
		return err
	}
	var errs []error
	if l.Status != "completed" {
		errs = append(errs, fmt.Errorf("its status is %s", l.Status))
	}
	errs = append(errs, crashtest.CheckHistories(l), l.CheckFiles())
	n, err := v.lines(l)
	errs = append(errs, err)
	unknown := 0
	for _, c := range l.Calls {
		switch {
		case c.Finished != nil && c.Finished.Outcome == "unknown" && c.Name == "execute_command":
			unknown++
		case c.Finished != nil && c.Finished.Outcome != "ok":
			errs = append(errs, fmt.Errorf("call %s of %s is %s: %s", c.ID, c.Name, c.Finished.Outcome, c.Result))
		}
	}
	for i := range 8 {
		file := fmt.Sprintf("file-%d.txt", i)
		data, err := os.ReadFile(filepath.Join(v.bench.Workspace, file))
		if err != nil || string(data) != strings.Repeat("line "+file+"\n", 50) {
			errs = append(errs, fmt.Errorf("%s has %d bytes, %w", file, len(data), err))
		}
	}
	errs = append(errs, v.orphans(v.rounds, 20*time.Second), v.leftovers())
	v.t.add(func() { v.t.tasks++; v.t.lines += n; v.t.unknowns += unknown })
	return errors.Join(errs...)
}

// orphans tells whether a process that was started in the first n rounds lives.
func (v *victim) orphans(n int, patience time.Duration) error {
	var errs []error
	for _, mark := range v.marks[:n] {
		v.bench.Mark = mark
		if left := v.bench.Gone(patience); len(left) > 0 {
			errs = append(errs, fmt.Errorf("processes %v of an earlier round still live", left))
		}
	}
	v.marks = slices.Delete(v.marks, 0, n) // gone is gone: nothing can start with them again
	v.rounds -= n
	return errors.Join(errs...)
}

// leftovers tells whether temporary files outlived the processes they were for. The last
// round was not killed: its process removed its own, and those of the killed ones.
func (v *victim) leftovers() error {
	left, err := v.bench.Left()
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%v are left", left)
	}
	return err
}

// lines counts what the commands appended and holds it against how often each was
// begun: never more often, and exactly as often once a result says so.
func (v *victim) lines(l crashtest.Look) (int, error) {
	data, err := os.ReadFile(filepath.Join(v.bench.Workspace, "lines.txt"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	acted := map[string]int{}
	for name := range strings.Lines(string(data)) {
		acted[strings.TrimSpace(name)]++
	}
	begun := map[string]int{}
	for _, e := range l.Events("tool.started") {
		id, _ := esjson.GetString(e, "call")
		begun[id]++
	}
	total := 0
	var errs []error
	for _, c := range l.Calls {
		if c.Name != "execute_command" {
			continue
		}
		line, _ := esjson.GetString(c.Input, "command")
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "echo "), " ")
		n := acted[name]
		delete(acted, name)
		total += n
		if n > begun[c.ID] || begun[c.ID] > 1 {
			errs = append(errs, fmt.Errorf("command %s was begun %d times and acted %d times", name, begun[c.ID], n))
		}
		if c.Finished != nil && c.Finished.Outcome == "ok" && n != 1 {
			errs = append(errs, fmt.Errorf("command %s has a result and acted %d times", name, n))
		}
	}
	for name, n := range acted {
		errs = append(errs, fmt.Errorf("command %s acted %d times and is in no reply of the journal", name, n))
	}
	return total, errors.Join(errs...)
}
