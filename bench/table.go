package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// row is one line of the table.
type row struct {
	what  string
	got   string
	floor string // what it is measured against
	ratio string
	bar   string // what the design asks for
}

const layout = "%-46s  %-30s  %-22s  %-15s  %s\n"

func header(w io.Writer) {
	fmt.Fprintf(w, layout, "what", "measured", "yardstick", "ratio", "bar")
}

func (r row) print(w io.Writer) { fmt.Fprintf(w, layout, r.what, r.got, r.floor, r.ratio, r.bar) }

// times are durations of one thing.
type times []time.Duration

// at gives the smallest time that a share of all does not exceed (nearest rank);
// 0 when there are none.
func (t times) at(share float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	rank := int(share*float64(len(sorted)) + 0.9999999)
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func (t times) median() time.Duration { return t.at(0.5) }
func (t times) p99() time.Duration    { return t.at(0.99) }

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

func mb(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20)) }

// over is a ratio as people read it; "-" when there is nothing to divide by.
func over[N time.Duration | int64](a, b N) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2fx", float64(a)/float64(b))
}
