package metrics

import (
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// buckets are the upper bounds of durations, in seconds.
var (
	quick = []float64{0.001, 0.005, 0.02, 0.1, 0.5, 2, 10}
	slow  = []float64{0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}
)

// tally is a counter with labels.
type tally struct {
	name, help string
	labels     []string

	mu  sync.Mutex
	all map[string]float64 // by the labels in text form
}

func newTally(name, help string, labels ...string) *tally {
	return &tally{name: name, help: help, labels: labels, all: map[string]float64{}}
}

func (t *tally) add(n float64, values ...string) {
	key := labelled(t.labels, values)
	t.mu.Lock()
	t.all[key] += n
	t.mu.Unlock()
}

func (t *tally) write(b *Text) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.samples(t.name, t.help, "counter", t.all)
}

// spread is a histogram of durations.
type spread struct {
	name, help string
	label      string // "" = none
	bounds     []float64

	mu  sync.Mutex
	all map[string]*buckets // by the value of the label
}

type buckets struct {
	counts []uint64 // of one bucket each, not cumulative
	n      uint64
	sum    float64
}

func newSpread(name, help, label string, bounds []float64) *spread {
	return &spread{name: name, help: help, label: label, bounds: bounds, all: map[string]*buckets{}}
}

func (s *spread) add(d time.Duration, value string) {
	took := max(d.Seconds(), 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[value]
	if one == nil {
		one = &buckets{counts: make([]uint64, len(s.bounds))}
		s.all[value] = one
	}
	one.n++
	one.sum += took
	if i, _ := slices.BinarySearch(s.bounds, took); i < len(one.counts) {
		one.counts[i]++
	}
}

func (s *spread) write(b *Text) {
	b.head(s.name, s.help, "histogram")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range slices.Sorted(maps.Keys(s.all)) {
		one, names, values := s.all[value], []string{}, []string{}
		if s.label != "" {
			names, values = []string{s.label}, []string{value}
		}
		below := uint64(0)
		at := func(bound string, n uint64) {
			b.WriteString(s.name + "_bucket" + labelled(append(slices.Clone(names), "le"),
				append(slices.Clone(values), bound)) + " " + strconv.FormatUint(n, 10) + "\n")
		}
		for i, bound := range s.bounds {
			below += one.counts[i]
			at(digits(bound), below)
		}
		at("+Inf", one.n)
		fmt.Fprintf(b, "%s_sum%s %s\n%s_count%s %d\n", s.name, labelled(names, values), digits(one.sum), s.name,
			labelled(names, values), one.n)
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
	if read[0].Value.Kind() == metrics.KindUint64 {
		b.Gauge("go_memstats_heap_alloc_bytes", "Memory of objects.", float64(read[0].Value.Uint64()))
	}
	if read[1].Value.Kind() == metrics.KindUint64 {
		b.Gauge("go_memstats_sys_bytes", "Memory that the runtime took of the system.", float64(read[1].Value.Uint64()))
	}
	if read[2].Value.Kind() == metrics.KindFloat64 {
		b.samples("go_gc_cpu_seconds_total", "What collecting garbage cost.", "counter", map[string]float64{"": read[2].Value.Float64()})
	}
}

// resident is the memory of the process; ok is false where the system does not report it.
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

// Gauges writes such a number for each value of a label.
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
