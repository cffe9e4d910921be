package task

// Ledger is everything a task ever spent, rewound parts included. It only grows.
type Ledger struct {
	Requests    int64
	Input       int64 // tokens, cache excluded
	Output      int64
	CacheRead   int64
	CacheWrite  int64
	CostMicros  int64 // of the requests whose price is known
	CostUnknown bool  // at least one request had no known price
}

func (l *Ledger) add(e UsageChanged) {
	l.Requests++
	l.Input += e.Input
	l.Output += e.Output
	l.CacheRead += e.CacheRead
	l.CacheWrite += e.CacheWrite
	if e.CostMicros == nil {
		l.CostUnknown = true
		return
	}
	l.CostMicros += *e.CostMicros
}
