package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/crashtest"
	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/internal/testing/mcptest"
)

// Providers are the dialects that a job is played in, as --provider names them.
var Providers = []string{"anthropic", "openai", "openai-compatible", "google"}

// Ride is one life of the job: one task with its subtasks, worked on by one roost
// process after the other.
type Ride struct {
	Bench    *crashtest.Bench
	Model    *Model
	Server   *llmtest.Server
	Main     string // the task's id, "" as long as nothing was acknowledged
	Kills    int    // processes that were killed
	Stops    int    // processes that were asked to stop, and did
	Rounds   int    // processes that were started
	Answers  int    // questions that were answered
	Durable  int    // printed events that were found in the journals
	Patience time.Duration
	Flags    []string                  // of the process that starts the task; NewRide has what is too long truncated, not summarised
	Looks    map[string]crashtest.Look // the tasks as the last process left them, by id

	random *rand.Rand
	answer []string // of the next resume: the task, and the words

	mu    sync.Mutex
	asked func()      // called with each request
	given func(Fault) // called with each fault
}

// NewRide makes a bench for the job below dir, and a server in a provider's dialect.
// The caller closes the ride. The seed decides where it is killed.
func NewRide(program, dir, provider string, j Job, seed uint64) (*Ride, error) {
	b, err := crashtest.NewBench(program, dir)
	if err != nil {
		return nil, err
	}
	if err := Prepare(b.Workspace); err != nil {
		return nil, err
	}
	if err := useServer(b); err != nil {
		return nil, err
	}
	s, err := llmtest.Serve("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Ride{
		Bench: b, Server: s, Model: &Model{Job: j}, Patience: time.Minute, Looks: map[string]crashtest.Look{},
		Flags:  []string{"--condense-at", "never"},
		random: rand.New(rand.NewPCG(seed, uint64(len(provider)))), //nolint:gosec // moments, not secrets
	}
	r.Model.Asked = func(llmtest.Request) { r.tell(func() { r.asked() }) }
	r.Model.Given = func(f Fault) { r.tell(func() { r.given(f) }) }
	s.Answer(r.Model.Answer)
	b.UseServer(provider, s.URL)
	return r, nil
}

// useServer gives the tasks an MCP server: this very program, whose main function must
// begin with mcptest.Main. Its tool mark adds its line to a file of the workspace.
func useServer(b *crashtest.Bench) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("give the job an MCP server: %w", err)
	}
	log := filepath.Join(b.Workspace, "log", "marks.txt")
	settings, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"kit": map[string]any{
		"command": self, "env": map[string]string{mcptest.Env: "", mcptest.LogEnv: log},
	}}})
	if err != nil {
		return fmt.Errorf("give the job an MCP server: %w", err)
	}
	dir := filepath.Join(b.Dir, "home", ".config", "roost")
	err = errors.Join(os.MkdirAll(dir, 0o700), os.MkdirAll(filepath.Dir(log), 0o700), os.WriteFile(filepath.Join(dir, "mcp.json"), settings, 0o600))
	if err != nil {
		return fmt.Errorf("give the job an MCP server: %w", err)
	}
	return nil
}

// Close ends the server.
func (r *Ride) Close() { r.Server.Close() }

func (r *Ride) tell(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked != nil {
		f()
	}
}

// Run works on the job until it is completed. It kills about so many processes on the
// way, spread over the job's whole length by how far the model has come and not by the
// clock, so that a busy machine is killed in the same places.
func (r *Ride) Run(ctx context.Context, kills int) error {
	for idle := 0; ; {
		before, _ := r.Model.Progress()
		ended, err := r.round(ctx, r.moment(kills-r.Kills))
		if err != nil || ended {
			return err
		}
		if after, _ := r.Model.Progress(); after > before || r.Kills < kills {
			idle = 0
		} else if idle++; idle > 20 {
			return fmt.Errorf("the job does not come past step %d", after)
		}
	}
}

// moment is when a process dies: at a named place or at some moment after some
// requests, whatever comes first.
type moment struct {
	never    bool
	fail     string
	requests int
	delay    time.Duration
	stop     bool // it is asked to end, as by Ctrl-C, and not killed
}

// places are the failpoints of a run; one that is not passed in time costs nothing.
var places = []string{
	"journal.written", "journal.synced", "input.saved", "turn.requested", "reply.streaming", "reply.committed",
	"tool.started", "tool.ran", "tool.finished", "tool.write.before", "tool.write.after", "tool.spawned", "tool.process", "tool.output",
	"tool.command.started", "turn.mending", "turn.mended",
	"condense.asked", "condense.committed", "subtask.started", "subtask.created", "subtask.untold", "subtask.ended", "subtask.waking",
	"tool.write.filled", "tool.write.linked", "question.opened", "question.closed", "project.temp", "project.renamed", "run.ended",
}

func (r *Ride) moment(left int) moment {
	if left <= 0 {
		return moment{never: true, fail: quotaPlace}
	}
	reached, all := r.Model.Progress()
	far := 2*(all-reached)/left + 1 // twice the mean
	m := moment{requests: r.random.IntN(far + 1), delay: time.Duration(r.random.Int64N(int64(30 * time.Millisecond)))}
	switch r.random.IntN(3) {
	case 0:
		m.fail = fmt.Sprintf("%s:%d", places[r.random.IntN(len(places))], 1+r.random.IntN(2*far))
		m.requests = far + 1
	case 1:
		m.requests, m.delay = 0, time.Duration(r.random.Int64N(int64(150*time.Millisecond)))
		if far > 2 { // so early a kill costs progress
			m.delay *= 2
		}
	}
	m.stop = m.fail == "" && r.random.IntN(6) == 0
	return m
}

// A process that waits for a used-up quota would do so for minutes: it is killed at the
// place where the wait is in the log, or within quotaKill.
const (
	quotaPlace = "quota.waiting"
	quotaKill  = 150 * time.Millisecond
)

// Once starts or resumes the job in one process that dies at a failpoint, or comes to
// its end or to a question.
func (r *Ride) Once(ctx context.Context, fail string) (ended bool, err error) {
	return r.round(ctx, moment{never: true, fail: fail})
}

// round starts or resumes the job once, and looks at what is left.
func (r *Ride) round(ctx context.Context, m moment) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	signals := make(chan os.Signal, 10)
	var timers []*time.Timer
	end := func(after time.Duration, with os.Signal) {
		timers = append(timers, time.AfterFunc(after, func() {
			select {
			case signals <- with:
			default: // there are enough of them
			}
		}))
	}
	kill := func(after time.Duration) {
		if m.stop {
			end(after, os.Interrupt)
			return
		}
		end(after, os.Kill)
	}
	r.mu.Lock()
	seen := 0
	r.asked = func() {
		if seen++; !m.never && seen == m.requests {
			kill(m.delay)
		}
	}
	r.given = func(f Fault) {
		if f == Quota && m.fail != quotaPlace {
			end(time.Duration(r.random.Int64N(int64(quotaKill))), os.Kill)
		}
	}
	if !m.never && m.requests == 0 {
		kill(m.delay)
	}
	r.mu.Unlock()
	args := r.args()
	child, err := r.Bench.RunSignalled(ctx, m.fail, signals, args...)
	r.mu.Lock()
	r.asked = nil
	for _, t := range timers {
		t.Stop()
	}
	r.mu.Unlock()
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("a round does not end: %w: %s", ctx.Err(), child.Errors)
	}
	if err != nil {
		return false, err
	}
	r.Rounds++
	r.answer = nil
	if child.Killed {
		r.Kills++
	}
	if err := r.compare(ctx, child); err != nil {
		return false, fmt.Errorf("killed %t at %q, after %d requests and %s: %v: %w", child.Killed, m.fail, m.requests, m.delay, args, err)
	}
	switch {
	case child.Killed:
		return false, nil
	case child.Code == 11:
		return false, r.question()
	case m.stop && (child.Code == 130 || child.Code == 7):
		r.Stops++
		return false, nil
	case child.Code != 0:
		return false, fmt.Errorf("roost %v ended with %d: %s", args, child.Code, child.Errors)
	}
	if status := r.Looks[r.Main].Status; status != "completed" {
		return false, fmt.Errorf("roost %v ended with 0, and the job is %s: %s", args, status, child.Errors)
	}
	return true, nil
}

func (r *Ride) args() []string {
	switch {
	case r.Main == "":
		return append(append([]string{"run"}, r.Bench.Model...), append(r.Flags, "--yes", "-C", r.Bench.Workspace, Words("main"))...)
	case len(r.Looks[r.Main].API) == 0: // its words had not been acknowledged
		return append(append([]string{"resume", r.Main, Words("main"), "--yes", "-C", r.Bench.Workspace}, r.Bench.Model...), r.Flags...)
	case r.answer != nil:
		r.Answers++
		return append([]string{"resume"}, r.answer...)
	}
	// "--yes" would answer an open question about an approval.
	if below := r.awaited(); len(below) > 0 && r.random.IntN(3) == 0 {
		return []string{"resume", below[r.random.IntN(len(below))]}
	}
	return []string{"resume", r.Main}
}

// awaited are the subtasks that somebody waits for: to resume one of them is to resume
// all, because it wakes the task that waits for it.
func (r *Ride) awaited() []string {
	var ids []string
	for _, parent := range r.Looks {
		open := map[string]bool{}
		for _, e := range parent.Events("subtask.started") {
			id, _ := esjson.GetString(e, "child")
			open[id] = true
		}
		for _, e := range parent.Events("subtask.ended") {
			id, _ := esjson.GetString(e, "child")
			delete(open, id)
		}
		for id := range open {
			if len(r.Looks[id].API) > 0 { // it is made, and knows what to do
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// compare holds the disk against what was there before and what was printed.
func (r *Ride) compare(ctx context.Context, child crashtest.Child) error {
	ids, err := r.Bench.Tasks()
	if err != nil {
		return err
	}
	printed := map[string][]json.RawMessage{}
	for _, line := range child.Lines {
		id, _ := esjson.GetString(line, "task_id")
		printed[id] = append(printed[id], line)
	}
	for _, id := range ids {
		if !hasJournal(r.Bench, id) {
			if len(printed[id]) > 0 || r.Looks[id].Commits != nil {
				return fmt.Errorf("%d events of task %s were printed, and it has no journal", len(printed[id]), id)
			}
			if r.Main == "" {
				if err := os.RemoveAll(filepath.Join(r.Bench.Root(), "tasks", id)); err != nil {
					return err
				}
			}
			continue
		}
		l, err := r.Bench.Look(ctx, id)
		if err != nil {
			return err
		}
		if made, sub := origin(l); r.Main == "" && !sub {
			r.Main = id
		} else if made && sub == (id == r.Main) {
			return fmt.Errorf("task %s was made for the same words as %s", id, r.Main)
		}
		if len(l.Damaged) > 0 {
			return fmt.Errorf("task %s is damaged: %v", id, l.Damaged)
		}
		n, err := crashtest.CheckPrinted(printed[id], l)
		if err := errors.Join(err, crashtest.CheckPrefix(r.Looks[id], l)); err != nil {
			return fmt.Errorf("task %s: %w", id, err)
		}
		r.Durable += n
		r.Looks[id] = l
		delete(printed, id)
	}
	for id, lines := range printed {
		return fmt.Errorf("%d events were printed of task %q, which is not there", len(lines), id)
	}
	return nil
}

// origin tells whether a task's making is in its log, and whether another task made it.
func origin(l crashtest.Look) (made, sub bool) {
	for _, e := range l.Events("task.created") {
		parent, _ := esjson.GetString(e, "parent")
		return true, parent != ""
	}
	return false, false
}

func hasJournal(b *crashtest.Bench, id string) bool {
	info, err := os.Stat(filepath.Join(b.Root(), "tasks", id, "journal.jsonl"))
	return err == nil && info.Size() > 0
}

// question finds the answer to the question that a run ended with.
func (r *Ride) question() error {
	open := 0
	for id, l := range r.Looks {
		for _, text := range l.Asked {
			open++
			for _, s := range r.Model.Job.Says {
				if strings.Contains(text, s.To) {
					if r.random.IntN(2) == 0 {
						id = r.Main // it knows which of its subtasks asks
					}
					r.answer = []string{id, s.Words}
				}
			}
			if r.answer == nil {
				return fmt.Errorf("task %s asks %q, and the job has no answer to that", id, text)
			}
		}
	}
	if open != 1 {
		return fmt.Errorf("a run ended as waiting, and %d questions are open", open)
	}
	return nil
}
