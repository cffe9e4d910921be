package task

import "math"

// UsageTotals is everything a task ever spent, rewound parts included. It only grows.
type UsageTotals struct {
	Requests    int64
	Input       int64 // tokens, cache excluded
	Output      int64
	CacheRead   int64
	CacheWrite  int64
	CostMicros  int64 // of the requests whose price is known
	CostUnknown bool  // at least one request had no known price
}

// Add adds what a request spent.
func (l *UsageTotals) Add(e UsageChanged) {
	if !e.More {
		l.Requests++
	}
	grow(&l.Input, e.Input)
	grow(&l.Output, e.Output)
	grow(&l.CacheRead, e.CacheRead)
	grow(&l.CacheWrite, e.CacheWrite)
	if e.CostMicros == nil {
		l.CostUnknown = true
		return
	}
	grow(&l.CostMicros, *e.CostMicros)
}

// grow adds to a sum that only grows: what is less than nothing is nothing, and
// what cannot be counted any more stays at the most that can.
func grow(sum *int64, by int64) {
	*sum += min(max(by, 0), math.MaxInt64-*sum)
}
