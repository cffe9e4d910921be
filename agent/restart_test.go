package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
)

// busy is a run that passes through everything: reasoning, text, reads, writes,
// commands, several calls in one reply, an approval, a question, a failed attempt.
func busy() []turn {
	return []turn{
		{think: "I wonder.", text: "First I look.", calls: []call{use("r1", "look", "a"), use("w1", "edit", "a")}},
		{fails: []failure{{err: overloaded(0), text: "half a"}}, text: "Then I act.", calls: []call{use("c1", "act", "one"), use("c2", "act", "two"), use("r2", "look", "b")}},
		{text: "Which one?", calls: []call{{"q1", "ask_followup_question", `{"question":"which?","follow_up":[{"text":"this","mode":null}]}`}}},
		{text: "No call here."},
		{text: "Again.", calls: []call{use("w2", "edit", "b")}},
		finish("all is done"),
	}
}

// busyBench asks for commands, and a person answers.
func busyBench(t *testing.T) *bench {
	b := newBench(t, busy()...)
	b.agent.Task.Policy = approval.Policy{Mode: approval.ModeEdits}
	b.agent.User.Asker = b.answering()
	return b
}

func (b *bench) answering() agent.Asker {
	return asks(func(_ context.Context, q api.QuestionOpened) (agent.Answer, error) {
		b.asked = append(b.asked, q)
		if q.Kind == "followup" {
			return agent.Answer{Text: "this one"}, nil
		}
		return agent.Answer{Approve: yes()}, nil
	})
}

// after gives the bench that a kill right after commit n leaves, with a world in
// which ran effects had taken place.
func (b *bench) after(n, ran int) *bench {
	left := &bench{t: b.t, clock: b.clock, ran: slices.Clone(b.ran[:ran]), runs: b.runs}
	left.disk = newDisk(left, b.disk.commits[:n])
	left.disk.ranAt, left.disk.blobs = slices.Clone(b.disk.ranAt[:n]), b.disk.blobs
	left.model = &model{b: left, turns: b.model.turns}
	for _, t := range b.tools {
		if f, ok := t.(*fake); ok {
			t = &fake{b: left, spec: f.spec, run: f.run, ask: f.ask}
		}
		left.tools = append(left.tools, t)
	}
	left.prepare()
	left.agent.Task.Policy = approval.Policy{Mode: approval.ModeEdits}
	left.agent.User.Asker = left.answering()
	return left
}

// checkWorld tells whether the world was changed as the task says: a command at most
// once, and exactly once when its outcome says so; a write exactly once.
func (b *bench) checkWorld() {
	b.t.Helper()
	times := map[string]int{}
	for _, did := range b.ran {
		if !strings.HasPrefix(did, "look") {
			times[did]++
		}
	}
	for what, id := range map[string]string{"act one": "c1", "act two": "c2", "edit a": "w1", "edit b": "w2"} {
		c := b.disk.state.Call(id)
		if c == nil || c.Finished == nil {
			b.t.Errorf("%s has no outcome", id)
			continue
		}
		n := times[what]
		if n > 1 || n == 0 && c.Finished.Outcome != "unknown" || strings.HasPrefix(what, "edit") && c.Finished.Outcome != "ok" {
			b.t.Errorf("%s took place %d times, and its outcome is %s", what, n, c.Finished.Outcome)
		}
	}
}

// A task that is killed after any of its commits, before or after the effect that
// followed, goes on where it was and ends the same.
func TestKilledAfterAnyCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := busyBench(t)
		want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
		checkHistories(t, b.disk.state)
		b.checkWorld()
		cut := 0
		for n := 2; n < len(b.disk.commits); n++ {
			for ran := b.disk.ranAt[n-1]; ran <= b.disk.ranAt[n]; ran++ {
				cut++
				left := b.after(n, ran)
				for range 2 { // and is killed once more on the way, then let be
					out := left.start(agent.Input{Yes: true})
					want(t, out, "completed", "")
					checkHistories(t, left.disk.state)
					left.checkWorld()
					if len(left.asked) > 4 {
						t.Errorf("asked %d times", len(left.asked))
					}
					if t.Failed() {
						t.Fatalf("killed after commit %d of %d (%s), %d effects", n, len(b.disk.commits), b.disk.commits[n-1].Events, ran)
					}
					if len(left.disk.commits) < n+6 {
						break
					}
					left = left.after(n+5, left.disk.ranAt[n+4])
				}
			}
		}
		t.Logf("%d cuts", cut)
	})
}

// Words that came with a resume reach the model exactly once, wherever the run that
// took them is killed, and wherever the history had been cut.
func TestWordsOfAResumeAreNeverLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := busyBench(t)
		want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
		for n := 3; n <= len(b.disk.commits); n += 3 {
			first := b.after(n, b.disk.ranAt[n-1])
			if len(first.disk.state.Questions) > 0 {
				continue // they would be its answer
			}
			from := len(first.disk.commits)
			first.start(agent.Input{Text: "and one more thing", Images: []string{"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}})
			for k := from + 1; k <= len(first.disk.commits); k += 1 + (k-from)/4 {
				left := first.after(k, first.disk.ranAt[k-1])
				want(t, left.start(agent.Input{Yes: true}), "completed", "")
				if strings.Count(history(left.disk.state), "and one more thing") == 0 {
					// The killed run had completed the task before; now the words are used.
					want(t, left.start(agent.Input{Yes: true}), "completed", "")
				}
				text := history(left.disk.state)
				if strings.Count(text, "and one more thing") != 1 || strings.Count(text, `"data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="`) != 1 {
					t.Fatalf("resumed after commit %d, killed after %d: %s", n, k, text)
				}
				checkHistories(t, left.disk.state)
				if t.Failed() {
					t.Fatalf("resumed after commit %d, killed after %d", n, k)
				}
			}
		}
	})
}

// history is the model's side as text.
func history(s *task.State) string {
	var b strings.Builder
	for _, m := range s.API() {
		b.Write(m.Raw())
		b.WriteByte('\n')
	}
	return b.String()
}

// A run that is cancelled at any moment ends as cancelled, saved, and the task goes
// on from there.
func TestCancelledAtAnyMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := busyBench(t)
		want(t, whole.start(agent.Input{Text: "the words"}), "completed", "")
		for k := range len(whole.trace) {
			b := busyBench(t)
			ctx, cancel := context.WithCancelCause(context.Background())
			b.hook = func(string) {
				if len(b.trace) == k+1 {
					cancel(errors.New("enough"))
				}
			}
			out := b.startWith(ctx, agent.Input{Text: "the words"})
			cancel(nil)
			if out.State != "cancelled" && out.State != "completed" {
				t.Fatalf("cancelled at %q: %+v", whole.trace[k], out)
			}
			if run := b.disk.state.Run; run.Outcome != out.State {
				t.Fatalf("cancelled at %q: the log says %q", whole.trace[k], run.Outcome)
			}
			if last := b.trace[len(b.trace)-1]; last != "saved" {
				t.Fatalf("cancelled at %q: the last thing was %q", whole.trace[k], last)
			}
			if out.State == "completed" {
				continue
			}
			b.hook = nil
			want(t, b.start(agent.Input{Yes: true}), "completed", "")
			checkHistories(t, b.disk.state)
			for _, did := range []string{"act one", "act two", "edit a", "edit b"} {
				if n := count(b.ran, did); n > 1 {
					t.Errorf("%s took place %d times", did, n)
				}
			}
			if t.Failed() {
				t.Fatalf("cancelled at %q", whole.trace[k])
			}
		}
	})
}

func count(list []string, s string) int {
	n := 0
	for _, x := range list {
		if x == s {
			n++
		}
	}
	return n
}

// While the disk refuses, no request goes out and no tool starts; when it takes
// again, the run goes on and nothing is missing.
func TestDiskRefusesAtAnyMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := busyBench(t)
		want(t, whole.start(agent.Input{Text: "the words"}), "completed", "")
		for k := range len(whole.trace) {
			b := busyBench(t)
			left := 3
			b.disk.refuse = func(op string) error {
				if op == "barrier" && len(b.trace) >= k && left > 0 {
					left--
					return fmt.Errorf("sync: %w", journal.ErrNotSaved)
				}
				return nil
			}
			b.hook = func(entry string) {
				refusing := left < 3 && left > 0
				if refusing && (strings.HasPrefix(entry, "request") || strings.HasPrefix(entry, "run ")) {
					t.Errorf("%s while the task could not be saved", entry)
				}
			}
			out := b.start(agent.Input{Text: "the words"})
			if out.State != "completed" || (out.Code == "save") != (out.Err != nil) {
				t.Fatalf("refused at %d: %+v", k, out)
			}
			if left == 0 && out.Code != "save" && !slices.Contains(b.notices, "saved again; the run continues") {
				t.Errorf("refused at %d, and nobody was told: %q", k, b.notices)
			}
			checkHistories(t, b.disk.state)
			b.checkWorld()
		}
	})
}

// A task of another program whose model's side is lost begins again with its first
// words, and with those that came along.
func TestLostModelSideBeginsWithTheFirstWords(t *testing.T) {
	b := newBench(t)
	b.must(b.disk.Commit(context.Background(), task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{
		Raw: []byte(`{"ts":1776100000000,"type":"say","say":"text","text":"paint it blue","images":["data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="]}`)}}))
	b.agent.Task.Journal = b.disk
	want(t, b.start(agent.Input{Text: "or red"}), "completed", "")
	for _, part := range []string{"paint it blue", "or red", `"data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="`} {
		if !strings.Contains(sent(b.model.requests[0]), part) {
			t.Errorf("%q was not sent: %s", part, sent(b.model.requests[0]))
		}
	}
	checkHistories(t, b.disk.state)
}

// Roo's rule: what was left of a resume and of a request that never got anywhere is
// hidden, and the right question is shown.
func TestRowsOfARestart(t *testing.T) {
	cut := finish("done")
	cut.fails = []failure{{err: &llm.Error{Provider: "test", Kind: llm.Auth, Message: "no"}, text: "half"}}
	b := newBench(t, cut)
	want(t, b.start(agent.Input{Text: "the words"}), "failed", "auth")
	want(t, b.start(agent.Input{Yes: true}), "completed", "")
	got := strings.Join(kinds(b.disk.state), " ")
	if !strings.HasPrefix(got, "say:text say:api_req_started say:text ask:resume_task say:api_req_started") {
		t.Error(got)
	}
	b = newBench(t, finish("one"), finish("two"))
	want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
	want(t, b.start(agent.Input{Yes: true}), "completed", "")
	if got := kinds(b.disk.state); count(got, "ask:resume_completed_task") != 1 || count(got, "ask:completion_result") != 2 {
		t.Error(got)
	}
}

func TestATaskWithoutWordsIsNotSent(t *testing.T) {
	b := newBench(t)
	out := b.start(agent.Input{Yes: true})
	want(t, out, "failed", "input")
	if len(b.model.requests) > 0 || !strings.Contains(out.Reason, "add a prompt") {
		t.Fatalf("%d requests, %s", len(b.model.requests), out.Reason)
	}
	want(t, b.start(agent.Input{Text: "now"}), "completed", "")
}

// Words join a history whose last message is no reply, whoever wrote that message:
// they are in the first request.
func TestWordsJoinWhateverIsNoReply(t *testing.T) {
	for _, role := range []string{"user", "system", "tool"} {
		b := newBench(t)
		for i, raw := range []string{`{"role":"user","content":"go"}`, `{"role":"assistant","content":"I look."}`, `{"role":"` + role + `","content":"and then"}`} {
			b.commit(task.MessageAdded{History: task.API, Message: uint64(i + 1), Body: task.Body{Raw: []byte(raw)}})
		}
		want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
		if !strings.Contains(sent(b.model.requests[0]), "the words") {
			t.Errorf("after %s: %s", role, sent(b.model.requests[0]))
		}
	}
}
