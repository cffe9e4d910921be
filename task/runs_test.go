package task_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// anyRunEvent draws what the history of runs is about, and sometimes something else.
func anyRunEvent(t *rapid.T, next *uint64) task.Event {
	id, other := rapid.SampledFrom(calls).Draw(t, "id"), rapid.SampledFrom(calls).Draw(t, "other")
	text := rapid.SampledFrom([]string{other, strings.Repeat(other, 400)}).Draw(t, "text")
	switch rapid.IntRange(0, 10).Draw(t, "event") {
	case 0:
		return task.RunQueued{Run: id, Settings: task.Settings{Mode: other, Allow: []string{"ls"}}}
	case 1:
		return task.RunStarted{Run: id, Settings: task.Settings{Model: other}}
	case 2:
		return task.RunWaiting{Run: id, Question: other, Child: rapid.SampledFrom([]string{"", "kid"}).Draw(t, "child")}
	case 3:
		return task.RunEnded{Run: id, Outcome: rapid.SampledFrom([]string{"completed", "interrupted"}).Draw(t, "outcome"), Reason: text}
	case 4:
		return api.QuestionOpened{Question: id, Kind: "followup", Text: "q\u2028", Choices: []string{other}}
	case 5:
		reason := rapid.SampledFrom([]string{"", "", "cancelled"}).Draw(t, "why")
		return api.QuestionClosed{Question: id, By: "api", Text: text, Input: other, Reason: reason}
	case 6, 7:
		return task.InputQueued{Input: id, Text: "words"}
	case 8:
		cost := rapid.Int64Range(0, 1000).Draw(t, "cost")
		return task.UsageChanged{CostMicros: &cost}
	}
	return anyEvent(t, next)
}

// answersOf is what a state gives of runs and answers when the long texts are read from the log.
func answersOf(t interface{ Fatal(...any) }, s *task.State) string {
	runs, err := s.WithReasons(s.Runs.All...)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := json.Marshal(runs)
	for _, id := range calls {
		answer, ok, err := s.AnswerTo(id)
		if err != nil {
			t.Fatal(err)
		}
		out = fmt.Appendf(out, "\n%s: %t %+v", id, ok, answer)
	}
	return string(out)
}

// upTo folds the first n commits of a log.
func upTo(src memory, n int) *task.State {
	s := task.New(src)
	for _, c := range src.log[:n] {
		_ = s.Apply(c)
	}
	return s
}

// The history from a snapshot at any commit and the commits since is that of the whole log, with the rest of the
// state and alone.
func TestRunsFromASnapshotAreThoseOfTheWholeLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var next uint64
		src := memory{blobMap: blobMap{"b": "{}{}"}}
		ended := map[string]task.RunEnded{}
		for i := range rapid.IntRange(1, 30).Draw(t, "commits") {
			var events []task.Event
			for range rapid.IntRange(1, 3).Draw(t, "events") {
				e := anyRunEvent(t, &next)
				if end, ok := e.(task.RunEnded); ok {
					ended[end.Run] = end
				}
				events = append(events, e)
			}
			c := encode(t, uint64(i+1), events...)
			c.At = int64(100 + i)
			src.log = append(src.log, c)
		}
		cuts := []int{rapid.IntRange(0, len(src.log)).Draw(t, "cut"), rapid.IntRange(0, len(src.log)).Draw(t, "again")}
		whole, s := task.New(nil).Lean(src, 0), task.New(nil).Lean(src, 0)
		for i, c := range src.log {
			for _, cut := range cuts {
				if i == cut {
					s = snapped(t, s, src)
				}
			}
			_ = s.Apply(c)
			_ = whole.Apply(c)
		}
		if d := cmp.Diff(whole.Runs, s.Runs, cmpopts.IgnoreUnexported(task.RunHistory{}), cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(whole.Run, s.Run); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(answersOf(t, whole), answersOf(t, s)); d != "" {
			t.Fatal(d)
		}
		alone := task.NewRuns(src)
		for i, c := range src.log {
			if i == cuts[0] {
				data, err := upTo(src, i).Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				if alone, err = task.RestoreRuns(data, src); err != nil {
					t.Fatal(err)
				}
			}
			_ = alone.Apply(c)
		}
		for name, pair := range map[string][2]any{
			"run":       {whole.Run, alone.Run},
			"questions": {whole.Questions, alone.Questions},
			"queue":     {whole.Queue, alone.Queue},
		} {
			if d := cmp.Diff(pair[0], pair[1], cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("folded alone, %s: %s", name, d)
			}
		}
		if d := cmp.Diff(answersOf(t, whole), answersOf(t, alone)); d != "" {
			t.Fatalf("folded alone: %s", d)
		}
		if d := cmp.Diff(whole.Runs, alone.Runs, cmpopts.IgnoreUnexported(task.RunHistory{}), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("folded alone: %s", d)
		}
		runs, _ := s.WithReasons(s.Runs.All...)
		for i, run := range s.Runs.All {
			if s.Runs.Find(run.ID) != run {
				t.Fatalf("run %s is not found by its id", run.ID)
			}
			if run.Outcome != "" && run.Code == "" && runs[i].Reason != ended[run.ID].Reason {
				t.Fatalf("run %s: reason %q, want %q", run.ID, runs[i].Reason, ended[run.ID].Reason)
			}
		}
	})
}

// The runs are read on from a snapshot of a task that moves before and after it.
func TestRunsOfATaskThatMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := memory{blobMap: blobMap{"b": "{}{}"}, log: movingLog(t)}
		cut := rapid.IntRange(0, len(src.log)).Draw(t, "cut")
		data, err := upTo(src, cut).Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		alone, err := task.RestoreRuns(data, src)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range src.log[cut:] {
			_ = alone.Apply(c)
		}
		whole := upTo(src, len(src.log))
		for name, pair := range map[string][2]any{
			"run": {whole.Run, alone.Run}, "questions": {whole.Questions, alone.Questions}, "queue": {whole.Queue, alone.Queue},
		} {
			if d := cmp.Diff(pair[0], pair[1], cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("%s: %s", name, d)
			}
		}
	})
}

func TestARunThatWaitsInTheHistory(t *testing.T) {
	w := tell(t, task.InputQueued{Input: "early"}, task.RunQueued{Run: "r"})
	w.then(task.InputQueued{Input: "beside"}, task.RunStarted{Run: "r"}, api.QuestionOpened{Question: "q", Kind: "followup"})
	w.then(task.RunWaiting{Run: "r", Question: "q"})
	s := w.restored(0)
	q := s.Question("q")
	if s.Run == nil || s.Run != s.Runs.Find("r") || !s.Run.Rests() || q.Run != "r" || q.Asked != (task.Position{Epoch: 1, Seq: 2, Index: 2}) {
		t.Fatalf("run %+v, question %+v", s.Run, q)
	}
	if in := s.Runs.Inputs; in["early"] != "r" || in["beside"] != "r" || s.Run.Before != (task.Position{Epoch: 1, Seq: 1}) {
		t.Errorf("inputs %v, before %v", in, s.Run.Before)
	}
	w.then(api.QuestionClosed{Question: "q", By: "api", Input: "m", Text: "yes"})
	w.then(task.RunEnded{Run: "r", Outcome: "completed"}, task.InputQueued{Input: "late"}, task.InputQueued{Input: "early"})
	s = w.restored(0)
	if got := s.Runs.Inputs["early"]; got != "r" {
		t.Errorf("an input that comes again belongs to run %q, want r", got)
	}
	said, ok, err := s.AnswerTo("q")
	if s.Run.Outcome != "completed" || !ok || err != nil || said.Text != "yes" || s.Runs.Replies["m"] != (task.InputAnswer{Question: "q", Run: "r"}) {
		t.Errorf("run %+v, answer %+v (%v), replies %v", s.Run, said, err, s.Runs.Replies)
	}
	if of, known := s.Runs.Inputs["late"]; !known || of != "" {
		t.Errorf("the late input came to %q, want none yet", of)
	}
	if err := s.Apply(encode(t, s.Seq+1, task.RunStarted{Run: "r2"})); err != nil || s.Runs.Inputs["late"] != "r2" {
		t.Errorf("%v, then the late input came to %q", err, s.Runs.Inputs["late"])
	}
}

// A run that waits for the question of a subtask keeps both names.
func TestARunThatWaitsForASubtasksQuestion(t *testing.T) {
	w := tell(t, task.RunStarted{Run: "r"}, task.RunWaiting{Run: "r", Question: "q", Child: "kid"}, api.QuestionClosed{Question: "q", By: "api"})
	if r := w.restored(0).Run; r.Waiting != "kid" || r.ChildQuestion != "q" {
		t.Errorf("it waits for %q of %q, want q of kid", r.ChildQuestion, r.Waiting)
	}
}

// What a run used is counted for it alone, too.
func TestWhatARunUsedAlone(t *testing.T) {
	cost := int64(30)
	w := tell(t, task.RunStarted{Run: "r1"}, task.UsageChanged{CostMicros: &cost}, task.TurnEnded{Run: "r1"}, task.RunEnded{Run: "r1", Outcome: "interrupted"})
	w.then(task.RunStarted{Run: "r2"}, task.UsageChanged{}, task.TurnEnded{Run: "r2"})
	first, second := w.Runs.All[0], w.Runs.All[1]
	if first.OwnTurns != 1 || first.OwnCostMicros != 30 || first.CostUnknown {
		t.Errorf("the first run: %+v", first)
	}
	if second.Turns != 2 || second.OwnTurns != 1 || second.CostMicros != 30 || second.OwnCostMicros != 0 || !second.CostUnknown {
		t.Errorf("the second run: %+v", second)
	}
}

// Every reader of a task reads its snapshot: long answers and results of runs stay in the log.
func TestLongTextsOfTheHistoryAreNotInTheSnapshot(t *testing.T) {
	w := tell(t)
	for i := range 5 {
		run, long := fmt.Sprint("r", i), strings.Repeat(fmt.Sprint("long ", i), 50_000)
		w.then(task.RunStarted{Run: run}, api.QuestionOpened{Question: "q" + run})
		w.then(api.QuestionClosed{Question: "q" + run, By: "api", Text: long}, task.RunEnded{Run: run, Outcome: "completed", Reason: long})
	}
	w.then(task.RunStarted{Run: "last"})
	data, err := w.Snapshot()
	if err != nil || len(data) > 10_000 {
		t.Fatalf("a snapshot of %d bytes (%v), want less than 10,000", len(data), err)
	}
	s := w.restored(0)
	runs, err := s.WithReasons(s.Runs.All...)
	if err != nil {
		t.Fatal(err)
	}
	for i, run := range runs[:5] {
		want := strings.Repeat(fmt.Sprint("long ", i), 50_000)
		answer, ok, err := s.AnswerTo("q" + run.ID)
		if run.Reason != want || answer.Text != want || !ok || err != nil {
			t.Errorf("run %s: a reason of %d bytes, an answer of %d (%v), want %d", run.ID, len(run.Reason), len(answer.Text), err, len(want))
		}
	}
}

// Only reasons and answers that are not in the state are read from the log.
func TestTextsInTheStateAreNotRead(t *testing.T) {
	s, long := task.New(nil), strings.Repeat("long ", 1000) // a state without a log
	if err := s.Apply(encode(t, 1, task.RunStarted{Run: "a"}, task.RunEnded{Run: "a", Outcome: "completed"}, task.RunStarted{Run: "b"},
		task.RunEnded{Run: "b", Outcome: "completed", Reason: long}, api.QuestionOpened{Question: "q"},
		api.QuestionClosed{Question: "q", By: "api", Text: "yes"})); err != nil {
		t.Fatal(err)
	}
	runs, err := s.WithReasons(s.Runs.All...)
	if err != nil || len(runs) != 2 || runs[0].Reason != "" || runs[1].Reason != long {
		t.Errorf("got %d runs, error %v, want 2 with their reasons and no error: %+v", len(runs), err, runs)
	}
	if answer, ok, err := s.AnswerTo("q"); answer.Text != "yes" || !ok || err != nil {
		t.Errorf("got the answer %q, %t, error %v, want yes", answer.Text, ok, err)
	}
	if answer, ok, err := s.AnswerTo("other"); ok || err != nil {
		t.Errorf("got the answer %q, %t, error %v to a question that was not asked, want none", answer.Text, ok, err)
	}
}

// A task with ten thousand runs stays small in its snapshot, whose reading costs every reader.
func TestManyRunsTakeLittleRoom(t *testing.T) {
	s := task.New(nil)
	settings := task.Settings{Workspace: "/home/user/project", Mode: "code", Provider: "anthropic", Model: "m", Allow: []string{"ls", "git log"}}
	const runs = 10_000
	for i := range uint64(runs) {
		id := fmt.Sprintf("%08d-1234567890abcdef", i)
		if err := s.Apply(encode(t, i+1, task.InputQueued{Input: id}, task.RunStarted{Run: id, Settings: settings}, task.InputTaken{Input: id},
			task.RunEnded{Run: id, Outcome: "completed", Reason: "done"})); err != nil {
			t.Fatal(err)
		}
	}
	data, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if each := len(data) / runs; each > 80 {
		t.Errorf("a run takes %d bytes in the snapshot, want 80 at most", each)
	}
}

func BenchmarkRestoreTenThousandRuns(b *testing.B) {
	s := task.New(nil)
	for i := range uint64(10_000) {
		id := fmt.Sprintf("%08d-1234567890abcdef", i)
		_ = s.Apply(encode(b, i+1, task.RunStarted{Run: id, Settings: task.Settings{Mode: "code"}}, task.RunEnded{Run: id, Outcome: "completed"}))
	}
	data, err := s.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := task.Restore(data, memory{}, 0); err != nil {
			b.Fatal(err)
		}
	}
}
