package metrics

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
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
