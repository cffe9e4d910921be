package server

import (
	"os"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/failpoint"
)

// at starts the server so that it dies by itself at a place, the first time it comes there.
func (k *killed) at(t *testing.T, place string) {
	t.Helper()
	if place != "" {
		t.Setenv(failpoint.Env, place)
		defer os.Unsetenv(failpoint.Env)
	}
	k.start(t)
}

// has counts the durable events of a task of a type whose data has some words.
func (g *bench) has(task, typ, words string) (n int) {
	g.Helper()
	for _, f := range journalOf(g, g.store, task) {
		if f.Type == typ && strings.Contains(f.Data, words) {
			n++
		}
	}
	return n
}

// Whatever is posted under a key has its effect once: when the server dies between the
// effect and the answer, and is asked again, and when it dies right behind the answer. What
// was acknowledged stands on the disk then, before any server reads it again, and the repeat
// gets the first answer, byte for byte.
func TestEveryAcknowledgedPostOutlivesAKill(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a server many times")
	}
	w := newEditBench(t)
	k := &killed{bench: w.bench}
	folders := func() int { return w.count() }
	event := func(task *string, typ, words string) func() int {
		return func() int { return w.has(*task, typ, words) }
	}
	id, busy, asks := w.id, "", ""
	question := ""
	var trashed api.DeletedTask
	for _, c := range []struct {
		name, place string // where it dies
		before      func() // by a server that lives
		path        func() string
		body        string
		effect      func() int // how often it was had
	}{
		{"a task", "engine.made", nil, func() string { return "/v1/tasks" }, w.task(sayDone, "go"), folders},
		{"a task that does nothing yet", "", nil, func() string { return "/v1/tasks" }, w.task(sayDone, ""), folders},
		{"condense", "condense.committed", nil, func() string { return w.path("/condense") }, `{}`, event(&id, "history.condensed", "")},
		{"a rewind", "journal.synced:2", nil, func() string { return w.path("/rewinds") }, `{}`, event(&id, "history.rewound", "")},
		{"undo", "journal.synced:2", nil, func() string { return w.path("/undo") }, `{}`, event(&id, "history.undone", `"undoes"`)},
		{"redo", "", nil, func() string { return w.path("/redo") }, `{}`, event(&id, "history.undone", `"redoes"`)},
		{"a fork", "fork.made", nil, func() string { return w.path("/forks") }, `{}`, folders},
		{"a restore", "restore.applied-all", nil, func() string { return w.path("/checkpoints/0/restore") }, `{}`, event(&id, "checkpoint.restored", `"done"`)},
		{"a run", "engine.started", nil, func() string { return w.path("/runs") }, `{"message":{"text":"words of a run"}}`, event(&id, "message.added", `"say":"user_feedback","text":"words of a run"`)},
		{"words", "engine.sent", func() { busy = w.started(hangs).Task }, func() string { return "/v1/tasks/" + busy + "/messages" }, `{"text":"for the queue"}`, event(&busy, "input.queued", "for the queue")},
		{"cancel", "", func() { busy = w.started(hangs).Task }, func() string { return "/v1/tasks/" + busy + "/cancel" }, ``, event(&busy, "run.ended", `"cancelled"`)},
		{"an answer", "engine.answered", func() {
			asks = w.started(askWhich).Task
			question = w.question(asks).ID
		}, func() string { return "/v1/questions/" + question + "/answer" }, `{"choice":2}`, event(&asks, "question.closed", "green")},
		{"back from the trash", "", func() {
			w.idle(asks)
			w.bench.did(200, &trashed, "DELETE", "/v1/tasks/"+asks, "")
		}, func() string { return "/v1/trash/" + trashed.Name + "/restore" }, ``, folders},
	} {
		k.at(t, c.place)
		if c.before != nil {
			c.before()
		}
		was, key := c.effect(), strings.ReplaceAll("key of "+c.name, " ", "-")
		if c.place != "" {
			if status, _, answer := k.try(c.path(), c.body, key); status != 0 {
				t.Errorf("%s: it was answered in spite of a death at %s: %d %s", c.name, c.place, status, answer)
			}
			k.kill()
			k.start(t)
		}
		status, _, first := k.try(c.path(), c.body, key)
		k.kill()
		if status/100 != 2 {
			t.Fatalf("%s: got %d %s, want status/100 = 2", c.name, status, first)
		}
		if now := c.effect(); now != was+1 {
			t.Errorf("%s: behind its acknowledgement it was done %d times", c.name, now-was)
		}
		k.start(t)
		again, replayed, second := k.try(c.path(), c.body, key)
		k.kill()
		if again != status || !replayed || string(second) != string(first) {
			t.Errorf("%s: the repeat gets %d, replayed: %v\n%s\nand not %d\n%s", c.name, again, replayed, second, status, first)
		}
		if now := c.effect(); now != was+1 {
			t.Errorf("%s: behind its repeat it was done %d times", c.name, now-was)
		}
	}
}
