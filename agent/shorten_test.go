package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

func tooLong() failure {
	return failure{err: &llm.Error{Provider: "test", Kind: llm.ContextOverflow, Status: 400, Message: "prompt is too long: 9 tokens > 8 maximum"}}
}

// chatty is a bench with so many turns, each of about 2,000 bytes, of which the one
// at which meets the failures.
func chatty(t *testing.T, turns, at int, fails ...failure) *bench {
	t.Helper()
	var list []turn
	for i := range turns {
		one := turn{text: fmt.Sprintf("step %d", i), calls: []call{use(fmt.Sprint("c", i), "look", fmt.Sprintf("thing%d", i))}}
		if i == at {
			one.fails = fails
		}
		list = append(list, one)
	}
	b := newBench(t, append(list, finish("done"))...)
	b.tool("look").run = func(_ context.Context, _ tool.Output, input string) (tool.Result, error) {
		return tool.Result{Text: input + strings.Repeat(" word", 400)}, nil
	}
	return b
}

// A request that is too long goes out again without the older half; the marks are
// those that Roo writes, and the messages stay in the task.
func TestOverflowHidesTheOlderHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := chatty(t, 8, 6, tooLong())
		want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
		s := b.disk.state
		var refused, again llm.Request
		for i, r := range b.model.requests {
			if r.Failures == 1 {
				refused, again = b.model.requests[i-1], r
			}
		}
		// 13 messages: the first one stays, 6 go, the marker joins the next user message.
		if len(refused.Messages) != 13 || len(again.Messages) != 7 {
			t.Fatalf("%d messages became %d", len(refused.Messages), len(again.Messages))
		}
		text := sent(again)
		for part, n := range map[string]int{"the words": 1, "thing2 word": 0, "thing3 word": 1, "[Sliding window truncation: 6 messages hidden to reduce context]": 1} {
			if strings.Count(text, part) != n {
				t.Errorf("%q stands %d times in %s", part, strings.Count(text, part), text)
			}
		}
		api, err := s.RawAPI()
		b.must(err)
		var tagged, markers []int
		id := ""
		for i, raw := range api {
			if v, _ := esjson.GetString(raw, "truncationId"); v != "" {
				id, markers = v, append(markers, i)
			}
		}
		for i, raw := range api {
			if v, _ := esjson.GetString(raw, "truncationParent"); v == id && id != "" {
				tagged = append(tagged, i)
			}
		}
		if d := cmp.Diff([][]int{{1, 2, 3, 4, 5, 6}, {7}}, [][]int{tagged, markers}); d != "" {
			t.Error(d)
		}
		var row []byte
		for _, m := range s.UI() {
			if m.Kind() == "say:sliding_window_truncation" {
				row = m.Raw()
			}
		}
		info, _ := esjson.Get(row, "contextTruncation")
		var keys []string
		for key := range esjson.Members(info) {
			keys = append(keys, key)
		}
		if n, _ := esjson.GetInt(info, "messagesRemoved"); n != 6 || strings.Join(keys, " ") != "truncationId messagesRemoved prevContextTokens newContextTokens" {
			t.Errorf("the row is %s", row)
		}
		if !strings.Contains(strings.Join(b.notices, "\n"), "6 older messages are not sent any more") {
			t.Errorf("notices %q", b.notices)
		}
		checkHistories(t, s)
	})
}

// Wherever a run with an overflow is killed, the next one ends, sends valid
// requests, and hides no more than it must.
func TestOverflowKilledAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := chatty(t, 6, 5, tooLong())
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		for n := range b.disk.commits {
			if n < 2 {
				continue
			}
			left := b.after(n, 0)
			left.tool("look").run = b.tool("look").run
			want(t, left.start(agent.Input{Yes: true}), "completed", "")
			marks := strings.Count(history(left.disk.state), "Sliding window truncation")
			if marks != 1 {
				t.Errorf("killed after commit %d: %d truncations", n, marks)
			}
		}
	})
}

// A provider that finds everything too long is not asked for ever.
func TestOverflowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := make([]failure, 40)
		for i := range fails {
			fails[i] = tooLong()
		}
		b := chatty(t, 30, 29, fails...)
		want(t, b.start(agent.Input{Text: "go"}), "failed", "context")
		if n := len(b.model.requests) - 29; n < 4 || n > 13 {
			t.Errorf("it was asked %d times", n)
		}
		checkHistories(t, b.disk.state)
	})
}

// One result that is most of the request goes, and the history stays.
func TestOverflowByOneResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := chatty(t, 8, 7, tooLong())
		run := b.tool("look").run
		b.tool("look").run = func(ctx context.Context, out tool.Output, input string) (tool.Result, error) {
			if input == "thing6" {
				return tool.Result{Text: strings.Repeat("huge ", 50_000)}, nil
			}
			return run(ctx, out, input)
		}
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		text := b.model.last()
		if strings.Contains(text, "huge huge") || !strings.Contains(text, "Left out here: the result of look (") || !strings.Contains(text, "thing0 word") {
			t.Errorf("%.2000s", text)
		}
		if n := strings.Count(history(b.disk.state), "huge"); n < 50_000 {
			t.Errorf("%d words are left in the task", n)
		}
	})
}

// What the provider counted says that the next request will not fit: older messages
// go before it is asked, and no request is lost. The estimate comes down with them.
func TestTheEstimateSaysItBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := chatty(t, 40, -1)
		b.agent.Model.Entry = catalogue.Model{IDs: []string{"small"}, Model: api.Model{Context: 10_000, MaxOutput: 1000}}
		b.model.during = func(_ context.Context, r llm.Request) {
			bytes := 0
			for _, m := range r.Messages {
				bytes += len(m.Content)
			}
			if bytes/4 > 8000 {
				t.Errorf("request %d has about %d tokens", r.Replies+1, bytes/4)
			}
			if r.Replies < len(b.model.turns) {
				b.model.turns[r.Replies].usage = llm.Usage{Input: int64(bytes / 4), Output: 20}
			}
		}
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		var hidden int
		for _, c := range b.disk.commits {
			for _, raw := range c.Events {
				if e, err := task.Decode(raw); err == nil {
					if cut, is := e.(task.HistoryTruncated); is {
						hidden += cut.Messages
						if cut.After >= cut.Before || cut.Before < 8000 {
							t.Errorf("got %+v, want cut.After < cut.Before and cut.Before >= 8000", cut)
						}
					}
				}
			}
		}
		if hidden < 40 || hidden > 70 {
			t.Errorf("%d messages are hidden", hidden)
		}
	})
}

// A truncation is not undone by the next request: what was sent stays the beginning
// of what is sent.
func TestRequestsGrowBehindATruncation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := chatty(t, 10, 6, tooLong())
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		var before []llm.Message
		for _, r := range b.model.requests {
			if r.Replies > 6 && cmp.Diff(before, r.Messages[:len(before)]) != "" {
				t.Errorf("request %d does not begin like the one before", r.Replies+1)
			}
			before = r.Messages
		}
	})
}

// The stored history is what Roo's own truncation makes of it.
func TestTruncationIsRoos(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := chatty(t, 8, 6, tooLong())
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		after, err := b.disk.state.RawAPI()
		b.must(err)
		var plain [][]byte // as it was before
		id := ""
		for _, raw := range after {
			if v, _ := esjson.GetString(raw, "truncationId"); v != "" {
				id = v
				continue
			}
			plain = append(plain, esjson.Remove(raw, "truncationParent"))
		}
		cut := contextwindow.CutOldest(plain[:13], 0.5, id, 0)
		if len(cut.Hide) != 6 {
			t.Fatalf("%d hidden", len(cut.Hide))
		}
		var made [][]byte
		for i, raw := range plain[:13] {
			if i == cut.At {
				made = append(made, cut.Marker)
			}
			if slices.Contains(cut.Hide, i) {
				raw = esjson.Set(raw, "truncationParent", esjson.Quote(nil, id))
			}
			made = append(made, raw)
		}
		for i, raw := range made {
			if string(raw) != string(after[i]) {
				t.Errorf("message %d is %s and not %s", i, after[i], raw)
			}
		}
	})
}
