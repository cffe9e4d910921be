package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// damaged is a task of which commits in the middle are lost.
func damaged(t *testing.T, lost ...uint64) *bench {
	b := newBench(t, turn{text: "I look.", calls: []call{use("c1", "look", "a"), use("c2", "act", "x")}}, turn{text: "hm"}, finish("done"))
	b.agent.Task.Settings.Limits = api.RunLimits{MaxTurns: 1}
	want(t, b.start(agent.Input{Text: "go"}), "limit", "turns")
	return b.losing(lost...)
}

// losing gives the same task with some commits damaged.
func (b *bench) losing(lost ...uint64) *bench {
	left := b.after(0, len(b.ran))
	left.disk = &disk{b: left, blobs: map[string][]byte{}}
	left.disk.state = task.New(left.disk)
	for _, c := range b.disk.commits {
		if slices.Contains(lost, c.Seq) {
			left.disk.state.Lost(journal.Damage{Seq: c.Seq, Reason: "its checksum is wrong"})
		} else {
			_ = left.disk.state.Apply(c) // what depends on a lost commit is noted as a problem
		}
		left.disk.commits, left.disk.ranAt = append(left.disk.commits, c), append(left.disk.ranAt, 0)
	}
	left.prepare()
	left.agent.Task.Policy, left.agent.Task.Settings.Limits = approval.Policy{Mode: approval.ModeAll}, api.RunLimits{}
	return left
}

// A task whose log is damaged does not run before a person who knows of it says so.
func TestDamageIsAskedAbout(t *testing.T) {
	b := damaged(t, 6)
	out := b.start(agent.Input{Yes: true})
	want(t, out, "waiting", "")
	if len(b.model.requests) > 0 || len(b.ran) > 2 {
		t.Fatalf("%d requests, ran %q", len(b.model.requests), b.ran)
	}
	q := b.disk.state.Questions[0]
	if q.Kind != "damage" || q.Question != out.Question || !strings.Contains(q.Text, "commit 6: its checksum is wrong") || !strings.Contains(q.Text, "Rewinds") {
		t.Errorf(`got %+v, want q.Kind = "damage" and q.Question = out.Question and strings.Contains(q.Text, "commit 6: its checksum is wrong") and strings.Contains(q.Text, "Rewinds")`,
			q)
	}
	// Neither the flag nor anything but a clear yes is consent.
	want(t, b.start(agent.Input{Yes: true}), "waiting", "")
	want(t, b.start(agent.Input{}), "waiting", "")
	want(t, b.start(agent.Input{Text: "yes"}), "completed", "")
	// It is asked once: the consent is in the log.
	want(t, b.start(agent.Input{Text: "more"}), "completed", "")
	if len(b.disk.state.Questions) > 0 {
		t.Errorf("open: %+v", b.disk.state.Questions)
	}
}

// Words that come before the question was seen are no answer to it, and not lost.
func TestWordsBeforeTheDamageWasSeen(t *testing.T) {
	for _, words := range []string{"yes", "go on with the tests"} {
		b := damaged(t, 6)
		want(t, b.start(agent.Input{Text: words}), "waiting", "")
		if len(b.model.requests) > 0 {
			t.Fatalf("%q let it run", words)
		}
		want(t, b.start(agent.Input{Text: "yes"}), "completed", "")
		if n := strings.Count(history(b.disk.state), `<user_message>\n`+words+`\n`); n != 1 {
			t.Errorf("%q reached the model %d times", words, n)
		}
	}
}

func TestDamageRefused(t *testing.T) {
	for name, refuse := range map[string]func(b *bench) agent.Outcome{
		"by a resume": func(b *bench) agent.Outcome {
			want(t, b.start(agent.Input{Yes: true}), "waiting", "")
			return b.start(agent.Input{Text: "no"})
		},
		"by other words": func(b *bench) agent.Outcome {
			want(t, b.start(agent.Input{Yes: true}), "waiting", "")
			return b.start(agent.Input{Text: "what is lost?"})
		},
		"at the terminal": func(b *bench) agent.Outcome {
			b.agent.User.Asker = b.person(agent.Answer{Approve: no()}, nil)
			defer func() { b.agent.User.Asker = nil }()
			return b.start(agent.Input{Yes: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := damaged(t, 6)
			want(t, refuse(b), "denied", "damage")
			if len(b.model.requests) > 0 || b.disk.state.Run.Outcome != "denied" {
				t.Fatalf("%d requests, %+v", len(b.model.requests), b.disk.state.Run)
			}
			b.agent.User.Asker = nil
			want(t, b.start(agent.Input{Yes: true}), "waiting", "") // asked again
			want(t, b.start(agent.Input{Text: "yes"}), "completed", "")
		})
	}
}

func TestDamageConfirmedAtTheTerminal(t *testing.T) {
	b := damaged(t, 6)
	b.agent.User.Asker = b.person(agent.Answer{Approve: yes(), Text: "check them first", By: "terminal"}, nil)
	want(t, b.start(agent.Input{Yes: true}), "completed", "")
	if n := strings.Count(history(b.disk.state), "check them first"); n != 1 {
		t.Errorf("the words with the yes reached the model %d times, want 1", n)
	}
	if len(b.asked) != 1 || b.asked[0].Kind != "damage" {
		t.Fatalf("asked %+v", b.asked)
	}
	want(t, b.start(agent.Input{Text: "more"}), "completed", "")
	if len(b.asked) != 1 {
		t.Error("it was asked again")
	}
	for words, state := range map[string]string{"yes": "completed", " Y ": "completed", "yes but": "denied", "": "denied"} {
		b := damaged(t, 6)
		b.agent.User.Asker = b.person(agent.Answer{Text: words}, nil)
		if out := b.start(agent.Input{Yes: true}); out.State != state {
			t.Errorf("%q: got %+v, want out.State = state", words, out)
		}
	}
	t.Run("nobody there", func(t *testing.T) {
		b := damaged(t, 6)
		b.agent.User.Asker = b.person(agent.Answer{}, fmt.Errorf("ask: %w", agent.ErrUnattended))
		want(t, b.start(agent.Input{Yes: true}), "waiting", "")
	})
}

// Consent is for the damage that was named. What breaks later is asked about anew,
// and so is damage that took the consent itself.
func TestLaterDamageIsAskedAboutAnew(t *testing.T) {
	b := damaged(t, 6)
	want(t, b.start(agent.Input{Yes: true}), "waiting", "")
	want(t, b.start(agent.Input{Text: "yes"}), "completed", "")
	consent := uint64(0)
	for _, c := range b.disk.commits {
		if strings.Contains(string(slices.Concat(c.Events...)), `"type":"question.closed"`) {
			consent = c.Seq
		}
	}
	for name, lost := range map[string][]uint64{"one more": {4, 6}, "the consent": {6, consent}} {
		left := b.losing(lost...)
		out := left.start(agent.Input{Yes: true})
		if out.State != "waiting" || len(left.model.requests) > 0 {
			t.Errorf("%s: got %+v, want out.State = \"waiting\" and len(left.model.requests) <= 0", name, out)
		}
	}
	// While the question is open more is lost: the yes was to less.
	open := damaged(t, 6)
	want(t, open.start(agent.Input{Yes: true}), "waiting", "")
	worse := open.losing(4, 6)
	want(t, worse.start(agent.Input{Text: "yes"}), "waiting", "")
	if q := worse.disk.state.Questions; len(q) != 1 || !strings.Contains(q[0].Text, "commit 4: ") || len(worse.model.requests) > 0 {
		t.Errorf("open %+v, %d requests", q, len(worse.model.requests))
	}
	left := b.losing(6)
	if out := left.start(agent.Input{Text: "more"}); out.State != "completed" {
		t.Errorf("the same damage: %+v", out)
	}
}

// Whatever commit is lost, the question names it, and after consent the task comes
// to an end with requests that the API takes. Nothing runs twice.
func TestAnyLostCommit(t *testing.T) {
	b := newBench(t, busy()...)
	b.agent.Task.Policy = approval.Policy{Mode: approval.ModeEdits}
	b.agent.User.Asker = b.answering()
	want(t, b.start(agent.Input{Text: "the words"}), "completed", "")
	for seq := uint64(3); seq < uint64(len(b.disk.commits)); seq++ {
		left := b.losing(seq)
		left.agent.User.Asker = asks(func(_ context.Context, q api.QuestionOpened) (agent.Answer, error) {
			if q.Kind == "damage" && !strings.Contains(q.Text, fmt.Sprintf("commit %d: ", seq)) {
				t.Errorf("commit %d is lost, and the question is %q", seq, q.Text)
			}
			return agent.Answer{Approve: yes(), Text: map[bool]string{true: "this one"}[q.Kind == "followup"]}, nil
		})
		if out := left.start(agent.Input{Yes: true}); out.State != "completed" && out.State != "limit" {
			t.Errorf("without commit %d: %+v", seq, out)
		}
	}
}

// Damage that was repaired while its question was open: the question goes, and words
// are not taken for its answer.
func TestQuestionOfRepairedDamage(t *testing.T) {
	b := damaged(t, 6)
	want(t, b.start(agent.Input{Yes: true}), "waiting", "")
	left := b.losing()
	left.agent.Task.Settings.Limits = api.RunLimits{}
	want(t, left.start(agent.Input{Text: "and then this"}), "completed", "")
	if s := left.disk.state; len(s.Questions) > 0 || len(s.Answered) > 0 || !strings.Contains(history(s), "and then this") {
		t.Errorf("open %+v, kept %+v", s.Questions, s.Answered)
	}
}
