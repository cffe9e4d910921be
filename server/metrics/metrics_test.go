package metrics

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/events"
)

// numbers are the numbers of a text by their names and labels.
func numbers(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if at := strings.LastIndexByte(line, ' '); line[0] != '#' {
			out[line[:at]] = strings.TrimSuffix(line[at+1:], "\n")
		}
	}
	return out
}

// Whatever stands in a journal, the labels are those that are known beforehand, and the
// log has none of the words.
func TestWatchTellsNoWords(t *testing.T) {
	var log strings.Builder
	w := NewWatch(slog.New(slog.NewTextHandler(&log, nil)))
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
	var b Text
	w.Write(&b)
	got := numbers(b.String())
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
	tl := newFamily("x_total", "X.", nil, "a")
	tl.add(1.5, "q\"b\\s\nn")
	tl.add(1, "q\"b\\s\nn")
	var b Text
	tl.write(&b)
	if want := "# HELP x_total X.\n# TYPE x_total counter\nx_total{a=\"q\\\"b\\\\s\\nn\"} 2.5\n"; b.String() != want {
		t.Errorf("got %q, want b.String() = %v", b.String(), want)
	}
	s := newFamily("y_seconds", "Y.", []float64{1, 2})
	for _, d := range []time.Duration{-time.Second, time.Second, 1500 * time.Millisecond, time.Hour} {
		s.add(d.Seconds())
	}
	b.Reset()
	s.write(&b)
	got := numbers(b.String())
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
