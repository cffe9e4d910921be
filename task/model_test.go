package task_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// What became of each call is known to the player, and must be what the fold says.
func TestARunIsFoldedAsItWasPlayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := play(t)
		checkValid(t, p.s)
		for c, want := range p.want {
			if got := c.Outcome(); got != want && !(want != task.OutcomeFinished && c.Answered) {
				t.Fatalf("call %s of message %d is %s, it was played to be %s", c.ID, c.Message, got, want)
			}
		}
		if p.s.Usage.CostMicros != p.bill || len(p.s.Problems) > 0 || len(p.s.Runs.All) != p.runs {
			t.Fatalf("spent %d of %d, %d runs of %d, problems %v", p.s.Usage.CostMicros, p.bill, len(p.s.Runs.All), p.runs, p.s.Problems)
		}
		if p.s.Run == nil || p.s.Run.Outcome != "" || p.s.Run.Waiting != "" {
			t.Fatalf("the run that goes on is %+v", p.s.Run)
		}
		for _, m := range append(p.s.UI(), p.s.API()...) {
			if m.Missing {
				t.Fatalf("message %d is missing", m.ID)
			}
		}
	})
}

// derived is what a state says of calls and replies.
func derived(s *task.State) string {
	out := fmt.Sprintf("%d replies, %d failures, open %s\n", s.Replies, s.Failures, openIDs(s))
	for _, c := range s.Calls() {
		out += fmt.Sprintf("%s of %d: %s, answered %t, current %t\n", c.ID, c.Message, c.Outcome(), c.Answered, s.Call(c.ID) == c)
	}
	return out
}

// What a state says of calls is told by its visible history and not by the way
// there: looking at all of it again changes nothing.
func TestLookingAgainChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := play(t)
		before := derived(p.s)
		id := p.s.NextMessage()
		p.write(apiMessage(id, `{"role":"user","content":"never mind"}`))
		p.write(hidden("rewind", id))
		if d := cmp.Diff(before, derived(p.s)); d != "" {
			t.Fatal(d)
		}
	})
}

// fold gives a reader's state of a log of which some commits are lost.
func fold(s *task.State, log []journal.Commit, lost map[uint64]bool) *task.State {
	for _, c := range log {
		if lost[c.Seq] {
			s.Lost(journal.Damage{Seq: c.Seq, Reason: "checksum does not match"})
			continue
		}
		_ = s.Apply(c)
	}
	return s
}

// Whatever the memory and wherever a reader starts, a run says one thing; with
// commits lost in its middle, too.
func TestAllWaysToAStateAreOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := play(t)
		lost := map[uint64]bool{}
		for range rapid.IntRange(0, 3).Draw(t, "lost commits") {
			lost[rapid.Uint64Range(1, uint64(len(p.log))).Draw(t, "lost")] = true
		}
		src := memory{blobMap: p.blobs}
		for _, c := range p.log {
			if !lost[c.Seq] {
				src.log = append(src.log, c)
			}
		}
		if rapid.Bool().Draw(t, "a blob is gone") {
			delete(p.blobs, "blob1")
		}
		all := task.New(p.blobs)
		var spent task.UsageTotals
		for i := range p.log {
			fold(all, p.log[i:i+1], lost)
			checkValid(t, all)
			if u := all.Usage; u.CostMicros < spent.CostMicros || u.Requests < spent.Requests || spent.CostUnknown && !u.CostUnknown {
				t.Fatalf("the usage totals fell from %+v to %+v", spent, u)
			}
			spent = all.Usage
		}
		want := dump(all)
		room := rapid.SampledFrom([]int{0, 500, 1 << 20}).Draw(t, "room")
		cut := rapid.IntRange(0, len(p.log)).Draw(t, "cut")

		two := fold(task.New(p.blobs), p.log[:cut], lost)
		first := dump(two)
		if d := cmp.Diff(first, dump(two)); d != "" {
			t.Fatalf("reading changed the state: %s", d)
		}
		data, err := two.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, dump(fold(two, p.log[cut:], lost))); d != "" {
			t.Fatalf("a prefix and the rest: %s", d)
		}
		if d := cmp.Diff(want, dump(fold(task.New(nil).Lean(src, room), p.log, lost))); d != "" {
			t.Fatalf("with little memory: %s", d)
		}
		restored, err := task.Restore(data, src, room)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(first, dump(restored)); d != "" {
			t.Fatalf("a snapshot: %s", d)
		}
		if d := cmp.Diff(want, dump(fold(restored, p.log[cut:], lost))); d != "" {
			t.Fatalf("a snapshot and the rest: %s", d)
		}
	})
}

// The numbers of messages are never given away twice, whatever was lost.
func TestWhatIsLostKeepsTheNumbersOfTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := play(t)
		lost := map[uint64]bool{rapid.Uint64Range(2, uint64(len(p.log))).Draw(t, "lost"): true}
		s := fold(task.New(p.blobs), p.log, lost)
		for id := uint64(1); id < s.NextMessage(); id++ {
			m, was := s.Message(id), p.s.Message(id)
			if m.Hidden == "lost" {
				continue
			}
			if m.ID != id || was == nil || was.History != m.History {
				t.Fatalf("message %d is %+v, it was %+v", id, m, was)
			}
		}
		if len(s.Problems) == 0 {
			t.Fatal("nobody was told")
		}
	})
}
