package job

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/crashtest"
	"github.com/roost-dev/roost/money"
)

// Tree is a folder as one text: each file with its mode and content, in order.
func Tree(dir string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		text := string(data)
		if len(text) > 4<<10 {
			text = fmt.Sprintf("%x\n", sha256.Sum256(data))
		}
		fmt.Fprintf(&b, "== %s %s %d bytes\n%s", filepath.ToSlash(rel), info.Mode(), len(data), text)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the workspace: %w", err)
	}
	return b.String(), nil
}

// Judge returns what is wrong with a job that has come to its end. The job is to call every tool.
func (r *Ride) Judge(ctx context.Context) error {
	errs := []error{r.JudgeTasks(ctx)}
	if unused := r.Model.Unused(); len(unused) > 0 {
		errs = append(errs, fmt.Errorf("the job never calls %v", unused))
	}
	return errors.Join(errs...)
}

// JudgeTasks returns what is wrong with the tasks, the processes and the files of a job that has come to its end.
func (r *Ride) JudgeTasks(ctx context.Context) error {
	errs := []error{r.Bench.Doctor(ctx)}
	for _, p := range r.Model.Problems() {
		errs = append(errs, errors.New(p))
	}
	for _, v := range r.Server.Violations() {
		errs = append(errs, fmt.Errorf("the provider: %s", v))
	}
	for id, l := range r.Looks {
		if l.Status != "completed" || len(l.Open) > 0 {
			errs = append(errs, fmt.Errorf("task %s is %s, open questions: %q", id, l.Status, l.Asked))
		}
		errs = append(errs, crashtest.CheckHistories(l), l.CheckFiles())
	}
	if len(r.Looks) != len(r.Model.Job.Plans) {
		errs = append(errs, fmt.Errorf("%d tasks came of %d plans", len(r.Looks), len(r.Model.Job.Plans)))
	}
	errs = append(errs, r.effects(), r.answered(), r.family(), r.spent(ctx))
	if left := r.Bench.Gone(30 * time.Second); len(left) > 0 {
		errs = append(errs, fmt.Errorf("processes %v are left", left))
	}
	left, err := r.Bench.Left()
	if len(left) > 0 {
		errs = append(errs, fmt.Errorf("%v are left", left))
	}
	return errors.Join(append(errs, err)...)
}

// effects compares what the commands did with the journals: no body ran twice, one with a result ran, and one that
// never began did not.
func (r *Ride) effects() error {
	data, err := os.ReadFile(filepath.Join(r.Bench.Dir, "effects.log"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	acted := map[string]int{}
	for id := range strings.Lines(string(data)) {
		acted[strings.TrimSpace(id)]++
	}
	var errs []error
	for _, l := range r.Looks {
		begun := map[string]int{}
		for _, e := range l.Events("tool.started") {
			id, _ := esjson.GetString(e, "call")
			begun[id]++
		}
		for _, c := range l.Calls {
			if c.Name != "execute_command" {
				continue
			}
			n := acted[c.ID]
			delete(acted, c.ID)
			switch {
			case c.Finished == nil:
				errs = append(errs, fmt.Errorf("command %s has no outcome", c.ID))
			case n > begun[c.ID] || begun[c.ID] > 1:
				errs = append(errs, fmt.Errorf("command %s was begun %d times and acted %d times", c.ID, begun[c.ID], n))
			case c.Finished.Outcome == "ok" && n != 1:
				errs = append(errs, fmt.Errorf("command %s has a result and acted %d times", c.ID, n))
			case !slices.Contains([]string{"ok", "unknown", "cancelled"}, c.Finished.Outcome):
				errs = append(errs, fmt.Errorf("command %s is %s: %s", c.ID, c.Finished.Outcome, c.Result))
			}
		}
	}
	for id, n := range acted {
		errs = append(errs, fmt.Errorf("command %s acted %d times and is in no reply of a journal", id, n))
	}
	return errors.Join(errs...)
}

// answered checks that the models' requests hold each answer once.
func (r *Ride) answered() error {
	var errs []error
	for _, s := range r.Model.Job.Says {
		if s.Words == "yes" { // consent is no text for the model
			continue
		}
		n := 0
		for _, l := range r.Looks {
			for _, c := range l.Calls {
				if strings.Contains(string(c.Result), s.Words) {
					n++
				}
			}
		}
		if n != 1 {
			errs = append(errs, fmt.Errorf("the answer %q is in %d results", s.Words, n))
		}
	}
	return errors.Join(errs...)
}

// family checks that each subtask occurs once, in one task, and was worked on once.
func (r *Ride) family() error {
	var errs []error
	for id, l := range r.Looks {
		n := 0
		for _, parent := range r.Looks {
			for _, c := range parent.Calls {
				if strings.Contains(string(c.Result), "Subtask "+id+" completed.") {
					n++
				}
			}
		}
		want := 1
		if id == r.Main {
			want = 0
		}
		if n != want {
			errs = append(errs, fmt.Errorf("the result of task %s is in %d calls", id, n))
		}
		// The main task's making may have been cut; it was used nevertheless.
		if n := len(l.Events("task.created")); n != 1 && id != r.Main {
			errs = append(errs, fmt.Errorf("task %s was created %d times", id, n))
		}
		begun, ended := l.Events("subtask.started"), l.Events("subtask.ended")
		if len(begun) != len(ended) {
			errs = append(errs, fmt.Errorf("task %s started %d subtasks, and %d ended", id, len(begun), len(ended)))
		}
	}
	return errors.Join(errs...)
}

// spending is what a task cost, as the usage command prints it.
type spending struct {
	In   int64   `json:"tokens_in"`
	Out  int64   `json:"tokens_out"`
	Cost *string `json:"cost"`
}

func (s spending) String() string {
	cost := "null"
	if s.Cost != nil {
		cost = *s.Cost
	}
	return fmt.Sprintf("%d in, %d out, %s USD", s.In, s.Out, cost)
}

// spent compares the output of the usage command with the journals: of each task, and of all of them below the first
// one.
func (r *Ride) spent(ctx context.Context) error {
	c, err := r.Bench.Run(ctx, "", 0, "usage", "--by", "task")
	if err != nil || len(c.Lines) != 1 {
		return fmt.Errorf("ask for the usage: %w: %s", err, c.Errors)
	}
	type line struct {
		Key   string
		Usage spending
		All   *spending `json:"with_children"`
	}
	var told struct {
		Items []line
		Total line
	}
	if err := json.Unmarshal(c.Lines[0], &told); err != nil {
		return fmt.Errorf("read the usage: %w", err)
	}
	var errs []error
	var all ledger
	for _, i := range told.Items {
		var own ledger
		for _, e := range r.Looks[i.Key].Events("usage.changed") {
			own.add(e)
			all.add(e)
		}
		if got := own.String(); got != i.Usage.String() {
			errs = append(errs, fmt.Errorf("task %s: the journal has %s, usage says %s", i.Key, got, i.Usage))
		}
		if i.Key == r.Main && i.All != nil && i.All.String() != told.Total.Usage.String() {
			errs = append(errs, fmt.Errorf("the first task with its subtasks: %s, of all tasks: %s", i.All, told.Total.Usage))
		}
	}
	if got := all.String(); got != told.Total.Usage.String() || len(told.Items) != len(r.Looks) {
		errs = append(errs, fmt.Errorf("%d journals have %s, usage says %s of %d tasks", len(r.Looks), got, told.Total.Usage, len(told.Items)))
	}
	return errors.Join(errs...)
}

// ledger adds up the lines of journals.
type ledger struct {
	in, out, micros int64
	priced          bool
}

func (l *ledger) add(e json.RawMessage) {
	in, _ := esjson.GetInt(e, "input")
	out, _ := esjson.GetInt(e, "output")
	micros, priced := esjson.GetInt(e, "cost_micros")
	l.in, l.out, l.micros, l.priced = l.in+in, l.out+out, l.micros+micros, l.priced || priced
}

func (l *ledger) String() string {
	s := spending{In: l.in, Out: l.out}
	if l.priced {
		cost := money.USD(l.micros).String()
		s.Cost = &cost
	}
	return s.String()
}

// Unknown counts the calls whose outcome a kill or a stop left unknown, by tool.
func (r *Ride) Unknown() map[string]int {
	out := map[string]int{}
	for _, l := range r.Looks {
		for _, c := range l.Calls {
			if c.Finished != nil && (c.Finished.Outcome == "unknown" || c.Finished.Outcome == "cancelled") {
				out[c.Name]++
			}
		}
	}
	return out
}

// Tasks are the ids of the job's tasks, the main one first.
func (r *Ride) Tasks() []string {
	var ids []string
	for id := range r.Looks {
		if id != r.Main {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return append([]string{r.Main}, ids...)
}
