package report_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store/actions"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/task"
)

// All commits are told, the oldest first, and one that is damaged by its number and what
// is wrong: the rest is still to be seen.
func TestCommitsOfAJournal(t *testing.T) {
	s := newToolStore(t, files(`[{"ts":1,"type":"say","say":"text","text":"hi"}]`, `[]`))
	if all, err := report.CommitsOf(t.Context(), s.open("t1")); !errors.Is(err, journal.ErrNotFound) || all != nil {
		t.Errorf("a task without a journal: %v, %v", all, err)
	}
	s.task(task.Created{Task: "own", Number: 1, CreatedAt: s.now},
		[]task.Event{added(task.UI, 1, `{"ts":1,"type":"say","say":"text","text":"one"}`)}, []task.Event{added(task.UI, 2, `{"ts":2,"type":"say","say":"text","text":"two"}`)},
		[]task.Event{added(task.UI, 3, `{"ts":3,"type":"say","say":"text","text":"three"}`), added(task.UI, 4, `{"ts":4,"type":"say","say":"text","text":"four"}`)})
	whole, err := report.CommitsOf(t.Context(), s.open("own"))
	fixture.NoError(t, err)
	for i, c := range whole {
		if c.Seq != uint64(i+1) || c.Epoch == 0 || c.At == "" || len(c.Events) == 0 || c.Damage != "" {
			t.Errorf("commit %d: %+v", i+1, c)
		}
	}
	if last := whole[len(whole)-1]; len(whole) < 4 {
		t.Fatalf("%d commits, the last is %+v", len(whole), last)
	}

	path := filepath.Join(s.open("own").Ref.Log, "journal.jsonl")
	data, err := os.ReadFile(path)
	fixture.NoError(t, err)
	hit := bytes.Replace(data, []byte(`"two"`), []byte(`"tow"`), 1)
	if bytes.Equal(hit, data) {
		hit = bytes.Replace(data, []byte(`two`), []byte(`tow`), 1)
	}
	fixture.NoError(t, os.WriteFile(path, hit, 0o600))
	fixture.NoError(t, os.RemoveAll(filepath.Join(filepath.Dir(path), "journal.idx")))
	hurt, err := report.CommitsOf(t.Context(), s.open("own"))
	fixture.NoError(t, err)
	damaged := 0
	for i, c := range hurt {
		if c.Damage == "" {
			continue
		}
		if damaged++; c.Seq != whole[i].Seq || c.Events != nil || c.At != "" {
			t.Errorf("a damaged commit: %+v", c)
		}
	}
	if damaged != 1 || len(hurt) != len(whole) {
		t.Errorf("%d of %d commits are damaged, of %d", damaged, len(hurt), len(whole))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := report.CommitsOf(ctx, s.open("own")); !errors.Is(err, context.Canceled) {
		t.Errorf("of a call that was cancelled: %v", err)
	}
}

// Tokens that nobody knows are null; what is known is told, also when it is nothing.
func TestWhatTheNextRequestIsMadeOf(t *testing.T) {
	same(t, "nothing is known of the window", api.ContextUse{Task: "t1", Model: "m", Used: 7, Messages: 2, Parts: []api.ContextPart{}},
		`{"task_id":"t1","model":"m","window":null,"reply":null,"used":7,"free":null,"counted":false,"messages":2,"parts":[],"as_if":null}`)
	same(t, "a full window", api.ContextUse{Task: "t1", Model: "m", Window: new(int64(100)), Reply: new(int64(20)), Free: new(int64(0)), Used: 80, Counted: true, Parts: []api.ContextPart{{Name: "tools", Tokens: 80}}, AsIf: new("mine")},
		`{"task_id":"t1","model":"m","window":100,"reply":20,"used":80,"free":0,"counted":true,"messages":0,"parts":[{"name":"tools","tokens":80}],"as_if":"mine"}`)
}

func TestWhatCondensingDid(t *testing.T) {
	known := api.Condensed{Task: "t1", Condense: "c1", Messages: 9, Sent: 7, Kept: 2, Before: 1000, After: 100, Summary: "so far", Cost: new(money.USD(1_500_000))}
	same(t, "done", known,
		`{"task_id":"t1","dry_run":false,"condense_id":"c1","messages":9,"sent":7,"kept":2,"tokens_before":1000,"tokens_after":100,"cost":"1.50","summary":"so far"}`)
	same(t, "planned", api.Condensed{Task: "t1", DryRun: true, Messages: 9, Sent: 7, Kept: 2, Before: 1000},
		`{"task_id":"t1","dry_run":true,"messages":9,"sent":7,"kept":2,"tokens_before":1000,"cost":null}`)
}

// A deed is told as undone or as done again, never as both.
func TestWhatWasUndone(t *testing.T) {
	deed, deeds := api.Action{ID: "d1", Kind: "rename"}, api.TaskActions{Name: "own:t1"}
	for _, c := range []struct {
		o            actions.Options
		undone, redo bool
	}{{actions.Options{}, true, false}, {actions.Options{DryRun: true}, true, false}, {actions.Options{Redo: true}, false, true}} {
		got := report.UndoneOf(deed, deeds, nil, c.o)
		if (got.Undone != nil) != c.undone || (got.Redone != nil) != c.redo || got.DryRun != c.o.DryRun || got.Name != "own:t1" {
			t.Errorf("got %+v: %+v, want (got.Undone != nil) = c.undone and (got.Redone != nil) = c.redo and got.DryRun = c.o.DryRun and got.Name = \"own:t1\"",
				c.o, got)
		}
		for _, d := range []*api.Action{got.Undone, got.Redone} {
			if d != nil && d.ID != "d1" {
				t.Errorf("%+v: another deed: %+v", c.o, d)
			}
		}
	}
}
