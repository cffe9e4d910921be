package server

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/server/metrics"
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
	watch := metrics.NewWatch(nil)
	g := newWorkingBench(t, func(o *testOptions) {
		o.Watch = watch
		o.Engine = engine.New(o.Store, engine.Options{Config: setup.Config{Keys: map[string]string{}}, Observe: watch.Observe})
	})
	t.Cleanup(func() { _ = g.opt.Engine.Close(context.WithoutCancel(t.Context())) })
	g.refused(401, "unauthenticated", "GET", "/metrics", "Authorization: ")
	id := g.privately(askWhich)
	g.until(id, "waiting")
	g.get("/v1/tasks")
	c := g.logIn()
	g.get("/v1/version", "Authorization: ", "Cookie: "+c.Name+"="+c.Value)
	g.refused(404, "task_not_found", "GET", "/v1/tasks/nothing")
	got := samples(t, string(g.get("/metrics", "Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1")))
	for key, want := range map[string]string{
		`roost_runs{state="running"}`: "0", `roost_runs{state="waiting"}`: "1", `roost_runs{state="queued"}`: "0",
		`roost_questions_open`: "1", `roost_runs_started_total`: "1", `roost_turns_total{provider="script"}`: "1", `roost_draining`: "0", `roost_stream_followers`: "0",
		`roost_http_requests_total{route="/v1/tasks/{id}",method="GET",status="404"}`: "1",
		`roost_http_requests_total{route="refused",method="GET",status="401"}`:        "1",
		`roost_http_requests_total{route="/v1/version",method="GET",status="200"}`:    "1",
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
		t.Errorf("got %v, want got[`roost_http_request_seconds_count{route=\"/v1/tasks\"}`] != \"\" and got[\"go_goroutines\"] != \"\"",
			got)
	}
}

// privately is a task with such a model that runs.
func (g *bench) privately(model string) string {
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
func (g *bench) until(id, status string) {
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
