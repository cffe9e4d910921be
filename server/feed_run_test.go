package server

import (
	"bufio"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// The stream of a run that goes on with a task of which a run was killed holds that end, too,
// in one commit with its own beginning. It goes on to the end of its own run.
func TestTheStreamOfARunEndsWithThatRun(t *testing.T) {
	g := newWork(t)
	first := g.started(`[{tools: [{name: attempt_completion, input: {result: first}}]}]`)
	g.state(first.ID, "completed")
	ref := must[refOf](t)(g.store.Find(t.Context(), first.Task))
	var owned *store.Owned
	var busy *journal.BusyError
	for end := time.Now().Add(patience); owned == nil; time.Sleep(5 * time.Millisecond) { // the run lets go of it behind its end
		var err error
		if owned, err = g.store.Own(t.Context(), ref); err != nil && (!errors.As(err, &busy) || time.Now().After(end)) {
			t.Fatal(err)
		}
	}
	if err := owned.Task.Commit(t.Context(), task.RunStarted{Run: "killed", Settings: owned.Task.State().Settings}); err != nil {
		t.Fatal(err)
	}
	if err := owned.Task.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	resp := g.send("POST", "/v1/tasks/"+first.Task+"/runs", `{"message":{"text":"again"}}`, "Accept: "+streamMedia)
	run := resp.Header.Get("Roost-Run-Id")
	s := &stream{t: t, resp: resp, in: bufio.NewReader(resp.Body)}
	var ends []string
	for f, ok := s.next(); ok; f, ok = s.next() {
		if f.Type == "run.ended" {
			of, _ := esjson.GetString([]byte(f.Data), "run_id")
			how, _ := esjson.GetString([]byte(f.Data), "outcome")
			ends = append(ends, of+" "+how)
		}
		if f.Type == "stream.end" {
			break
		}
	}
	if got, want := fmt.Sprint(ends), fmt.Sprint([]string{"killed interrupted", run + " completed"}); got != want {
		t.Errorf("it tells of the ends %s, want %s", got, want)
	}
}
