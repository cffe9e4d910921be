package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/store/rootkey"
)

// read reads the whole journal of a task from the database, and checks it: no commit is missing, no epoch falls, and the
// key of the group proves each line. The sums are those of its beginnings up to the given commits, and of the whole.
func (g *group) read(task string, at ...uint64) (commits []journal.Commit, sums []journal.Sum) {
	g.t.Helper()
	ctx := g.t.Context()
	db, err := database.Open(ctx, g.url)
	must(g.t, err)
	defer db.Close()
	logs := postgres.Open(ctx, db, postgres.Options{})
	defer logs.Close()
	ring, err := rootkey.Group(g.key, false)
	must(g.t, err)
	seal, err := ring.Seal("tasks/" + task)
	must(g.t, err)
	log, err := logs.OpenReader(ctx, "tasks/"+task, seal)
	must(g.t, err)
	defer log.Close() //nolint:errcheck // it only reads
	if sums, err = journal.Sums(ctx, log, at...); err != nil {
		g.t.Fatalf("the journal of task %s: got %v, want every commit whole and in its place", task, err)
	}
	for c, err := range log.Read(ctx, 1) {
		must(g.t, err)
		if n := len(commits); n > 0 && c.Epoch < commits[n-1].Epoch {
			g.t.Errorf("commit %d of task %s: got epoch %d behind epoch %d, want none that falls", c.Seq, task, c.Epoch, commits[n-1].Epoch)
		}
		commits = append(commits, c)
	}
	prover, ok := log.(journal.Prover)
	if !ok {
		g.t.Fatalf("got a journal of type %T, want one that can be proven", log)
	}
	if proof, err := prover.Proof(ctx); err != nil || proof != (journal.Proof{}) {
		g.t.Errorf("the proof of task %s: got %+v, %v, want every commit proven", task, proof, err)
	}
	return commits, sums
}

// ready is the status of /readyz.
func (d *daemon) ready() int {
	var out struct{ Status string }
	return d.try(d.t.Context(), http.MethodGet, "/readyz", "", nil, &out)
}

// try sends a request with a body to a server, as a client that gives up after a while. status is 0 when no whole answer
// came.
func (d *daemon) try(ctx context.Context, method, path, key string, body, into any) (status int) {
	var data []byte
	var err error
	if body != nil {
		if data, err = json.Marshal(body); err != nil {
			d.t.Error(err)
			return 0
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, d.url+path, bytes.NewReader(data))
	if err != nil {
		d.t.Error(err)
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+d.token)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if data, err = io.ReadAll(resp.Body); err != nil {
		return 0
	}
	if err := json.Unmarshal(data, into); err != nil {
		d.t.Errorf("%s %s: got %s, %v, want a document", method, path, data, err)
	}
	return resp.StatusCode
}

// load is what clients do with tasks of a group while its database fails over.
type load struct {
	*group
	tasks []string

	mu    sync.Mutex
	acked map[string]string // words that a server took, with their task
	again int               // messages that got no success, and were sent again
	seen  map[string][]seen // events, by task
	moves int               // of followers to another server
}

// talks sends messages to all tasks in turn, through each server in turn, until ctx ends and the newest is taken. What got
// no success is sent again with its key, through the next server.
func (l *load) talks(ctx context.Context, client int) {
	for i := 0; ctx.Err() == nil; i++ {
		words, at := fmt.Sprintf("words-%d-%d.", client, i), l.tasks[(client+i)%len(l.tasks)]
		end := time.Now().Add(time.Minute)
		for try, code := 0, 0; code/100 != 2; try++ {
			var refused struct{ Code, Detail string }
			d := l.servers[(client+i+try)%len(l.servers)]
			code = d.try(l.t.Context(), http.MethodPost, "/v1/tasks/"+at+"/messages", words, api.Message{Text: words}, &refused)
			passes := code == 0 || code/100 == 5 || code == http.StatusConflict || code == http.StatusTooManyRequests
			if code/100 != 2 && (!passes || time.Now().After(end)) {
				l.t.Errorf("send %s: got status %d %+v, want success, or for a while an error that passes", words, code, refused)
				return
			}
			l.mu.Lock()
			if code/100 == 2 {
				l.acked[words] = at
			} else {
				l.again++
			}
			l.mu.Unlock()
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// drafts writes one draft after the other for a task, through each server in turn, until ctx ends and the newest is taken.
// Each is written over the one before, so a draft that was taken and is lost is seen.
func (l *load) drafts(ctx context.Context, task string) (last string) {
	path, base := "/v1/tasks/"+task+"/draft", ""
	for i := 0; ctx.Err() == nil; i++ {
		words, answered, end := fmt.Sprintf("draft-%d", i), true, time.Now().Add(time.Minute)
		for try := 0; ; try++ {
			var doc struct{ Revision, Text, Detail string }
			d := l.servers[(i+try)%len(l.servers)]
			code := d.try(l.t.Context(), http.MethodPut, path, "", api.NewDraft{Text: words, Base: base}, &doc)
			if code == http.StatusConflict && !answered { // an earlier try may have been taken
				code = d.try(l.t.Context(), http.MethodGet, path, "", nil, &doc)
				if code == http.StatusOK && doc.Text != words {
					l.t.Errorf("draft of task %s: got %q, want %q, or to write it over revision %s", task, doc.Text, words, base)
					return words
				}
			}
			if code == http.StatusOK {
				base, last = doc.Revision, words
				break
			}
			if code == http.StatusConflict || time.Now().After(end) {
				l.t.Errorf("draft %s of task %s: got status %d %s, want it over revision %s, which was taken", words, task, code, doc.Detail, base)
				return words
			}
			answered = false
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return last
}

// follows follows a task until ctx ends, and moves to the next server after every few events and when a stream breaks.
func (l *load) follows(ctx context.Context, task string, first int) {
	last := ""
	for n := first; ctx.Err() == nil; n++ {
		left := 1 + (7*n)%23
		err := l.servers[n%len(l.servers)].follow(ctx, task, last, func(e seen) bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.seen[task] = append(l.seen[task], e)
			last = e.id
			left--
			return left > 0
		})
		if errors.Is(err, errUnknownEvent) {
			l.t.Errorf("task %s: %v", task, err)
			return
		}
		l.mu.Lock()
		l.moves++
		l.mu.Unlock()
		if err != nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// begun counts how often each command has begun.
func begun(notes string) map[string]int {
	data, _ := os.ReadFile(notes) // none has begun
	n := map[string]int{}
	for _, line := range strings.Fields(string(data)) {
		n[line]++
	}
	return n
}

// The primary of the database is lost while tasks work, people send words and clients follow. The servers go on with its
// standby: what was acknowledged is there once, no command runs twice, and no client sees a gap or a repeat.
func TestGroupFailsOver(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.slow()
	primary, standby := pgtest.StartPair(t)
	g := s.group(pgtest.Either(t, primary.Database(t), standby))
	const tasks, commands, open = 6, 24, 8 // the first ones do not wait
	notes, on := filepath.Join(g.dir, "notes"), filepath.Join(g.dir, "on")
	l := &load{group: g, acked: map[string]string{}, seen: map[string][]seen{}}
	for n := range tasks {
		var script strings.Builder
		for i := range commands {
			wait := "sleep 0.05"
			if i >= open { // the task still works when the primary is lost, on any machine
				wait += "; while [ -d " + g.dir + " -a ! -e " + on + " ]; do sleep 0.02; done"
			}
			script.WriteString(call("execute_command", fmt.Sprintf(`{command: "echo %d.%d >> %s; %s", cwd: null, timeout: null}`, n, i, notes, wait)))
		}
		l.tasks = append(l.tasks, g.servers[n%len(g.servers)].starts(g.script(script.String()+finish("worked")), "work"))
	}
	var work, watch sync.WaitGroup
	working, rest := context.WithCancel(t.Context())
	watching, look := context.WithCancel(t.Context())
	defer watch.Wait()
	defer look()
	defer work.Wait()
	defer rest()
	for client := range 3 {
		work.Go(func() { l.talks(working, client) })
	}
	draft := ""
	work.Go(func() { draft = l.drafts(working, l.tasks[0]) })
	for n, task := range l.tasks {
		watch.Go(func() { l.follows(watching, task, n) })
	}
	g.within(time.Minute, "every task works", func() bool {
		ran := begun(notes)
		for n := range tasks {
			if ran[fmt.Sprintf("%d.%d", n, open/2)] == 0 {
				return false
			}
		}
		return true
	})
	must(t, os.WriteFile(on, nil, 0o600))
	primary.CutOff(t) // what is written from now on is lost with the primary
	time.Sleep(300 * time.Millisecond)
	primary.Kill()
	lost := time.Now()
	time.Sleep(3500 * time.Millisecond) // leases end: some servers go on with their tasks, and others take some over
	if got := g.servers[0].ready(); got != http.StatusServiceUnavailable {
		t.Errorf("/readyz without the database: got status %d, want %d", got, http.StatusServiceUnavailable)
	}
	standby.Promote(t)
	g.within(time.Minute, "every task completes", func() bool {
		time.Sleep(50 * time.Millisecond) // each look costs the servers something
		for i, task := range l.tasks {
			var sum api.Summary
			if g.servers[i%len(g.servers)].try(t.Context(), http.MethodGet, "/v1/tasks/"+task, "", nil, &sum); sum.Status != "completed" {
				return false
			}
		}
		return true
	})
	t.Logf("the tasks are completed %v after the primary was lost", time.Since(lost).Round(time.Millisecond))
	if got := g.servers[0].ready(); got != http.StatusOK {
		t.Errorf("/readyz with the database: got status %d, want %d", got, http.StatusOK)
	}
	rest()
	work.Wait()
	g.within(time.Minute, "the last messages are used", func() bool {
		return !slices.ContainsFunc(l.tasks, func(task string) bool {
			var queue api.Page[api.Queued]
			g.servers[1].ask(http.MethodGet, "/v1/tasks/"+task+"/queue", "", &queue)
			return len(queue.Items) > 0 || g.servers[1].status(task) != "completed"
		})
	})
	ran := begun(notes)
	for command, n := range ran {
		if n != 1 {
			t.Errorf("command %s ran %d times, want once", command, n)
		}
	}
	l.check(draft)
	if l.again == 0 {
		t.Error("no request failed while the database failed over: the test tests nothing")
	}
	t.Logf("%d of %d commands ran, %d messages were taken, %d times one was sent again, followers moved %d times",
		len(ran), tasks*commands, len(l.acked), l.again, l.moves)
}

// check compares the answers that the clients got with the journals of the tasks, once all clients and runs have ended.
func (l *load) check(draft string) {
	l.t.Helper()
	for _, task := range l.tasks {
		l.read(task)
		// The followers come to the newest event, too.
		want := l.all(l.servers[0], task)
		l.within(time.Minute, "the client of task "+task+" sees the newest event", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			got := l.seen[task]
			return len(got) >= len(want) || len(got) > 0 && got[len(got)-1].id == want[len(want)-1].id
		})
		l.mu.Lock()
		differs(l.t, "events of the client of task "+task, l.seen[task], want)
		l.mu.Unlock()
		for _, d := range l.servers[1:] {
			differs(l.t, "events of task "+task+" by "+d.url, l.all(d, task), want)
		}
		for _, history := range []string{"messages", "history"} {
			var page json.RawMessage
			if code := l.servers[2].ask(http.MethodGet, "/v1/tasks/"+task+"/"+history+"?limit=1000", "", &page); code != http.StatusOK {
				l.t.Errorf("%s of task %s: got status %d, want 200", history, task, code)
			}
			for words, at := range l.acked {
				want := 0
				if at == task {
					want = 1
				}
				if got := strings.Count(string(page), words); got != want {
					l.t.Errorf("%s in %s of task %s: got it %d times, want %d, because it was taken for task %s", words, history, task, got, want, at)
				}
			}
		}
	}
	for _, d := range l.servers {
		var doc api.Draft
		if d.ask(http.MethodGet, "/v1/tasks/"+l.tasks[0]+"/draft", "", &doc); doc.Text != draft {
			l.t.Errorf("the draft by %s: got %q, want %q", d.url, doc.Text, draft)
		}
	}
}

// all are the events of a task up to the newest, as a server shows them.
func (l *load) all(d *daemon, task string) (list []seen) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, d.url+"/v1/tasks/"+task+"/events", nil)
	must(l.t, err)
	req.Header.Set("Authorization", "Bearer "+d.token)
	resp, err := http.DefaultClient.Do(req)
	must(l.t, err)
	must(l.t, resp.Body.Close())
	newest := resp.Header.Get("Roost-Event-Id")
	err = d.follow(ctx, task, "", func(e seen) bool {
		list = append(list, e)
		return e.id != newest
	})
	if err != nil {
		l.t.Fatalf("the events of task %s by %s end without the newest, %s: %v", task, d.url, newest, err)
	}
	return list
}

// differs reports the first place where two lists of events differ.
func differs(t *testing.T, what string, got, want []seen) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("%s: event %d of %d: got %+v, want %+v", what, i, len(want), got[min(i, len(got)):min(i+1, len(got))],
				want[min(i, len(want)):min(i+1, len(want))])
			return
		}
	}
}

// asks waits until a task asks, and returns the question, which is not the one that was answered before.
func (g *group) asks(task, before string) (q api.Question) {
	g.t.Helper()
	g.within(time.Minute, "task "+task+" asks", func() bool {
		var open api.Page[api.Question]
		g.servers[0].ask(http.MethodGet, "/v1/questions?task="+task, "", &open)
		if len(open.Items) > 0 {
			q = open.Items[0]
		}
		return q.ID != "" && q.ID != before
	})
	return q
}

// An approval is given through any server and continues the run. Of two people who decide at the same time through two
// servers, one succeeds and the other one gets the first decision in the refusal. The command runs only if the first
// decision allows it.
func TestGroupAnswersOnce(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]string{"while the run waits": "10m", "when the run has let go of its task": "1ms"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t, "--hold", hold)
			a, b, c := g.servers[0], g.servers[1], g.servers[2]
			const rounds = 8
			notes := filepath.Join(g.dir, "notes")
			var script strings.Builder
			for i := range 1 + rounds {
				script.WriteString(call("execute_command", fmt.Sprintf(`{command: "echo %d. >> %s", cwd: null, timeout: null}`, i, notes)))
			}
			task := a.begins(g.script(script.String()+finish("worked")), "work", "ask")
			ran := func(i int) int {
				data, _ := os.ReadFile(notes) // none has run
				return strings.Count(string(data), fmt.Sprintf("%d.\n", i))
			}
			q := g.asks(task, "")
			run := q.Run
			var first api.Answered
			code := b.ask(http.MethodPost, "/v1/questions/"+q.ID+"/answer", `{"approve":true}`, &first)
			if code != http.StatusOK || first.Run != run || first.Approve == nil || !*first.Approve {
				t.Fatalf("an answer through another server: got status %d, %+v, want a yes that continues run %s", code, first, run)
			}
			yeses := 0
			for i := 1; i <= rounds; i++ {
				q = g.asks(task, q.ID)
				if got := ran(0); got != 1 {
					t.Fatalf("the command that was approved ran %d times, want once", got)
				}
				people := []struct {
					through *daemon
					approve bool
					code    int
					got     struct {
						api.Problem
						Run     string `json:"run_id"`
						Approve *bool
					}
				}{{through: b, approve: i%2 == 0}, {through: c, approve: i%2 == 1}}
				var both sync.WaitGroup
				at := make(chan struct{})
				for n := range people {
					p := &people[n]
					both.Go(func() {
						<-at
						p.code = p.through.try(t.Context(), http.MethodPost, "/v1/questions/"+q.ID+"/answer", "", api.Answer{Approve: &p.approve}, &p.got)
					})
				}
				close(at)
				both.Wait()
				won, lost := people[0], people[1]
				if won.code != http.StatusOK {
					won, lost = lost, won
				}
				if won.code != http.StatusOK || won.got.Run != run || won.got.Approve == nil || *won.got.Approve != won.approve {
					t.Fatalf("round %d: got status %d %s %s of run %q, and %d %s %s, want one answer that continues run %s",
						i, won.code, won.got.Code, won.got.Detail, won.got.Run, lost.code, lost.got.Code, lost.got.Detail, run)
				}
				if first := lost.got.Answer; lost.code != http.StatusConflict || lost.got.Code != "question_answered" ||
					first == nil || first.Approve == nil || *first.Approve != won.approve {
					t.Errorf("round %d, the later answer: got status %d %s %s, want 409 question_answered with the first answer, %v",
						i, lost.code, lost.got.Code, lost.got.Detail, won.approve)
				}
				if i == rounds {
					g.within(time.Minute, "the task completes", func() bool { return a.status(task) == "completed" })
				} else {
					g.asks(task, q.ID)
				}
				want := 0
				if won.approve {
					want, yeses = 1, yeses+1
				}
				if got := ran(i); got != want {
					t.Errorf("round %d: the command ran %d times after the answer %v, want %d", i, got, won.approve, want)
				}
			}
			t.Logf("%d of %d commands were approved", yeses, rounds)
			g.read(task)
			if others := b.log.String() + c.log.String(); hold == "10m" && strings.Contains(others, "run started") {
				t.Errorf("a server that only passes answers on has a run:\n%s", others)
			}
		})
	}
}
