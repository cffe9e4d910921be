package engine_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/roost-dev/roost/engine"
)

// A process that started a run, and ends with it, goes on with the run that somebody's
// words began in its place, at whatever moment it looks.
func TestAfterARunThatWasInterruptedWithWords(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	r := b.ask(waitsForGo)
	run := b.start(r)
	waitForFile(t, filepath.Join(b.workspace, "here"))
	var sent engine.Sent
	var wait sync.WaitGroup
	wait.Go(func() {
		sent = b.send(run.TaskID, engine.Message{Text: "stop that", Delivery: "interrupt", By: "test", Request: engine.Request{Interactive: true}})
	})
	if o := b.end(run); o.State != "interrupted" {
		t.Errorf("the run ended %+v", o)
	}
	next := run.After(context.Background())
	wait.Wait()
	if next == nil || next.ID != sent.Run || next.TaskID != run.TaskID {
		t.Fatalf("after it comes %+v, and the words began run %s", next, sent.Run)
	}
	if o := b.end(next); o.State != "completed" {
		t.Errorf("the next one ended %+v", o)
	}
	if _, err := next.Next(context.Background()); err != nil {
		t.Fatal(err)
	}
	if late := run.After(context.Background()); late != next {
		t.Errorf("after the next run has ended, After gives %+v, want run %s", late, next.ID)
	}
	if last := next.After(context.Background()); last != nil {
		t.Errorf("and after that %s", last.ID)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if last := next.After(ended); last != nil {
		t.Errorf("without time to look: %s", last.ID)
	}
}
