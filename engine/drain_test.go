package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
)

// A drain without any time left interrupts what works, and lets go what waits for a person:
// that one waits on, whoever was faster.
func TestADrainInAHurryInterruptsNobodyWhoWaits(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 20})
	var waiting []string
	for range 8 {
		waiting = append(waiting, b.submit(b.ask(asksWhich)).ID)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if open, err := b.engine.Questions(t.Context(), ""); err != nil || time.Now().After(end) {
			t.Fatal(len(open), err)
		} else if len(open) == len(waiting) && allHere(open) {
			break
		}
	}
	works := b.submit(b.ask(waitsForGo)).ID
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.engine.Drain(over); err != nil {
		t.Fatal(err)
	}
	for _, id := range waiting {
		if run, err := b.engine.RunByID(t.Context(), id); err != nil || run.State != "waiting" || run.Outcome != "" || run.Question == "" {
			t.Errorf("a run that waited is %s (%s) %v", run.State, run.Reason, err)
		}
	}
	if run, err := b.engine.RunByID(t.Context(), works); err != nil || run.State != "interrupted" {
		t.Errorf("the run that worked is %s %v", run.State, err)
	}
}

func allHere(open []engine.Asked) bool {
	for _, q := range open {
		if !q.Here {
			return false
		}
	}
	return true
}
