package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/internal/testing/crashtest"
	"github.com/roost-dev/roost/workspace/shell"
)

const (
	killWithin  = 300 * time.Millisecond // after the start
	roundsATask = 12                     // then it may come to its end
	doctorEvery = 4                      // rounds; it reads everything, as the look after each round does
)

// victim is one task that is killed until it may complete.
type victim struct {
	t      *tally
	dir    string
	bench  *crashtest.Bench
	random *rand.Rand
	id     string
	before crashtest.Look
	marks  []string // of the rounds whose processes have not been seen gone
	rounds int      // how many of them
	nth    int      // rounds so far
	err    error
}

func newVictim(t *tally, program, dir string, seed, k uint64) *victim {
	v := &victim{t: t, dir: dir, random: rand.New(rand.NewPCG(seed, k))} //nolint:gosec // moments, not secrets
	if v.err = os.MkdirAll(dir, 0o700); v.err != nil {
		return v
	}
	if v.bench, v.err = crashtest.NewBench(program, dir); v.err == nil {
		v.err = v.bench.UseScript(turns())
	}
	return v
}

// turns keep every part busy: streamed text, files, commands that append a line
// of their own each, several calls in one reply. Some commands leave a process of a
// session of its own behind, which outlives a kill and must not outlive the resume.
func turns() []crashtest.Turn {
	var out []crashtest.Turn
	command := func(name string) crashtest.Call {
		line := fmt.Sprintf("echo %s >> lines.txt; echo shown %s; sleep 0.02; echo more", name, name)
		if name == "c2" || name == "a5" {
			line += "; setsid sleep 41 > /dev/null 2>&1 & sleep 0.1"
		}
		return crashtest.Call{Name: "execute_command", Input: map[string]any{"command": line, "cwd": nil, "timeout": nil}}
	}
	for i := range 8 {
		file := fmt.Sprintf("file-%d.txt", i)
		out = append(out,
			crashtest.Turn{
				Text: strings.Repeat(fmt.Sprintf("Turn %d thinks aloud. ", i), 3), Delay: "2ms",
				Calls: []crashtest.Call{
					{Name: "write_to_file", Input: map[string]any{"path": file, "content": strings.Repeat("line "+file+"\n", 50)}},
					command(fmt.Sprintf("a%d", i)),
				},
			},
			crashtest.Turn{
				Text: fmt.Sprintf("Turn %d looks.", i), Delay: "1ms",
				Calls: []crashtest.Call{
					{Name: "read_file", Input: map[string]any{"path": file}}, command(fmt.Sprintf("b%d", i)), command(fmt.Sprintf("c%d", i)),
				},
			})
	}
	return append(out, crashtest.Complete("All turns are done."))
}

func (v *victim) wrong(format string, args ...any) {
	v.t.trouble("%s: "+format, append([]any{v.dir}, args...)...)
}

// live kills the task again and again, then lets it complete.
func (v *victim) live(ctx context.Context, left *atomic.Int64) {
	if v.err != nil {
		v.wrong("%v", v.err)
		return
	}
	w := crashtest.Watch(filepath.Join(v.bench.Root(), "tasks"))
	defer func() {
		reads, err := w.Stop()
		if err != nil {
			v.wrong("while it ran: %v", err)
		}
		v.t.add(func() { v.t.reads += reads })
	}()
	for range roundsATask {
		if ctx.Err() != nil || left.Add(-1) < 0 {
			break
		}
		kill := time.Duration(v.random.Int64N(int64(killWithin))) + time.Microsecond
		ended, err := v.round(kill)
		if err != nil {
			v.wrong("killed after %s: %v", kill, err)
			return
		}
		if ended {
			break
		}
	}
	if _, err := v.round(0); err != nil {
		v.wrong("at its end: %v", err)
		return
	}
	if err := v.rest(); err != nil {
		v.wrong("after its end: %v", err)
	}
}

// round starts or resumes the task, kills it, and looks at what is left. A round
// is not cut short by the caller's context: a half one would prove nothing.
func (v *victim) round(kill time.Duration) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	args := append(append([]string{"run"}, v.bench.Model...), "--yes", "-C", v.bench.Workspace, "Do all the turns.")
	if v.id != "" {
		args = append([]string{"resume", v.id, "--yes", "-C", v.bench.Workspace}, v.bench.Model...)
		if len(v.before.API) == 0 { // its words had not been acknowledged
			args = append([]string{"resume", v.id, "Do all the turns."}, args[2:]...)
		}
	}
	v.nth++
	v.bench.Mark = shell.NewMark()
	v.marks, v.rounds = append(v.marks, v.bench.Mark), v.rounds+1
	child, err := v.bench.Run(ctx, "", kill, args...)
	if err != nil {
		return false, err
	}
	v.t.add(func() {
		switch {
		case kill == 0:
		case child.Killed:
			v.t.kills++
		default:
			v.t.ends++
		}
	})
	if !child.Killed && child.Code != 0 {
		return false, fmt.Errorf("roost %s ended with %d: %s", args[0], child.Code, child.Errors)
	}
	if len(child.Lines) > 0 || !child.Killed {
		// It came past its restart: what earlier rounds had started is ended by then.
		// What this one started may live until the next.
		n := v.rounds - 1
		if !child.Killed {
			n = v.rounds
		}
		if err := v.orphans(n, 0); err != nil {
			return false, err
		}
	}
	if !child.Killed || v.nth%doctorEvery == 0 {
		if err := v.bench.Doctor(ctx); err != nil {
			return false, err
		}
	}
	return !child.Killed, v.compare(ctx, child)
}

// compare holds the disk against what was there before and what was printed.
func (v *victim) compare(ctx context.Context, child crashtest.Child) error {
	ids, err := v.bench.Tasks()
	if err != nil {
		return err
	}
	switch {
	case len(ids) > 1:
		return fmt.Errorf("%d tasks came of one: %v", len(ids), ids)
	case len(ids) == 0 && len(child.Lines) > 0:
		return fmt.Errorf("%d events were printed and there is no task", len(child.Lines))
	case len(ids) == 0:
		return nil
	}
	if !hasJournal(v.bench, ids[0]) {
		if len(child.Lines) > 0 {
			return fmt.Errorf("%d events were printed and there is no journal", len(child.Lines))
		}
		return os.RemoveAll(filepath.Join(v.bench.Root(), "tasks", ids[0])) // start again
	}
	v.id = ids[0]
	l, err := v.bench.Look(ctx, v.id)
	if err != nil {
		return err
	}
	durable, err := crashtest.CheckPrinted(child.Lines, l)
	v.t.add(func() { v.t.durable += durable })
	if err == nil {
		err = crashtest.CheckPrefix(v.before, l)
	}
	if err == nil && len(l.Damaged) > 0 {
		err = fmt.Errorf("damaged: %v", l.Damaged)
	}
	if err == nil {
		_, err = v.lines(l)
	}
	v.before = l
	return err
}

func hasJournal(b *crashtest.Bench, id string) bool {
	info, err := os.Stat(filepath.Join(b.Root(), "tasks", id, "journal.jsonl"))
	return err == nil && info.Size() > 0
}
