package journal_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/journal"
)

var draft = journal.Draft{At: 1, By: "test", Events: []journal.Event{[]byte(`{"type":"x"}`)}}

// A patient Barrier ends with its context while saving takes long. What was saved of an attempt that failed counts, and
// is not saved again.
func TestPatientBarrier(t *testing.T) {
	var tried [][]uint64
	attempts, answers := make(chan []uint64), make(chan error)
	w := journal.NewWriter(journal.WriterOptions{Epoch: 1, Patient: true, Save: func(lines []journal.Line) (uint64, error) {
		if lines[0].Seq == 1 { // of Start
			return 1, nil
		}
		seqs := []uint64{}
		for _, l := range lines {
			seqs = append(seqs, l.Seq)
		}
		attempts <- seqs
		return seqs[0], <-answers
	}})
	if err := w.Start(nil, draft); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.Append(t.Context(), draft); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Barrier(ctx) }()
	tried = append(tried, <-attempts)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v while saving, want the end of the context", err)
	}
	go func() { ended <- w.Barrier(t.Context()) }()
	answers <- journal.ErrNotSaved // after the first of two
	tried = append(tried, <-attempts)
	answers <- nil
	if err := <-ended; err != nil && !errors.Is(err, journal.ErrNotSaved) { // it may have come before the first answer
		t.Error(err)
	}
	if err := w.Stop(); err != nil { // it waits for the second attempt, which Barrier may not have done
		t.Error(err)
	}
	if diff := cmp.Diff([][]uint64{{2, 3}, {3}}, tried); diff != "" || w.Newest() != 3 {
		t.Errorf("head %d, want 3; attempts:\n%s", w.Newest(), diff)
	}
}

// A call that waits for room ends when another owner takes over.
func TestFenceEndsThoseThatWaitForRoom(t *testing.T) {
	saving := make(chan struct{})
	save := func(lines []journal.Line) (uint64, error) {
		if lines[0].Seq > 1 {
			<-saving
		}
		return lines[len(lines)-1].Seq, nil
	}
	w := journal.NewWriter(journal.WriterOptions{Epoch: 1, MaxUnsaved: 1, Patient: true, Save: save})
	if err := w.Start(nil, draft); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		for {
			if _, err := w.Append(context.Background(), draft); err != nil {
				ended <- err
				return
			}
		}
	}()
	w.Fence()
	if err := <-ended; !errors.Is(err, journal.ErrFenced) {
		t.Errorf("got %v, want that it was fenced", err)
	}
	close(saving)
	if err := w.Stop(); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("got %v at the end, want that it was fenced", err)
	}
}
