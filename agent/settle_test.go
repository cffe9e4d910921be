package agent_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/roost-dev/roost/agent"
)

// A stop while a killed write is looked at decides nothing about it: the next run looks
// again. It was once told as unknown for ever.
func TestAStopWhileAWriteIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, turn{calls: []call{use("w1", "edit", "a")}}, finish("done"))
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		stopped := 0
		for n := 2; n < len(b.disk.commits); n++ {
			for ran := b.disk.ranAt[n-1]; ran <= b.disk.ranAt[n]; ran++ {
				left := b.after(n, ran)
				ctx, cancel := context.WithCancel(t.Context())
				left.hook = func(entry string) {
					if strings.HasPrefix(entry, "inspect") {
						cancel()
					}
				}
				out := left.startWith(ctx, agent.Input{})
				cancel()
				if c := left.disk.state.Call("w1"); ctx.Err() != nil && out.State == "cancelled" {
					stopped++
					if c.Finished != nil {
						t.Errorf("killed after commit %d, %d effects: the stop made it %s", n, ran, c.Finished.Outcome)
					}
				}
				left.hook = nil
				left.start(agent.Input{})
				if c := left.disk.state.Call("w1"); c == nil || c.Finished == nil || c.Finished.Outcome != "ok" || len(left.ran) != 1 {
					t.Errorf("killed after commit %d, %d effects: in the end %+v, done %v", n, ran, c, left.ran)
				}
			}
		}
		if stopped < 2 {
			t.Errorf("%d runs were stopped while they looked", stopped)
		}
	})
}
