package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store"
)

// newChat is a editBench whose new tasks play a model.
func newChat(t testing.TB, model string, change ...func(*testOptions)) *editBench {
	t.Helper()
	file := filepath.Join(t.TempDir(), "chat.yaml")
	if err := os.WriteFile(file, []byte(model), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newEditBench(t, append([]func(*testOptions){func(o *testOptions) {
		e := engine.New(o.Store, engine.Options{Config: setup.Config{Keys: map[string]string{}, Provider: "script", Model: file}})
		t.Cleanup(func() {
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		o.Engine, o.Restart.Workspace = e, t.TempDir()
	}}, change...)...)
	w.engine = w.opt.Engine
	return w
}

// olderCall is an open stream of the older call.
type olderCall struct {
	*stream
	resp *http.Response
}

// call makes the older call, which must be answered with a stream.
func (w *editBench) call(ctx context.Context, body string, headers ...string) *olderCall {
	w.Helper()
	req := fixture.Must[*http.Request](w)(http.NewRequestWithContext(ctx, "POST", w.url+"/chat/stream", strings.NewReader(body)))
	req.Header.Set("Authorization", "Bearer "+w.token)
	req.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp := fixture.Must[*http.Response](w)((&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req))
	w.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != streamMedia {
		w.Fatalf("%s: got %s %v, want resp.StatusCode = 200 and resp.Header.Get(\"Content-Type\") = streamMedia",
			body, resp.Status, resp.Header)
	}
	return &olderCall{&stream{w, resp, bufio.NewReader(resp.Body)}, resp}
}

// until reads lines up to one of a type.
func (c *olderCall) until(types ...string) (out []api.OlderEvent) {
	c.t.Helper()
	timer := time.AfterFunc(patience, func() { c.resp.Body.Close() })
	defer timer.Stop()
	for {
		f, ok := c.next()
		if !ok {
			c.t.Fatalf("the stream ended before %s, behind %+v", types, out)
		}
		var e api.OlderEvent
		if err := json.Unmarshal([]byte(f.Data), &e); err != nil || f.Type != "" {
			c.t.Fatalf("a line of the older call: %q %v", f, err)
		}
		if out = append(out, e); slices.Contains(types, e.Type) {
			return out
		}
	}
}

func typesOf(events []api.OlderEvent) (out []string) {
	for _, e := range events {
		if n := len(out); n == 0 || out[n-1] != e.Type {
			out = append(out, e.Type)
		}
	}
	return out
}

// fails sends what must be refused in the older shape.
func (w *editBench) fails(status int, code, path, body string, headers ...string) api.OlderFailure {
	w.Helper()
	resp, data := w.send("POST", path, body, headers...)
	var f api.OlderFailure
	err := json.Unmarshal(data, &f)
	if err != nil || resp.StatusCode != status || f.Code != code || resp.Header.Get("Content-Type") != "application/json" || f.Error == "" || f.Message == "" || f.Timestamp == "" || f.Suggestions == nil {
		w.Errorf("POST %s %s: %s, want %d %s\n%s", path, body, resp.Status, status, code, data)
	}
	return f
}

const talk = `
- text: looking around
  tools: [{name: ask_followup_question, input: {question: "Which colour?", follow_up: [{text: "red"}, {text: "blue"}]}}]
- text: going on
  usage: {input: 100, output: 10}
  tools: [{name: attempt_completion, input: {result: "it is done"}}]
`

// The older call from end to end: B-02 (the task's id is told), B-03 (the outcome is the
// engine's), B-09 (each message once), B-10 and B-12 (questions and answers).
func TestOlderCallAsksAndCompletes(t *testing.T) {
	w := newChat(t, talk)
	c := w.call(context.Background(), `{"task":"paint","mode":"code","verbose":true,"logLlm":true,"logSystemPrompt":false}`)
	begun := c.until("question_ask")
	start, ask := begun[0], begun[len(begun)-1]
	if start.Type != "start" || start.Text != "paint" || start.Task == "" || start.Job == "" || start.Timestamp == "" || c.resp.Header.Get("Roost-Task-Id") != start.Task || c.resp.Header.Get("Roost-Run-Id") != start.Job {
		t.Fatalf("the start: %+v %v", start, c.resp.Header)
	}
	if ask.Message != "Which colour?" || cmp.Diff(&[]api.OlderChoice{{Answer: "red"}, {Answer: "blue"}}, ask.Suggestions) != "" || ask.Question == "" {
		t.Fatalf("the question: %+v", ask)
	}
	for _, path := range []string{"/api/questions?jobId=" + start.Job, "/api/questions/" + start.Job, "/api/questions?state=pending&jobId=" + start.Job} {
		list := fixture.Must[api.OlderQuestions](t)(decodeAs[api.OlderQuestions](w.get(path)))
		if list.Total != 1 || len(list.Questions) != 1 || list.Questions[0].ID != ask.Question || list.Questions[0].Question != "Which colour?" || list.Questions[0].Job != start.Job || list.Questions[0].State != "pending" {
			t.Errorf("%s: %+v", path, list)
		}
	}
	one := fixture.Must[api.OlderQuestion](t)(decodeAs[api.OlderQuestion](w.get("/api/questions/" + ask.Question)))
	if one.ID != ask.Question || one.Job != start.Job || len(one.Suggestions) != 2 {
		t.Errorf("the question by its id: %+v", one)
	}
	path := "/api/questions/" + ask.Question + "/answer"
	w.fails(400, "empty_answer", path, `{"answer":" "}`)
	w.fails(422, "validation_failed", path, `{"answer":1}`)
	w.fails(422, "validation_failed", path, `{}`)
	done := did[api.OlderAnswered](w, 200, path, `{"answer":"2"}`)
	if !done.Success || done.Question != ask.Question || done.Task != start.Task || done.Job != start.Job {
		t.Errorf("the answer: %+v", done)
	}
	if f := w.fails(409, "question_answered", path, `{"answer":"red"}`); len(f.Message) == 0 {
		t.Errorf("the second answer: %+v", f)
	}
	rest := c.until("stream_end")
	if _, more := c.next(); more {
		t.Error("something comes behind stream_end")
	}
	all := append(begun, rest...)
	if diff := cmp.Diff([]string{"start", "progress", "question_ask", "progress", "token_usage", "progress", "completion", "stream_end"}, without(typesOf(all), "token_usage", 1)); diff != "" {
		t.Errorf("the order:\n%s\n%+v", diff, all)
	}
	end := all[len(all)-2]
	if end.Message != "it is done" || end.Restart != "roost run --stream --task "+start.Task || end.Task != start.Task {
		t.Errorf("the completion: %+v", end)
	}
	seen := map[string]int{}
	for _, e := range all {
		seen[e.Say+" "+e.Message]++
		if e.Job != start.Job || e.Task != start.Task {
			t.Errorf("of another job: %+v", e)
		}
		if e.Type == "token_usage" && e.Usage == nil {
			t.Errorf("got %+v, want e.Type != \"token_usage\" or e.Usage != nil", e)
		}
	}
	if seen["text looking around"] != 1 || seen["text going on"] != 1 || seen["text paint"] != 0 {
		t.Errorf("what was said: %v", seen)
	}
	if messages := string(w.get("/v1/tasks/" + start.Task + "/messages")); !strings.Contains(messages, "blue") {
		t.Errorf("number 2 did not select blue: %s", messages)
	}
	sum := fixture.Must[api.Summary](t)(decodeAs[api.Summary](w.get("/v1/tasks/" + start.Task)))
	if sum.Status != "completed" || sum.Origin != "api" {
		t.Errorf("the task: %s %s", sum.Status, sum.Origin)
	}
}

// without drops the first n of a type, where a model's first turns may be without usage.
func without(types []string, drop string, n int) (out []string) {
	for _, typ := range types {
		if typ == drop && n > 0 {
			n--
			continue
		}
		if k := len(out); k == 0 || out[k-1] != typ {
			out = append(out, typ)
		}
	}
	return out
}

// B-05, B-06, B-07: what is wrong is said before anything is done, and as JSON.
func TestOlderCallRefusesBeforeAnythingIsDone(t *testing.T) {
	w := newChat(t, talk)
	before := w.tree()
	id := w.id
	for _, c := range []struct {
		status     int
		code, body string
	}{
		{422, "validation_failed", `{}`},
		{422, "validation_failed", `{"task":" "}`},
		{422, "validation_failed", `{"task":"x","restartTask":true}`},
		{422, "validation_failed", `{"task":"x","taskId":"` + id + `"}`},
		{422, "validation_failed", `{"task":"x","taskId":"` + id + `","restartTask":"yes"}`},
		{422, "validation_failed", `{"task":"x","taskId":"../../etc/passwd","restartTask":true}`},
		{422, "validation_failed", `{"task":"x","slidingTimeoutMs":999}`},
		{422, "validation_failed", `{"task":"x","slidingTimeoutMs":-1}`},
		{422, "validation_failed", `{"task":"x","slidingTimeoutMs":86400001}`},
		{422, "validation_failed", `{"task":"x","nonsense":true}`},
		{422, "unknown_mode", `{"task":"x","mode":"no-such-mode"}`},
		{400, "malformed_json", `{"task":`},
		{404, "task_not_found", `{"task":"x","taskId":"00000000-0000-4000-8000-000000000000","restartTask":true}`},
	} {
		for _, path := range []string{"/chat/stream", "/execute/stream"} {
			f := w.fails(c.status, c.code, path, c.body)
			if c.code == "task_not_found" && (f.Task == nil || *f.Task != "00000000-0000-4000-8000-000000000000" || f.Error != "Task not found" || len(f.Suggestions) == 0) {
				t.Errorf("not found: %+v", f)
			}
		}
	}
	resp, data := w.send("POST", "/chat/stream", `task=x`, "Content-Type: text/plain")
	if resp.StatusCode != 415 || !json.Valid(data) {
		t.Errorf("a form: %s %s", resp.Status, data)
	}
	if diff := cmp.Diff(before, w.tree()); diff != "" {
		t.Errorf("refusals left something behind:\n%s", diff)
	}
	for path, code := range map[string]int{"/api/questions": 400, "/api/questions?jobId=nobody": 404, "/api/questions/nobody": 404, "/api/questions/" + id + ".q1": 404} {
		if resp := w.ask("GET", path); resp.StatusCode != code || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf(`%s: got %s %s, want resp.StatusCode = code and resp.Header.Get("Content-Type") = "application/json"`,
				path, resp.Status, resp.Header.Get("Content-Type"))
		}
	}
	w.fails(404, "question_not_found", "/api/questions/"+id+".q1/answer", `{"answer":"x"}`)
}

// tree lists the files of the store's root that tasks consist of.
func (w *editBench) tree() (out []string) {
	w.Helper()
	err := filepath.WalkDir(filepath.Join(w.store.Root(), "tasks"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			out = append(out, path+" "+info.ModTime().String())
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// The settings do what they say.
func TestOlderCallKeepsToItsSettings(t *testing.T) {
	again := func(w *editBench) string { return `{"task":"go on","taskId":"` + w.id + `","restartTask":true}` }
	t.Run("restart.enabled", func(t *testing.T) {
		w := newChat(t, talk, func(o *testOptions) { o.Restart.Off = true })
		f := w.fails(403, "restart_disabled", "/chat/stream", again(w))
		if f.Task == nil || *f.Task != w.id || !strings.Contains(f.Message, "restart.enabled") {
			t.Errorf("got %+v, want f.Task != nil and *f.Task = w.id and strings.Contains(f.Message, \"restart.enabled\")",
				f)
		}
		w.refuses(403, "restart_disabled", "/v1/tasks/"+w.id+"/runs", `{"message":{"text":"go on"}}`)
		w.refuses(403, "restart_disabled", "/v1/tasks/"+w.id+"/messages", `{"text":"go on"}`)
		c := w.call(context.Background(), `{"task":"a new one"}`).until("question_ask") // only restarts are off
		if resp, text := w.send("POST", "/v1/tasks/"+c[0].Task+"/messages", `{"text":"red"}`); resp.StatusCode != 202 {
			t.Errorf("an answer is no restart: %s %s", resp.Status, text)
		}
	})
	t.Run("restart.cross_context", func(t *testing.T) {
		w := newChat(t, "- tools: [{name: attempt_completion, input: {result: again}}]\n", func(o *testOptions) { o.Restart.OwnOnly = true })
		w.id = w.run(engine.Request{Text: "of a terminal", Choice: setup.Choice{Workspace: w.path2("ws"), Provider: "script", Model: w.path2("model.yaml"), Approve: "all"}, Origin: "cli"})
		w.fails(403, "restart_denied", "/chat/stream", again(w))
		w.refuses(403, "restart_denied", "/v1/tasks/"+w.id+"/runs", `{"message":{"text":"go on"}}`)
		made := w.call(context.Background(), `{"task":"of the API"}`).until("stream_end")
		w.id = made[0].Task
		if end := w.call(context.Background(), again(w)).until("stream_end"); end[len(end)-2].Type != "completion" {
			t.Errorf("got %+v, want end[len(end)-2].Type = \"completion\"", end)
		}
	})
	t.Run("restart.max_attempts", func(t *testing.T) {
		w := newChat(t, "- error: {status: 400, message: no, times: 3}\n- tools: [{name: attempt_completion, input: {result: at last}}]\n", func(o *testOptions) { o.Restart.MaxAttempts = 2 })
		w.id = w.call(context.Background(), `{"task":"begin"}`).until("stream_end")[0].Task
		for range 2 {
			end := w.call(context.Background(), again(w)).until("stream_end")
			if e := end[len(end)-2]; e.Type != "error" || e.Restart == "" {
				t.Fatalf(`got %+v, want e.Type = "error" and e.Restart != ""`, end)
			}
		}
		w.refuses(409, "too_many_restarts", "/v1/tasks/"+w.id+"/runs", `{"message":{"text":"go on"}}`)
		f := w.fails(409, "too_many_restarts", "/chat/stream", again(w))
		if !strings.Contains(f.Message, "restart.max_attempts") || len(f.Suggestions) == 0 {
			t.Errorf("got %+v, want strings.Contains(f.Message, \"restart.max_attempts\") and len(f.Suggestions) != 0",
				f)
		}
	})
	t.Run("restart.load_timeout", func(t *testing.T) {
		w := newChat(t, talk, func(o *testOptions) { o.Restart.LoadTimeout = time.Nanosecond })
		w.fails(504, "load_timeout", "/chat/stream", again(w))
	})
}

func TestOlderCallRefusesDamageAndNoAccess(t *testing.T) {
	w := newChat(t, talk)
	storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	const damaged, shut = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	for id, ui := range map[string]string{damaged: `[{"ts":1,"type":"say","say":"text","text":"hi"},{"ts":2,"ty`, shut: `[{"ts":1,"type":"say","say":"text","text":"hi"}]`} {
		dir := filepath.Join(storage, "tasks", id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"ui_messages.json": ui, "api_conversation_history.json": `[{"role":"user","content":"hi"}]`} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := fixture.Must[*store.Store](t)(store.Open(store.Options{Root: w.store.Root(), State: w.store.Root() + ".state", Cache: w.path2("cache"), Program: "test", Sources: []string{storage}}))
	o := w.opt
	o.Store, o.Engine = s, engine.New(s, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	srv := fixture.Must[*Server](t)(o.serve())
	web := httptest.NewServer(srv.Handler())
	defer func() { web.Close(); srv.End() }()
	other := *w.bench
	other.url = web.URL
	w = &editBench{bench: &other}
	f := w.fails(422, "history_corrupt", "/chat/stream", `{"task":"x","taskId":"`+damaged+`","restartTask":true}`)
	if f.Task == nil || *f.Task != damaged || !strings.Contains(strings.Join(f.Suggestions, "\n"), "roost doctor") {
		t.Errorf(`got %+v, want f.Task != nil and *f.Task = damaged and strings.Contains(strings.Join(f.Suggestions, "\n"), "roost doctor")`,
			f)
	}
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		return // nothing is shut there
	}
	if err := os.Chmod(filepath.Join(storage, "tasks", shut, "ui_messages.json"), 0); err != nil {
		t.Fatal(err)
	}
	w.fails(403, "permission_denied", "/chat/stream", `{"task":"x","taskId":"`+shut+`","restartTask":true}`)
}

// B-03, B-25, 19.21.6: who goes away touches nothing, and finds the run under its id.
func TestOlderCallersEndTouchesNoRun(t *testing.T) {
	w := newChat(t, talk)
	ctx, leave := context.WithCancel(context.Background())
	begun := w.call(ctx, `{"task":"paint"}`).until("question_ask")
	leave()
	ask := begun[len(begun)-1]
	did[api.OlderAnswered](w, 200, "/api/questions/"+ask.Question+"/answer", `{"answer":"green, please"}`)
	w.eventually("the run ends", func() bool {
		info, err := w.engine.RunByID(context.Background(), begun[0].Job)
		return err == nil && info.State == "completed"
	})
	if messages := string(w.get("/v1/tasks/" + ask.Task + "/messages")); !strings.Contains(messages, "green, please") {
		t.Errorf("words of one's own: %s", messages)
	}
}

func (w *editBench) eventually(what string, is func() bool) {
	w.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("it never came to it that %s", what)
		}
	}
}

// 19.20, 19.21.10: the call takes an idempotency key, and the repeat follows the same run.
func TestOlderCallIsMadeOnce(t *testing.T) {
	w := newChat(t, "- text: hello\n  tools: [{name: attempt_completion, input: {result: hi}}]\n")
	key := "Idempotency-Key: hello-1"
	first := w.call(context.Background(), `{"task":"say hello"}`, key).until("stream_end")
	again := w.call(context.Background(), `{"task":"say hello"}`, key).until("stream_end")
	w.forgetOutcomes()
	behind := w.call(context.Background(), `{"task":"say hello"}`, key).until("stream_end")
	for name, other := range map[string][]api.OlderEvent{"again": again, "behind a kill": behind} {
		if diff := cmp.Diff(first, other); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", name, diff)
		}
	}
	w.fails(422, "idempotency_mismatch", "/chat/stream", `{"task":"say something else"}`, key)
}

// B-08, B-13, 19.21.20: the sliding time-out is the run's, stands still while somebody is
// asked, and ends a model that says nothing.
func TestOlderCallsSlidingTimeout(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for seconds")
	}
	w := newChat(t, strings.Replace(talk, "- text: going on\n", "- text: going on\n  delay: 1h\n", 1))
	// A busy machine may be silent for so long before it asks: it is given longer then.
	for idle := 1000; ; idle *= 4 {
		c := w.call(context.Background(), fmt.Sprintf(`{"task":"paint","slidingTimeoutMs":%d}`, idle))
		asked := c.until("question_ask", "stream_end")
		ask := asked[len(asked)-1]
		if ask.Type != "question_ask" && idle < 20_000 {
			continue
		}
		time.Sleep(time.Duration(idle) * 3 / 2 * time.Millisecond) // it must not count
		job := fixture.Must[api.Run](t)(decodeAs[api.Run](w.get("/v1/runs/" + ask.Job)))
		if job.State != "waiting" && idle < 20_000 {
			continue // the time ran out before it was asked, though nobody saw it
		}
		if job.State != "waiting" {
			t.Fatalf("a person's time counted: %s %s", job.State, job.Reason)
		}
		did[api.OlderAnswered](w, 200, "/api/questions/"+ask.Question+"/answer", `{"answer":"red"}`)
		end := c.until("stream_end")
		if e := end[len(end)-2]; e.Type != "error" || !strings.Contains(e.Error+e.Message+e.Outcome, "time") {
			t.Errorf("the end: %+v", e)
		}
		return
	}
}

// A subtask's question is the job's, too, and so is a request for an approval.
func TestOlderCallTellsWhatSubtasksAsk(t *testing.T) {
	w := newChat(t, `
- tools: [{name: new_task, input: {mode: code, message: "do part ONE", todos: null}}]
- tools: [{name: attempt_completion, input: {result: "All is done."}}]
- task: part ONE
- tools: [{name: ask_followup_question, input: {question: "Which one?", follow_up: []}}]
- tools: [{name: attempt_completion, input: {result: "One is done."}}]
`)
	c := w.call(context.Background(), `{"task":"go"}`)
	begun := c.until("question_ask")
	ask := begun[len(begun)-1]
	if ask.Kind != "approval" || cmp.Diff(&[]api.OlderChoice{{Answer: "yes"}, {Answer: "no"}}, ask.Suggestions) != "" {
		t.Fatalf("new_task asks %+v", ask)
	}
	w.fails(422, "validation_failed", "/api/questions/"+ask.Question+"/answer", `{"answer":"yes","sure":true}`)
	did[api.OlderAnswered](w, 200, "/api/questions/"+ask.Question+"/answer", `{"answer":"Yes"}`)
	for lines := c.until("question_ask"); ; lines = c.until("question_ask") {
		ask = lines[len(lines)-1]
		if ask.Kind == "approval" { // what the subtask's end asks
			did[api.OlderAnswered](w, 200, "/api/questions/"+ask.Question+"/answer", `{"answer":"1"}`)
			continue
		}
		break
	}
	if ask.Message != "Which one?" || ask.Suggestions == nil || len(*ask.Suggestions) != 0 {
		t.Fatalf("the subtask asks %+v", ask)
	}
	list := fixture.Must[api.OlderQuestions](t)(decodeAs[api.OlderQuestions](w.get("/api/questions?jobId=" + begun[0].Job)))
	if len(list.Questions) != 1 || list.Questions[0].ID != ask.Question || list.Questions[0].Task == begun[0].Task {
		t.Errorf("the job's questions: %+v", list)
	}
	did[api.OlderAnswered](w, 200, "/api/questions/"+ask.Question+"/answer", `{"answer":"the left one"}`)
	end := c.until("stream_end")
	if e := end[len(end)-2]; e.Type != "completion" || e.Message != "All is done." {
		t.Errorf("the end: %+v", end)
	}
}

// B-14: a server that stops says so, with the way to go on, and leaves the run alone.
func TestOlderStreamSaysThatTheServerStops(t *testing.T) {
	w := newChat(t, talk)
	c := w.call(context.Background(), `{"task":"paint"}`)
	id := c.until("question_ask")[0].Task
	w.srv.halt()
	end := c.until("stream_end")
	if e := end[len(end)-1]; !strings.HasSuffix(e.Restart, "--task "+id) {
		t.Errorf("the end: %+v", e)
	}
	list := fixture.Must[[]engine.Asked](t)(w.engine.Questions(context.Background(), id))
	if len(list) != 1 || !list[0].Here {
		t.Errorf("the question: %+v", list)
	}
}

// B-25: one stream too many is refused before anything is done.
func TestOlderCallWithoutRoom(t *testing.T) {
	w := newChat(t, talk, func(o *testOptions) { o.MaxStreams = 1 })
	w.call(context.Background(), `{"task":"paint"}`).until("question_ask")
	before := w.tree()
	w.fails(429, "too_many_streams", "/chat/stream", `{"task":"paint"}`)
	if diff := cmp.Diff(before, w.tree()); diff != "" {
		t.Errorf("it was begun all the same:\n%s", diff)
	}
}

// Who joins a run that works already is told when he came, and not when the run began.
func TestOlderCallThatJoinsARunBeginsNow(t *testing.T) {
	w := newChat(t, talk)
	first := w.call(context.Background(), `{"task":"paint"}`)
	begun := first.until("question_ask")
	id, ask := begun[0].Task, begun[len(begun)-1]
	body, key := `{"task":"red","taskId":"`+id+`","restartTask":true}`, "Idempotency-Key: join-1"
	time.Sleep(2 * time.Millisecond) // times are in milliseconds: it joins in a later one
	joined := w.call(context.Background(), body, key).until("stream_end")
	start := joined[0]
	if start.Job != begun[0].Job || start.Timestamp <= begun[0].Timestamp || start.Timestamp < ask.Timestamp || start.Message != "Continuing task from api context" {
		t.Errorf("it began at %s: %+v", begun[0].Timestamp, start)
	}
	if again := w.call(context.Background(), body, key).until("stream_end"); cmp.Diff(joined, again) != "" {
		t.Errorf("the repeat:\n%s", cmp.Diff(joined, again))
	}
}
