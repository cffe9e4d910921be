package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/faultfs"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/server/idempotency"
	"github.com/roost-dev/roost/store"
)

// records are the files of keys.
func (g *bench) records() []string {
	g.Helper()
	return fixture.Must[[]string](g)(filepath.Glob(filepath.Join(g.store.Root(), "server", "idempotency", "*")))
}

// 19.21.10: the same key fifty times at once is one effect, and one answer.
func TestOneKeyIsOneEffect(t *testing.T) {
	g := newWorkingBench(t)
	before := g.count()
	body := g.task(sayDone, "go")
	key := keyHeader + ": the-key"
	answers := make([]string, 50)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() {
			resp := g.send("POST", "/v1/tasks", body, key)
			data, err := io.ReadAll(resp.Body)
			answers[i] = fmt.Sprint(resp.StatusCode, resp.Header.Get("Location"), resp.Header.Get("Roost-Run-Id"), string(data), err)
		})
	}
	wait.Wait()
	for _, a := range answers {
		if a != answers[0] || !strings.HasPrefix(a, "201") {
			t.Fatalf("got %s\n%s, want a = answers[0] and strings.HasPrefix(a, \"201\")", answers[0], a)
		}
	}
	if n := g.count() - before; n != 1 {
		t.Errorf("%d tasks were made", n)
	}
	var r made
	head := g.did(201, &r, "POST", "/v1/tasks", body, key)
	if head.Get("Idempotent-Replayed") != "true" {
		t.Error("the repeat does not say that it is one")
	}
	g.state(r.ID, "completed")
	var page api.Page[api.Run]
	g.did(200, &page, "GET", "/v1/tasks/"+r.Task+"/runs", "")
	if len(page.Items) != 1 {
		t.Errorf("%d runs", len(page.Items))
	}
	// A run and words of one key are said once, too.
	for _, c := range []struct{ path, body string }{{"/runs", `{"message":{"text":"once more"}}`}, {"/messages", `{"text":"and this"}`}} {
		key := keyHeader + ": key-of-" + c.path[1:]
		for range 20 {
			wait.Go(func() {
				resp := g.send("POST", "/v1/tasks/"+r.Task+c.path, c.body, key)
				if resp.StatusCode != 202 {
					t.Errorf("%s: got %s, want resp.StatusCode = 202", c.path, resp.Status)
				}
			})
		}
		wait.Wait()
		g.idle(r.Task)
	}
	said := map[string]int{}
	for _, f := range journalOf(t, g.store, r.Task) {
		for _, words := range []string{"once more", "and this"} {
			if f.Type == "message.added" && strings.Contains(f.Data, `"user_feedback"`) && strings.Contains(f.Data, words) {
				said[words]++
			}
		}
	}
	if said["once more"] != 1 || said["and this"] != 1 {
		t.Errorf(`got %v, want said["once more"] = 1 and said["and this"] = 1`, said)
	}
}

// A key belongs to one request: another one with it is refused, and one that failed leaves
// it free.
func TestAKeyIsOfOneRequest(t *testing.T) {
	g := newWorkingBench(t)
	key := keyHeader + ": k1"
	g.denied(422, "validation_failed", "POST", "/v1/tasks", `{"workspace":"relative"}`, key)
	body := g.task(sayDone, "go")
	var r made
	g.did(201, &r, "POST", "/v1/tasks", body, key)
	for _, c := range [][2]string{{"/v1/tasks", g.task(sayDone, "other")}, {"/v1/tasks/" + r.Task + "/runs", body}, {"/v1/tasks/" + r.Task + "/cancel", ""}} {
		p := g.denied(422, "idempotency_mismatch", "POST", c[0], c[1], key)
		if p.Errors[0].Parameter != keyHeader {
			t.Errorf("got %+v, want p.Errors[0].Parameter = keyHeader", p)
		}
	}
	for _, bad := range []string{"a b", "é", strings.Repeat("k", 256)} {
		g.denied(400, "bad_header", "POST", "/v1/tasks", body, keyHeader+": "+bad)
	}
	g.did(201, nil, "POST", "/v1/tasks", g.task(sayDone, ""), keyHeader+": "+strings.Repeat("~", 255))
	for _, file := range g.records() {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("got %v %v, want no error and info.Mode().Perm() = 0o600", info.Mode(), err)
		}
		if data, _ := os.ReadFile(file); strings.Contains(string(data), g.token) || strings.Contains(string(data), "k1") {
			t.Errorf("a record holds the token or the key: %s", data)
		}
	}
	// After a day nothing is known of a key: another request with it is carried out, and is not answered as the first one.
	g.state(r.ID, "completed")
	for _, file := range g.records() {
		fixture.NoError(t, os.Remove(file))
	}
	texts := map[string]bool{}
	for _, text := range []string{"first words", "second words"} {
		var other made
		g.did(201, &other, "POST", "/v1/tasks", g.task(sayDone, text), key)
		var sent api.Sent
		g.did(202, &sent, "POST", "/v1/tasks/"+r.Task+"/messages", `{"text":"`+text+`"}`, keyHeader+": k2")
		g.idle(r.Task)
		texts[other.Task], texts[sent.Input] = true, true
		for _, file := range g.records() {
			fixture.NoError(t, os.Remove(file))
		}
	}
	if len(texts) != 4 || texts[r.Task] {
		t.Errorf("got the tasks and inputs %v, want two new tasks and two inputs", texts)
	}
}

// A change whose answer a kill lost is not made twice, also when a repeat of it was refused in between.
func TestARefusedRepeatKeepsTheKey(t *testing.T) {
	g := newWorkingBench(t)
	id := g.started(strings.TrimSuffix(sayDone, "]") + ", " + strings.TrimPrefix(hangs, "[")).Task
	g.idle(id)
	for _, title := range []string{"one", "two"} {
		g.did(200, nil, "PATCH", "/v1/tasks/"+id, `{"title":"`+title+`"}`)
	}
	key := keyHeader + ": k"
	g.did(200, nil, "POST", "/v1/tasks/"+id+"/undo", "{}", key)
	for _, file := range g.records() {
		intent, _, _ := bytes.Cut(fixture.Must[[]byte](t)(os.ReadFile(file)), []byte("\n"))
		fixture.NoError(t, os.WriteFile(file, append(intent, '\n'), 0o600))
	}
	g.did(202, nil, "POST", "/v1/tasks/"+id+"/runs", `{"message":{"text":"on"}}`)
	g.until(id, "running")
	g.denied(409, "task_busy", "POST", "/v1/tasks/"+id+"/undo", "{}", key)
	g.did(200, nil, "POST", "/v1/tasks/"+id+"/cancel", "")
	g.idle(id)
	g.did(200, nil, "POST", "/v1/tasks/"+id+"/undo", "{}", key)
	var row api.Summary
	if g.did(200, &row, "GET", "/v1/tasks/"+id, ""); row.Title != "one" {
		t.Errorf("after one undo that was sent three times: the title is %q, want one", row.Title)
	}
}

// No record holds the key of a log-in link.
func TestALogInLinkIsNotKept(t *testing.T) {
	g := newWorkingBench(t)
	g.srv.opt.URL = g.url
	var login api.Login
	g.did(201, &login, "POST", "/v1/server/logins", "", keyHeader+": k")
	_, secret, _ := strings.Cut(login.URL, "key=")
	for _, file := range g.records() {
		if data := fixture.Must[[]byte](t)(os.ReadFile(file)); secret == "" || bytes.Contains(data, []byte(secret)) {
			t.Errorf("a record holds the link %q: %s", login.URL, data)
		}
	}
}

// The repeat of a stream is the stream of the same run.
func TestARepeatedStreamIsOfTheSameRun(t *testing.T) {
	g := newWorkingBench(t)
	body := g.task(sayDone, "go")
	read := func() (id string, events []frame) {
		resp := g.send("POST", "/v1/tasks", body, keyHeader+": s", "Accept: "+streamMedia)
		if resp.StatusCode/100 != 2 || resp.Header.Get("Content-Type") != streamMedia {
			t.Fatal(resp.Status, resp.Header)
		}
		s := &stream{t, resp, bufio.NewReader(resp.Body)}
		for f, ok := s.next(); ok; f, ok = s.next() {
			if f.ID != "" {
				events = append(events, f)
			}
		}
		return resp.Header.Get("Roost-Run-Id"), events
	}
	first, events := read()
	second, again := read()
	if first == "" || first != second {
		t.Fatalf("%q and %q", first, second)
	}
	if diff := firstDifference(events, again); diff != "" {
		t.Error(diff)
	}
	if len(events) < 5 || events[len(events)-1].Type != "run.ended" {
		t.Errorf("%d events", len(events))
	}
}

// A repeat waits for the first, and is told to come back when that takes too long.
func TestARepeatWaitsForTheFirst(t *testing.T) {
	g := newWorkingBench(t)
	d := g.srv.keyed
	body := g.task(sayDone, "go")
	a := &asked{Request: g.send("POST", "/v1/nothing", "").Request, body: []byte(body)}
	a.URL.Path = "/v1/tasks"
	one, _, err := d.Begin(t.Context(), "busy", "POST /v1/tasks", idempotency.Fingerprint(a.Request, a.body))
	if err != nil {
		t.Fatal(err)
	}
	p := g.denied(409, "idempotency_in_flight", "POST", "/v1/tasks", body, keyHeader+": busy")
	if !p.Retryable {
		t.Error("it is not said to be worth another try")
	}
	answered := make(chan int)
	go func() { answered <- g.send("POST", "/v1/tasks", body, keyHeader+": busy").StatusCode }()
	if err := one.Finish(idempotency.Answer{Status: 418, Body: "{}\n"}); err != nil {
		t.Fatal(err)
	}
	if status := <-answered; status != 418 {
		t.Errorf("the repeat was answered with %d", status)
	}
}

// A disk that refuses a write may have taken the commit before. A repeat with the same key then takes no second effect.
func TestARepeatAfterTheDiskRefused(t *testing.T) {
	fs := faultfs.New()
	g := newBench(t, func(o *testOptions) {
		root := o.Store.Root()
		o.Store = fixture.Must[*store.Store](t)(store.Open(store.Options{Root: root, State: root + ".state", Program: "test", FS: fs}))
		o.Engine = engine.New(o.Store, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	})
	t.Cleanup(func() { fixture.NoError(t, g.opt.Engine.Close(context.Background())) })
	path := "/v1/tasks/" + g.id
	for i := int64(1); ; i++ {
		for _, title := range []string{"one", "two", "three"} {
			g.did(http.StatusOK, nil, "PATCH", path, `{"title":"`+title+`"}`)
		}
		key := fmt.Sprint("Idempotency-Key: undo-", i)
		calls, failed := atomic.Int64{}, atomic.Value{}
		fs.Fail(func(op, name string) error {
			if calls.Add(1) != i {
				return nil
			}
			failed.Store(op + " of " + name)
			return syscall.ENOSPC
		})
		first := g.send("POST", path+"/undo", `{}`, key).StatusCode
		fs.Fail(nil)
		var row api.Summary
		second := g.send("POST", path+"/undo", `{}`, key).StatusCode
		if g.did(http.StatusOK, &row, "GET", path, ""); row.Title != "two" || second != http.StatusOK {
			t.Errorf("after the %s failed: got %d, then %d and the title %q, want 200 and the title two", failed.Load(), first, second, row.Title)
		}
		if failed.Load() == nil {
			return
		}
	}
}
