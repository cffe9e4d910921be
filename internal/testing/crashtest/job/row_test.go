package job_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/crashtest"
	"github.com/roost-dev/roost/internal/testing/crashtest/job"
)

// row is a small job that is killed at one place.
type row struct {
	name  string
	job   job.Job
	fails []string // where one process after the other dies
	until bool     // the task is listed with the end of its wait then
	check func(t *testing.T, r *job.Ride, before, after crashtest.Look)
}

func big(n int) (steps []job.Step) {
	for i := range n { // the same call again and again would be taken for a loop
		steps = append(steps, job.Step{Calls: []job.Call{{Tool: "read_file", Input: map[string]any{"path": "data/big.txt", "limit": 400 + i}, Want: "long enough"}}})
	}
	return steps
}

func small(window int, steps ...job.Step) job.Job {
	end := job.Step{Calls: []job.Call{{Tool: "attempt_completion", Input: map[string]any{"result": "Done."}}}}
	return job.Job{Window: window, Plans: map[string][]job.Step{"main": append(steps, end)}}
}

func faulty(f ...job.Fault) []job.Step {
	steps := big(2)
	steps[1].Faults = f
	return steps
}

var rows = []row{
	{"while a quota is used up", small(0, faulty(job.Quota)...), []string{"quota.waiting"}, true, waitsOnce},
	{"while a quota is used up, twice", small(0, faulty(job.Quota, job.Quota)...), []string{"quota.waiting", "quota.waiting"}, true, waitsOnce},
	{"before a truncation is in the log", small(110<<10, big(5)...), []string{"turn.mending"}, false, shortened(0, 0)},
	{"after a truncation came into the log", small(110<<10, big(5)...), []string{"turn.mended"}, false, shortened(0, 1)},
	// The fifth request is refused; the sixth is the shorter one, and a request goes out
	// when what led to it is on the disk.
	{"after a truncation came onto the disk", small(110<<10, big(5)...), []string{"turn.requested:6"}, false, shortened(1, 1)},
	{"when a subtask was completed, before its files were written", subtask(), []string{"run.ended"}, false, nothing},
	{"when a subtask was completed, before its parent was told", subtask(), []string{"subtask.untold"}, false, nothing},
	{"when a subtask's parent was told, before anything else", subtask(), []string{"subtask.ended"}, false, nothing},
}

// nothing more is to be seen than what is judged of every job.
func nothing(*testing.T, *job.Ride, crashtest.Look, crashtest.Look) {}

// subtask hands one write to a child.
func subtask() job.Job {
	j := small(0, job.Step{Calls: []job.Call{{
		Tool:  "new_task",
		Input: map[string]any{"mode": "code", "message": job.Words("left"), "todos": nil}, Want: "completed.\n\nResult:\nDone.",
	}}})
	write := job.Step{Calls: []job.Call{{Tool: "write_to_file", Input: map[string]any{"path": "left.txt", "content": "left\n"}}}}
	j.Plans["left"] = append([]job.Step{write}, j.Plans["main"][1])
	return j
}

// TestKilledDuring: what a provider made a task do about a refusal is in the log whole
// or not at all, and the task goes on by it.
func TestKilledDuring(t *testing.T) {
	for _, w := range rows {
		for i, provider := range job.Providers {
			if i > 0 && (testing.Short() || len(w.job.Plans) > 1) {
				continue // that one is not about the provider
			}
			t.Run(w.name+"/"+provider, func(t *testing.T) {
				t.Parallel()
				w.check1(t, provider)
			})
		}
	}
}

func (w row) check1(t *testing.T, provider string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := job.NewRide(program, shortDir(t), provider, w.job, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i, fail := range w.fails {
		ended, err := r.Once(ctx, fail)
		if err != nil || ended || r.Kills != i+1 {
			t.Fatalf("at %s: ended %t, %d kills, %v", fail, ended, r.Kills, err)
		}
	}
	before := r.Looks[r.Main]
	if until := waitingUntil(ctx, t, r); (until != "") != w.until {
		t.Errorf("the task is listed as waiting until %q", until)
	}
	asked, begun := len(r.Server.Requests()), time.Now()
	if ended, err := r.Once(ctx, ""); err != nil || !ended {
		t.Fatalf("resumed: ended %t, %v", ended, err)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it was resumed for %s: a wait of the killed process was waited out", took)
	}
	if err := r.JudgeTasks(ctx); err != nil {
		t.Error(err)
	}
	w.check(t, r, before, r.Looks[r.Main])
	// The rest of the job, one request a step: a kill costs the request that was under way.
	if _, steps := r.Model.Progress(); len(r.Server.Requests())-asked > steps {
		t.Errorf("%d requests after the kill, for %d steps", len(r.Server.Requests())-asked, steps)
	}
}

// waitingUntil is what a list says of the job's first task.
func waitingUntil(ctx context.Context, t *testing.T, r *job.Ride) (until string) {
	t.Helper()
	c, err := r.Bench.Run(ctx, "", 0, "list")
	if err != nil || len(c.Lines) != 1 {
		t.Fatalf("list: %v, %s", err, c.Errors)
	}
	items, _ := esjson.Get(c.Lines[0], "items")
	for item := range esjson.Array(items) {
		if id, _ := esjson.GetString(item, "id"); id == r.Main {
			until, _ = esjson.GetString(item, "waiting_until")
			return until
		}
	}
	t.Fatalf("task %s is not listed: %s", r.Main, c.Lines[0])
	return ""
}

// waitsOnce: the wait was in the log before it began, with its end, and the resume did
// not wait.
func waitsOnce(t *testing.T, r *job.Ride, before, after crashtest.Look) {
	failed := before.Events("turn.failed")
	if len(failed) != r.Kills {
		t.Fatalf("%d failures in the log, %d kills", len(failed), r.Kills)
	}
	for _, f := range failed {
		until, _ := esjson.GetInt(f, "until")
		wait, _ := esjson.GetInt(f, "wait_ms")
		if wait != 600_000 || until <= time.Now().UnixMilli() {
			t.Errorf("the log does not say until when: %s", f)
		}
	}
	if n := len(after.Events("turn.failed")); n != len(failed) {
		t.Errorf("%d failures before the resume, %d after", len(failed), n)
	}
}

// shortened: a truncation is made once. One that was not in the log is made by the
// request that is refused again; one that was is not asked about again.
func shortened(least, most int) func(t *testing.T, r *job.Ride, before, after crashtest.Look) {
	return func(t *testing.T, r *job.Ride, before, after crashtest.Look) {
		n := len(before.Events("history.truncated"))
		if n < least || n > most {
			t.Errorf("%d truncations in the log after the kill, wanted %d to %d", n, least, most)
		}
		events := after.Events("history.truncated")
		if len(events) == 0 {
			t.Fatal("nothing was truncated")
		}
		_, refused, _ := r.Model.Met()
		if wanted := len(events) + 1 - n; refused != wanted {
			t.Errorf("%d requests were too long, wanted %d for %d truncations", refused, wanted, len(events))
		}
		markers, hidden := 0, 0
		for _, m := range after.API {
			if is, _ := esjson.GetBool(m, "isTruncationMarker"); is {
				markers++
			}
			if _, tagged := esjson.Get(m, "truncationParent"); tagged {
				hidden++
			}
		}
		shown := 0
		for _, m := range after.UI {
			if strings.Contains(string(m), `"sliding_window_truncation"`) {
				shown++
			}
		}
		if markers != len(events) || shown != len(events) || hidden == 0 {
			t.Errorf("%d truncations, %d markers for the model, %d rows for the person, %d messages hidden", len(events), markers, shown, hidden)
		}
	}
}
