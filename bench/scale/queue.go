package scale

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Samples are times in microseconds, sorted.
type Samples []float64

// At gives the smallest sample that a share of all does not exceed; 0 when there are none.
func (s Samples) At(share float64) float64 {
	if len(s) == 0 {
		return 0
	}
	return s[min(max(int(math.Ceil(share*float64(len(s)))), 1), len(s))-1]
}

// add puts an event into the queue, a heap with four children: container/heap would take each event through an interface.
func (s *sim) add(e event) {
	s.order++
	e.order = s.order
	s.queue = append(s.queue, e)
	i := len(s.queue) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(s.queue[parent]) {
			break
		}
		s.queue[i] = s.queue[parent]
		i = parent
	}
	s.queue[i] = e
}

func (s *sim) pop() event {
	first, last := s.queue[0], s.queue[len(s.queue)-1]
	s.queue = s.queue[:len(s.queue)-1]
	n := len(s.queue)
	if n == 0 {
		return first
	}
	i := 0
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for c := least + 1; c < min(4*i+5, n); c++ {
			if s.queue[c].before(s.queue[least]) {
				least = c
			}
		}
		if !s.queue[least].before(last) {
			break
		}
		s.queue[i] = s.queue[least]
		i = least
	}
	s.queue[i] = last
	return first
}

// askingTenant is how many times the average tenant's tasks the tenant has that asks: by the squares of pareto's sizes.
const askingTenant = 2.28

// pareto is the size of a tenant: most are small, and none has more than twenty times the least.
func pareto(r *rand.Rand) float64 { return min(math.Pow(1-r.Float64(), -1/1.5), 20) }

func sortDown(list []float64) {
	slices.Sort(list)
	slices.Reverse(list)
}

// sink restores the heap of cells after the first one got tasks.
func sink(heap []int, tasks []float64) {
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(heap); c++ {
			if a, b := tasks[heap[c]], tasks[heap[least]]; a < b || a == b && heap[c] < heap[least] {
				least = c
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

func sum(list []float64) (all float64) {
	for _, x := range list {
		all += x
	}
	return all
}
