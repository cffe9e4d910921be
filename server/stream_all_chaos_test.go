package server

import (
	"context"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// Processes write tasks at once, one of them is killed; the server is killed and started
// again and again; between it and its clients everything is cut, split and held up: each
// client of the stream of all tasks ends with exactly the events of all journals, in one order.
// ROOST_CHAOS=full takes the numbers that were asked for.
func TestChaosOfAllTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("what it kills is a program of its own")
	}
	c := gather(t, stormSize{commits: 120, clients: 6, kills: 3, pause: 400}.full(870))
	var writers []*exec.Cmd
	var outs []io.Reader
	for i := range 4 {
		var more []string
		if i == 3 { // it dies between a sync and telling of it, in the middle of its task
			more = append(more, failpoint.Env+"=journal.synced:"+strconv.Itoa(c.size.commits/5))
		}
		w, out := c.writer(more...)
		writers, outs = append(writers, w), append(outs, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), c.patience(4))
	defer cancel()
	c.follow(ctx, "/v1/events")
	c.rage()
	var ids []string
	for i, w := range writers {
		out := fixture.Must[[]byte](t)(io.ReadAll(outs[i]))
		if err := w.Wait(); (err == nil) != (i < 3) {
			t.Error(i, err)
		}
		ids = append(ids, strings.TrimSpace(string(out)))
	}
	journals := 0
	for _, id := range ids {
		journals += len(journalOf(t, c.store, id))
	}
	want := feedOf(t, c.store)
	for end := time.Now().Add(patience); len(want) < journals; want = feedOf(t, c.store) { // the server tells for the dead
		if time.Now().After(end) {
			t.Errorf("%d events of %d were told", len(want), journals)
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	asJournals(t, c.store, want, ids...)
	c.settle(want)
}
