// Package metrics counts the requests of a server and the runs of its process, and prints the counts in the text format of
// Prometheus (version 0.0.4). It writes the format itself, because Prometheus's library would add more code than this
// package has.
//
// No label holds text of a user, a model or a file: each has few fixed values. Counts begin at zero with the process.
// Everything here is safe for concurrent use, except Text.
package metrics

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/llm"
)

// Watch counts the runs of a process and their requests, and logs the beginnings and ends of runs. It never logs texts of a
// person or a model, reasons, or paths. Its method Observe is for engine.Options.
type Watch struct {
	log *slog.Logger

	started, ended, turns, failures, tokens, cost, unpriced, answers *family
	model, waits                                                     *family // of durations

	mu   sync.Mutex
	runs map[string]*watched // the working ones
}

// watched is the state of a working run.
type watched struct {
	provider string
	asked    int64            // when it asked the model
	opened   map[string]int64 // when its questions opened
}

// NewWatch makes a Watch; without a log it only counts.
func NewWatch(log *slog.Logger) *Watch {
	return &Watch{
		log: cmp.Or(log, slog.New(slog.DiscardHandler)), runs: map[string]*watched{},
		started: newFamily("roost_runs_started_total", "Runs that began, or continued after they waited.", nil),
		ended: newFamily("roost_runs_ended_total", "Runs by how they ended; waiting: let go until a person answers.", nil,
			"outcome", "code"),
		turns:    newFamily("roost_turns_total", "Replies of models.", nil, "provider"),
		failures: newFamily("roost_model_failures_total", "Requests that brought no reply.", nil, "provider", "kind"),
		tokens:   newFamily("roost_tokens_total", "Tokens.", nil, "provider", "kind"),
		cost:     newFamily("roost_cost_dollars_total", "What requests cost, where the price is known.", nil, "provider"),
		unpriced: newFamily("roost_unpriced_requests_total", "Requests whose price is unknown.", nil, "provider"),
		answers:  newFamily("roost_questions_closed_total", "Questions by kind of answer.", nil, "decision"),
		model:    newFamily("roost_model_request_seconds", "From a request until its whole reply was saved.", slow, "provider"),
		waits:    newFamily("roost_question_wait_seconds", "How long runs waited for a person.", slow),
	}
}

// Write prints the counts.
func (w *Watch) Write(b *Text) {
	all := []*family{w.started, w.ended, w.turns, w.failures, w.tokens, w.cost, w.unpriced, w.answers, w.model, w.waits}
	for _, f := range all {
		f.write(b)
	}
}

// eventData are the members of events that a Watch reads.
type eventData struct {
	Settings struct { // of run.started
		Provider string `json:"provider"`
	} `json:"settings"`

	Outcome string `json:"outcome"` // of run.ended, like Code
	Code    string `json:"code"`
	Kind    string `json:"kind"` // of turn.failed, like WaitMS
	WaitMS  int64  `json:"wait_ms"`

	Question string `json:"question"` // of question.opened and question.closed; the next three are of question.closed
	Approve  *bool  `json:"approve"`
	By       string `json:"by"`
	Reason   string `json:"reason"`

	Provider   string `json:"provider"` // of usage.changed, like the rest
	Input      int64  `json:"input"`
	Output     int64  `json:"output"`
	CacheRead  int64  `json:"cache_read"`
	CacheWrite int64  `json:"cache_write"`
	CostMicros *int64 `json:"cost_micros"` // nil: the price is unknown
	More       bool   `json:"more"`
}

// observed are the types of the events that a Watch reads.
var observed = []string{"run.started", "run.waiting", "run.ended", "turn.started", "turn.ended", "turn.failed",
	"usage.changed", "question.opened", "question.closed"}

// Observe counts an event.
func (w *Watch) Observe(e events.Event) {
	var d eventData
	if !slices.Contains(observed, e.Type) || json.Unmarshal(e.Data, &d) != nil {
		return
	}
	switch e.Type {
	case "run.waiting":
		w.over(e, "waiting", "", slog.LevelInfo)
	case "turn.started":
		w.of(e, func(r *watched) { r.asked = e.At })
	case "turn.ended":
		w.of(e, func(r *watched) {
			w.turns.add(1, r.provider)
			if r.asked != 0 {
				w.model.add(float64(e.At-r.asked)/1000, r.provider)
			}
			r.asked = 0
		})
	case "run.started":
		name := provider(d.Settings.Provider)
		w.mu.Lock()
		w.runs[e.Run] = &watched{provider: name, opened: map[string]int64{}}
		w.mu.Unlock()
		w.started.add(1)
		w.log.Info("run started", "task", e.Task, "run", e.Run, "provider", name)
	case "run.ended":
		level := slog.LevelInfo
		if d.Outcome == "failed" {
			level = slog.LevelWarn
		}
		w.over(e, among(d.Outcome, outcomes), among(d.Code, codes), level)
	case "turn.failed":
		w.of(e, func(r *watched) { w.failures.add(1, r.provider, among(d.Kind, kinds)); r.asked = e.At + d.WaitMS })
	case "usage.changed":
		w.spent(d)
	case "question.opened":
		w.of(e, func(r *watched) { r.opened[d.Question] = e.At })
	case "question.closed":
		w.closed(e, d)
	}
}

// over counts and logs the end of a run, or that it waits.
func (w *Watch) over(e events.Event, outcome, code string, level slog.Level) {
	w.mu.Lock()
	delete(w.runs, e.Run)
	w.mu.Unlock()
	w.ended.add(1, outcome, code)
	words := "run ended"
	if outcome == "waiting" {
		words = "run waiting"
	}
	w.log.Log(nil, level, words, "task", e.Task, "run", e.Run, "outcome", outcome, "code", code) //nolint:staticcheck // there is no context, and no handler here reads one
}

func (w *Watch) spent(d eventData) {
	who := provider(d.Provider)
	for kind, n := range map[string]int64{"input": d.Input, "output": d.Output, "cache_read": d.CacheRead, "cache_write": d.CacheWrite} {
		if n > 0 {
			w.tokens.add(float64(n), who, kind)
		}
	}
	switch {
	case d.CostMicros == nil && d.More: // a part of a request that was counted before
	case d.CostMicros == nil:
		w.unpriced.add(1, who)
	case *d.CostMicros > 0:
		w.cost.add(float64(*d.CostMicros)/1e6, who)
	}
}

// closed counts an answer, and logs its giver and its decision, never its text.
func (w *Watch) closed(e events.Event, d eventData) {
	what := Decision(d.Approve)
	if d.Reason != "" {
		what = "nobody"
	}
	w.answers.add(1, what)
	w.of(e, func(r *watched) {
		if at, ok := r.opened[d.Question]; ok && d.Reason == "" {
			w.waits.add(float64(e.At-at) / 1000)
		}
		delete(r.opened, d.Question)
	})
	w.log.Info("question closed", "task", e.Task, "run", e.Run, "question", d.Question, "decision", what, "by", door(d.By))
}

// of calls f with the state of an event's run, if the run works.
func (w *Watch) of(e events.Event, f func(*watched)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.runs[e.Run]; r != nil {
		f(r)
	}
}

// Decision returns the decision of an answer, in a word: answered, approved or denied.
func Decision(approve *bool) string {
	switch {
	case approve == nil:
		return "answered"
	case *approve:
		return "approved"
	}
	return "denied"
}

// door returns the name of the answer's giver, if it is a plain word.
func door(by string) string {
	if len(by) > 40 || strings.Trim(by, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.:") != "" {
		return "other"
	}
	return by
}

// The values of labels. Every other value becomes "other", because anybody may have made a journal.
var (
	outcomes = []string{"completed", "failed", "cancelled", "interrupted", "limit", "denied"}
	codes    = []string{"", "provider", "context", "auth", "fenced", "busy", "configuration", "save", "internal", "timeout",
		"turns", "cost", "cost_task", "cost_day", "mistakes"}
	kinds = []string{string(llm.Auth), string(llm.Invalid), string(llm.ContextOverflow), string(llm.RateLimited),
		string(llm.Overloaded), string(llm.Server), string(llm.Cut), string(llm.Network), string(llm.Script)}
)

func among(value string, all []string) string {
	if slices.Contains(all, value) {
		return value
	}
	return "other"
}

func provider(name string) string { return among(name, append(setup.Providers(), "script")) }

// Requests counts requests by route, method and status.
type Requests struct {
	all, took *family
}

// NewRequests makes counters that are zero.
func NewRequests() Requests {
	return Requests{
		all:  newFamily("roost_http_requests_total", "Requests by route, method and status.", nil, "route", "method", "status"),
		took: newFamily("roost_http_request_seconds", "How long answers took, streams aside.", quick, "route"),
	}
}

// Count counts an answered request. The label is the route's pattern, and not the path, which names tasks.
func (c Requests) Count(r *http.Request, h http.Header, status int, took time.Duration) {
	route := cmp.Or(r.Pattern[strings.Index(r.Pattern, " ")+1:], "refused")
	method := "other"
	if slices.Contains([]string{"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"}, r.Method) {
		method = r.Method
	}
	c.all.add(1, route, method, strconv.Itoa(status))
	if !strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") {
		c.took.add(took.Seconds(), route)
	}
}

// Write prints the counts.
func (c Requests) Write(b *Text) {
	c.all.write(b)
	c.took.write(b)
}

// buckets are the upper bounds of durations, in seconds.
var (
	quick = []float64{0.001, 0.005, 0.02, 0.1, 0.5, 2, 10}
	slow  = []float64{0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}
)

// family is a metric: a counter or a histogram for each combination of its labels' values.
type family struct {
	name, help string
	bounds     []float64 // of the buckets of a histogram of seconds; nil: a counter
	labels     []string

	mu  sync.Mutex
	all map[string]*series // by the labels in text form
}

type series struct {
	sum    float64
	n      uint64
	counts []uint64 // of one bucket each, not cumulative
}

func newFamily(name, help string, bounds []float64, labels ...string) *family {
	return &family{name: name, help: help, bounds: bounds, labels: labels, all: map[string]*series{}}
}

func (f *family) add(n float64, values ...string) {
	key := labelled(f.labels, values)
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.all[key]
	if one == nil {
		one = &series{counts: make([]uint64, len(f.bounds))}
		f.all[key] = one
	}
	n = max(n, 0)
	one.n++
	one.sum += n
	if i, _ := slices.BinarySearch(f.bounds, n); i < len(one.counts) {
		one.counts[i]++
	}
}

func (f *family) write(b *Text) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bounds == nil {
		sums := map[string]float64{}
		for labels, one := range f.all {
			sums[labels] = one.sum
		}
		b.samples(f.name, f.help, "counter", sums)
		return
	}
	b.head(f.name, f.help, "histogram")
	for _, labels := range slices.Sorted(maps.Keys(f.all)) {
		one, below := f.all[labels], uint64(0)
		bucket := "{"
		if labels != "" {
			bucket = strings.TrimSuffix(labels, "}") + ","
		}
		for i, bound := range f.bounds {
			below += one.counts[i]
			fmt.Fprintf(b, "%s_bucket%sle=%q} %d\n", f.name, bucket, digits(bound), below)
		}
		fmt.Fprintf(b, "%s_bucket%sle=\"+Inf\"} %d\n", f.name, bucket, one.n)
		fmt.Fprintf(b, "%s_sum%s %s\n%s_count%s %d\n", f.name, labels, digits(one.sum), f.name, labels, one.n)
	}
}

var begun = time.Now()

// Process writes the metrics of the process, under the usual names.
func (b *Text) Process() {
	b.Gauge("process_start_time_seconds", "When the process started, in Unix seconds.", float64(begun.UnixMilli())/1000)
	if n, ok := resident(); ok {
		b.Gauge("process_resident_memory_bytes", "Memory that the process has.", n)
	}
	b.Gauge("go_goroutines", "Goroutines.", float64(runtime.NumGoroutine()))
	read := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(read)
	b.Gauge("go_memstats_heap_alloc_bytes", "Memory of objects.", float64(read[0].Value.Uint64()))
	b.Gauge("go_memstats_sys_bytes", "Memory that the runtime took of the system.", float64(read[1].Value.Uint64()))
	b.samples("go_gc_cpu_seconds_total", "What collecting garbage cost.", "counter", map[string]float64{"": read[2].Value.Float64()})
}

// resident returns the memory of the process; ok is false where the system does not report it.
func resident() (bytes float64, ok bool) {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return float64(pages) * float64(os.Getpagesize()), err == nil
}

// Media is the media type of Text.
const Media = "text/plain; version=0.0.4; charset=utf-8"

// Text is a document of metrics.
type Text struct{ strings.Builder }

// Gauge writes a number that goes up and down.
func (b *Text) Gauge(name, help string, value float64) {
	b.samples(name, help, "gauge", map[string]float64{"": value})
}

// Gauges writes a gauge for each value of a label.
func (b *Text) Gauges(name, help, label string, values map[string]float64) {
	all := map[string]float64{}
	for value, n := range values {
		all[labelled([]string{label}, []string{value})] = n
	}
	b.samples(name, help, "gauge", all)
}

// Build writes which program runs, and which Go built it.
func (b *Text) Build(version, language string) {
	labels := labelled([]string{"version", "go"}, []string{version, language})
	b.samples("roost_build_info", "What runs here.", "gauge", map[string]float64{labels: 1})
}

// samples writes a metric with its numbers by their labels in text form.
func (b *Text) samples(name, help, kind string, all map[string]float64) {
	b.head(name, help, kind)
	for _, labels := range slices.Sorted(maps.Keys(all)) {
		b.WriteString(name + labels + " " + digits(all[labels]) + "\n")
	}
}

func (b *Text) head(name, help, kind string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

var labelQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labelled are labels in text form; "" without any.
func labelled(names, values []string) string {
	if len(names) == 0 {
		return ""
	}
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = name + `="` + labelQuotes.Replace(values[i]) + `"`
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func digits(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e15 {
		return strconv.FormatInt(int64(n), 10)
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}
