package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// newRecordedTask gives a store with a task that two runs made, and what a replay gives of it.
func newRecordedTask(t *testing.T) (*store.Store, store.Ref, []events.Event) {
	t.Helper()
	s, err := store.Open(store.Options{Root: t.TempDir(), Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(model, []byte(streamedAndComposed), 0o600); err != nil {
		t.Fatal(err)
	}
	e := New(s, Options{Config: setup.Config{Keys: map[string]string{}}})
	id := ""
	for _, r := range []Request{{Text: "go", Choice: setup.Choice{Workspace: t.TempDir(), Provider: "script", Model: model, Approve: "all"}}, {Text: "again"}} {
		r.Task = id
		run, err := e.Start(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if o, err := run.Wait(t.Context()); err != nil || o.State != "completed" {
			t.Fatal(o, err)
		}
		id = run.TaskID
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	ref, err := s.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s, ref, readAfter(t, s, ref, 0)
}

func readAfter(t *testing.T, s *store.Store, ref store.Ref, after uint64) (out []events.Event) {
	t.Helper()
	err := events.ReadJournal(t.Context(), s, ref, events.AfterCommit(after), func(i events.Item) error {
		out = append(out, i.Event)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// From whichever commit a log is read, with a snapshot before it, behind it or none:
// it gives what the whole log gives from there.
func TestAReaderGivesTheRestFromAnyCommit(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	s, ref, whole := newRecordedTask(t)
	head := whole[len(whole)-1].Seq
	for _, snapshot := range []bool{true, false} {
		if !snapshot {
			if err := os.Remove(filepath.Join(ref.Log, "journal.idx")); err != nil {
				t.Fatal(err)
			}
		}
		for after := uint64(0); after <= head+1; after++ {
			var want []events.Event
			for _, e := range whole {
				if e.Seq > after {
					want = append(want, e)
				}
			}
			if diff := cmp.Diff(want, readAfter(t, s, ref, after)); diff != "" {
				t.Fatalf("behind %d, snapshot %v (-replayed +logd):\n%s", after, snapshot, diff)
			}
		}
	}
}

// A damaged commit has no events; those behind it come all the same, and a cursor into
// it is still good.
func TestAReaderPassesOverDamage(t *testing.T) {
	s, ref, whole := newRecordedTask(t)
	file := filepath.Join(ref.Log, "journal.jsonl")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const hurt = 7
	lines := strings.SplitAfter(string(data), "\n")
	lines[hurt-1] = strings.Replace(lines[hurt-1], `"events"`, `"Events"`, 1)
	if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(ref.Log, "journal.idx")); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, e := range whole {
		if e.Seq != hurt {
			want = append(want, e.ID)
		}
	}
	for _, e := range readAfter(t, s, ref, 0) {
		got = append(got, e.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if known, err := events.Exists(t.Context(), s, ref, cursor(1, hurt, 0)); !known || err != nil {
		t.Errorf("the damaged commit: %v %v", known, err)
	}
}

// A journal has each of its events and no other ones.
func TestWhichEventsAJournalHas(t *testing.T) {
	s, ref, whole := newRecordedTask(t)
	known := map[string]bool{}
	for _, e := range whole {
		known[e.ID] = true
	}
	last := events.Cursor{}
	for epoch := uint64(0); epoch <= 3; epoch++ {
		for seq := uint64(1); seq <= whole[len(whole)-1].Seq+1; seq++ {
			for i := range 7 {
				m := cursor(epoch, seq, i)
				got, err := events.Exists(t.Context(), s, ref, m)
				if err != nil || got != known[m.String()] {
					t.Errorf("%s: got %v %v, want no error and got = known[m.String()]", m, got, err)
				}
			}
		}
	}
	if _, err := fmt.Sscanf(whole[len(whole)-1].ID, "%d.%d-%d", &last.Epoch, &last.Seq, &last.Index); err != nil {
		t.Fatal(err)
	}
	if newest, ok, err := events.Newest(t.Context(), s, ref); newest != last || !ok || err != nil {
		t.Errorf("the newest is %s, want %s: %v %v", newest, last, ok, err)
	}
	ref.Log = filepath.Join(t.TempDir(), "none")
	_, ok, err := events.Newest(t.Context(), s, ref)
	if known, err2 := events.Exists(t.Context(), s, ref, last); ok || err != nil || known || err2 != nil {
		t.Errorf("without a log: %v %v %v %v", ok, err, known, err2)
	}
	if err := events.ReadJournal(context.Background(), s, ref, events.Cursor{}, nil); !errors.Is(err, journal.ErrNotFound) {
		t.Error(err)
	}
	if _, err := os.Stat(ref.Log); !os.IsNotExist(err) {
		t.Error("looking made a folder")
	}
}

func cursor(epoch, seq uint64, index int) events.Cursor {
	return events.Cursor{Position: task.Position{Epoch: epoch, Seq: seq, Index: index}}
}
