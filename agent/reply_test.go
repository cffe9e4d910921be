package agent_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
)

// A reply's rows, its cost and the model's message are one commit: a person never
// sees a reply that the model does not know of, or the reverse.
func TestAReplyIsOneCommit(t *testing.T) {
	b := newBench(t, turn{think: "I wonder why.", text: "Because of this.", calls: []call{use("c1", "look", "a")}, usage: llm.Usage{Input: 5, Output: 7}}, finish("done"))
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	s := b.disk.state
	for _, part := range []string{"I wonder why.", "Because of this."} {
		if !shows(s, part) {
			t.Errorf("%q is not shown", part)
		}
	}
	var reply *task.Message
	for _, m := range s.API() {
		if m.Kind() == "assistant" {
			reply = m
			break
		}
	}
	raw := string(reply.Raw())
	wanted := `{"role":"assistant","content":[{"type":"thinking","thinking":"I wonder why.","signature":"signed"},{"type":"text","text":"Because of this."},` +
		`{"type":"tool_use","id":"c1","name":"look","input":{"what":"a"}}],"id":"msg","ts":`
	if !strings.HasPrefix(raw, wanted) {
		t.Errorf("the reply is stored as %s", raw)
	}
	for _, c := range b.disk.commits {
		text := ""
		for _, e := range c.Events {
			typ, _ := esjson.GetString(e, "type")
			text += typ + " "
		}
		if strings.Contains(text, "turn.ended") {
			if d := cmp.Diff("message.added message.added message.changed usage.changed turn.ended message.added ", text); d != "" && c.Seq < 8 {
				t.Error(d)
			}
			break
		}
	}
}

// Streamed text goes into the log in pieces, by size and by time, so that a kill
// keeps what was shown.
func TestStreamedTextIsCheckpointed(t *testing.T) {
	for name, c := range map[string]struct {
		words, step int64 // how many words, how many ms pass between looks at the clock
		least, most int
	}{
		"slow, small pieces":  {40, 100, 10, 60},
		"fast, few":           {40, 0, 0, 1},
		"fast, a lot of text": {4000, 0, 4, 8},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, turn{text: strings.Repeat("word ", int(c.words))}, finish("done"))
			b.agent.Host.Now = func() int64 { b.clock += c.step; return b.clock }
			want(t, b.start(agent.Input{Text: "go"}), "completed", "")
			saved := 0
			for _, e := range b.trace {
				if strings.HasSuffix(e, "message.text_saved") { // the first one adds the row too
					saved++
				}
			}
			if saved < c.least || saved > c.most {
				t.Errorf("%d checkpoints, wanted %d to %d", saved, c.least, c.most)
			}
			if !shows(b.disk.state, strings.Repeat("word ", int(c.words))) {
				t.Error("the row does not hold the text")
			}
		})
	}
}

// The thinking before the words is in the log with the first of them that are: a kill
// while the words stream on keeps it.
func TestThinkingIsCheckpointedWithTheWords(t *testing.T) {
	b := newBench(t, turn{think: "I wonder why.", text: strings.Repeat("word ", 2000)}, finish("done"))
	b.agent.Host.Now = func() int64 { return b.clock } // it stands still: only the amount counts
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	for _, c := range b.disk.commits {
		text := ""
		for _, e := range c.Events {
			text += string(e)
		}
		if strings.Contains(text, `"message.text_saved"`) {
			if !strings.Contains(text, "I wonder why.") {
				t.Errorf("the first checkpoint is %.400s", text)
			}
			return
		}
	}
	t.Error("nothing was checkpointed")
}

// What was shown of a reply that did not come whole stays for the person; the
// model's side has nothing of it, and the request row says why.
func TestACutReply(t *testing.T) {
	cut := finish("done")
	cut.fails = []failure{{err: errors.New("the line broke"), text: "half of"}}
	b := newBench(t, cut)
	out := b.start(agent.Input{Text: "go"})
	want(t, out, "failed", "internal")
	s := b.disk.state
	if !shows(s, "half of") || len(s.API()) != 1 || s.Replies != 0 {
		t.Errorf("rows %v, %d messages", kinds(s), len(s.API()))
	}
	if row := s.UI()[1].Text(); !strings.Contains(row, `"cancelReason":"streaming_failed"`) || !strings.Contains(row, "the line broke") {
		t.Error(row)
	}
	checkHistories(t, s)
}

func TestACancelledReplySaysSo(t *testing.T) {
	b := newBench(t, turn{text: "one two three"})
	ctx, cancel := context.WithCancelCause(context.Background())
	b.shown.live = func(d agent.Delta) {
		if strings.Contains(d.Text, "two") {
			cancel(errors.New("enough"))
		}
	}
	want(t, b.startWith(ctx, agent.Input{Text: "go"}), "cancelled", "")
	s := b.disk.state
	if row := s.UI()[1].Text(); !strings.Contains(row, `"cancelReason":"user_cancelled"`) || strings.Contains(row, "streamingFailed") {
		t.Error(row)
	}
	if !shows(s, "one two ") {
		t.Errorf("what was shown is gone: %v", kinds(s))
	}
	checkHistories(t, s)
}

// A stream that just ends is a cut reply: an llm that forgets its Done does not make
// an empty reply.
func TestAStreamWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := finish("done")
		done.fails = []failure{{err: &llm.Error{Provider: "x", Kind: llm.Cut}}}
		b := newBench(t, done)
		b.agent.Model.Provider = endless{b.model}
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		if b.disk.state.Turns != 2 || b.disk.state.Replies != 1 {
			t.Errorf("%d turns, %d replies", b.disk.state.Turns, b.disk.state.Replies)
		}
	})
}

// endless ends its streams in silence where the model would fail.
type endless struct{ *model }

func (e endless) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		for c, err := range e.model.Stream(ctx, req) {
			if err != nil || !yield(c, nil) {
				return
			}
		}
	}
}

// Pieces that are streamed join to the row's text, and each says where it stands,
// whatever the text and however it is cut.
func TestStreamedPiecesJoin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab \n\"\\ü€😀\u2028<")), 1, 60, -1).Draw(rt, "text")
		step := rapid.Int64Range(0, 200).Draw(rt, "ms")
		b := newBench(t, turn{text: text}, finish("done"))
		b.agent.Host.Now = func() int64 { b.clock += step; return b.clock }
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		got := ""
		for _, d := range b.deltas {
			if d.Type == "message.delta" {
				if d.Offset != len(got) {
					rt.Fatalf("a piece at %d after %d bytes", d.Offset, len(got))
				}
				got += d.Text
			}
		}
		if got != text || !shows(b.disk.state, text) {
			rt.Fatalf("streamed %q, rows %v", got, kinds(b.disk.state))
		}
	})
}

// Tool input is shown as it is written and not kept: the call itself is.
func TestToolInputIsLiveOnly(t *testing.T) {
	b := newBench(t, turn{calls: []call{use("c1", "look", "a")}}, finish("done"))
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	found := false
	for _, d := range b.deltas {
		found = found || d.Type == "tool.delta" && d.Call == "c1" && d.Text == `{"what":"a"}`
	}
	if !found {
		t.Errorf("got %+v, want found", b.deltas)
	}
}

// A run without anybody who watches, with no clockwork around it, is the same run.
func TestNobodyWatches(t *testing.T) {
	b := newBench(t, turn{think: "hm", text: "words", calls: []call{use("c1", "act", "x")}}, finish("done"))
	b.agent.User.Observer = nil
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	checkHistories(t, b.disk.state)
}
