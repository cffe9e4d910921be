package agent_test

import (
	"context"
	"errors"
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
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// summaries makes a bench's model answer requests for summaries.
func (b *bench) summaries(list ...turn) *bench {
	b.model.summaries = list
	return b
}

// asks are the requests for summaries that went out.
func (m *model) asks() (out []llm.Request) {
	for _, r := range m.requests {
		if r.Summary > 0 {
			out = append(out, r)
		}
	}
	return out
}

func condensing(b *bench, percent int) *bench {
	b.agent.Task.Settings.Condense = percent
	b.percent = percent
	return b
}

// A person condenses a task that has ended: what is sent is the summary and what
// stays, what is stored is all there, with Roo's tags.
func TestCondense(t *testing.T) {
	b := chatty(t, 8, -1).summaries(turn{text: "What happened: eight looks.", usage: llm.Usage{Input: 900, Output: 30}})
	want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
	b.agent.Model.Entry = catalogue.Model{IDs: []string{"a-model"}, Model: api.Model{Context: 10_000, Prices: priced()}}
	stored, err := b.disk.state.RawAPI()
	b.must(err)
	spent := b.disk.state.Usage.CostMicros
	var told []string
	b.shown.notice = func(text string) { told = append(told, text) }
	got, err := b.agent.Condense(t.Context(), "mind the numbers")
	if all := strings.Join(told, "\n"); !strings.Contains(all, "not sent as stored: the history ends with the model's message") || strings.Contains(all, "-1") {
		t.Errorf("what is of no message of its own is told of one: %s", all)
	}
	b.must(err)
	s := b.disk.state
	if got.Summary != "What happened: eight looks." || got.Messages < 10 || got.Kept == 0 || got.After >= got.Before || got.Cost == nil {
		t.Errorf("got %+v, want got.Summary = \"What happened: eight looks.\" and got.Messages >= 10 and got.Kept != 0 and got.After < got.Before and a cost",
			got)
	}
	if cost := int64(*got.Cost); s.Usage.CostMicros-spent != cost || cost == 0 {
		t.Errorf("the summary cost %d, and the task %d more", cost, s.Usage.CostMicros-spent)
	}
	asked := b.model.asks()
	if len(asked) != 1 || !strings.Contains(sent(asked[0]), "mind the numbers") || len(asked[0].Tools) == 0 {
		t.Fatalf("%d requests for a summary", len(asked))
	}
	now, err := s.RawAPI()
	b.must(err)
	if len(now) != len(stored)+1 {
		t.Fatalf("%d messages became %d", len(stored), len(now))
	}
	at := -1
	for i, raw := range now {
		if id, _ := esjson.GetString(raw, "condenseId"); id == got.Condense {
			at = i
		}
	}
	for i, raw := range now {
		tag, _ := esjson.GetString(raw, "condenseParent")
		switch {
		case i < at && tag != got.Condense, i >= at && tag != "":
			t.Errorf("message %d of %d, the summary is %d: tag %q", i, len(now), at, tag)
		case i < at && string(esjson.Remove(raw, "condenseParent")) != string(stored[i]):
			t.Errorf("message %d changed: %s", i, raw)
		case i > at && string(raw) != string(stored[i-1]):
			t.Errorf("message %d changed: %s", i, raw)
		}
	}
	if first := contextwindow.Effective(now)[0]; string(first) != string(now[at]) {
		t.Errorf("what is sent begins with %.200s", first)
	}
	// What comes next begins with the summary.
	want(t, b.start(agent.Input{Text: "and now?"}), "completed", "")
	last := b.model.requests[len(b.model.requests)-1]
	if text := sent(last); !strings.Contains(text, "## Conversation Summary\\nWhat happened") || strings.Contains(text, "thing1 word") || !strings.Contains(text, "and now?") {
		t.Errorf("sent: %.600s", text)
	}
	checkHistories(t, s)
}

// The row is Roo's, and what it costs is in Roo's sums.
func TestCondenseRow(t *testing.T) {
	b := chatty(t, 6, -1).summaries(turn{text: "S", usage: llm.Usage{Input: 10, Output: 1}})
	want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
	got, err := b.agent.Condense(t.Context(), "")
	b.must(err)
	var keys []string
	for _, m := range b.disk.state.UI() {
		if m.Kind() != "say:condense_context" {
			continue
		}
		info, _ := esjson.Get(m.Raw(), "contextCondense")
		for key := range esjson.Members(info) {
			keys = append(keys, key)
		}
		if id, _ := esjson.GetString(info, "condenseId"); id != got.Condense {
			t.Errorf("row %s", m.Raw())
		}
	}
	if d := cmp.Diff([]string{"summary", "cost", "newContextTokens", "prevContextTokens", "condenseId"}, keys); d != "" {
		t.Error(d)
	}
}

// When the next request would not fit, a summary comes before it, and nothing is
// truncated.
func TestCondensesBeforeItDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := condensing(chatty(t, 9, -1), 100).summaries(turn{text: "so far"})
		for i := range b.model.turns {
			b.model.turns[i].usage = llm.Usage{Input: int64(1000 * (i + 1))}
			if i > 6 { // the first one behind the summary
				b.model.turns[i].usage = llm.Usage{Input: 2000}
			}
		}
		b.agent.Model.Entry = catalogue.Model{IDs: []string{"a-model"}, Model: api.Model{Context: 8_000, MaxOutput: 500}}
		want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
		if n := len(b.model.asks()); n != 1 {
			t.Errorf("%d summaries were asked for", n)
		}
		if h := history(b.disk.state); strings.Contains(h, "Sliding window") || !strings.Contains(h, "## Conversation Summary") {
			t.Errorf("history: %s", h)
		}
		checkHistories(t, b.disk.state)
	})
}

// A request that a provider finds too long goes out again with a summary, which is
// made of the history told as a text: the history itself would be too long again.
func TestOverflowCondenses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := condensing(chatty(t, 8, 6, tooLong()), 100).summaries(turn{text: "so far"})
		want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
		asked := b.model.asks()
		if len(asked) != 1 || len(asked[0].Messages) != 1 || len(asked[0].Tools) != 0 || !strings.Contains(sent(asked[0]), "[Tool Use: look]") {
			t.Fatalf("%d requests for a summary", len(asked))
		}
		if h := history(b.disk.state); strings.Contains(h, "Sliding window") {
			t.Error("it was truncated as well")
		}
	})
}

// A model that answers with calls is asked again in the other way; one that never
// gives a summary leaves the history as it is, and the run goes on by truncating.
func TestNoSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := turn{calls: []call{use("x", "look", "x")}}
		b := condensing(chatty(t, 8, 6, tooLong(), tooLong()), 100).summaries(calls)
		want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
		h := history(b.disk.state)
		if !strings.Contains(h, "Sliding window") || strings.Contains(h, "## Conversation Summary") {
			t.Errorf("history: %.400s", h)
		}
		rows := 0
		for _, m := range b.disk.state.UI() {
			if m.Kind() == "say:condense_context_error" {
				rows++
			}
		}
		if rows != 1 || len(b.model.asks()) != 1 {
			t.Errorf("%d rows, %d requests for a summary", rows, len(b.model.asks()))
		}
		b = chatty(t, 8, -1).summaries(calls, turn{text: "then"})
		want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
		b.model.nth = true
		got, err := b.agent.Condense(t.Context(), "")
		b.must(err)
		if asked := b.model.asks(); got.Summary != "then" || len(asked) != 2 || len(asked[1].Tools) != 0 {
			t.Errorf("got %+v, want got.Summary = \"then\" and len(asked) = 2 and len(asked[1].Tools) = 0", got)
		}
	})
}

// The words of a refusal, or what came before a filter, are no summary.
func TestSummaryThatIsRefused(t *testing.T) {
	refused := turn{text: "I cannot", stop: "refusal"}
	b := chatty(t, 8, -1).summaries(refused, refused)
	want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
	stored := history(b.disk.state)
	if got, err := b.agent.Condense(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "without a summary") {
		t.Errorf("got the summary %q and the error %v, want none and that the model answered without a summary", got.Summary, err)
	}
	if history(b.disk.state) != stored {
		t.Error("the histories changed, want them as they were")
	}
}

// What costs money is counted, also when nothing comes of it.
func TestSummaryThatIsCutOff(t *testing.T) {
	b := chatty(t, 8, -1).summaries(turn{text: "half a", stop: "max_tokens", usage: llm.Usage{Input: 500, Output: 99}})
	want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
	before := b.disk.state.Usage.Input
	stored := history(b.disk.state)
	if _, err := b.agent.Condense(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("error %v", err)
	}
	if got := b.disk.state.Usage.Input - before; got != 500 {
		t.Errorf("%d tokens were counted", got)
	}
	if history(b.disk.state) != stored {
		t.Error("the histories changed")
	}
}

func TestTooShortToCondense(t *testing.T) {
	b := newBench(t, finish("done"))
	want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
	if _, err := b.agent.Condense(t.Context(), ""); !errors.Is(err, agent.ErrTooShort) {
		t.Errorf("error %v", err)
	}
	if len(b.model.asks()) != 0 {
		t.Error("it asked anyway")
	}
}

// Hiding the summary, as a rewind or an undo does, brings everything back, byte for
// byte; folding again says the same.
func TestHiddenSummaryBringsAllBack(t *testing.T) {
	b := chatty(t, 8, -1).summaries(turn{text: "S"})
	want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
	before, err := b.disk.state.RawAPI()
	b.must(err)
	_, err = b.agent.Condense(t.Context(), "")
	b.must(err)
	b.must(b.disk.Commit(context.Background(), task.MessageHidden{Messages: []uint64{b.disk.state.Covers[0].Message}, Reason: "undo"}))
	for _, s := range []*task.State{b.disk.state, newDisk(b, b.disk.commits).state} {
		after, err := s.RawAPI()
		b.must(err)
		if d := cmp.Diff(asStrings(before), asStrings(after)); d != "" {
			t.Error(d)
		}
	}
}

func asStrings(list [][]byte) (out []string) {
	for _, raw := range list {
		out = append(out, string(raw))
	}
	return out
}

// priced is a dollar a million tokens in, two out.
func priced() api.Prices {
	in, out := money.USD(1_000_000), money.USD(2_000_000)
	return api.Prices{Input: &in, Output: &out}
}

// What a summary stands for is not sent, so leaving it out would not make a request
// shorter: another way is found when a provider finds it too long.
func TestOverflowBehindASummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := chatty(t, 12, 9, tooLong()).summaries(turn{text: "so far"})
		b.model.turns[4] = finish("for now")
		b.tool("look").run = func(_ context.Context, _ tool.Output, input string) (tool.Result, error) {
			n := 400
			if strings.Contains(input, "thing1") {
				n = 40_000
			}
			return tool.Result{Text: input + strings.Repeat(" word", n)}, nil
		}
		want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
		_, err := b.agent.Condense(t.Context(), "")
		b.must(err)
		b.prepare()
		b.tool("look").run = func(_ context.Context, _ tool.Output, input string) (tool.Result, error) {
			return tool.Result{Text: input + strings.Repeat(" word", 400)}, nil
		}
		want(t, b.start(agent.Input{Text: "go on"}), "completed", "")
		if w := b.disk.state.Withheld; len(w) > 0 {
			t.Errorf("left out, although it was not sent: %+v", w)
		}
		if !strings.Contains(history(b.disk.state), "Sliding window truncation") {
			t.Error("the request was not made shorter")
		}
	})
}
