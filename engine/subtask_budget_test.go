package engine_test

import (
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store/spend"
)

// delegate starts a subtask, for some cents.
func delegate(id string) llmtest.Reply {
	t := llmtest.Call(id, "new_task", `{"mode":"code","message":"do part ONE","todos":null}`)
	t.Input, t.Output = 10_000, 100
	return t
}

// The limit of a tree holds for the child that reaches it, and for the parent when the
// child is done: what it spent is known at once.
func TestATreesLimitHoldsForAllOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		replies []llmtest.Reply
		below   bool // the child is stopped, not the parent
	}{
		"the child reaches it":        {[]llmtest.Reply{delegate("toolu_1"), costly("toolu_2"), done, done}, true},
		"the parent finds it used up": {[]llmtest.Reply{delegate("toolu_1"), dear(done), done}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := newAPIBench(t, c.replies...)
			run, out, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Approve: "all", Model: "claude-sonnet-4-5", Limits: &api.RunLimits{MaxTaskMicros: 200_000}}})
			wantOutcome(t, out, "limit", "cost_task")
			child := b.onlyChild(run.TaskID)
			if (out.Child == child.ID) != c.below {
				t.Errorf("got %+v, want (out.Child == child.ID) = c.below", out)
			}
			_, out, _ = b.run(engine.Request{Task: run.TaskID, Choice: setup.Choice{Limits: &api.RunLimits{MaxTaskMicros: 100_000_000}}})
			wantOutcome(t, out, "completed", "")
			if b.resultsGiven(run.TaskID, child.ID) != 1 {
				t.Error("the result is not told once")
			}
			sum := b.state(run.TaskID).Usage.CostMicros + b.state(child.ID).Usage.CostMicros
			got, err := spend.Sum(t.Context(), b.store, api.ByTask, api.TaskFilter{}, time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range got.Items {
				if s.Key == run.TaskID && (s.WithChildren == nil || s.WithChildren.Cost == nil || *s.WithChildren.Cost != money.USD(sum)) {
					t.Errorf("the tree cost %+v, its tasks %d", s.WithChildren, sum)
				}
			}
			if got.Total.Usage.Cost == nil || *got.Total.Usage.Cost != money.USD(sum) {
				t.Errorf("in all %+v, the tasks %d", got.Total.Usage, sum)
			}
		})
	}
}

// dear is a reply that costs some tens of cents.
func dear(r llmtest.Reply) llmtest.Reply {
	r.Input, r.Output = 100_000, 10_000
	return r
}
