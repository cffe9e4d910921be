package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/store"
)

// playWorker serves and works on tasks until it is killed.
func playWorker(s *store.Store) error {
	token, err := Token(s.Root(), false)
	if err != nil {
		return err
	}
	e := engine.New(s, engine.Options{MaxRuns: 3, Config: setup.Config{Keys: map[string]string{}}})
	srv, err := New(Options{Service: service.New(s, e, service.Options{}), Token: token})
	if err != nil {
		return err
	}
	l, err := listenAnywhere()
	if err != nil {
		return err
	}
	if err := e.Recover(context.Background(), engine.RecoverOptions{}); err != nil {
		return err
	}
	return srv.Serve(context.Background(), l)
}

// listenAnywhere listens and says where on stdout. A port that a test chose for a process
// that is yet to start may be anybody's by then, also that of who looks whether it listens.
func listenAnywhere() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println(l.Addr())
	}
	return l, err
}

// listens starts a child and gives where it listens.
func listens(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out := fixture.Must[io.ReadCloser](t)(cmd.StdoutPipe())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server does not come back: %v", err)
	}
	return strings.TrimSpace(line)
}

// killed is a server that is killed and started again, each time somewhere else.
type killed struct {
	*bench
	addr string
	cmd  *exec.Cmd
}

func (k *killed) start(t *testing.T) {
	t.Helper()
	k.cmd = child(t, "worker", k.dir)
	k.addr = listens(t, k.cmd)
	k.url = "http://" + k.addr
}

func (k *killed) kill() {
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
}

// try sends a request; status is 0 when no whole answer came.
func (k *killed) try(path, body, key string) (status int, replayed bool, answer []byte) {
	req, err := http.NewRequest("POST", "http://"+k.addr+path, strings.NewReader(body))
	if err != nil {
		k.Fatal(err)
	}
	req.Header.Set("Content-Type", jsonMedia)
	req.Header.Set("Authorization", "Bearer "+k.token)
	req.Header.Set(keyHeader, key)
	resp, err := (&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, false, nil
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		return 0, false, nil
	}
	return resp.StatusCode, resp.Header.Get("Idempotent-Replayed") == "true", answer
}

// What was acknowledged is there after kill -9, once, and its repeat gets the same answer.
// What was not is done once when it is asked again, wherever the kill came.
func TestKilledServerLosesAndDoublesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a server many times")
	}
	g := newBench(t)
	k := &killed{bench: g}
	rounds := 14
	type request struct{ path, body, key, words string }
	type said struct{ task, words string }
	var all []said
	newest := ""
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	for round := range rounds {
		k.start(t)
		r := request{key: fmt.Sprintf("key-%d", round), words: fmt.Sprintf("words-%d-of-it", round)}
		if round%2 == 0 || newest == "" {
			r.path, r.body = "/v1/tasks", g.task(sayDone, r.words)
		} else {
			r.path, r.body = "/v1/tasks/"+newest+"/messages", fmt.Sprintf(`{"text":%q}`, r.words)
		}
		var first []byte
		acknowledged := false
		if round%4 < 2 { // right behind the acknowledgement
			status, _, answer := k.try(r.path, r.body, r.key)
			if status/100 != 2 {
				t.Fatalf("got %d %s, want status/100 = 2", status, answer)
			}
			acknowledged, first = true, answer
			k.kill()
		} else { // somewhere on the way
			cut := make(chan struct{})
			go func() {
				defer close(cut)
				time.Sleep(time.Duration(random.IntN(25_000)) * time.Microsecond)
				_ = k.cmd.Process.Kill()
			}()
			status, _, answer := k.try(r.path, r.body, r.key)
			acknowledged, first = status/100 == 2, answer
			<-cut
			k.kill()
		}
		k.start(t)
		status, replayed, answer := k.try(r.path, r.body, r.key)
		if status/100 != 2 || acknowledged && (!replayed || string(answer) != string(first)) {
			t.Fatalf("round %d, acknowledged %v: %d, replayed %v\n%s\n%s", round, acknowledged, status, replayed, first, answer)
		}
		var doc struct {
			Task string `json:"task_id"`
		}
		if err := json.Unmarshal(answer, &doc); err != nil || doc.Task == "" {
			t.Fatalf("%v: got %s, want no error and doc.Task != \"\"", err, answer)
		}
		newest = doc.Task
		all = append(all, said{newest, r.words})
		k.kill()
	}
	k.start(t)
	defer k.kill()
	tasks := map[string]bool{}
	for _, s := range all {
		tasks[s.task] = true
		found := 0
		for _, f := range journalOf(t, g.store, s.task) {
			if f.Type == "message.added" && strings.Contains(f.Data, s.words) && (strings.Contains(f.Data, `"say":"user_feedback"`) || strings.Contains(f.Data, `"say":"text"`)) {
				found++
			}
		}
		var queue api.Page[api.Queued]
		g.did(200, &queue, "GET", "/v1/tasks/"+s.task+"/queue", "")
		for _, q := range queue.Items {
			if q.Text == s.words {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s is there %d times in task %s", s.words, found, s.task)
		}
	}
	folders := fixture.Must[[]string](t)(filepath.Glob(filepath.Join(g.store.Root(), "tasks", "[0-9a-f]*-*")))
	if len(folders) != len(tasks)+1 {
		t.Errorf("got %d tasks, want %d: %q, %v", len(folders)-1, len(tasks), folders, tasks)
	}
	for task := range tasks { // each goes on
		resp := g.send("POST", "/v1/tasks/"+task+"/runs", `{"yes":true}`)
		if resp.StatusCode != 202 && resp.StatusCode != 409 {
			t.Errorf("%s: got %s, want resp.StatusCode = 202 or resp.StatusCode = 409", task, resp.Status)
		}
		g.idle(task)
	}
}

// 19.21.9: a question that is left open over two kills is there under its own name, is
// answered, and the answer, once acknowledged, outlives the next kill.
func TestAQuestionOutlivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("what it kills is a program of its own")
	}
	g := newBench(t)
	k := &killed{bench: g}
	k.start(t)
	r := g.started(askWhich)
	first := g.question(r.Task)
	for range 2 {
		k.kill()
		k.start(t)
		if q := g.question(r.Task); q.ID != first.ID || q.Text != first.Text || q.Event != first.Event {
			t.Errorf("%+v\nbecame\n%+v", first, q)
		}
	}
	path := "/v1/questions/" + first.ID + "/answer"
	status, _, answer := k.try(path, `{"choice":2}`, "a")
	if status != 200 {
		t.Fatalf("got %d %s, want status = 200", status, answer)
	}
	k.kill()
	k.start(t)
	defer k.kill()
	status, replayed, again := k.try(path, `{"choice":2}`, "a")
	if status != 200 || !replayed || string(again) != string(answer) {
		t.Errorf("%d, replayed %v\n%s\n%s", status, replayed, answer, again)
	}
	if p := g.denied(409, "question_answered", "POST", path, `{"choice":1}`); p.Answer == nil || p.Answer.Text != "green" {
		t.Errorf("got %+v, want p.Answer != nil and p.Answer.Text = \"green\"", p.Answer)
	}
	if resp := g.send("POST", "/v1/tasks/"+r.Task+"/runs", `{"yes":true}`); resp.StatusCode != 202 && resp.StatusCode != 409 {
		t.Error(resp.Status)
	}
	g.idle(r.Task)
	var sum api.Summary
	if g.did(200, &sum, "GET", "/v1/tasks/"+r.Task, ""); sum.Status != "completed" {
		t.Errorf("the task is %s", sum.Status)
	}
}
