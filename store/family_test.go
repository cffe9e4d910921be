package store

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

const callsNewTask = `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"new_task","input":{"mode":"code","message":"x"}}],"ts":1776200000000}`

// kin is a parent that waits for the child "kid".
func kin(t *testing.T) *task.State {
	t.Helper()
	s := open(t, t.TempDir())
	k := create(t, s, "parent")
	t.Cleanup(func() { closeTask(t, k) })
	fixture.NoError(t, k.Commit(t.Context(), task.RunStarted{Run: "r"}, add(k, task.UI, uiRow(1, "hello"))))
	fixture.NoError(t, k.Commit(t.Context(), add(k, task.API, callsNewTask)))
	id := k.State().Call("c1").Message
	fixture.NoError(t, k.Commit(t.Context(), task.SubtaskStarted{Child: "kid", Call: "c1", Message: id}))
	return k.State()
}

// What Roo's history row says of a family, before, while and after it waits.
func TestHistoryRowOfAFamily(t *testing.T) {
	s := kin(t)
	if got := projection.HistoryRow(s); got.Status != "delegated" || got.Family.Awaiting != "kid" || got.Family.Delegated != "kid" {
		t.Errorf(`got %+v, want got.Status = "delegated" and got.Family.Awaiting = "kid" and got.Family.Delegated = "kid"`,
			got)
	}
	s.Children[0].Ended, s.Children[0].Outcome, s.Children[0].Result = true, "completed", "Did it."
	want := usage.Family{Delegated: "kid", Children: []string{"kid"}, Completed: "kid", Result: "Did it."}
	if got := projection.HistoryRow(s); got.Status != "active" || cmp.Diff(want, got.Family) != "" {
		t.Errorf("%+v", got)
	}
	s.Children[0].Outcome, s.Run.Outcome = "abandoned", "completed"
	if got := projection.HistoryRow(s); got.Status != "active" || got.Family.Completed != "" {
		t.Errorf("a first task is not completed in Roo's words: %+v", got)
	}
	s.Parent = "above"
	if got := projection.HistoryRow(s); got.Status != "completed" {
		t.Errorf("a child that completed: %+v", got)
	}
	s.Parent, s.Children = "", nil
	if got := projection.HistoryRow(s); got.Status != "" || len(got.Family.Children) > 0 {
		t.Errorf("a task without a family: %+v", got)
	}
}

// Over another tool's item the child that is not waited for any more goes, and what we
// do not know stays where it is.
func TestRowOverAnItem(t *testing.T) {
	row := usage.HistoryItem(nil, usage.Row{ID: "p", Status: "active", Family: usage.Family{Delegated: "a", Children: []string{"a", "b"}}})
	out := projection.OverItem([]byte(`{"id":"p","zoo":[1],"status":"delegated","awaitingChildId":"b","childIds":["a"],"x":"y"}`), row)
	if _, has := esjson.Get(out, "awaitingChildId"); has || !json.Valid(out) {
		t.Errorf("got %s, want not has and json.Valid(out)", out)
	}
	for _, part := range []string{`{"id":"p","zoo":[1],"status":"active","childIds":["a","b"],"x":"y"`, `"delegatedToId":"a"`} {
		if !strings.Contains(string(out), part) {
			t.Errorf("%s is not in %s", part, out)
		}
	}
}

// A family is a task and all of its descendants, also those without a message. Its parent and its siblings are not part of it.
func TestAFamilyIsATaskAndItsSubtasks(t *testing.T) {
	s := open(t, t.TempDir())
	for i, c := range []struct{ id, parent string }{{"top", ""}, {"a", "top"}, {"a1", "a"}, {"a2", "a"}, {"b", "top"}, {"alone", ""}} {
		k := fixture.Must[*Task](t)(s.Create(t.Context(), task.Created{Task: c.id, Number: 1, CreatedAt: ts0 + int64(i), Parent: c.parent}))
		if c.id != "a2" {
			fixture.NoError(t, k.Commit(t.Context(), add(k, task.UI, uiRow(i, "x"))))
		}
		closeTask(t, k)
	}
	for id, want := range map[string]string{"top": "top(a(a1 a2) b)", "a": "a(a1 a2)", "a2": "a2", "alone": "alone"} {
		f := fixture.Must[api.Family](t)(s.Family(t.Context(), fixture.Must[Ref](t)(s.Find(t.Context(), id))))
		if len(f.Depths) != len(f.Tasks) {
			t.Fatalf("the family of %s has %d depths, want one for each of its %d tasks", id, len(f.Depths), len(f.Tasks))
		}
		if got := spelled(f.Branch()); got != want {
			t.Errorf("the family of %s is %s, want %s", id, got, want)
		}
	}
	ref := fixture.Must[Ref](t)(s.Find(t.Context(), "a"))
	for name, gone := range map[string]Ref{
		"another folder": {ID: ref.ID, Source: ref.Source, Dir: ref.Dir + "x"},
		"another id":     {ID: "zz", Source: ref.Source, Dir: ref.Dir},
	} {
		if f, err := s.Family(t.Context(), gone); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: got %v, %v, want errors.Is(err, ErrNotFound)", name, f, err)
		}
	}
}

// spelled writes a task and, in brackets, its subtasks.
func spelled(b api.Branch) string {
	if len(b.Children) == 0 {
		return b.Task.ID
	}
	return b.Task.ID + "(" + strings.Join(api.Each(b.Children, spelled), " ") + ")"
}

// A task is made once, whatever an earlier try left.
func TestCreateOnce(t *testing.T) {
	made := task.Created{Task: "kid", Number: 2, Parent: "p", CreatedAt: 5, Settings: task.Settings{Workspace: "/w"}}
	words := task.InputQueued{Input: "new_task", Text: "do it"}
	for name, before := range map[string]func(t *testing.T, s *Store){
		"nothing is there": func(*testing.T, *Store) {},
		"an empty folder": func(t *testing.T, s *Store) {
			fixture.NoError(t, os.MkdirAll(filepath.Join(s.TasksDir(), "kid"), 0o700))
		},
		"a log that says nothing yet": func(t *testing.T, s *Store) {
			k := fixture.Must[*Task](t)(s.takeWith(t.Context(), s.OwnRef("kid"), false, false))
			fixture.NoError(t, k.Close(t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			before(t, s)
			for i := range 3 {
				o, fresh, err := s.CreateOnce(t.Context(), made, words)
				fixture.NoError(t, err)
				if st := o.Task.State(); fresh != (i == 0) || st.Parent != "p" || len(st.Queue) != 1 || st.CreatedAt != 5 {
					t.Errorf("time %d: made %t, %+v", i, fresh, st)
				}
				closeTask(t, o.Task)
			}
		})
	}
	s := open(t, t.TempDir())
	if _, _, err := s.CreateOnce(t.Context(), task.Created{Task: "../kid"}); err == nil {
		t.Error("an id that is no folder name was taken")
	}
	dir := filepath.Join(s.TasksDir(), "kid")
	fixture.NoError(t, os.MkdirAll(dir, 0o700))
	write(t, dir, roofmt.UIName, array(uiRow(1, "somebody else's")))
	o, fresh, err := s.CreateOnce(t.Context(), made, words)
	fixture.NoError(t, err)
	defer closeTask(t, o.Task)
	if fresh || o.Task.State().Adopted == nil {
		t.Errorf("made %t over what another program put there", fresh)
	}
}

// A child is looked for by its whole id, in our root and beside its parent.
func TestFindChild(t *testing.T) {
	storage, dir := rooStorage(t, "theirs")
	s := open(t, t.TempDir(), storage)
	closeTask(t, create(t, s, "ours"))
	parent := fixture.Must[Ref](t)(s.Find(t.Context(), "theirs"))
	find := func(id string) string {
		ref, err := s.FindChild(context.Background(), parent, id)
		var trashed *TrashedError
		switch {
		case errors.As(err, &trashed):
			return "deleted"
		case errors.Is(err, ErrNotFound):
			return "none"
		}
		fixture.NoError(t, err)
		return ref.Dir
	}
	for id, want := range map[string]string{
		"ours": filepath.Join(s.TasksDir(), "ours"), "theirs": dir, "our": "none", "their": "none", "../ours": "none", "": "none",
	} {
		if got := find(id); got != want {
			t.Errorf("%q is found at %s, want %s", id, got, want)
		}
	}
	del(t, s, "ours")
	if got := find("ours"); got != "deleted" {
		t.Error(got)
	}
}
