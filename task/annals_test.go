package task_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/task"
)

var public = cmpopts.IgnoreUnexported(task.Annals{})

// anyTold draws what annals are about, and sometimes something else.
func anyTold(t *rapid.T, next *uint64) task.Event {
	id, other := rapid.SampledFrom(calls).Draw(t, "id"), rapid.SampledFrom(calls).Draw(t, "other")
	switch rapid.IntRange(0, 10).Draw(t, "told") {
	case 0:
		return task.RunQueued{Run: id, Settings: task.Settings{Mode: other, Allow: []string{"ls"}}}
	case 1:
		return task.RunStarted{Run: id, Settings: task.Settings{Model: other}}
	case 2:
		return task.RunWaiting{Run: id, Question: other, Child: rapid.SampledFrom([]string{"", "kid"}).Draw(t, "child")}
	case 3:
		return task.RunEnded{Run: id, Outcome: rapid.SampledFrom([]string{"completed", "interrupted"}).Draw(t, "outcome"), Reason: other}
	case 4:
		return task.QuestionOpened{Question: id, Kind: "followup", Text: "q\u2028", Choices: []string{other}}
	case 5:
		return task.QuestionClosed{Question: id, By: "api", Input: other, Reason: rapid.SampledFrom([]string{"", "", "cancelled"}).Draw(t, "why")}
	case 6, 7:
		return task.InputQueued{Input: id, Text: "words"}
	case 8:
		cost := rapid.Int64Range(0, 1000).Draw(t, "cost")
		return task.UsageChanged{CostMicros: &cost}
	}
	return anyEvent(t, next)
}

// Annals out of a snapshot at any commit, and what came since, are those of the whole log,
// whether they were unpacked in between or not.
func TestAnnalsFromASnapshotAreThoseOfTheWholeLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var next uint64
		src, whole := memory{blobMap: blobMap{"b": "{}{}"}}, task.NewAnnals()
		for i := range rapid.IntRange(1, 30).Draw(t, "commits") {
			var events []task.Event
			for range rapid.IntRange(1, 3).Draw(t, "events") {
				events = append(events, anyTold(t, &next))
			}
			c := encode(t, uint64(i+1), events...)
			c.At = int64(100 + i)
			src.log = append(src.log, c)
			whole.Take(c)
		}
		cuts := []int{rapid.IntRange(0, len(src.log)).Draw(t, "cut"), rapid.IntRange(0, len(src.log)).Draw(t, "again")}
		s := task.New(src)
		for i, c := range src.log {
			for _, cut := range cuts {
				if i == cut {
					s = snapped(t, s, src)
				}
			}
			_ = s.Apply(c)
		}
		if d := cmp.Diff(whole, s.Annals(), public); d != "" {
			t.Fatalf("folded with the state: %s", d)
		}
		half := task.New(src)
		for _, c := range src.log[:cuts[0]] {
			_ = half.Apply(c)
		}
		data, err := half.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		read, err := task.RestoreAnnals(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range src.log[cuts[0]:] {
			read.Take(c)
		}
		if d := cmp.Diff(whole, read, public); d != "" {
			t.Fatalf("read alone: %s", d)
		}
		for _, run := range whole.Runs {
			if d := cmp.Diff(whole.Run(run.ID), read.Run(run.ID)); d != "" {
				t.Fatal(d)
			}
		}
	})
}

func TestAnnalsOfARunThatWaits(t *testing.T) {
	w := tell(t, task.InputQueued{Input: "early"}, task.RunQueued{Run: "r"})
	w.then(task.InputQueued{Input: "beside"}, task.RunStarted{Run: "r"}, task.QuestionOpened{Question: "q", Kind: "followup"})
	w.then(task.RunWaiting{Run: "r", Question: "q"})
	a := w.restored(0).Annals()
	run := a.Newest()
	if run == nil || run != a.Run("r") || !run.Waits || run.Waiting != "q" || a.Open["q"].At != (task.Mark{Epoch: 1, Seq: 2, Index: 2}) || a.Asked["q"] != run {
		t.Fatalf("%+v", a)
	}
	if a.Words["early"] != "r" || a.Words["beside"] != "r" || run.Before != (task.Mark{Epoch: 1, Seq: 1}) {
		t.Errorf("words %v, before %v", a.Words, run.Before)
	}
	w.then(task.QuestionClosed{Question: "q", By: "api", Input: "m", Text: "yes"})
	w.then(task.RunEnded{Run: "r", Outcome: "completed"}, task.InputQueued{Input: "late"})
	a = w.restored(0).Annals()
	if run = a.Newest(); run.Waits || run.Outcome != "completed" || a.Said["q"].Text != "yes" || a.By["m"] != "q" || len(a.Open) > 0 {
		t.Errorf("%+v %+v", run, a)
	}
	if of, known := a.Words["late"]; !known || of != "" {
		t.Errorf("late words came to %q", of)
	}
	s := w.restored(0)
	if err := s.Apply(encode(t, s.Seq+1, task.RunStarted{Run: "r2"})); err != nil || s.Annals().Words["late"] != "r2" {
		t.Errorf("%v, then to %q", err, s.Annals().Words["late"])
	}
}

// What nobody can use is not given: the log is gone through instead.
func TestAnnalsThatCannotBeUsed(t *testing.T) {
	w := tell(t, task.RunStarted{Run: "r"}, task.InputQueued{Input: "i"})
	data, err := w.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for cut := range data {
		if _, err := task.RestoreAnnals(data[:cut]); !errors.Is(err, task.ErrSnapshot) {
			t.Fatalf("%d of %d bytes: %v", cut, len(data), err)
		}
	}
	if _, err := task.RestoreAnnals([]byte("roost state 7\n" + string(data[len(task.SnapshotHead):]))); !errors.Is(err, task.ErrSnapshot) {
		t.Errorf("of another version: %v", err)
	}
}

// Every reader of a task reads its snapshot: annals that would make it large are left out.
func TestLargeAnnalsAreNotInTheSnapshot(t *testing.T) {
	if testing.Short() {
		t.Skip("does nothing at the same time, and is slow when watched for races")
	}
	s := task.New(nil)
	var events []task.Event
	for i := range 3 {
		events = append(events, task.QuestionClosed{Question: fmt.Sprint("q", i), By: "api", Text: strings.Repeat("long ", 300_000)})
	}
	if err := s.Apply(encode(t, 1, events...)); err != nil {
		t.Fatal(err)
	}
	data, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := task.RestoreAnnals(data); !errors.Is(err, task.ErrSnapshot) || len(data) > 1<<20 {
		t.Errorf("answers of 4.5 MB are in a snapshot of %d bytes (%v)", len(data), err)
	}
	big, err := task.Restore(data, memory{}, 0)
	if err != nil || big.Annals() != nil || len(s.Annals().Said) != 3 {
		t.Fatalf("%v, %v", err, big.Annals())
	}
	_ = big.Apply(encode(t, 2, task.RunStarted{Run: "r"}))
	if data, err = big.Snapshot(); err != nil {
		t.Fatal(err)
	}
	if _, err := task.RestoreAnnals(data); !errors.Is(err, task.ErrSnapshot) {
		t.Errorf("half of the annals pass for all: %v", err)
	}
}

// An event is told of as it is decoded, and what begins otherwise is none of ours.
func TestToldEvents(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"type":"run.ended","run":"r","outcome":"failed"}`: true,
		`{"type":"input.queued","input":"i","text":"t"}`:    true,
		`{"type":"message.added","message":1}`:              false,
		`{"run":"r","type":"run.ended"}`:                    false,
		`{"type":"run.ended","run":7}`:                      false,
	} {
		if _, ok := task.Told(json.RawMessage(raw)); ok != want {
			t.Errorf("%s: %t", raw, ok)
		}
	}
}
