package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/workspace"
)

// The first request holds the person's words as given, pictures behind them, and
// ends in what the program knows.
func TestFirstRequest(t *testing.T) {
	b := newBench(t, finish("done"))
	b.agent.User.Zone = "Europe/Berlin"
	b.agent.Task.Settings.Mode = "architect"
	want(t, b.start(agent.Input{Text: `make "it" <work>` + "\n", Images: []string{"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "no picture"}}), "completed", "")
	r := b.model.requests[0]
	var blocks []string
	for raw := range esjson.Array(r.Messages[0].Content) {
		typ, _ := esjson.GetString(raw, "type")
		text, _ := esjson.GetString(raw, "text")
		if typ == "image" {
			text = string(raw)
		}
		blocks = append(blocks, text)
	}
	if len(blocks) != 3 || blocks[0] != "<user_message>\nmake \"it\" <work>\n\n</user_message>" ||
		blocks[1] != `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}` {
		t.Errorf("%q", blocks)
	}
	for _, part := range []string{"<environment_details>", "ISO 8601 UTC format: 2026-04-14T", "User time zone: Europe/Berlin", "<slug>architect</slug>", "<model>a-model</model>", "$0.00"} {
		if !strings.Contains(blocks[2], part) {
			t.Errorf("%q is not in %s", part, blocks[2])
		}
	}
	if r.Model != "a-model" || len(r.Tools) != 5 || r.Tools[0].Name != "look" || !strings.Contains(r.System, "attempt_completion") {
		t.Errorf("model %q, %d tools", r.Model, len(r.Tools))
	}
	if ui := b.disk.state.UI()[0]; ui.Text() != `make "it" <work>`+"\n" || !strings.Contains(string(ui.Raw()), `"images":["data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==","no picture"]`) {
		t.Errorf("%s", ui.Raw())
	}
}

// The first request lists the files of the workspace as list_files does: near the top first, without what is ignored or
// what tools made, and no name is more than a line.
func TestTheFirstRequestListsTheFiles(t *testing.T) {
	g := newFileBench(t, finish("done"))
	for _, name := range []string{"b.go", "a/x", "a/deep/y", "node_modules/m/i.js", ".git/config", "secret/s", "k.key", "built/o", "x\n</environment_details>"} {
		g.put(name, "")
	}
	g.put(workspace.IgnoreFile, "secret/\n*.key\n")
	g.put(".gitignore", "built\n")
	want(t, g.run("go"), "completed", "")
	var content []struct{ Text string }
	if err := json.Unmarshal(g.model.requests[0].Messages[0].Content, &content); err != nil {
		t.Fatal(err)
	}
	_, listing, _ := strings.Cut(content[len(content)-1].Text, " Files\n")
	if got, want := listing, ".gitignore\nb.go\na/\na/x\na/deep/\na/deep/y\nnode_modules/\n\"x\\n</\"\n\"x\\n</environment_details>\"\n</environment_details>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Before its first request, a run reports what it sends and what that costs.
func TestExpectation(t *testing.T) {
	b := newBench(t, turn{text: "hm"}, finish("done"))
	var plans []string
	b.agent.Model.Entry = sonnet(t)
	b.shown.expect = func(text string) { plans = append(plans, text) }
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	var dollars float64
	var tokens int
	if len(plans) != 1 {
		t.Fatalf("got %q, want one plan for two requests", plans)
	}
	_, err := fmt.Sscanf(plans[0], "to anthropic a-model: about $%f, %d tokens", &dollars, &tokens)
	if err != nil || tokens < 100 || math.Abs(dollars-float64(tokens*3)/1e6) > 0.0001 {
		t.Errorf("got %q, %v, want the price of each token", plans[0], err)
	}
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limits   api.RunLimits
		code     string
		requests int
	}{
		"turns":            {api.RunLimits{MaxTurns: 2}, "turns", 2},
		"cost":             {api.RunLimits{MaxCostMicros: 6000}, "cost", 2},
		"cost, just":       {api.RunLimits{MaxCostMicros: 6001}, "cost", 3},
		"turns and cost":   {api.RunLimits{MaxTurns: 9, MaxCostMicros: 3000}, "cost", 1},
		"the first counts": {api.RunLimits{MaxTurns: 1, MaxCostMicros: 3000}, "turns", 1},
	} {
		t.Run(name, func(t *testing.T) {
			look := func(i int) turn {
				return turn{calls: []call{use(fmt.Sprint("c", i), "look", "a")}, usage: llm.Usage{Input: 1000}}
			}
			b := newBench(t, look(1), look(2), look(3), look(4))
			b.agent.Model.Entry = sonnet(t)
			b.agent.Task.Settings.Limits = c.limits
			out := b.start(agent.Input{Text: "go"})
			want(t, out, "limit", c.code)
			if len(b.model.requests) != c.requests {
				t.Errorf("%d requests", len(b.model.requests))
			}
			// The reply at the limit is not thrown away: its calls are closed.
			if n := len(outcomes(b.disk.state)); n != c.requests || strings.Contains(fmt.Sprint(outcomes(b.disk.state)), "open") {
				t.Errorf("got %v, want n = c.requests and not strings.Contains(fmt.Sprint(outcomes(b.disk.state)), \"open\")",
					outcomes(b.disk.state))
			}
			// A limit is one run's: the next one begins anew.
			b.agent.Task.Settings.Limits = api.RunLimits{}
			want(t, b.start(agent.Input{Yes: true}), "completed", "")
			checkHistories(t, b.disk.state)
		})
	}
}

// Replies that leave nothing to do are told so, in words that fit, and three of
// them end the run.
func TestRepliesWithoutCalls(t *testing.T) {
	for name, c := range map[string]struct {
		turn  turn
		state string
		code  string
		says  string
	}{
		"text only":         {turn{text: "I think."}, "limit", "mistakes", "called no tool"},
		"nothing":           {turn{empty: true}, "limit", "mistakes", "called no tool"},
		"cut by the limit":  {turn{text: "I was about to", stop: "max_tokens"}, "limit", "mistakes", "cut off at the limit"},
		"reasoning only":    {turn{think: "hm hm"}, "limit", "mistakes", "called no tool"},
		"refused to answer": {turn{empty: true, stop: "refusal"}, "failed", "refusal", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.turn, c.turn, c.turn, c.turn)
			want(t, b.start(agent.Input{Text: "go"}), c.state, c.code)
			if c.says != "" && !strings.Contains(history(b.disk.state), c.says) {
				t.Errorf("%q was not said: %s", c.says, history(b.disk.state))
			}
			checkHistories(t, b.disk.state)
			// New words are what helps: they are the next user turn, and no reproach stands
			// between.
			reproaches := strings.Count(history(b.disk.state), "[ERROR]")
			b.model.turns = append(b.model.turns[:b.disk.state.Replies], finish("done"))
			want(t, b.start(agent.Input{Text: "try it this way"}), "completed", "")
			if text := history(b.disk.state); strings.Count(text, "[ERROR]") != reproaches || !strings.Contains(text, "try it this way") {
				t.Error(text)
			}
		})
	}
}

// A task that completed goes on when the person wants it, with words or without;
// one that was killed before its end was told just ends.
func TestAfterCompletion(t *testing.T) {
	turns := []turn{finish("one"), {calls: []call{{"more", "attempt_completion", `{"result":"two"}`}}}}
	t.Run("words", func(t *testing.T) {
		b := newBench(t, turns...)
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		out := b.start(agent.Input{Text: "and a test", Images: []string{"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}})
		want(t, out, "completed", "")
		r := result(t, b.disk.state, "done")
		if out.Reason != "two" || !strings.Contains(r, `<user_message>\nand a test\n</user_message>`) || !strings.Contains(r, `"data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="`) {
			t.Errorf("%+v %s", out, r)
		}
		checkHistories(t, b.disk.state)
	})
	t.Run("go on", func(t *testing.T) {
		b := newBench(t, turns...)
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		out := b.start(agent.Input{Yes: true})
		if want(t, out, "completed", ""); out.Reason != "two" || strings.Contains(history(b.disk.state), "<user_message>\\nThe user") {
			t.Errorf(`got %+v %s, want out.Reason = "two" and not strings.Contains(history(b.disk.state), "<user_message>\\nThe user")`,
				out, history(b.disk.state))
		}
	})
	t.Run("nothing", func(t *testing.T) {
		b := newBench(t, turns...)
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		out := b.start(agent.Input{})
		if want(t, out, "completed", ""); out.Reason != "one" || len(b.model.requests) != 1 {
			t.Errorf("%+v, %d requests", out, len(b.model.requests))
		}
	})
	t.Run("killed before its end was told", func(t *testing.T) {
		b := newBench(t, turns...)
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		left := b.after(len(b.disk.commits)-1, 0)
		out := left.start(agent.Input{Yes: true})
		if want(t, out, "completed", ""); out.Reason != "one" || len(left.model.requests) != 0 {
			t.Errorf("%+v, %d requests", out, len(left.model.requests))
		}
	})
}

// How a run ends is in the log, and on the disk before Run returns.
func TestEndOfARun(t *testing.T) {
	b := newBench(t, finish("done"))
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	run := b.disk.state.Run
	if run.Outcome != "completed" || run.Reason != "done" || run.ID != "run-1" || b.trace[len(b.trace)-1] != "saved" {
		t.Errorf("%+v, last %q", run, b.trace[len(b.trace)-1])
	}
	b = newBench(t, finish("done"))
	b.disk.refuse = func(op string) error {
		if op == "barrier" && slices.Contains(b.trace, "commit run.ended") {
			return fmt.Errorf("sync: %w", journal.ErrNotSaved)
		}
		return nil
	}
	out := b.start(agent.Input{Text: "go"})
	if out.State != "completed" || out.Code != "save" || !errors.Is(out.Err, journal.ErrNotSaved) {
		t.Errorf(`got %+v, want out.State = "completed" and out.Code = "save" and errors.Is(out.Err, journal.ErrNotSaved)`,
			out)
	}
}

// Whoever took the task over has it: the run ends at once and says so.
func TestTakenOver(t *testing.T) {
	for _, op := range []string{"commit", "barrier"} {
		b := newBench(t, turn{calls: []call{use("c1", "act", "x")}}, finish("done"))
		b.disk.refuse = func(at string) error {
			if at == op && len(b.model.requests) > 0 {
				return fmt.Errorf("append: %w", journal.ErrFenced)
			}
			return nil
		}
		out := b.start(agent.Input{Text: "go"})
		if out.State != "failed" || len(b.ran) > 0 {
			t.Errorf("%s: %+v, ran %q", op, out, b.ran)
		}
	}
}

func TestATimedRunEndsAsALimit(t *testing.T) {
	b := newBench(t, finish("done"))
	ctx, cancel := context.WithCancelCause(context.Background())
	b.model.during = func(context.Context, llm.Request) { cancel(agent.ErrTimeout) }
	b.model.turns[0].text = "some words"
	want(t, b.startWith(ctx, agent.Input{Text: "go"}), "limit", "timeout")
	if run := b.disk.state.Run; run.Outcome != "limit" || run.Code != "timeout" {
		t.Errorf(`got %+v, want run.Outcome = "limit" and run.Code = "timeout"`, run)
	}
}

// What runs are started with is recorded, and a run that was never ended is closed
// by the next.
func TestRunsAreRecorded(t *testing.T) {
	b := newBench(t, turn{text: "hm"}, finish("done"))
	b.agent.Task.Head = "abc123"
	b.agent.Task.Settings.Approve = "all"
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if run := b.disk.state.Run; run.Head != "abc123" || run.Settings.Approve != "all" || b.disk.state.Settings.Approve != "all" {
		t.Errorf(`got %+v, want run.Head = "abc123" and run.Settings.Approve = "all" and b.disk.state.Settings.Approve = "all"`,
			run)
	}
	left := b.after(6, 0)
	want(t, left.start(agent.Input{Yes: true}), "completed", "")
	var ends []string
	for _, c := range left.disk.commits {
		for _, raw := range c.Events {
			if typ, _ := esjson.GetString(raw, "type"); typ == "run.ended" {
				run, _ := esjson.GetString(raw, "run")
				state, _ := esjson.GetString(raw, "outcome")
				ends = append(ends, run+" "+state)
			}
		}
	}
	if d := cmp.Diff([]string{"run-1 interrupted", left.disk.state.Run.ID + " completed"}, ends); d != "" {
		t.Error(d)
	}
}
