package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/server/presence"
	"github.com/roost-dev/roost/store"
)

// What of the rules the tests beside them take for granted: what holds when nobody says
// anything, and what every one of a kind has.

// A task that names no policy asks, whether it is new or goes on, and a policy that was
// given once is kept.
func TestRuleB04TheUsualPolicyAsks(t *testing.T) {
	g := newWorkingBench(t)
	effects := filepath.Join(g.dir, "ws", "effects.txt")
	body := fmt.Sprintf(`{"workspace":%q,"provider":"script","model":%q`, filepath.Join(g.dir, "ws"), g.model(wantsCommand))
	var r made
	g.did(201, &r, "POST", "/v1/tasks", body+`,"message":{"text":"go"}}`)
	if q := g.question(r.Task); q.Kind != "approval" {
		t.Errorf("got %+v, want q.Kind = \"approval\"", q)
	}
	g.did(200, nil, "POST", "/v1/tasks/"+r.Task+"/cancel", "")
	idle := func() string {
		var still made
		g.did(201, &still, "POST", "/v1/tasks", body+`}`)
		return still.Task
	}
	for path, words := range map[string]string{"/runs": `{"message":{"text":"go"}}`, "/messages": `{"text":"go"}`} {
		id := idle()
		g.did(202, nil, "POST", "/v1/tasks/"+id+path, words)
		if q := g.question(id); q.Kind != "approval" {
			t.Errorf("%s: got %+v, want q.Kind = \"approval\"", path, q)
		}
		g.did(200, nil, "POST", "/v1/tasks/"+id+"/cancel", "")
	}
	if _, err := os.Stat(effects); !os.IsNotExist(err) {
		t.Error("the command ran unasked")
	}
	id := idle()
	g.did(200, nil, "PATCH", "/v1/tasks/"+id, `{"approve":"all"}`)
	g.did(202, nil, "POST", "/v1/tasks/"+id+"/runs", `{"message":{"text":"go"}}`)
	g.idle(id)
	if _, err := os.Stat(effects); err != nil {
		t.Error("the task's own policy was not kept:", err)
	}
}

// The limits of a run are told with it, whoever set them.
func TestRuleB08LimitsAreTold(t *testing.T) {
	g := newWorkingBench(t)
	var r made
	body := strings.TrimSuffix(g.task(sayDone, "go"), "}")
	g.did(201, &r, "POST", "/v1/tasks", body+`,"limits":{"max_turns":7,"max_cost":"1.5","idle_timeout":"90s","total_timeout":"1h"}}`)
	limits := func(of string) string {
		var run struct{ Limits json.RawMessage }
		g.did(200, &run, "GET", "/v1/runs/"+of, "")
		return string(run.Limits)
	}
	g.state(r.ID, "completed")
	if got, want := limits(r.ID), `{"max_turns":7,"max_cost":"1.50","idle_timeout":"1m30s","total_timeout":"1h0m0s"}`; got != want {
		t.Errorf("it has %s, want %s", got, want)
	}
	var next api.Run
	g.did(202, &next, "POST", "/v1/tasks/"+r.Task+"/runs", `{"message":{"text":"more"},"limits":{"max_turns":0,"total_timeout":"0"}}`)
	g.state(next.ID, "completed")
	if got, want := limits(next.ID), `{"max_cost":"1.50","idle_timeout":"1m30s"}`; got != want {
		t.Errorf("it goes on with %s, want %s", got, want)
	}
	if got := limits(g.lastRun()); got != "{}" {
		t.Errorf("one without limits has %s", got)
	}
}

// Every event says whose it is, where it stands and when it was; what a run did names it,
// under the one name that the answer gave.
func TestRuleB02EventsAreWhole(t *testing.T) {
	g := newWorkingBench(t)
	r := g.started("- tools: [{name: read_file, input: {path: a.txt}}]" + askWhich)
	q := g.question(r.Task)
	g.did(200, nil, "POST", "/v1/questions/"+q.ID+"/answer", `{"choice":1}`)
	g.state(r.ID, "completed")
	at := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	id := regexp.MustCompile(`^(\d+)\.(\d+)-(\d+)$`)
	begun, seen := false, map[string]bool{}
	for _, f := range g.follow("/v1/tasks/" + r.Task + "/events?after=0").take(len(journalOf(t, g.store, r.Task))) {
		var e struct {
			Type, At string
			Task     string  `json:"task_id"`
			Run      *string `json:"run_id"`
			Seq      int64
		}
		if err := json.Unmarshal([]byte(f.Data), &e); err != nil {
			t.Fatal(err)
		}
		seen[f.Type] = true
		place := id.FindStringSubmatch(f.ID)
		if e.Type != f.Type || e.Task != r.Task || !at.MatchString(e.At) || place == nil || place[2] != fmt.Sprint(e.Seq) {
			t.Errorf("id %s, event %s: %s", f.ID, f.Type, f.Data)
		}
		if when, err := time.Parse(time.RFC3339, e.At); err != nil || time.Since(when).Abs() > time.Hour {
			t.Errorf("it was at %s: %v", e.At, err)
		}
		if begun = begun || f.Type == "run.started"; begun && (e.Run == nil || *e.Run != r.ID) {
			t.Errorf("of which run: %s", f.Data)
		}
	}
	for _, want := range []string{"task.created", "run.started", "turn.started", "message.added", "tool.started", "question.opened", "question.closed", "tool.finished", "usage.changed", "turn.ended", "run.ended"} {
		if !seen[want] {
			t.Errorf("no %s among %v", want, seen)
		}
	}
}

// A question is one event of its own, with all that an answer needs, and its name is the
// one that every list gives it.
func TestRuleB10AQuestionIsAnEvent(t *testing.T) {
	g := newWorkingBench(t)
	for _, c := range []struct{ script, kind, choices string }{{askWhich, "followup", `["red","green"]`}, {wantsCommand, "approval", ""}} {
		r := g.started(c.script, "approve=ask")
		q := g.question(r.Task)
		opened := 0
		for _, f := range journalOf(t, g.store, r.Task) {
			var e struct {
				Question, Kind, Text string
				Choices              json.RawMessage
			}
			if err := json.Unmarshal([]byte(f.Data), &e); err != nil || f.Type != "question.opened" {
				continue
			}
			opened++
			if q.ID != r.Task+"."+e.Question || q.Event != f.ID || e.Kind != c.kind || q.Kind != c.kind || string(e.Choices) != c.choices || e.Text != q.Text {
				t.Errorf("got %+v\n%s %s, want q.ID = r.Task+\".\"+e.Question and q.Event = f.ID and e.Kind = c.kind and q.Kind = c.kind and string(e.Choices) = c.choices and e.Text = q.Text",
					q, f.ID, f.Data)
			}
		}
		if opened != 1 {
			t.Errorf("%s: it was opened %d times", c.kind, opened)
		}
		var run api.Run
		if g.did(200, &run, "GET", "/v1/runs/"+r.ID, ""); run.Question != q.ID || run.State != "waiting" {
			t.Errorf("the run waits for %q (%s)", run.Question, run.State)
		}
		g.did(200, nil, "POST", "/v1/tasks/"+r.Task+"/cancel", "")
	}
}

// What is guessed of another tool's task is told to be guessed.
func TestRuleB22GuessesOfOthersAreNamed(t *testing.T) {
	g := newBench(t)
	storage := filepath.Join(g.dir, "foreign")
	dir := filepath.Join(storage, "tasks", "1776200000000")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ui_messages.json"), []byte(`[{"ts":1776200000000,"type":"say","say":"text","text":"paint it"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := fixture.Must[*store.Store](t)(store.Open(store.Options{Root: g.store.Root(), State: g.store.Root() + ".state", Cache: filepath.Join(g.dir, "cache2"), Program: "test", Sources: []string{storage}}))
	w := newWorkingBenchOn(t, s, g)
	var one api.Summary
	w.did(200, &one, "GET", "/v1/tasks/1776200000000", "")
	var list api.Page[api.Summary]
	w.did(200, &list, "GET", "/v1/tasks?query=1776200000000", "")
	for _, sum := range append(list.Items, one) {
		if got := strings.Join(sum.Inferred, " "); !strings.Contains(got, "origin") || !strings.Contains(got, "title") || sum.Status != "interrupted" && sum.Status != "idle" {
			t.Errorf("%s, inferred: %s", sum.Status, got)
		}
	}
	if len(list.Items) != 1 {
		t.Errorf("%d tasks", len(list.Items))
	}
}

// Whatever a server and its runs leave on the disk is for its owner alone.
func TestRuleB26WhatIsKeptIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are not told there")
	}
	w := newEditBench(t)
	claim := fixture.Must[*presence.Claim](t)(presence.NewClaim(w.store.Root()))
	defer claim.Release()
	if err := claim.Tell(presence.Server{PID: 1, URL: w.url}); err != nil {
		t.Fatal(err)
	}
	w.run(engine.Request{Task: w.id, Text: strings.Repeat("large ", 60_000)})
	fork := did[api.ForkResult](w, 201, w.path("/forks"), `{}`, keyHeader+": k").ID
	did[api.Rewound](w, 200, w.path("/rewinds"), `{}`)
	w.bench.did(200, nil, "DELETE", "/v1/tasks/"+fork, "")
	w.follow("/v1/events?after=0").take(3)
	w.get("/v1/search?q=paint")
	kinds := map[string]bool{}
	for _, dir := range []string{w.store.Root(), filepath.Join(w.dir, "cache")} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // it went meanwhile
				return nil
			}
			if err != nil {
				return err
			}
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s may be read by others: %s", path, info.Mode())
			}
			if err == nil && d.IsDir() && info.Mode().Perm() != 0o700 {
				t.Errorf("%s is of no use: %s", path, info.Mode())
			}
			kinds[d.Name()], kinds[filepath.Ext(d.Name())], kinds[filepath.Base(filepath.Dir(path))] = true, true, true
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{"journal.jsonl", "journal.lock", "journal.idx", "ui_messages.json", "token", "server.json", "idempotency", "trash", "blobs", "feed", ".db"} {
		if !kinds[want] {
			t.Errorf("there is no %s to look at", want)
		}
	}
}

// Lists of runs, words and questions come in pages that lose and repeat nothing.
func TestListsOfWorkHavePages(t *testing.T) {
	g := newWorkingBench(t)
	var r made
	g.did(201, &r, "POST", "/v1/tasks", g.task(hangs, "go"))
	for i := range 3 {
		g.did(202, nil, "POST", "/v1/tasks/"+r.Task+"/messages", fmt.Sprintf(`{"text":"words %d","delivery":"queue"}`, i))
	}
	for range 2 {
		g.question(g.started(askWhich).Task)
	}
	more := g.started(sayDone).Task
	g.idle(more)
	g.did(202, nil, "POST", "/v1/tasks/"+more+"/runs", `{"message":{"text":"more"}}`)
	g.idle(more)
	for path, n := range map[string]int{"/v1/tasks/" + r.Task + "/queue": 3, "/v1/questions": 2, "/v1/tasks/" + more + "/runs": 2, "/v1/runs": 5} {
		// By their names: what else is told of one may change meanwhile.
		type named struct{ ID string }
		var whole, page api.Page[named]
		g.did(200, &whole, "GET", path, "")
		if len(whole.Items) != n || whole.Next != nil {
			t.Errorf("%s: %d items, want %d, and then %v", path, len(whole.Items), n, whole.Next)
		}
		var parts []string
		for cursor := ""; len(parts) <= n; cursor = "&cursor=" + *page.Next {
			page = api.Page[named]{}
			g.did(200, &page, "GET", path+"?limit=1"+cursor, "")
			for _, one := range page.Items {
				parts = append(parts, one.ID)
			}
			if page.Next == nil {
				break
			}
			if len(page.Items) != 1 {
				t.Errorf("%s: a page of %d", path, len(page.Items))
			}
		}
		var want []string
		for _, one := range whole.Items {
			want = append(want, one.ID)
		}
		if diff := cmp.Diff(want, parts); diff != "" {
			t.Errorf("%s in pages:\n%s", path, diff)
		}
		g.denied(400, "bad_cursor", "GET", path+"?cursor=x", "")
	}
	g.did(200, nil, "POST", "/v1/tasks/"+r.Task+"/cancel", "")
}

func joined(items []json.RawMessage) (out string) {
	for _, one := range items {
		out += string(one)
	}
	return out
}

// Words that interrupt stop what works, and are what goes on; words for the queue answer
// nothing that is asked.
func TestDeliveriesOfWords(t *testing.T) {
	g := newWorkingBench(t)
	r := g.started(hangs)
	var sent api.Sent
	g.did(202, &sent, "POST", "/v1/tasks/"+r.Task+"/messages", `{"text":"stop that","delivery":"interrupt"}`)
	if sent.Delivered != "started" || sent.Run == r.ID || sent.Run == "" {
		t.Errorf(`got %+v, want sent.Delivered = "started" and sent.Run != r.ID and sent.Run != ""`, sent)
	}
	g.state(r.ID, "interrupted")
	var now api.Run
	if g.did(200, &now, "GET", "/v1/runs/"+sent.Run, ""); now.EndedAt != nil || now.Task != r.Task {
		t.Errorf("got %+v, want now.EndedAt = nil and now.Task = r.Task", now)
	}
	var page struct{ Items []json.RawMessage }
	g.did(200, &page, "GET", "/v1/tasks/"+r.Task+"/messages", "")
	if n := strings.Count(joined(page.Items), `"stop that"`); n != 1 {
		t.Errorf("the words stand there %d times:\n%s", n, joined(page.Items))
	}
	g.did(200, nil, "POST", "/v1/tasks/"+r.Task+"/cancel", "")
	asks := g.started(askWhich)
	q := g.question(asks.Task)
	if g.did(202, &sent, "POST", "/v1/tasks/"+asks.Task+"/messages", `{"text":"for later","delivery":"queue"}`); sent.Delivered != "queued" || sent.Input == "" {
		t.Errorf(`got %+v, want sent.Delivered = "queued" and sent.Input != ""`, sent)
	}
	if still := g.question(asks.Task); still.ID != q.ID {
		t.Errorf("%+v became %+v", q, still)
	}
	if g.did(202, &sent, "POST", "/v1/tasks/"+asks.Task+"/messages", `{"text":"green"}`); sent.Delivered != "answered" || sent.Question != q.ID || sent.Run != asks.ID {
		t.Errorf("got %+v, want sent.Delivered = \"answered\" and sent.Question = q.ID and sent.Run = asks.ID", sent)
	}
	g.idle(asks.Task)
}

// What the contract names is what a server has that was told nothing: a sign of life each
// ten seconds, and bounds for whoever sends without end.
func TestTheUsualBounds(t *testing.T) {
	var o Options
	o.fill()
	if o.Heartbeat != 10*time.Second || o.HeaderTimeout > 30*time.Second || o.BodyTimeout > 5*time.Minute || o.WriteTimeout > time.Minute || o.MaxBody >= 100<<20 ||
		o.MaxStreams < 1000 || o.MaxPerClient < 1000 || o.MaxConns < o.MaxStreams {
		t.Errorf("%+v", o)
	}
	g := newWorkingBench(t)
	r := httptest.NewRequest("POST", "http://localhost/v1/tasks", strings.NewReader("{}"))
	r.Header.Set("Authorization", "Bearer "+g.token)
	r.Header.Set("Content-Type", jsonMedia)
	r.ContentLength = 100 << 20
	answer := httptest.NewRecorder()
	if g.srv.Handler().ServeHTTP(answer, r); answer.Code != 413 {
		t.Errorf("got %d %s, want answer.Code = 413", answer.Code, answer.Body)
	}
}

// A task folder that is a link leads nowhere: it is not changed through, and what it
// points to stays as it is.
func TestLinkedTasksAreNotWritten(t *testing.T) {
	g := newWorkingBench(t)
	away := filepath.Join(g.dir, "away")
	if err := os.CopyFS(away, os.DirFS(filepath.Join(g.store.Root(), "tasks", g.id))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(away, filepath.Join(g.store.Root(), "tasks", "linked")); err != nil {
		t.Skip(err)
	}
	before := fingerprint(t, away)
	for _, c := range [][3]string{
		{"PATCH", "", `{"title":"through the link"}`}, {"POST", "/runs", `{"message":{"text":"go"},"approve":"all"}`}, {"POST", "/messages", `{"text":"go"}`},
		{"POST", "/rewinds", `{}`}, {"POST", "/forks", `{"dry_run":true}`}, {"DELETE", "", ""},
	} {
		resp := g.send(c[0], "/v1/tasks/linked"+c[1], c[2])
		only := c[1] == "/forks" || c[0] == "DELETE" // one reads, the other moves the link
		if resp.StatusCode/100 == 2 && !only || resp.StatusCode >= 500 {
			t.Errorf("got %s %s: %s, want (resp.StatusCode/100 != 2 or only) and resp.StatusCode < 500",
				c[0], c[1], resp.Status)
		}
	}
	if diff := len(fingerprint(t, away)) - len(before); diff != 0 {
		t.Errorf("%d files more behind the link", diff)
	}
	for path, was := range before {
		if now := fingerprint(t, away)[path]; now != was {
			t.Errorf("%s: %s became %s", path, was, now)
		}
	}
}
