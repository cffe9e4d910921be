package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
)

// line is a sample of Prometheus's text format.
var metricLine = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*(\{[a-z_]+="[^"\n]*"(,[a-z_]+="[^"\n]*")*\})? [-+0-9.e]+$`)

// samples are the numbers of a text in Prometheus's format, which is checked.
func samples(t testing.TB, text string) map[string]string {
	t.Helper()
	out, declared := map[string]string{}, map[string]bool{}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ := strings.Cut(rest, " ")
			if declared[name] {
				t.Errorf("%s is declared twice", name)
			}
			declared[name] = true
			continue
		}
		if strings.HasPrefix(line, "# HELP ") {
			continue
		}
		if !metricLine.MatchString(line) {
			t.Errorf("no sample: %q", line)
			continue
		}
		key, value := line[:strings.LastIndexByte(line, ' ')], line[strings.LastIndexByte(line, ' ')+1:]
		name, _, _ := strings.Cut(key, "{")
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if !declared[name] && !declared[base] {
			t.Errorf("%s has no type", name)
		}
		if _, twice := out[key]; twice {
			t.Errorf("%s is told twice", key)
		}
		out[key] = value
	}
	return out
}

func TestMetricsTellWhatWasDone(t *testing.T) {
	watch := NewWatch(nil)
	g := newWork(t, func(o *testOptions) {
		o.Watch = watch
		o.Engine = engine.New(o.Store, engine.Options{Config: setup.Config{Keys: map[string]string{}}, Observe: watch.Observe})
	})
	t.Cleanup(func() { _ = g.opt.Engine.Close(context.WithoutCancel(t.Context())) })
	g.refused(401, "unauthenticated", "GET", "/metrics", "Authorization: ")
	id := g.privately(askWhich)
	g.until(id, "waiting")
	g.get("/v1/tasks")
	g.refused(404, "task_not_found", "GET", "/v1/tasks/nothing")
	got := samples(t, string(g.get("/metrics", "Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1")))
	for key, want := range map[string]string{
		`roost_runs{state="running"}`: "0", `roost_runs{state="waiting"}`: "1", `roost_runs{state="queued"}`: "0",
		`roost_questions_open`: "1", `roost_runs_started_total`: "1", `roost_turns_total{provider="script"}`: "1", `roost_draining`: "0", `roost_stream_followers`: "0",
		`roost_http_requests_total{route="/v1/tasks/{id}",method="GET",status="404"}`: "1",
		`roost_http_requests_total{route="refused",method="GET",status="401"}`:        "1",
		`roost_model_request_seconds_count{provider="script"}`:                        "1",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %s", key, got[key], want)
		}
	}
	for key := range got {
		if strings.Contains(key, id) || strings.Contains(key, "nothing") || strings.Contains(key, g.dir) {
			t.Errorf("a label names a task or a path: %s", key)
		}
	}
	if got[`roost_http_request_seconds_count{route="/v1/tasks"}`] == "" || got["go_goroutines"] == "" {
		t.Errorf("%v", got)
	}
}

// privately is a task with such a model that runs.
func (g *ground) privately(model string) string {
	g.Helper()
	body, err := json.Marshal(map[string]any{"workspace": filepath.Join(g.dir, "ws"), "provider": "script", "model": g.model(model), "message": map[string]string{"text": "private words"}})
	if err != nil {
		g.Fatal(err)
	}
	resp := g.send("POST", "/v1/tasks", string(body))
	if resp.StatusCode != http.StatusCreated {
		g.Fatalf("start a task: %s", resp.Status)
	}
	return resp.Header.Get("Roost-Task-Id")
}

// until waits until a task has a status.
func (g *ground) until(id, status string) {
	g.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		var got struct{ Status string }
		if err := json.Unmarshal(g.get("/v1/tasks/"+id), &got); err != nil {
			g.Fatal(err)
		}
		if got.Status == status {
			return
		}
		if time.Now().After(end) {
			g.Fatalf("task %s is %s, not %s", id, got.Status, status)
		}
	}
}

// Whatever stands in a journal, the labels are those that are known beforehand, and the
// log has none of the words.
func TestWatchTellsNoWords(t *testing.T) {
	log := &lockedBuffer{}
	w := NewWatch(textLog(log))
	event := func(typ, run string, at int64, data string) {
		w.Observe(events.Event{Type: typ, Task: "t1", Run: run, At: at, Data: json.RawMessage(data)})
	}
	event("run.started", "r1", 1000, `{"run":"r1","settings":{"provider":"anthropic","model":"secret-model"}}`)
	event("turn.started", "r1", 2000, `{"run":"r1"}`)
	event("turn.failed", "r1", 2500, `{"run":"r1","kind":"hostile \" kind","error":"secret error","wait_ms":500}`)
	event("turn.ended", "r1", 4000, `{"run":"r1"}`)
	event("usage.changed", "r1", 4000, `{"provider":"anthropic","input":10,"output":5,"cache_read":3,"cost_micros":2500}`)
	event("usage.changed", "r1", 4000, `{"provider":"invented by a journal","input":1,"output":0,"cost_micros":null}`)
	event("question.opened", "r1", 5000, `{"question":"q1","kind":"approval","text":"secret question"}`)
	event("question.closed", "r1", 8000, `{"question":"q1","approve":false,"text":"secret reason","by":"api"}`)
	event("question.closed", "r1", 8000, `{"question":"q2","by":"roost","reason":"superseded"}`)
	event("run.ended", "r1", 9000, `{"run":"r1","outcome":"failed","reason":"secret end","code":"made up"}`)
	event("run.waiting", "r2", 9000, `{"run":"r2","question":"q3"}`)
	event("run.started", "r3", 9000, `no json`)
	var b strings.Builder
	w.write(&b)
	got := samples(t, b.String())
	for key, want := range map[string]string{
		`roost_runs_ended_total{outcome="failed",code="other"}`:             "1",
		`roost_runs_ended_total{outcome="waiting",code=""}`:                 "1",
		`roost_model_failures_total{provider="anthropic",kind="other"}`:     "1",
		`roost_tokens_total{provider="anthropic",kind="cache_read"}`:        "3",
		`roost_cost_dollars_total{provider="anthropic"}`:                    "0.0025",
		`roost_unpriced_requests_total{provider="other"}`:                   "1",
		`roost_questions_closed_total{decision="denied"}`:                   "1",
		`roost_questions_closed_total{decision="nobody"}`:                   "1",
		`roost_model_request_seconds_sum{provider="anthropic"}`:             "1",
		`roost_model_request_seconds_bucket{provider="anthropic",le="0.5"}`: "0",
		`roost_model_request_seconds_bucket{provider="anthropic",le="1"}`:   "1",
		`roost_question_wait_seconds_sum`:                                   "3",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %s", key, got[key], want)
		}
	}
	if all := log.String() + b.String(); strings.Contains(all, "secret") || strings.Contains(all, "made up") || strings.Contains(all, "invented") || strings.Contains(all, "hostile") {
		t.Errorf("words came through:\n%s", all)
	}
	if text := log.String(); !strings.Contains(text, "question=q1 decision=denied by=api") || strings.Count(text, "\n") != 5 {
		t.Errorf("the log:\n%s", text)
	}
	if len(w.runs) != 0 {
		t.Errorf("%d runs are remembered after their end", len(w.runs))
	}
}

func TestLabelsAreWrittenAsTheFormatWants(t *testing.T) {
	tl := newTally("x_total", "X.", "a")
	tl.add(1.5, "q\"b\\s\nn")
	tl.add(1, "q\"b\\s\nn")
	var b strings.Builder
	tl.write(&b)
	if want := "# HELP x_total X.\n# TYPE x_total counter\nx_total{a=\"q\\\"b\\\\s\\nn\"} 2.5\n"; b.String() != want {
		t.Errorf("%q", b.String())
	}
	s := newSpread("y_seconds", "Y.", "", []float64{1, 2})
	for _, d := range []time.Duration{-time.Second, time.Second, 1500 * time.Millisecond, time.Hour} {
		s.add(d, "")
	}
	b.Reset()
	s.write(&b)
	got := samples(t, b.String())
	want := map[string]string{`y_seconds_bucket{le="1"}`: "2", `y_seconds_bucket{le="2"}`: "3", `y_seconds_bucket{le="+Inf"}`: "4", "y_seconds_count": "4", "y_seconds_sum": "3602.5"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, err := os.Stat("/proc/self/statm"); err == nil {
		if n, ok := resident(); !ok || n < 1<<20 {
			t.Errorf("this process has %v bytes", n)
		}
	}
}
