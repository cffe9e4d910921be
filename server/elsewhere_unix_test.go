//go:build unix

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/server/peer"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// terminal is another process of the same user that works on a task: as far as locks and
// sockets go it is one, although it lives in this test's.
type terminal struct {
	g      *bench
	store  *store.Store
	engine *engine.Engine
	socket *Socket
}

func (g *bench) terminal() *terminal {
	g.Helper()
	s := fixture.Must[*store.Store](g)(store.Open(store.Options{Root: g.store.Root(), State: g.store.Root() + ".state", Cache: filepath.Join(g.dir, "cache")}))
	e := engine.New(s, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	x := &terminal{g: g, store: s, engine: e}
	x.socket = NewSocket(runtimeDir(fixture.ShortDir(g)), func() (*Server, error) {
		return New(Options{Service: service.New(s, e, service.Options{}), Token: SocketToken(), Guest: true})
	})
	s.ReachedAt(x.socket.Address)
	g.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			g.Error(err)
		}
		if err := x.socket.Close(); err != nil {
			g.Error(err)
		}
	})
	return x
}

// runs starts a task there.
func (x *terminal) runs(script string) *engine.Run {
	x.g.Helper()
	return fixture.Must[*engine.Run](x.g)(x.engine.Start(context.Background(), engine.Request{
		Text:        "go",
		Choice:      setup.Choice{Workspace: filepath.Join(x.g.dir, "ws"), Provider: "script", Model: x.g.model(script), Approve: "all"},
		Interactive: true,
	}))
}

// begun waits until a run has asked its model: words that are sent later wait in the run's queue.
func (x *terminal) begun(run *engine.Run) {
	x.g.Helper()
	for events := x.g.follow("/v1/tasks/" + run.TaskID + "/events?after=0"); ; {
		switch f, ok := events.next(); {
		case !ok:
			x.g.Fatal("the events ended before a turn started")
		case f.Type == "turn.started":
			return
		}
	}
}

func (x *terminal) ended(run *engine.Run, want string) {
	x.g.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if o, err := run.Wait(ctx); err != nil || o.State != want {
		x.g.Errorf("the run ended %s (%s), %v, want %s", o.State, o.Reason, err, want)
	}
}

func TestAQuestionOfAnotherProcessIsAnsweredOverHTTP(t *testing.T) {
	t.Parallel()
	g := newWorkingBench(t)
	x := g.terminal()
	run := x.runs(askWhich)
	q := g.question(run.TaskID)
	var stands api.Run
	g.did(200, &stands, "GET", "/v1/runs/"+run.ID, "")
	if stands.State != "waiting" || !stands.Here { // nobody let it go
		t.Errorf("the run stands %+v", stands)
	}
	const answers = 5
	codes, bodies := make([]int, answers), make([]string, answers)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() {
			resp := g.send("POST", "/v1/questions/"+q.ID+"/answer", fmt.Sprintf(`{"text":"answer %d"}`, i), "Idempotency-Key: key-"+strconv.Itoa(i))
			var doc json.RawMessage
			_ = json.NewDecoder(resp.Body).Decode(&doc)
			codes[i], bodies[i] = resp.StatusCode, string(doc)
		})
	}
	wait.Wait()
	won := -1
	for i, code := range codes {
		switch {
		case code == http.StatusOK && won < 0:
			won = i
		case code != http.StatusConflict && code != http.StatusNotFound:
			t.Errorf("answer %d got %d %s", i, code, bodies[i])
		}
	}
	if won < 0 {
		t.Fatalf("nobody's answer was taken: %v %s", codes, bodies)
	}
	x.ended(run, "completed")
	for _, e := range journalOf(t, g.store, run.TaskID) {
		if e.Type == "question.closed" && !strings.Contains(e.Data, fmt.Sprintf(`"text":"answer %d"`, won)) {
			t.Errorf("%d was told that it won, and the log says %s", won, e.Data)
		}
	}
	// Asked again with its key, the winner is told the same, although the process is at its end.
	if again := g.send("POST", "/v1/questions/"+q.ID+"/answer", fmt.Sprintf(`{"text":"answer %d"}`, won), "Idempotency-Key: key-"+strconv.Itoa(won)); again.StatusCode != http.StatusOK {
		t.Errorf("again: %s", again.Status)
	}
	late := g.denied(409, "question_answered", "POST", "/v1/questions/"+q.ID+"/answer", `{"text":"late"}`)
	if !strings.Contains(late.Detail, "cli") {
		t.Errorf("the late one is told %q", late.Detail)
	}
}

func TestWordsAndCancelReachAnotherProcess(t *testing.T) {
	t.Parallel()
	g := newWorkingBench(t)
	x := g.terminal()
	run := x.runs(hangs)
	x.begun(run)
	for range 2 { // the second one is the first one again
		var sent api.Sent
		g.did(202, &sent, "POST", "/v1/tasks/"+run.TaskID+"/messages", `{"text":"and this"}`, "Idempotency-Key: words")
		if sent.Delivered != "queued" || sent.Run != run.ID || sent.Task != run.TaskID {
			t.Errorf("sent: %+v", sent)
		}
	}
	var waiting api.Page[api.Queued]
	g.did(200, &waiting, "GET", "/v1/tasks/"+run.TaskID+"/queue", "")
	if len(waiting.Items) != 1 || waiting.Items[0].Text != "and this" {
		t.Errorf("the queue: %+v", waiting.Items)
	}
	g.denied(409, "task_busy", "POST", "/v1/tasks/"+run.TaskID+"/runs", `{}`)
	var ended api.Run
	g.did(200, &ended, "POST", "/v1/runs/"+run.ID+"/cancel", "")
	if ended.State != "cancelled" || ended.ID != run.ID {
		t.Errorf("cancelled: %+v", ended)
	}
	x.ended(run, "cancelled")
}

// A server sends the live words of another process's run, too, and the durable events in the same bytes.
func TestARunElsewhereIsHeardHere(t *testing.T) {
	t.Parallel()
	g := newWorkingBench(t)
	x := g.terminal()
	run := x.runs("\n- text: " + strings.Repeat("word ", 400) + "\n  delay: 10ms\n  tools: [{name: attempt_completion, input: {result: done}}]\n")
	events := g.follow("/v1/tasks/" + run.TaskID + "/events?after=0")
	deltas, last := 0, frame{}
	var durable []frame
	for last.Type != "run.ended" {
		f, ok := events.next()
		if !ok {
			t.Fatalf("the stream ended behind %+v", last)
		}
		switch last = f; {
		case f.Type == "message.delta" && f.ID == "" && strings.Contains(f.Data, "word"):
			if deltas++; deltas == 3 {
				run.Cancel()
			}
		case f.ID != "":
			durable = append(durable, f)
		}
	}
	if deltas < 3 {
		t.Errorf("%d deltas were heard", deltas)
	}
	x.ended(run, "cancelled")
	all := journalOf(t, g.store, run.TaskID)
	for i, f := range durable {
		if i >= len(all) || f != all[i] {
			t.Fatalf("event %d is %+v, want that of the log", i, f)
		}
	}
}

// Who follows all tasks hears what runs say in other processes, too.
func TestARunElsewhereIsHeardAmongAllTasks(t *testing.T) {
	t.Parallel()
	g := newWorkingBench(t)
	x := g.terminal()
	all := g.follow("/v1/events")
	run := x.runs("\n- text: " + strings.Repeat("word ", 6000) + "\n  delay: 10ms\n  tools: [{name: attempt_completion, input: {result: done}}]\n")
	deltas := 0
	for {
		f, ok := all.next()
		if !ok {
			t.Fatal("the stream ended")
		}
		if f.Type == "message.delta" && f.ID == "" && strings.Contains(f.Data, "word") && strings.Contains(f.Data, run.TaskID) {
			if deltas++; deltas == 3 {
				run.Cancel()
			}
		}
		if f.Type == "run.ended" {
			break
		}
	}
	x.ended(run, "cancelled")
}

// A process that ends with its task begins nothing else.
func TestAGuestChangesOnlyWhatItsProcessWorksOn(t *testing.T) {
	t.Parallel()
	g := newWorkingBench(t)
	x := g.terminal()
	run := x.runs(hangs)
	defer run.Cancel()
	path, _ := strings.CutPrefix(x.socket.Address(), "unix:")
	c := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return peer.Dial(ctx, "unix:"+path)
	}}}
	for what, want := range map[string]int{
		"/v1/tasks": 409, "/v1/tasks/" + g.id + "/runs": 409, "/v1/tasks/" + g.id + "/messages": 409, "/v1/tasks/none/messages": 409,
		"/v1/tasks/" + run.TaskID + "/messages": 202,
	} {
		body := `{"text":"x"}`
		if what == "/v1/tasks" {
			body = g.task(sayDone, "go")
		}
		resp, err := c.Post("http://localhost"+what, jsonMedia, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		var p api.Problem
		_ = json.NewDecoder(resp.Body).Decode(&p)
		_ = resp.Body.Close()
		if resp.StatusCode != want || want == 409 && p.Code != "not_here" {
			t.Errorf("POST %s: %s %+v, want %d", what, resp.Status, p, want)
		}
	}
}

// held takes a task with an address in its lock, and hangs on to it.
func (g *bench) held(address string) string { return g.holds(address).Ref.ID }

func (g *bench) holds(address string) *store.Task {
	g.Helper()
	s := fixture.Must[*store.Store](g)(store.Open(store.Options{Root: g.store.Root(), State: g.store.Root() + ".state"}))
	s.ReachedAt(func() string { return address })
	owned := fixture.Must[*store.Task](g)(s.Create(context.Background(), task.Created{
		Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: filepath.Join(g.dir, "ws"), Mode: "code", Provider: "script", Model: g.model(sayDone)},
	}))
	g.Cleanup(func() {
		if err := owned.Close(context.Background()); err != nil {
			g.Error(err)
		}
	})
	return owned
}

// A server sends live words of another process's run after the commit that came before them, even if the words arrive first.
func TestWordsFromElsewhereFollowTheirCommit(t *testing.T) {
	t.Parallel()
	g := newWorkingBench(t)
	said := make(chan string)
	owned := g.holds(g.pretender(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" { // whether it lives is asked first
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case text := <-said:
				fmt.Fprint(w, text)
			case <-r.Context().Done():
				return
			}
		}
	}))
	stream := g.follow("/v1/tasks/" + owned.Ref.ID + "/events")
	const live = "event: message.delta\ndata: {\"text\":%q}\n\n"
	said <- fmt.Sprintf(live, "before")
	if f, _ := stream.next(); !strings.Contains(f.Data, "before") {
		t.Errorf("got %+v, want the words before the commit", f)
	}
	said <- fmt.Sprintf("id: 1.%d-0\nevent: message.added\ndata: {}\n\n", owned.State().Seq+1) + fmt.Sprintf(live, "behind")
	time.Sleep(100 * time.Millisecond) // the commit is here later than the words
	if err := owned.CommitSynced(context.Background(), task.Changed{Title: new("renamed")}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"renamed", "behind"} {
		if f, _ := stream.next(); !strings.Contains(f.Data, want) {
			t.Errorf("got %+v, want %q", f, want)
		}
	}
}

// pretender is something that listens where a process should.
func (g *bench) pretender(h http.HandlerFunc) (address string) {
	g.Helper()
	l := peer.Listen(runtimeDir(fixture.ShortDir(g)))
	if l == nil {
		g.Fatal("nothing can listen")
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	var wait sync.WaitGroup
	wait.Go(func() { _ = web.Serve(l) })
	g.Cleanup(func() { _ = web.Close(); wait.Wait() })
	return l.Address()
}

func TestWhoCannotBeReachedIsNamed(t *testing.T) {
	t.Parallel()
	g := newWorkingBench(t)
	gone := g.pretender(nil)
	if err := os.Remove(strings.TrimPrefix(gone, "unix:")); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"", gone, "unix:/etc/passwd", "http://127.0.0.1:1"} {
		id := g.held(address)
		p := g.denied(409, "task_busy", "POST", "/v1/tasks/"+id+"/runs", `{"message":{"text":"x"}}`) // in this test it is the same process
		if !p.Retryable || p.Task != id {
			t.Errorf("with the address %q: %+v", address, p)
		}
	}
}

// What proves who asked stays here. The peer gets the request once, with its key, and
// knows how often it was passed on.
func TestWhatIsPassedOn(t *testing.T) {
	t.Parallel()
	g := newWorkingBench(t)
	var mu sync.Mutex
	var got []http.Header
	answer := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }
	id := g.held(g.pretender(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" { // whether it lives is asked first
			if r.Header.Get("Authorization")+r.Header.Get("Cookie") != "" {
				t.Error("what proves who asked was sent along")
			}
			return
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Header)
		answer(w, r)
	}))
	ask := func(headers ...string) *http.Response {
		return g.send("POST", "/v1/tasks/"+id+"/messages", `{"text":"x"}`, append([]string{"Cookie: a=b", "Idempotency-Key: k"}, headers...)...)
	}
	if resp := ask(); resp.StatusCode != http.StatusTeapot || len(resp.Header.Values(requestID)) != 1 || len(resp.Header.Values("Cache-Control")) != 1 {
		t.Errorf("answered %s %v", resp.Status, resp.Header)
	}
	mu.Lock()
	if len(got) != 1 {
		t.Fatalf("the peer got %d requests", len(got))
	}
	for name, want := range map[string]string{"Authorization": "", "Cookie": "", "Idempotency-Key": "k", hopHeader: "1", "Content-Type": jsonMedia} {
		if has := got[0].Get(name); has != want {
			t.Errorf("the peer got %s: %q, want %q", name, has, want)
		}
	}
	mu.Unlock()
	// Never in a circle.
	if resp := ask(hopHeader + ": " + strconv.Itoa(mostHops)); resp.StatusCode != http.StatusConflict {
		t.Errorf("passed on twice before: %s", resp.Status)
	}
	// A peer that let go of the task meanwhile did nothing; whoever has it now is asked.
	mu.Lock()
	answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(hopHeader, notHere)
		w.WriteHeader(http.StatusConflict)
	}
	mu.Unlock()
	if resp := ask(); resp.StatusCode != http.StatusConflict || resp.Header.Get(hopHeader) != "" {
		t.Errorf("of a peer that let go: %s %v", resp.Status, resp.Header)
	}
	// One that dies on the way leaves it open whether it was done.
	mu.Lock()
	answer = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	mu.Unlock()
	p := g.denied(503, "holder_gone", "POST", "/v1/tasks/"+id+"/messages", `{"text":"x"}`)
	if !p.Retryable {
		t.Errorf("got %+v, want p.Retryable", p)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) > 4 {
		t.Errorf("the peer got %d requests", len(got))
	}
}
