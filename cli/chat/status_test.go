package chat

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/money"
)

func TestTheStatusLineFits(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_000_000)
	st := state{
		ofTask: ofTask{Working: true, Live: live{Doing: "writing", Since: now.Add(-75 * time.Second)}},
		Policy: "edits",
		Facts: Facts{
			Provider: "anthropic", Model: "claude-sonnet-5-5", Mode: "code", Folder: "/home/me/proj", Branch: "main",
			Window: 200_000, Context: 50_000, Cost: money.USD(1_234_567),
		},
	}
	whole := "⠋ writing · 1m15s · claude-sonnet-5-5 · code · edits · proj (main) · 25% of context · $1.23"
	if got := st.status(now, 200); got != whole {
		t.Errorf("got %q, want %q", got, whole)
	}
	before := strings.Count(whole, " · ")
	for width := 120; width > 0; width-- {
		line := st.status(now, width)
		if n := term.Columns(line); n > width {
			t.Fatalf("%d columns on %d: %q", n, width, line)
		}
		parts := strings.Count(line, " · ")
		if parts > before {
			t.Errorf("at %d columns a part came back: %q", width, line)
		}
		before = parts
	}
	for width, want := range map[int]string{
		80: "⠋ writing · 1m15s · claude-sonnet-5-5 · code · edits · 25% of context · $1.23",
		64: "⠋ writing · claude-sonnet-5-5 · edits · 25% of context · $1.23",
		30: "⠋ writing · claude-sonnet-5-5",
		9:  "⠋ writing",
	} {
		if got := st.status(now, width); got != want {
			t.Errorf("at %d columns: got %q, want %q", width, got, want)
		}
	}
	if next := st.status(now.Add(frame), 200); next == whole || !strings.HasPrefix(next, "⠙ writing") {
		t.Errorf("the spinner stands: %q", next)
	}
	if again := st.status(now.Add(frame-1), 200); again != whole {
		t.Errorf("within a frame it changes: %q", again)
	}
	st.Working = false
	if got := st.status(now, 200); strings.Contains(got, "writing") || got != st.status(now.Add(time.Hour), 200) {
		t.Errorf("while nothing works it changes, or says so: %q", got)
	}
}

func TestTheChatSaysWhomItPays(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		f    Facts
		want []string
	}{
		{"a key of a variable", Facts{Provider: "anthropic", Model: "m1", Address: "api.anthropic.com", Key: "ANTHROPIC_API_KEY", Folder: "/w", Branch: "main"},
			[]string{"model m1 of anthropic at api.anthropic.com; key from ANTHROPIC_API_KEY", "folder /w, branch main", "approvals: ask"}},
		{"no key", Facts{Provider: "openai", Model: "m2", Problem: "there is no key"}, []string{"model m2 of openai; there is no key"}},
		{"nothing", Facts{Problem: "no provider is named"}, []string{"no model is set up: no provider is named"}},
		{"all goes unasked", Facts{Provider: "script", Approve: "all"}, []string{"costs nothing", "runs unasked: every tool and command (approvals: all)"}},
	}
	for _, tt := range tests {
		lines := tt.f.Welcome()
		if len(lines) > 4 {
			t.Errorf("%s: %d lines", tt.name, len(lines))
		}
		for _, want := range tt.want {
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, want) }) {
				t.Errorf("%s: %q is missing in %q", tt.name, want, lines)
			}
		}
	}
}

// What a run does is on the line as it does it.
func TestTheStatusFollowsTheRun(t *testing.T) {
	d := newDesk(t)
	d.facts = Facts{Model: "m1", Window: 1000}
	c := newWorkingChat(t, d)
	for _, e := range []struct{ typ, data, doing string }{
		{"turn.started", "", "waiting for the model"},
		{"reasoning.delta", `"message":3,"offset":0,"text":"hm"`, "thinking"},
		{"message.delta", `"message":4,"offset":0,"text":"so"`, "writing"},
		{"tool.started", `"call":"c1","name":"read_file\u001b[2J"`, "using read_file"},
		{"tool.finished", `"call":"c1","name":"read_file","outcome":"ok"`, "waiting for the model"},
	} {
		d.emit("t1", e.typ, e.data)
		c.when(e.doing, func(st state) bool { return st.Live.Doing == e.doing })
	}
	d.emit("t1", "usage.changed", `"input":100,"cache_read":50,"output":50,"cost_micros":20000`)
	c.when("the use", func(st state) bool { return st.Facts.Context == 200 && st.Facts.Cost == 20000 })
	d.mu.Lock()
	d.facts.Mode = "architect" // the model has switched to it
	d.mu.Unlock()
	d.emit("t1", "task.changed", `"settings":{"mode":"architect"}`)
	c.when("the mode", func(st state) bool { return strings.Contains(st.status(time.Now(), 200), " · architect") })
	d.mu.Lock()
	d.facts.Mode = ""
	d.mu.Unlock()
	d.emit("t1", "run.ended", `"run":"run1","outcome":"completed"`)
	c.Line("/clear")
	c.shows("kept: ", "(/resume t1 returns to it)", "a new task begins")
	c.when("nothing used", func(st state) bool { return st.Task == "" && st.Facts == d.facts })
}

// A cost that is not known is no cost of 0.
func TestTheStatusNamesAKnownCost(t *testing.T) {
	for cost, want := range map[money.USD]int{0: 0, 1_500_000: 1} {
		d := newDesk(t)
		d.facts = Facts{Model: "m1", Window: 1000, Cost: cost}
		c := talking(t, d)
		c.Line("/status")
		c.Line("/limits")
		c.shows("limits as the task has them")
		if got := strings.Count(c.text(), "cost so far $"); got != want {
			t.Errorf("cost %s: the line stands there %d times, want %d:\n%s", cost, got, want, c.text())
		}
	}
}
