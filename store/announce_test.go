package store

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store/feed"
	"github.com/roost-dev/roost/task"
)

// toldOf is what the feed makes known now, a text for each line.
func toldOf(t *testing.T, s *Store) (out []string) {
	t.Helper()
	r := fixture.Must[feed.Reader](t)(s.Feed().Open(t.Context(), feed.Place{}))
	defer func() { _ = r.Close() }()
	for {
		e, ok, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return out
		}
		text := fmt.Sprintf("%s:%s %d-%d", e.Source, e.Task, e.New.From, e.New.To)
		if e.End {
			text += " end"
		}
		out = append(out, text)
	}
}

// Each sync tells how far it went, and letting go says so, whatever the owner committed
// between.
func TestOwnersTellTheFeed(t *testing.T) {
	s := fixture.Must[*Store](t)(Open(Options{Root: t.TempDir(), Program: "test"}))
	owned := fixture.Must[*Task](t)(s.Create(t.Context(), task.Created{Task: "a", Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: "/w"}}))
	for i := range 3 {
		if err := owned.Commit(t.Context(), task.RunStarted{Run: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := owned.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !s.Held(t.Context(), owned.Ref) {
		t.Error("nobody has it")
	}
	if err := owned.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Held(t.Context(), owned.Ref) {
		t.Error("it is still held")
	}
	want := []string{"roost:a 1-1", "roost:a 2-2", "roost:a 3-5", "roost:a 6-5 end"}
	if diff := cmp.Diff(want, toldOf(t, s)); diff != "" {
		t.Error(diff)
	}
	if err := os.RemoveAll(s.FeedDir()); err != nil {
		t.Fatal(err)
	}
	if err := s.Announce(t.Context(), owned.Ref); err != nil { // by anybody, as often as one likes
		t.Fatal(err)
	}
	if err := s.Announce(t.Context(), owned.Ref); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"roost:a 0-5 end", "roost:a 6-5 end"}, toldOf(t, s)); diff != "" {
		t.Error(diff)
	}
	again := fixture.Must[*Owned](t)(s.Own(t.Context(), owned.Ref))
	if err := again.Task.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"roost:a 6-6", "roost:a 7-6 end"}, toldOf(t, s)[2:]); diff != "" {
		t.Error(diff)
	}
}

// A feed that cannot be written is no trouble of a task's.
func TestFeedThatCannotBeWritten(t *testing.T) {
	s := fixture.Must[*Store](t)(Open(Options{Root: t.TempDir(), Program: "test"}))
	if err := os.WriteFile(s.FeedDir(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	owned := fixture.Must[*Task](t)(s.Create(t.Context(), task.Created{Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: "/w"}}))
	if err := owned.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// No name in a feed leads out of the root.
func TestNamesThatLeadOutOfTheRoot(t *testing.T) {
	s := fixture.Must[*Store](t)(Open(Options{Root: t.TempDir(), Program: "test"}))
	if _, ok := s.LogRef("..", "a"); ok {
		t.Error("a source that leads out of the root")
	}
	if _, ok := s.LogRef(OwnSource, "../a"); ok {
		t.Error("a task that leads out of the root")
	}
}
