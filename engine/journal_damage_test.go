package engine_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store/trash"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/store"
)

// flipByte changes a byte of a log, and keeps its length and time: only reading that
// commit shows the change.
func flipByte(t *testing.T, ref store.Ref, where string) {
	t.Helper()
	path := filepath.Join(ref.Log, "journal.jsonl")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	at := bytes.Index(data, []byte(where))
	if err != nil || at < 0 {
		t.Fatalf("%v, no %q", err, where)
	}
	data[at+len(where)-1] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// What older runs came to, and who answered what, a new process takes from the snapshot; it
// reads the log for that only when there is none, and says the same.
func TestWhatRunsCameToIsTakenFromTheSnapshot(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	first := b.ask(asksWhich)
	first.Text = strings.Repeat("long words ", 1000) // a log's beginning is always compared
	one := b.submit(first)
	b.waitForState(one.ID, "waiting")
	q := b.asked(one.Ref.ID)
	b.reply(q.ID, engine.Reply{ID: "m1", Text: "this"})
	b.waitForState(one.ID, "completed")
	two := b.submit(engine.Request{Task: one.Ref.ID, Text: "again", Interactive: true})
	b.waitForState(two.ID, "completed")

	look := func() (runs []engine.RunInfo, again api.Sent) {
		t.Helper()
		b.restart(engine.Options{})
		runs, err := b.engine.RunsOf(t.Context(), one.Ref.ID)
		if err != nil {
			t.Fatal(err)
		}
		again, err = b.engine.Send(t.Context(), one.Ref.ID, engine.Message{ID: "m1", Text: "this"})
		if err != nil {
			t.Fatal(err)
		}
		return runs, again
	}
	b.restart(engine.Options{}) // ends the one that worked, which saves the snapshot
	runs, said := look()
	if len(runs) != 2 || runs[1].ID != one.ID || runs[1].State != "completed" || runs[1].Turns == 0 || said.Delivered != "answered" || said.Run != one.ID {
		t.Fatalf("got %+v\n%+v, want len(runs) = 2 and runs[1].ID = one.ID and runs[1].State = \"completed\" and runs[1].Turns != 0 and said.Delivered = \"answered\" and said.Run = one.ID",
			runs, said)
	}
	idx := filepath.Join(one.Ref.Log, "journal.idx")
	snapshot, err := os.ReadFile(idx)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"no": nil, "half a": snapshot[:len(snapshot)/2], "a damaged": append(bytes.Clone(snapshot[:len(snapshot)-9]), bytes.Repeat([]byte{0}, 9)...)} {
		if err := os.Remove(idx); err != nil {
			t.Fatal(err)
		}
		if data != nil {
			if err := os.WriteFile(idx, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		whole, again := look()
		if d := cmp.Diff(runs, whole) + cmp.Diff(said, again); d != "" {
			t.Errorf("with %s snapshot: %s", name, d)
		}
		if err := os.WriteFile(idx, snapshot, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flipByte(t, one.Ref, `{"type":"run.started","run":"`+two.ID)
	if kept, _ := look(); cmp.Diff(runs, kept) != "" {
		t.Errorf("the log was read: %+v", kept)
	}
}

// Another process purged a task and made one of the same name: what is told of its runs is the
// new one's, however alike their journals are.
func TestRunsOfAnotherTaskOfTheSameName(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	r := b.ask(completesAtOnce)
	r.NewTask = "garden"
	one := b.submit(r)
	b.waitForState(one.ID, "completed")
	settledStatus(b, one.Ref.ID)
	here := b.engine
	if _, err := here.RunsOf(t.Context(), "garden"); err != nil { // all of it is known here
		t.Fatal(err)
	}
	there := engine.New(b.store, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	defer there.Close(context.Background()) //nolint:errcheck // it did what it should
	b.engine = there
	if _, err := trash.Delete(t.Context(), b.store, one.Ref); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Purge(t.Context(), "garden"); err != nil {
		t.Fatal(err)
	}
	two := b.submit(r)
	b.waitForState(two.ID, "completed")
	settledStatus(b, two.Ref.ID)
	want, err := there.RunsOf(t.Context(), "garden")
	if err != nil || len(want) != 1 {
		t.Fatalf("got %+v, %v, want no error and len(want) = 1", want, err)
	}
	b.engine = here
	if got, err := here.RunsOf(t.Context(), "garden"); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%s, %v", cmp.Diff(want, got), err)
	}
}
