package metrics

import (
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

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
