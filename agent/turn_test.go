package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

func overloaded(afterMS int64) *llm.Error {
	return &llm.Error{Provider: "test", Kind: llm.Overloaded, Status: 529, Message: "busy", RetryAfterMS: afterMS}
}

func TestTurnsThatFail(t *testing.T) {
	refused := func(kind llm.Kind, status int) error {
		return &llm.Error{Provider: "test", Kind: kind, Status: status, Message: "no"}
	}
	because := func(cause error) error {
		return &llm.Error{Provider: "test", Kind: llm.Network, Message: "no", Err: cause}
	}
	for name, c := range map[string]struct {
		fails       []failure
		state, code string
		requests    int
	}{
		"overloaded once":            {[]failure{{err: overloaded(0)}}, "completed", "", 2},
		"overloaded for ever":        {[]failure{{err: overloaded(0)}, {err: overloaded(0)}, {err: overloaded(0)}, {err: overloaded(0)}, {err: overloaded(0)}}, "failed", "provider", 4},
		"cut in the middle":          {[]failure{{err: refused(llm.Cut, 0), text: "half a reply"}}, "completed", "", 2},
		"no server on this machine":  {[]failure{{err: because(llm.ErrNotRunning)}, {err: because(llm.ErrNotRunning)}, {err: because(llm.ErrNotRunning)}}, "failed", "provider", 2},
		"tried twice already":        {[]failure{{err: because(llm.ErrNotRunning), retries: 1}, {err: because(llm.ErrNotRunning)}}, "failed", "provider", 1},
		"no certificate":             {[]failure{{err: because(llm.ErrCertificate)}}, "failed", "provider", 1},
		"no network":                 {[]failure{{err: refused(llm.Network, 0)}}, "completed", "", 2},
		"the server failed":          {[]failure{{err: refused(llm.Server, 500)}}, "completed", "", 2},
		"too many requests":          {[]failure{{err: refused(llm.RateLimited, 429)}}, "completed", "", 2},
		"no key":                     {[]failure{{err: refused(llm.Auth, 401)}}, "failed", "auth", 1},
		"malformed":                  {[]failure{{err: refused(llm.Invalid, 400)}}, "failed", "provider", 1},
		"too long":                   {[]failure{{err: refused(llm.ContextOverflow, 400)}}, "failed", "context", 1},
		"the provider gave up":       {[]failure{{err: overloaded(0), retries: 4}}, "failed", "provider", 1},
		"the provider tried twice":   {[]failure{{err: refused(llm.Cut, 0), retries: 2, text: "half"}}, "completed", "", 2},
		"something of ours is wrong": {[]failure{{err: errors.New("no idea")}}, "failed", "internal", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done := finish("done")
				done.fails = c.fails
				b := newBench(t, done)
				want(t, b.start(agent.Input{Text: "go"}), c.state, c.code)
				if n := len(b.model.requests); n != c.requests {
					t.Errorf("%d requests", n)
				}
				checkHistories(t, b.disk.state)
			})
		})
	}
}

// A wait that the provider asked for is kept, and is in the log before it begins.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := finish("done")
		done.fails = []failure{{err: overloaded(7000)}}
		b := newBench(t, done)
		var at []time.Time
		b.model.during = func(context.Context, llm.Request) {
			at = append(at, time.Now())
			if len(at) == 2 && !strings.Contains(strings.Join(b.trace, "\n"), "turn.failed") {
				t.Error("the failure is not in the log")
			}
		}
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		if d := at[1].Sub(at[0]); d != 7*time.Second {
			t.Errorf("the second request came after %s", d)
		}
		if len(b.notices) != 1 || !strings.Contains(b.notices[0], "trying again in 7s") {
			t.Errorf("notices %q", b.notices)
		}
	})
}

// Without advice the waits grow, and stay within a minute.
func TestWaitsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := finish("done")
		done.fails = []failure{{err: overloaded(0)}, {err: overloaded(0)}, {err: overloaded(0)}}
		b := newBench(t, done)
		var at []time.Time
		b.model.during = func(context.Context, llm.Request) { at = append(at, time.Now()) }
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		for i, bound := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
			if d := at[i+1].Sub(at[i]); d < bound/2 || d > bound {
				t.Errorf("wait %d was %s, wanted %s to %s", i+1, d, bound/2, bound)
			}
		}
	})
}

func TestWaitingForAProviderCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := finish("done")
		done.fails = []failure{{err: overloaded(600_000)}}
		b := newBench(t, done)
		ctx, cancel := context.WithTimeoutCause(context.Background(), 3*time.Second, agent.ErrTimeout)
		defer cancel()
		begin := time.Now()
		want(t, b.startWith(ctx, agent.Input{Text: "go"}), "limit", "timeout")
		if d := time.Since(begin); d > 4*time.Second {
			t.Errorf("it took %s", d)
		}
	})
}

// Each request of a run holds all of the one before, byte for byte, so that the
// provider's cache keeps hitting.
func TestRequestsGrowAtTheirEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := busyBench(t)
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		for i := 1; i < len(b.model.requests); i++ {
			before, now := b.model.requests[i-1], b.model.requests[i]
			if before.System != now.System || len(before.Tools) != len(now.Tools) {
				t.Errorf("request %d has another prompt or other tools", i)
			}
			if d := cmp.Diff(before.Messages, now.Messages[:len(before.Messages)]); d != "" {
				t.Errorf("request %d does not begin like the one before: %s", i, d)
			}
		}
	})
}

// A restart sends what the killed run had sent: the agent remembers nothing.
func TestARestartSendsTheSameBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := busyBench(t)
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		for n, c := range b.disk.commits {
			if !strings.Contains(string(c.Events[len(c.Events)-1]), `"type":"turn.started"`) {
				continue
			}
			left := b.after(n+1, b.disk.ranAt[n])
			var asked *llm.Request
			for i, r := range b.model.requests {
				if r.Replies == left.disk.state.Replies {
					asked = &b.model.requests[i]
				}
			}
			left.start(agent.Input{Yes: true})
			if d := cmp.Diff(asked.Messages, left.model.requests[0].Messages); d != "" {
				t.Errorf("after commit %d: %s", n+1, d)
			}
		}
	})
}

// What a request costs is in the ledger, with the prices' date, and on its row; a
// reply that was cut has cost what the provider counted.
func TestLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := finish("done")
		done.usage = llm.Usage{Input: 1000, Output: 100, CacheRead: 10, CacheWrite: 1}
		done.fails = []failure{{err: &llm.Error{Provider: "test", Kind: llm.Cut, Message: "cut"}, text: "half", usage: llm.Usage{Input: 500, Output: 5}}}
		b := newBench(t, done)
		b.agent.Model.Entry = sonnet(t)
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		u := b.disk.state.Usage
		if u.Requests != 2 || u.Input != 1500 || u.Output != 105 || u.CostMicros != 1500+75+3000+1500+3+4 {
			t.Errorf("got %+v, want u.Requests = 2 and u.Input = 1500 and u.Output = 105 and u.CostMicros = 1500+75+3000+1500+3+4",
				u)
		}
		var rows []string
		for _, m := range b.disk.state.UI() {
			if m.Kind() == "say:api_req_started" {
				rows = append(rows, m.Text())
			}
		}
		wanted := []string{
			`{"apiProtocol":"anthropic","tokensIn":500,"tokensOut":5,"cacheWrites":0,"cacheReads":0,"cost":0.001575,"cancelReason":"streaming_failed","streamingFailedMessage":"test: cut: cut"}`,
			`{"apiProtocol":"anthropic","tokensIn":1011,"tokensOut":100,"cacheWrites":1,"cacheReads":10,"cost":0.004507}`,
		}
		if d := cmp.Diff(wanted, rows); d != "" {
			t.Error(d)
		}
	})
}

// An unknown price is unknown in the ledger and 0 on Roo's row, which would take a
// row without a cost for a request that never came back.
func TestUnknownPrice(t *testing.T) {
	done := finish("done")
	done.usage = llm.Usage{Input: 1000, Output: 100}
	b := newBench(t, done)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	var ledger task.UsageChanged
	for _, c := range b.disk.commits {
		for _, raw := range c.Events {
			if e, err := task.Decode(raw); err == nil {
				if u, ok := e.(task.UsageChanged); ok {
					ledger = u
				}
			}
		}
	}
	if ledger.CostMicros != nil || ledger.Input != 1000 {
		t.Errorf("got %+v, want ledger.CostMicros = nil and ledger.Input = 1000", ledger)
	}
	if row := b.disk.state.UI()[1].Text(); !strings.Contains(row, `"cost":0}`) {
		t.Error(row)
	}
}

// A request of which the provider counted nothing was not free: its cost is unknown.
func TestRequestWithoutCounts(t *testing.T) {
	b := newBench(t, finish("done"))
	b.agent.Model.Entry = sonnet(t)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if u := b.disk.state.Usage; u.Requests != 1 || !u.CostUnknown {
		t.Errorf("got %+v, want one request of unknown cost", u)
	}
}

// A message that leaves the history while a run goes on is not sent any more.
func TestAHiddenMessageIsNotSent(t *testing.T) {
	b := newBench(t, turn{text: "a secret"}, turn{calls: []call{use("c1", "look", "a")}}, finish("done"))
	b.tool("look").run = func(ctx context.Context, _ tool.Output, _ string) (tool.Result, error) {
		secret := b.disk.state.API()[1]
		return tool.Result{Text: "ok"}, b.disk.Commit(ctx, task.MessageHidden{Messages: []uint64{secret.ID}, Reason: "rewind"})
	}
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if !strings.Contains(sent(b.model.requests[1]), "a secret") || strings.Contains(b.model.last(), "a secret") {
		t.Error(b.model.last())
	}
}

// Reasoning that another model signed is refused by some. The task is not lost for
// it: it goes on without, and the rest of the history is sent as it was.
func TestReasoningOfAnotherModelIsLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		fails       []string
		state, code string
		requests    int
	}{
		"refused once":                  {[]string{"messages.1.content.0: Invalid `signature` in `thinking` block"}, "completed", "", 3},
		"unsigned":                      {[]string{"messages.1.content.0.thinking.signature: Field required"}, "completed", "", 3},
		"refused for good":              {[]string{"messages.1.content.0: thinking blocks are bound to the model", "and the same again: thinking"}, "failed", "provider", 3},
		"the setting, not the history":  {[]string{`"thinking.type.enabled" is not supported for this model.`}, "failed", "provider", 2},
		"something else is the trouble": {[]string{"tools.0.name: bad"}, "failed", "provider", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				second := turn{text: "so", calls: []call{use("c1", "look", "a")}}
				for _, words := range c.fails {
					second.fails = append(second.fails, failure{err: &llm.Error{Provider: "test", Kind: llm.Invalid, Status: 400, Message: words}})
				}
				b := newBench(t, turn{think: "I wonder.", text: "hm"}, second)
				b.tool("look").run = func(context.Context, tool.Output, string) (tool.Result, error) {
					return tool.Result{Text: "seen"}, nil
				}
				b.agent.Task.Settings.Limits.MaxTurns = 2
				out := b.start(agent.Input{Text: "go"})
				if c.state == "completed" {
					want(t, out, "limit", "turns")
				} else {
					want(t, out, c.state, c.code)
				}
				if len(b.model.requests) != c.requests {
					t.Fatalf("%d requests", len(b.model.requests))
				}
				before, after := sent(b.model.requests[1]), b.model.last()
				if !strings.Contains(before, "I wonder.") || strings.Contains(after, "I wonder.") != (c.requests == 2) || !strings.Contains(after, `"text":"hm"`) {
					t.Errorf("before: %s\nafter: %s", before, after)
				}
				if !strings.Contains(history(b.disk.state), "I wonder.") {
					t.Error("what is stored was changed")
				}
			})
		})
	}
}
